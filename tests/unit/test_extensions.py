"""Kinds that gain fields by further files, references written as JSON Schema objects, and short names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flux_resourceset import documents, errors, merge
from flux_resourceset.changes import Snapshot, Stored
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Kinds, Referenced
from unit import samples

TARGETS = """\
extends: platform_components
metadata:
  x-flux:
    reference:
      target_namespace: {type: [string, "null"], format: dns-label}
      priority: {type: integer, default: 3}
schema:
  items:
    required: [release]
    properties:
      target_namespace: {type: string, format: dns-label}
      release: {type: string, default: stable}
      registry: {type: object, properties: {secret: {type: string}}}
"""


def component(known: Kinds) -> Referenced:
    return known.referenced_by_name["platform_components"]


def test_a_built_in_kind_gains_fields_and_reference_fields(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, TARGETS)
    kind, built_in = component(known), component(kind_files.load())
    assert [*kind.properties] == [*built_in.properties, "target_namespace", "release", "registry"]
    assert kind.schema["required"] == [*built_in.schema["required"], "release"]
    assert [*kind.reference] == [*built_in.reference, "target_namespace", "priority"]
    assert kind.overrides == (*built_in.overrides, "target_namespace")
    assert kind.described()["overrides"] == [*kind.overrides]
    assert "priority" in known.clusters.properties["platform_components"]["items"]["properties"]
    assert component(kind_files.load()).described() == built_in.described()


def test_added_fields_are_validated_completed_and_merged(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, TARGETS)
    kind = component(known)
    definition = documents.completed(kind, samples.component("a", target_namespace="apps", registry={"secret": "s"}))
    assert definition["release"] == "stable"
    assert documents.violations(known, kind, definition) == []
    wrong = {**definition, "target_namespace": "No", "registry": {"colour": 1}, "else": 1}
    assert {each.pointer for each in documents.violations(known, kind, wrong)} == {
        "/target_namespace", "/registry/colour", "/else"
    }  # fmt: skip
    references = [{"id": "a"}, {"id": "b", "target_namespace": "here"}]
    cluster = documents.completed(known.clusters, samples.cluster(platform_components=references))
    assert documents.violations(known, known.clusters, cluster) == []
    a, b = merge.inputs(kind, cluster, {"a": definition, "b": {**definition, "id": "b"}})
    assert [(each["target_namespace"], each["priority"], each["release"]) for each in (a, b)] == [
        ("apps", 3, "stable"), ("here", 3, "stable")
    ]  # fmt: skip


def test_what_was_stored_before_gets_the_defaults(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, TARGETS)
    old = kind_files.load()
    definition = documents.completed(component(old), samples.component("a"))
    cluster = documents.completed(old.clusters, samples.cluster(platform_components=[{"id": "a"}]))
    fleet = Fleet(known)
    stored = {"platform_components": {"a": Stored(definition, 1)}, "clusters": {"c1": Stored(cluster, 1)}}
    fleet.load(Snapshot("e", 1, stored, ()))
    assert fleet.documents["platform_components"]["a"] == Stored({**definition, "release": "stable"}, 1)
    assert fleet.documents["clusters"]["c1"].body["platform_components"] == [{"id": "a", "enabled": True, "priority": 3}]
    assert b'"priority":3' in fleet.answer(b"c1.example.com/platform-components")


def test_several_files_extend_one_kind_whatever_the_order_of_their_names(tmp_path: Path) -> None:
    more = "extends: widgets\nschema: {items: {properties: {size: {type: integer}}}}\n"
    known = samples.kinds_from(tmp_path, more, more.replace("size", "colour"), samples.PLAIN)
    assert [*known.by_name["widgets"].properties] == ["id", "size", "colour"]
    assert len(known.by_name["widgets"].extended_by) == 2


def test_kinds_that_clusters_do_not_refer_to_can_be_extended_too(tmp_path: Path) -> None:
    text = "extends: {}\nschema: {{items: {{properties: {{ticket: {{type: string}}}}}}}}\n"
    known = samples.kinds_from(tmp_path, text.format("freezes"), text.format("clusters"))
    for name, document in (("freezes", {"id": "f", "environment": "dev", "reason": "r"}), ("clusters", samples.cluster())):
        kind = known.by_name[name]
        assert documents.violations(known, kind, documents.completed(kind, {**document, "ticket": "42"})) == []


def test_a_reference_field_may_be_made_an_override_of_a_field_that_is_there(tmp_path: Path) -> None:
    text = "extends: platform_components\nmetadata:\n  x-flux:\n    reference:\n      oci_url: {type: [string, 'null']}\n"
    with pytest.raises(errors.StartupError, match=r"kind_0\.yaml:5: .*list it in overrides"):
        samples.kinds_from(tmp_path, text)
    known = samples.kinds_from(tmp_path, text + "    overrides: [oci_url]\n")
    assert component(known).overrides == ("oci_tag", "component_path", "oci_url")


def test_an_extension_brings_a_resourceset_for_a_built_in_kind(tmp_path: Path) -> None:
    (tmp_path / "platform_components.resourceset.yaml").write_text("mine: 1\n")
    assert component(kind_files.load(tmp_path)).resourceset is None
    assert component(samples.kinds_from(tmp_path, TARGETS)).resourceset == "mine: 1\n"


def properties(text: str) -> str:
    return f"extends: platform_components\nschema:\n  items:\n    properties:\n      {text}\n"


def reference(text: str) -> str:
    return f"extends: platform_components\nmetadata:\n  x-flux:\n    reference:\n      {text}\n"


# name: (text, the line, the reason)
BROKEN: dict[str, tuple[str, int, str]] = {
    "an unknown kind": ("\nextends: gadgets\n", 2, "there is no kind 'gadgets'"),
    "no name of a kind": ("extends: [a]\n", 1, "is not of type"),
    "a kind of its own": ("extends: namespaces\nkind: mine\n", 2, "kind"),
    "a field that is there": (properties("oci_tag: {type: string}"), 5, "clashes with 'oci_tag' of platform_components"),
    "an id": (properties("id: {type: string}"), 5, "clashes with 'id'"),
    "a group of the answer": (properties("source: {type: string}"), 5, "clashes with 'source'"),
    "a field of references": (properties("enabled: {type: boolean}"), 5, "clashes with 'enabled' of the references"),
    "a reference field that is there": (reference("enabled: {type: boolean}"), 5, "clashes with 'enabled'"),
    "a silent override": (reference("oci_url: {type: string}"), 5, "list it in overrides"),
    "a reserved field": (properties("cluster: {type: string}"), 5, "'cluster' is reserved"),
    "a reserved reference field": (reference("patches: {type: object}"), 5, "'patches' is reserved"),
    "no schema": (properties("x: {type: strin}"), 5, "not a valid JSON Schema"),
    "properties that are a list": (properties("x: {type: object, properties: [a]}"), 5, "not a valid JSON Schema"),
    "no schema of a reference": (reference("x: {type: strin}"), 5, "not a valid JSON Schema"),
    "an unknown format": (properties("x: {type: string, format: nope}"), 5, "unknown format"),
    "a required field without default": (
        properties("x: {type: string}\n    required: [x]"), 5, "'x' is required and has no default"
    ),
    "a required reference field without default": (
        "extends: namespaces\nmetadata:\n  x-flux:\n    reference:\n      type: object\n      required: [x]\n"
        "      properties:\n        x: {type: string}\n", 8, "'x' is required and has no default"
    ),
    "required and unknown": (properties("x: {type: string}\n    required: [oci_url]"), 6, "not among the properties"),
    "a hint": ("extends: namespaces\nmetadata:\n  x-flux:\n    singular: space\n", 4, "singular"),
    "methods": ("extends: namespaces\nmethods: {resource: [get]}\n", 2, "methods"),
    "a reference to what is not referred to": (
        "extends: freezes\nmetadata:\n  x-flux:\n    reference: {x: {type: string}}\n", 4, "clusters do not refer to freezes"
    ),
    "an override of nothing": (
        "extends: namespaces\nmetadata:\n  x-flux:\n    overrides: [labels]\n", 4, "is not among the reference fields"
    ),
    "an array of clusters": (
        "extends: clusters\nschema:\n  items:\n    properties:\n      namespaces: {type: string}\n", 5, "with 'namespaces'"
    ),
    "the inputs of clusters": (
        "extends: clusters\nschema:\n  items:\n    properties:\n      inputs: {type: string}\n", 5, "'inputs' is reserved"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_extension_stops_the_start_with_file_line_and_reason(name: str, tmp_path: Path) -> None:
    text, line, reason = BROKEN[name]
    with pytest.raises(errors.StartupError) as caught:
        samples.kinds_from(tmp_path, text)
    assert re.search(rf"kind_0\.yaml:{line}: .*{reason}", str(caught.value)), str(caught.value)


def test_two_extensions_that_clash_name_the_other_file(tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match=r"kind_1\.yaml:5: .*clashes with 'x'.*kind_0\.yaml"):
        samples.kinds_from(tmp_path, properties("x: {type: string}"), properties("x: {type: string}"))


def test_an_array_of_an_added_kind_is_taken_for_clusters(tmp_path: Path) -> None:
    text = "extends: clusters\nschema: {items: {properties: {widgets: {type: string}}}}\n"
    with pytest.raises(errors.StartupError, match="clashes with the array of references to widgets"):
        samples.kinds_from(tmp_path, text, samples.PLAIN)


# References


def test_a_reference_is_a_map_of_properties_or_a_json_schema_object(tmp_path: Path) -> None:
    fields = "{size: {type: integer}, type: {type: string}}"
    plain = samples.PLAIN + f"metadata: {{x-flux: {{reference: {fields}}}}}\n"
    whole = f"{{type: object, description: d, additionalProperties: false, required: [size], properties: {fields}}}"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    a = samples.kinds_from(tmp_path / "a", plain).referenced_by_name["widgets"]
    known = samples.kinds_from(tmp_path / "b", samples.PLAIN + f"metadata: {{x-flux: {{reference: {whole}}}}}\n")
    b = known.referenced_by_name["widgets"]
    assert a.reference == b.reference == {"size": {"type": "integer"}, "type": {"type": "string"}}
    assert (a.reference_required, b.reference_required) == ((), ("size",))
    cluster = documents.completed(known.clusters, samples.cluster(widgets=[{"id": "w"}]))
    assert [each.pointer for each in documents.violations(known, known.clusters, cluster)] == ["/widgets/0/size"]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("{type: object}", '"properties" is a required property'),
        ("{type: array, properties: {}}", "reference/type"),
        ("{type: object, properties: {}, minProperties: 1}", "minProperties"),
        ("{type: object, properties: {x: {type: nope}}}", "reference/properties/x"),
        ("{type: object, properties: {id: {type: string}}}", "reference/properties/id: .*reserved"),
        ("{type: object, properties: {}, required: [x]}", "reference/required: 'x' is required but not among"),
        ("{type: object, properties: {x: {type: integer, default: a}}}", "reference/properties/x/default"),
        ("{size: 3}", "reference/size"),
    ],
)
def test_a_broken_reference_is_told_with_its_place(tmp_path: Path, reference: str, reason: str) -> None:
    with pytest.raises(errors.StartupError, match=reason):
        samples.kinds_from(tmp_path, samples.PLAIN + f"metadata: {{x-flux: {{reference: {reference}}}}}\n")


# Short names


def test_the_built_in_kinds_have_short_names() -> None:
    assert {kind.name: kind.short for kind in kind_files.load()} == {
        "clusters": "cl", "freezes": None, "namespaces": "ns", "platform_components": "comp", "rolebindings": "rb"
    }  # fmt: skip


def test_a_short_name_is_a_hint_and_described(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, samples.PLAIN + "metadata: {x-flux: {short: wd}}\n")
    assert known.by_name["widgets"].described()["short"] == "wd"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (samples.PLAIN + "metadata: {x-flux: {short: ns}}\n", "short: short 'ns' is taken by built-in namespaces.yaml"),
        (samples.PLAIN + "metadata: {x-flux: {short: component}}\n", "short 'component' is taken"),
        (samples.PLAIN + "metadata: {x-flux: {short: clusters}}\n", "short 'clusters' is taken"),
        (samples.PLAIN + "metadata: {x-flux: {short: W-d}}\n", "match"),
        (samples.PLAIN + "metadata: {x-flux: {singular: rb}}\n", "singular: 'rb' is the short name of rolebindings"),
        (samples.PLAIN.replace("widgets", "comp"), "kind: 'comp' is the short name of platform_components"),
    ],
)
def test_a_short_name_is_a_word_for_one_kind(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(errors.StartupError, match=reason):
        samples.kinds_from(tmp_path, text)
