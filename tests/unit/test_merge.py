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


# What is remembered of an input

COMPONENTS = KNOWN.by_name["platform_components"]


def described(*references: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A cluster that refers to components."""
    return documents.completed(KNOWN.clusters, samples.cluster("c1", platform_components=list(references), **fields))


def defined(*found: dict[str, Any]) -> dict[str, Any]:
    return {document["id"]: documents.completed(COMPONENTS, document) for document in found}


def test_what_is_remembered_is_given_up_when_what_it_was_made_of_changes() -> None:
    """Each of these differs from the one before in one thing, and in what it is answered with."""
    web, base = samples.component("web", depends_on=["base"]), samples.component("base")
    plain = defined(web, base)
    cases = [
        (described({"id": "web"}), plain),
        (described({"id": "web"}), defined({**web, "oci_tag": "2.0.0"}, base)),
        (described({"id": "web", "oci_tag": "3.0.0"}), plain),
        (described({"id": "web"}, {"id": "base"}), plain),
        (described({"id": "web"}, {"id": "base", "enabled": False}), plain),
        (described({"id": "web"}, patches={"web": {"a": "1"}}), plain),
        (described({"id": "web"}, patches={"web": {"a": "2"}}), plain),
        (described({"id": "web"}, environment="prod"), plain),
    ]
    parts: merge.Parts = {}
    found = [merge.answer(COMPONENTS, *case, parts) for case in cases * 2]
    assert found == [merge.answer(COMPONENTS, *case) for case in cases] * 2
    assert len(set(found)) == len(cases)


def test_what_clusters_share_is_made_once() -> None:
    parts: merge.Parts = {}
    definitions = defined(samples.component("web"))
    merge.answer(COMPONENTS, described({"id": "web"}), definitions, parts)
    (made,) = parts.values()
    merge.answer(COMPONENTS, described({"id": "web"}, cluster_name="other"), definitions, parts)
    assert [part is made for part in parts.values()] == [True]


def test_what_a_reference_does_not_switch_off_is_waited_for() -> None:
    """Kinds that operators add may have dependencies and nothing to switch."""
    cluster = {**described(), "platform_components": [{"id": "web"}, {"id": "base"}]}
    definitions = defined(samples.component("web", depends_on=["base"]), samples.component("base"))
    assert samples.inputs(COMPONENTS, cluster, definitions)[0]["wait_for"] == ["base"]


def test_two_kinds_with_one_id_are_not_taken_for_each_other() -> None:
    parts: merge.Parts = {}
    cluster = documents.completed(KNOWN.clusters, samples.cluster("c1", namespaces=[{"id": "x"}], rolebindings=[{"id": "x"}]))
    definition = {"id": "x"}
    for name in ("namespaces", "rolebindings"):
        merge.answer(KNOWN.by_name[name], cluster, {"x": definition}, parts)
    assert {key[0] for key in parts} == {"namespaces", "rolebindings"}


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MAX_PARTS", 3)
    parts: merge.Parts = {}
    for number in range(10):
        id = f"c{number}"
        found = merge.answer(COMPONENTS, described({"id": id}), defined(samples.component(id)), parts)
        assert found == merge.answer(COMPONENTS, described({"id": id}), defined(samples.component(id)))
        assert len(parts) <= 3
    assert parts


def test_the_fleet_list_shows_who_a_cluster_is() -> None:
    found = merge.fleet_input(documents.completed(KNOWN.clusters, samples.cluster("c1", environment="prod")))
    assert {name: found[name] for name in ("id", "cluster_name", "cluster_dns", "environment")} == {
        "id": "c1",
        "cluster_name": "c1",
        "cluster_dns": "c1.example.com",
        "environment": "prod",
    }
