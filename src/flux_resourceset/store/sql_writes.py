"""What is written to a store in a database: entries with the documents that they change, whole fleets, and a log with a base."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import Charge, Entry, Snapshot
from flux_resourceset.store import (
    Memo,
    check_foldable,
    check_led_to,
    deltas,
    sql_applied,
    sql_connection,
    sql_names,
    sql_past,
    sql_rows,
)
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_rows import End

_encode = msgspec.json.Encoder().encode

_FAST = 1  # the level of zlib: an answer about ten thousand clusters shrinks to a tenth, and takes a tenth of a second


# Entries


def append(db: Connection, entry: Entry, hash: str | None = None) -> str:
    """Write documents and log of an entry, and register the new end of the log; return the hash of that."""
    end = _append(db, sql_rows.end(db), entry, hash)
    sql_rows.register_head(db, end.revision, end.hash)
    return end.hash


def _append(db: Connection, end: End, entry: Entry, hash: str | None = None) -> End:
    if entry.revision != end.revision + 1:
        raise errors.Doubt(f"revision {entry.revision} cannot follow revision {end.revision}; try again")
    end = End(entry.revision, hash or changes.chained(end.hash, entry), end.documents + _growth(entry))
    _write_entry(db, entry, end)
    bodies: list[tuple[str, str, int, bytes]] = []
    db.executemany(
        "INSERT INTO changes (revision, position, kind, id, operation, before, after, previous, lead, trail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((entry.revision, position, *row) for position, row in enumerate(_change_rows(db, entry, bodies))),
    )
    gone = [(change.kind, change.id) for change in entry.changes if change.after is None]
    sql_connection.run_for_keys(db, gone, "DELETE FROM documents WHERE (kind, id) IN {}")
    db.executemany(
        "INSERT INTO documents (kind, id, revision, body) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, body = excluded.body",
        bodies,
    )
    sql_applied.drop(db, gone)
    sql_names.carry_out(db, entry)
    return end


def _growth(entry: Entry) -> int:
    return sum((change.operation == "create") - (change.operation == "delete") for change in entry.changes)


def _change_rows(db: Connection, entry: Entry, bodies: list[tuple[str, str, int, bytes]]) -> Iterator[tuple[object, ...]]:
    """Against what the documents really are: whoever made the entry may have completed them. The bodies that come are added."""
    for batch in sql_connection.batches(entry.changes):
        known = sql_rows.bodies(db, ((change.kind, change.id) for change in batch))
        for change in batch:
            key = (change.kind, change.id)
            there = known.get(key)
            changes.check_operation(change, there=there is not None)
            after = None if change.after is None else _encode(change.after)
            if after is not None:
                bodies.append((*key, entry.revision, after))
            yield *key, *change_row(change.operation, there, after)


def change_row(operation: changes.Operation, there: tuple[bytes, int] | None, after: bytes | None) -> tuple[object, ...]:
    """Operation, before, after, previous, lead and trail, as a change is kept."""
    before, previous = there or (None, None)
    if before is None or after is None:
        return operation, before, after, previous, 0, 0
    delta = deltas.between(before, after)
    return operation, delta.before, delta.after, previous, delta.lead, delta.trail


def _write_entry(db: Connection, entry: Entry, end: End) -> None:
    db.execute(
        "INSERT INTO entries (revision, time, actor, on_behalf_of, request_id, reason, forced, retired, forgone, vanished,"
        " documents, hash, reverts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            entry.revision,
            entry.time,
            entry.actor,
            entry.on_behalf_of,
            entry.request_id,
            entry.reason,
            int(entry.forced),
            _encode(entry.decommissioned) if entry.decommissioned else None,
            _encode(entry.forgone) if entry.forgone else None,
            _encode(entry.vanished) if entry.vanished else None,
            end.documents,
            end.hash,
            entry.reverts,
        ),
    )


# The whole


def write_whole(db: Connection, whole: Snapshot, history: Iterable[Entry]) -> None:
    """A fleet, which its log leads to, in the place of everything."""
    before = sql_rows.identity(db)
    beside = ("tombstones", "forgone", "memos", "applied")
    for table in ("tombstones_before", "forgone_before", "changes", "entries", "documents", *beside):
        db.execute(f"DELETE FROM {table}")  # noqa: S608  # names from the lines above
    replaced = (*before.replaced, before.epoch)
    sql_rows.write_identity(db, sql_rows.Identity(whole.epoch, replaced, before.opened, 0, "", 0, "", ""))
    end = End(0, "", 0)
    for entry in history:
        end = _append(db, end, entry)
    sql_rows.register_head(db, end.revision, end.hash)
    there = sql_rows.snapshot(db)
    check_led_to(whole, there.revision, there.documents, there.tombstones)


def write_charge(db: Connection, charge: Charge) -> None:
    whose = sql_rows.identity(db)
    sql_rows.write_identity(db, whose._replace(opened=changes.vouched(charge.opened, whose.opened)))
    db.execute("DELETE FROM views")
    rows = ((view.endpoint, view.kind, view.field) for view in charge.views)
    db.executemany("INSERT INTO views (endpoint, kind, field) VALUES (?, ?, ?)", rows)


def fold(db: Connection, before: int, digest: str | None) -> int:
    """Take the entries below a revision out of the log; how many went."""
    whose, base = sql_rows.identity(db), before - 1
    check_foldable(before, sql_rows.end(db).revision)
    if base <= whose.base:
        return 0
    about = "SELECT hash, documents, time FROM entries WHERE revision = ?"
    hash, documents, time = db.execute(about, (base,)).fetchone()
    digest = digest or sql_past.state(db, base).digest
    sql_rows.write_identity(
        db,
        whose._replace(base=base, base_hash=hash, base_documents=documents, base_time=time, base_digest=digest),
    )
    for table in ("tombstones_before", "forgone_before", "changes"):
        db.execute(f"DELETE FROM {table} WHERE revision <= ?", (base,))  # noqa: S608  # names from the line above
    return db.execute("DELETE FROM entries WHERE revision <= ?", (base,)).rowcount


# Memos


def recalled(db: Connection, key: str) -> Memo | None:
    row = db.execute("SELECT key, time, digest, body FROM memos WHERE key = ?", (key,)).fetchone()
    return Memo(row[0], row[1], row[2], zlib.decompress(row[3])) if row else None


def write_memo(db: Connection, memo: Memo) -> None:
    db.execute(
        "INSERT INTO memos (key, time, digest, body) VALUES (?, ?, ?, ?) ON CONFLICT (key)"
        " DO UPDATE SET time = excluded.time, digest = excluded.digest, body = excluded.body",
        (memo.key, memo.time, memo.digest, packed(memo.body)),
    )


def packed(body: bytes) -> bytes:
    return zlib.compress(body, _FAST)
