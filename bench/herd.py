"""Measures polls that come all at once: python bench/herd.py.

Flux has no jitter: clusters that were started together ask together. All clusters ask for all views within one second, every
request on a connection of its own, round after round, while documents are written. Then the same on PostgreSQL, with two readers
that share the polls, and the writes at a third process. A wait counts from the moment when its request was due, so the load
generator's own lateness is in it, and is printed beside it. The servers share one core, the load has another.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated, servers, stores  # noqa: E402

VIEWS = ("platform-components", "namespaces", "rolebindings")
CLUSTERS, ROUNDS, EVERY = 10_000, 5, 30.0
WITHIN = 1.0  # seconds in which all of them ask
WRITES_PER_SECOND = 5


# Writing, in a process of its own


def write(port: int, clusters: int) -> None:
    """Until standard input is closed: labels of clusters, and every tenth time those of a namespace that a sixth of them has."""
    waits: list[float] = []
    failed: list[str] = []
    began = time.perf_counter()
    over = _Over()
    while not over.after(max(0.0, began + (len(waits) + len(failed)) / WRITES_PER_SECOND - time.perf_counter())):
        number = len(waits) + len(failed)
        due = began + number / WRITES_PER_SECOND
        id = f"cluster-{number % clusters:05}"
        path = f"/namespaces/namespace-{number // 10 % 30:02}" if number % 10 == 0 else f"/clusters/{id}"
        try:
            status = _patched(port, path, {"labels": {"herd": str(number)}})
        except (OSError, http.client.HTTPException) as exc:
            status = repr(exc)
        if status == "200":
            waits.append(time.perf_counter() - due)
        else:
            failed.append(status)
    json.dump({"waits": waits, "failed": failed}, sys.stdout)


def _patched(port: int, path: str, body: Any) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {servers.WRITE}", "Content-Type": "application/merge-patch+json"}
        connection.request("PATCH", path, json.dumps(body), headers)
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)


class _Over:
    """Whether standard input was closed."""

    def __init__(self) -> None:
        import select

        self._poll = select.poll()
        self._poll.register(sys.stdin, select.POLLIN | select.POLLHUP)

    def after(self, seconds: float) -> bool:
        return bool(self._poll.poll(seconds * 1000))


@contextlib.contextmanager
def writing(port: int, clusters: int) -> Iterator[dict[str, Any]]:
    command = [sys.executable, __file__, "--write", str(port), "--clusters", str(clusters)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=servers.pinned(servers.LOAD_CORE)
    )  # fmt: skip
    done: dict[str, Any] = {}
    yield done
    out, _ = process.communicate()
    done.update(json.loads(out))


# Measuring


@contextlib.contextmanager
def arriving(requests: Path) -> Iterator[Any]:
    """What takes an order (see arrivals.py) and gives what came of it."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "bench" / "arrivals.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=servers.pinned(servers.LOAD_CORE),
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    ordered, told = process.stdin, process.stdout

    def order(ports: list[int], seconds: float) -> Any:
        ordered.write(json.dumps({"requests": str(requests), "ports": ports, "seconds": seconds}) + "\n")
        ordered.flush()
        return json.loads(told.readline())

    try:
        yield order
    finally:
        ordered.close()
        process.wait()


def written_requests(home: Path, clusters: int) -> Path:
    """Every view of every cluster, in no order."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in servers.headers(packed=True).items())
    paths = [f"/api/v2/flux/clusters/{generated.dns(number)}/{view}" for number in range(clusters) for view in VIEWS]
    random.Random(1).shuffle(paths)
    place = home / "requests.json"
    place.write_text(json.dumps([f"GET {path} HTTP/1.1\r\n{lines}\r\n" for path in paths]))
    return place


def measured(backend: str, options: argparse.Namespace, home: Path) -> bool:
    with stores.store(backend, home) as url, contextlib.ExitStack() as stack:
        stores.fill(home, url, options.clusters)
        writer = stack.enter_context(servers.ours(home, DATABASE_URL=url))
        writer.wait("/ready")
        readers = [writer]
        if backend != stores.SQLITE:
            readers = [stack.enter_context(servers.ours(home, DATABASE_URL=url, API_MODE="read-only")) for _ in range(2)]
        for reader in readers:
            reader.wait("/ready")
        order = stack.enter_context(arriving(written_requests(home, options.clusters)))
        ports = [reader.port for reader in readers]
        order(ports, 10 * options.within)  # every answer is prepared once, as in a fleet that was polled before
        polls = f"{3 * options.clusters} polls within {options.within:g} s, {options.rounds} times"
        print(f"{backend}, {len(readers)} server(s) polled; {polls}")
        waits = f"{'p50':>10} {'p99':>10} {'p99.9':>10} {'longest':>10}"
        print(f"{'round':>6} {'errors':>7} {waits} {'server':>8}   load: late by, per request")
        with writing(writer.port, options.clusters) as writes:
            rounds = [told(number, backend, order, ports, readers, options) for number in range(options.rounds)]
        return judged(backend, rounds, writes, options)


def told(
    number: int, backend: str, order: Any, ports: list[int], readers: list[servers.Process], options: argparse.Namespace
) -> Any:
    began, busy = time.monotonic(), sum(reader.cpu_seconds() for reader in readers)
    came = order(ports, options.within)
    cost = (sum(reader.cpu_seconds() for reader in readers) - busy) / (3 * options.clusters) * 1e6
    came["failed"] = sum(came["errors"].values())
    p50, p99, p999, longest = (came["waits"].get(share, float("nan")) * 1000 for share in ("0.5", "0.99", "0.999", "1.0"))
    load = f"{came['behind'] * 1000:.0f} ms, {came['cost'] * 1e6:.0f} µs"
    print(
        f"{number + 1:6} {came['failed']:7} {p50:7.0f} ms {p99:7.0f} ms {p999:7.0f} ms {longest:7.0f} ms {cost:5.0f} µs   {load}"
        + (f"   {came['errors']}" if came["errors"] else ""),
        flush=True,
    )
    figures.row(
        f"{3 * options.clusters:,} polls within {options.within:g} s, each on a new connection, every {options.every:g} s",
        {
            "Store": backend, "Round": number + 1, "Errors": came["failed"], "p50": f"{p50:.0f} ms", "p99": f"{p99:.0f} ms",
            "p99.9": f"{p999:.0f} ms", "Longest": f"{longest:.0f} ms", "CPU of the server per poll": f"{cost:.0f} µs",
            "Load was late by": f"{came['behind'] * 1000:.0f} ms",
        },
    )  # fmt: skip
    if number + 1 < options.rounds:
        time.sleep(max(0.0, began + options.every - time.monotonic()))
    return came


def judged(backend: str, rounds: list[Any], writes: Any, options: argparse.Namespace) -> bool:
    slow = max(writes["waits"], default=float("nan"))
    count = f"{len(writes['failed'])} of {len(writes['failed']) + len(writes['waits'])}; the slowest after {slow * 1000:.0f} ms"
    cost = sorted(came["cost"] for came in rounds)[len(rounds) // 2]
    wanted = 3 * options.clusters / options.within
    enough = "" if wanted * cost <= 1 else f", fewer than the {wanted:.0f} wanted: the waits hold its own lateness"
    load = f"a connection takes {cost * 1e6:.0f} µs of the load's core, so it can open {1 / cost:.0f} per second{enough}"
    print(load)
    figures.note(f"{backend}: {load}.")
    failed = sum(came["failed"] for came in rounds)
    polls = 3 * options.clusters * len(rounds)
    good = figures.verdict(f"a herd on {backend}: failed polls", f"{failed} of {polls:,}", "none", not failed)
    return figures.verdict(f"a herd on {backend}: failed writes meanwhile", count, "none", not writes["failed"]) and good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--every", type=float, default=EVERY, help="seconds from round to round")
    parser.add_argument("--within", type=float, default=WITHIN, help="seconds in which all polls of a round come")
    parser.add_argument("--stores", nargs="+", default=[stores.SQLITE, stores.POSTGRES], choices=[stores.SQLITE, stores.POSTGRES])
    parser.add_argument("--write", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.clusters)
        return 0
    good = []
    for backend in options.stores:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            good.append(measured(backend, options, Path(folder)))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
