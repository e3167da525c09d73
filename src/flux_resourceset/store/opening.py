"""How a store is opened: by the scheme of its URL, at the start and again when it was lost under a running server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from flux_resourceset import errors
from flux_resourceset.store import Store
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore

MEMORY = "memory://"


class Location(NamedTuple):
    """A URL that was understood."""

    scheme: str  # sqlite or memory
    path: Path
    mode: str  # rwc: create what is not there; rw: do not; ro: only read

    @property
    def is_kept(self) -> bool:
        """Whether anything is left of the store when its process ends."""
        return self.scheme != "memory"


def location(url: str) -> Location:
    if url == MEMORY:
        return Location("memory", Path(), "rwc")
    match = re.fullmatch(r"sqlite://([^?]+)(?:\?(.*))?", url)
    if match is None:
        raise errors.StartupError(
            f"DATABASE_URL is {url!r}; it must be sqlite://relative/path or sqlite:///absolute/path, with ?mode=rwc, rw or ro"
        )
    options = dict(parse_qsl(match[2] or "", keep_blank_values=True))
    mode = options.pop("mode", "rwc")
    if options or mode not in ("rwc", "rw", "ro"):
        raise errors.StartupError(f"DATABASE_URL is {url!r}; it takes the option mode with rwc, rw or ro, and no other")
    if "%00" in match[1]:
        raise errors.StartupError(f"DATABASE_URL is {url!r}; no file has such a name")
    if ":memory:" in match[1]:
        raise errors.StartupError("DATABASE_URL cannot be :memory:; use STORE_BACKEND=memory")
    path = re.sub(r"^//+", "/", unquote(match[1]))  # to SQLite two slashes would begin the name of a host
    return Location("sqlite", Path(path), mode)


def opener(where: Location, *, writing: bool, begin_anew: bool = False) -> Callable[[], Store]:
    """What opens the store, as often as it is called; what may be created or begun anew is so the first time only."""
    if where.scheme == "memory":
        memory = MemoryStore()
        return lambda: memory
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
