"""The SQLite store: one file in WAL mode, shared by any number of processes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import Change, Entry, Forgone, Query, Retired, Snapshot, Stored, Tombstone
from flux_resourceset.store import Memo, sqlite_files

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class _Brought(msgspec.Struct, omit_defaults=True):
    retired: tuple[Retired, ...] = ()
    vanished: tuple[str, ...] = ()
    forgone: tuple[Forgone, ...] = ()


_brought = msgspec.json.Decoder(tuple[Retired, ...] | _Brought).decode


@contextlib.contextmanager
def _speaking(path: Path) -> Iterator[None]:
    """A driver's exceptions end here."""
    try:
        yield
    except (sqlite3.Error, msgspec.DecodeError, msgspec.ValidationError, OverflowError) as exc:
        raise _unusable(path, exc) from exc


def _unusable(path: Path, exc: Exception) -> errors.Unavailable:
    return errors.Unavailable(f"the database {path} cannot be used: {exc}; check its permissions, or restore a backup")


class SqliteStore:
    """A reading connection for freshness and queries and, unless read-only, a writing one."""

    def __init__(self, path: Path, *, read_only: bool = False, create: bool = True) -> None:
        self.path = path
        self.read_only = read_only
        self._frozen: object = None
        self._identity: object = None
        self._size = 0
        with _speaking(path):
            if read_only:
                self._reader = self._open_reader()
            else:
                self._writer = sqlite_files.open_writer(path, create)
                self._reader = sqlite_files.connect(path, "ro")
            self._identity = self._file()
            self._watch = self._reader.cursor()

    def _open_reader(self) -> sqlite3.Connection:
        if not sqlite_files.exists(self.path):
            raise errors.Unavailable(f"there is no database at {self.path}; {sqlite_files.REMEDY}")
        connection = sqlite_files.connect(self.path, "ro")
        try:
            sqlite_files.check_schema(connection, self.path)
        except sqlite3.OperationalError:
            # WAL needs a -shm file beside the database. On a read-only volume with no writer about there is none
            # and none can be made; then the file stands still, and can be read as it is until it changes.
            connection.close()
            if os.path.exists(f"{self.path}-wal"):
                raise
            self._frozen = self._file()
            connection = sqlite_files.connect(self.path, "ro&immutable=1")
            sqlite_files.check_schema(connection, self.path)
        return connection

    def _file(self) -> object:
        """Which file it is: replaced ones must not go unnoticed."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        if self._frozen is None:
            grown, self._size = found.st_size >= self._size, found.st_size  # in WAL mode it never shrinks, unless it is cut
            return found.st_dev, found.st_ino if grown else -1
        # read as it is, it must not have changed in any way, and no writer may have begun a -wal beside it
        return found.st_ino, found.st_mtime_ns, found.st_size, os.path.exists(f"{self.path}-wal")

    # Store

    def version(self) -> object:
        # asked before every answer, so it does without the context manager and keeps a cursor: 4 µs instead of 8
        try:
            if self._file() != self._identity:
                raise errors.Unavailable(f"the database {self.path} was removed or replaced under the running server")
            return self._watch.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as exc:
            raise _unusable(self.path, exc) from exc

    def epoch(self) -> str:
        with _speaking(self.path):
            return _epoch(self._reader)

    def snapshot(self) -> Snapshot:
        with _speaking(self.path), _reading(self._reader) as db:
            revision, count = db.execute("SELECT coalesce(max(revision), 0), count(*) FROM entries").fetchone()
            if revision != count:
                raise errors.Unavailable(
                    f"the change log of {self.path} has {count} entries up to revision {revision}; restore a backup"
                )
            documents: dict[str, dict[str, Stored]] = {}
            for kind, id, of, body in db.execute("SELECT kind, id, revision, body FROM documents ORDER BY kind, id"):
                documents.setdefault(kind, {})[id] = Stored(_decode(body), of)
            tombstones = db.execute("SELECT dns, id, revision FROM tombstones ORDER BY dns").fetchall()
            return Snapshot(_epoch(db), revision, documents, tuple(Tombstone(*row) for row in tombstones))

    def entries(self, after: int) -> list[Entry]:
        with _speaking(self.path), _reading(self._reader) as db:
            return _entries(db, "revision > ?", (after,), "")

    def find(self, query: Query) -> list[Entry]:
        where, values = _where(query)
        # with a connection of its own: the reader goes on telling whether the store changed
        mode = "ro" if self._frozen is None else "ro&immutable=1"
        with _speaking(self.path), contextlib.closing(sqlite_files.connect(self.path, mode)) as own, _reading(own) as db:
            return _entries(db, where, values, f"ORDER BY revision DESC LIMIT {query.limit:d}")

    def begin(self) -> SqliteTransaction:
        with _speaking(self.path):
            sqlite_files.begin_immediate(self._writer)
        return SqliteTransaction(self._writer, self.path)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._reader.close()
            if not self.read_only:
                self._writer.close()


class SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._path = path

    @property
    def epoch(self) -> str:
        with _speaking(self._path):
            return _epoch(self._db)

    def entries(self, after: int) -> list[Entry]:
        with _speaking(self._path):
            return _entries(self._db, "revision > ?", (after,), "")

    def recall(self, key: str) -> Memo | None:
        with _speaking(self._path):
            row = self._db.execute("SELECT key, time, digest, body FROM memos WHERE key = ?", (key,)).fetchone()
            return Memo(*row) if row else None

    def commit(self, entry: Entry | None, memo: Memo | None = None, forget_before: str = "") -> None:
        try:
            with _speaking(self._path):
                if entry is not None:
                    _write_documents(self._db, entry)
                    _write_log(self._db, [entry])
                if forget_before:
                    self._db.execute("DELETE FROM memos WHERE time < ?", (forget_before,))
                if memo is not None:
                    self._db.execute(
                        "INSERT OR REPLACE INTO memos VALUES (?, ?, ?, ?)",
                        (memo.key, memo.time, memo.digest, memo.body),
                    )
                self._db.execute("COMMIT")
        except errors.Unavailable:
            self.rollback()
            raise

    def restore(self, snapshot: Snapshot, history: list[Entry]) -> None:
        try:
            with _speaking(self._path):
                for table in ("changes", "entries", "documents", "tombstones", "memos"):
                    self._db.execute(f"DELETE FROM {table}")  # noqa: S608  # names from the line above
                self._db.execute("UPDATE identity SET epoch = ?", (snapshot.epoch,))
                self._db.executemany(
                    "INSERT INTO documents VALUES (?, ?, ?, ?)",
                    (
                        (kind, id, stored.revision, _encode(stored.body))
                        for kind, of_kind in snapshot.documents.items()
                        for id, stored in of_kind.items()
                    ),
                )
                self._db.executemany(
                    "INSERT INTO tombstones VALUES (?, ?, ?)", ((t.dns, t.id, t.revision) for t in snapshot.tombstones)
                )
                _write_log(self._db, history)
                self._db.execute("COMMIT")
        except errors.Unavailable:
            self.rollback()
            raise

    def rollback(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


@contextlib.contextmanager
def _reading(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Several selects that see one state."""
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        connection.execute("ROLLBACK")


# Rows


def _epoch(db: sqlite3.Connection) -> str:
    row = db.execute("SELECT epoch FROM identity").fetchone()
    if row is None:
        raise errors.Unavailable("the database has lost its identity; restore a backup")
    epoch: str = row[0]
    return epoch


def _entries(db: sqlite3.Connection, where: str, values: Iterable[object], tail: str) -> list[Entry]:
    rows = db.execute(
        "SELECT revision, time, actor, on_behalf_of, request_id, reason, forced, retired FROM entries "  # noqa: S608  # our words
        f"WHERE {where} {tail or 'ORDER BY revision'}",
        tuple(values),
    ).fetchall()
    return [
        Entry(
            revision,
            time,
            actor,
            on_behalf_of,
            request_id,
            reason,
            bool(forced),
            _changes(db, revision),
            *_unpacked(retired),
        )
        for revision, time, actor, on_behalf_of, request_id, reason, forced, retired in rows
    ]


def _packed(entry: Entry) -> bytes | None:
    if entry.vanished or entry.forgone:
        return _encode(_Brought(entry.retired, entry.vanished, entry.forgone))
    return _encode(entry.retired) if entry.retired else None


def _unpacked(body: bytes | None) -> tuple[tuple[Retired, ...], tuple[str, ...], tuple[Forgone, ...]]:
    found = _brought(body) if body else ()
    return (found.retired, found.vanished, found.forgone) if isinstance(found, _Brought) else (found, (), ())


def _changes(db: sqlite3.Connection, revision: int) -> tuple[Change, ...]:
    rows = db.execute("SELECT kind, id, operation, before, after FROM changes WHERE revision = ? ORDER BY position", (revision,))
    return tuple(Change(kind, id, operation, _document(before), _document(after)) for kind, id, operation, before, after in rows)


def _where(query: Query) -> tuple[str, list[object]]:
    terms = {
        "revision < ?": query.before,
        "actor = ?": query.actor,
        "time >= ?": query.since,
        "time <= ?": query.until,
    }
    of_change = {"kind = ?": query.kind, "id = ?": query.id}
    where = [term for term, value in terms.items() if value is not None]
    values: list[object] = [value for value in terms.values() if value is not None]
    inner = [term for term, value in of_change.items() if value is not None]
    if inner:
        where.append(f"revision IN (SELECT revision FROM changes WHERE {' AND '.join(inner)})")  # noqa: S608  # our words
        values += [value for value in of_change.values() if value is not None]
    return " AND ".join(where) or "true", values


def _document(body: bytes | None) -> changes.Document | None:
    return None if body is None else _decode(body)


def _body(document: changes.Document | None) -> bytes | None:
    return None if document is None else _encode(document)


def _write_documents(db: sqlite3.Connection, entry: Entry) -> None:
    gone = [(change.kind, change.id) for change in entry.changes if change.after is None]
    kept = [(c.kind, c.id, entry.revision, _encode(c.after)) for c in entry.changes if c.after is not None]
    db.executemany("DELETE FROM documents WHERE kind = ? AND id = ?", gone)
    db.executemany("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", kept)
    for dns, tombstone in changes.retirements(entry):
        if tombstone is None:
            db.execute("DELETE FROM tombstones WHERE dns = ?", (dns,))
        else:
            db.execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (dns, tombstone.id, tombstone.revision))


def _write_log(db: sqlite3.Connection, entries: Iterable[Entry]) -> None:
    for e in entries:
        db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                e.revision,
                e.time,
                e.actor,
                e.on_behalf_of,
                e.request_id,
                e.reason,
                int(e.forced),
                _packed(e),
            ),
        )
        db.executemany(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (e.revision, position, c.kind, c.id, c.operation, _body(c.before), _body(c.after))
                for position, c in enumerate(e.changes)
            ),
        )
