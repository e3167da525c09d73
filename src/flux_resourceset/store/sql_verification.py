"""A store in a database held against itself: the chain of its log, every change, and that documents are what the log leads to.

Forwards from the base, entry by entry; what is held are the documents, however long the log is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import CLUSTERS, Change, Document, Entry, Tombstone
from flux_resourceset.store import (
    Fault,
    Verified,
    applied_to_nothing,
    sql_applied,
    sql_bodies,
    sql_log,
    sql_names,
    sql_past,
    sql_rows,
)
from flux_resourceset.store.sql_bodies import Kept
from flux_resourceset.store.sql_connection import Connection, Row, Runs
from flux_resourceset.store.sql_names import Found, Names
from flux_resourceset.store.sql_past import State


class _Named(msgspec.Struct):
    cluster_dns: str


_named = msgspec.json.Decoder(_Named).decode


class _Wrong(Exception):
    def __init__(self, revision: int, what: str) -> None:
        super().__init__(what)
        self.fault = Fault(revision, what)


def verified(db: Connection) -> Verified:
    documents, fault = 0, None
    try:
        state = _base(db)
        _replay(db, state)
        documents = len(state.documents)
        _compare(db, state)
    except _Wrong as wrong:
        fault = wrong.fault
    there = sql_rows.recorded(db)
    return Verified(there.whose.base, there.end.revision, documents, fault)


def _base(db: Connection) -> State:
    """What the log begins with: nothing, or what all of it undone leaves."""
    whose = sql_rows.recorded(db).whose
    (seal,) = db.execute("SELECT seal FROM identity").fetchone()
    if seal != whose.seal or db.execute("SELECT count(*) FROM identity").fetchone() != (1,):
        raise _Wrong(whose.base, "the identity of the store is not the one that was sealed")
    if whose.base == 0:
        return State({}, Names({}, set()))
    try:
        state = sql_past.state(db, whose.base)
    except sql_bodies.Damage as damage:
        raise _Wrong(damage.revision, damage.detail) from damage
    if state.digest != whose.base_digest or len(state.documents) != whose.base_documents:
        raise _Wrong(whose.base, "the rest of the log does not lead back to what it was folded into")
    return state


def _replay(db: Connection, state: State) -> None:
    there = sql_rows.recorded(db)
    whose = there.whose
    revision, hash = whose.base, whose.base_hash
    made, (tombstones, forgone) = Runs(db.stream(_CHANGES)), sql_names.found(db)
    for row in db.stream(_ENTRIES):
        revision += 1
        if row[0] != revision:
            raise _Wrong(revision, f"an entry of revision {row[0]} stands in its place")
        try:
            entry = _entry(row, made, state)
        except (errors.Doubt, msgspec.DecodeError, msgspec.ValidationError, TypeError) as exc:
            raise _Wrong(revision, f"it cannot be read: {exc}") from exc
        hash = changes.chained(hash, entry)
        if row[11:] != (len(state.documents), hash):
            raise _Wrong(revision, "its hash does not fit what it says and what came before it")
        try:
            found = state.names.carried_out(entry)
        except (KeyError, TypeError) as exc:
            raise _Wrong(revision, f"a cluster lacks {exc}") from exc
        if Found(list(tombstones.of(revision)), list(forgone.of(revision))) != found:
            raise _Wrong(revision, "the tombstones that it found are not those that were there")
    _check_strays(db, whose.base, revision)
    if there.fault:
        raise _Wrong(revision, there.fault)


def _check_strays(db: Connection, base: int, end: int) -> None:
    for table in ("changes", "tombstones_before", "forgone_before"):
        stray = f"SELECT min(revision) FROM {table} WHERE revision <= ? OR revision > ?"  # noqa: S608  # names from the line above
        (found,) = db.execute(stray, (base, end)).fetchone()
        if found is not None:
            raise _Wrong(found, f"there is no such entry, and {table} speaks of it")


_ENTRIES = f"SELECT {sql_log.ABOUT}, e.retired, e.forgone, e.vanished, e.documents, e.hash FROM entries AS e ORDER BY e.revision"  # noqa: S608  # our words


_CHANGES = f"SELECT {sql_bodies.COLUMNS}, c.position FROM changes AS c ORDER BY c.revision, c.position"  # noqa: S608  # our words


def _entry(row: Sequence[Any], made: Runs, state: State) -> Entry:
    """Carried out on the documents, and whole."""
    if row[6] not in (0, 1):
        raise errors.Doubt(f"forced is {row[6]}")
    return sql_log.entry(row, tuple(_changes(row[0], made.of(row[0]), state)))


def _changes(revision: int, rows: Iterable[Row], state: State) -> Iterator[Change]:
    for number, (*columns, position) in enumerate(rows):
        kept = Kept._make(columns)
        key = (kept.kind, kept.id)
        previous, before = state.documents.pop(key, (None, None))
        after = kept.applied(before)
        if position != number or kept.previous != previous:
            raise kept.misfit()
        if after is not None:
            state.documents[key] = (revision, after)
        yield Change(*key, kept.operation, _told(kept.kind, before), sql_log.document(after))


def _told(kind: str, before: bytes | None) -> Document | None:
    """All that an entry tells of a document before it: the chain is about what it became, tombstones are about names."""
    if before is None:
        return None
    return {"cluster_dns": _named(before).cluster_dns} if kind == CLUSTERS else {}


def _compare(db: Connection, state: State) -> None:
    """What the log leads to with what is there."""
    wrong: list[Fault] = []
    for kind, id, revision, body in db.stream("SELECT kind, id, revision, body FROM documents"):
        wanted = state.documents.pop((kind, id), None)
        if wanted != (revision, body):
            wrong.append(Fault(wanted[0] if wanted else revision, f"{kind} {id!r} is not what the log leads to"))
    for (kind, id), (revision, _) in state.documents.items():
        wrong.append(Fault(revision, f"{kind} {id!r} is missing"))
    there = sql_names.names(db)
    wrong += _unlike(there.tombstones, state.names.tombstones)
    end = sql_rows.recorded(db).end.revision
    unlike = sorted(there.forgone ^ state.names.forgone)
    wrong += [Fault(end, f"whether {kind} {id!r} may be done without is not what the log leads to") for kind, id in unlike]
    wrong += [Fault(end, applied_to_nothing(*key)) for key in sql_applied.strays(db)]
    wrong += [Fault(end, f"what was applied to {kind} {id!r} cannot be read") for kind, id in sql_applied.unreadable(db)]
    if wrong:
        first = min(wrong)
        raise _Wrong(*first)


def _unlike(there: dict[str, Tombstone], wanted: dict[str, Tombstone]) -> Iterator[Fault]:
    for dns in there.keys() | wanted.keys():
        if there.get(dns) != wanted.get(dns):
            known = wanted.get(dns) or there[dns]
            yield Fault(known.revision, f"the tombstone of {dns} is not what the log leads to")
