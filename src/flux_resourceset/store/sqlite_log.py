"""The change log as rows of SQLite: any stretch of it, and what a query asks for."""

from __future__ import annotations

import itertools
import operator
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from flux_resourceset.changes import Change, Decommissioned, Document, Entry, Forgone, Operation, Query

_decode = msgspec.json.Decoder().decode
_decommissioned = msgspec.json.Decoder(tuple[Decommissioned, ...]).decode
_forgone = msgspec.json.Decoder(tuple[Forgone, ...]).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode


def entries(db: sqlite3.Connection, after: int, until: int | None = None, *, followed: bool = False) -> Iterator[Entry]:
    """The log above a revision, up to and including another one or else to its end, oldest first; for those who follow it
    without what documents were before."""
    where, values = "e.revision > ?", [after]
    if until is not None:
        where, values = f"{where} AND e.revision <= ?", [after, until]
    return _read(db, where, values, ascending=True, followed=followed)


class Matching(NamedTuple):
    revision: int
    changes: int


def matching(db: sqlite3.Connection, query: Query) -> list[Matching]:
    """Which entries a query asks for, in its order."""
    where, values = _where(query)
    order = "ASC" if query.ascending else "DESC"
    # positions count from 0, and the last one is found without reading the others
    last = "SELECT max(changes.position) FROM changes WHERE changes.revision = entries.revision"
    rows = db.execute(
        f"SELECT revision, coalesce(({last}) + 1, 0)"  # noqa: S608  # our words
        f" FROM entries WHERE {where} ORDER BY revision {order} LIMIT {query.limit:d}",
        values,
    )
    return [Matching(*row) for row in rows]


def chosen(db: sqlite3.Connection, revisions: Sequence[int], *, ascending: bool) -> Iterator[Entry]:
    """Those with these revisions."""
    return _read(db, f"e.revision IN ({', '.join('?' * len(revisions))})", revisions, ascending=ascending)


def _read(
    db: sqlite3.Connection, where: str, values: Sequence[object], *, ascending: bool, followed: bool = False
) -> Iterator[Entry]:
    """Entries with their changes, in one walk over both tables. What may be large stands in the first row of an entry only."""
    first = "coalesce(c.position, 0) = 0"
    rows = db.execute(
        "SELECT e.revision, e.time, e.actor, e.on_behalf_of, e.request_id, e.reason, e.forced, e.reverts,"  # noqa: S608  # our words
        f" CASE WHEN {first} THEN e.retired END, CASE WHEN {first} THEN e.forgone END, CASE WHEN {first} THEN e.vanished END,"
        f" c.kind, c.id, c.operation, {'NULL' if followed else 'c.before'}, c.after"
        " FROM entries AS e LEFT JOIN changes AS c ON c.revision = e.revision"
        f" WHERE {where} ORDER BY e.revision {'ASC' if ascending else 'DESC'}, c.position",
        values,
    )
    for _, of_entry in itertools.groupby(rows, key=operator.itemgetter(0)):
        yield _entry(of_entry)


def _entry(rows: Iterator[Sequence[Any]]) -> Entry:
    first = next(rows)
    revision, time, actor, on_behalf_of, request_id, reason, forced, reverts, decommissioned, forgone, vanished = first[:11]
    made = itertools.chain([first], rows) if first[11] is not None else ()  # an entry may bring names only
    return Entry(
        revision=revision,
        time=time,
        actor=actor,
        on_behalf_of=on_behalf_of,
        request_id=request_id,
        reason=reason,
        forced=bool(forced),
        changes=tuple(_change(*row[11:]) for row in made),
        decommissioned=_decommissioned(decommissioned) if decommissioned else (),
        forgone=_forgone(forgone) if forgone else (),
        vanished=_names(vanished) if vanished else (),
        reverts=reverts,
    )


def _change(kind: str, id: str, operation: Operation, before: bytes | None, after: bytes | None) -> Change:
    return Change(kind, id, operation, _document(before), _document(after))


def _where(query: Query) -> tuple[str, list[object]]:
    terms = {
        "revision < ?": query.before,
        "revision > ?": query.after,
        "actor = ?": query.actor,
        "time >= ?": query.since,
        "time <= ?": query.until,
    }
    of_change = {"kind = ?": query.kind, "id = ?": query.id}
    where = [term for term, value in terms.items() if value is not None]
    values: list[object] = [value for value in terms.values() if value is not None]
    inner = [term for term, value in of_change.items() if value is not None]
    if inner:
        # not EXISTS: where nothing matches, that reads every document of the log, and this only an index
        where.append(f"revision IN (SELECT revision FROM changes WHERE {' AND '.join(inner)})")  # noqa: S608  # our words
        values += [value for value in of_change.values() if value is not None]
    return " AND ".join(where) or "true", values


def _document(body: bytes | None) -> Document | None:
    return None if body is None else _decode(body)
