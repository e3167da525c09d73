"""The SQLite store: one file in WAL mode, shared by any number of processes.

A connection belongs to one user at a time, and is closed by it: one to see that something changed, one for every read, one
for every transaction.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Charge, Entry, Head, Query, Snapshot, Stored
from flux_resourceset.store import (
    Followed,
    Key,
    Memo,
    Outline,
    Verified,
    marker,
    pages,
    replaced_meanwhile,
    sqlite_files,
    sqlite_log,
    sqlite_past,
    sqlite_rows,
    sqlite_verification,
    sqlite_writes,
)
from flux_resourceset.store.sqlite_bodies import Bodies

# How often the files beside the database are looked at when nothing else has changed: their loss harms nobody who reads, for
# they stay open, and whoever writes looks first.
BESIDE_SECONDS = 0.02
SETTLE_MILLISECONDS = 500  # to wait for those who read; a server that stops has a second left


@contextlib.contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    """A driver's exceptions end here."""
    try:
        yield
    except (sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError, OverflowError, zlib.error) as exc:
        raise _unusable(path, exc) from exc


def _unusable(path: Path, exc: Exception) -> errors.Doubt:
    return errors.Doubt(f"the database {path} cannot be used: {exc}; check its permissions, or restore a backup")


class SqliteStore:
    def __init__(self, path: Path, *, read_only: bool = False, create: bool = True, begin_anew: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._frozen: object = None
        self._size = 0
        self._beside_again = 0.0
        with _translated_errors(path), sqlite_files.opening(path, at_start=create and not read_only):
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
            raise errors.Doubt(f"there is no database at {self.path}; {sqlite_files.REMEDY}")
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
            raise _unusable(self.path, exc) from exc

    def _replaced(self) -> errors.Doubt:
        return errors.Doubt(
            f"the database {self.path} or a file beside it was removed or replaced under the running server; restore it"
        )

    def epoch(self) -> str:
        return self.head().epoch

    def head(self) -> Head:
        with self._reading() as db:
            return sqlite_rows.head(db)

    def snapshot(self) -> Snapshot:
        with self._reading() as db:
            sqlite_rows.check_whole(db, self.path)
            return sqlite_rows.snapshot(db)

    def continues(self, known: Head) -> bool:
        with self._reading() as db:
            return sqlite_rows.continues(db, known)

    def follow(self, known: Head) -> Followed | None:
        with self._reading() as db:
            return _followed(db, known)

    def follow_few(self, known: Head, few: int, before: Outline | None = None) -> Followed | Outline | None:
        with self._reading() as db:
            if not (sqlite_rows.continues(db, known) and sqlite_rows.has_more(db, known.revision, few)):
                return _followed(db, known)
            head, views = sqlite_rows.head(db), sqlite_rows.views(db)
            if before is not None and before.head == head and before.views == views:
                return before
            return Outline(head, sqlite_rows.changed(db, known.revision), views)

    def stored(self, keys: Iterable[tuple[str, str]], at: Head) -> dict[tuple[str, str], Stored] | None:
        with self._reading() as db:
            if sqlite_rows.head(db) != at:
                return None
            return {key: stored for key in keys if (stored := sqlite_rows.document(db, *key))}

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        with self._reading() as db:
            return sqlite_log.entries(db, after, until)

    def signatures(self, revisions: Iterable[int]) -> dict[int, Entry]:
        with self._reading() as db:
            return sqlite_log.signatures(db, revisions)

    def base(self) -> int:
        with self._reading() as db:
            return sqlite_rows.identity(db).base

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Several selects that see one state, of the schema that this program knows; in any thread.

        Over a connection of their own: what one remembers of a file that was written over is worth nothing.
        """
        mode = "ro" if self._frozen is None else "ro&immutable=1"
        with _translated_errors(self.path), contextlib.closing(sqlite_files.connect(self.path, mode)) as db:
            db.execute("BEGIN")
            sqlite_files.check_schema(db, self.path)
            yield db

    def find(self, query: Query, page: int) -> Iterator[list[Entry]]:
        with self._reading() as db:
            epoch, found = sqlite_rows.identity(db).epoch, sqlite_log.matching(db, query)
        bodies = Bodies(ascending=query.ascending)
        for chosen in pages(found, lambda entry: entry.changes, page):
            yield self._chosen(epoch, [entry.revision for entry in chosen], bodies, query.ascending)

    def _chosen(self, epoch: str, revisions: list[int], bodies: Bodies, ascending: bool) -> list[Entry]:
        """In a read of its own: one that is open for long keeps every write out of the database file (see put_away)."""
        with self._reading() as db:
            if sqlite_rows.identity(db).epoch != epoch:
                raise replaced_meanwhile()
            entries = sqlite_log.chosen(db, revisions, bodies, ascending=ascending)
            if len(entries) != len(revisions):
                raise replaced_meanwhile()
            return entries

    # As it was

    def document_at(self, kind: str, id: str, revision: int) -> Stored | None:
        return self.documents_at([(kind, id)], revision).get((kind, id))

    def documents_at(self, keys: Iterable[Key], revision: int) -> dict[Key, Stored]:
        with self._reading() as db:
            return sqlite_past.documents(db, keys, revision)

    def state_at(self, revision: int) -> Snapshot:
        with self._reading() as db:
            return sqlite_past.snapshot(db, revision)

    def touches(self, kind: str, id: str, before: int | None, limit: int) -> list[Entry]:
        with self._reading() as db:
            if before is not None:
                sqlite_past.check(db, min(before - 1, sqlite_rows.end(db).revision))
            return sqlite_log.touches(db, kind, id, before, limit)

    def touched(self, after: int, until: int) -> list[Key]:
        with self._reading() as db:
            return sqlite_past.touched(db, after, until)

    def revision_at(self, time: str) -> int:
        with self._reading() as db:
            return sqlite_past.revision_at(db, time)

    def digest_at(self, revision: int) -> str:
        with self._reading() as db:
            sqlite_past.check(db, revision)
            return sqlite_past.state(db, revision).digest

    def verified(self) -> Verified:
        with self._reading() as db:
            return sqlite_verification.verified(db)

    def begin(self) -> SqliteTransaction:
        return SqliteTransaction(self)

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
                self._watched.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._watched.close()


def _followed(db: sqlite3.Connection, known: Head) -> Followed | None:
    if not sqlite_rows.continues(db, known):
        return None
    behind = sqlite_log.entries(db, known.revision, followed=True)
    return Followed(behind, sqlite_rows.head(db).hash, sqlite_rows.identity(db).opened, sqlite_rows.views(db))


class SqliteTransaction:
    """Its connection is its own, so nobody closes it while a thread writes with it."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._path = store.path
        with _translated_errors(self._path), contextlib.ExitStack() as held:
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
        if not self._store.is_in_place():
            raise errors.Doubt(f"the database {self._path} or a file beside it was removed or replaced{consequence}")

    @property
    def epoch(self) -> str:
        with _translated_errors(self._path):
            return sqlite_rows.identity(self._db).epoch

    def follow(self, known: Head) -> Followed | None:
        with _translated_errors(self._path):
            return _followed(self._db, known)

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        with _translated_errors(self._path):
            return sqlite_log.entries(self._db, after, until)

    def snapshot(self) -> Snapshot:
        with _translated_errors(self._path):
            sqlite_rows.check_whole(self._db, self._path)
            return sqlite_rows.snapshot(self._db)

    def recall(self, key: str) -> Memo | None:
        with _translated_errors(self._path):
            return sqlite_writes.recalled(self._db, key)

    def commit(
        self,
        entry: Entry | None,
        memo: Memo | None = None,
        forget_before: str = "",
        charge: Charge | None = None,
        hash: str | None = None,
    ) -> str:
        first = self.epoch if entry is not None and entry.revision == 1 else None
        with self._writing() as db:
            if first:
                marker.write(self._path, first, filling=True)
            end = sqlite_rows.head(db).hash if entry is None else sqlite_writes.append(db, entry, hash)
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

    def restore(self, snapshot: Snapshot, history: list[Entry]) -> None:
        with self._writing() as db:
            marker.write(self._path, snapshot.epoch, filling=not snapshot.revision)
            sqlite_writes.write_whole(db, snapshot, history)
            sqlite_rows.check_whole(db, self._path)

    def fold(self, before: int, digest: str | None = None) -> int:
        with self._writing() as db:
            return sqlite_writes.fold(db, before, digest)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with _translated_errors(self._path):
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
