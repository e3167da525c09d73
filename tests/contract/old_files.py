"""Database files as earlier releases left them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from flux_resourceset import changes
from flux_resourceset.changes import Document, Entry, Stored, Tombstone
from flux_resourceset.store import sqlite_files

_encode = msgspec.json.encode


def _body(document: Document | None) -> bytes | None:
    return None if document is None else _encode(document)


def write(path: Path, entries: Sequence[Entry], version: int = 3, epoch: str = "old") -> str:
    """A file of the second or third version of the schema, with whole documents in its log; the hash of the log's end."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for script in sqlite_files.migrations()[:version]:
            db.executescript(script)
        db.execute("INSERT INTO identity (epoch) VALUES (?)", (epoch,))
        hash = _write_log(db, entries)
        db.execute(f"PRAGMA application_id = {sqlite_files.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {version}")
        db.commit()
    return hash


def _write_log(db: sqlite3.Connection, entries: Sequence[Entry]) -> str:
    hash = ""
    documents: dict[str, dict[str, Stored]] = {}
    tombstones: dict[str, Tombstone] = {}
    forgone: set[tuple[str, str]] = set()
    for entry in entries:
        hash = changes.chained(hash, entry)
        changes.settle(documents, tombstones, entry)
        changes.forgo(forgone, entry)
        count = sum(map(len, documents.values()))
        _write_entry(db, entry, hash, count)
    rows = [(kind, id, each.revision, _encode(each.body)) for kind, some in documents.items() for id, each in some.items()]
    db.executemany("INSERT INTO documents (kind, id, revision, body) VALUES (?, ?, ?, ?)", rows)
    buried = [(each.dns, each.id, each.revision) for each in tombstones.values()]
    db.executemany("INSERT INTO tombstones (dns, id, revision) VALUES (?, ?, ?)", buried)
    db.executemany("INSERT INTO forgone (kind, id) VALUES (?, ?)", sorted(forgone))
    return hash


def _write_entry(db: sqlite3.Connection, entry: Entry, hash: str, documents: int) -> None:
    about = (entry.revision, entry.time, entry.actor, entry.on_behalf_of, entry.request_id, entry.reason, int(entry.forced))
    names = (_encode(each) if each else None for each in (entry.decommissioned, entry.forgone, entry.vanished))
    db.execute(
        "INSERT INTO entries (revision, time, actor, on_behalf_of, request_id, reason, forced, retired, forgone, vanished,"
        " documents, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*about, *names, documents, hash),
    )
    db.executemany(
        "INSERT INTO changes (revision, position, kind, id, operation, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (entry.revision, position, each.kind, each.id, each.operation, _body(each.before), _body(each.after))
            for position, each in enumerate(entry.changes)
        ],
    )


def forget_applied(path: Path) -> None:
    """A good file of today as the fourth version of the schema had it: without what managers applied."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE applied; PRAGMA user_version = 4")
        forget_head(db)


def forget_head(db: sqlite3.Connection) -> None:
    """As versions before the sixth had it: without the registered end of the log."""
    db.execute("DROP TABLE log_head")
