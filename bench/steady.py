"""Measures the load that fleets make in practice: python bench/steady.py.

The polls of 1,000, 5,000 and 10,000 clusters come at their pace, each on a new connection, to a server that holds 10,000: from
memory alone, and from a SQLite file. Then 500 connections at once to a read-only server, and polls while batches of 100 clusters
are written. What the server takes of memory and CPU meanwhile is held against the limits of its manifests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated, growth, herd, poll, servers, stores  # noqa: E402

CLUSTERS = 10_000
RATES = {
    10: "1,000 clusters, 3 views",
    50: "5,000 clusters, 3 views",
    167: "10,000 clusters, 5 views",
}  # per second, at 5 minutes
SECONDS = 10.0
AT_ONCE = 500  # connections
LONGEST = 0.1  # seconds that a poll may wait beside a batch
MANIFESTS = ROOT / "deploy" / "server"
MEMORY = "memory"


# Servers


def seed(home: Path, clusters: int) -> Path:
    place = home / "seed.json"
    place.write_text(json.dumps(json.loads(generated.export(clusters))["documents"]))
    return place


@contextlib.contextmanager
def serving(backend: str, home: Path, clusters: int, **more: str) -> Iterator[servers.Process]:
    with stores.store(stores.SQLITE, home) as url:
        if backend == MEMORY:
            chosen = {"STORE_BACKEND": MEMORY, "SEED_FILE": str(seed(home, clusters))}
        else:
            chosen = {"DATABASE_URL": url}
            if not (home / "fleet.db").exists():
                stores.fill(home, url, clusters)
        with servers.ours(home, None, **chosen, **more) as server:
            server.wait("/ready")
            yield server


def ready(order: Any, server: servers.Process) -> None:
    order([server.port], 5.0)  # every answer is prepared once


# A pace


class Paced:
    """Polls at a pace, spread over the fleet."""

    def __init__(self, home: Path, clusters: int, seconds: float) -> None:
        self._all = json.loads(herd.written_requests(home, clusters).read_text())
        self._home = home
        self._seconds = seconds

    def run(self, server: servers.Process, rate: int) -> tuple[Any, float]:
        """What came of it, and the share of a core that the server took."""
        place = self._home / f"{rate}.json"
        count = round(rate * self._seconds)
        place.write_text(json.dumps((self._all * (count // len(self._all) + 1))[:count]))
        with herd.arriving(place) as order:
            began, busy = time.perf_counter(), server.cpu_seconds()
            came = order([server.port], self._seconds)
            return came, (server.cpu_seconds() - busy) / (time.perf_counter() - began)


def told(table: str, backend: str, load: str, came: Any, share: float) -> int:
    """A line; how many failed."""
    failed: int = sum(came["errors"].values())
    cells = {
        "Store": backend, "Polls": load, "Errors": f"{failed} of {failed + came['answered']}",
        **{name: f"{came['waits'].get(key, float('nan')) * 1000:.2f} ms" for name, key in
           (("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99"), ("Longest", "1.0"))},
        "CPU of the server": f"{share * 1000:.0f} m",
    }  # fmt: skip
    print("   ".join(f"{name} {value}" for name, value in cells.items()), flush=True)
    figures.row(table, cells)
    return failed


def at_a_pace(backend: str, home: Path, options: argparse.Namespace) -> None:
    """For each of the rates."""
    paced = Paced(home, options.clusters, options.seconds)
    with serving(backend, home, options.clusters) as server:
        with herd.arriving(home / "requests.json") as order:
            ready(order, server)
        for rate, fleet in RATES.items():
            came, share = paced.run(server, rate)
            failed = told("At a steady pace", backend, f"{rate}/s ({fleet})", came, share)
            figures.verdict(f"{rate} polls per second, {backend}: failed", failed, "none", not failed)
        within, mean = served_within(server)
        resident = server.resident()
    figures.verdict(
        f"a poll as the server times it, {backend}", f"{within:.1%} within 1 ms, {mean * 1e6:.0f} µs on average",
        "half of them < 1 ms", within >= 0.5,
    )  # fmt: skip
    slow = came["waits"]["0.95"] * 1000
    figures.verdict(f"95 of 100 polls as the client times them, {backend}", f"{slow:.2f} ms", "< 10 ms", slow < 10)
    if backend != MEMORY:
        limit = limits("overlays/production/resources.yaml")
        fits(f"{options.clusters:,} clusters, every answer prepared, and {rate} polls per second", resident, share, limit)


def served_within(server: servers.Process, seconds: float = 0.001) -> tuple[float, float]:
    """The share of polls that the server's own histogram has within some time, and their average."""
    text = server.get("/metrics")[1].decode()
    lines = [line for line in text.splitlines() if "request_seconds" in line and "cluster_dns}/" in line]

    def total(name: str, label: str = "") -> float:
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{") and label in line)

    count = total("flux_resourceset_request_seconds_count")
    good = total("flux_resourceset_request_seconds_bucket", f'le="{seconds}"')
    return good / count, total("flux_resourceset_request_seconds_sum") / count


# What manifests allow


def limits(manifest: str) -> dict[str, Any]:
    """Of the container in one of our manifests: memory in bytes, and CPU."""
    for document in yaml.safe_load_all((MANIFESTS / manifest).read_text()):
        if document["kind"] == "Deployment":
            limit = document["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
            return {"manifest": manifest, "memory": int(limit["memory"].removesuffix("Mi")) * 2**20, "cpu": _cores(limit["cpu"])}
    raise SystemExit(f"{manifest} has no Deployment")


def _cores(text: str) -> float:
    return float(text.removesuffix("m")) / 1000 if text.endswith("m") else float(text)


def fits(what: str, resident: int, share: float, limit: dict[str, Any]) -> None:
    shown = f"{resident / 2**20:.0f} MiB and {share * 1000:.0f} m of CPU"
    allowed = f"{limit['memory'] / 2**20:.0f} MiB and {limit['cpu'] * 1000:.0f} m of {limit['manifest']}"
    figures.verdict(what, shown, f"≤ {allowed}", resident <= limit["memory"] and share <= limit["cpu"])


def demo(home: Path, seconds: float) -> None:
    """The demo's data, at the highest of the rates."""
    file = ROOT / "data" / "seed.json"
    names = [cluster["cluster_dns"] for cluster in json.loads(file.read_text())["clusters"]]
    lines = "".join(f"{name}: {value}\r\n" for name, value in servers.headers(packed=True).items())
    rate = max(RATES)
    asked = [f"GET /api/v2/flux/clusters/{dns}/{view} HTTP/1.1\r\n{lines}\r\n" for dns in names for view in poll.VIEWS]
    place = home / "demo.json"
    place.write_text(json.dumps((asked * (round(rate * seconds) // len(asked) + 1))[: round(rate * seconds)]))
    with servers.ours(home, SEED_FILE=str(file)) as server, herd.arriving(place) as order:
        server.wait("/ready")
        began, busy = time.perf_counter(), server.cpu_seconds()
        came = order([server.port], seconds)
        share = (server.cpu_seconds() - busy) / (time.perf_counter() - began)
        told("At a steady pace", "SQLite", f"{rate}/s (the demo's clusters)", came, share)
        fits(f"the demo's data, {rate} polls per second", server.resident(), share, limits("base/read.yaml"))


# Many at once, and beside writes


def at_once(home: Path, options: argparse.Namespace) -> None:
    requests = [poll.raw(poll.path(number, view), True) for number in range(min(1000, options.clusters)) for view in poll.VIEWS]
    with serving(stores.SQLITE, home, options.clusters, API_MODE="read-only") as server:
        for keep_alive in (True, False):
            came = poll.loaded(server.port, requests, connections=AT_ONCE, keep_alive=keep_alive, seconds=options.seconds / 3)
            name = "kept connections" if keep_alive else "new connections"
            shown = f"{came['requests']:,} answers, p50 {came['p50'] * 1000:.1f} ms, p99 {came['p99'] * 1000:.1f} ms, none failed"
            # one that fails ends the load, and this program with it
            figures.verdict(f"{AT_ONCE} connections at once to a read-only server, {name}", shown, "no error", True)


def beside_batches(home: Path, options: argparse.Namespace) -> None:
    paced = Paced(home, options.clusters, options.seconds)
    rate = max(RATES)
    with serving(stores.SQLITE, home, options.clusters) as server:
        with herd.arriving(home / "requests.json") as order:
            ready(order, server)
        over, took = threading.Event(), []
        operator = growth.Asked(server)

        def write() -> None:
            while not over.wait(1.0):
                took.append(operator.patched(0, min(growth.BATCH, options.clusters)))

        writing = threading.Thread(target=write)
        writing.start()
        came, share = paced.run(server, rate)
        over.set()
        writing.join()
    failed = told(f"Beside a batch of {growth.BATCH} clusters each second", stores.SQLITE, f"{rate}/s", came, share)
    longest = came["waits"]["1.0"]
    shown = f"{longest * 1000:.0f} ms, {failed} failed; {len(took)} batches, the slowest took {max(took, default=0):.2f} s"
    good = not failed and longest <= LONGEST
    figures.verdict(
        f"longest wait of a poll beside batches of {growth.BATCH} clusters", shown, f"≤ {LONGEST * 1000:.0f} ms", good
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each pace")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home, small = Path(folder) / "fleet", Path(folder) / "demo"
        home.mkdir()
        small.mkdir()
        demo(small, options.seconds)
        for backend in (MEMORY, stores.SQLITE):
            at_a_pace(backend, home, options)
        at_once(home, options)
        beside_batches(home, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
