"""Documents and whole states as they were, from the rows of SQLite: back from what is there, along the changes since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Snapshot, Stored
from flux_resourceset.store import Key, check_reachable, digest, sqlite_bodies, sqlite_names, sqlite_rows
from flux_resourceset.store.sqlite_names import Names

_decode = msgspec.json.Decoder().decode


class State(NamedTuple):
    """A whole one, with documents as they are kept: the revision that last changed each, and its JSON."""

    documents: dict[Key, tuple[int, bytes]]
    names: Names

    @property
    def digest(self) -> str:
        rows = ((*key, *self.documents[key]) for key in sorted(self.documents))
        return digest(rows, self.names.tombstones.values(), self.names.forgone)


def documents(db: sqlite3.Connection, keys: Iterable[Key], revision: int) -> dict[Key, Stored]:
    check(db, revision)
    return {key: stored for key in keys if (stored := _document(db, *key, revision))}


def _document(db: sqlite3.Connection, kind: str, id: str, revision: int) -> Stored | None:
    row = db.execute("SELECT body, revision FROM documents WHERE kind = ? AND id = ?", (kind, id)).fetchone()
    body: bytes | None = row[0] if row else None
    changed: int | None = row[1] if row else None
    if changed is None or changed > revision:
        for kept in sqlite_bodies.of_document(db, kind, id, revision):
            body, changed = kept.undone(body), kept.previous
    return None if body is None or changed is None else Stored(_decode(body), changed)


def check(db: sqlite3.Connection, revision: int) -> None:
    check_reachable(revision, sqlite_rows.identity(db).base, sqlite_rows.head(db).revision)


def snapshot(db: sqlite3.Connection, revision: int) -> Snapshot:
    check(db, revision)
    whose, then = sqlite_rows.identity(db), state(db, revision)
    found: dict[str, dict[str, Stored]] = {}
    for kind, id in sorted(then.documents):
        changed, body = then.documents[kind, id]
        found.setdefault(kind, {})[id] = Stored(_decode(body), changed)
    return Snapshot(
        epoch=whose.epoch,
        revision=revision,
        documents=found,
        tombstones=tuple(then.names.tombstones[dns] for dns in sorted(then.names.tombstones)),
        hash=hash_at(db, revision),
        forgone=frozenset(then.names.forgone),
        base=whose.base,
    )


def hash_at(db: sqlite3.Connection, revision: int) -> str:
    row = db.execute("SELECT hash FROM entries WHERE revision = ?", (revision,)).fetchone()
    return row[0] if row else sqlite_rows.identity(db).base_hash


def state(db: sqlite3.Connection, revision: int) -> State:
    rows = db.execute("SELECT kind, id, revision, body FROM documents")
    found = {(kind, id): (changed, body) for kind, id, changed, body in rows}
    for kept in sqlite_bodies.newest_first(db, revision):
        key = (kept.kind, kept.id)
        _, body = found.pop(key, (0, None))
        before = kept.undone(body)
        if before is not None and kept.previous is not None:
            found[key] = (kept.previous, before)
    return State(found, sqlite_names.names_at(db, revision))


def touched(db: sqlite3.Connection, after: int, until: int) -> list[Key]:
    check(db, after)
    rows = db.execute("SELECT DISTINCT kind, id FROM changes WHERE revision > ? AND revision <= ?", (after, until))
    return [(kind, id) for kind, id in rows]


def revision_at(db: sqlite3.Connection, time: str) -> int:
    row = db.execute("SELECT revision FROM entries WHERE time <= ? ORDER BY revision DESC LIMIT 1", (time,)).fetchone()
    if row is not None:
        return int(row[0])
    whose = sqlite_rows.identity(db)
    if time < whose.base_time:
        raise errors.Compacted.below(whose.base, f"what was there at {time}")
    return whose.base
