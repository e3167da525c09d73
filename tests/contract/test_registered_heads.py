"""A log that is not the one that the last writer registered is doubted by every read and every write, in both databases."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.conftest import give_back, in_postgres, in_sqlite
from contract.entries import commit, create, entry, update
from contract.folding import fold
from flux_resourceset import changes, errors
from flux_resourceset.store import Store
from flux_resourceset.store.postgres import PostgresStore

DAMAGES = {
    "the newest entry": ("DELETE FROM changes WHERE revision = 3", "DELETE FROM entries WHERE revision = 3"),
    "the log": ("DELETE FROM changes", "DELETE FROM entries"),
    "everything but the identity": ("DELETE FROM changes", "DELETE FROM entries", "DELETE FROM documents"),
    "the registered end": ("DELETE FROM log_head",),
    "the identity": ("DELETE FROM identity",),
    "the newest hash": ("UPDATE entries SET hash = 'another' WHERE revision = 3",),
}


def damage(store: Store, directory: Path, *statements: str) -> None:
    if isinstance(store, PostgresStore):
        with contextlib.closing(store._target.connect()) as connection:
            connection.script("SET search_path = flux_resourceset")
            for statement in statements:
                connection.script(statement)
        return
    with contextlib.closing(sqlite3.connect(directory / "fleet.db")) as db, db:
        for statement in statements:
            db.execute(statement)


@pytest.fixture(params=[in_sqlite, in_postgres])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store, peer = request.param(tmp_path)
    commit(store, entry(1, create("n", "a", v=1)), entry(2, create("n", "b")))
    commit(store, entry(3, update("n", {"id": "a", "v": 1}, {"id": "a", "v": 2})))
    yield store
    store.close()
    peer.close()
    give_back()


@pytest.mark.parametrize("damaged", DAMAGES)
def test_a_log_that_lost_entries_is_doubted(store: Store, tmp_path: Path, damaged: str) -> None:
    before = store.head()
    damage(store, tmp_path, *DAMAGES[damaged])
    asked: list[Callable[[], object]] = [
        store.head, store.snapshot, store.epoch, lambda: store.follow(before), lambda: store.continues(before),
        lambda: store.follow_few(before, 5), lambda: store.state_at(1),
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(errors.Doubt):
            ask()
    with pytest.raises(errors.Doubt), store.begin() as transaction:
        transaction.commit(entry(4, create("n", "c")))
    assert damaged == "the identity" or store.verified().fault is not None


def test_the_end_is_registered_by_commits_folds_and_restores(store: Store) -> None:
    fold(store, 3)
    assert store.head().revision == 3
    commit(store, entry(4, create("n", "d")))
    assert (store.verified().revision, store.verified().fault) == (4, None)
    with store.begin() as transaction:
        transaction.restore(changes.Snapshot("another", 0, {}, ()), [])
    assert (store.head().revision, store.verified().fault) == (0, None)
    commit(store, entry(1, create("n", "e")))
    assert (store.head().revision, store.verified().fault) == (1, None)
