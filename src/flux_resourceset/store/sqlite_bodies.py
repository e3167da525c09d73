"""The log's changes as they are kept in SQLite, and the bodies of documents before and after each of them.

An update is kept as a delta, so a body of the past is found from one that is known: from the present, or from the one that
was found last. Whoever reads one change of a document after the other, in either direction, goes a step for each.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from flux_resourceset import errors
from flux_resourceset.changes import Operation
from flux_resourceset.store import Key
from flux_resourceset.store.deltas import Delta, Misfit

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

    def of(self, db: sqlite3.Connection, kept: Kept, present: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Before and after a change; the present body where it is the last one."""
        key = (kept.kind, kept.id)
        if kept.operation == "update":
            span = self._spans.get(key)
            if span is not None and kept.previous is not None and span.low <= kept.previous <= span.high:
                before, after = span.body, kept.applied(span.body)
            else:
                after = present if present is not None else self._after(db, kept, span)
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

    def _after(self, db: sqlite3.Connection, kept: Kept, span: _Span | None) -> bytes | None:
        if span is not None and span.low <= kept.revision <= span.high:
            return span.body
        if span is not None and span.high < kept.revision:
            body = span.body
            for each in of_document(db, kept.kind, kept.id, span.high, kept.revision, ascending=True):
                body = each.applied(body)
            return body
        start, until = (span.body, span.low) if span is not None else (present_body(db, kept.kind, kept.id), None)
        for each in of_document(db, kept.kind, kept.id, kept.revision, until):
            start = each.undone(start)
        return start


def present_body(db: sqlite3.Connection, kind: str, id: str) -> bytes | None:
    row = db.execute("SELECT body FROM documents WHERE kind = ? AND id = ?", (kind, id)).fetchone()
    return row[0] if row else None


def of_document(
    db: sqlite3.Connection, kind: str, id: str, after: int, until: int | None = None, *, ascending: bool = False
) -> Iterator[Kept]:
    """The changes of a document above a revision, up to and including another one or else all."""
    rows = db.execute(
        f"SELECT {COLUMNS} FROM changes AS c WHERE c.kind = ? AND c.id = ? AND c.revision > ?"  # noqa: S608  # our words
        f" AND c.revision <= ? ORDER BY c.revision {'ASC' if ascending else 'DESC'}",
        (kind, id, after, until if until is not None else 2**63 - 1),
    )
    return map(Kept._make, rows)


def newest_first(db: sqlite3.Connection, after: int) -> Iterator[Kept]:
    """All changes above a revision."""
    rows = db.execute(
        f"SELECT {COLUMNS} FROM changes AS c WHERE c.revision > ? ORDER BY c.revision DESC, c.position DESC",  # noqa: S608  # our words
        (after,),
    )
    return map(Kept._make, rows)
