"""The operations of a batch: what became of every document, and which operation a refusal is about."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flux_resourceset import errors, operations
from flux_resourceset.budgets import Budget
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Outcome
from unit import samples
from unit.samples import ORIGIN, cluster, component, create, namespace

KNOWN = kind_files.load()


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "namespaces", namespace("a"), namespace("used"))
    create(made, "platform_components", component("app"))
    create(made, "clusters", cluster("c1", namespaces=[{"id": "used"}]), cluster("c2", environment="prod"))
    return made


def batch_of(*items: dict[str, Any]) -> operations.Batch:
    return operations.Batch(operations.parsed(KNOWN, {"operations": list(items)}, Budget()))


def written(ledger: Ledger, *items: dict[str, Any]) -> tuple[list[operations.Result], Outcome[None]]:
    batch = batch_of(*items)
    outcome = ledger.write_now(batch.work, ORIGIN)
    return list(batch.results(outcome.entry)), outcome


def refusal_of(ledger: Ledger, *items: dict[str, Any]) -> errors.Refusal:
    """With the index, whether the operation is refused by itself or the whole because of it."""
    before = ledger.fleet.revision

    def write() -> None:
        batch = batch_of(*items)
        asyncio.run(ledger.write(batch.work, ORIGIN, explain=batch.blamed))

    with pytest.raises(errors.Refusal) as caught:
        write()
    assert ledger.fleet.revision == before
    return caught.value


def op(name: str, kind: str, id: str, **fields: Any) -> dict[str, Any]:
    return {"op": name, "kind": kind, "id": id, **fields}


def test_every_document_that_was_touched_has_one_result_in_the_order_of_its_first_touch(ledger: Ledger) -> None:
    results, outcome = written(
        ledger,
        op("create", "namespaces", "b", document={}),
        op("patch", "namespaces", "a", document={"labels": {"x": "y"}}),
        op("patch", "namespaces", "b", document={"labels": {"x": "y"}}),
        op("assign", "namespaces", "b", clusters=["c2", "c1", "c2"]),
        op("patch", "platform_components", "app", document={}),
    )
    assert [(result.index, result.op, result.id, result.change) for result in results] == [
        (2, "patch", "b", "create"),
        (1, "patch", "a", "update"),
        (3, "assign", "c2", "update"),
        (3, "assign", "c1", "update"),
        (4, "patch", "app", "unchanged"),
    ]
    assert outcome.revision == 4
    assert [result.revision for result in results] == [4, 4, 4, 4, 2]
    new, changed = results[:2]
    assert (new.before, changed.before) == (None, {**samples.stored(ledger, "namespaces", "a"), "labels": {}})
    assert new.after == samples.stored(ledger, "namespaces", "b")
    assert results[-1].before == results[-1].after == samples.stored(ledger, "platform_components", "app")


def test_a_document_that_comes_and_goes_was_not_changed(ledger: Ledger) -> None:
    results, outcome = written(ledger, op("create", "namespaces", "b", document={}), op("delete", "namespaces", "b"))
    assert outcome.entry is None
    (result,) = results
    assert (result.change, result.revision, result.before, result.after) == ("unchanged", None, None, None)


def test_results_are_told_once_and_let_go(ledger: Ledger) -> None:
    batch = batch_of(op("delete", "namespaces", "a"), op("delete", "clusters", "c2"))
    outcome = ledger.write_now(batch.work, ORIGIN)
    assert [result.id for result in batch.results(outcome.entry)] == ["a", "c2"]
    assert list(batch.results(outcome.entry)) == []


def test_clusters_are_selected_by_labels_and_environment_as_the_batch_leaves_them(ledger: Ledger) -> None:
    results, _ = written(
        ledger,
        op("patch", "clusters", "c1", document={"labels": {"x": "y"}}),
        op("assign", "platform_components", "app", selector="x=y"),
        op("patch", "clusters", "c2", document={"labels": {"x": "y"}}),
        op("patch-values", "platform_components", "app", values={"a": "b"}, selector="x=y", environment="dev"),
        op("assign", "namespaces", "a", selector="x=y", environment="prod"),
    )
    assert {(result.id, result.index) for result in results} == {("c1", 3), ("c2", 4)}
    assert samples.stored(ledger, "clusters", "c1")["patches"] == {"app": {"a": "b"}}
    assert [ref["id"] for ref in samples.stored(ledger, "clusters", "c2")["namespaces"]] == ["a"]


@pytest.mark.parametrize(
    ("items", "kind", "index"),
    [
        ([op("delete", "namespaces", "a"), op("delete", "namespaces", "ghost")], errors.NotFound, 1),
        ([op("create", "namespaces", "b", document={}), op("create", "namespaces", "a", document={})], errors.AlreadyExists, 1),
        ([op("create", "namespaces", "b", document={"id": "other"})], errors.Invalid, 0),
        ([op("delete", "namespaces", "a"), op("delete", "namespaces", "used")], errors.InUse, 1),
        ([op("fly", "namespaces", "a")], errors.Invalid, 0),
    ],
)
def test_a_refusal_carries_the_index_of_its_operation_as_data(
    ledger: Ledger, items: list[dict[str, Any]], kind: type[errors.Refusal], index: int
) -> None:
    refusal = refusal_of(ledger, *items)
    assert type(refusal) is kind
    assert refusal.extra["index"] == index
    assert "operation 0" not in refusal.detail
    assert not refusal.detail.startswith("operation")


def test_the_operation_is_blamed_that_said_what_is_wrong_not_the_last_one_that_touched_it(ledger: Ledger) -> None:
    refusal = refusal_of(
        ledger,
        op("patch", "clusters", "c1", document={"cluster_name": "x"}),
        op("patch", "clusters", "c1", document={"platform_components": [{"id": "ghost"}]}),
        op("patch", "clusters", "c1", document={"cluster_name": "y"}),
    )
    assert refusal.extra["index"] == 1


def test_a_batch_as_a_whole_has_no_index() -> None:
    with pytest.raises(errors.Invalid) as caught:
        operations.parsed(KNOWN, {"operations": [], "more": 1}, Budget())
    assert "index" not in caught.value.extra


def test_an_unknown_field_is_named_with_its_place_beside_what_else_is_wrong() -> None:
    known = op("create", "namespaces", "x", document={})
    with pytest.raises(errors.Invalid) as caught:
        operations.parsed(KNOWN, {"operations": [known, op("create", "namespaces", "y", docs={}, **{"a/b": 1})]}, Budget())
    assert caught.value.violations == (
        ("/operations/1/docs", "is not a known field"),
        ("/operations/1/a~1b", "is not a known field"),
        ("/operations/1/document", "is required"),
    )
    assert caught.value.extra["index"] == 1


def test_a_batch_touches_a_bounded_number_of_documents(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MAX_DOCUMENTS", 2)
    refusal = refusal_of(
        ledger, op("create", "namespaces", "x", document={}), op("assign", "namespaces", "x", clusters=["c1", "c2"])
    )
    assert refusal.extra["index"] == 1
    assert "split" in refusal.detail
