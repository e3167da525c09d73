"""Documents and whole states as they were, from the rows of a database: back from what is there, along the changes since."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Snapshot, Stored
from flux_resourceset.store import Key, check_reachable, digest, sql_bodies, sql_names, sql_rows
from flux_resourceset.store.sql_bodies import Kept
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_names import Names

_decode = msgspec.json.Decoder().decode


class State(NamedTuple):
    """A whole one, with documents as they are kept: the revision that last changed each, and its JSON."""

    documents: dict[Key, tuple[int, bytes]]
    names: Names

    @property
    def digest(self) -> str:
        rows = ((*key, *self.documents[key]) for key in sorted(self.documents))
        return digest(rows, self.names.tombstones.values(), self.names.forgone)


def documents(db: Connection, keys: Iterable[Key], revision: int) -> dict[Key, Stored]:
    check(db, revision)
    wanted = list(keys)
    found = sql_rows.bodies(db, wanted)
    for kept in sql_bodies.of_documents(db, wanted, revision):
        _undo(found, kept)
    return {key: Stored(_decode(body), changed) for key, (body, changed) in found.items()}


def _undo(found: dict[Key, tuple[bytes, int]], kept: Kept) -> None:
    """In bodies with the revision that last changed each."""
    key = (kept.kind, kept.id)
    body, _ = found.pop(key, (None, 0))
    before = kept.undone(body)
    if before is not None and kept.previous is not None:
        found[key] = (before, kept.previous)


def check(db: Connection, revision: int) -> None:
    now = sql_rows.standing(db)
    check_reachable(revision, now.whose.base, now.end.revision)


def snapshot(db: Connection, revision: int) -> Snapshot:
    check(db, revision)
    whose, then = sql_rows.identity(db), state(db, revision)
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


def hash_at(db: Connection, revision: int) -> str:
    row = db.execute("SELECT hash FROM entries WHERE revision = ?", (revision,)).fetchone()
    return row[0] if row else sql_rows.identity(db).base_hash


def state(db: Connection, revision: int) -> State:
    rows = db.stream("SELECT kind, id, revision, body FROM documents")
    found = {(kind, id): (body, changed) for kind, id, changed, body in rows}
    for kept in sql_bodies.newest_first(db, revision):
        _undo(found, kept)
    return State({key: (changed, body) for key, (body, changed) in found.items()}, sql_names.names_at(db, revision))


def touched(db: Connection, after: int, until: int) -> list[Key]:
    check(db, after)
    rows = db.execute("SELECT DISTINCT kind, id FROM changes WHERE revision > ? AND revision <= ?", (after, until))
    return [(kind, id) for kind, id in rows]


def revision_at(db: Connection, time: str) -> int:
    row = db.execute("SELECT revision FROM entries WHERE time <= ? ORDER BY revision DESC LIMIT 1", (time,)).fetchone()
    if row is not None:
        return int(row[0])
    whose = sql_rows.identity(db)
    if time < whose.base_time:
        raise errors.Compacted.below(whose.base, f"what was there at {time}")
    return whose.base
