"""A program that does something to a database again and again, each time to a copy of its own, and is killed at another point.

Run with: directory of the copies, file to copy, how many points, and the words of a command, or `open`. Copies are named by the
number of the statement before which the process was killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from flux_resourceset import server
from flux_resourceset.store import sqlite_files
from flux_resourceset.store.sqlite import SqliteStore

ENDLESS = 1_000_000_000


class Doom:
    """Counts what SQLite is asked, over all connections."""

    def __init__(self, statements: int) -> None:
        self.left = statements

    def strike(self, statement: str) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def act(path: Path, words: Sequence[str], doom: Doom) -> int:
    connect = sqlite_files.connect

    def traced(path: Path, mode: str) -> sqlite_files.SqliteConnection:
        connection = connect(path, mode)
        connection.set_trace_callback(doom.strike)
        return connection

    sqlite_files.connect = traced
    if list(words) == ["open"]:
        SqliteStore(path).close()
        return 0
    os.environ["DATABASE_URL"] = f"sqlite://{path}"
    return server.main(list(words))


def copied(original: Path, directory: Path, name: str) -> Path:
    (directory / name).mkdir()
    return Path(shutil.copy(original, directory / name / "fleet.db"))


def main(directory: Path, original: Path, points: int, words: Sequence[str]) -> None:
    doom = Doom(ENDLESS)
    path = copied(original, directory, "whole")
    assert act(path, words, doom) == 0
    statements = ENDLESS - doom.left
    for point in sorted({1 + number * (statements - 1) // max(points - 1, 1) for number in range(points)}):
        path = copied(original, directory, str(point))
        child = os.fork()
        if child == 0:
            act(path, words, Doom(point))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{point} of {statements} was never reached"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
