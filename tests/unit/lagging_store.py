"""A store that lags, for tests: a database in memory, told of when a test says so, and away while a test says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from flux_resourceset import errors
from flux_resourceset.changes import Head
from flux_resourceset.store import Followed, Transaction
from flux_resourceset.store.memory import MemoryStore

AWAY = "the database is away"


class LaggingStore:
    """What one process sees of the database; whatever it asks for fails while that is away."""

    lags = True

    def __init__(self, database: MemoryStore) -> None:
        self.database = database
        self.may_be_read = threading.Event()  # else whoever follows the log hangs
        self.may_be_read.set()
        self._away = False
        self._told = database.version()
        self._seen = time.monotonic()
        self._callbacks: list[Callable[[], None]] = []

    # What a test does to it

    def tell(self) -> None:
        """That something may have been written."""
        self._told, self._seen = self.database.version(), time.monotonic()
        self._call()

    def leave(self, seconds_ago: float = 0.0) -> None:
        self._away, self._seen = True, time.monotonic() - seconds_ago
        self._call()

    def come_back(self) -> None:
        self._away = False
        self.tell()

    def _call(self) -> None:
        for callback in self._callbacks:
            callback()

    # Store

    def seen(self) -> float:
        return self._seen

    def is_reachable(self) -> bool:
        return not self._away

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def version(self) -> object:
        return self._told

    def follow(self, known: Head) -> Followed | None:
        assert self.may_be_read.wait(30)
        self._check()
        return self.database.follow(known)

    def begin(self) -> Transaction:
        self._check()
        return _Told(self)

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self._away:
            raise errors.Unreachable(AWAY)

    def __getattr__(self, name: str) -> Any:
        self._check()
        return getattr(self.database, name)


class _Told:
    """A transaction that the store counts at once."""

    def __init__(self, store: LaggingStore) -> None:
        self._store = store
        self._transaction = store.database.begin()

    def __enter__(self) -> _Told:
        return self

    def __exit__(self, *exception: object) -> None:
        self._transaction.rollback()

    def commit(self, *arguments: Any, **options: Any) -> str:
        self._store._check()
        hash = self._transaction.commit(*arguments, **options)
        self._store.tell()
        return hash

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)
