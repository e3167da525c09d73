"""Going back by the means that a kind has, and where kinds are not what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from flux_resourceset import errors, reverts
from flux_resourceset.changes import CLUSTERS, Document, Entry
from flux_resourceset.drafts import Draft
from flux_resourceset.history import Past
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.reverts import Scope
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import PLAIN

WIDGETS = PLAIN + "      color: {type: string, default: red}\n"


def undo(ledger: Ledger, entry: Entry, force: bool = False) -> reverts.Undo:
    store = ledger.follower.store
    return reverts.Undo(store.epoch(), entry, force, Past(ledger.kinds, store).last_changed)


def test_a_revert_can_do_what_the_routes_of_a_kind_can_and_no_more(tmp_path: Path) -> None:
    fixed = WIDGETS.replace("schema:", "methods: {resource: [get, post], instance: [get, delete]}\nschema:", 1)
    store = MemoryStore()
    free = samples.ledger_of(samples.kinds_from(tmp_path, WIDGETS), store)
    samples.create(free, "widgets", {"id": "w"})
    samples.write(free, lambda draft: draft.merge(free.kinds.by_name["widgets"], "w", {"color": "blue"}))
    bound = samples.ledger_of(samples.kinds_from(tmp_path, fixed), store)
    created, updated = samples.history(bound)
    refused = samples.refused(errors.Invalid, bound, undo(bound, updated).work)
    assert "do not take replace" in refused.detail
    samples.write(bound, undo(bound, created, force=True).work)
    assert bound.fleet.get("widgets", "w") is None
    (deleted,) = samples.history(bound)[2:]
    samples.write(bound, undo(bound, deleted).work)
    assert samples.stored(bound, "widgets", "w")["color"] == "blue"


def test_a_change_of_a_kind_that_is_not_here_cannot_be_undone(tmp_path: Path) -> None:
    store = MemoryStore()
    samples.create(samples.ledger_of(samples.kinds_from(tmp_path, WIDGETS), store), "widgets", {"id": "w"})
    without = samples.ledger_of(kind_files.load(), store)
    (entry,) = samples.history(without)
    refused = samples.refused(errors.Conflict, without, undo(without, entry).work)
    assert "widgets" in refused.detail


@pytest.fixture
def known_then(tmp_path: Path) -> tuple[Ledger, Document]:
    """A fleet without a kind that its cluster refers to, and the cluster as it was at revision 2."""
    store = MemoryStore()
    before = samples.ledger_of(samples.kinds_from(tmp_path, WIDGETS), store)
    samples.create(before, "widgets", {"id": "w"})
    samples.create(before, CLUSTERS, samples.cluster())
    then = samples.stored(before, CLUSTERS, "c1")
    clusters = before.kinds.clusters
    samples.write(before, lambda draft: draft.merge(clusters, "c1", {"widgets": [{"id": "w"}], "environment": "qa"}))
    return samples.ledger_of(kind_files.load(), store), then


def test_what_a_cluster_says_of_kinds_that_are_not_here_stays(known_then: tuple[Ledger, Document]) -> None:
    ledger, then = known_then
    epoch = ledger.follower.store.epoch()
    samples.write(ledger, reverts.going_back(epoch, {CLUSTERS: {"c1": then}}, Scope(kind=CLUSTERS)))
    assert samples.stored(ledger, CLUSTERS, "c1") == {**then, "widgets": [{"id": "w"}], "environment": "dev"}


def test_what_a_kind_gained_since_is_no_conflict(tmp_path: Path) -> None:
    store = MemoryStore()
    early = samples.ledger_of(samples.kinds_from(tmp_path, PLAIN), store)
    samples.create(early, "widgets", {"id": "w"})
    (created,) = samples.history(early)
    late = samples.ledger_of(samples.kinds_from(tmp_path, WIDGETS), store)
    samples.create(late, "widgets", {"id": "other"})
    samples.write(late, undo(late, created).work)
    assert set(late.fleet.documents["widgets"]) == {"other"}


def test_many_conflicts_are_counted_and_the_first_are_told() -> None:
    ledger = samples.ledger_of(kind_files.load())
    created = samples.create(ledger, "namespaces", *(samples.namespace(f"n{number:03}") for number in range(120)))

    def label(draft: Draft) -> None:
        for number in range(120):
            draft.merge(ledger.kinds.by_name["namespaces"], f"n{number:03}", {"labels": {"a": "b"}})

    samples.write(ledger, label)
    assert created is not None
    refused = samples.refused(errors.Conflict, ledger, undo(ledger, created).work)
    assert refused.extra["conflicts_total"] == 120
    assert len(refused.extra["conflicts"]) == reverts.SHOWN_CONFLICTS
    assert refused.extra["conflicts"][0] == {"kind": "namespaces", "id": "n000", "path": "/labels/a", "revision": 2}
