"""What a store in a database answers, over whatever connections it has: one transaction, and so one state, for every answer."""

from __future__ import annotations

import abc
import contextlib
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Self

from flux_resourceset import errors
from flux_resourceset.changes import Applied, Charge, Document, Entry, Head, Query, Snapshot, Stored
from flux_resourceset.store import (
    Followed,
    Key,
    Memo,
    Outline,
    Store,
    Verified,
    pages,
    replaced_meanwhile,
    sql_applied,
    sql_copying,
    sql_log,
    sql_past,
    sql_rows,
    sql_verification,
    sql_writes,
)
from flux_resourceset.store.sql_bodies import Bodies
from flux_resourceset.store.sql_connection import Connection


def followed(db: Connection, known: Head) -> Followed | None:
    now = sql_rows.standing(db)
    return _followed(db, now, known) if sql_rows.goes_on(db, now, known) else None


def _followed(db: Connection, now: sql_rows.Standing, known: Head) -> Followed:
    behind = sql_log.entries(db, known.revision, followed=True) if known != now.head else []
    return Followed(behind, now.end.hash, now.whose.opened, sql_rows.views(db))


class SqlStore(Store, abc.ABC):
    name: str  # of the database, for people

    @abc.abstractmethod
    def _reading(self) -> contextlib.AbstractContextManager[Connection]:
        """Several selects that see one state, of the schema that this program knows; in any thread."""

    @abc.abstractmethod
    def begin(self) -> SqlTransaction:
        """As of every store."""

    def copy_into(self, target: SqlStore, *, replace: bool, progress: sql_copying.Progress) -> int:
        """One state of all that is here, into another store; how many documents. Conflict: the other one is not empty."""
        with self._reading() as source, target.begin() as transaction:
            sql_rows.check_whole(source, self.name)
            transaction.take_copy(source, replace=replace, progress=progress)
            return sql_rows.end(source).documents

    def epoch(self) -> str:
        return self.head().epoch

    def head(self) -> Head:
        with self._reading() as db:
            return sql_rows.head(db)

    def snapshot(self) -> Snapshot:
        with self._reading() as db:
            sql_rows.check_whole(db, self.name)
            return sql_rows.snapshot(db)

    def continues(self, known: Head) -> bool:
        with self._reading() as db:
            return sql_rows.continues(db, known)

    def follow(self, known: Head) -> Followed | None:
        with self._reading() as db:
            return followed(db, known)

    def follow_few(self, known: Head, few: int, before: Outline | None = None) -> Followed | Outline | None:
        with self._reading() as db:
            now = sql_rows.standing(db)
            if not sql_rows.goes_on(db, now, known):
                return None
            if known == now.head or not sql_rows.has_more(db, known.revision, few):
                return _followed(db, now, known)
            views = sql_rows.views(db)
            if before is not None and before.head == now.head and before.views == views:
                return before
            return Outline(now.head, sql_rows.changed(db, known.revision), views)

    def stored(self, keys: Iterable[Key], at: Head) -> dict[Key, Stored] | None:
        with self._reading() as db:
            return sql_rows.documents(db, keys) if sql_rows.head(db) == at else None

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        with self._reading() as db:
            return sql_log.entries(db, after, until)

    def signatures(self, revisions: Iterable[int]) -> dict[int, Entry]:
        with self._reading() as db:
            return sql_log.signatures(db, revisions)

    def base(self) -> int:
        with self._reading() as db:
            return sql_rows.identity(db).base

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        with self._reading() as db:
            return sql_applied.of(db, keys)

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        with self._reading() as db:
            return sql_applied.by(db, manager, kinds)

    def find(self, query: Query, page: int) -> Iterator[list[Entry]]:
        with self._reading() as db:
            epoch, found = sql_rows.identity(db).epoch, sql_log.matching(db, query)
        bodies = Bodies(ascending=query.ascending)
        for chosen in pages(found, lambda entry: entry.changes, page):
            yield self._chosen(epoch, [entry.revision for entry in chosen], bodies, query.ascending)

    def _chosen(self, epoch: str, revisions: list[int], bodies: Bodies, ascending: bool) -> list[Entry]:
        """In a read of its own: nothing is held while whoever asked takes a page."""
        with self._reading() as db:
            if sql_rows.identity(db).epoch != epoch:
                raise replaced_meanwhile()
            entries = sql_log.chosen(db, revisions, bodies, ascending=ascending)
            if len(entries) != len(revisions):
                raise replaced_meanwhile()
            return entries

    # As it was

    def document_at(self, kind: str, id: str, revision: int) -> Stored | None:
        return self.documents_at([(kind, id)], revision).get((kind, id))

    def documents_at(self, keys: Iterable[Key], revision: int) -> dict[Key, Stored]:
        with self._reading() as db:
            return sql_past.documents(db, keys, revision)

    def state_at(self, revision: int) -> Snapshot:
        with self._reading() as db:
            return sql_past.snapshot(db, revision)

    def touches(self, kind: str, id: str, before: int | None, limit: int) -> list[Entry]:
        return self.touches_of([(kind, id)], before, limit)[kind, id]

    def touches_of(self, keys: Iterable[Key], before: int | None, limit: int) -> dict[Key, list[Entry]]:
        with self._reading() as db:
            if before is not None:
                sql_past.check(db, min(before - 1, sql_rows.end(db).revision))
            return {key: sql_log.touches(db, *key, before, limit) for key in keys}

    def touched(self, after: int, until: int) -> list[Key]:
        with self._reading() as db:
            return sql_past.touched(db, after, until)

    def revision_at(self, time: str) -> int:
        with self._reading() as db:
            return sql_past.revision_at(db, time)

    def digest_at(self, revision: int) -> str:
        with self._reading() as db:
            sql_past.check(db, revision)
            return sql_past.state(db, revision).digest

    def verified(self) -> Verified:
        with self._reading() as db:
            return sql_verification.verified(db)


class SqlTransaction(abc.ABC):
    """The only writer, until it commits or gives up."""

    name: str  # of the database, for people

    @abc.abstractmethod
    def _asking(self) -> contextlib.AbstractContextManager[Connection]:
        """What was begun, and a driver's exceptions turned into ours."""

    @abc.abstractmethod
    def _writing(self) -> contextlib.AbstractContextManager[Connection]:
        """The same; what was done in it is committed in the end, and nothing is if anything was raised."""

    @abc.abstractmethod
    def rollback(self) -> None: ...

    def _mark(self, epoch: str, *, filling: bool) -> None:  # noqa: B027  # not every database has something beside it
        """Before a store gets its first document, or another epoch: for what is kept beside the database."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.rollback()

    @property
    def epoch(self) -> str:
        with self._asking() as db:
            return sql_rows.identity(db).epoch

    def follow(self, known: Head) -> Followed | None:
        with self._asking() as db:
            return followed(db, known)

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        with self._asking() as db:
            return sql_log.entries(db, after, until)

    def snapshot(self) -> Snapshot:
        with self._asking() as db:
            sql_rows.check_whole(db, self.name)
            return sql_rows.snapshot(db)

    def recall(self, key: str) -> Memo | None:
        with self._asking() as db:
            return sql_writes.recalled(db, key)

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        with self._asking() as db:
            return sql_applied.of(db, keys)

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        with self._asking() as db:
            return sql_applied.by(db, manager, kinds)

    def commit(
        self,
        entry: Entry | None,
        memo: Memo | None = None,
        forget_before: str = "",
        charge: Charge | None = None,
        hash: str | None = None,
        applied: Sequence[Applied] = (),
    ) -> str:
        with self._writing() as db:
            if entry is not None and entry.revision == 1:
                self._mark(sql_rows.identity(db).epoch, filling=True)
            end = sql_rows.head(db).hash if entry is None else sql_writes.append(db, entry, hash)
            sql_applied.write(db, applied)
            if charge is not None:
                sql_writes.write_charge(db, charge)
            if forget_before:
                db.execute("DELETE FROM memos WHERE time < ?", (forget_before,))
            if memo is not None:
                sql_writes.write_memo(db, memo)
        return end

    def restore(self, snapshot: Snapshot, history: list[Entry], applied: Sequence[Applied] = ()) -> None:
        with self._writing() as db:
            self._mark(snapshot.epoch, filling=not snapshot.revision)
            sql_writes.write_whole(db, snapshot, history)
            sql_applied.write(db, applied)
            sql_rows.check_whole(db, self.name)

    def fold(self, before: int, digest: str | None = None) -> int:
        with self._writing() as db:
            return sql_writes.fold(db, before, digest)

    def take_copy(self, source: Connection, *, replace: bool, progress: sql_copying.Progress) -> None:
        epoch = uuid.uuid4().hex
        with self._writing() as db:
            if sql_rows.end(db).revision and not replace:
                raise errors.Conflict("the store to copy into is not empty; use --replace to put the copy in its place")
            self._mark(epoch, filling=not sql_rows.end(source).revision)
            sql_copying.copy(source, db, epoch, progress)
            sql_rows.check_whole(db, self.name)
