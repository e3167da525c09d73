"""The only writer of a SQLite store, until it commits or gives up; and what a driver's exceptions become."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Applied, Charge, Entry
from flux_resourceset.store import Memo, marker, sql_rows, sqlite_files
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_store import SqlTransaction


@contextlib.contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """A driver's exceptions end here."""
    try:
        yield
    except (sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError, OverflowError, zlib.error) as exc:
        raise unusable(path, exc) from exc


def unusable(path: Path, exc: Exception) -> errors.Doubt:
    return errors.Doubt(f"the database {path} cannot be used: {exc}; check its permissions, or restore a backup")


class SqliteTransaction(SqlTransaction):
    """Its connection is its own, so nobody closes it while a thread writes with it."""

    def __init__(self, path: Path, is_in_place: Callable[[], bool]) -> None:
        self._path = path
        self.name = str(path)
        self._filled = ""  # the epoch of a store that gets its first document
        self._is_in_place = is_in_place  # whether the files are still those that the store opened
        with translated_errors(self._path), contextlib.ExitStack() as held:
            held.enter_context(sqlite_files.sole_writer(self._path))
            if not sqlite_files.exists(self._path):
                raise errors.Doubt(f"there is no database at {self._path}; restore it from a backup")
            self._db = held.enter_context(contextlib.closing(sqlite_files.connect(self._path, "rw")))
            sqlite_files.begin_immediate(self._db)
            sqlite_files.check_schema(self._db, self._path)
            self._check_place("")
            self._check_content()
            self._held = held.pop_all()

    def _check_place(self, consequence: str) -> None:
        """What is written to a file that lost its name is lost, so it is never acknowledged."""
        if not self._is_in_place():
            raise errors.Doubt(f"the database {self._path} or a file beside it was removed or replaced{consequence}")

    def _check_content(self) -> None:
        """Nothing is put on top of what somebody else has written; to look takes time, so only where it can be so."""
        if not sqlite_files.is_as_left(self._path):
            sqlite_files.check_damage(self._db, self._path)
            sql_rows.check_whole(self._db, self._path)

    def commit(
        self,
        entry: Entry | None,
        memo: Memo | None = None,
        forget_before: str = "",
        charge: Charge | None = None,
        hash: str | None = None,
        applied: Sequence[Applied] = (),
    ) -> str:
        end = super().commit(entry, memo, forget_before, charge, hash, applied)
        if self._filled:
            with contextlib.suppress(errors.Unavailable):  # the document is there all the same; the next start says so
                marker.write(self._path, self._filled)
        return end

    def _mark(self, epoch: str, *, filling: bool) -> None:
        marker.write(self._path, epoch, filling=filling)
        self._filled = epoch

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Connection]:
        with translated_errors(self._path):
            yield self._db

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with translated_errors(self._path):
                yield self._db
                self._check_place("; nothing was written")
                self._db.execute("COMMIT")
                sqlite_files.put_away(self._db)
                sqlite_files.leave(self._path)
                self._check_place(" while it was written; whether the change is kept is unknown: look before you send it again")
        finally:
            self.rollback()

    def rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        with contextlib.suppress(sqlite3.Error):
            self._held.close()
