"""The tables in PostgreSQL: created and migrated by a writer, while others read; only checked by a reader."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Sequence
from importlib import resources

import psycopg

from flux_resourceset import errors
from flux_resourceset.store import sql_rows
from flux_resourceset.store.postgres_connections import LIMITS, Database, PatientConnection, no_schema

log = logging.getLogger(__name__)

LOCK = 0x464C5258  # "FLRX": whoever creates or migrates holds this advisory lock
MIGRATING_SECONDS = 30.0  # to find a moment in which nobody reads a table that is to be changed
_LOST = "restore it from a backup, or start once with --begin-anew to give up what was in it"
_MISSING = (
    "check DATABASE_URL, or restore it from a backup; for a first installation, start a server once with ?mode=rwc in"
    " DATABASE_URL and without the SNAPSHOT_FILE of an earlier fleet"
)
_SCHEMA = b"SELECT oid FROM pg_namespace WHERE nspname = 'flux_resourceset'"
_ASIDE = "flux_resourceset_lost_"
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


def prepare(connection: PatientConnection, *, create: bool, begin_anew: bool = False, steps: Sequence[str] = _STEPS) -> None:
    """Leave a whole store of the schema that these steps lead to, or refuse.

    `create`: make the tables in a database that has none of ours. `begin_anew`: also in the place of a store that is lost.
    """
    name, wanted = connection.target.name, len(steps)
    deadline = time.monotonic() + MIGRATING_SECONDS
    while True:
        if begin_anew:
            _set_aside_lost(connection)
        version = _version(connection)
        if version == wanted:
            return
        if version is not None and version > wanted:
            raise errors.Doubt(f"the database {name} has schema {version}, newer than this program's {wanted}")
        if version == 0:
            raise errors.Doubt(f"the database {name} has lost its fleet: the tables are there and empty; {_LOST}")
        if version is None and not (create or begin_anew):
            raise errors.Doubt(f"there is no fleet in the database {name}; {_MISSING}")
        try:
            _migrate(connection, steps)
        except psycopg.errors.LockNotAvailable:
            connection.script("ROLLBACK")
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _version(connection: PatientConnection) -> int | None:
    """Return the number of the schema; 0 where the tables hold none, and None where there are no tables of ours."""
    tables = connection.execute(b"SELECT tablename FROM pg_tables WHERE schemaname = 'flux_resourceset'").fetchall()
    if not tables:
        return None
    if ("migrations",) not in tables:
        return 0
    (number,) = connection.execute(b"SELECT max(number) FROM flux_resourceset.migrations").fetchone() or (None,)
    return number or 0


def _is_lost(connection: PatientConnection) -> bool:
    """Whether tables of ours do not hold a whole fleet. One of another release is never lost."""
    version = _version(connection)
    if version != SCHEMA_VERSION:
        return version == 0
    try:
        connection.script(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {LIMITS}")
        sql_rows.check_whole(Database(connection), connection.target.name)
    except (errors.Doubt, psycopg.errors.UndefinedTable):
        return True
    finally:
        connection.script("ROLLBACK")
    return False


def _set_aside_lost(connection: PatientConnection) -> None:
    """Rename the schema of a lost store, so that an administrator can still look at what is left of it."""
    judged = connection.execute(_SCHEMA).fetchone()
    if not _is_lost(connection):
        return
    connection.script(f"BEGIN ISOLATION LEVEL READ COMMITTED; {LIMITS}; SELECT pg_advisory_xact_lock({LOCK})")
    if connection.execute(_SCHEMA).fetchone() != judged:  # another process has begun a store meanwhile, which may be in use
        connection.script("ROLLBACK")
        return
    name = f"{_ASIDE}{_last_aside(connection) + 1}"
    connection.script(f"ALTER SCHEMA flux_resourceset RENAME TO {name}; COMMIT")
    log.warning("a lost store was set aside", extra={"schema": name})


def _last_aside(connection: PatientConnection) -> int:
    """Return the highest number of a schema that was set aside; lower ones may have been dropped."""
    names = connection.execute(b"SELECT nspname FROM pg_namespace").fetchall()
    found = (re.fullmatch(rf"{_ASIDE}([0-9]+)", name) for (name,) in names)
    return max((int(match[1]) for match in found if match), default=0)


def _migrate(connection: PatientConnection, steps: Sequence[str]) -> None:
    connection.script(f"BEGIN; {LIMITS}; {BRIEFLY}; SELECT pg_advisory_xact_lock({LOCK})")
    version = _version(connection) or 0
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
