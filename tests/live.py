"""A real server process for tests: started on a free port, asked over HTTP, stopped by its own pid."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import httpx

import zygote
from flux_resourceset.store import Store, opening, postgres_connections

READ, WRITE = "read-token", "write-token"
PROGRAM = (sys.executable, "-m", "flux_resourceset.server")
ORDINARY = "te"  # what no client says of a connection, and changes no answer: the fast path leaves it to the ordinary route
FLUX = "flux-operator/v0.58.1"  # as Flux Operator names itself
UNUSED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nothing here speaks TLS, and every client would read all authorities first
ROOT = Path(__file__).resolve().parent.parent

ordinary = False  # whether clients say something by which the ordinary route answers their polls


def free_port() -> int:
    """One that nobody listens on, below those that the system hands out to clients, so that none takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)  # Hypothesis seeds the other one
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until it holds; the bound is for what hangs, and no claim about speed."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.005)


def store_url(directory: Path) -> str:
    """Of a store that belongs to a directory: a file in it, or a database where TEST_STORE asks for PostgreSQL."""
    if os.environ.get("TEST_STORE") != "postgres":
        return f"sqlite://{directory}/fleet.db?mode=rwc"
    import postgres_server  # which needs this module, and what nobody else needs

    return postgres_server.shared().database_of(directory) + "?mode=rwc"


def opened_store(directory: Path) -> Store:
    """The store of a directory, for whoever writes to it beside a server."""
    return opening.opener(opening.location(store_url(directory)), writing=True)()


def alter(directory: Path, *statements: str, values: Sequence[object] = ()) -> None:
    """The tables of a directory's store, as somebody would who should not."""
    where = opening.location(store_url(directory))
    if where.database is None:
        with contextlib.closing(sqlite3.connect(where.path)) as db, db:
            for statement in statements:
                db.execute(statement, values)
        return
    with contextlib.closing(where.database.connect()) as connection:
        connection.script("SET search_path = flux_resourceset")
        for statement in statements:
            connection.execute(postgres_connections.numbered(statement), values)


def environment(directory: Path, **overrides: str) -> dict[str, str]:
    """What a server of a test gets: nothing from the outside but the PATH."""
    return {
        "PATH": os.environ["PATH"],
        **zygote.MEASURED,
        "API_MODE": "crud",
        "AUTH_TOKEN": READ,
        "CRUD_AUTH_TOKEN": WRITE,
        "DATABASE_URL": store_url(directory),
        "DATABASE_MODE": "rwc",  # for another DATABASE_URL, which may name a database without a fleet
        "LISTEN_ADDR": f"127.0.0.1:{free_port()}",
        **overrides,
    }


def client(url: str, token: str | None = WRITE) -> httpx.Client:
    """One that asks as Flux does: with its headers and no others, on a connection of its own each time."""
    limits = httpx.Limits(max_keepalive_connections=0)
    made = httpx.Client(base_url=url, timeout=30, verify=UNUSED, limits=limits, event_hooks={"request": [_say_te]})
    made.headers.clear()
    credentials = {"Authorization": f"Bearer {token}"} if token else {}
    made.headers.update({"User-Agent": FLUX, "Accept": "application/json", **credentials, "Accept-Encoding": "gzip"})
    return made


def _say_te(request: httpx.Request) -> None:
    if ordinary:
        request.headers["Connection"] = ORDINARY


def _started(
    directory: Path, env: Mapping[str, str], program: Sequence[str], log: IO[bytes]
) -> subprocess.Popen[bytes] | zygote.Process:
    own = len(PROGRAM)
    if tuple(program[:own]) != PROGRAM or not zygote.can_start(env):
        return subprocess.Popen(program, cwd=directory, env=dict(env), stderr=log, stdout=log)
    with open(os.devnull, "rb") as nothing:
        return zygote.start(zygote.SERVER, program[own:], env, directory, nothing, log, log)


class Server:
    def __init__(self, directory: Path, env: Mapping[str, str], program: Sequence[str] = PROGRAM) -> None:
        self.url = "http://" + env["LISTEN_ADDR"]
        self.address = ("127.0.0.1", int(env["LISTEN_ADDR"].rpartition(":")[2]))
        self.log = directory / f"server-{self.address[1]}.log"
        with self.log.open("ab") as log:
            self.process = _started(directory, env, program, log)

    def wait(self, path: str = "/health", seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the server stopped with {self.process.returncode}:\n{self.log.read_text()}")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(self.url + path, verify=UNUSED).status_code == 200:
                    return
            time.sleep(0.02)
        raise AssertionError(f"the server did not answer {path}:\n{self.log.read_text()}")

    def client(self, token: str | None = WRITE) -> httpx.Client:
        return client(self.url, token)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """At once; but one that is measured has to write down what it ran."""
        if zygote.MEASURED and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(15)
        self.kill()


@contextlib.contextmanager
def serving(directory: Path, wait_for: str = "/ready", **overrides: str) -> Iterator[Server]:
    """A server in a directory of its own; `wait_for` is the path that must answer 200 first.

    It is killed in the end: what it acknowledged must be there all the same, and its way out has tests of its own.
    """
    server = Server(directory, environment(directory, **overrides))
    try:
        server.wait(wait_for)
        yield server
    finally:
        server.end()
