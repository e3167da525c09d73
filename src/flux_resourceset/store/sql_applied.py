"""What managers applied last, in the rows of a database: beside the documents, in no entry of the log."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from flux_resourceset.changes import Applied, Document
from flux_resourceset.store import Key, sql_connection
from flux_resourceset.store.sql_connection import Connection

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Document).decode


def of(db: Connection, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
    """By manager; only of those to which anything was applied."""
    found: dict[Key, dict[str, Document]] = {}
    statement = "SELECT kind, id, manager, body FROM applied WHERE (kind, id) IN {} ORDER BY kind, id, manager"
    for kind, id, manager, body in sql_connection.of_keys(db, keys, statement.format):
        found.setdefault((kind, id), {})[manager] = _decode(body)
    return found


def by(db: Connection, manager: str, kinds: Collection[str]) -> list[Key]:
    rows = "SELECT kind, id FROM applied WHERE manager = ? AND kind = ? ORDER BY id"
    return [(kind, id) for name in sorted(kinds) for kind, id in db.execute(rows, (manager, name))]


def write(db: Connection, applied: Iterable[Applied]) -> None:
    latest = {(each.kind, each.id, each.manager): each.document for each in applied}
    db.executemany("DELETE FROM applied WHERE kind = ? AND id = ? AND manager = ?", list(latest))
    kept = ((*key, _encode(document)) for key, document in latest.items() if document is not None)
    db.executemany("INSERT INTO applied (kind, id, manager, body) VALUES (?, ?, ?, ?)", kept)


def drop(db: Connection, keys: Iterable[Key]) -> None:
    sql_connection.run_for_keys(db, keys, "DELETE FROM applied WHERE (kind, id) IN {}")


def strays(db: Connection) -> list[Key]:
    """Documents that are not there, to which something was applied all the same."""
    return db.execute(
        "SELECT DISTINCT a.kind, a.id FROM applied AS a"
        " LEFT JOIN documents AS d ON d.kind = a.kind AND d.id = a.id WHERE d.id IS NULL ORDER BY a.kind, a.id"
    ).fetchall()


def unreadable(db: Connection) -> list[Key]:
    """Documents of which what was applied to them cannot be read."""
    found = []
    for kind, id, body in db.stream("SELECT kind, id, body FROM applied ORDER BY kind, id, manager"):
        try:
            _decode(body)
        except msgspec.DecodeError:
            found.append((kind, id))
    return found
