"""The servers that are measured, ours and nginx, each on the core that servers have."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import live  # noqa: E402  # what the tests start

READ, WRITE = live.READ, live.WRITE
SERVER_CORE, LOAD_CORE = 0, 1  # positions among the cores that this process may use
PATIENCE = 300  # seconds until a server has to be there; 100,000 clusters on a busy machine take a while


def pinned(position: int) -> Any:
    core = sorted(os.sched_getaffinity(0))[position]
    return lambda: os.sched_setaffinity(0, {core})


def database_core() -> int:
    """One of its own where there are three; else that of the load, for a database is no part of the server."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[2 % len(cores)] if len(cores) != 2 else cores[LOAD_CORE]


class Process:
    """A server on its core."""

    def __init__(self, command: list[str], port: int, home: Path, env: dict[str, str] | None = None) -> None:
        self.port = port
        self.began = time.perf_counter()
        self.log = home / f"{Path(command[0]).name}-{port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=home, env=env, stdout=log, stderr=log, preexec_fn=pinned(SERVER_CORE)
            )  # fmt: skip

    def wait(self, path: str) -> float:
        """Seconds from the start to the first 200."""
        while time.perf_counter() - self.began < PATIENCE and self.process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.get(path)[0] == 200:
                    return time.perf_counter() - self.began
            time.sleep(0.002)
        raise SystemExit(f"the server did not start:\n{self.log.read_text()}")

    def get(self, path: str, packed: bool = False) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers(packed))
            answer = connection.getresponse()
            return answer.status, answer.read()

    def pids(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [self.process.pid, *map(int, children.split())]

    def cpu_seconds(self) -> float:
        ticks = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Bytes, of ours; nginx would have two processes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def peak(self) -> int:
        """The most that it ever was."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def headers(packed: bool, token: str = READ) -> dict[str, str]:
    """As Flux Operator sends them; Go asks for gzip by itself."""
    plain = {"Host": "bench", "User-Agent": "bench", "Authorization": f"Bearer {token}"}
    return plain | ({"Accept-Encoding": "gzip"} if packed else {"Accept-Encoding": "identity"})


def environment(port: int, home: Path, checkout: Path | None = None, **more: str) -> dict[str, str]:
    """Of a server; `checkout`: of an older one of ours, which runs with the libraries of today."""
    older = {"PYTHONPATH": str(checkout.resolve() / "src")} if checkout else {}
    return live.environment(home, LISTEN_ADDR=f"127.0.0.1:{port}", **older, **more)


@contextlib.contextmanager
def ours(home: Path, checkout: Path | None = None, **more: str) -> Iterator[Process]:
    port = live.free_port()
    server = Process([sys.executable, "-m", "flux_resourceset.server"], port, home, environment(port, home, checkout, **more))
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def nginx(home: Path) -> Iterator[Process | None]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        yield None
        return
    built = subprocess.run([program, "-V"], capture_output=True, text=True, check=True).stderr
    static = "http_gzip_static" in built
    if not static:
        print("this nginx has no gzip_static: with gzip it serves the files unpacked")
    options = {
        "home": home,
        "port": live.free_port(),
        "user": "user root;" if os.geteuid() == 0 else "",  # else it could not read the files
        "gzip_static": "gzip_static on;" if static else "",
    }
    (home / "nginx.conf").write_text(string.Template((HERE / "nginx.conf").read_text()).substitute(options))
    server = Process([program, "-p", str(home), "-c", str(home / "nginx.conf")], int(str(options["port"])), home)
    try:
        yield server
    finally:
        server.stop()
