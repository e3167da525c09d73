"""Apply and prune on a ledger: what is merged, refused, recorded and told."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flux_resourceset import applications, budgets, documents, drafts, errors, operations
from flux_resourceset.changes import Entry, Origin
from flux_resourceset.history import Past
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, namespace, pointers, stored

KNOWN = kind_files.load()


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "platform_components", component("app"), component("db"))
    return made


def apply(id: str, document: dict[str, Any], kind: str = "clusters", manager: str = "ci", **more: Any) -> dict[str, Any]:
    return {"op": "apply", "kind": kind, "id": id, "manager": manager, "document": document, **more}


def prune(*keep: str, kind: str = "clusters", manager: str = "ci", **more: Any) -> dict[str, Any]:
    return {"op": "prune", "kind": kind, "manager": manager, "keep": list(keep), **more}


def batch_of(*given: Any) -> operations.Batch:
    return operations.Batch(operations.parsed(KNOWN, {"operations": list(given)}, budgets.Budget()))


def carry_out(ledger: Ledger, *given: Any, actor: str = "tester") -> tuple[list[operations.Result], Entry | None]:
    batch = batch_of(*given)
    outcome = ledger.write_now(batch.work, Origin(actor=actor))
    return list(batch.results(outcome.entry, partial(past(ledger).last_set, until=outcome.base_revision))), outcome.entry


def past(ledger: Ledger) -> Past:
    return Past(KNOWN, ledger.follower.store)


def refused(ledger: Ledger, *given: Any) -> errors.Refusal:
    before, records = ledger.fleet.revision, applied(ledger, "c1")
    batch = batch_of(*given)
    for run in (ledger.rehearse_now, ledger.write_now):
        batch = batch_of(*given)
        with pytest.raises(errors.Refusal) as caught:
            run(batch.work, samples.ORIGIN)
    assert (ledger.fleet.revision, applied(ledger, "c1")) == (before, records)
    if batch.conflicts:
        return applications.refusal(batch.conflicts, batch.buried, partial(past(ledger).last_set, until=batch.base_revision))
    return caught.value


def patch(ledger: Ledger, id: str, document: dict[str, Any], kind: str = "clusters", actor: str = "joe") -> None:
    carry_out(ledger, {"op": "patch", "kind": kind, "id": id, "document": document}, actor=actor)


def applied(ledger: Ledger, id: str, kind: str = "clusters") -> dict[str, Any]:
    return ledger.follower.store.applied([(kind, id)]).get((kind, id), {})


class Counting(budgets.Budget):
    spent: float = 0

    def spend(self, steps: float = 1) -> None:
        self.spent += steps


def spent(ledger: Ledger, *given: Any) -> float:
    """The steps that operations take."""
    budget = Counting()
    batch_of(*given).work(drafts.Draft(ledger.fleet.copied(), budget, stored=ledger.follower.store))
    return budget.spent


# What is merged


def test_what_is_not_there_is_created_and_remembered_as_it_was_sent(ledger: Ledger) -> None:
    ((result,), entry) = carry_out(ledger, apply("c1", cluster("c1")))
    assert entry is not None
    assert (result.op, result.change, result.kept) == ("apply", "create", [])
    assert stored(ledger, "clusters", "c1")["labels"] == {}
    assert applied(ledger, "c1") == {"ci": cluster("c1")}


def test_applying_the_same_again_changes_and_writes_nothing(ledger: Ledger) -> None:
    carry_out(ledger, apply("c1", cluster("c1")))
    ((result,), entry) = carry_out(ledger, apply("c1", cluster("c1")))
    assert (entry, result.change, result.kept) == (None, "unchanged", [])


def test_what_others_changed_stays_and_is_told_with_who_did(ledger: Ledger) -> None:
    mine = cluster("c1", node_count=3, labels={"ring": "0"}, platform_components=[{"id": "app", "oci_tag": "1.0.0"}])
    carry_out(ledger, apply("c1", mine))
    patch(ledger, "c1", {"node_count": 5})
    carry_out(
        ledger, {"op": "assign", "kind": "platform_components", "id": "app", "clusters": ["c1"], "document": {"oci_tag": "2.0.0"}}
    )
    ((result,), entry) = carry_out(ledger, apply("c1", {**mine, "labels": {"ring": "1"}}))
    assert entry is not None
    after = stored(ledger, "clusters", "c1")
    assert (after["node_count"], after["labels"], after["platform_components"][0]["oci_tag"]) == (5, {"ring": "1"}, "2.0.0")
    assert result.kept == [
        {"path": "/node_count", "actor": "joe", "revision": 3},
        {"path": "/platform_components/app/oci_tag", "actor": "tester", "revision": 4},
    ]
    ((result,), entry) = carry_out(ledger, apply("c1", {**mine, "labels": {"ring": "1"}}))
    assert (entry, len(result.kept or [])) == (None, 2)


def test_a_partial_document_is_enough_where_the_document_is(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c1"))
    carry_out(ledger, apply("c1", {"labels": {"a": "1"}}))
    carry_out(ledger, apply("c1", {"labels": {"b": "2"}}, manager="other"))
    assert stored(ledger, "clusters", "c1")["labels"] == {"a": "1", "b": "2"}
    carry_out(ledger, apply("c1", {}))
    assert stored(ledger, "clusters", "c1")["labels"] == {"b": "2"}
    assert applied(ledger, "c1") == {"ci": {}, "other": {"labels": {"b": "2"}}}


def test_what_is_no_longer_named_goes_back_to_its_default(ledger: Ledger) -> None:
    whole = component("x", depends_on=["app"], component_version="1.2.3")
    carry_out(ledger, apply("x", whole, "platform_components"))
    carry_out(ledger, apply("x", component("x"), "platform_components"))
    after = stored(ledger, "platform_components", "x")
    assert (after["depends_on"], after["component_version"]) == ([], "latest")


def test_dropping_a_required_field_is_refused(ledger: Ledger) -> None:
    carry_out(ledger, apply("x", component("x"), "platform_components"))
    without = {name: value for name, value in component("x").items() if name != "oci_tag"}
    refusal = refused(ledger, apply("x", without, "platform_components"))
    assert (refusal.status, pointers(refusal), refusal.extra["index"]) == (422, ["/oci_tag"], 0)


def test_a_reference_goes_with_its_patches(ledger: Ledger) -> None:
    mine = cluster("c1", platform_components=[{"id": "app"}, {"id": "db"}], patches={"app": {"a": 1}, "db": {"b": 1}})
    carry_out(ledger, apply("c1", mine))
    carry_out(ledger, apply("c1", cluster("c1", platform_components=[{"id": "db"}], patches={"db": {"b": 1}})))
    after = stored(ledger, "clusters", "c1")
    assert ([each["id"] for each in after["platform_components"]], after["patches"]) == (["db"], {"db": {"b": 1}})
    carry_out(ledger, apply("c1", cluster("c1")))
    assert (stored(ledger, "clusters", "c1")["platform_components"], stored(ledger, "clusters", "c1")["patches"]) == ([], {})


def test_empty_patches_name_nothing_and_go_with_their_reference(ledger: Ledger) -> None:
    mine = cluster("c1", platform_components=[{"id": "app"}], patches={"app": {}})
    carry_out(ledger, apply("c1", mine))
    carry_out(ledger, apply("c1", cluster("c1")))
    assert (stored(ledger, "clusters", "c1")["platform_components"], stored(ledger, "clusters", "c1")["patches"]) == ([], {})
    carry_out(ledger, apply("c1", {**mine, "patches": {"app": {"a": 1}}}))
    carry_out(ledger, apply("c1", cluster("c1", patches={"app": {}})))
    assert (stored(ledger, "clusters", "c1")["platform_components"], stored(ledger, "clusters", "c1")["patches"]) == ([], {})


def test_what_the_batch_did_not_change_is_told_with_who_did(ledger: Ledger) -> None:
    mine = cluster("c1", node_count=1, labels={"a": "1"})
    carry_out(ledger, apply("c1", mine))
    patch(ledger, "c1", {"node_count": 2})
    relabel = {"op": "patch", "kind": "clusters", "id": "c1", "document": {"labels": {"a": "2"}}}
    ((result,), entry) = carry_out(ledger, relabel, apply("c1", mine))
    assert entry is not None
    assert result.kept == [
        {"path": "/node_count", "actor": "joe", "revision": entry.revision - 1},
        {"path": "/labels/a", "actor": "tester", "revision": entry.revision},
    ]


def test_patches_of_what_others_assigned_went_when_they_were_removed(ledger: Ledger) -> None:
    """Not when the reference was, which this manager does not name."""
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    mine = {"patches": {"app": {"a": 1}}}
    carry_out(ledger, apply("c1", mine))
    patch(ledger, "c1", {"patches": {"app": None}})
    carry_out(ledger, {"op": "unassign", "kind": "platform_components", "id": "app", "clusters": ["c1"]}, actor="jane")
    ((result,), _) = carry_out(ledger, apply("c1", mine))
    assert [(each["path"], each["actor"]) for each in result.kept or []] == [("/patches/app/a", "joe")]


def test_an_empty_field_that_nobody_knows_is_a_mistake(ledger: Ledger) -> None:
    create(ledger, "namespaces", namespace("n"))
    nothings: tuple[Any, ...] = ({}, [])
    for empty in nothings:
        refusal = refused(ledger, apply("n", {"label": empty, "labels": {}}, "namespaces"))
        assert (refusal.status, pointers(refusal)) == (422, ["/label"])
    assert carry_out(ledger, apply("n", {"labels": {}, "annotations": {}}, "namespaces"))[1] is None
    all_of_it = refused(ledger, apply("n", {"label": {"a": "1"}, "labels": {"a": 5}}, "namespaces"))
    assert set(pointers(all_of_it)) == {"/label", "/labels/a"}


EXTENDED = (
    """\
extends: namespaces
metadata: {x-flux: {reference: {quota: {type: integer}}}}
""",
    """\
extends: platform_components
schema:
  items:
    properties:
      limits: {type: object, additionalProperties: {type: object, additionalProperties: {type: integer}}}
""",
)


@pytest.fixture
def extended(tmp_path: Path) -> Ledger:
    """With references that have fields but no patches, and with maps in a map."""
    made = samples.ledger_of(samples.kinds_from(tmp_path, *EXTENDED))
    create(made, "platform_components", component("app"))
    create(made, "namespaces", namespace("n"))
    create(made, "clusters", cluster("c1"))
    return made


def done(ledger: Ledger, *given: Any, actor: str = "tester") -> list[operations.Result]:
    """With the kinds of the ledger."""
    batch = operations.Batch(operations.parsed(ledger.kinds, {"operations": list(given)}, budgets.Budget()))
    outcome = ledger.write_now(batch.work, Origin(actor=actor))
    told = Past(ledger.kinds, ledger.follower.store).last_set
    return list(batch.results(outcome.entry, partial(told, until=outcome.base_revision)))


def replaced(kind: str, id: str, document: dict[str, Any]) -> dict[str, Any]:
    return {"op": "replace", "kind": kind, "id": id, "document": document}


def test_a_field_that_is_not_there_may_be_sent_empty(extended: Ledger) -> None:
    assert done(extended, apply("app", {"limits": {}}, "platform_components"))[0].change == "unchanged"


def test_a_key_was_last_set_when_it_was_removed_not_when_all_around_it_was(extended: Ledger) -> None:
    mine = apply("app", {"limits": {"cpu": {"max": 1}}}, "platform_components")
    done(extended, mine)
    done(extended, replaced("platform_components", "app", component("app", limits={"cpu": {"min": 1}})), actor="jane")
    done(extended, replaced("platform_components", "app", component("app")), actor="joe")
    (result,) = done(extended, mine)
    assert [(each["path"], each["actor"]) for each in result.kept or []] == [("/limits/cpu/max", "jane")]


def test_a_field_went_with_its_reference_also_where_there_are_no_patches(extended: Ledger) -> None:
    done(extended, apply("c1", {"namespaces": [{"id": "n", "quota": 1}]}))
    done(extended, replaced("clusters", "c1", cluster("c1", namespaces=[{"id": "n"}])), actor="jane")
    done(extended, replaced("clusters", "c1", cluster("c1", namespaces=[])), actor="joe")
    new = apply("c1", {"namespaces": [{"id": "n", "quota": 2}]})
    batch = operations.Batch(operations.parsed(extended.kinds, {"operations": [new]}, budgets.Budget()))
    with pytest.raises(errors.Conflict):
        extended.write_now(batch.work, samples.ORIGIN)
    told = partial(Past(extended.kinds, extended.follower.store).last_set, until=batch.base_revision)
    (conflict,) = applications.refusal(batch.conflicts, [], told).extra["conflicts"]
    assert (conflict["path"], conflict["yours"], conflict["actor"]) == ("/namespaces/n/quota", 2, "joe")


# Conflicts


def test_patches_of_what_others_unassigned_are_a_conflict(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    carry_out(ledger, apply("c1", {"patches": {"app": {"a": 1}}}))
    carry_out(ledger, {"op": "unassign", "kind": "platform_components", "id": "app", "clusters": ["c1"]}, actor="joe")
    refusal = refused(ledger, apply("c1", {"patches": {"app": {"a": 2}}}))
    (conflict,) = refusal.extra["conflicts"]
    assert (refusal.code, conflict["path"], conflict["theirs"], conflict["actor"]) == ("conflict", "/patches/app/a", None, "joe")
    for wrong in (
        apply("c1", {"patches": {"app": {"a": 2}}}, force=True),  # it has nothing to patch
        apply("c1", {"patches": {"app": {"a": 2}, "db": {"a": 1}}}),  # this one nobody took away
        apply("c1", {"patches": {"app": {"a": 2}}, "node_count": -1}),
        apply("c1", {"node_count": -1}),
    ):
        assert refused(ledger, wrong).status == 422


def test_a_bad_value_is_refused_as_such_also_where_others_changed_it(ledger: Ledger) -> None:
    carry_out(ledger, apply("c1", cluster("c1", labels={"a": "1", "b": "1"})))
    patch(ledger, "c1", {"labels": {"a": None, "b": "2"}})
    for key in ("a", "b"):
        refusal = refused(ledger, apply("c1", cluster("c1", labels={"a": "1", "b": "1", key: "not good!"})))
        assert (refusal.status, pointers(refusal)) == (422, [f"/labels/{key}"])


def test_one_refusal_names_all_conflicts_of_all_operations(ledger: Ledger) -> None:
    carry_out(ledger, apply("c1", cluster("c1", node_count=1)), apply("c2", cluster("c2", labels={"a": "1", "b": "1"})))
    patch(ledger, "c1", {"node_count": 2})
    patch(ledger, "c2", {"labels": {"a": "2", "b": None}}, actor="jane")
    refusal = refused(
        ledger,
        apply("app", component("app"), "platform_components"),
        apply("c1", cluster("c1", node_count=3)),
        apply("c2", cluster("c2", labels={"a": "3", "b": "3"})),
    )
    assert (type(refusal), refusal.extra["index"], refusal.extra["conflicts_total"]) == (errors.Conflict, 1, 3)
    assert refusal.extra["conflicts"] == [
        {"kind": "clusters", "id": "c1", "path": "/node_count", "yours": 3, "theirs": 2, "actor": "joe", "revision": 3},
        {"kind": "clusters", "id": "c2", "path": "/labels/a", "yours": "3", "theirs": "2", "actor": "jane", "revision": 4},
        {"kind": "clusters", "id": "c2", "path": "/labels/b", "yours": "3", "theirs": None, "actor": "jane", "revision": 4},
    ]
    assert "/node_count of clusters" in refusal.detail
    assert "by joe in revision 3" in refusal.detail
    assert "force" in refusal.detail


def test_force_takes_yours_in_conflicts_and_leaves_what_is_kept(ledger: Ledger) -> None:
    mine = cluster("c1", node_count=1, labels={"a": "1"})
    carry_out(ledger, apply("c1", mine))
    patch(ledger, "c1", {"node_count": 2, "labels": {"a": "2"}})
    ((result,), _) = carry_out(ledger, apply("c1", {**mine, "node_count": 3}, force=True))
    after = stored(ledger, "clusters", "c1")
    assert (after["node_count"], after["labels"]) == (3, {"a": "2"})
    assert [each["path"] for each in result.kept or []] == ["/labels/a"]


def test_the_first_apply_takes_over_equal_fields_without_a_revision_and_durably(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c1", node_count=4))
    ((result,), entry) = carry_out(ledger, apply("c1", cluster("c1", node_count=4)))
    assert (entry, result.change) == (None, "unchanged")
    assert applied(ledger, "c1") == {"ci": cluster("c1", node_count=4)}
    refusal = refused(ledger, apply("c1", {"node_count": 5}, manager="other"))
    assert [each["path"] for each in refusal.extra["conflicts"]] == ["/node_count"]


def test_who_did_it_is_nobody_where_the_log_was_folded(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c1", node_count=4))
    create(ledger, "namespaces", namespace("n"))
    with ledger.follower.store.begin() as transaction:
        transaction.fold(3)
    ledger.follower.refresh()
    (conflict,) = refused(ledger, apply("c1", {"node_count": 5})).extra["conflicts"]
    assert (conflict["actor"], conflict["revision"], conflict["theirs"]) == (None, None, 4)
    assert "by None" not in refused(ledger, apply("c1", {"node_count": 5})).detail


def test_whoever_removed_a_reference_is_told_for_all_that_went_with_it(ledger: Ledger) -> None:
    mine = cluster("c1", platform_components=[{"id": "app"}], patches={"app": {"a": 1}})
    carry_out(ledger, apply("c1", mine))
    carry_out(ledger, {"op": "unassign", "kind": "platform_components", "id": "app", "clusters": ["c1"]}, actor="joe")
    patch(ledger, "c1", {"node_count": 9}, actor="jane")
    ((result,), _) = carry_out(ledger, apply("c1", mine))
    by_joe = {"actor": "joe", "revision": 3}
    assert result.kept == [{"path": "/platform_components/app", **by_joe}, {"path": "/patches/app/a", **by_joe}]
    more = {"platform_components": [{"id": "app", "component_path": "x"}], "patches": {"app": {"a": 1, "b": 2}}}
    told = refused(ledger, apply("c1", {**mine, **more})).extra["conflicts"]
    assert [(each["path"], each["actor"], each["revision"]) for each in told] == [
        ("/platform_components/app/component_path", "joe", 3), ("/patches/app/b", "joe", 3),
    ]  # fmt: skip
    ((result,), _) = carry_out(ledger, apply("c1", {**mine, **more}, force=True))
    assert (result.change, result.kept) == ("update", [])
    after = stored(ledger, "clusters", "c1")
    assert (after["platform_components"][0]["component_path"], after["patches"], after["node_count"]) == ("x", more["patches"], 9)


def test_fields_of_one_reference_have_changes_of_their_own(ledger: Ledger) -> None:
    mine = cluster("c1", platform_components=[{"id": "app", "oci_tag": "1.0.0", "component_path": "p"}], labels={"app": "1"})
    carry_out(ledger, apply("c1", mine))
    assign = {"op": "assign", "kind": "platform_components", "id": "app", "clusters": ["c1"]}
    carry_out(ledger, {**assign, "document": {"oci_tag": "2.0.0"}}, actor="joe")
    carry_out(ledger, {**assign, "document": {"component_path": "q"}}, actor="jane")
    patch(ledger, "c1", {"labels": {"app": "2"}}, actor="jim")
    ((result,), _) = carry_out(ledger, apply("c1", mine))
    assert [(each["path"].rpartition("/")[2], each["actor"], each["revision"]) for each in result.kept or []] == [
        ("oci_tag", "joe", 3), ("component_path", "jane", 4), ("app", "jim", 5),
    ]  # fmt: skip


def test_the_conflicts_that_are_told_have_a_bound(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "SHOWN_CONFLICTS", 2)
    create(ledger, "clusters", cluster("c1", labels={f"l{n}": "1" for n in range(5)}))
    refusal = refused(ledger, apply("c1", {"labels": {f"l{n}": "2" for n in range(5)}}))
    assert (len(refusal.extra["conflicts"]), refusal.extra["conflicts_total"]) == (2, 5)
    monkeypatch.setattr(applications, "_SHOWN_BYTES", 2 * len('["2","1"]'))
    assert len(refused(ledger, apply("c1", {"labels": {"l0": "2", "l1": "2"}})).extra["conflicts"]) == 2
    monkeypatch.setattr(applications, "_SHOWN_BYTES", 0)
    assert len(refused(ledger, apply("c1", {"labels": {"l0": "2", "l1": "2"}})).extra["conflicts"]) == 1


def test_what_the_draft_cannot_hold_is_refused_before_its_conflicts(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c1"))
    refusal = refused(ledger, apply("c1", {"cluster_dns": "other.example.com"}, force=True))
    assert (refusal.status, pointers(refusal)) == (422, ["/cluster_dns"])
    assert refused(ledger, apply("c1", {"node_count": "many"})).status == 422
    assert refused(ledger, apply("c1", {"id": "c2"})).status == 422
    assert refused(ledger, apply("c1", {"labels": {"a": "x" * 2_000_000}})).status == 422


# Clusters that were decommissioned


def test_a_decommissioned_cluster_comes_back_only_with_revive(ledger: Ledger) -> None:
    carry_out(ledger, apply("c1", cluster("c1")))
    carry_out(ledger, {"op": "delete", "kind": "clusters", "id": "c1"})
    assert applied(ledger, "c1") == {}
    for again in (cluster("c1"), cluster("c1", cluster_dns="new.example.com"), cluster("c9", cluster_dns="c1.example.com")):
        refusal = refused(ledger, apply(again["id"], again))
        assert (refusal.code, refusal.extra["index"], "revive" in refusal.detail) == ("conflict", 0, True)
        assert "conflicts" not in refusal.extra
        told = 'the cluster "c1", which had the DNS name c1.example.com,' if again["id"] == "c9" else "it"
        assert f"is not there: {told} was decommissioned in revision 3" in refusal.detail
    ((result,), _) = carry_out(ledger, apply("c1", cluster("c1"), revive=True))
    assert result.change == "create"
    carry_out(ledger, apply("c1", cluster("c1")))


def test_one_refusal_names_every_decommissioned_cluster_and_every_conflict(ledger: Ledger) -> None:
    carry_out(ledger, *(apply(id, cluster(id)) for id in ("c1", "c2", "c3")))
    carry_out(ledger, *({"op": "delete", "kind": "clusters", "id": id} for id in ("c2", "c3")))
    patch(ledger, "c1", {"node_count": 5})
    gone = [apply("c2", cluster("c2")), apply("c9", cluster("c9", cluster_dns="c3.example.com"))]
    alone = refused(ledger, *gone)
    assert alone.extra["decommissioned"] == [
        {"id": "c2", "cluster_dns": "c2.example.com", "was": "c2", "revision": 3},
        {"id": "c9", "cluster_dns": "c3.example.com", "was": "c3", "revision": 3},
    ]
    assert "(1 more likewise)" in alone.detail
    both = refused(ledger, apply("c1", {"node_count": 7}, manager="other"), *gone)
    assert (both.extra["index"], both.extra["kind"], both.extra["id"]) == (0, "clusters", "c2")
    assert (both.extra["decommissioned_total"], both.extra["conflicts_total"]) == (2, 1)
    assert ("revive" in both.detail, "force" in both.detail) == (True, True)
    forced = refused(ledger, apply("c1", {"node_count": 7}, manager="other", force=True), *gone)
    assert (forced.extra["index"], "conflicts" in forced.extra) == (1, False)


def test_what_misses_a_cluster_that_did_not_come_back_is_not_blamed_instead(ledger: Ledger) -> None:
    carry_out(ledger, apply("c1", cluster("c1")))
    carry_out(ledger, {"op": "delete", "kind": "clusters", "id": "c1"})
    refusal = refused(ledger, apply("c1", cluster("c1")), {"op": "delete", "kind": "clusters", "id": "c1"})
    assert (refusal.code, refusal.extra["index"], refusal.extra["decommissioned_total"]) == ("conflict", 0, 1)


# Records


def test_the_second_apply_of_a_batch_sees_the_record_of_the_first(ledger: Ledger) -> None:
    first, second = cluster("c1", labels={"a": "1"}), cluster("c1", labels={"b": "1"})
    (results, _) = carry_out(ledger, apply("c1", first), apply("c1", second))
    assert [(each.index, each.op, each.change) for each in results] == [(1, "apply", "create")]
    assert stored(ledger, "clusters", "c1")["labels"] == {"b": "1"}
    assert applied(ledger, "c1") == {"ci": second}


def test_what_the_batch_itself_changed_is_kept_in_its_own_name(ledger: Ledger) -> None:
    carry_out(ledger, apply("c1", cluster("c1", node_count=1)))
    change = {"op": "patch", "kind": "clusters", "id": "c1", "document": {"node_count": 7}}
    (results, entry) = carry_out(ledger, change, apply("c1", cluster("c1", node_count=1)), actor="both")
    assert entry is not None
    assert results[0].kept == [{"path": "/node_count", "actor": "both", "revision": entry.revision}]


def test_deleting_in_a_batch_drops_the_records_also_those_that_it_made(ledger: Ledger) -> None:
    carry_out(ledger, apply("n", {}, "namespaces"), apply("n", {"labels": {"a": "1"}}, "namespaces", "other"))
    delete = {"op": "delete", "kind": "namespaces", "id": "n"}
    carry_out(ledger, apply("n", {}, "namespaces", "third"), delete, apply("n", {"labels": {"x": "1"}}, "namespaces", "third"))
    assert applied(ledger, "n", "namespaces") == {"third": {"labels": {"x": "1"}}}
    assert stored(ledger, "namespaces", "n")["labels"] == {"x": "1"}
    carry_out(ledger, apply("n", {}, "namespaces"), delete)
    assert applied(ledger, "n", "namespaces") == {}
    carry_out(ledger, apply("m", {}, "namespaces"), {**delete, "id": "m"})
    assert applied(ledger, "m", "namespaces") == {}


def test_what_is_created_anew_in_a_batch_is_another_document(ledger: Ledger) -> None:
    carry_out(ledger, apply("n", {"labels": {"a": "1"}}, "namespaces"))
    anew = [
        {"op": "delete", "kind": "namespaces", "id": "n"},
        {"op": "create", "kind": "namespaces", "id": "n", "document": {"labels": {"a": "1"}}},
    ]
    carry_out(ledger, *anew, apply("n", {}, "namespaces"))
    assert stored(ledger, "namespaces", "n")["labels"] == {"a": "1"}
    assert applied(ledger, "n", "namespaces") == {"ci": {}}
    carry_out(ledger, *anew)
    assert applied(ledger, "n", "namespaces") == {}


def test_a_draft_sees_what_was_applied_before_and_in_it(ledger: Ledger) -> None:
    carry_out(ledger, *(apply(id, {}, "namespaces") for id in ("a", "b", "c")))
    namespaces = KNOWN.by_name["namespaces"]
    draft = drafts.Draft(ledger.fleet.copied(), stored=ledger.follower.store)
    for id, manager in (("a", "ci"), ("d", "ci"), ("e", "other"), ("f", "ci")):
        applications.apply(draft, 0, namespaces, id, manager, {}, force=False, revive=False)
    for id in ("b", "f"):
        draft.delete(namespaces, id)
    assert [id for _, id in draft.applied.by("ci", "namespaces")] == ["a", "c", "d"]
    assert draft.applied.by("ci", "clusters") == []
    assert [(each.id, each.manager) for each in draft.applications()] == [("d", "ci"), ("e", "other")]  # "a" is as it was


def test_what_is_deleted_needs_no_records_to_be_dropped_one_by_one(ledger: Ledger) -> None:
    carry_out(ledger, apply("n", {}, "namespaces"))
    draft = drafts.Draft(ledger.fleet.copied(), stored=ledger.follower.store)
    draft.delete(KNOWN.by_name["namespaces"], "n")
    assert draft.applications() == []


def test_records_survive_a_restart(tmp_path: Path) -> None:
    from flux_resourceset.store.sqlite import SqliteStore

    for attempt in range(2):
        store = SqliteStore(tmp_path / "fleet.db")
        ledger = samples.ledger_of(KNOWN, store)
        if attempt == 0:
            create(ledger, "clusters", cluster("c1", node_count=4))
            assert carry_out(ledger, apply("c1", {"node_count": 4}))[1] is None
            patch(ledger, "c1", {"node_count": 5})
        else:
            ((result,), entry) = carry_out(ledger, apply("c1", {"node_count": 4}))
            assert (entry, result.kept) == (None, [{"path": "/node_count", "actor": "joe", "revision": 2}])
        store.close()


def test_without_a_store_nothing_was_applied(ledger: Ledger) -> None:
    create(ledger, "namespaces", namespace("n", labels={"a": "1"}))
    draft = drafts.Draft(ledger.fleet.copied())
    batch_of(apply("n", {}, "namespaces"), prune("n", kind="namespaces")).work(draft)
    assert [(each.id, each.manager) for each in draft.applications()] == [("n", "ci")]


# Bounds


def test_a_document_that_no_answer_has_room_for_is_refused_before_it_is_merged(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c1"))
    large = {"labels": {}, "patches": {"app": {"a": "x" * documents.MAX_BYTES}}}
    many: dict[str, Any] = {"platform_components": [{}] * (3 * documents.MAX_VALUES)}
    for document in (large, many):
        draft = drafts.Draft(ledger.fleet.copied(), Counting())
        with pytest.raises(errors.Invalid) as caught:
            applications.apply(draft, 0, KNOWN.clusters, "c1", "ci", document, force=True, revive=False)
        assert [each.message for each in caught.value.violations] == [documents.TOO_LARGE]
        assert draft.budget.spent == 0  # type: ignore[attr-defined]


def test_merging_spends_what_there_is_to_complete(ledger: Ledger) -> None:
    scalars = {"node_count": 1, "vm_image": "x", "k0s_version": "y"}
    create(ledger, "clusters", cluster("c1", **scalars, labels={"a": "1", "b": "1"}))
    create(ledger, "clusters", cluster("c2", **scalars, labels={"a": "1", "b": "1", "c": "1"}))
    assert spent(ledger, apply("c1", {})) == 3  # the operation, what it names, and the document
    assert spent(ledger, apply("c2", {})) > spent(ledger, apply("c1", {}))
    many = {"labels": {f"label-{number}": "1" for number in range(400)}}
    assert spent(ledger, apply("c1", many)) - spent(ledger, apply("c1", {})) >= 2 * 400 / 10


def test_pruning_spends_what_there_is_to_select_from(ledger: Ledger) -> None:
    carry_out(ledger, *(apply(f"c{number}", cluster(f"c{number}")) for number in range(10)))
    assert spent(ledger, prune(selector="a=b")) >= 10


# Prune


def test_prune_deletes_what_the_manager_applied_names_no_more_and_nobody_else_applied(ledger: Ledger) -> None:
    carry_out(ledger, *(apply(f"c{n}", cluster(f"c{n}")) for n in range(1, 5)), apply("c2", {}, manager="other"))
    create(ledger, "clusters", cluster("c9"))
    (results, entry) = carry_out(ledger, prune("c1"))
    assert entry is not None
    assert [(each.op, each.id, each.change, each.index) for each in results] == [
        ("prune", "c3", "delete", 0), ("prune", "c4", "delete", 0),
    ]  # fmt: skip
    assert all(each.kept is msgspec.UNSET for each in results)
    assert sorted(ledger.fleet.documents["clusters"]) == ["c1", "c2", "c9"]
    assert carry_out(ledger, prune("c1")) == ([], None)


def test_prune_of_clusters_is_narrowed(ledger: Ledger) -> None:
    carry_out(
        ledger,
        apply("c1", cluster("c1", environment="prod")),
        apply("c2", cluster("c2", labels={"ring": "0"})),
        apply("c3", cluster("c3")),
    )
    assert [each.id for each in carry_out(ledger, prune(environment="dev", selector="ring=0"))[0]] == ["c2"]
    assert [each.id for each in carry_out(ledger, prune(environment="prod"))[0]] == ["c1"]


def test_prune_is_of_one_transaction_with_what_is_applied(ledger: Ledger) -> None:
    used = cluster("c1", platform_components=[{"id": "x"}])
    carry_out(ledger, apply("x", component("x"), "platform_components"), apply("c1", used))
    refusal = refused_late(ledger, prune(kind="platform_components"))
    assert (refusal.code, refusal.extra["index"]) == ("in-use", 0)
    carry_out(ledger, apply("c1", cluster("c1")), prune(kind="platform_components"))
    assert ledger.fleet.get("platform_components", "x") is None


def refused_late(ledger: Ledger, *given: Any) -> errors.Refusal:
    batch = batch_of(*given)
    with pytest.raises(errors.Refusal) as caught:
        ledger.write_now(batch.work, samples.ORIGIN)
    return batch.blamed(caught.value)


# Reading


@pytest.mark.parametrize(
    ("operation", "pointer"),
    [
        ({"op": "apply", "kind": "clusters", "id": "c1", "document": {}}, "/operations/0/manager"),
        (apply("c1", {}, manager=""), "/operations/0/manager"),
        (apply("c1", {}, manager="Me"), "/operations/0/manager"),
        (apply("c1", {}, manager="x" * 65), "/operations/0/manager"),
        (apply("c1", {}, manager="a\n"), "/operations/0/manager"),
        (apply("c1", {}, manager=5), "/operations/0/manager"),  # type: ignore[arg-type]
        (apply("c1", {}, force="yes"), "/operations/0/force"),
        (apply("c1", {}, revive=1), "/operations/0/revive"),
        (prune(5), "/operations/0/keep/0"),  # type: ignore[arg-type]
        ({"op": "apply", "kind": "clusters", "id": "c1", "manager": "ci"}, "/operations/0/document"),
        (apply("c1", []), "/operations/0/document"),  # type: ignore[arg-type]
        (apply("c1", {}, keep=["c1"]), "/operations/0/keep"),
        (apply("c1", {}, environment="dev"), "/operations/0/clusters"),
        ({"op": "apply", "kind": "clusters", "manager": "ci", "document": {}}, "/operations/0"),
        ({"op": "create", "kind": "clusters", "id": "c1", "document": {}, "manager": "ci"}, "/operations/0/manager"),
        ({"op": "create", "kind": "clusters", "id": "c1", "document": {}, "revive": True}, "/operations/0/revive"),
        (prune(id="c1"), "/operations/0/id"),
        (prune(document={}), "/operations/0/document"),
        (prune(force=True), "/operations/0/force"),
        (prune(clusters=["c1"]), "/operations/0/clusters"),
        (prune(environment="moon"), "/operations/0/environment"),
        (prune(selector="a in"), "/operations/0/selector"),
        (prune(kind="namespaces", environment="dev"), "/operations/0/environment"),
        (prune(kind="namespaces", selector="a=b"), "/operations/0/selector"),
        (prune(manager="Me"), "/operations/0/manager"),
        ({"op": "prune", "kind": "clusters", "manager": "ci"}, "/operations/0/keep"),
        (prune(*map(str, range(10_001))), "/operations/0"),
    ],
)
def test_a_mistake_is_named_by_its_place(operation: Any, pointer: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        batch_of(operation)
    assert pointer in pointers(caught.value)
    assert caught.value.extra["index"] == 0


def test_a_kind_takes_what_its_methods_take(tmp_path: Path) -> None:
    fixed = samples.PLAIN + "      size: {type: integer, default: 1}\nmethods: {resource: [get, post], instance: [get]}\n"
    known = samples.kinds_from(tmp_path, fixed)
    ledger = samples.ledger_of(known)

    def tried(document: dict[str, Any]) -> Entry | None:
        body = {"operations": [apply("w", document, "widgets")]}
        return samples.write(ledger, operations.Batch(operations.parsed(known, body, budgets.Budget())).work)

    assert tried({"size": 2}) is not None
    assert tried({"size": 2}) is None
    with pytest.raises(errors.Invalid, match="do not take replace"):
        tried({"size": 3})
    with pytest.raises(errors.Invalid, match="do not take prune"):
        operations.parsed(known, {"operations": [prune(kind="widgets")]}, budgets.Budget())


def test_a_kind_without_post_takes_no_new_document(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, samples.PLAIN + "methods: {resource: [get], instance: [get, put]}\n")
    body = {"operations": [apply("w", {}, "widgets")]}
    with pytest.raises(errors.Invalid, match="do not take create"):
        samples.write(samples.ledger_of(known), operations.Batch(operations.parsed(known, body, budgets.Budget())).work)
