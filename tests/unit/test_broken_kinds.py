"""Broken kind files of many sorts: each stops the start with its file, the line and a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flux_resourceset import errors
from flux_resourceset.kinds import kind_files, model
from flux_resourceset.kinds.lined_files import LinedFile
from unit import samples

PLAIN = samples.PLAIN
FIELDS = PLAIN + "      size: {type: integer}\n      colour: {type: string}\n"


def hinted(text: str) -> str:
    return FIELDS + f"metadata:\n  x-flux:\n    {text}\n"


# name: (text, a piece of the line that is to be named, the reason)
BROKEN: dict[str, tuple[str, str, str]] = {
    # YAML
    "empty": ("", "", "the file is empty"),
    "only comments": ("# nothing\n", "nothing", "the file is empty"),
    "a tab": (PLAIN + "\tx: 1\n", "\tx", "invalid YAML"),
    "an open bracket": (PLAIN.replace("[id]", "[id"), "properties", "invalid YAML"),
    "two documents": (PLAIN + "---\nkind: b\n", "---", "invalid YAML"),
    "an unknown tag": (PLAIN.replace("v1", "!python/name:os v1"), "python", "invalid YAML"),
    "an unknown anchor": (PLAIN.replace("v1", "*gone"), "gone", "invalid YAML"),
    "a circle": ("kind: &a [*a]\n", "kind", "invalid YAML"),
    "a key twice": (PLAIN + "kind: gadgets\n", "gadgets", 'duplicate key "kind"'),
    "a nested key twice": (PLAIN + "      id: {type: integer}\n", "integer", 'duplicate key "id"'),
    "a number as key": (PLAIN + "      1: {type: string}\n", "1: {", "the key 1 is not text; put it in quotes"),
    "a bare on as key": (PLAIN + "      on: {type: string}\n", "on: {", "the key on is not text; put it in quotes"),
    "a list as key": (PLAIN + "? [a]\n: b\n", "? [a]", "keys must be text"),
    # The frame
    "a text": ("widgets\n", "widgets", "is not of type"),
    "a list": ("- kind: widgets\n", "kind", "is not of type"),
    "no kind": (PLAIN.replace("kind: widgets\n", ""), "apiVersion", '"kind" is a required'),
    "no apiVersion": (PLAIN.replace("apiVersion: v1\n", ""), "kind", '"apiVersion" is a required'),
    "no schema": ("kind: widgets\napiVersion: v1\n", "kind", '"schema" is a required'),
    "a kind in capitals": (PLAIN.replace("widgets", "Widgets"), "Widgets", "kind: .*match"),
    "a kind with a hyphen": (PLAIN.replace("widgets", "blue-widgets"), "blue-", "kind: .*match"),
    "a kind that is a number": (PLAIN.replace("widgets", "5"), "kind", "is not of type"),
    "a version without v": (PLAIN.replace("v1", "one"), "one", "apiVersion: .*match"),
    "a version that is a number": (PLAIN.replace("v1", "1.0"), "1.0", "is not of type"),
    "a field of no meaning": (PLAIN + "colour: red\n", "colour", "colour"),
    "versions in paths": (PLAIN + "versionInPath: true\n", "versionInPath", "versionInPath: "),
    "an object for a collection": (PLAIN.replace("type: array", "type: object"), "type: object", "schema/type"),
    "no key": (PLAIN.replace("  key: {name: id, schema: {type: string}}\n", ""), "schema:", '"key" is a required'),
    "another key": (PLAIN.replace("name: id", "name: uid"), "uid", "schema/key/name"),
    "no items": (PLAIN.partition("  items:")[0], "schema:", '"items" is a required'),
    "no properties": (PLAIN.partition("    properties:")[0], "items:", '"properties" is a required'),
    "an unknown method": (PLAIN + "methods: {resource: [steal]}\n", "steal", "steal"),
    "a property that is no schema": (PLAIN + "      x: string\n", "x: string", "is not of type"),
    "a property with a hyphen": (PLAIN + "      a-b: {type: string}\n", "properties", "a-b"),
    # Names
    "a route of the API": (PLAIN.replace("widgets", "changes"), "changes", "is a route of the API"),
    "a built-in kind": (PLAIN.replace("widgets", "namespaces"), "namespaces", "is taken by built-in namespaces.yaml"),
    "the clusters": (PLAIN.replace("widgets", "clusters"), "clusters", "is taken by built-in clusters.yaml"),
    "a field of clusters": (PLAIN.replace("widgets", "labels"), "labels", "clusters have a field 'labels' of their own"),
    "the patches of clusters": (PLAIN.replace("widgets", "patches"), "patches", "'patches' is reserved"),
    "a field kind": (PLAIN + "      kind: {type: string}\n", "      kind", "'kind' is reserved"),
    "a field provider": (PLAIN + "      provider: {type: string}\n", "provider", "'provider' is reserved"),
    "a field cluster": (PLAIN + "      cluster: {type: string}\n", "cluster", "'cluster' is reserved"),
    "a field patches": (PLAIN + "      patches: {type: object}\n", "patches", "'patches' is reserved"),
    # The id
    "no id": (PLAIN.replace("id: {type: string}\n", "name: {type: string}\n"), "properties", "a required property id"),
    "an optional id": (PLAIN.replace("    required: [id]\n", ""), "properties", "a required property id"),
    "a number as id": (PLAIN.replace("      id: {type: string}", "      id: {type: integer}"), "properties", "of type string"),
    # Hints
    "an unknown hint": (hinted("colour: red"), "colour", "colour"),
    "an endpoint in capitals": (hinted("endpoint: Views"), "Views", "endpoint: .*match"),
    "a taken singular": (hinted("singular: component"), "component", "singular 'component' is taken"),
    "a taken endpoint": (hinted("endpoint: namespaces"), "namespaces", "endpoint 'namespaces' is taken"),
    "a taken cluster field": (hinted("cluster_field: rolebindings"), "rolebindings", "cluster_field 'rolebindings' is taken"),
    "an own field of clusters": (hinted("cluster_field: environment"), "environment", "of their own"),
    "a reserved cluster field": (hinted("cluster_field: patches"), "cluster_field", "'patches' is reserved"),
    "an id in references": (hinted("reference: {id: {type: string}}"), "reference", "'id' is reserved"),
    "a reserved reference": (hinted("reference: {provider: {type: string}}"), "reference", "'provider' is reserved"),
    "a silent override": (hinted("reference: {size: {type: integer}}"), "reference", "list it in overrides"),
    "an override of nothing": (hinted("overrides: [size]"), "overrides", "must be both"),
    "a nest of nothing": (hinted("nest: {group: [weight]}"), "nest", "'weight' must be a field"),
    "a nested id": (hinted("nest: {group: [id]}"), "nest", "'id' must be a field, not id"),
    "nested twice": (hinted("nest: {one: [size], two: [size]}"), "nest", "nested once"),
    "a nest that is a field": (hinted("nest: {colour: [size]}"), "nest", "'colour' is a field already"),
    "a nest that is reserved": (hinted("nest: {cluster: [size]}"), "nest", "'cluster' is a field already"),
    "patches that are no flag": (hinted("patches: maybe"), "patches", "is not of type"),
    "dependencies on nothing": (hinted("dependencies: {field: needs}"), "dependencies", "'needs' is not among"),
    "dependencies without field": (hinted("dependencies: {same: [size]}"), "dependencies", '"field" is a required'),
    # Schemas
    "required but unknown": (PLAIN.replace("[id]", "[id, name]"), "required", "'name' is required but not among"),
    "an unknown type": (PLAIN + "      x: {type: strin}\n", "strin", "not a valid JSON Schema"),
    "a pattern that is none": (PLAIN + "      x: {type: string, pattern: '('}\n", "pattern", "not a valid JSON Schema"),
    "a date as example": (PLAIN + "      x: {type: string, example: 2024-01-01}\n", "2024", "not a valid JSON Schema"),
    "a deep mistake": (PLAIN + "      x:\n        type: array\n        items:\n          type: nope\n", "nope", "JSON Schema"),
    "a bare date": (PLAIN.replace("kind: widgets", "kind: widgets\nmetadata: {description: 2024-01-01}"), "kind", "quotes"),
    "a nest without end": (PLAIN + "      x: " + "{not: " * 300 + "{}" + "}" * 300 + "\n", "x: {not", "levels deep"),
    "a format in a corner": (PLAIN + "      x: {type: array, contains: {format: nope}}\n", "nope", "unknown format"),
    "dependencies that are no ids": (hinted("dependencies: {field: id}"), "field: id", "array of strings"),
    "keys of patches, and no patches": (hinted("patch_keys: {format: variable}"), "patch_keys", "needs patches: true"),
    "keys of patches of no format": (
        hinted("patches: true\n    patch_keys: {format: verse}"), "patch_keys", "unknown format 'verse'"
    ),
    "keys of patches where nothing is": (
        hinted("patches: true\n    patch_keys: {format: variable, where: {x: 1}}"), "patch_keys", "'x' is not among"
    ),
    "bytes that are no number": (PLAIN + "      m: {type: object, x-max-bytes: many}\n", "m:", "x-max-bytes"),
    "versions of nothing": (hinted("versions: {fields: [x], unpinned: latest}"), "versions", "is not among"),
    "branches that are no list": (PLAIN + "      x: {allOf: 3}\n", "allOf", "JSON Schema"),
    "properties that are a list": (PLAIN + "      x: {type: object, properties: [a]}\n", "[a]", "JSON Schema"),
    "a reference that is no schema": (hinted("reference: {up: {type: boolean, enum: 3}}"), "reference", "JSON Schema"),
    "a mistyped format": (PLAIN + "      x: {type: string, format: dns-lable}\n", "dns-lable", "unknown format 'dns-lable'"),
    "a format of keys": (PLAIN + "      x: {propertyNames: {format: key}}\n", "format: key", "unknown format 'key'"),
    "a reference": (PLAIN + "      x: {$ref: '#/other'}\n", "$ref", r"\$ref is not supported"),
    "a wrong default": (PLAIN + "      x: {type: integer, default: many}\n", "many", "the default does not satisfy"),
    "a wrong reference default": (hinted("reference: {up: {type: boolean, default: 1}}"), "reference", "the default does not"),
    "a filter of nothing": (PLAIN.replace("  items:", "  query_params: [{name: x}]\n  items:"), "query_params", "is not among"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_stops_the_start_with_file_line_and_reason(name: str, tmp_path: Path) -> None:
    text, piece, reason = BROKEN[name]
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(errors.StartupError) as caught:
        kind_files.load(tmp_path)
    said = str(caught.value)
    assert re.match(rf"{re.escape(str(path))}:\d+: ", said), said
    assert re.search(reason, said), said
    lines = {text[: match.start()].count("\n") + 1 for match in re.finditer(re.escape(piece), text)} if piece else {1}
    assert int(said[len(str(path)) + 1 :].partition(":")[0]) in lines, said
    assert "\n" not in said


def test_bytes_that_are_not_utf_8_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_bytes(PLAIN.encode() + b"# caf\xe9\n")
    with pytest.raises(errors.StartupError, match=r"broken\.yaml:11: not UTF-8"):
        kind_files.load(tmp_path)


def test_two_files_cannot_define_one_kind(tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match=r"kind_1\.yaml:1: kind: name 'widgets' is taken by .*kind_0\.yaml"):
        samples.kinds_from(tmp_path, PLAIN, PLAIN)


@pytest.mark.parametrize("name", sorted(model.RESERVED_KINDS))
def test_no_kind_takes_a_route_of_the_api(name: str, tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match="is a route of the API"):
        samples.kinds_from(tmp_path, PLAIN.replace("widgets", name))


@pytest.mark.parametrize("name", ["health", "ready", "metrics", "changes"])
def test_the_routes_beside_the_collections_are_reserved(name: str) -> None:
    assert name in model.RESERVED_KINDS


@pytest.mark.parametrize("name", sorted(model.RESERVED_FIELDS))
def test_no_field_takes_a_reserved_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match=f"'{name}' is reserved"):
        samples.kinds_from(tmp_path, PLAIN + f"      {name}: {{type: string}}\n")


def test_a_mistake_in_what_is_not_there_is_told_with_the_last_line_that_is() -> None:
    file = LinedFile("x.yaml", "a: 1\nb:\n- c: 2\n")
    assert str(file.wrong(["b", 0, "d", "e"], "is missing")) == "x.yaml:3: b/0/d/e: is missing"
    assert str(file.wrong(["a", "d"], "is missing")) == "x.yaml:1: a/d: is missing"
    assert str(file.wrong(["b", 7], "is missing")) == "x.yaml:2: b/7: is missing"


def test_a_kind_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "kinds.yaml").mkdir()
    with pytest.raises(errors.StartupError, match=r"kinds\.yaml: cannot be read: Is a directory"):
        kind_files.load(tmp_path)
