"""A PostgreSQL of a test's own, and servers on it: directly, or through a proxy that breaks connections."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import postgres_server
from faults import instances, load
from faults.checker import UNLIMITED
from faults.instances import Instance
from faults.load import Load
from flux_resourceset.changes import Entry

LATE = 3.0  # seconds by which a process may be behind the database besides: it looks once a second, on a machine that is busy


@contextlib.contextmanager
def database() -> Iterator[tuple[postgres_server.Server, str]]:
    """A server of its own, and the URL of an empty database on it. What it commits is on the disk, as in production."""
    with postgres_server.running(fsync=True) as server:
        yield server, server.create()


@contextlib.contextmanager
def quick_database() -> Iterator[tuple[postgres_server.Server, str]]:
    """On a server that other tests use as well: to be left as it is."""
    server = postgres_server.shared()
    with server.database() as url:
        yield server, url


@contextlib.contextmanager
def running(directory: Path, names: str, url: str, **overrides: str) -> Iterator[list[Instance]]:
    seed = str(load.seed(directory))
    with instances.running(directory, names, DATABASE_URL=url, SEED_FILE=seed, **overrides) as found:
        yield found


def through(url: str, port: int) -> str:
    """The same database, by way of somebody else."""
    head, _, name = url.rpartition("/")
    return f"{head.rpartition(':')[0]}:{port}/{name}"


def staleness(made: Load, seconds: float = UNLIMITED) -> dict[str, float]:
    """How old the answers of every process that was asked may be."""
    return dict.fromkeys({poll.process for poll in made.polls}, seconds)


def history(made: Load, entries: list[Entry], seconds: float = UNLIMITED) -> Any:
    return made.history(entries, staleness=staleness(made, seconds))
