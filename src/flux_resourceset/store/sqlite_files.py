"""How a SQLite file is opened: created with its schema and migrated by a writer, only checked by a reader."""

from __future__ import annotations

import os
import re
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from flux_resourceset import errors

APPLICATION_ID = 0x464C5258  # "FLRX": not just any SQLite file
BUSY_SECONDS = 7.0  # how long to wait for another process's write; a server that stops has eight

REMEDY = "start a server with API_MODE=crud on it first"


def migrations() -> list[str]:
    """The steps from nothing to the schema, in order."""
    folder = resources.files("flux_resourceset.store") / "sql"
    names = sorted(f.name for f in folder.iterdir() if re.fullmatch(r"sqlite_\d+\.sql", f.name))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


SCHEMA_VERSION = len(migrations())


def connect(path: Path, mode: str) -> sqlite3.Connection:
    # used by one thread at a time, but not always by the same
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False,
        timeout=BUSY_SECONDS,
    )  # fmt: skip
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def open_writer(path: Path, create: bool) -> sqlite3.Connection:
    if not exists(path):
        if not create:
            raise errors.Unavailable(f"there is no database at {path}; use mode=rwc in DATABASE_URL to create it")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # the -wal and -shm files take the same mode
        except OSError as exc:
            raise errors.Unavailable(f"the database {path} cannot be created: {exc.strerror}") from exc
    elif os.path.getsize(path) == 0 and (not create or _size(Path(f"{path}-wal"))):
        # an empty file is a new one to us only when we may create one, and when no log says that there was more
        raise errors.Unavailable(f"the database {path} is damaged (it is empty); restore it from a backup")
    connection = connect(path, "rw")
    _retry(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
    connection.execute("PRAGMA synchronous = FULL")
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise errors.Unavailable(f"the database {path} is damaged ({damage}); restore it from a backup")
    _migrate(connection, path)
    return connection


def exists(path: Path) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        raise errors.Unavailable(
            f"the database {path} cannot be reached: {exc.strerror}; mend its name or its permissions"
        ) from exc
    return True


def _size(path: Path) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == SCHEMA_VERSION:
        return  # without waiting for the lock of another writer
    begin_immediate(connection)
    try:
        version = _version(connection)
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if version == 0 and tables:
            raise errors.Unavailable(f"the database {path} belongs to another program")
        if version > SCHEMA_VERSION:
            raise errors.Unavailable(f"the database {path} has schema {version}, newer than this program's {SCHEMA_VERSION}")
        for step in migrations()[version:]:
            for statement in _statements(step):
                connection.execute(statement)
        if version == 0:
            connection.execute("INSERT INTO identity VALUES (?)", (uuid.uuid4().hex,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one, because executescript would commit in between."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def check_schema(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version == 0:
        raise errors.Unavailable(f"the database {path} has no schema yet; {REMEDY}")
    if version != SCHEMA_VERSION:
        raise errors.Unavailable(
            f"the database {path} has schema {version} and this program wants {SCHEMA_VERSION}; "
            "run the same release as the writer"
        )


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    mine = connection.execute("PRAGMA application_id").fetchone()[0] in (0, APPLICATION_ID)
    if not mine:
        raise errors.Unavailable("the database belongs to another program")
    return version


def begin_immediate(connection: sqlite3.Connection) -> None:
    _retry(lambda: connection.execute("BEGIN IMMEDIATE"))


def _retry(action: Callable[[], object]) -> None:
    """SQLite waits by itself for a lock, but gives up at once in some races of opening and recovery."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as exc:
            if ("locked" not in str(exc) and "busy" not in str(exc)) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
