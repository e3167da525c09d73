"""Entries, documents and what goes with them, as rows of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import Charge, Entry, Head, Snapshot, Stored, Tombstone, View
from flux_resourceset.store import sqlite_log

_DOCUMENT_BYTES = 4096  # of one that is not large
_BROUGHT_BYTES = 64  # of a name that an import brings along, about

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode


# Where the log stands


class Identity(NamedTuple):
    epoch: str
    replaced: tuple[str, ...]
    opened: str
    base: int  # the revision up to which the log was folded away
    base_hash: str
    base_documents: int


def identity(db: sqlite3.Connection) -> Identity:
    row = db.execute("SELECT epoch, replaced, opened, base, base_hash, base_documents FROM identity").fetchone()
    if row is None:
        raise errors.Doubt("the database has lost its identity; restore a backup")
    return Identity(row[0], _names(row[1]), *row[2:])


def head(db: sqlite3.Connection) -> Head:
    whose, end = identity(db), _end(db)
    return Head(whose.epoch, end.revision, end.hash)


class _End(NamedTuple):
    revision: int
    hash: str
    documents: int  # how many there are


def _end(db: sqlite3.Connection) -> _End:
    """Where the log ends; one without entries ends at its base."""
    row = db.execute("SELECT revision, hash, documents FROM entries ORDER BY revision DESC LIMIT 1").fetchone()
    if row is not None:
        return _End(*row)
    whose = identity(db)
    return _End(whose.base, whose.base_hash, whose.base_documents)


def continues(db: sqlite3.Connection, known: Head) -> bool:
    """Whether the log goes on from a head, or ends there."""
    whose = identity(db)
    if whose.epoch != known.epoch or known.revision < whose.base:
        return False
    if known.revision == whose.base:
        return known.hash == whose.base_hash
    row = db.execute("SELECT hash FROM entries WHERE revision = ?", (known.revision,)).fetchone()
    return row is not None and row[0] == known.hash


def check_whole(db: sqlite3.Connection, path: object) -> None:
    """The log has no gaps, and the documents are those that it speaks of. Grows with documents, and a little with the log."""
    base, end = identity(db).base, _end(db)
    first, count = db.execute("SELECT min(revision), count(*) FROM entries").fetchone()
    if end.revision - base != count or (count and first != base + 1):
        since = f" since revision {base}" if base else ""
        raise errors.Doubt(f"the change log of {path} has {count} entries up to revision {end.revision}{since}; restore a backup")
    wanted, there = end.documents, db.execute("SELECT count(*) FROM documents").fetchone()[0]
    if wanted != there:
        raise errors.Doubt(f"{path} has {there} documents, and its log speaks of {wanted}; restore a backup")
    unlike = db.execute(
        "SELECT kind, id FROM documents WHERE revision IS NOT coalesce("
        "(SELECT max(c.revision) FROM changes AS c WHERE c.kind = documents.kind AND c.id = documents.id),"
        " CASE WHEN revision <= ? THEN revision END) LIMIT 1",  # what last changed it may be folded away
        (base,),
    ).fetchone()
    if unlike:
        raise errors.Doubt(f"{path}: {unlike[0]} {unlike[1]!r} is not what the log says it is; restore a backup")


# Reading


def snapshot(db: sqlite3.Connection) -> Snapshot:
    whose, at = identity(db), head(db)
    documents: dict[str, dict[str, Stored]] = {}
    for kind, id, revision, body in db.execute("SELECT kind, id, revision, body FROM documents ORDER BY kind, id"):
        documents.setdefault(kind, {})[id] = Stored(_decode(body), revision)
    tombstones = db.execute("SELECT dns, id, revision FROM tombstones ORDER BY dns").fetchall()
    forgone = db.execute("SELECT kind, id FROM forgone").fetchall()
    return Snapshot(
        epoch=whose.epoch,
        revision=at.revision,
        documents=documents,
        tombstones=tuple(Tombstone(*row) for row in tombstones),
        hash=at.hash,
        forgone=frozenset(forgone),
        views=views(db),
        replaced=whose.replaced,
        opened=whose.opened,
        base=whose.base,
    )


def views(db: sqlite3.Connection) -> tuple[View, ...]:
    return tuple(View(*row) for row in db.execute("SELECT endpoint, kind, field FROM views ORDER BY endpoint"))


def document(db: sqlite3.Connection, kind: str, id: str) -> Stored | None:
    row = db.execute("SELECT body, revision FROM documents WHERE kind = ? AND id = ?", (kind, id)).fetchone()
    return Stored(_decode(row[0]), row[1]) if row else None


def has_more(db: sqlite3.Connection, after: int, few: int) -> bool:
    """Whether the log behind a revision changes, or brings along, more than a few, or few that are large. Grows with these."""
    first = "SELECT length(after) AS size FROM changes WHERE revision > ? LIMIT ?"
    count, size = db.execute(f"SELECT count(*), total(size) FROM ({first})", (after, few + 1)).fetchone()  # noqa: S608  # our words
    (brought,) = db.execute(
        "SELECT total(length(retired)) + total(length(forgone)) FROM entries WHERE revision > ?", (after,)
    ).fetchone()
    return bool(count > few or size > few * _DOCUMENT_BYTES or brought > few * _BROUGHT_BYTES)


def changed(db: sqlite3.Connection, after: int) -> frozenset[tuple[str, str]]:
    """Kind and id of every document that was changed behind a revision. A microsecond or two for each."""
    return frozenset(db.execute("SELECT kind, id FROM changes WHERE revision > ?", (after,)))


# Writing


def append(db: sqlite3.Connection, entry: Entry, hash: str | None = None) -> str:
    """Documents and log of an entry, on top of what is there; the hash of the log's new end."""
    end = _end(db)
    if entry.revision != end.revision + 1:
        raise errors.Doubt(f"revision {entry.revision} cannot follow revision {end.revision}; try again")
    hash = hash or changes.chained(end.hash, entry)
    _write_documents(db, entry)
    _write_entry(db, entry, hash, end.documents + _growth(entry))
    return hash


def _growth(entry: Entry) -> int:
    return sum((change.before is None) - (change.after is None) for change in entry.changes)


def write_whole(db: sqlite3.Connection, whole: Snapshot, history: Iterable[Entry]) -> str:
    """A fleet with its log in the place of everything; the hash of the log's end."""
    before = identity(db)
    for table in ("changes", "entries", "documents", "tombstones", "forgone", "memos"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608  # names from the line above
    replaced = [*before.replaced, before.epoch]
    db.execute(
        "UPDATE identity SET epoch = ?, replaced = ?, base = 0, base_hash = '', base_documents = 0",
        (whole.epoch, msgspec.json.encode(replaced).decode()),
    )
    hash, documents = "", 0
    for entry in history:
        hash, documents = changes.chained(hash, entry), documents + _growth(entry)
        _write_entry(db, entry, hash, documents)
        _write_forgone(db, entry)
    db.executemany(
        "INSERT INTO documents (kind, id, revision, body) VALUES (?, ?, ?, ?)",
        (
            (kind, id, stored.revision, _encode(stored.body))
            for kind, of_kind in whole.documents.items()
            for id, stored in of_kind.items()
        ),
    )
    rows = ((tombstone.dns, tombstone.id, tombstone.revision) for tombstone in whole.tombstones)
    db.executemany("INSERT INTO tombstones (dns, id, revision) VALUES (?, ?, ?)", rows)
    return hash


def write_charge(db: sqlite3.Connection, charge: Charge) -> None:
    db.execute("UPDATE identity SET opened = ?", (charge.opened,))
    db.execute("DELETE FROM views")
    rows = ((view.endpoint, view.kind, view.field) for view in charge.views)
    db.executemany("INSERT INTO views (endpoint, kind, field) VALUES (?, ?, ?)", rows)


def chain_anew(db: sqlite3.Connection) -> None:
    """What version 2 knows of a log that was written before it. Grows with the log."""
    hash, documents = "", 0
    for entry in sqlite_log.entries(db, 0):
        hash, documents = changes.chained(hash, entry), documents + _growth(entry)
        db.execute("UPDATE entries SET hash = ?, documents = ? WHERE revision = ?", (hash, documents, entry.revision))
        _write_forgone(db, entry)


def _write_documents(db: sqlite3.Connection, entry: Entry) -> None:
    gone = [(change.kind, change.id) for change in entry.changes if change.after is None]
    kept = ((c.kind, c.id, entry.revision, _encode(c.after)) for c in entry.changes if c.after is not None)
    db.executemany("DELETE FROM documents WHERE kind = ? AND id = ?", gone)
    db.executemany("INSERT OR REPLACE INTO documents (kind, id, revision, body) VALUES (?, ?, ?, ?)", kept)
    for dns, tombstone in changes.tombstone_changes(entry):
        if tombstone is None:
            db.execute("DELETE FROM tombstones WHERE dns = ?", (dns,))
        else:
            db.execute(
                "INSERT OR REPLACE INTO tombstones (dns, id, revision) VALUES (?, ?, ?)", (dns, tombstone.id, tombstone.revision)
            )
    _write_forgone(db, entry)


def _write_forgone(db: sqlite3.Connection, entry: Entry) -> None:
    for key, may in changes.forgoings(entry):
        if may:
            db.execute("INSERT OR REPLACE INTO forgone (kind, id) VALUES (?, ?)", key)
        else:
            db.execute("DELETE FROM forgone WHERE kind = ? AND id = ?", key)


def _write_entry(db: sqlite3.Connection, entry: Entry, hash: str, documents: int) -> None:
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
            documents,
            hash,
            entry.reverts,
        ),
    )
    db.executemany(
        "INSERT INTO changes (revision, position, kind, id, operation, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (entry.revision, position, c.kind, c.id, c.operation, _body(c.before), _body(c.after))
            for position, c in enumerate(entry.changes)
        ),
    )


def _body(document: changes.Document | None) -> bytes | None:
    return None if document is None else _encode(document)
