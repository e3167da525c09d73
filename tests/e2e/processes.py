"""Starts programs as child processes with a log each, and stops them by pid whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

GRACE_SECONDS = 1.0  # enough to close sockets; the state is thrown away anyway
PORTS = range(15000, 32000)  # below the ephemeral range: no outgoing connection takes one first


class ProcessFailed(Exception):
    """A program ended, or did not become ready in time; the message carries the end of its log."""


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on now."""
    with contextlib.ExitStack() as held:  # held until all are found, so that they differ
        found: list[int] = []
        for port in random.sample(PORTS, len(PORTS)):
            if len(found) == count:
                break
            candidate = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                candidate.bind(("127.0.0.1", port))
                found.append(port)
        return found


def _dying_with_parent() -> list[str]:
    """A killed test run cannot stop its children, but Linux can; `setpriv` keeps the pid."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


@dataclass(frozen=True)
class Process:
    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def log_tail(self, lines: int = 25) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(f"    {line[:600]}" for line in text[-lines:])

    def check_alive(self) -> None:
        if not self.alive:
            raise ProcessFailed(f"{self.name} ended with {self.popen.returncode}:\n{self.log_tail()}")

    def wait_until(self, ready: Callable[[], bool], timeout: float = 30.0) -> None:
        """Polls until `ready`, and says why when it never is."""
        deadline = time.monotonic() + timeout
        while not ready():
            self.check_alive()
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{self.name} was not ready after {timeout:.0f} s:\n{self.log_tail()}")
            time.sleep(0.05)


@dataclass
class Processes:
    """What was started here, in order; leaving the context stops it in the opposite order."""

    directory: Path
    started: dict[str, Process] = field(default_factory=dict)

    def start(self, name: str, *command: str | Path, env: Mapping[str, str] | None = None) -> Process:
        """Starts the command with its own log and temporary directory."""
        log, scratch = self.directory / "log" / f"{name}.log", self.directory / "tmp" / name
        log.parent.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [*_dying_with_parent(), *(str(part) for part in command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(scratch), **(env or {})},
            )
        self.started[name] = Process(name, popen, log)
        return self.started[name]

    def stop(self, name: str) -> None:
        _stop([self.started.pop(name)])

    def stop_all(self) -> None:
        try:
            _stop(list(reversed(self.started.values())))
        finally:
            self.started.clear()

    def check_alive(self) -> None:
        """Fails with the log of the first program that has ended by itself."""
        for process in self.started.values():
            process.check_alive()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop_all()


def _stop(processes: list[Process]) -> None:
    """Asks all, waits a little for all together, then kills the rest, also when interrupted meanwhile."""
    try:
        for process in processes:
            process.popen.terminate()  # does nothing to one that has ended
        deadline = time.monotonic() + GRACE_SECONDS
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.popen.wait(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            process.popen.kill()
            process.popen.wait()
