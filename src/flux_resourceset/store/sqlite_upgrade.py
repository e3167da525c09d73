"""Logs of earlier releases, whose changes hold whole documents, brought into the form of today; checked entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import Change, Decommissioned, Entry, Forgone, Tombstone
from flux_resourceset.store import Key, sql_names, sql_rows, sql_writes
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_names import Names

CHAINED = 2  # the version of the schema since which entries have hashes
WHOLE = 3  # the last one with whole documents in its log

_decode = msgspec.json.Decoder().decode
_decommissioned = msgspec.json.Decoder(tuple[Decommissioned, ...]).decode
_forgone = msgspec.json.Decoder(tuple[Forgone, ...]).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode


def convert(db: Connection, path: object, version: int) -> None:
    """A log of that version, whose tables have got their columns already. Grows with the log; holds the documents."""
    hash, names = "", Names({}, set())
    bodies: dict[Key, tuple[bytes, int]] = {}  # with the revision that changed them
    for number, row in enumerate(_rows(db), 1):
        entry, rows = _entry(db, row)
        hash = changes.chained(hash, entry)
        wrong = entry.revision != number or (version >= CHAINED and row[10:] != (len(bodies) + _growth(rows), hash))
        if wrong or not _convert_changes(db, entry, rows, bodies):
            raise _broken(path, f"revision {number} does not follow from what came before it")
        sql_names.keep(db, names.carried_out(entry))
        update = "UPDATE entries SET documents = ?, hash = ? WHERE revision = ?"
        db.execute(update, (len(bodies), hash, entry.revision))
    _check_documents(db, path, bodies)
    _check_names(db, path, names, version)
    for key, body in db.execute("SELECT key, body FROM memos").fetchall():
        db.execute("UPDATE memos SET body = ? WHERE key = ?", (sql_writes.packed(body), key))
    sql_rows.register_head(db, *sql_rows.recorded(db).end[:2])  # the hashes may be new
    sql_rows.write_identity(db, sql_rows.identity(db))


def _broken(path: object, how: str) -> errors.Doubt:
    return errors.Doubt(f"the change log of {path} is broken: {how}; nothing was changed; restore a backup")


_ENTRIES = (
    "SELECT revision, time, actor, on_behalf_of, request_id, reason, forced, retired, forgone, vanished, documents, hash"
    " FROM entries WHERE revision > ? ORDER BY revision LIMIT 1"
)


def _rows(db: Connection) -> Iterator[Sequence[Any]]:
    """One by one, for they are written to meanwhile, and a log is long."""
    revision = 0
    while row := db.execute(_ENTRIES, (revision,)).fetchone():
        yield row
        revision = row[0]


def _entry(db: Connection, row: Sequence[Any]) -> tuple[Entry, list[Sequence[Any]]]:
    """With the rows of its changes: kind, id, operation, before, after."""
    revision, time, actor, on_behalf_of, request_id, reason, forced, decommissioned, forgone, vanished = row[:10]
    of_entry = "SELECT kind, id, operation, before, after FROM changes WHERE revision = ? ORDER BY position"
    rows = db.execute(of_entry, (revision,)).fetchall()
    entry = Entry(
        revision=revision,
        time=time,
        actor=actor,
        on_behalf_of=on_behalf_of,
        request_id=request_id,
        reason=reason,
        forced=bool(forced),
        changes=tuple(Change(*each[:3], *map(_document, each[3:])) for each in rows),
        decommissioned=_decommissioned(decommissioned) if decommissioned else (),
        forgone=_forgone(forgone) if forgone else (),
        vanished=_names(vanished) if vanished else (),
    )
    return entry, rows


def _document(body: bytes | None) -> changes.Document | None:
    return None if body is None else _decode(body)


def _growth(rows: list[Sequence[Any]]) -> int:
    return sum((operation == "create") - (operation == "delete") for _, _, operation, _, _ in rows)


def _convert_changes(db: Connection, entry: Entry, rows: list[Sequence[Any]], bodies: dict[Key, tuple[bytes, int]]) -> bool:
    """Whether they fit what came before them."""
    made = []
    for position, (kind, id, operation, _, after) in enumerate(rows):
        there = bodies.pop((kind, id), None)
        if operation != changes.operation(there=there is not None, stays=after is not None):
            return False
        made.append((*sql_writes.change_row(operation, there, after), entry.revision, position))
        if after is not None:
            bodies[kind, id] = (after, entry.revision)
    update = "UPDATE changes SET operation = ?, before = ?, after = ?, previous = ?, lead = ?, trail = ?"
    db.executemany(f"{update} WHERE revision = ? AND position = ?", made)
    return True


def _check_documents(db: Connection, path: object, bodies: dict[Key, tuple[bytes, int]]) -> None:
    """They are those that the log leads to, byte by byte from now on."""
    there = db.execute("SELECT kind, id, revision, body FROM documents").fetchall()
    for kind, id, revision, body in there:
        wanted, changed = bodies.get((kind, id), (b"null", 0))
        if changed != revision or (body != wanted and _decode(body) != _decode(wanted)):
            raise _broken(path, f"it does not lead to {kind} {id!r}")
        if body != wanted:
            db.execute("UPDATE documents SET body = ? WHERE kind = ? AND id = ?", (wanted, kind, id))
    if len(there) != len(bodies):
        raise _broken(path, f"it leads to {len(bodies)} documents, and there are {len(there)}")


def _check_names(db: Connection, path: object, names: Names, version: int) -> None:
    tombstones = {Tombstone(*row) for row in db.execute("SELECT dns, id, revision FROM tombstones")}
    if tombstones != set(names.tombstones.values()):
        raise _broken(path, "it does not lead to the tombstones")
    if version < CHAINED:
        db.executemany("INSERT INTO forgone (kind, id) VALUES (?, ?)", sorted(names.forgone))
    elif set(db.execute("SELECT kind, id FROM forgone")) != names.forgone:
        raise _broken(path, "it does not lead to the definitions that were deleted by force")
