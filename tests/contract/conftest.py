"""The stores that the contract is held against: a backend that cannot pass is not a backend."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flux_resourceset.store import Store, sqlite_files
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore


def in_memory(directory: Path) -> tuple[Store, Store]:
    store = MemoryStore()
    return store, store


def in_sqlite(directory: Path) -> tuple[Store, Store]:
    return SqliteStore(directory / "fleet.db"), SqliteStore(directory / "fleet.db")


# How each backend makes a new, empty store, and another way to the same data.
BACKENDS: dict[str, Callable[[Path], tuple[Store, Store]]] = {"memory": in_memory, "sqlite": in_sqlite}


@pytest.fixture(params=BACKENDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    made = BACKENDS[request.param](tmp_path)
    yield made
    for store in made:
        store.close()


@pytest.fixture
def store(stores: tuple[Store, Store]) -> Store:
    return stores[0]


@pytest.fixture
def peer(stores: tuple[Store, Store]) -> Store:
    """What another process, or another part of this one, has of the same data."""
    return stores[1]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked over connections that are opened from now on."""
    statements: list[str] = []
    connect = sqlite_files.connect

    def traced(path: Path, mode: str) -> sqlite3.Connection:
        connection = connect(path, mode)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite_files, "connect", traced)
    return statements
