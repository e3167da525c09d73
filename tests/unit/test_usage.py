"""What runs where: rows, their order, and that their values are those of the merge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flux_resourceset import documents, merge
from flux_resourceset.changes import Document
from flux_resourceset.kinds import kind_files
from flux_resourceset.usage import FIXED, Row, Usage
from unit import samples

KNOWN = kind_files.load(samples.KINDS_DIR)
GOLDEN = sorted((samples.HERE / "golden").glob("*.json"))


def rows(kind: str, clusters: list[Document], definitions: list[Document]) -> list[Row]:
    known = KNOWN.referenced_by_name[kind]
    completed = [documents.completed(KNOWN.clusters, cluster) for cluster in clusters]
    usage = Usage(known, completed, {each["id"]: documents.completed(known, each) for each in definitions})
    found = list(usage.rows())
    assert len(usage) == len(found)
    return found


def test_a_row_tells_the_values_at_work_and_what_the_cluster_says_itself() -> None:
    references = [{"id": "b", "enabled": False}, {"id": "a", "oci_tag": "9", "component_path": None}]
    cluster = samples.cluster(platform_components=references, patches={"a": {"x": "1", "y.z": "2"}})
    definitions = [samples.component("a", component_path="p"), samples.component("b")]
    assert rows("platform_components", [cluster], definitions) == [
        {
            "id": "a", "cluster": "c1", "environment": "dev", "oci_tag": "9", "component_path": "p", "enabled": True,
            "overridden": ["oci_tag"], "patches": 2,
        },
        {
            "id": "b", "cluster": "c1", "environment": "dev", "oci_tag": "1.0.0", "component_path": "b", "enabled": False,
            "overridden": [], "patches": 0,
        },
    ]  # fmt: skip


def test_a_kind_without_overrides_and_patches_has_plain_rows() -> None:
    cluster = samples.cluster(namespaces=[{"id": "n"}])
    row = {"id": "n", "cluster": "c1", "environment": "dev", "enabled": True, "overridden": [], "patches": 0}
    assert rows("namespaces", [cluster], [samples.namespace("n"), samples.namespace("unused")]) == [row]


def test_rows_come_by_id_and_then_in_the_order_of_the_clusters_and_any_window_of_them() -> None:
    clusters = [samples.cluster(f"c{n}", namespaces=[{"id": id} for id in ("z", "gone", "a")]) for n in range(3)]
    found = rows("namespaces", clusters, [samples.namespace("z"), samples.namespace("a")])
    assert [(row["id"], row["cluster"]) for row in found] == [(id, f"c{n}") for id in "az" for n in range(3)]
    usage = Usage(KNOWN.referenced_by_name["namespaces"], clusters, {"z": {"id": "z"}})
    assert [row["cluster"] for row in usage.rows(1, 2)] == ["c1"]
    assert list(usage.rows(3)) == []


def test_what_every_row_has_wins_over_an_override_of_the_same_name(tmp_path: Path) -> None:
    text = samples.PLAIN + (
        "      environment: {type: string}\n      enabled: {type: boolean}\nmetadata:\n  x-flux:\n"
        "    reference: {environment: {type: string}, enabled: {type: boolean}}\n    overrides: [environment, enabled]\n"
    )
    known = samples.kinds_from(tmp_path, text)
    cluster = documents.completed(known.clusters, samples.cluster(widgets=[{"id": "w", "environment": "moon"}]))
    (row,) = Usage(known.referenced_by_name["widgets"], [cluster], {"w": {"id": "w", "enabled": False}}).rows()
    assert row == {
        "id": "w", "cluster": "c1", "environment": "dev", "enabled": False, "overridden": ["environment"], "patches": 0
    }  # fmt: skip


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_values_are_those_that_flux_gets(path: Path) -> None:
    pair = json.loads(path.read_text())
    kind = KNOWN.referenced_by_name[pair["kind"]]
    cluster = documents.completed(KNOWN.clusters, pair["cluster"])
    definitions = {each["id"]: documents.completed(kind, each) for each in pair["definitions"]}
    inputs = {each["id"]: each for each in merge.inputs(kind, cluster, definitions)}
    for row in Usage(kind, [cluster], definitions).rows():
        given = inputs.pop(row["id"])
        flat = given | {name: value for group in kind.nest for name, value in given.get(group, {}).items()}
        assert [row[name] for name in kind.overrides] == [flat.get(name) for name in kind.overrides]
        assert row["enabled"] == flat.get("enabled", True)
        assert row["patches"] == len(flat.get("patches", ()))
        assert {*row} == {*FIXED, *kind.overrides}
    assert inputs == {}
