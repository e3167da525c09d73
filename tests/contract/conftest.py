"""The stores that the contract is held against: a backend that cannot pass is not a backend."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import postgres_server
from flux_resourceset.store import Store, postgres_connections, sqlite_files
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.postgres import PostgresStore
from flux_resourceset.store.sqlite import SqliteStore

_databases = contextlib.ExitStack()


def in_memory(directory: Path) -> tuple[Store, Store]:
    store = MemoryStore()
    return store, store


def in_sqlite(directory: Path) -> tuple[Store, Store]:
    return SqliteStore(directory / "fleet.db"), SqliteStore(directory / "fleet.db")


def in_postgres(directory: Path) -> tuple[Store, Store]:
    """In a database that the test has to give back."""
    target = postgres_connections.target(_databases.enter_context(postgres_server.shared().store()))
    return PostgresStore(target), PostgresStore(target)


def give_back() -> None:
    _databases.close()


# How each backend makes a new, empty store, and another way to the same data.
BACKENDS: dict[str, Callable[[Path], tuple[Store, Store]]] = {"memory": in_memory, "sqlite": in_sqlite, "postgres": in_postgres}


@pytest.fixture(params=BACKENDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    made = BACKENDS[request.param](tmp_path)
    yield made
    for store in made:
        store.close()
    give_back()


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
