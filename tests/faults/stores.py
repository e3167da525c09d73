"""Stores that things happen to: backups, restores and the questions that follow."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import live
from processes.asking import Asking

SEED = live.ROOT / "data" / "seed.json"
DEMO = "demo-cluster-01"
DEMO_DNS = "demo-cluster-01.k8s.example.com"
PATH = f"/api/v2/flux/clusters/{DEMO_DNS}/namespaces"


def copy_database(source: Path, target: Path) -> None:
    """As SQLite's own backup does, in place if the target exists."""
    with contextlib.closing(sqlite3.connect(source)) as old, contextlib.closing(sqlite3.connect(target)) as new:
        old.backup(new)


def poll(server: live.Server, path: str = PATH) -> tuple[int, Any]:
    with Asking(server, live.READ) as ask:
        return ask("GET", path)


def inputs(server: live.Server, path: str = PATH) -> list[str]:
    status, body = poll(server, path)
    assert status == 200, body
    return [each["id"] for each in body["inputs"]]


def write(server: live.Server, method: str, path: str, body: Any = None) -> int:
    with Asking(server) as ask:
        return ask(method, path, body)[0]


def revisions(path: Path) -> list[int]:
    """What the file itself says."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return [revision for (revision,) in database.execute("SELECT revision FROM entries ORDER BY revision")]


def exit_line(directory: Path, *arguments: str, **overrides: str) -> tuple[int, str]:
    """Exit code and last line of a server that does not start."""
    program = (*live.PROGRAM, *arguments)
    server = live.Server(directory, live.environment(directory, **overrides), program)
    try:
        return server.process.wait(30), server.log.read_text().splitlines()[-1]
    finally:
        server.kill()
