"""Going back leads to what was, and takes nothing of others along."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import differences, errors, reverts
from flux_resourceset.changes import CLUSTERS, Document
from flux_resourceset.history import Past
from flux_resourceset.ledger import Ledger
from property.pasts import BACKENDS, Step, attempt, bodies, histories, lived, revisions, stored_in
from property.test_fleet_coherence import KNOWN
from unit import samples


def undo(ledger: Ledger, revision: int, force: bool = False) -> bool:
    store = ledger.follower.store
    (entry,) = store.entries(revision - 1, revision)
    return attempt(ledger, reverts.Undo(store.epoch(), entry, force, Past(KNOWN, store).last_changed).work)


def now(ledger: Ledger) -> dict[str, dict[str, Document]]:
    return bodies(ledger.fleet.documents)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
@given(steps=histories)
def test_undoing_the_newest_change_leads_to_the_state_before_it_and_twice_to_the_one_after(
    backend: str, steps: list[Step]
) -> None:
    with stored_in(backend) as store:
        ledger, seen = lived(store, steps)
        newest = ledger.fleet.revision
        if not undo(ledger, newest):
            return  # a rule is in the way: it took a definition by force, or what it deleted is needed by then
        assert now(ledger) == seen[-2].documents
        undone = samples.history(ledger)[-1]
        if ledger.fleet.revision == newest:
            return  # it had brought names only
        assert (undone.revision, undone.reverts, undone.forced) == (newest + 1, newest, False)
        if undo(ledger, newest + 1):
            assert now(ledger) == seen[-1].documents


@given(steps=histories, revision=revisions, force=st.booleans())
def test_undoing_any_change_takes_back_what_nobody_touched_since_and_nothing_else(
    steps: list[Step], revision: int, force: bool
) -> None:
    with stored_in("memory") as store:
        ledger, seen = lived(store, steps)
        newest, before = ledger.fleet.revision, now(ledger)
        revision = max(1, min(revision, newest))
        (entry,) = store.entries(revision - 1, revision)
        if not undo(ledger, revision, force):
            assert now(ledger) == before
            return
        after, since = now(ledger), set(store.touched(revision, newest))
        changed = {(change.kind, change.id): change for change in entry.changes}
        for kind, of_kind in {**before, **after}.items():
            for id in {*of_kind, *before[kind], *after[kind]}:
                if (kind, id) not in changed:
                    assert after[kind].get(id) == before[kind].get(id)
        for (kind, id), change in changed.items():
            if (kind, id) not in since:
                assert after[kind].get(id) == change.before
            elif not force:
                assert_merged(kind, change.before, change.after, before[kind].get(id), after[kind].get(id))
        assert seen[revision - 1].documents.keys() == after.keys()


def assert_merged(kind: str, old: Document | None, new: Document | None, today: Document | None, result: Document | None) -> None:
    """What the change did not touch is as it was before the revert, also where the document was touched since."""
    if old is None or new is None or today is None or result is None:
        return
    for name in {*today, *result}:
        if differences.same(old.get(name), new.get(name)):
            assert differences.same(today.get(name), result.get(name)), (kind, name)


@given(steps=histories, to=revisions)
def test_a_fleet_that_goes_back_is_as_it_was(steps: list[Step], to: int) -> None:
    with stored_in("memory") as store:
        ledger, seen = lived(store, steps)
        to = min(to, len(seen) - 1)
        before = now(ledger)
        if attempt(ledger, reverts.going_back(store.epoch(), seen[to].documents, reverts.Scope())):
            assert now(ledger) == seen[to].documents
            for (cluster, view), was in seen[to].answers.items():
                dns = seen[to].documents[CLUSTERS][cluster]["cluster_dns"]
                if isinstance(was, bytes):
                    assert ledger.fleet.answer(f"{dns}/{view}".encode()) == was
        else:
            assert now(ledger) == before


@given(steps=histories, environment=st.sampled_from(["dev", "qa"]), to=revisions)
def test_going_back_within_a_scope_leaves_everything_else(steps: list[Step], environment: str, to: int) -> None:
    with stored_in("memory") as store:
        ledger, seen = lived(store, steps)
        to = min(to, len(seen) - 1)
        before, then = now(ledger), seen[to].documents
        scope = reverts.Scope(environment=environment)
        if not attempt(ledger, reverts.going_back(store.epoch(), then, scope)):
            return
        after = now(ledger)
        assert {kind: found for kind, found in after.items() if kind != CLUSTERS} == {
            kind: found for kind, found in before.items() if kind != CLUSTERS
        }
        for id in {*before[CLUSTERS], *then[CLUSTERS]}:
            sides = [side for side in (before[CLUSTERS].get(id), then[CLUSTERS].get(id)) if side]
            meant = any(side["environment"] == environment for side in sides)
            assert after[CLUSTERS].get(id) == (then if meant else before)[CLUSTERS].get(id)


def test_a_log_that_was_replaced_meanwhile_is_not_gone_back_in() -> None:
    ledger = samples.ledger_of(KNOWN)
    samples.create(ledger, "namespaces", samples.namespace("n"))
    (entry,) = samples.history(ledger)
    past = Past(KNOWN, ledger.follower.store)
    samples.refused(errors.Doubt, ledger, reverts.Undo("another", entry, False, past.last_changed).work)
    samples.refused(errors.Doubt, ledger, reverts.going_back("another", {}, reverts.Scope()))
