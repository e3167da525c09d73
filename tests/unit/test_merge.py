"""Golden pairs of the merge: a cluster and definitions in, the inputs that Flux gets out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import answers, documents, merge
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Referenced
from unit import samples

GOLDEN = sorted((samples.HERE / "golden").glob("*.json"))
KNOWN = kind_files.load(samples.KINDS_DIR)


def answered(pair: dict[str, Any]) -> list[dict[str, Any]]:
    kind = KNOWN.referenced_by_name[pair["kind"]]
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
    kind = KNOWN.referenced_by_name[pair["kind"]]
    cluster = documents.completed(KNOWN.clusters, pair["cluster"])
    assert documents.violations(KNOWN, KNOWN.clusters, cluster) == []
    for document in pair["definitions"]:
        assert documents.violations(KNOWN, kind, documents.completed(kind, document)) == []


def test_a_null_in_a_string_is_only_a_word() -> None:
    kind = KNOWN.referenced_by_name["namespaces"]
    definition = documents.completed(kind, {"id": "null", "annotations": {"text": 'a "null", null'}})
    cluster = documents.completed(KNOWN.clusters, samples.cluster("c1", namespaces=[{"id": "null"}]))
    (found,) = samples.inputs(kind, cluster, {"null": definition})
    assert found["annotations"] == definition["annotations"]


# What is remembered of an input

COMPONENTS = KNOWN.referenced_by_name["platform_components"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the parts that are merged, in order."""
    found: list[str] = []

    def part(kind: Referenced, item: merge.Assignment) -> merge.Input:
        found.append(item.reference["id"])
        return original(kind, item)

    original = merge.part
    monkeypatch.setattr(merge, "part", part)
    return found


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
    encoder = answers.Encoder()
    found = [encoder.answer(COMPONENTS, *case) for case in cases * 2]
    assert found == [answers.Encoder().answer(COMPONENTS, *case) for case in cases] * 2
    assert len(set(found)) == len(cases)


def test_what_clusters_share_is_made_once(made: list[str]) -> None:
    encoder = answers.Encoder()
    definitions = defined(samples.component("web"))
    encoder.answer(COMPONENTS, described({"id": "web"}), definitions)
    encoder.answer(COMPONENTS, described({"id": "web"}, cluster_name="other"), definitions)
    assert made == ["web"]


def test_what_a_reference_does_not_switch_off_is_waited_for() -> None:
    """Kinds that operators add may have dependencies and nothing to switch."""
    cluster = {**described(), "platform_components": [{"id": "web"}, {"id": "base"}]}
    definitions = defined(samples.component("web", depends_on=["base"]), samples.component("base"))
    assert samples.inputs(COMPONENTS, cluster, definitions)[0]["wait_for"] == ["base"]


def test_two_kinds_with_one_id_are_not_taken_for_each_other() -> None:
    encoder = answers.Encoder()
    cluster = documents.completed(KNOWN.clusters, samples.cluster("c1", namespaces=[{"id": "x"}], rolebindings=[{"id": "x"}]))
    for name in ("namespaces", "rolebindings"):
        kind = KNOWN.referenced_by_name[name]
        definitions = {"x": {"id": "x", "of": name}}
        assert encoder.answer(kind, cluster, definitions) == answers.Encoder().answer(kind, cluster, definitions)


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch, made: list[str]) -> None:
    monkeypatch.setattr(answers, "MAX_PARTS", 3)
    monkeypatch.setattr(answers, "MAX_INPUTS_OF_ROWS", 3)
    encoder = answers.Encoder()
    definitions = {f"c{number}": samples.component(f"c{number}") for number in range(4)}

    def merged(id: str) -> bool:
        """Whether the part had to be made, and was not remembered."""
        made.clear()
        found = encoder.answer(COMPONENTS, described({"id": id}), definitions)
        anew = bool(made)
        assert found == answers.Encoder().answer(COMPONENTS, described({"id": id}), definitions)
        return anew

    assert [merged(id) for id in ("c0", "c1", "c2", "c0", "c1", "c2")] == [True] * 3 + [False] * 3
    assert [merged(id) for id in ("c3", "c3", "c0")] == [True, False, True]  # the fourth one makes room for itself


def test_the_fleet_list_shows_who_a_cluster_is() -> None:
    found = merge.fleet_input(documents.completed(KNOWN.clusters, samples.cluster("c1", environment="prod")))
    assert {name: found[name] for name in ("id", "cluster_name", "cluster_dns", "environment")} == {
        "id": "c1",
        "cluster_name": "c1",
        "cluster_dns": "c1.example.com",
        "environment": "prod",
    }


def test_those_that_are_asked_for_are_as_they_are_among_all() -> None:
    kind = KNOWN.referenced_by_name["platform_components"]
    cluster = described({"id": "base"}, {"id": "top"}, {"id": "other"})
    definitions = defined(*(samples.component(id, depends_on=["base"] if id == "top" else []) for id in ("base", "top", "other")))
    every = list(merge.assignments(kind, cluster, definitions))
    assert [item.reference["id"] for item in every] == ["base", "top", "other"]
    assert list(merge.assignments(kind, cluster, definitions, only={"top"})) == every[1:2]
    assert every[1].wait_for == ("base",)
