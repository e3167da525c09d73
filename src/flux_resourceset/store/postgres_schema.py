"""The tables in PostgreSQL: created and migrated by a writer, while others read; only checked by a reader."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from importlib import resources

import psycopg

from flux_resourceset import errors
from flux_resourceset.store import sql_rows
from flux_resourceset.store.postgres_connections import LIMITS, Database, PatientConnection, no_schema

LOCK = 0x464C5258  # "FLRX": whoever creates or migrates holds this advisory lock
MIGRATING_SECONDS = 30.0  # to find a moment in which nobody reads a table that is to be changed
BRIEFLY = "SET LOCAL lock_timeout = '250ms'"  # those who want to read wait behind whoever waits to change a table


def migrations() -> list[str]:
    """The steps from nothing to the schema, in order."""
    folder = resources.files("flux_resourceset.store") / "sql"
    names = sorted(f.name for f in folder.iterdir() if re.fullmatch(r"postgres_\d+\.sql", f.name))
    return [(folder / name).read_text(encoding="utf-8") for name in names]


_STEPS = migrations()
SCHEMA_VERSION = len(_STEPS)


def check(number: int | None, name: str) -> None:
    """With every transaction: another release may have brought the schema forward under a running process."""
    if number is None:
        raise no_schema(name)
    if number != SCHEMA_VERSION:
        raise errors.Doubt(
            f"the database {name} has schema {number} and this program wants {SCHEMA_VERSION}; run the same release as the writer"
        )


def check_encoding(connection: PatientConnection) -> None:
    (encoding,) = connection.execute(b"SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise errors.Doubt(
            f"the database {connection.target.name} has the encoding {encoding}; it must be UTF8: create it with ENCODING 'UTF8'"
        )


def prepare(connection: PatientConnection, *, create: bool, steps: Sequence[str] = _STEPS) -> None:
    """Leave a whole store of the schema that these lead to, or refuse."""
    name, wanted = connection.target.name, len(steps)
    deadline = time.monotonic() + MIGRATING_SECONDS
    while True:
        version = _version(connection)
        if version == wanted:
            return
        if version > wanted:
            raise errors.Doubt(f"the database {name} has schema {version}, newer than this program's {wanted}")
        if version == 0 and not create:
            raise errors.Doubt(f"there is no store in the database {name} any more; restore it from a backup")
        try:
            _migrate(connection, steps)
        except psycopg.errors.LockNotAvailable:
            connection.script("ROLLBACK")
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _version(connection: PatientConnection) -> int:
    there = "SELECT 1 FROM pg_tables WHERE schemaname = 'flux_resourceset' AND tablename = 'migrations'"
    if connection.script(there) == [None]:
        return 0
    (number,) = connection.execute(b"SELECT max(number) FROM flux_resourceset.migrations").fetchone() or (None,)
    return number or 0


def _migrate(connection: PatientConnection, steps: Sequence[str]) -> None:
    connection.script(f"BEGIN; {LIMITS}; {BRIEFLY}; SELECT pg_advisory_xact_lock({LOCK})")
    version = _version(connection)
    if version:
        connection.script("SELECT FROM identity FOR UPDATE")  # a writer of the release before has to end first
    else:
        # by select: functions such as to_regclass may know less than others have committed
        if connection.script("SELECT 1 FROM pg_namespace WHERE nspname = 'flux_resourceset'") == [None]:
            connection.script("CREATE SCHEMA flux_resourceset")
    for number, step in enumerate(steps[version:], version + 1):
        connection.script(step)
        connection.execute(b"INSERT INTO migrations (number) VALUES ($1)", (number,))
    if version == 0:
        db = Database(connection)
        db.execute("INSERT INTO identity (epoch) VALUES (?)", (uuid.uuid4().hex,))
        sql_rows.write_identity(db, sql_rows.identity(db))
    connection.script("COMMIT")
