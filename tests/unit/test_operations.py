"""Operations of a batch: read strictly, carried out in order on one draft, and told apart afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import budgets, drafts, errors, operations
from flux_resourceset.changes import Entry
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, namespace, pointers, refused, stored

KNOWN = kind_files.load()


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "namespaces", namespace("team"), namespace("free"))
    create(made, "platform_components", component("app"))
    create(
        made,
        "clusters",
        cluster("c1", environment="dev", labels={"ring": "0"}, namespaces=[{"id": "team"}], platform_components=[{"id": "app"}]),
        cluster("c2", environment="dev", labels={"ring": "1"}),
        cluster("c3", environment="prod", labels={"ring": "1"}),
    )
    return made


def parsed(*given: Any, steps: float = 1e9) -> list[operations.Operation]:
    return operations.parsed(KNOWN, {"operations": list(given)}, budgets.Budget(steps))


def carry_out(ledger: Ledger, *given: Any) -> list[operations.Result]:
    """Write a batch; its results."""
    batch = operations.Batch(parsed(*given))
    entry: Entry | None = samples.write(ledger, batch.work)
    return list(batch.results(entry))


def wrong(*given: Any) -> errors.Refusal:
    with pytest.raises(errors.Refusal) as caught:
        parsed(*given)
    return caught.value


def op(word: str, kind: str, id: str, **more: Any) -> dict[str, Any]:
    return {"op": word, "kind": kind, "id": id, **more}


# Reading


@pytest.mark.parametrize(
    ("operation", "pointer"),
    [
        (op("grow", "namespaces", "a"), "/operations/0/op"),
        (op("create", "widgets", "a", document={}), "/operations/0/kind"),
        (op("create", "namespaces", "a"), "/operations/0/document"),
        (op("patch", "namespaces", "a", document=[]), "/operations/0/document"),
        (op("delete", "namespaces", "a", document={}), "/operations/0/document"),
        (op("delete", "namespaces", "a", clusters=["c1"]), "/operations/0/clusters"),
        (op("create", "namespaces", "a", document={}, force=True), "/operations/0/force"),
        (op("unassign", "namespaces", "a", only_assigned=True, clusters=["c1"]), "/operations/0/only_assigned"),
        (op("assign", "clusters", "c1", clusters=["c2"]), "/operations/0/kind"),
        (op("patch-values", "namespaces", "a", values={}, clusters=["c1"]), "/operations/0/kind"),
        (op("patch-values", "platform_components", "app", clusters=["c1"]), "/operations/0/values"),
        (op("assign", "namespaces", "team"), "/operations/0/clusters"),
        (op("assign", "namespaces", "team", clusters=["c1"], environment="dev"), "/operations/0/clusters"),
        (op("assign", "namespaces", "team", environment="moon"), "/operations/0/environment"),
        (op("assign", "namespaces", "team", selector="a in b"), "/operations/0/selector"),
        ({"op": "create", "kind": "namespaces"}, "/operations/0"),
        (op("create", "namespaces", "a", document={}, more=1), "/operations/0/more"),
        (5, "/operations/0"),
    ],
)
def test_a_mistake_is_named_by_its_place(operation: Any, pointer: str) -> None:
    refusal = wrong(operation)
    assert isinstance(refusal, errors.Invalid)
    assert pointer in pointers(refusal)
    assert refusal.extra["index"] == 0


@pytest.mark.parametrize("body", [None, [], {}, {"operations": {}}, {"operations": "x"}])
def test_a_batch_is_an_object_with_an_array(body: Any) -> None:
    with pytest.raises(errors.Invalid) as caught:
        operations.parsed(KNOWN, body, budgets.Budget())
    assert pointers(caught.value) == ["/operations"]


def test_mistakes_of_all_operations_are_told_and_the_first_is_the_index() -> None:
    good = op("delete", "namespaces", "a")
    refusal = wrong(good, op("grow", "namespaces", "a"), good, op("create", "namespaces", "b"))
    assert pointers(refusal) == ["/operations/1/op", "/operations/3/document"]
    assert refusal.extra["index"] == 1


def test_a_batch_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MAX_DOCUMENTS", 3)
    assert len(parsed(*[op("delete", "namespaces", "a")] * 3)) == 3
    assert "more than 3 operations" in wrong(*[op("delete", "namespaces", "a")] * 4).detail
    named = op("assign", "namespaces", "team", clusters=["a", "b", "c", "d"])
    assert "more than 3 clusters" in wrong(named).detail


def test_the_mistakes_that_are_told_have_a_bound() -> None:
    refusal = wrong(*[op("grow", "moons", "a")] * 2000)
    assert len(refusal.violations) <= errors.MAX_VIOLATIONS + 1


def test_reading_spends_the_budget() -> None:
    with pytest.raises(errors.TooExpensive):
        parsed(*[op("delete", "namespaces", "a")] * 10, steps=5)


# Carrying out


def test_operations_are_carried_out_in_order(ledger: Ledger) -> None:
    results = carry_out(
        ledger,
        op("create", "namespaces", "new", document={"labels": {"a": "1"}}),
        op("patch", "namespaces", "new", document={"labels": {"b": "2"}}),
        op("assign", "namespaces", "new", clusters=["c1", "c2"]),
        op("unassign", "namespaces", "new", clusters=["c2"]),
        op("replace", "namespaces", "free", document={"labels": {"x": "y"}}),
    )
    assert stored(ledger, "namespaces", "new")["labels"] == {"a": "1", "b": "2"}
    assert [ref["id"] for ref in stored(ledger, "clusters", "c1")["namespaces"]] == ["team", "new"]
    assert stored(ledger, "clusters", "c2")["namespaces"] == []
    assert [(result.index, result.op, result.kind, result.id, result.change) for result in results] == [
        (1, "patch", "namespaces", "new", "create"),
        (2, "assign", "clusters", "c1", "update"),
        (3, "unassign", "clusters", "c2", "unchanged"),
        (4, "replace", "namespaces", "free", "update"),
    ]


def test_what_exists_is_not_created_and_what_does_not_is_not_changed(ledger: Ledger) -> None:
    for operation, kind in (
        (op("create", "namespaces", "team", document={}), errors.AlreadyExists),
        (op("replace", "namespaces", "nowhere", document={}), errors.NotFound),
        (op("patch", "namespaces", "nowhere", document={}), errors.NotFound),
        (op("delete", "namespaces", "nowhere"), errors.NotFound),
        (op("delete", "namespaces", "team"), errors.InUse),
        (op("assign", "namespaces", "team", clusters=["nowhere"]), errors.NotFound),
        (op("assign", "namespaces", "free", only_assigned=True, clusters=["c1"]), errors.NotFound),
        (op("create", "namespaces", "a", document={"id": "b"}), errors.Invalid),
    ):
        batch = operations.Batch(parsed(op("create", "namespaces", "first", document={}), operation))
        refusal = batch.blamed(refused(kind, ledger, batch.work))
        assert refusal.extra["index"] == 1, operation
    assert ledger.fleet.get("namespaces", "first") is None


def test_force_deletes_what_clusters_use(ledger: Ledger) -> None:
    (result,) = carry_out(ledger, op("delete", "namespaces", "team", force=True))
    assert (result.change, result.after) == ("delete", None)
    assert ledger.fleet.dangling() == [("c1", "namespaces", "team")]


@pytest.mark.parametrize(
    ("selection", "meant"),
    [
        ({"clusters": ["c3", "c1", "c3"]}, ["c3", "c1"]),
        ({"clusters": []}, []),
        ({"selector": ""}, ["c1", "c2", "c3"]),
        ({"selector": "ring=1"}, ["c2", "c3"]),
        ({"environment": "dev"}, ["c1", "c2"]),
        ({"selector": "ring=1", "environment": "dev"}, ["c2"]),
        ({"selector": "ring=9"}, []),
    ],
)
def test_clusters_are_named_or_selected(ledger: Ledger, selection: Any, meant: list[str]) -> None:
    assert [result.id for result in carry_out(ledger, op("assign", "namespaces", "free", **selection))] == meant


def test_a_selection_sees_the_clusters_as_the_batch_has_left_them(ledger: Ledger) -> None:
    assign = op("assign", "namespaces", "free", selector="ring=1")
    results = carry_out(
        ledger,
        op("create", "clusters", "c4", document={k: v for k, v in cluster("c4", labels={"ring": "1"}).items() if k != "id"}),
        assign,
        op("patch", "clusters", "c2", document={"labels": {"ring": "0"}}),
        op("delete", "clusters", "c3"),
        assign,
    )
    assert {(result.id, result.change, result.index) for result in results} == {
        ("c4", "create", 4),
        ("c2", "update", 2),
        ("c3", "delete", 3),
    }


def test_an_assignment_keeps_what_the_cluster_says_and_null_takes_it_back(ledger: Ledger) -> None:
    carry_out(ledger, op("assign", "platform_components", "app", document={"oci_tag": "2.0.0"}, clusters=["c1"]))
    carry_out(ledger, op("assign", "platform_components", "app", document={"enabled": False}, clusters=["c1"]))
    (reference,) = stored(ledger, "clusters", "c1")["platform_components"]
    assert (reference["oci_tag"], reference["enabled"]) == ("2.0.0", False)
    carry_out(ledger, op("assign", "platform_components", "app", document={"oci_tag": None}, clusters=["c1"]))
    (reference,) = stored(ledger, "clusters", "c1")["platform_components"]
    assert "oci_tag" not in reference or reference["oci_tag"] is None


def test_values_are_patched_key_by_key(ledger: Ledger) -> None:
    carry_out(ledger, op("patch-values", "platform_components", "app", values={"a": 1, "b": 2}, clusters=["c1"]))
    carry_out(ledger, op("patch-values", "platform_components", "app", values={"a": None, "c": 3}, clusters=["c1"]))
    assert stored(ledger, "clusters", "c1")["patches"] == {"app": {"b": 2, "c": 3}}


def test_changes_and_documents_of_a_batch_have_bounds(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    again = op("assign", "namespaces", "free", selector="")
    monkeypatch.setattr(operations, "MAX_CHANGES", 5)
    batch = operations.Batch(parsed(again, again))
    assert "at most 5 changes" in refused(errors.Invalid, ledger, batch.work).detail
    monkeypatch.setattr(operations, "MAX_DOCUMENTS", 2)
    batch = operations.Batch(parsed(again))
    assert "at most 2 documents" in refused(errors.Invalid, ledger, batch.work).detail


def test_work_on_clusters_spends_the_budget_of_the_draft(ledger: Ledger) -> None:
    batch = operations.Batch(parsed(*[op("assign", "namespaces", "free", selector="")] * 100))
    with pytest.raises(errors.TooExpensive):
        batch.work(drafts.Draft(ledger.fleet, budgets.Budget(50)))


# Whose fault it is


def test_the_operation_that_said_what_is_wrong_is_named(ledger: Ledger) -> None:
    relabel = op("patch", "clusters", "c2", document={"labels": {"a": "b"}})
    refer = op("patch", "clusters", "c2", document={"namespaces": [{"id": "ghost"}]})
    batch = operations.Batch(parsed(relabel, refer, relabel))
    refusal = batch.blamed(refused(errors.Invalid, ledger, batch.work))
    assert (refusal.extra["index"], pointers(refusal)) == (1, ["/namespaces/0/id"])


def test_a_refusal_that_names_no_document_is_left_as_it_is() -> None:
    batch = operations.Batch([])
    refusal = errors.Unavailable("the disk is full")
    assert batch.blamed(refusal) is refusal
    assert "index" not in refusal.extra
