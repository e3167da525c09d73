"""The only writer of a SQLite store, until it commits or gives up; and what a driver's exceptions become."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Applied, Charge, Document, Entry, Head, Snapshot
from flux_resourceset.store import (
    Followed,
    Key,
    Memo,
    marker,
    sqlite_applied,
    sqlite_files,
    sqlite_log,
    sqlite_rows,
    sqlite_writes,
)


@contextlib.contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """A driver's exceptions end here."""
    try:
        yield
    except (sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError, OverflowError, zlib.error) as exc:
        raise unusable(path, exc) from exc


def unusable(path: Path, exc: Exception) -> errors.Doubt:
    return errors.Doubt(f"the database {path} cannot be used: {exc}; check its permissions, or restore a backup")


def followed(db: sqlite3.Connection, known: Head) -> Followed | None:
    if not sqlite_rows.continues(db, known):
        return None
    behind = sqlite_log.entries(db, known.revision, followed=True)
    return Followed(behind, sqlite_rows.head(db).hash, sqlite_rows.identity(db).opened, sqlite_rows.views(db))


class SqliteTransaction:
    """Its connection is its own, so nobody closes it while a thread writes with it."""

    def __init__(self, path: Path, is_in_place: Callable[[], bool]) -> None:
        self._path = path
        self._is_in_place = is_in_place  # whether the files are still those that the store opened
        with translated_errors(self._path), contextlib.ExitStack() as held:
            held.enter_context(sqlite_files.sole_writer(self._path))
            if not sqlite_files.exists(self._path):
                raise errors.Doubt(f"there is no database at {self._path}; restore it from a backup")
            self._db = held.enter_context(contextlib.closing(sqlite_files.connect(self._path, "rw")))
            sqlite_files.begin_immediate(self._db)
            sqlite_files.check_schema(self._db, self._path)
            self._check_place("")
            self._held = held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.rollback()

    def _check_place(self, consequence: str) -> None:
        """What is written to a file that lost its name is lost, so it is never acknowledged."""
        if not self._is_in_place():
            raise errors.Doubt(f"the database {self._path} or a file beside it was removed or replaced{consequence}")

    @property
    def epoch(self) -> str:
        with translated_errors(self._path):
            return sqlite_rows.identity(self._db).epoch

    def follow(self, known: Head) -> Followed | None:
        with translated_errors(self._path):
            return followed(self._db, known)

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        with translated_errors(self._path):
            return sqlite_log.entries(self._db, after, until)

    def snapshot(self) -> Snapshot:
        with translated_errors(self._path):
            sqlite_rows.check_whole(self._db, self._path)
            return sqlite_rows.snapshot(self._db)

    def recall(self, key: str) -> Memo | None:
        with translated_errors(self._path):
            return sqlite_writes.recalled(self._db, key)

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        with translated_errors(self._path):
            return sqlite_applied.of(self._db, keys)

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        with translated_errors(self._path):
            return sqlite_applied.by(self._db, manager, kinds)

    def commit(
        self,
        entry: Entry | None,
        memo: Memo | None = None,
        forget_before: str = "",
        charge: Charge | None = None,
        hash: str | None = None,
        applied: Sequence[Applied] = (),
    ) -> str:
        first = self.epoch if entry is not None and entry.revision == 1 else None
        with self._writing() as db:
            if first:
                marker.write(self._path, first, filling=True)
            end = sqlite_rows.head(db).hash if entry is None else sqlite_writes.append(db, entry, hash)
            sqlite_applied.write(db, applied)
            if charge is not None:
                sqlite_writes.write_charge(db, charge)
            if forget_before:
                db.execute("DELETE FROM memos WHERE time < ?", (forget_before,))
            if memo is not None:
                sqlite_writes.write_memo(db, memo)
        if first:
            with contextlib.suppress(errors.Unavailable):  # the document is there all the same; the next start says so
                marker.write(self._path, first)
        return end

    def restore(self, snapshot: Snapshot, history: list[Entry], applied: Sequence[Applied] = ()) -> None:
        with self._writing() as db:
            marker.write(self._path, snapshot.epoch, filling=not snapshot.revision)
            sqlite_writes.write_whole(db, snapshot, history)
            sqlite_applied.write(db, applied)
            sqlite_rows.check_whole(db, self._path)

    def fold(self, before: int, digest: str | None = None) -> int:
        with self._writing() as db:
            return sqlite_writes.fold(db, before, digest)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with translated_errors(self._path):
                yield self._db
                self._check_place("; nothing was written")
                self._db.execute("COMMIT")
                sqlite_files.put_away(self._db)
                self._check_place(" while it was written; whether the change is kept is unknown: look before you send it again")
        finally:
            self.rollback()

    def rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        with contextlib.suppress(sqlite3.Error):
            self._held.close()
