"""Kind files: what each hint does, which files are read, and what a file without hints gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from flux_resourceset import documents, errors
from flux_resourceset.kinds import kind_files, model
from unit import samples


def test_the_built_in_kinds_have_the_versions_of_the_book() -> None:
    versions = {kind.name: kind.api_version for kind in kind_files.load()}
    assert versions == {"clusters": "v2", "freezes": "v1", "platform_components": "v1", "namespaces": "v1", "rolebindings": "v1"}


def test_clusters_are_not_referred_to_and_the_others_are_views() -> None:
    known = kind_files.load()
    assert not isinstance(known.clusters, model.Referenced)
    assert set(known.by_endpoint) == {"platform-components", "namespaces", "rolebindings"}
    assert [kind.name for kind in known.patched] == ["platform_components"]


def test_a_plain_file_gets_every_default(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, samples.PLAIN.replace("widgets", "blue_widgets"))
    kind = known.referenced_by_name["blue_widgets"]
    assert (kind.singular, kind.endpoint, kind.cluster_field) == ("blue_widget", "blue-widgets", "blue_widgets")
    assert (kind.reference, kind.overrides, dict(kind.nest), kind.patches, kind.dependencies) == ({}, (), {}, False, None)
    assert kind.methods == {"resource": ("get", "post"), "instance": ("get", "put", "patch", "delete")}
    assert kind.description == "blue_widgets"
    assert kind.filters == ()


def test_every_hint_is_taken() -> None:
    kind = kind_files.load(samples.KINDS_DIR).referenced_by_name["workloads"]
    assert (kind.singular, kind.endpoint, kind.cluster_field) == ("workload", "work", "assigned_workloads")
    assert set(kind.reference) == {"enabled", "image", "cpu", "note"}
    assert kind.overrides == ("image", "cpu")
    assert dict(kind.nest) == {"quota": ("cpu", "memory"), "placement": ("note",)}
    assert kind.patches


def test_a_kind_gives_clusters_its_reference_array() -> None:
    known = kind_files.load(samples.KINDS_DIR)
    cluster = documents.completed(known.clusters, samples.cluster(assigned_workloads=[{"id": "web"}]))
    assert cluster["assigned_workloads"] == [{"id": "web", "enabled": True}]
    assert cluster["network_policies"] == []
    assert documents.violations(known, known.clusters, cluster) == []


def test_a_null_cluster_field_means_no_reference_array_and_no_view(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, samples.PLAIN + "metadata: {x-flux: {cluster_field: null}}\n")
    assert "widgets" not in known.clusters.properties
    assert "widgets" not in known.by_endpoint
    assert "widgets" in known.by_name


def test_dependencies_are_a_hint_too(tmp_path: Path) -> None:
    text = samples.PLAIN + (
        "      needs: {type: array, items: {type: string}, default: []}\n"
        "      tier: {type: string, default: a}\n"
        "metadata: {x-flux: {dependencies: {field: needs, same: [tier]}}}\n"
    )
    kind = samples.kinds_from(tmp_path, text).by_name["widgets"]
    assert kind.dependencies == model.Dependencies("needs", ("tier",))


def test_methods_and_filters_come_from_the_file(tmp_path: Path) -> None:
    text = samples.PLAIN.replace("  items:", "  query_params: [{name: id, description: The id.}]\n  items:") + (
        "methods: {resource: [get, head], instance: [get, delete, options]}\n"
    )
    kind = samples.kinds_from(tmp_path, text).by_name["widgets"]
    assert kind.methods == {"resource": ("get",), "instance": ("get", "delete")}
    assert [item.name for item in kind.filters] == ["id"]


def test_the_environments_are_what_clusters_can_belong_to() -> None:
    known = kind_files.load(environments=("lab", "live"))
    for environment, fine in (("live", True), ("dev", False)):
        cluster = documents.completed(known.clusters, samples.cluster(environment=environment))
        assert (documents.violations(known, known.clusters, cluster) == []) is fine


# Which files of a directory are read


def test_files_that_are_not_yaml_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# kinds: [\n")
    (tmp_path / "widgets.json").write_text("{")
    (tmp_path / "noise.yaml.bak").write_text("{")
    assert len(samples.kinds_from(tmp_path, samples.PLAIN).by_name) == 6


def test_resourcesets_beside_a_kind_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "widgets.resourceset.yaml").write_text("kind: ResourceSet\n")
    (tmp_path / "others.resourceset.yml").write_text("kind: [")
    assert len(samples.kinds_from(tmp_path, samples.PLAIN).by_name) == 6


def test_both_endings_of_yaml_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(samples.PLAIN)
    (tmp_path / "b.yaml").write_text(samples.PLAIN.replace("widgets", "gadgets"))
    assert {"widgets", "gadgets"} <= set(kind_files.load(tmp_path).by_name)


def test_an_empty_directory_adds_nothing(tmp_path: Path) -> None:
    assert set(kind_files.load(tmp_path).by_name) == set(kind_files.load().by_name)


def test_a_directory_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match=f"RESOURCES_DIR {tmp_path}/none: cannot be read"):
        kind_files.load(tmp_path / "none")


# Strictness of what a kind lets in

STRUCTURE = samples.PLAIN + (
    "      plain: {type: object, properties: {a: {type: string}}}\n"
    "      declared: {type: object, additionalProperties: true, properties: {a: {type: string}}}\n"
    "      nullable: {type: [object, 'null'], properties: {a: {type: string}}}\n"
    "      untyped: {properties: {a: {type: string}}}\n"
    "      listed: {type: array, items: {type: object, properties: {a: {type: string}}}}\n"
    "      mapped: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}\n"
    "      branched: {type: object, properties: {a: {type: string}}, anyOf: [{properties: {b: {type: string}}}]}\n"
    "      decided:\n"
    "        type: object\n"
    "        properties: {a: {type: string}}\n"
    "        if: {type: object, required: [a], properties: {a: {const: x}}}\n"
    "        then: {properties: {b: {type: string}}}\n"
)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"else": 1}, "/else"),
        ({"plain": {"z": 1}}, "/plain/z"),
        ({"declared": {"z": 1}}, "/declared/z"),
        ({"nullable": {"z": 1}}, "/nullable/z"),
        ({"untyped": {"z": 1}}, "/untyped/z"),
        ({"listed": [{}, {"z": 1}]}, "/listed/1/z"),
        ({"mapped": {"any": {"z": 1}}}, "/mapped/any/z"),
        ({"branched": {"z": 1}}, "/branched/z"),
        ({"decided": {"a": "y", "b": "1"}}, "/decided/b"),
    ],
)
def test_unknown_fields_are_refused_at_every_level(tmp_path: Path, fields: dict[str, object], pointer: str) -> None:
    known = samples.kinds_from(tmp_path, STRUCTURE)
    found = documents.violations(known, known.by_name["widgets"], {"id": "a", **fields})
    assert [violation.pointer for violation in found] == [pointer]


@pytest.mark.parametrize(
    "fields",
    [
        {"plain": {"a": "1"}},
        {"nullable": None},
        {"nullable": {"a": "1"}},
        {"mapped": {"anything": {"a": "1"}}},
        {"branched": {"a": "1", "b": "2"}},
        {"decided": {"a": "x", "b": "1"}},
        {"decided": {"a": "y"}},
    ],
)
def test_declared_fields_are_taken_at_every_level(tmp_path: Path, fields: dict[str, object]) -> None:
    known = samples.kinds_from(tmp_path, STRUCTURE)
    assert documents.violations(known, known.by_name["widgets"], {"id": "a", **fields}) == []
