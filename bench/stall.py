"""Measures how long a poll waits at worst while something heavy runs: python bench/stall.py.

One process polls without pause, over one connection and over new ones, and keeps its longest wait; meanwhile another asks for
what takes long: lists, logs, exports, dry runs made to hurt, and writes to the whole fleet. While something is written, a
read-only server on the same file is polled as well. Beside each figure stands its ratio to the longest wait of the same polls
with nothing running, measured in the same run.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated, load, servers  # noqa: E402

from flux_resourceset import transfer  # noqa: E402

CLUSTERS = 10_000
BAR = 100.0  # milliseconds, for any poll, whatever runs
QUIET_SECONDS = 3.0
IDLE = 200  # connections

WRITE = servers.WRITE

Body = dict[str, Any]


class Asked(NamedTuple):
    status: int
    seconds: float


class Request(NamedTuple):
    """Something heavy: a name, and how it is asked for."""

    name: str
    method: str
    path: str
    token: str = servers.READ
    body: Callable[[], bytes] = lambda: b""
    times: int = 1  # if more than one, each on a connection of its own, which stays idle for a while after the answer

    @property
    def writes(self) -> bool:
        return self.method == "POST" and "dry_run" not in self.path


# The requests


def _operations(*operations: Body) -> bytes:
    return json.dumps({"operations": list(operations)}).encode()


def _selectors(text: Callable[[int], str], count: int) -> bytes:
    return _operations(
        *(
            {"op": "unassign", "kind": "namespaces", "id": "namespace-00", "selector": text(number)}
            for number in range(count)
        )
    )  # fmt: skip


def _dense_catalog() -> bytes:
    """1,000 components with up to 60 dependencies each, without a cycle; a search per edge would never end."""
    return _operations(
        *(
            {
                "op": "create", "kind": "platform_components", "id": f"c{number}",
                "document": {
                    "component_path": "a", "oci_url": "oci://a.example.com/b", "oci_tag": "v1", "component_version": "v1",
                    "depends_on": [f"c{below}" for below in range(max(0, number - 60), number)],
                },
            }
            for number in range(1_000)
        )
    )  # fmt: skip


def _whole_fleet() -> bytes:
    """Nearly as large as the fleet, beside it: 9,999 clusters more."""
    data = json.loads(generated.export(CLUSTERS - 1).replace(b"cluster-", b"another-"))
    del data["checksum"]
    data["documents"] = {"clusters": data["documents"]["clusters"]}
    data["checksum"] = transfer.checksum(data)
    return json.dumps(data).encode()


def _wrong_labels() -> bytes:
    labels = {f"l{number}!": "x" * 200 for number in range(3_000)}
    return _operations({"op": "create", "kind": "namespaces", "id": "a", "document": {"labels": labels}})


def _unknown_names() -> bytes:
    return json.dumps({"operations": [], **{f"n{number:070}": 0 for number in range(99_000)}}).encode()


def _patch_all(*more: Body) -> bytes:
    return _operations(
        {
            "op": "patch-values", "kind": "platform_components", "id": generated.EVERYWHERE, "selector": "tier=edge",
            "values": {"replicaCount": str(time.monotonic_ns())},
        },
        *more,
    )  # fmt: skip


def _refused_at_the_end() -> bytes:
    return _patch_all({"op": "create", "kind": "platform_components", "id": generated.EVERYWHERE, "document": {}})


DRY = "/batch?dry_run=true"
TERMS = ",".join(f"!a{number}" for number in range(64))
REPEATED = ",".join(["!a"] * 5000)
REQUESTS = (
    Request("fleet list, selector of 64 terms", "GET", f"/api/v2/flux/clusters?environment=qa&selector={TERMS}"),
    Request("fleet list, selector of 16 KiB", "GET", f"/api/v2/flux/clusters?selector={REPEATED}"),
    Request("list of clusters", "GET", "/clusters"),
    Request("list of clusters, selector", "GET", f"/clusters?limit=1&selector={TERMS}"),
    Request("export", "GET", "/export"),
    Request("dry run: 1 MiB of one selector", "POST", DRY, body=lambda: _selectors(lambda _: "!a," * 60 + "tier=x", 3_500)),
    Request("dry run: 4 MiB of selectors", "POST", DRY, WRITE, lambda: _selectors(lambda n: f"a{n}=x," * 40 + "b", 8_000)),
    Request("dry run: 9,000 that match nothing", "POST", DRY, body=lambda: _selectors(lambda n: f"no{n}", 9_000)),
    Request("dry run: 1,000 x 60 dependencies", "POST", DRY, WRITE, _dense_catalog),
    Request("dry run: patch every cluster", "POST", DRY, body=_patch_all),
    Request("dry run: patch every cluster, refused", "POST", DRY, body=_refused_at_the_end),
    Request("dry run: 3,000 wrong labels", "POST", DRY, body=_wrong_labels),
    Request("dry run: 64 MiB of [],", "POST", DRY, WRITE, lambda: b'{"operations":[' + b"[]," * 21_000_000 + b"[]]}"),
    Request("dry run: 8 MiB of unknown names", "POST", DRY, WRITE, _unknown_names),
    Request("batch: patch every cluster", "POST", "/batch", WRITE, _patch_all),
    Request("import of 9,999 clusters", "POST", "/import?merge=true", WRITE, _whole_fleet),
    Request("change log, entries of 10,000", "GET", "/changes?limit=10"),
    Request("export with history", "GET", "/export?history=true"),
    Request("10,000 requests with a wrong token", "GET", "/clusters", "wrong", times=10_000),
)


# Polling


def poll(port: int, seconds: float) -> None:
    """Poll until standard input is closed, or for so long; the longest wait over one connection, and over new ones."""
    request = "GET /api/v2/flux/clusters/{}/platform-components HTTP/1.1\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in servers.headers(True).items()
    )
    longest, count, kept = {True: 0.0, False: 0.0}, 0, None
    end = time.monotonic() + seconds
    sys.stdout.write("\n")
    sys.stdout.flush()
    waiting = _Waiting()
    while time.monotonic() < end and not waiting.over():
        text = (request.format(generated.dns(count % CLUSTERS)) + "\r\n").encode()
        count += 1
        began = time.perf_counter()
        if kept is None or count % 1000 == 0:
            kept = socket.create_connection(("127.0.0.1", port), timeout=60)
        for connection, anew in ((kept, False), (socket.create_connection(("127.0.0.1", port), timeout=60), True)):
            began = time.perf_counter()
            connection.sendall(text)
            load.whole_answer(connection)
            longest[anew] = max(longest[anew], time.perf_counter() - began)
            if anew:
                connection.close()
        time.sleep(0.001)
    json.dump({"kept": longest[False], "new": longest[True], "polls": 2 * count}, sys.stdout)


class _Waiting:
    """Whether standard input was closed."""

    def __init__(self) -> None:
        import select

        self._poll = select.poll()
        self._poll.register(sys.stdin, select.POLLIN | select.POLLHUP)

    def over(self) -> bool:
        return bool(self._poll.poll(0))


@contextlib.contextmanager
def polling(port: int) -> Any:
    process = subprocess.Popen(
        [sys.executable, __file__, "--poll", str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=servers.pinned(servers.LOAD_CORE),
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    process.stdout.readline()  # it begins
    waits: dict[str, float] = {}
    yield waits
    process.stdin.close()
    waits.update(json.loads(process.stdout.read()))
    process.wait()


# Measuring


def asked(port: int, request: Request, body: bytes) -> Asked:
    began = time.perf_counter()
    if request.times > 1:
        return Asked(asked_often(port, request), time.perf_counter() - began)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {request.token}", "Content-Type": "application/json"}
        try:
            connection.request(request.method, request.path, body or None, headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before its end; the answer is there
        answer = connection.getresponse()
        while answer.read(1 << 20):
            pass
        return Asked(answer.status, time.perf_counter() - began)


def asked_often(port: int, request: Request) -> int:
    """The last status."""
    text = f"{request.method} {request.path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {request.token}\r\n\r\n".encode()
    idle = collections.deque[socket.socket]()
    for _ in range(request.times):
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        connection.sendall(text)
        answer = connection.recv(65536)
        idle.append(connection)
        if len(idle) > IDLE:
            idle.popleft().close()
    for connection in idle:
        connection.close()
    return int(answer.split()[1])


def measured(home: Path, names: list[str]) -> int:
    (home / "fleet.json").write_bytes(generated.export(CLUSTERS))
    environment = servers.environment(0, home)
    subprocess.run(
        [sys.executable, "-m", "flux_resourceset.server", "import", "fleet.json"], cwd=home, env=environment, check=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with servers.ours(home) as server, servers.ours(home, API_MODE="read-only") as reader:
        server.wait("/ready")
        reader.wait("/ready")
        with polling(server.port), polling(reader.port):  # every answer is prepared once, as in a fleet that was polled before
            time.sleep(QUIET_SECONDS)
        with polling(server.port) as quiet:
            time.sleep(QUIET_SECONDS)
        anchor = max(quiet["kept"], quiet["new"]) * 1000
        print(f"{CLUSTERS} clusters; longest wait of {quiet['polls']:.0f} polls with nothing running: {anchor:.1f} ms")
        print(f"{'meanwhile':38} {'answer':>6} {'after':>9} {'kept':>9} {'new':>9} {'ratio':>7} {'reader':>9}")
        worst = 0.0
        for request in REQUESTS:
            if names and not any(name in request.name for name in names):
                continue
            body = request.body()
            with polling(server.port) as waits, polling(reader.port) if request.writes else contextlib.nullcontext() as beside:
                time.sleep(0.2)
                answer = asked(server.port, request, body)
                time.sleep(1.0 if request.writes else 0.2)  # whoever follows reads for a while
            wait = max(waits["kept"], waits["new"]) * 1000
            other = max(beside["kept"], beside["new"]) * 1000 if beside else 0.0
            worst = max(worst, wait, other)
            kept, new = waits["kept"] * 1000, waits["new"] * 1000
            print(
                f"{request.name:38} {answer.status:6} {answer.seconds:7.2f} s {kept:6.1f} ms {new:6.1f} ms {wait / anchor:6.1f}x"
                + (f" {other:6.1f} ms" if beside else ""),
                flush=True,
            )
            figures.row(
                f"Longest wait; {anchor:.1f} ms with nothing running",
                {
                    "Meanwhile": request.name, "Answer": answer.status, "After": f"{answer.seconds:.2f} s",
                    "Kept connection": f"{kept:.0f} ms", "New connections": f"{new:.0f} ms",
                    "In the other process": f"{other:.0f} ms" if beside else "",
                },
            )  # fmt: skip
        resident = server.resident() / 2**20
    shown, limit = f"{worst:.0f} ms; {resident:.0f} MiB resident", f"≤ {BAR:.0f} ms"
    figures.bar(
        "the longest wait of a poll, whatever runs", shown, limit, worst <= BAR, anchor="nothing running", ratio=worst / anchor
    )
    print(f"bar {BAR:.0f} ms for every poll: {'met' if worst <= BAR else 'MISSED'} ({worst:.1f} ms); {resident:.0f} MiB resident")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--poll", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of requests")
    arguments = parser.parse_args()
    if arguments.poll:
        poll(arguments.poll, 600)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return measured(Path(folder), arguments.only)


if __name__ == "__main__":
    sys.exit(main())
