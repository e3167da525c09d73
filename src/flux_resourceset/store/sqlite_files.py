"""How a SQLite file is opened: created whole and migrated by a writer, only checked by a reader."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flux_resourceset import atomic_files, errors
from flux_resourceset.store import marker, sql_rows, sqlite_upgrade

APPLICATION_ID = 0x464C5258  # "FLRX": not just any SQLite file
BUSY_SECONDS = 7.0  # how long to wait for another process's write; a server that stops has eight
PUT_AWAY_MILLISECONDS = 250  # to wait for those who read, before a write is acknowledged all the same
OPENING_SECONDS = 0.2  # to wait for a write before lost files are made anew; whoever asks is told to try again
BESIDE = ("-wal", "-shm")  # the newest data, and where they are

REMEDY = "start a server with API_MODE=crud on it first"
_LOST = "restore it from a backup, or start once with --begin-anew to give up what was in it"


def migrations() -> list[str]:
    """The steps from nothing to the schema, in order."""
    folder = resources.files("flux_resourceset.store") / "sql"
    names = sorted(f.name for f in folder.iterdir() if re.fullmatch(r"sqlite_\d+\.sql", f.name))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


SCHEMA_VERSION = len(migrations())
FREE_SHARE = 4  # a quarter of a file that is free after its schema was brought forward is given back


class SqliteConnection(sqlite3.Connection):
    def stream(self, sql: str, values: Sequence[Any] = (), /) -> Iterator[Any]:
        return self.execute(sql, values)  # SQLite never reads ahead


def connect(path: Path, mode: str) -> SqliteConnection:
    # used by one thread at a time, but not always by the same
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False,
        timeout=BUSY_SECONDS, factory=SqliteConnection,
    )  # fmt: skip
    try:
        if mode == "rw":
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
    except BaseException:  # the first to touch the file is the first to see that it is none
        connection.close()
        raise
    return connection


def connect_checked(path: Path, mode: str) -> SqliteConnection:
    """To a database of this schema; one that is refused is not left open."""
    connection = connect(path, mode)
    try:
        check_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(path: Path, *, create: bool, begin_anew: bool) -> None:
    """Leave a whole, good store of this schema at the path, or refuse."""
    _check_presence(path, create, begin_anew)
    if not exists(path):
        _create(path)
    with contextlib.closing(connect(path, "rw")) as connection:
        _check_kind(connection, path)
        _retry(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        check_damage(connection, path)
        _migrate(connection, path)
        _check_marker(connection, path, begin_anew)


# What is there


def check_damage(connection: sqlite3.Connection, path: Path) -> None:
    """Grows with the file."""
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise errors.Doubt(f"the database {path} is damaged ({' '.join(damage.split())}); restore it from a backup")


def exists(path: Path) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        raise errors.Doubt(f"the database {path} cannot be reached: {exc.strerror}; mend its name or its permissions") from exc
    return True


def _check_presence(path: Path, create: bool, begin_anew: bool) -> None:
    """A store that was lost is never begun anew unless somebody says so: an empty fleet deletes what clusters run."""
    if exists(path) and os.path.getsize(path):
        return
    emptied = exists(path)
    left = [f"{path}{name}" for name in BESIDE if os.path.exists(f"{path}{name}") and os.path.getsize(f"{path}{name}")]
    known = marker.read(path)
    if begin_anew and create:
        path.unlink(missing_ok=True)
        for name in left:  # SQLite would take them for the new file's
            os.replace(name, f"{name}.lost")
        marker.remove(path)
    elif emptied:
        raise errors.Doubt(f"the database {path} is damaged (it is empty); {_LOST}")
    elif known is not None or left:
        said = marker.place(path) if known is not None else left[0]
        raise errors.Unreachable(f"the database {path} is lost: {said} says that there was one; {_LOST}")
    elif not create:
        raise errors.Unreachable(f"there is no database at {path}; use mode=rwc in DATABASE_URL to create it")


def _check_marker(connection: SqliteConnection, path: Path, begin_anew: bool) -> None:
    """The marker names this store from its first document on; an empty store in the place of a filled one is a lost one.

    Be it the same store: a copy of the database alone, or what is left of it without its -wal file, may hold nothing yet.
    """
    head = sql_rows.head(connection)
    known = marker.read(path)
    if head.revision:
        marker.fill(path, head.epoch)
    elif known is not None and not (known.filling and known.epoch == head.epoch):
        if not begin_anew:
            raise errors.Doubt(
                f"the database {path} is empty, and {marker.place(path)} says that there was a store with documents; {_LOST}"
            )
        another = sql_rows.identity(connection)._replace(epoch=uuid.uuid4().hex)  # whoever followed the lost one is to doubt it
        sql_rows.write_identity(connection, another)
        marker.remove(path)


def _create(path: Path) -> None:
    """A store without documents, which appears at its path as a whole: nobody ever sees half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".new")  # for its owner alone
        os.close(number)
    except OSError as exc:
        raise errors.Doubt(f"the database {path} cannot be created: {exc.strerror}") from exc
    made = Path(name)
    try:
        with contextlib.closing(connect(made, "rw")) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for step in migrations():
                _run(connection, step)
            connection.execute("INSERT INTO identity (epoch) VALUES (?)", (uuid.uuid4().hex,))
            sql_rows.write_identity(connection, sql_rows.identity(connection))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        _put_in_place(made, path)
    except OSError as exc:
        raise errors.Doubt(f"the database {path} cannot be created: {exc.strerror}") from exc
    finally:
        for beside in ("", *BESIDE):
            Path(f"{made}{beside}").unlink(missing_ok=True)


def _put_in_place(made: Path, path: Path) -> None:
    try:
        os.link(made, path)
    except FileExistsError:
        pass  # another process was faster
    except OSError:  # no links on this file system
        if not exists(path):
            os.rename(made, path)
    atomic_files.sync_directory(path.parent)


# The schema


def _check_kind(connection: SqliteConnection, path: Path) -> None:
    """Before anything is written to it: ours have had a schema since they appeared."""
    if _version(connection) == 0:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        whose = "belongs to another program" if tables else f"is damaged (it is empty); {_LOST}"
        raise errors.Doubt(f"the database {path} {whose}")


def _migrate(connection: SqliteConnection, path: Path) -> None:
    version = _version(connection)
    if version == SCHEMA_VERSION:
        return  # without waiting for the lock of another writer
    begin_immediate(connection)
    try:
        version = _version(connection)
        if version > SCHEMA_VERSION:
            raise errors.Doubt(f"the database {path} has schema {version}, newer than this program's {SCHEMA_VERSION}")
        for step in migrations()[version:]:
            _run(connection, step)
        if version <= sqlite_upgrade.WHOLE:
            sqlite_upgrade.convert(connection, path, version)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    _give_back(connection)


def _give_back(connection: SqliteConnection) -> None:
    """What is free in the file. SQLite writes it anew in one transaction, beside which the old one stays until it is through;
    a full disk is no reason not to serve. Whoever has it open sees that it shrinks, and opens it again."""
    pages, free = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
    if free * FREE_SHARE > pages:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("VACUUM")
        put_away(connection)


def _run(connection: SqliteConnection, script: str) -> None:
    for statement in _statements(script):
        connection.execute(statement)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one, because executescript would commit in between."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def check_schema(connection: SqliteConnection, path: Path) -> None:
    """With every change of the store: another release may have brought the schema forward under a running process."""
    version = _version(connection)
    if version == 0:
        raise errors.Doubt(f"the database {path} has no schema yet; {REMEDY}")
    if version != SCHEMA_VERSION:
        raise errors.Doubt(
            f"the database {path} has schema {version} and this program wants {SCHEMA_VERSION}; "
            "run the same release as the writer"
        )


def _version(connection: SqliteConnection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    mine = connection.execute("PRAGMA application_id").fetchone()[0] in (0, APPLICATION_ID)
    if not mine:
        raise errors.Doubt("the database belongs to another program")
    return version


# Locks


@contextlib.contextmanager
def sole_writer(path: Path, seconds: float = BUSY_SECONDS) -> Iterator[None]:
    """Keep every other writer out, whatever becomes of the -shm file, in which SQLite's own lock is: when that is removed,
    whoever opens the database anew knows nothing of those who have it open. The lock is on the directory, which stays."""
    try:
        directory = os.open(path.parent, os.O_RDONLY)
    except OSError as exc:
        raise errors.Doubt(f"the directory of {path} cannot be opened: {exc.strerror}; mend its permissions") from exc
    try:
        _retry(lambda: _lock(directory, path), seconds)
        yield
    finally:
        os.close(directory)  # and with it the lock


def _lock(directory: int, path: Path) -> None:
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        raise sqlite3.OperationalError("database is locked") from exc  # what SQLite says when it has waited long enough
    except OSError as exc:
        raise errors.Doubt(
            f"the directory of {path} cannot be locked: {exc.strerror}; put the database on a local file system"
        ) from exc


@contextlib.contextmanager
def opening(path: Path, *, at_start: bool) -> Iterator[None]:
    """Where the files beside the database are missing, they are made while nobody writes: whoever still has the lost ones open,
    and writes to them, notices the new ones before the next write. Nobody is asked anything `at_start`, so there is time to wait
    for others that start, too."""
    if all(beside(path)) or not path.parent.is_dir():
        yield
    else:
        with sole_writer(path, BUSY_SECONDS if at_start else OPENING_SECONDS):
            yield


def beside(path: Path) -> list[tuple[int, int] | None]:
    """Which files they are now; None for one that is not there."""
    files: list[tuple[int, int] | None] = []
    for name in BESIDE:
        try:
            stat = os.stat(f"{path}{name}")
            files.append((stat.st_dev, stat.st_ino))
        except OSError:
            files.append(None)
    return files


def are_open(files: Iterable[tuple[int, int] | None]) -> bool:
    """Whether this process has just these open, or there are none: by their names others may have been found."""
    opened = set()
    for number in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            stat = os.fstat(int(number))
            opened.add((stat.st_dev, stat.st_ino))
    return all(file is None or file in opened for file in files)


# Who wrote last


def leave(path: Path) -> None:
    """Say what the database is like now that one of us has written to it, while nobody else may; a hint, so it need not last."""
    with contextlib.suppress(OSError), open(_left(path), "w", opener=_for_its_owner) as file:
        file.write(_appearance(path))


def is_as_left(path: Path) -> bool:
    """Whether nobody else has written to it since: a copy over it, below a -wal file with newer pages, is a mixture of both."""
    try:
        return _left(path).read_text() == _appearance(path)
    except (OSError, UnicodeDecodeError):
        return False


def _left(path: Path) -> Path:
    return Path(f"{path}.left")


def _for_its_owner(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _appearance(path: Path) -> str:
    status = os.stat(path)
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}\n"


def put_away(connection: SqliteConnection) -> None:
    """What is in the -wal file, into the database: then its loss takes nothing along. Those who read are waited for a little."""
    with contextlib.suppress(sqlite3.Error):
        connection.execute(f"PRAGMA busy_timeout = {PUT_AWAY_MILLISECONDS}")
        connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()


def begin_immediate(connection: SqliteConnection) -> None:
    _retry(lambda: connection.execute("BEGIN IMMEDIATE"))


def _retry(action: Callable[[], object], seconds: float = BUSY_SECONDS) -> None:
    """SQLite waits by itself for a lock, but gives up at once in some races of opening and recovery."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as exc:
            if ("locked" not in str(exc) and "busy" not in str(exc)) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
