"""What managers applied last, in the rows of SQLite: beside the documents, in no entry of the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

import msgspec

from flux_resourceset.changes import Applied, Document
from flux_resourceset.store import Key

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Document).decode


def of(db: sqlite3.Connection, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
    """By manager; only of those to which anything was applied."""
    found: dict[Key, dict[str, Document]] = {}
    for key in keys:
        rows = db.execute("SELECT manager, body FROM applied WHERE kind = ? AND id = ? ORDER BY manager", key).fetchall()
        if rows:
            found[key] = {manager: _decode(body) for manager, body in rows}
    return found


def by(db: sqlite3.Connection, manager: str, kinds: Collection[str]) -> list[Key]:
    rows = "SELECT kind, id FROM applied WHERE manager = ? AND kind = ? ORDER BY id"
    return [(kind, id) for name in sorted(kinds) for kind, id in db.execute(rows, (manager, name))]


def write(db: sqlite3.Connection, applied: Iterable[Applied]) -> None:
    for each in applied:
        key = (each.kind, each.id, each.manager)
        if each.document is None:
            db.execute("DELETE FROM applied WHERE kind = ? AND id = ? AND manager = ?", key)
        else:
            insert = "INSERT OR REPLACE INTO applied (kind, id, manager, body) VALUES (?, ?, ?, ?)"
            db.execute(insert, (*key, _encode(each.document)))


def drop(db: sqlite3.Connection, keys: Iterable[Key]) -> None:
    db.executemany("DELETE FROM applied WHERE kind = ? AND id = ?", keys)


def strays(db: sqlite3.Connection) -> list[Key]:
    """Documents that are not there, to which something was applied all the same."""
    return db.execute(
        "SELECT DISTINCT a.kind, a.id FROM applied AS a"
        " LEFT JOIN documents AS d ON d.kind = a.kind AND d.id = a.id WHERE d.id IS NULL ORDER BY a.kind, a.id"
    ).fetchall()


def unreadable(db: sqlite3.Connection) -> list[Key]:
    """Documents of which what was applied to them cannot be read."""
    found = []
    for kind, id, body in db.execute("SELECT kind, id, body FROM applied ORDER BY kind, id, manager"):
        try:
            _decode(body)
        except msgspec.DecodeError:
            found.append((kind, id))
    return found
