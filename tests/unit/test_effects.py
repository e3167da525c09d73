"""The effect of a change on the answers of all clusters, and what guards make of it."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from flux_resourceset import drafts, effects, errors, guards, imports, plans
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Document
from flux_resourceset.effects import Effect
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Outcome
from unit import samples
from unit.samples import cluster, component, create, namespace
from unit.samples import rehearsed as planned

KNOWN = kind_files.load(samples.KINDS_DIR)
NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.fixture
def ledger() -> Ledger:
    """Four clusters, of which three have something."""
    ledger = samples.ledger_of(KNOWN, clock=lambda: NOW)
    create(ledger, "platform_components", component("app"), component("needed"), component("top", depends_on=["needed"]))
    create(ledger, "namespaces", namespace("a"), namespace("b"))
    both = [{"id": "needed"}, {"id": "top"}]
    create(
        ledger,
        "clusters",
        cluster("one", platform_components=[{"id": "app"}], namespaces=[{"id": "a"}], patches={"app": {"x": 1}}),
        cluster("two", platform_components=[{"id": "app"}], environment="prod", patches={"app": {"x": 2}}),
        cluster("three", platform_components=both, labels={"team": "x"}),
        cluster("empty"),
    )
    return ledger


def merged(kind: str, id: str, patch: Document) -> Any:
    return lambda draft: draft.merge(KNOWN.by_name[kind], id, patch)


def deleted(kind: str, id: str, force: bool = False) -> Any:
    return lambda draft: draft.delete(KNOWN.by_name[kind], id, force)


def told(effect: Effect) -> dict[str, list[tuple[str, str, str]]]:
    return {each.id: [(item.view, item.input, item.change) for item in each.changes] for each in effect.clusters}


APP = ("platform-components", "app", "changed")


def test_a_definition_reaches_those_who_refer_to_it(ledger: Ledger) -> None:
    effect = planned(ledger, merged("platform_components", "app", {"oci_tag": "2"})).effect
    assert told(effect) == {"one": [APP], "two": [APP]}
    assert [item.fields for each in effect.clusters for item in each.changes] == [
        ({"path": "/source/oci_tag", "before": "1.0.0", "after": "2"},)
    ] * 2
    assert effect.clusters[0].changes[0] is effect.clusters[1].changes[0]  # compared once, though their patches differ
    assert effect.clusters[0].content != effect.clusters[1].content


def test_what_nobody_refers_to_has_no_effect(ledger: Ledger) -> None:
    outcome = planned(
        ledger, merged("namespaces", "b", {"labels": {"x": "y"}}), merged("clusters", "empty", {"labels": {"x": "y"}})
    )
    assert outcome.effect == Effect()
    assert plans.summary(outcome.entry, outcome.effect) == {"documents": 2, "clusters": 0, "added": 0, "removed": 0, "changed": 0}


def test_a_cluster_that_comes_or_goes_brings_or_takes_its_inputs(ledger: Ledger) -> None:
    new = cluster("new", namespaces=[{"id": "a"}], environment="qa")
    outcome = planned(ledger, deleted("clusters", "one"), deleted("clusters", "empty"), lambda d: d.create(KNOWN.clusters, new))
    assert told(outcome.effect) == {
        "new": [("namespaces", "a", "added")],
        "one": [("namespaces", "a", "removed"), ("platform-components", "app", "removed")],
    }
    assert [(each.before, each.after, each.environment) for each in outcome.effect.clusters] == [
        (None, "qa", "qa"),
        ("dev", None, "dev"),
    ]


def test_what_others_wait_for_changes_them_when_it_goes(ledger: Ledger) -> None:
    gone = planned(ledger, lambda d: d.unassign("three", KNOWN.referenced_by_name["platform_components"], "needed")).effect
    (three,) = gone.clusters
    assert [(item.input, item.change) for item in three.changes] == [("needed", "removed"), ("top", "changed")]
    assert three.changes[1].fields == ({"path": "/wait_for", "before": ["needed"], "after": []},)
    cleared = merged("platform_components", "top", {"depends_on": []})
    forced = planned(ledger, cleared, deleted("platform_components", "needed", force=True)).effect
    assert [(item.input, item.change) for item in forced.clusters[0].changes] == [("needed", "removed"), ("top", "changed")]


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.5), ("1", 1), (0, False)])
def test_values_that_python_takes_for_equal_differ(ledger: Ledger, before: Any, after: Any) -> None:
    samples.write(ledger, lambda draft: draft.set_patches("one", "app", {"x": before}))
    effect = planned(ledger, lambda draft: draft.set_patches("one", "app", {"x": after})).effect
    assert [item.fields for item in effect.clusters[0].changes] == [({"path": "/patches/x", "before": before, "after": after},)]


def test_the_identity_of_a_plan_covers_contents_that_are_not_shown(ledger: Ledger) -> None:
    def added(tag: str) -> Outcome[None]:
        reference = {"id": "app", "oci_tag": tag}
        return planned(ledger, lambda d: d.create(KNOWN.clusters, cluster("new", platform_components=[reference])))

    one, other = added("1"), added("2")
    assert plans.grouped(one.effect)[0].described(True) == plans.grouped(other.effect)[0].described(True)
    assert plans.identity(one.entry, one.effect) != plans.identity(other.entry, other.effect)
    assert plans.identity(one.entry, one.effect) == plans.identity(added("1").entry, added("1").effect)


def test_the_identity_of_a_plan_counts_what_an_update_throws_away_and_not_what_a_deletion_does(ledger: Ledger) -> None:
    def labelled(labels: Document) -> str:
        outcome = planned(ledger, lambda d: d.replace(KNOWN.by_name["namespaces"], "b", namespace("b", labels=labels)))
        return plans.identity(outcome.entry, outcome.effect)

    def dropped() -> str:
        outcome = planned(ledger, deleted("namespaces", "b"))
        return plans.identity(outcome.entry, outcome.effect)

    first, gone = labelled({"x": "y"}), dropped()
    assert first != labelled({"x": "z"})  # though no cluster gets anything else
    samples.write(ledger, merged("namespaces", "b", {"labels": {"new": "label"}}))
    assert labelled({"x": "y"}) != first
    assert dropped() == gone


def test_a_plan_that_is_another_by_now_is_refused(ledger: Ledger) -> None:
    outcome = planned(ledger, deleted("clusters", "one"))
    plans.check(None, outcome.entry, outcome.effect)
    plans.check(plans.identity(outcome.entry, outcome.effect), outcome.entry, outcome.effect)
    with pytest.raises(errors.PlanChanged) as caught:
        plans.check("0" * 32, outcome.entry, outcome.effect)
    assert caught.value.extra["plan"] == plans.identity(outcome.entry, outcome.effect)
    assert caught.value.extra["summary"]["removed"] == 2


def test_groups_are_shown_up_to_a_bound_the_largest_first(ledger: Ledger) -> None:
    patched = [cluster(f"n{n:03}", platform_components=[{"id": "app"}], patches={"app": {"v": n // 2}}) for n in range(250)]
    create(ledger, "clusters", *patched)
    every = planned(ledger, *(lambda d, n=n: d.merge_patches(f"n{n:03}", "app", {"v": f"{n // 2}"}) for n in range(249)))
    groups = plans.grouped(every.effect)
    assert [len(group.clusters) for group in groups] == [2] * 124 + [1]
    assert [group.clusters[0].id for group in groups[:3]] == ["n000", "n002", "n004"]
    assert len(list(plans.described(groups))) == plans.SHOWN_GROUPS
    assert len(list(plans.described(groups, full=True))) == 125
    (one,) = plans.described(groups, cluster="n247")
    assert (one["count"], one["clusters"]) == (1, ["n247"])


class _Counting(Budget):
    spent = 0.0

    def spend(self, steps: float = 1) -> None:
        self.spent += steps


def test_every_cluster_and_every_comparison_is_paid_for(ledger: Ledger) -> None:
    def spent(*deeds: Any) -> float:
        draft = drafts.Draft(ledger.fleet, _Counting())
        for deed in deeds:
            deed(draft)
        made, budget = draft.changes(), draft.budget
        assert isinstance(budget, _Counting)
        budget.spent = 0
        draft.effect(made)
        return budget.spent

    # two users are looked for and looked at, and what they have in common is compared once
    assert spent(merged("platform_components", "app", {"oci_tag": "2"})) == 2 + 2 + 1
    # all views of a cluster are looked at, and two inputs compared
    assert spent(deleted("clusters", "one")) == len(KNOWN.referenced) + 2


# Guards


def limited(ledger: Ledger, **limits: Any) -> None:
    ledger.limits = guards.Limits(**limits)


def test_the_first_removals_are_named(ledger: Ledger) -> None:
    limited(ledger, removal_clusters=1)
    outcome = planned(ledger, deleted("clusters", "one"), deleted("clusters", "two"))
    assert outcome.guards.removals.first == [
        {"cluster": "one", "view": "namespaces", "input": "a"},
        {"cluster": "one", "view": "platform-components", "input": "app"},
        {"cluster": "two", "view": "platform-components", "input": "app"},
    ]
    assert (outcome.guards.removals.inputs, outcome.guards.removals.clusters, outcome.guards.removals.tripped) == (3, 2, True)
    limited(ledger, removal_clusters=2)
    assert not planned(ledger, deleted("clusters", "one"), deleted("clusters", "two")).guards.removals.tripped


def test_zero_leaves_protected_environments_guarded(ledger: Ledger) -> None:
    limited(ledger, removal_clusters=0, protected=frozenset({"prod"}))
    assert planned(ledger, deleted("clusters", "two")).guards.removals.tripped
    assert not planned(ledger, deleted("clusters", "one"), deleted("clusters", "three")).guards.removals.tripped


@pytest.mark.parametrize(
    ("freeze", "deed", "hit"),
    [
        ({"environment": "dev"}, merged("platform_components", "app", {"oci_tag": "2"}), ["one"]),
        ({"selector": "team=x"}, merged("platform_components", "app", {"oci_tag": "2"}), None),
        ({"environment": "dev", "selector": "team=x"}, merged("clusters", "three", {"labels": {"team": None}}), ["three"]),
        ({"environment": "dev", "selector": "team"}, merged("clusters", "three", {"labels": {"team": "y"}}), None),
        ({"environment": "dev"}, deleted("clusters", "empty"), ["empty"]),
        ({"environment": "dev", "until": "2026-01-31T12:00:00.000001Z"}, deleted("clusters", "empty"), ["empty"]),
        ({"environment": "dev", "until": "2026-01-31T12:00:00Z"}, deleted("clusters", "empty"), None),
        ({"environment": "dev", "until": "2026-01-31T13:00:00+01:00"}, deleted("clusters", "empty"), None),
        ({"environment": "dev"}, merged("clusters", "empty", {"cluster_name": "other"}), None),
    ],
)
def test_who_is_hit_by_a_freeze(ledger: Ledger, freeze: Document, deed: Any, hit: list[str] | None) -> None:
    create(ledger, "freezes", {"id": "f", "reason": "r", **freeze})
    found = planned(ledger, deed).guards.freezes
    assert [each.clusters for each in found] == ([hit] if hit else [])
    if hit:
        with pytest.raises(errors.Frozen):
            planned(ledger, deed).guards.check(guards.NO_CONSENT)
        planned(ledger, deed).guards.check(guards.Consent(freezes=frozenset({"f"})))


def test_a_freeze_goes_before_a_confirmation(ledger: Ledger) -> None:
    create(ledger, "freezes", {"id": "f", "reason": "r", "environment": "prod"})
    limited(ledger, protected=frozenset({"prod"}))
    found = planned(ledger, deleted("clusters", "two")).guards
    with pytest.raises(errors.Frozen):
        found.check(guards.Consent(removals=1))
    with pytest.raises(errors.ConfirmationRequired):
        found.check(guards.Consent(freezes=frozenset({"f"})))
    found.check(guards.Consent(removals=1, freezes=frozenset({"f"})))


# What an import says of it


def test_the_worst_is_shown_first_and_the_rest_is_counted(ledger: Ledger) -> None:
    create(ledger, "clusters", *(cluster(f"c{number:02}") for number in range(30)))
    deeds = [deleted("clusters", f"c{number:02}") for number in range(25)]
    outcome = planned(
        ledger,
        *deeds,
        deleted("clusters", "one"),
        merged("clusters", "two", {"platform_components": [], "patches": {"app": None}}),
    )
    plan = imports.plan(ledger.fleet, outcome, imports.names_after(ledger.fleet, outcome.entry))
    lines = plan.lines()
    assert [line.partition(" (")[0] for line in lines[:2]] == ["is decommissioned: 26", "loses inputs: 1"]
    assert lines[2] == "  c00.example.com is decommissioned"
    assert (len(lines), lines[-1]) == (2 + 20 + 1, "  and 7 more")
    assert str(plan.consequences[-1]) == "two.example.com loses inputs: platform-components 1 lost"
    nothing = planned(ledger)
    assert imports.plan(ledger.fleet, nothing, imports.names_after(ledger.fleet, None)).lines() == [
        "nothing changes for any cluster"
    ]


def test_the_effect_of_changes_of_unknown_kinds_is_none(ledger: Ledger) -> None:
    outcome = planned(ledger, deleted("clusters", "one"))
    assert outcome.entry is not None
    known = effects.of(ledger.fleet, outcome.entry.changes)
    assert known == outcome.effect
    strange = [change.__class__("strange", change.id, change.operation, None, {}) for change in outcome.entry.changes]
    assert effects.of(ledger.fleet, strange) == Effect()
