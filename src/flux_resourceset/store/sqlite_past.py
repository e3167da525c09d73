"""Documents as they were, from the rows of SQLite: back from what is there, along the changes since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import Entry, Snapshot, Stored
from flux_resourceset.store import Key, check_foldable, check_reachable, digest, sqlite_log, sqlite_rows

_decode = msgspec.json.Decoder().decode


def documents(db: sqlite3.Connection, keys: Iterable[Key], revision: int) -> dict[Key, Stored]:
    _check(db, revision)
    return {key: stored for key in keys if (stored := _document(db, *key, revision))}


def _document(db: sqlite3.Connection, kind: str, id: str, revision: int) -> Stored | None:
    present = sqlite_rows.document(db, kind, id)
    if present is not None and present.revision <= revision:
        return present
    row = db.execute(
        "SELECT revision, after FROM changes WHERE kind = ? AND id = ? AND revision <= ? ORDER BY revision DESC LIMIT 1",
        (kind, id, revision),
    ).fetchone()
    if row is not None:
        return None if row[1] is None else Stored(_decode(row[1]), row[0])
    row = db.execute(
        "SELECT before FROM changes WHERE kind = ? AND id = ? AND revision > ? ORDER BY revision LIMIT 1", (kind, id, revision)
    ).fetchone()
    return Stored(_decode(row[0]), 0) if row and row[0] else None


def _check(db: sqlite3.Connection, revision: int) -> None:
    check_reachable(revision, sqlite_rows.identity(db).base, sqlite_rows.head(db).revision)


def state(db: sqlite3.Connection, revision: int) -> Snapshot:
    _check(db, revision)
    now = sqlite_rows.snapshot(db)
    keys = {(kind, id) for kind, of_kind in now.documents.items() for id in of_kind} | sqlite_rows.changed(db, revision)
    then: dict[str, dict[str, Stored]] = {}
    for (kind, id), stored in sorted(documents(db, keys, revision).items()):
        then.setdefault(kind, {})[id] = stored
    entries = list(sqlite_log.entries(db, 0, revision))
    forgone: set[Key] = set()
    for entry in entries:
        changes.forgo(forgone, entry)
    tombstones = changes.replayed(entries)[1]
    row = db.execute("SELECT hash FROM entries WHERE revision = ?", (revision,)).fetchone()
    hash = row[0] if row else sqlite_rows.identity(db).base_hash
    return Snapshot(now.epoch, revision, then, tombstones, hash, frozenset(forgone), base=now.base)


def touches(db: sqlite3.Connection, kind: str, id: str, before: int | None, limit: int) -> list[Entry]:
    if before is not None:
        check_reachable(before - 1, sqlite_rows.identity(db).base, max(sqlite_rows.head(db).revision, before))
    found = sqlite_log.matching(db, changes.Query(kind=kind, id=id, before=before, limit=limit))
    entries = sqlite_log.chosen(db, [each.revision for each in found], ascending=False)
    return [
        changes.narrowed(entry, next(change for change in entry.changes if (change.kind, change.id) == (kind, id)))
        for entry in entries
    ]


def revision_at(db: sqlite3.Connection, time: str) -> int:
    row = db.execute("SELECT revision FROM entries WHERE time <= ? ORDER BY revision DESC LIMIT 1", (time,)).fetchone()
    base = sqlite_rows.identity(db).base
    if row is None and base:
        raise errors.Compacted.below(base, f"what was there at {time}")
    return row[0] if row else 0


def state_digest(db: sqlite3.Connection, revision: int) -> str:
    then = state(db, revision)
    rows = (
        (kind, id, stored.revision, msgspec.json.encode(stored.body))
        for kind, of_kind in then.documents.items()
        for id, stored in of_kind.items()
    )
    return digest(rows, then.tombstones, then.forgone)


def fold(db: sqlite3.Connection, before: int) -> int:
    check_foldable(before, sqlite_rows.head(db).revision)
    row = db.execute("SELECT hash, documents FROM entries WHERE revision = ?", (before - 1,)).fetchone()
    if row is None:
        return 0
    db.execute("UPDATE identity SET base = ?, base_hash = ?, base_documents = ?", (before - 1, *row))
    db.execute("DELETE FROM changes WHERE revision < ?", (before,))
    return db.execute("DELETE FROM entries WHERE revision < ?", (before,)).rowcount
