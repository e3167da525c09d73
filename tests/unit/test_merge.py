"""Golden pairs of the merge: a cluster and definitions in, the inputs that Flux gets out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import documents, kind_files, merge
from unit import samples

GOLDEN = sorted((samples.HERE / "golden").glob("*.json"))
KNOWN = kind_files.load(samples.KINDS_DIR)


def answered(pair: dict[str, Any]) -> list[dict[str, Any]]:
    kind = KNOWN.by_name[pair["kind"]]
    cluster = documents.completed(KNOWN.clusters, pair["cluster"])
    definitions = {document["id"]: documents.completed(kind, document) for document in pair["definitions"]}
    return samples.inputs(kind, cluster, definitions)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_documented_answer_comes_out(path: Path) -> None:
    pair = json.loads(path.read_text())
    found = answered(pair)
    shown = [{name: value for name, value in item.items() if name not in pair["additional"]} for item in found]
    assert shown == pair["expected"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_documents_of_the_golden_pairs_are_valid(path: Path) -> None:
    pair = json.loads(path.read_text())
    kind = KNOWN.by_name[pair["kind"]]
    cluster = documents.completed(KNOWN.clusters, pair["cluster"])
    assert documents.violations(KNOWN, KNOWN.clusters, cluster) == []
    for document in pair["definitions"]:
        assert documents.violations(KNOWN, kind, documents.completed(kind, document)) == []


def test_a_null_in_a_string_is_only_a_word() -> None:
    kind = KNOWN.by_name["namespaces"]
    definition = documents.completed(kind, {"id": "null", "annotations": {"text": 'a "null", null'}})
    cluster = documents.completed(KNOWN.clusters, samples.cluster("c1", namespaces=[{"id": "null"}]))
    (found,) = samples.inputs(kind, cluster, {"null": definition})
    assert found["annotations"] == definition["annotations"]


def test_the_fleet_list_shows_who_a_cluster_is() -> None:
    found = merge.fleet_input(documents.completed(KNOWN.clusters, samples.cluster("c1", environment="prod")))
    assert {name: found[name] for name in ("id", "cluster_name", "cluster_dns", "environment")} == {
        "id": "c1",
        "cluster_name": "c1",
        "cluster_dns": "c1.example.com",
        "environment": "prod",
    }
