"""The log's changes as they are kept in a database, and the bodies of documents before and after each of them.

An update is kept as a delta, so a body of the past is found from one that is known: from the present, or from the one that
was found last. Whoever reads one change of a document after the other, in either direction, goes a step for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flux_resourceset import errors
from flux_resourceset.changes import Operation
from flux_resourceset.store import Key, sql_connection, sql_rows
from flux_resourceset.store.deltas import Delta, Misfit
from flux_resourceset.store.sql_connection import Connection

COLUMNS = "c.revision, c.kind, c.id, c.operation, c.previous, c.lead, c.trail, c.before, c.after"


class Damage(errors.Doubt):
    """Found in the log."""

    def __init__(self, revision: int, what: str) -> None:
        super().__init__(f"revision {revision}: {what}; restore a backup")
        self.revision = revision


class Kept(NamedTuple):
    """A change, as it is kept: whole where something appears or goes, a delta where it stays."""

    revision: int
    kind: str
    id: str
    operation: Operation
    previous: int | None  # the revision that had last changed the document
    lead: int
    trail: int
    before: bytes | None
    after: bytes | None

    def misfit(self) -> Damage:
        return Damage(self.revision, f"what the log keeps of {self.kind} {self.id!r} does not fit the document")

    def applied(self, body: bytes | None) -> bytes | None:
        """The document after it, from the one before it."""
        delta = self._delta()
        if delta is None:
            if body != self.before:
                raise self.misfit()
            return self.after
        try:
            return delta.applied(body or b"")
        except Misfit:
            raise self.misfit() from None

    def undone(self, body: bytes | None) -> bytes | None:
        """The document before it, from the one after it."""
        delta = self._delta()
        if delta is None:
            if body != self.after:
                raise self.misfit()
            return self.before
        try:
            return delta.undone(body or b"")
        except Misfit:
            raise self.misfit() from None

    def _delta(self) -> Delta | None:
        before, after = self.before, self.after
        if self.operation == "update" and before is not None and after is not None and self.previous is not None:
            return Delta(self.lead, self.trail, before, after)
        appears = self.operation == "create" and before is None and after is not None and self.previous is None
        goes = self.operation == "delete" and after is None and before is not None and self.previous is not None
        if self.lead or self.trail or not (appears or goes):
            raise self.misfit()
        return None


class _Span(NamedTuple):
    """What a document was, from one revision to another."""

    low: int
    high: int
    body: bytes | None


class Bodies:
    """Of documents before and after changes that are looked at in one direction, over any number of reads of one log."""

    def __init__(self, *, ascending: bool, above: int = 0) -> None:
        self._ascending = ascending
        self._above = above  # no change up to there is going to be looked at
        self._spans: dict[Key, _Span] = {}

    def find(self, db: Connection, made: Iterable[tuple[Kept, bytes | None]]) -> None:
        """What documents became by the changes of an entry, given with present bodies where these are the last ones: of all
        that nothing is known of, in one go."""
        wanted: dict[Key, int] = {}
        for kept, present in made:
            if kept.operation == "update" and present is None and (kept.kind, kept.id) not in self._spans:
                wanted[kept.kind, kept.id] = kept.revision
        found: dict[Key, bytes | None] = {key: body for key, (body, _) in sql_rows.bodies(db, wanted).items()}
        for each in of_documents(db, wanted, max(wanted.values(), default=0)):
            found[each.kind, each.id] = each.undone(found.get((each.kind, each.id)))
        for key, revision in wanted.items():
            self._spans[key] = _Span(revision, revision, found.get(key))

    def of(self, db: Connection, kept: Kept, present: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Before and after a change that was looked for; the present body where it is the last one."""
        key = (kept.kind, kept.id)
        if kept.operation == "update":
            span = self._spans.get(key)
            if span is not None and kept.previous is not None and span.low <= kept.previous <= span.high:
                before, after = span.body, kept.applied(span.body)
            else:
                after = present if present is not None or span is None else self._after(db, kept, span)
                before = kept.undone(after)
        else:
            before, after = kept.before, kept.applied(kept.before)
        self._keep(key, kept, before, after)
        return before, after

    def _keep(self, key: Key, kept: Kept, before: bytes | None, after: bytes | None) -> None:
        if self._ascending:
            self._spans[key] = _Span(kept.revision, kept.revision, after)
        elif kept.previous is not None and kept.previous > self._above:
            self._spans[key] = _Span(kept.previous, kept.revision - 1, before)
        else:
            self._spans.pop(key, None)

    def _after(self, db: Connection, kept: Kept, span: _Span) -> bytes | None:
        body = span.body
        if span.high < kept.revision:
            for each in of_document(db, kept.kind, kept.id, span.high, kept.revision, ascending=True):
                body = each.applied(body)
        elif kept.revision < span.low:
            for each in of_document(db, kept.kind, kept.id, kept.revision, span.low):
                body = each.undone(body)
        return body


def of_document(db: Connection, kind: str, id: str, after: int, until: int, *, ascending: bool = False) -> Iterator[Kept]:
    """The changes of a document above a revision, up to and including another one."""
    rows = db.execute(
        f"SELECT {COLUMNS} FROM changes AS c WHERE c.kind = ? AND c.id = ? AND c.revision > ?"  # noqa: S608  # our words
        f" AND c.revision <= ? ORDER BY c.revision {'ASC' if ascending else 'DESC'}",
        (kind, id, after, until),
    )
    return map(Kept._make, rows)


def of_documents(db: Connection, keys: Iterable[Key], after: int) -> Iterator[Kept]:
    """The changes of any number of documents above a revision, those of each newest first."""
    statement = f"SELECT {COLUMNS} FROM changes AS c WHERE (c.kind, c.id) IN {{}} AND c.revision > ? ORDER BY c.revision DESC"  # noqa: S608  # our words
    return map(Kept._make, sql_connection.of_keys(db, keys, statement.format, after))


def newest_first(db: Connection, after: int) -> Iterator[Kept]:
    """All changes above a revision."""
    rows = db.stream(
        f"SELECT {COLUMNS} FROM changes AS c WHERE c.revision > ? ORDER BY c.revision DESC, c.position DESC",  # noqa: S608  # our words
        (after,),
    )
    return map(Kept._make, rows)
