"""Processes of ours by a fork from one that has imported everything: tests start hundreds, and importing is most of a start.

They are processes like any other, with streams, environment, directory and signals of their own. Tests that are about the
start itself, and those with a terminal, start the real programs.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

SERVER, CLI = "flux_resourceset.server", "flux_resourceset.cli"
_PACKAGES = {
    SERVER: ("flux_resourceset.http", "uvicorn.protocols.http", "uvicorn.lifespan", "uvicorn.loops"),
    CLI: ("flux_resourceset.cli", "flux_resourceset.client", "flux_resourceset.render"),
}
_NUMBER = struct.Struct("!i")
_DECIDES_AT_THE_START = ("PYTHON", "LC_", "LANG", "TZ")  # variables that Python reads before it runs anything

# What tells a process to count the lines that it runs (make coverage); whatever a test starts gets it, and nothing else of ours.
MEASURED = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}

Stream = int | IO[Any]


class Process:
    """As of subprocess, as far as tests use it."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self.returncode: int | None = None
        (self.pid,) = _NUMBER.unpack(status.recv(_NUMBER.size))

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            (self.returncode,) = _NUMBER.unpack(self._status.recv(_NUMBER.size))
            self._status.close()
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def can_start(environment: Mapping[str, str]) -> bool:
    return not any(name.startswith(_DECIDES_AT_THE_START) for name in environment)


def start(module: str, words: Sequence[str], environment: Mapping[str, str], directory: Path | None, *streams: Stream) -> Process:
    """Run main() of a module of ours; the streams are standard input, output and errors."""
    ours, theirs = socket.socketpair()
    with theirs:
        order = {"words": list(words), "environment": dict(environment), "directory": str(directory or Path.cwd())}
        numbers = [stream if isinstance(stream, int) else stream.fileno() for stream in streams]
        socket.send_fds(_zygote(module), [json.dumps(order).encode()], [*numbers, theirs.fileno()])
        return Process(ours)


def run(
    module: str, words: Sequence[str], environment: Mapping[str, str], directory: Path | None = None, *,
    given: bytes = b"", timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(given)
        stdin.seek(0)
        process = start(module, words, environment, directory, stdin, stdout, stderr)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(list(words), code, stdout.read(), stderr.read())


@functools.cache
def _zygote(module: str) -> socket.socket:
    """One of each for a test process; it ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, module, str(theirs.fileno())], pass_fds=[theirs.fileno()],
            env={"PATH": os.environ["PATH"], **MEASURED}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    atexit.register(_end, ours, process)
    return ours


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    process.wait(10)


# In the zygote


def _preload(module: str) -> Callable[[], int]:
    for package in _PACKAGES[module]:
        found = importlib.import_module(package)
        for each in pkgutil.walk_packages(found.__path__, f"{package}."):
            if not each.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # of something optional
                    importlib.import_module(each.name)
    main: Callable[[], int] = importlib.import_module(module).main
    return main


def _serve(control: socket.socket) -> None:
    """Fork for every order; returns in the child, as the process that was ordered."""
    awake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control.fileno(), awake], [], [])
        if awake in ready:
            os.read(awake, 4096)
            _report(statuses)
        if control.fileno() in ready:
            data, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 4)
            if not data:
                sys.exit(0)
            child = os.fork()
            if child == 0:
                _become(json.loads(data), descriptors[:3])
                return
            *streams, status = descriptors
            for descriptor in streams:
                os.close(descriptor)
            os.write(status, _NUMBER.pack(child))
            statuses[child] = status


def _report(statuses: dict[int, int]) -> None:
    """What became of children."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            status = statuses.pop(found[0])
            with contextlib.suppress(BrokenPipeError):  # nobody asks
                os.write(status, _NUMBER.pack(os.waitstatus_to_exitcode(found[1])))
            os.close(status)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, max(map(int, os.listdir("/dev/fd"))) + 1)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["directory"])
    sys.argv[1:] = order["words"]


if __name__ == "__main__":
    run_main = _preload(sys.argv[1])
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[2])))
    sys.exit(run_main())
