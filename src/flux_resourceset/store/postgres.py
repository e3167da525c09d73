"""The PostgreSQL store: a schema of its own in a database that any number of processes share.

Whatever is read is one transaction, whatever is written too; writers wait for each other at the one row of identity. What goes
on is seen by a thread (see postgres_watch.py), so that nobody who asks waits for the network to hear that nothing did.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import psycopg

from flux_resourceset import errors
from flux_resourceset.changes import Applied, Entry, Snapshot
from flux_resourceset.store import postgres_connections, postgres_schema
from flux_resourceset.store.postgres_connections import (
    LIMITS,
    LONG_PATIENCE_SECONDS,
    NO_LIMIT,
    Database,
    PatientConnection,
    Target,
    translated_errors,
)
from flux_resourceset.store.postgres_watch import CHANNEL, LOOK, Watch
from flux_resourceset.store.sql_connection import Connection
from flux_resourceset.store.sql_copying import Progress
from flux_resourceset.store.sql_store import SqlStore, SqlTransaction

SPARE = 3  # connections that are kept for the next who asks

# at least what it takes that nothing acknowledged is lost; an administrator may ask for more
_DURABLE = (
    "SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply')"
    " THEN current_setting('synchronous_commit') ELSE 'on' END, true)"
)
_VERSION = "SELECT max(number) FROM migrations"
_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {LIMITS}; {_VERSION}"
_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {LIMITS}; {_DURABLE}; SELECT FROM identity FOR UPDATE; {_VERSION}"
_COMMIT = f"{LOOK}; SELECT pg_notify('{CHANNEL}', ''); COMMIT"
UNKNOWN = "whether the change is kept is unknown: look before you send it again"


class PostgresStore(SqlStore):
    lags = True

    def __init__(self, target: Target, *, read_only: bool = False, create: bool = True, begin_anew: bool = False) -> None:
        self._target = target if read_only else target.for_writing()
        self.name = target.name
        self._spare: list[PatientConnection] = []
        self._lock = threading.Lock()
        self._closed = False
        with contextlib.closing(self._target.connect()) as connection, translated_errors(self._target):
            postgres_schema.check_encoding(connection)
            if not read_only:
                postgres_schema.prepare(connection, create=create, begin_anew=begin_anew)
                (durable,) = connection.execute(_DURABLE.encode()).fetchone() or ("",)
                if durable not in ("on", "remote_apply"):
                    raise errors.Doubt(f"the database {self.name} has synchronous_commit {durable!r}; set it to on")
        self._watch = Watch(self._target)

    # What others have done

    def version(self) -> object:
        return self._watch.version

    def seen(self) -> float:
        return self._watch.seen

    def is_reachable(self) -> bool:
        return self._watch.reachable

    def on_change(self, callback: Callable[[], None]) -> None:
        self._watch.on_change(callback)

    # Connections

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self.connection(_READ) as connection, translated_errors(self._target):
            yield Database(connection)

    @contextlib.contextmanager
    def connection(self, prologue: str) -> Iterator[PatientConnection]:
        """One in a transaction that was begun so; what is not committed in it was never done."""
        connection = self._begun(prologue)
        try:
            yield connection
        except errors.Unreachable:
            self.lost(connection)
            raise
        finally:
            self._give_back(connection)

    def lost(self, connection: PatientConnection) -> None:
        """One that cannot be used any more; whether the others can, is looked at."""
        connection.close()
        self._watch.wake()

    def _begun(self, prologue: str) -> PatientConnection:
        self._watch.check()
        while True:
            connection, spare = self._taken()
            try:
                with translated_errors(self._target):
                    postgres_schema.check((connection.script(prologue)[-1] or (None,))[0], self.name)
                self._watch.answered()
                return connection
            except errors.Unreachable:
                self.lost(connection)
                if not spare or connection.silence >= 1:
                    raise
                # it was cut off while nobody used it, which says nothing of another one
            except BaseException:
                self._give_back(connection)
                raise

    def _taken(self) -> tuple[PatientConnection, bool]:
        """A connection, and whether it was used before."""
        generation = self._watch.generation
        while True:
            with self._lock:
                connection = self._spare.pop() if self._spare else None
            if connection is None:
                began = time.monotonic()
                connection = self._target.connect()
                connection.silence, connection.generation = time.monotonic() - began, generation
                return connection, False
            if connection.generation == generation:
                connection.silence, connection.patience = 0.0, postgres_connections.PATIENCE_SECONDS
                return connection, True
            connection.close()

    def _give_back(self, connection: PatientConnection) -> None:
        with contextlib.suppress(psycopg.Error):
            if connection.is_in_transaction():
                connection.script("ROLLBACK")
        with self._lock:
            if not self._closed and connection.is_idle() and len(self._spare) < SPARE:
                self._spare.append(connection)
                return
        connection.close()

    def begin(self) -> PostgresTransaction:
        return PostgresTransaction(self, self._watch)

    def settle(self) -> None:
        """Everything is where it belongs with the commit."""

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, []
        for connection in spare:
            connection.close()
        self._watch.close()


class PostgresTransaction(SqlTransaction):
    def __init__(self, store: PostgresStore, watch: Watch) -> None:
        self.name = store.name
        self._store = store
        self._watch = watch
        with contextlib.ExitStack() as held:
            self._connection = held.enter_context(store.connection(_WRITE))
            self._held = held.pop_all()
        self._db = Database(self._connection)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Connection]:
        try:
            with translated_errors(self._connection.target):
                yield self._db
        except errors.Unreachable:
            self._store.lost(self._connection)
            raise

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        try:
            with self._asking() as db:
                yield db
            self._commit()
        finally:
            self.rollback()

    def _commit(self) -> None:
        self._connection.warnings.clear()
        try:
            with self._asking():
                version, *_ = self._connection.script(_COMMIT)
        except errors.Unreachable as exc:
            raise errors.Unreachable(f"{exc.detail}; {UNKNOWN}") from exc
        self._watch.committed(version)
        if self._connection.warnings:  # it was not waited for to the end: that a standby has it is not certain
            raise errors.Unreachable(f"no standby of the database {self.name} has confirmed the change; {UNKNOWN}")

    def restore(self, snapshot: Snapshot, history: list[Entry], applied: Sequence[Applied] = ()) -> None:
        self._take_time()
        super().restore(snapshot, history, applied)

    def fold(self, before: int, digest: str | None = None) -> int:
        self._take_time()
        return super().fold(before, digest)

    def take_copy(self, source: Connection, *, replace: bool, progress: Progress) -> None:
        self._take_time()
        super().take_copy(source, replace=replace, progress=progress)

    def _take_time(self) -> None:
        """What goes over the whole log."""
        with self._asking():
            self._connection.patience = LONG_PATIENCE_SECONDS
            self._connection.script(NO_LIMIT)

    def rollback(self) -> None:
        self._held.close()
