"""Measures the stream of the change log: python bench/feed.py.

Five hundred streams follow while documents are written at a steady pace. The time from the answer to a write until the last of
the streams has its event, and what a poll takes meanwhile, beside the same polls and writes without streams in the same run.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated, load, servers  # noqa: E402

CLUSTERS = 1_000
STREAMS = 500
PER_SECOND = 50
SECONDS = 8.0
POLL_PAUSE = 0.002


class Figures(NamedTuple):
    """Of waits, in milliseconds."""

    median: float
    p99: float
    longest: float
    polls: int

    @classmethod
    def of(cls, seconds: list[float]) -> Figures:
        ordered = sorted(each * 1000 for each in seconds)
        return cls(ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100], ordered[-1], len(ordered))

    def __str__(self) -> str:
        return f"{self.median:7.2f} ms {self.p99:7.2f} ms {self.longest:7.2f} ms {self.polls:8}"


# In processes of their own


def write(port: int, seconds: float) -> None:
    """Write at a steady pace; when each write was answered, and its revision."""
    answered = []
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        headers = {"Authorization": f"Bearer {servers.WRITE}", "Content-Type": "application/json"}
        began = time.monotonic()
        for number in range(int(seconds * PER_SECOND)):
            time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
            id = f"{number % 5:02}"
            body = json.dumps({"labels": {"n": str(time.monotonic_ns())}})
            connection.request("PATCH", f"/namespaces/namespace-{id}", body, headers)
            answer = connection.getresponse()
            answer.read()
            answered.append((int(str(answer.headers["ETag"]).strip('"')), time.monotonic()))
    json.dump(answered, sys.stdout)


def poll(port: int, seconds: float) -> None:
    """Poll over new connections, as Flux does; how long each took."""
    request = "GET /api/v2/flux/clusters/{}/platform-components HTTP/1.1\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in servers.headers(True).items()
    )
    waits: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = (request.format(generated.dns(len(waits) % CLUSTERS)) + "\r\n").encode()
        began = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(text)
            load.whole_answer(connection)
        waits.append(time.perf_counter() - began)
        time.sleep(POLL_PAUSE)
    json.dump(waits, sys.stdout)


def started(job: str, port: int, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, "--job", job, "--port", str(port), "--seconds", str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str]) -> Any:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit("a part of the load failed")
    return json.loads(out)


# The streams


class Streams:
    """Many of them, read by one thread; of each only how many events came."""

    def __init__(self, port: int, count: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._events: dict[socket.socket, int] = {}
        self.complete: list[float] = []  # when the last stream had its first event, its second, …
        self._waiting: list[int] = []
        head = f"GET /changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {servers.READ}\r\nAccept: text/event-stream\r\n\r\n"
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), timeout=60)
            connection.sendall(head.encode())
            received = b""
            while b"\nid: " not in received:  # where it begins; now it is open
                received += connection.recv(65536)
            self._events[connection] = 0
            self._selector.register(connection, selectors.EVENT_READ)

    def read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            connection: socket.socket = key.fileobj  # type: ignore[assignment]  # they are what was registered
            data = connection.recv(65536)
            if not data:
                raise SystemExit("a stream ended")
            now = time.monotonic()
            for _ in range(data.count(b"event: change\n")):  # a small event comes as a whole
                self._count(connection, now)

    def _count(self, connection: socket.socket, now: float) -> None:
        number = self._events[connection]
        self._events[connection] += 1
        while len(self._waiting) <= number:
            self._waiting.append(len(self._events))
            self.complete.append(0.0)
        self._waiting[number] -= 1
        self.complete[number] = now

    @property
    def everything_came(self) -> int:
        return min(self._events.values(), default=0)

    def close(self) -> None:
        for connection in self._events:
            connection.close()


# Measuring


def round_of(server: servers.Process, streams: int, seconds: float) -> tuple[Figures, Figures | None, float]:
    """Polls, the last stream's events, and the share of its core that the server took, while documents are written."""
    followed = Streams(server.port, streams)
    busy, began = server.cpu_seconds(), time.monotonic()
    writing, polling = started("write", server.port, seconds), started("poll", server.port, seconds)
    writes = int(seconds * PER_SECOND)
    deadline = time.monotonic() + seconds + 60
    while streams and followed.everything_came < writes:
        followed.read(1.0)
        if time.monotonic() > deadline:
            raise SystemExit("events are missing")
    answered, waits = result(writing), result(polling)
    share = (server.cpu_seconds() - busy) / (time.monotonic() - began)
    followed.close()
    delays = [max(0.0, came - at) for came, (_, at) in zip(followed.complete, answered, strict=False)]
    return Figures.of(waits), Figures.of(delays) if streams else None, share


def measured(home: Path, seconds: float) -> int:
    (home / "fleet.json").write_bytes(generated.export(CLUSTERS))
    subprocess.run(
        [sys.executable, "-m", "flux_resourceset.server", "import", "fleet.json"], cwd=home, env=servers.environment(0, home),
        check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with servers.ours(home) as server:
        servers.pinned(servers.LOAD_CORE)()  # with all that is started from here on
        server.wait("/ready")
        round_of(server, 0, 2.0)  # every answer is prepared once
        print(f"{PER_SECOND} writes a second, {CLUSTERS} clusters{'':17} {'median':>10} {'p99':>10} {'longest':>10} {'count':>8}")
        found: dict[int, list[Figures]] = {}
        for streams in (0, STREAMS, 0, STREAMS):
            polls, events, share = round_of(server, streams, seconds)
            found.setdefault(streams, []).append(polls)
            print(f"polls, {streams:3} streams, server at {share:4.0%} of its core    {polls}", flush=True)
            _row(f"a poll, {streams} streams", polls, f"{share:.0%}")
            if events:
                _row("from the answer to a write to the event on the last stream", events, f"{share:.0%}")
                print(f"from a write's answer to the last stream's event   {events}", flush=True)
        alone, beside = (min(each.median for each in found[streams]) for streams in (0, STREAMS))
        slow_alone, slow_beside = (min(each.p99 for each in found[streams]) for streams in (0, STREAMS))
        ratios = f"{beside / alone:.2f} times as long (median), {slow_beside / slow_alone:.2f} (p99)"
        print(f"a poll beside {STREAMS} streams takes {ratios}")
        print(f"{server.resident() / 2**20:.0f} MiB resident")
        figures.note(f"A poll beside {STREAMS} streams takes {ratios}; {server.resident() / 2**20:.0f} MiB resident.")
    return 0


def _row(what: str, found: Figures, share: str) -> None:
    cells = {"Median": found.median, "p99": found.p99, "Longest": found.longest}
    shown = {name: f"{value:.2f} ms" for name, value in cells.items()}
    figures.row(f"{PER_SECOND} writes a second, {CLUSTERS:,} clusters", {"What": what, **shown, "Core of the server": share})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--job", choices=("write", "poll"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        {"write": write, "poll": poll}[arguments.job](arguments.port, arguments.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return measured(Path(folder), arguments.seconds)


if __name__ == "__main__":
    sys.exit(main())
