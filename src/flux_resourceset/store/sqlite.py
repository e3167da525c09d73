"""The SQLite store: one file in WAL mode, shared by any number of processes.

A connection belongs to one user at a time, and is closed by it: one to see that something changed, one for every read, one
for every transaction.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from flux_resourceset import errors
from flux_resourceset.store import sqlite_files, sqlite_transactions
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_store import SqlStore
from flux_resourceset.store.sqlite_transactions import SqliteTransaction

# How often the files beside the database are looked at when nothing else has changed: their loss harms nobody who reads, for
# they stay open, and whoever writes looks first.
BESIDE_SECONDS = 0.02
SETTLE_MILLISECONDS = 500  # to wait for those who read; a server that stops has a second left


class SqliteStore(SqlStore):
    lags = False

    def __init__(self, path: Path, *, read_only: bool = False, create: bool = True, begin_anew: bool = False) -> None:
        self.path = path
        self.name = str(path)
        self.read_only = read_only
        self._frozen: object = None
        self._size = 0
        self._beside_again = 0.0
        with sqlite_transactions.translated_errors(path), sqlite_files.opening(path, at_start=create and not read_only):
            if read_only:
                self._watched = self._connected_to_read()
            else:
                sqlite_files.prepare(path, create=create, begin_anew=begin_anew)
                # it can write, so that the last one to be closed puts the -wal file away
                self._watched = sqlite_files.connect_checked(path, "rw")
                self._watched.execute("PRAGMA query_only = ON")
            self._watched.execute("PRAGMA busy_timeout = 0")  # whoever asks for the version does not wait
            self._watch = self._watched.cursor()
            self._identity, self._written = self._file()
            self._beside = self._files_beside()
            if not sqlite_files.are_open(self._beside):
                self._watched.close()
                raise self._replaced()

    def _connected_to_read(self) -> sqlite3.Connection:
        if not sqlite_files.exists(self.path):
            raise errors.Unreachable(f"there is no database at {self.path}; {sqlite_files.REMEDY}")
        try:
            return sqlite_files.connect_checked(self.path, "ro")
        except sqlite3.OperationalError:
            # WAL needs a -shm file beside the database. On a read-only volume with no writer about there is none
            # and none can be made; then the file stands still, and can be read as it is until it changes.
            if os.path.exists(f"{self.path}-wal"):
                raise
            self._frozen = os.stat(self.path).st_mtime_ns
            return sqlite_files.connect_checked(self.path, "ro&immutable=1")

    # Which files they are: lost and replaced ones must not go unnoticed

    def _file(self) -> tuple[object, object]:
        """Which file it is, and when it was last written to, by a checkpoint or by somebody who should not have."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None, None
        if self._frozen is None:
            grown, self._size = status.st_size >= self._size, status.st_size  # in WAL mode it never shrinks, unless it is cut
            return (status.st_dev, status.st_ino if grown else -1), status.st_mtime_ns
        # read as it is, it must not have changed in any way, and no writer may have begun a -wal beside it
        return (status.st_ino, status.st_mtime_ns, status.st_size, os.path.exists(f"{self.path}-wal")), None

    def _files_beside(self) -> list[tuple[int, int] | None]:
        """The files with the newest data: removed, they stay open here, and nobody else ever sees what is written to them."""
        return sqlite_files.beside(self.path) if self._frozen is None else []

    # Store

    def version(self) -> object:
        # asked before every answer, so it does without context managers and keeps a cursor
        identity, written = self._file()
        if identity != self._identity:
            raise self._replaced()
        try:
            now = time.monotonic()
            if now >= self._beside_again or written != self._written:
                if self._files_beside() != self._beside:
                    raise self._replaced()
                self._beside_again, self._written = now + BESIDE_SECONDS, written
            return written, self._watch.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as exc:
            raise sqlite_transactions.unusable(self.path, exc) from exc

    def seen(self) -> float:
        return time.monotonic()

    def is_reachable(self) -> bool:
        return True

    def on_change(self, callback: Callable[[], None]) -> None:
        pass  # whoever looks at the version knows

    def _replaced(self) -> errors.Doubt:
        return errors.Doubt(
            f"the database {self.path} or a file beside it was removed or replaced under the running server; restore it"
        )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Over a connection of its own: what one remembers of a file that was written over is worth nothing."""
        mode = "ro" if self._frozen is None else "ro&immutable=1"
        with sqlite_transactions.translated_errors(self.path), contextlib.closing(sqlite_files.connect(self.path, mode)) as db:
            db.execute("BEGIN")
            sqlite_files.check_schema(db, self.path)
            yield db

    def begin(self) -> SqliteTransaction:
        return SqliteTransaction(self.path, self.is_in_place)

    def is_in_place(self) -> bool:
        """Whether the files are those that were opened; may be asked in any thread."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        same = (status.st_dev, status.st_ino) == self._identity and self._files_beside() == self._beside
        self._beside_again = self._beside_again if same else 0.0
        return same

    def settle(self) -> None:
        """Empty the -wal file, which SQLite leaves alone while others read: it would lie on top of a backup that is copied
        over the database, and nothing would be restored."""
        if not self.read_only and self.is_in_place():
            with contextlib.suppress(sqlite3.Error):
                self._watched.execute(f"PRAGMA busy_timeout = {SETTLE_MILLISECONDS}")
                self._watched.execute("PRAGMA query_only = OFF")
                known = sqlite_files.is_as_left(self.path)
                self._watched.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if known:
                    sqlite_files.leave(self.path)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._watched.close()
