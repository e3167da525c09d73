"""Disks that are full: a small one of its own where that can be mounted, else a limit on how large a process's files may grow."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """A directory that can be filled and freed again."""

    directory: Path

    def fill(self, pids: Iterable[int]) -> None:
        """To the last byte; or no file of these processes grows any more."""

    def free(self, pids: Iterable[int]) -> None: ...


class Small:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._filler = directory / "filler"

    def fill(self, pids: Iterable[int]) -> None:
        number = os.open(self._filler, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in (65536, 4096):  # a whole block of a full disk is refused, and less may still fit
                with contextlib.suppress(OSError):
                    while os.write(number, bytes(size)):
                        pass
        finally:
            os.close(number)

    def free(self, pids: Iterable[int]) -> None:
        self._filler.unlink()


class Limited:
    SIZE = 32768  # less than any database has

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def fill(self, pids: Iterable[int]) -> None:
        _limit(pids, self.SIZE)

    def free(self, pids: Iterable[int]) -> None:
        _limit(pids, None)


def _limit(pids: Iterable[int], size: int | None) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


@contextlib.contextmanager
def small(directory: Path, megabytes: int) -> Iterator[Disk]:
    """A disk of its own where this user may mount one, else limits in the same directory."""
    made = directory / "disk"
    made.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0777", "tmpfs", str(made)]
    mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield Small(made) if mounted else Limited(made)
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(made)], check=True)


def family(pid: int) -> list[int]:
    """A process and those that it started."""
    found = [pid]
    with contextlib.suppress(OSError):  # it ends just now
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += family(int(child))
    return found


def limited(directory: Path) -> contextlib.AbstractContextManager[Disk]:
    made = directory / "disk"
    made.mkdir()
    return contextlib.nullcontext(Limited(made))
