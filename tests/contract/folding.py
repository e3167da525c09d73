"""Logs whose beginning was folded away by hand: no store does it yet, and every store must cope with it."""

from __future__ import annotations

import contextlib
import sqlite3

from flux_resourceset.changes import Head
from flux_resourceset.store import Store
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore


def fold(store: Store, base: int) -> None:
    """Take the entries up to a revision out of the log, and leave what they add up to."""
    if isinstance(store, MemoryStore):
        _fold_memory(store, base)
    else:
        assert isinstance(store, SqliteStore)
        _fold_file(store, base)


def _fold_memory(store: MemoryStore, base: int) -> None:
    count = base - store.base()
    store._base = Head("", base, store.hashes[count - 1])
    store.log, store.hashes = store.log[count:], store.hashes[count:]


def _fold_file(store: SqliteStore, base: int) -> None:
    with contextlib.closing(sqlite3.connect(store.path)) as db, db:
        hash, documents = db.execute("SELECT hash, documents FROM entries WHERE revision = ?", (base,)).fetchone()
        db.execute("UPDATE identity SET base = ?, base_hash = ?, base_documents = ?", (base, hash, documents))
        db.execute("DELETE FROM changes WHERE revision <= ?", (base,))
        db.execute("DELETE FROM entries WHERE revision <= ?", (base,))
