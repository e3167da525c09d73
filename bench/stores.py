"""The stores that are measured: a SQLite file, or a real PostgreSQL that is started for the purpose, as the tests do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from bench import servers  # noqa: E402

SQLITE, POSTGRES = "SQLite", "PostgreSQL"


@contextlib.contextmanager
def store(backend: str, home: Path) -> Iterator[str]:
    """The DATABASE_URL of an empty one."""
    if backend == SQLITE:
        yield f"sqlite://{home}/fleet.db?mode=rwc"
        return
    import postgres_server  # needs its driver, which SQLite does without

    with contextlib.ExitStack() as stack:
        with on_core(servers.database_core()):
            server = stack.enter_context(postgres_server.running(fsync=True, options={"shared_buffers": "256MB"}))
        yield server.create() + "?mode=rwc"


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started meanwhile stays there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(words: list[str], home: Path, url: str) -> None:
    """A command of the server."""
    command = [sys.executable, "-m", "flux_resourceset.server", *words]
    done = subprocess.run(command, cwd=home, env=servers.environment(0, home, DATABASE_URL=url), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")


def fill(home: Path, url: str, clusters: int) -> None:
    """With a generated fleet, by import."""
    fleet = home / f"fleet-{clusters}.json"
    if not fleet.exists():  # in a process of its own: a large one would stay in the memory of this one
        subprocess.run([sys.executable, str(HERE / "generated.py"), str(clusters), str(fleet)], check=True)
    run(["import", str(fleet)], home, url)
