"""A plan is what then happens: to the answers, to the counts of guards, and to nobody else."""

from __future__ import annotations

import collections
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import drafts, effects, errors, guards, plans
from flux_resourceset.fleet import Fleet
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Outcome
from property.test_fleet_coherence import KNOWN, Operation, attempted, begun, operations, perform
from unit import samples

histories = st.lists(st.lists(operations, min_size=1, max_size=3), max_size=6)
transactions = st.lists(operations, min_size=1, max_size=5)

Answers = dict[tuple[str, str], dict[tuple[str, str], dict[str, Any]]]  # of a cluster's id and name: inputs by view and id


def answers(fleet: Fleet) -> Answers:
    """What Flux would get, decoded, from the bytes that it would get."""
    found: Answers = {}
    for dns, id in fleet.cluster_ids.items():
        of_cluster = found[id, dns] = {}
        for endpoint in KNOWN.by_endpoint:
            for item in samples.decoded(fleet.answer(f"{dns}/{endpoint}".encode())):
                content = {name: value for name, value in item.items() if name not in ("digest", "cluster")}
                of_cluster[endpoint, item["id"]] = content
    return found


def expected(before: Answers, after: Answers) -> collections.Counter[tuple[str, str, str, str]]:
    """The changes between two sets of answers, by cluster, view, input and what becomes of it; told by plain comparison."""
    found: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
    for id, dns in before.keys() | after.keys():
        old, new = before.get((id, dns), {}), after.get((id, dns), {})
        for view, name in old.keys() | new.keys():
            was, will = old.get((view, name)), new.get((view, name))
            if was == will:
                continue
            if was is None or (will is not None and will.get("enabled", True) and not was.get("enabled", True)):
                change: str = effects.ADDED
            elif will is None or (was.get("enabled", True) and not will.get("enabled", True)):
                change = effects.REMOVED
            else:
                change = effects.CHANGED
            found[id, view, name, change] += 1
    return found


def told(effect: effects.Effect) -> collections.Counter[tuple[str, str, str, str]]:
    return collections.Counter(
        (cluster.id, item.view, item.input, item.change) for cluster in effect.clusters for item in cluster.changes
    )


def planned(ledger: Ledger, transaction: list[Operation]) -> Outcome[None] | None:
    """The dry run of a transaction without what would be refused; None if it is refused as a whole."""

    def work(draft: drafts.Draft) -> None:
        for operation in transaction:
            try:
                perform(draft, operation)
            except errors.Refusal:
                continue

    try:
        return ledger.rehearse_now(work, samples.ORIGIN)
    except errors.Refusal:
        return None


@given(histories, transactions)
def test_the_plan_is_what_then_changes_in_the_answers(history: list[list[Operation]], transaction: list[Operation]) -> None:
    ledger = begun()
    for each in history:
        attempted(ledger, each)
    before, outcome = answers(ledger.fleet), planned(ledger, transaction)
    attempted(ledger, transaction)
    wanted = expected(before, answers(ledger.fleet))
    assert (told(outcome.effect) if outcome else collections.Counter()) == wanted


@given(histories, transactions)
def test_summary_groups_and_guards_count_the_same(history: list[list[Operation]], transaction: list[Operation]) -> None:
    ledger = begun()
    for each in history:
        attempted(ledger, each)
    outcome = planned(ledger, transaction)
    if outcome is None:
        return
    groups = list(plans.described(plans.grouped(outcome.effect), full=True))
    summary = plans.summary(outcome.entry, outcome.effect)
    assert summary["clusters"] == sum(group["count"] for group in groups)
    for change in (effects.ADDED, effects.REMOVED, effects.CHANGED):
        of_groups = (group["count"] * sum(item["change"] == change for item in group["changes"]) for group in groups)
        assert summary[change] == sum(of_groups)
    assert outcome.guards.removals.inputs == summary["removed"]
    assert outcome.guards.spread.clusters == summary["clusters"]
    assert [sum(group["environments"].values()) for group in groups] == [group["count"] for group in groups]
    shown = [samples.canonical(group["changes"]) for group in groups]
    assert len(set(shown)) == len(shown), "two groups look the same"


@given(histories, transactions)
def test_equal_plans_have_equal_ids_and_others_have_others(history: list[list[Operation]], transaction: list[Operation]) -> None:
    ledger = begun()
    for each in history:
        attempted(ledger, each)
    first = planned(ledger, transaction)
    samples.create(ledger, "rolebindings", {"id": "elsewhere", "role": "view", "subjects": [{"kind": "Group", "name": "g"}]})
    second = planned(ledger, transaction)
    assert (first is None) == (second is None)
    if first is None or second is None:
        return
    assert plans.identity(first.entry, first.effect) == plans.identity(second.entry, second.effect)
    assert second.base_revision == first.base_revision + 1
    other = planned(ledger, [("define", "namespaces", "c", "red", []), ("decommission", "c1"), ("decommission", "n-user")])
    assert other is not None
    if samples.canonical(other.entry.changes if other.entry else ()) != samples.canonical(
        second.entry.changes if second.entry else ()
    ):
        assert plans.identity(other.entry, other.effect) != plans.identity(second.entry, second.effect)


@given(histories, transactions, st.integers(0, 3), st.sets(st.sampled_from(["dev", "prod"])))
def test_a_guard_lets_pass_exactly_what_was_confirmed(
    history: list[list[Operation]], transaction: list[Operation], limit: int, protected: set[str]
) -> None:
    ledger = begun()
    ledger.limits = guards.Limits(removal_clusters=limit, clusters=limit, protected=frozenset(protected))
    for each in history:
        attempted(ledger, each)
    outcome = planned(ledger, transaction)
    if outcome is None:
        return
    removals, spread = outcome.guards.removals, outcome.guards.spread
    losing = {cluster.id for cluster in outcome.effect.clusters if cluster.count(effects.REMOVED)}
    assert removals.tripped == bool(0 < limit < len(losing) or (losing and "dev" in protected))
    assert spread.tripped == (0 < limit < len(outcome.effect.clusters))
    for delta in (-1, 0, 1):
        consent = guards.Consent(removals=removals.inputs + delta, clusters=spread.clusters + delta)
        passes = delta == 0 or not (removals.tripped or spread.tripped)
        try:
            outcome.guards.check(consent)
            assert passes
        except errors.ConfirmationRequired as refusal:
            assert not passes
            numbers = (refusal.extra["confirm"].get(guards.CONFIRM_REMOVALS), refusal.extra["removals"])
            assert numbers == (str(removals.inputs) if removals.tripped else None, removals.inputs)
