"""Connections to PostgreSQL: how they are made, how long they are waited for, and what a driver's exceptions become."""

from __future__ import annotations

import contextlib
import functools
import itertools
import queue
import re
import threading
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import abc, conninfo, pq

from flux_resourceset import errors
from flux_resourceset.store import sql_connection
from flux_resourceset.store.sql_connection import Cursor, Row

PATIENCE_SECONDS = 9.0  # to hear nothing, over all that one read or write asks: then it is told that the database is away
LONG_PATIENCE_SECONDS = 600.0  # for what replaces or folds a whole log
REMEMBERED = 1000  # signs of a statement: longer ones are about many documents, and seldom the same
FETCHED = 1000  # rows at a time of a result that is walked

LIMITS = (
    "SET LOCAL search_path = flux_resourceset, pg_temp;"  # whatever a role or a database says
    " SET LOCAL statement_timeout = '8s'; SET LOCAL lock_timeout = '7s';"  # a server that stops has eight
    # longer than the longest work on a draft: an import of 100,000 clusters takes a minute, and on a busy machine several
    " SET LOCAL idle_in_transaction_session_timeout = '300s';"
    " SET LOCAL jit = off"  # to compile a statement takes longer than to run any of ours
)
NO_LIMIT = f"SET LOCAL statement_timeout = '{LONG_PATIENCE_SECONDS:.0f}s'"

T = TypeVar("T")


class Refused(errors.Unreachable):
    """It answers, and does not let us in: at a start that is somebody's mistake, later on it may pass."""


class Target:
    """Where a database is, as DATABASE_URL and the environment say it."""

    def __init__(self, parameters: dict[str, str], password_file: Path | None = None) -> None:
        self._parameters = dict(parameters)
        self._password_file = password_file
        told = {option.keyword.decode(): option.val.decode() for option in pq.Conninfo.get_defaults() if option.val}
        told |= {name: value for name, value in parameters.items() if value}
        hosts = (told.get("host") or told.get("hostaddr") or "localhost").split(",")
        ports = [port or "5432" for port in told.get("port", "5432").split(",")]
        wrong = next((port for port in ports if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)), None)
        if wrong or len(ports) not in (1, len(hosts)):
            raise errors.StartupError("DATABASE_URL: PostgreSQL cannot read it; ports must be numbers, one or as many as hosts")
        places = [f"{host}:{port}" for host, port in zip(hosts, ports * len(hosts), strict=False)]
        self.name = f"{','.join(places)}/{told.get('dbname') or told.get('user', '')}"
        self._hosts = len(hosts)
        self._secrets = {value for name, value in told.items() if "password" in name}

    def __repr__(self) -> str:
        return f"Target({self.name!r})"

    def for_writing(self) -> Target:
        """Of several hosts the one that takes writes, unless somebody says otherwise."""
        several = {"target_session_attrs": "read-write"} if self._hosts > 1 else {}
        return Target({**several, **self._parameters}, self._password_file)

    def plain(self, exc: Exception) -> str:
        """What an exception says, in one line and without a password."""
        text = " ".join(str(exc).split("\n")[0].split())
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def connect(self, seconds: float | None = None) -> PatientConnection:
        """Within that time, or what there is for anything, whatever a name server or a host does: in a thread, for names are
        looked up without a bound."""
        seconds = PATIENCE_SECONDS if seconds is None else seconds
        answers: queue.SimpleQueue[PatientConnection | Exception] = queue.SimpleQueue()
        given_up = threading.Event()

        def run() -> None:
            try:
                connection = self._connection(seconds)
            except Exception as exc:  # of whatever kind, it is whoever waits that it concerns
                if isinstance(exc, psycopg.Error):
                    errors.drop_frames(exc)  # those of the driver refer to it in turn
                answers.put(exc)
                return
            answers.put(connection)
            if given_up.is_set():
                connection.close()

        threading.Thread(target=run, name="postgres-connect", daemon=True).start()
        try:
            answer = answers.get(timeout=seconds)
        except queue.Empty:
            given_up.set()
            with contextlib.suppress(queue.Empty):  # it may have come just now
                late = answers.get_nowait()
                if isinstance(late, PatientConnection):
                    late.close()
            raise errors.Unreachable(f"the database {self.name} cannot be reached: nobody answers") from None
        if isinstance(answer, Exception):
            try:
                with translated_errors(self):
                    raise answer
            finally:
                del answer  # it refers to this frame from now on
        return answer

    def _connection(self, seconds: float) -> PatientConnection:
        parameters: dict[str, Any] = {"fallback_application_name": "flux-resourceset", **self._parameters}
        parameters["connect_timeout"] = max(2, int(seconds) // self._hosts)
        parameters["client_encoding"] = "utf8"
        if self._password_file is not None:
            parameters["password"] = self._password()
        # nothing is prepared: a pooler may hand every transaction to another server process
        connection = PatientConnection.connect(
            **parameters, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
        )
        connection.target, connection.patience = self, PATIENCE_SECONDS
        connection.warnings = []
        # no method of the connection, which would refer to itself and outlive its end
        connection.add_notice_handler(functools.partial(_take_notice, connection.warnings))
        return connection

    def _password(self) -> str:
        assert self._password_file is not None
        try:
            password = self._password_file.read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
            raise Refused(f"DATABASE_PASSWORD_FILE {self._password_file}: {why}") from exc
        self._secrets.add(password)
        return password


def target(url: str, password_file: Path | None = None) -> Target:
    """Of a URL that libpq understands; it may name nothing, and leave everything to the environment."""
    try:
        parameters = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
        named = [pair.partition("=")[0] for pair in url.partition("?")[2].split("&") if pair]
        wrong = next((name for name in named if name not in known), None)
        why = f"PostgreSQL knows no parameter {wrong!r}" if wrong else "PostgreSQL cannot read it"
        what = f"DATABASE_URL: {why}; it must be postgresql://user@host:port/database?sslmode=…"
        raise errors.StartupError(what) from None  # the driver would quote a password
    return Target({name: str(value) for name, value in parameters.items() if value is not None}, password_file)


# What goes wrong

# what a server says to whom it does not let in, but for those that pass by themselves
_REFUSAL = re.compile(
    r"FATAL: +(?!the database system|sorry, too many|too many|remaining connection|terminating)|no password supplied"
)


@contextlib.contextmanager
def translated_errors(where: Target) -> Iterator[None]:
    """A driver's exceptions end here."""
    try:
        yield
    except psycopg.Error as exc:
        raise _translated(where, exc) from exc
    except (msgspec.DecodeError, msgspec.ValidationError, OverflowError, zlib.error) as exc:
        raise errors.Doubt(f"the database {where.name} cannot be used: {exc}; restore a backup") from exc


def no_schema(name: str) -> errors.Doubt:
    """For a role that may not use it there is none either."""
    return errors.Doubt(
        f"the database {name} has no tables of a fleet that this role can see; check DATABASE_URL, grant USAGE and SELECT, or"
        " restore a backup"
    )


def _translated(where: Target, exc: psycopg.Error) -> errors.Unavailable:
    state, text = exc.sqlstate or "", where.plain(exc)
    if state.startswith(("28", "3D")) or (not state and _REFUSAL.search(text)):
        return Refused(f"the database {where.name} refuses the login: {text}")
    if isinstance(exc, psycopg.errors.ReadOnlySqlTransaction):
        return errors.Unreachable(f"the database {where.name} takes no writes: it is a standby, or set read-only")
    if isinstance(exc, psycopg.errors.LockNotAvailable):
        return errors.Unavailable(f"the database {where.name} is locked: somebody else has been writing for long; try again")
    if isinstance(exc, psycopg.errors.IdleInTransactionSessionTimeout):
        return errors.Unavailable(f"the database {where.name} gave up on a write that took too long to work out; split it")
    if state.startswith("40"):  # a standby that has to follow cuts off who reads
        return errors.Unavailable(f"the database {where.name} had to give up: {text}; try again")
    if isinstance(exc, psycopg.errors.QueryCanceled):
        return errors.Unavailable(f"the database {where.name} takes too long to answer; try again")
    if isinstance(exc, (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)):
        return no_schema(where.name)
    if isinstance(exc, psycopg.errors.InsufficientPrivilege):
        return errors.Doubt(f"the database {where.name} does not permit it: {text}; who reads needs USAGE and SELECT")
    if state.startswith("53"):
        return errors.Unavailable(f"the database {where.name} lacks resources: {text}")
    if isinstance(exc, psycopg.OperationalError):
        return errors.Unreachable(f"the database {where.name} cannot be reached: {text}")
    return errors.Doubt(f"the database {where.name} cannot be used: {text}; restore a backup")


# Connections


class PatientConnection(psycopg.Connection[Row]):
    """One that is given up when nothing was heard of it for long, be it that its network swallows everything."""

    target: Target
    silence = 0.0  # so many seconds of what it does now
    patience: float
    warnings: list[str]
    generation = 0  # see postgres_watch.py

    def wait(self, gen: abc.PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        return super().wait(self._patiently(gen), interval, timeout)

    def _patiently(self, gen: abc.PQGen[T]) -> Generator[Any, Any, T]:
        try:
            wanted = next(gen)
            while True:
                asked = time.monotonic()
                ready = yield wanted
                if not ready:
                    self.silence += time.monotonic() - asked
                    if self.silence > self.patience:
                        raise psycopg.OperationalError("it does not answer any more")
                wanted = gen.send(ready)
        except StopIteration as done:
            value: T = done.value
            return value

    def script(self, statements: str) -> list[Row | None]:
        """Several of our own without values, in one round trip; of each the first row, if it has any."""
        cursor = self.execute(statements.encode())
        found: list[Row | None] = []
        while True:
            found.append(cursor.fetchone() if cursor.description else None)
            if not cursor.nextset():
                return found

    def is_in_transaction(self) -> bool:
        return not self.closed and self.info.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)

    def is_idle(self) -> bool:
        return not self.closed and self.info.transaction_status == pq.TransactionStatus.IDLE


def _take_notice(warnings: list[str], notice: psycopg.errors.Diagnostic) -> None:
    if notice.severity_nonlocalized == "WARNING":
        warnings.append(notice.message_primary or "")


_cursors = itertools.count(1)
_VALUES = re.compile(r"VALUES \([?, ]+\)")


def numbered(sql: str) -> bytes:
    """With $1, $2, … in the place of every ?."""
    return _numbered(sql) if len(sql) > REMEMBERED else _remembered(sql)


def _numbered(sql: str) -> bytes:
    numbers = itertools.count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql).encode()


_remembered = functools.lru_cache(256)(_numbered)


class Database:
    """What our SQL is run over: a connection in a transaction."""

    def __init__(self, connection: PatientConnection) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Cursor:
        try:
            return self._connection.execute(numbered(sql), values, binary=True)
        except psycopg.DataError:
            if not (sql.startswith("SELECT") and any(isinstance(value, str) and "\0" in value for value in values)):
                raise
        # no text holds U+0000 here, or what is asked for in its place: nothing is found
        harmless = [value.replace("\0", "\uffff") if isinstance(value, str) else value for value in values]
        return self._connection.execute(numbered(sql), harmless, binary=True)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> None:
        """An INSERT with as many rows at once as are quick to send; anything else one after the other, without waiting."""
        values = _VALUES.search(sql)
        if values is None:
            if listed := list(rows):
                self._connection.cursor().executemany(numbered(sql), listed)
            return
        row = values[0].removeprefix("VALUES ")
        for batch in sql_connection.batches(rows):
            several = f"{sql[: values.start()]}VALUES {', '.join([row] * len(batch))}{sql[values.end() :]}"
            self._connection.execute(numbered(several), [value for each in batch for value in each])

    def stream(self, sql: str, values: Sequence[Any] = (), /) -> Iterator[Row]:
        name = f"walk_{next(_cursors)}"
        fetch = f"FETCH {FETCHED} FROM {name}".encode()
        with self._connection.pipeline():  # a small result takes one round trip
            self._connection.execute(numbered(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}"), values)
            found = self._connection.execute(fetch, binary=True)
        while True:
            rows = found.fetchall()
            yield from rows
            if len(rows) < FETCHED:
                return  # it ends with its transaction
            found = self._connection.execute(fetch, binary=True)
