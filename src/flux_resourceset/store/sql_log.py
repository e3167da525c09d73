"""The change log as rows of a database: any stretch of it, and what a query asks for."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from flux_resourceset.changes import Change, Decommissioned, Document, Entry, Forgone, Query
from flux_resourceset.store import sql_bodies, sql_connection
from flux_resourceset.store.sql_bodies import Bodies, Kept
from flux_resourceset.store.sql_connection import Connection

ABOUT = "e.revision, e.time, e.actor, e.on_behalf_of, e.request_id, e.reason, e.forced, e.reverts"

_decode = msgspec.json.Decoder().decode
_decommissioned = msgspec.json.Decoder(tuple[Decommissioned, ...]).decode
_forgone = msgspec.json.Decoder(tuple[Forgone, ...]).decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode


def entries(db: Connection, after: int, until: int | None = None, *, followed: bool = False) -> list[Entry]:
    """The log above a revision, up to and including another one or else to its end, oldest first; for those who follow it
    without what documents were before. It is read backwards: the documents that are there tell what they were."""
    where, values = "e.revision > ?", [after]
    if until is not None:
        where, values = f"{where} AND e.revision <= ?", [after, until]
    found = list(_read(db, where, values, Bodies(ascending=False, above=after), ascending=False, followed=followed))
    found.reverse()
    return found


class Matching(NamedTuple):
    revision: int
    changes: int


def matching(db: Connection, query: Query) -> list[Matching]:
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


def chosen(db: Connection, revisions: Sequence[int], bodies: Bodies, *, ascending: bool) -> list[Entry]:
    """Those with these revisions; one page after the other, the bodies are those of the page before."""
    where = f"e.revision IN ({', '.join('?' * len(revisions))})"
    return list(_read(db, where, revisions, bodies, ascending=ascending))


def signatures(db: Connection, revisions: Iterable[int]) -> dict[int, Entry]:
    """Those of them that there are, without what they changed and brought along."""
    statement = f"SELECT {ABOUT}, NULL, NULL, NULL FROM entries AS e WHERE e.revision IN "  # noqa: S608  # our words
    return {row[0]: entry(row, ()) for row in sql_connection.of_values(db, revisions, statement.__add__)}


def touches(db: Connection, kind: str, id: str, before: int | None, limit: int) -> list[Entry]:
    """The entries that changed a document, newest first, each as far as this is concerned."""
    where, values = "c.kind = ? AND c.id = ? AND c.revision < ?", (kind, id, 2**63 - 1 if before is None else before)
    rows = db.execute(
        f"SELECT {ABOUT}, NULL, NULL, NULL, {sql_bodies.COLUMNS}, NULL"  # noqa: S608  # our words
        f" FROM changes AS c JOIN entries AS e ON e.revision = c.revision WHERE {where} ORDER BY c.revision DESC LIMIT ?",
        (*values, limit),
    )
    bodies = Bodies(ascending=False)
    return [_entry(db, iter([row]), bodies, followed=False) for row in rows]


def _read(
    db: Connection, where: str, values: Sequence[object], bodies: Bodies, *, ascending: bool, followed: bool = False
) -> Iterator[Entry]:
    """Entries with their changes, in one walk over both tables. What may be large stands in the first row of an entry only, and
    the body of a document in the row of its last change only."""
    first = "coalesce(c.position, 0) = 0"
    rows = db.stream(
        f"SELECT {ABOUT},"  # noqa: S608  # our words
        f" CASE WHEN {first} THEN e.retired END, CASE WHEN {first} THEN e.forgone END, CASE WHEN {first} THEN e.vanished END,"
        f" {sql_bodies.COLUMNS}, d.body"
        " FROM entries AS e LEFT JOIN changes AS c ON c.revision = e.revision"
        " LEFT JOIN documents AS d ON c.operation = 'update' AND d.kind = c.kind AND d.id = c.id AND d.revision = c.revision"
        f" WHERE {where} ORDER BY e.revision {'ASC' if ascending else 'DESC'}, c.position",
        values,
    )
    for _, of_entry in itertools.groupby(rows, key=operator.itemgetter(0)):
        yield _entry(db, of_entry, bodies, followed=followed)


def _entry(db: Connection, rows: Iterator[Sequence[Any]], bodies: Bodies, *, followed: bool) -> Entry:
    listed = list(rows)
    made = [(Kept._make(row[11:20]), row[20]) for row in listed if row[11] is not None]  # an entry may bring names only
    bodies.find(db, made)
    return entry(listed[0], tuple(_change(db, kept, present, bodies, followed=followed) for kept, present in made))


def entry(row: Sequence[Any], made: tuple[Change, ...]) -> Entry:
    """Of a row that begins with ABOUT, and then what came along: retired, forgone, vanished."""
    revision, time, actor, on_behalf_of, request_id, reason, forced, reverts, decommissioned, forgone, vanished = row[:11]
    return Entry(
        revision=revision,
        time=time,
        actor=actor,
        on_behalf_of=on_behalf_of,
        request_id=request_id,
        reason=reason,
        forced=bool(forced),
        changes=made,
        decommissioned=_decommissioned(decommissioned) if decommissioned else (),
        forgone=_forgone(forgone) if forgone else (),
        vanished=_names(vanished) if vanished else (),
        reverts=reverts,
    )


def _change(db: Connection, kept: Kept, present: bytes | None, bodies: Bodies, *, followed: bool) -> Change:
    before, after = bodies.of(db, kept, present)
    return Change(kept.kind, kept.id, kept.operation, None if followed else document(before), document(after))


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


def document(body: bytes | None) -> Document | None:
    return None if body is None else _decode(body)
