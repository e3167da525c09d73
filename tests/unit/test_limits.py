"""Writes that would make an answer which Flux refuses or cuts are refused themselves."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import changes, documents, drafts, errors, flux_limits
from flux_resourceset.changes import Document, Stored
from flux_resourceset.kinds import kind_files, model
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import cluster, component, create, pointers, refused, rolebinding, write

KNOWN = kind_files.load()
ROLEBINDINGS = KNOWN.referenced_by_name["rolebindings"]


def loaded(known: model.Kinds, **documents: list[Document]) -> Ledger:
    """A ledger on a store that holds these documents unchecked, as one first entry."""
    store = MemoryStore()
    made = tuple(changes.Change(kind, doc["id"], "create", None, doc) for kind, found in documents.items() for doc in found)
    entry = changes.Entry(1, "2026-01-01T00:00:00.000000Z", "t", None, None, None, False, made)
    store.begin().commit(entry)
    return samples.ledger_of(known, store)


def sized(ledger: Ledger, size: int) -> Document:
    """A role binding with which the answer of c1 has exactly this size."""

    def with_(length: int) -> Document:
        return rolebinding("a", role="y" * length, subjects=[])

    around = samples.fleet_of(KNOWN, rolebindings=[with_(0)], clusters=[ledger.fleet.documents["clusters"]["c1"].body])
    return with_(size - len(around.answer(b"c1.example.com/rolebindings")))


@pytest.mark.long
def test_a_document_as_long_as_a_request_is_refused_without_being_written_down() -> None:
    """Which would take long, and in C, so that nobody else could run meanwhile."""
    namespaces = KNOWN.by_name["namespaces"]
    long: list[Any] = [{str(number): "x" * 1_000_000 for number in range(30)}, {"a": [[] for _ in range(1_000_000)]}]
    for labels in long:
        tracemalloc.start()
        found = documents.violations(KNOWN, namespaces, {"id": "a", "labels": labels})
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert ["no answer to Flux has room" in violation.message for violation in found] == [True]
        assert most < 15_000_000


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "rolebindings", rolebinding("a"))
    create(made, "clusters", cluster("c1", rolebindings=[{"id": "a"}]))
    return made


def test_the_largest_answer_is_one_byte_below_900_kib(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.replace(ROLEBINDINGS, "a", sized(ledger, 921_599)))
    assert len(ledger.fleet.answer(b"c1.example.com/rolebindings")) == 921_599


def test_a_definition_that_makes_an_answer_too_large_is_refused(ledger: Ledger) -> None:
    refusal = refused(errors.AnswerTooLarge, ledger, lambda draft: draft.replace(ROLEBINDINGS, "a", sized(ledger, 921_600)))
    assert refusal.status == 422
    assert 'cluster "c1"' in refusal.detail
    assert "921600 bytes" in refusal.detail


def test_a_definition_that_nobody_uses_may_be_as_large_as_it_likes(ledger: Ledger) -> None:
    assert create(ledger, "rolebindings", rolebinding("big", role="y" * 1_000_000)) is not None


def test_a_cluster_that_adds_too_much_is_refused_at_its_list(ledger: Ledger) -> None:
    create(ledger, "rolebindings", rolebinding("big", role="y" * 1_000_000))
    patch = {"rolebindings": [{"id": "a"}, {"id": "big"}]}
    refusal = refused(errors.AnswerTooLarge, ledger, lambda draft: draft.merge(KNOWN.clusters, "c1", patch))
    assert pointers(refusal) == ["/rolebindings"]


def test_an_answer_that_is_too_large_can_be_made_smaller(ledger: Ledger) -> None:
    big = rolebinding("a", role="y" * 2_000_000, subjects=[])
    whole = loaded(KNOWN, rolebindings=[big], clusters=[ledger.fleet.documents["clusters"]["c1"].body])
    with pytest.raises(errors.Unavailable):
        whole.fleet.answer(b"c1.example.com/rolebindings")
    write(whole, lambda draft: draft.unassign("c1", ROLEBINDINGS, "a"))
    assert whole.fleet.answer(b"c1.example.com/rolebindings") == b'{"inputs":[]}'


def test_patches_count_too(ledger: Ledger) -> None:
    create(ledger, "platform_components", component("app"))
    write(ledger, lambda draft: draft.assign("c1", KNOWN.referenced_by_name["platform_components"], "app", {}))
    refused(errors.AnswerTooLarge, ledger, lambda draft: draft.set_patches("c1", "app", {"x": "y" * 921_600}))


def test_characters_that_grow_when_they_are_encoded_are_counted_as_they_are_sent(ledger: Ledger) -> None:
    big = rolebinding("a", role='"' * 461_000)  # a quote takes two bytes
    assert "bytes" in refused(errors.AnswerTooLarge, ledger, lambda draft: draft.replace(ROLEBINDINGS, "a", big)).detail


def test_eighty_percent_is_a_warning(ledger: Ledger) -> None:
    for size, warned in ((700_000, False), (737_279, False), (737_280, True), (760_000, True)):
        draft = drafts.Draft(ledger.fleet)
        draft.replace(ROLEBINDINGS, "a", sized(ledger, size))
        draft.finish()
        assert bool(draft.warnings) is warned


def test_dependencies_are_counted_as_often_as_they_are_answered() -> None:
    ids = [f"component-with-a-long-name-{number:03}" for number in range(180)]
    whole = [
        component(id, type="helm", component_version="latest", cluster_env_enabled=False, depends_on=ids[:position])
        for position, id in enumerate(ids)
    ]
    lists: dict[str, Any] = {"labels": {}, "namespaces": [], "rolebindings": [], "patches": {}}
    references = [{"id": id, "enabled": True} for id in ids]
    ledger = loaded(KNOWN, platform_components=whole, clusters=[cluster("c1", platform_components=[], **lists)])
    patch = {"platform_components": references}
    refused(errors.AnswerTooLarge, ledger, lambda draft: draft.merge(KNOWN.clusters, "c1", patch))


# The number of inputs


def many(known: model.Kinds, count: int) -> Ledger:
    clusters = {"id": "c", "cluster_name": "c", "cluster_dns": "c", "environment": "d"}
    ledger = samples.ledger_of(known)
    create(ledger, "clusters", clusters)
    ledger.fleet.documents["w"] = {f"w{number}": Stored({"id": f"w{number}"}, 1) for number in range(count)}
    return ledger


def test_ten_thousand_inputs_are_the_most(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(samples.PLAIN.replace("widgets", "w"))
    known = kind_files.load(tmp_path, environments=["d"])
    ledger = many(known, 10_001)
    references = [{"id": f"w{number}"} for number in range(10_001)]
    refusal = refused(errors.AnswerTooLarge, ledger, lambda draft: draft.merge(known.clusters, "c", {"w": references}))
    assert "10001 inputs" in refusal.detail
    assert pointers(refusal) == ["/w"]


def test_the_limits_are_named_where_they_are_used() -> None:
    assert (flux_limits.MAX_INPUTS, flux_limits.MAX_BODY_BYTES) == (10_000, 921_600)
