"""How a store is opened: by the scheme of its URL, at the start and again when it was lost under a running server."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

from flux_resourceset import errors
from flux_resourceset.store import Store
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from flux_resourceset.store.postgres_connections import Target

MEMORY = "memory://"
STARTING_SECONDS = 10.0  # that a writer tries to reach its database when it starts
PAUSE_SECONDS = 0.5  # between two attempts


class Location(NamedTuple):
    """A URL that was understood."""

    scheme: str  # sqlite, postgres or memory
    path: Path
    mode: str  # rwc: create what is not there; rw: do not; ro: only read (SQLite)
    database: Target | None = None

    @property
    def is_kept(self) -> bool:
        """Whether anything is left of the store when its process ends."""
        return self.scheme != "memory"

    @property
    def lags(self) -> bool:
        """As of the store that is there."""
        return self.database is not None

    @property
    def would_begin(self) -> bool:
        """Whether a writer would begin an empty store, for there is no file."""
        return self.scheme == "sqlite" and self.mode == "rwc" and not os.path.lexists(self.path)

    @property
    def target(self) -> str:
        """Which store it is, for whoever keeps something of it: without user and password, which may change."""
        return f"postgresql://{self.database.name}" if self.database else f"{self.scheme}://{self.path.absolute()}"


def location(url: str, password_file: Path | None = None, mode: str = "") -> Location:
    """Parse DATABASE_URL; `mode` is DATABASE_MODE, for a URL without a mode of its own."""
    if url == MEMORY:
        return Location("memory", Path(), "rwc")
    if url.startswith(("postgresql:", "postgres:")):
        plain, mode = _without_mode(url, mode)
        return Location("postgres", Path(), mode, _database(plain, password_file))
    match = re.fullmatch(r"sqlite://([^?]+)(?:\?(.*))?", url)
    if match is None:
        raise errors.StartupError(
            f"DATABASE_URL is {_shown(url)!r}; it must be sqlite://relative/path or sqlite:///absolute/path, with ?mode=rwc, rw"
            " or ro, or postgresql://user@host:port/database"
        )
    options = dict(parse_qsl(match[2] or "", keep_blank_values=True))
    mode = options.pop("mode", mode or "rwc")
    if options:
        raise errors.StartupError(f"DATABASE_URL is {url!r}; it takes the option mode with rwc, rw or ro, and no other")
    _check_mode(mode, ("rwc", "rw", "ro"), "SQLite")
    if "%00" in match[1]:
        raise errors.StartupError(f"DATABASE_URL is {url!r}; no file has such a name")
    if ":memory:" in match[1]:
        raise errors.StartupError("DATABASE_URL cannot be :memory:; use STORE_BACKEND=memory")
    path = re.sub(r"^//+", "/", unquote(match[1]))  # to SQLite two slashes would begin the name of a host
    return Location("sqlite", Path(path), mode)


def _without_mode(url: str, mode: str) -> tuple[str, str]:
    """Take the option mode, which is ours, out of a URL for libpq."""
    plain, _, query = url.partition("?")
    others = []
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if unquote(name) == "mode":
            mode = unquote(value)
        else:
            others.append(pair)
    mode = mode or "rw"
    _check_mode(mode, ("rwc", "rw"), "PostgreSQL")
    return f"{plain}?{'&'.join(others)}" if others else plain, mode


def _check_mode(mode: str, modes: Sequence[str], database: str) -> None:
    if mode not in modes:
        raise errors.StartupError(
            f"DATABASE_URL (or DATABASE_MODE): the mode is {errors.shortened(mode, 100)!r}; for {database} it must be one of"
            f" {', '.join(modes)}"
        )


def _shown(url: str) -> str:
    """Without what may be a password."""
    return re.sub(r"//[^/]*@", "//…@", url)


def _database(url: str, password_file: Path | None) -> Target:
    try:
        from flux_resourceset.store import postgres_connections  # nobody else needs the driver
    except ImportError as exc:
        raise errors.StartupError(
            "DATABASE_URL names PostgreSQL, and its driver is not installed: pip install 'flux-resourceset[server,postgres]'"
        ) from exc
    return postgres_connections.target(url, password_file)


def opener(where: Location, *, writing: bool, begin_anew: bool = False, patient: bool = True) -> Callable[[], Store]:
    """What opens the store, as often as it is called; what may be created or begun anew is so the first time only.

    `patient`: the first time a writer tries for a while to reach a database.
    """
    if where.scheme == "memory":
        memory = MemoryStore()
        return lambda: memory
    if where.database is not None:
        return PostgresOpener(where, writing, begin_anew, STARTING_SECONDS if patient else 0.0)
    return SqliteWriter(where, begin_anew) if writing else lambda: SqliteStore(where.path, read_only=True)


class SqliteWriter:
    """Opens a file to write to it."""

    def __init__(self, where: Location, begin_anew: bool) -> None:
        self._path = where.path
        self._create = where.mode == "rwc"
        self._begin_anew = begin_anew

    def __call__(self) -> Store:
        store = SqliteStore(self._path, create=self._create, begin_anew=self._begin_anew)
        self._create = self._begin_anew = False  # a file that vanished must be restored, not silently begun anew
        return store


class PostgresOpener:
    """Opens a database; a writer that starts tries for a while, and gives up at once where it is not let in."""

    def __init__(self, where: Location, writing: bool, begin_anew: bool, seconds: float) -> None:
        assert where.database is not None
        self._database = where.database
        self._seconds = seconds
        self._writing = writing
        self._create = where.mode == "rwc"
        self._begin_anew = begin_anew
        self._at_start = writing

    def __call__(self) -> Store:
        from flux_resourceset.store import postgres, postgres_connections  # nobody else needs the driver

        at_start, self._at_start = self._at_start, False
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                store = postgres.PostgresStore(
                    self._database, read_only=not self._writing, create=self._create, begin_anew=self._begin_anew
                )
            except postgres_connections.Refused as exc:
                if not at_start:
                    raise
                raise errors.StartupError(exc.detail) from exc
            except errors.Unreachable:
                if not at_start or time.monotonic() + PAUSE_SECONDS > deadline:
                    raise
                time.sleep(PAUSE_SECONDS)
            else:
                self._create = self._begin_anew = False  # a store that vanished must be restored, not silently begun anew
                return store
