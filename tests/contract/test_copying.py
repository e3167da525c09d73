"""Whatever a store holds arrives in another one, of whichever database, or nothing does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from contract import conftest
from contract.conftest import BACKENDS
from contract.entries import commit, create, delete, entry, time, update
from contract.test_memo_contract import memo, recalled
from flux_resourceset import errors
from flux_resourceset.changes import Applied, Charge, View
from flux_resourceset.store import sql_copying
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_store import SqlStore

CLUSTER = {"id": "one", "cluster_dns": "one.example.com"}
KEPT = [name for name in BACKENDS if name != "memory"]

Make = Callable[[str], SqlStore]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    opened: list[SqlStore] = []

    def made(backend: str) -> SqlStore:
        directory = tmp_path / str(len(opened))
        directory.mkdir()
        pair = BACKENDS[backend](directory)
        opened.extend(store for store in pair if isinstance(store, SqlStore))
        return opened[-1]

    yield made
    for store in opened:
        store.close()
    conftest.give_back()


@pytest.fixture(params=itertools.product(KEPT, KEPT), ids="-to-".join)
def both(request: pytest.FixtureRequest, make: Make) -> tuple[SqlStore, SqlStore]:
    source, target = request.param
    return make(source), make(target)


def silent(table: str, rows: int) -> None:
    pass


def copy(source: SqlStore, target: SqlStore, *, replace: bool = False) -> int:
    return source.copy_into(target, replace=replace, progress=silent)


def filled(store: SqlStore) -> SqlStore:
    """A little of everything that a store can hold."""
    commit(
        store,
        entry(1, create("n", "a", text="ä\n…"), create("clusters", **CLUSTER)),
        entry(2, update("n", {"id": "a", "text": "ä\n…"}, {"id": "a", "text": "b"}), create("n", "Z"), create("n", "z")),
        entry(3, delete("clusters", CLUSTER)),
        entry(4, delete("n", {"id": "z"}), vanished=("gone.example.com",)),
    )
    applied = (Applied("n", "a", "pipeline", {"id": "a"}),)
    store.begin().commit(None, memo("key", 4), charge=Charge((View("ns", "n", "ns"),), time(4)), applied=applied)
    return store


def test_everything_arrives_under_an_epoch_of_its_own(both: tuple[SqlStore, SqlStore]) -> None:
    source, target = filled(both[0]), both[1]
    before = target.epoch()
    assert copy(source, target) == 2
    there, here = source.snapshot(), target.snapshot()
    assert (here.revision, here.hash, here.documents) == (there.revision, there.hash, there.documents)
    assert (here.tombstones, here.forgone, here.views, here.base) == (there.tombstones, there.forgone, there.views, there.base)
    assert here.epoch not in (there.epoch, before)
    assert here.replaced == (before,)
    assert target.entries(0) == source.entries(0)
    assert recalled(target, "key") == memo("key", 4)
    assert target.applied([("n", "a")]) == source.applied([("n", "a")]) != {}
    assert target.verified() == source.verified()
    assert [target.state_at(at).documents for at in range(5)] == [source.state_at(at).documents for at in range(5)]


def test_a_log_that_was_folded_arrives_with_its_base(both: tuple[SqlStore, SqlStore]) -> None:
    source, target = filled(both[0]), both[1]
    source.begin().fold(3)
    copy(source, target)
    assert target.base() == 2
    assert target.verified() == source.verified()
    assert target.verified().fault is None


def test_the_copy_goes_on(both: tuple[SqlStore, SqlStore]) -> None:
    source, target = filled(both[0]), both[1]
    copy(source, target)
    commit(target, entry(5, create("n", "new")))
    assert target.snapshot().revision == 5
    assert target.verified().fault is None
    assert source.snapshot().revision == 4


def test_a_store_that_is_not_empty_is_left_alone(both: tuple[SqlStore, SqlStore]) -> None:
    source, target = filled(both[0]), both[1]
    commit(target, entry(1, create("n", "own")))
    before = target.snapshot()
    with pytest.raises(errors.Conflict, match="--replace"):
        copy(source, target)
    assert target.snapshot() == before


def test_what_was_there_is_replaced_if_that_is_said(both: tuple[SqlStore, SqlStore]) -> None:
    source, target = filled(both[0]), both[1]
    commit(target, *(entry(number, create("n", f"own-{number}")) for number in range(1, 9)))
    before = target.epoch()
    copy(source, target, replace=True)
    assert target.snapshot().documents == source.snapshot().documents
    assert target.entries(0) == source.entries(0)
    assert before in target.snapshot().replaced
    assert target.verified().fault is None


def test_an_empty_store_can_be_copied(both: tuple[SqlStore, SqlStore]) -> None:
    assert copy(*both) == 0
    assert both[1].snapshot().revision == 0


class Lossy:
    """A connection on whose way something is changed."""

    def __init__(self, db: Connection, table: str) -> None:
        self._db = db
        self._table = table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        if f" {self._table} " in sql:
            rows = list(rows)[:-1]
        return self._db.executemany(sql, rows)


@pytest.mark.parametrize("backend", KEPT)
@pytest.mark.parametrize("table", ["changes", "documents", "memos", "tombstones_before", "applied"])
def test_what_does_not_arrive_is_noticed_and_nothing_is_written(
    make: Make, backend: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = filled(make("sqlite")), make(backend)
    before, real = target.snapshot(), sql_copying.copy

    def copied(there: Connection, here: Connection, epoch: str, progress: sql_copying.Progress) -> None:
        real(there, Lossy(here, table), epoch, progress)

    monkeypatch.setattr(sql_copying, "copy", copied)
    with pytest.raises(errors.Doubt, match=f"the {table} that arrived"):
        copy(source, target)
    assert target.snapshot() == before
