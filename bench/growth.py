"""Measures how everything grows with the fleet: python bench/growth.py.

Fleets of 100 to 100,000 clusters on SQLite and on PostgreSQL: what a poll costs, how long a write takes, a batch, a change in the
catalog that reaches every cluster, its plan, a start, and how much memory it takes; the exponent of growth of each, by least
squares over the sizes. `--plot FILE` draws it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated, plot, poll, servers, stores  # noqa: E402

SIZES = (100, 1_000, 10_000, 100_000)
POLLED = 100  # clusters: the same number in every fleet, so that only what is beside them differs
BATCH = 100
AT_ONCE = 10_000  # clusters that one batch takes
TENFOLD = 11.0  # what ten times the clusters may cost in time to start and in memory
LEVEL = 1.25  # what a poll of the largest fleet may cost against one of the smallest: no growth, within what runs differ
PEAK = 1.15  # memory at most while it starts, against afterwards: the snapshot is never there twice
ROUNDS = 3


class Measure(NamedTuple):
    title: str
    unit: str
    digits: int


MEASURES = {
    "poll": Measure("Poll on a new connection, CPU time", "µs", 1),
    "waited": Measure("Poll, one at a time, median", "ms", 2),
    "write": Measure("Write of a cluster", "ms", 1),
    "batch": Measure(f"Batch: patch of {BATCH} clusters", "ms", 0),
    "patch": Measure("Patch of all, 10,000 at a time", "s", 2),
    "catalog": Measure("Change in the catalog that reaches all", "s", 3),
    "plan": Measure("Plan of that change", "s", 3),
    "start": Measure("Start to ready", "s", 2),
    "memory": Measure("Resident memory after a start", "MB", 0),
}


Figures = dict[str, float]  # by measure; and "peak", the most memory while it started


# Asking


class TooExpensiveError(Exception):
    """The server gives up on what takes it too long, as it may on a slow machine."""


class Asked:
    """An operator at a server."""

    def __init__(self, server: servers.Process) -> None:
        self._port = server.port

    def took(self, method: str, path: str, body: Any) -> float:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=600)
        headers = {"Authorization": f"Bearer {servers.WRITE}", "Content-Type": "application/json"}
        content = json.dumps(body)
        began = time.perf_counter()
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - began
        connection.close()
        if answer.status == 422 and b"too-expensive" in text:
            raise TooExpensiveError
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:500]!r}")
        return seconds

    def patched(self, first: int, count: int) -> float:
        """One value on some clusters, in batches."""
        seconds = 0.0
        for start in range(first, first + count, AT_ONCE):
            names = [f"cluster-{number:05}" for number in range(start, min(start + AT_ONCE, first + count))]
            operation = {
                "op": "patch-values", "kind": "platform_components", "id": generated.EVERYWHERE, "clusters": names,
                "values": {"replicaCount": str(time.monotonic_ns())},
            }  # fmt: skip
            seconds += self.took("POST", "/batch", {"operations": [operation]})
        return seconds


def median(act: Callable[[], float], times: int = ROUNDS) -> float:
    """Not a number, if the server refuses it."""
    try:
        return statistics.median(act() for _ in range(times))
    except TooExpensiveError:
        return math.nan


# Measuring


def started(home: Path, url: str, rounds: int) -> Figures:
    """Of servers that start one after the other."""
    taken: dict[str, list[float]] = {"start": [], "memory": [], "peak": []}
    for _ in range(rounds):
        with servers.ours(home, DATABASE_URL=url) as server:
            taken["start"].append(server.wait("/ready"))
            taken["memory"].append(server.resident() / 1e6)
            taken["peak"].append(server.peak() / 1e6)
    return {name: statistics.median(values) for name, values in taken.items()}


def polled(server: servers.Process, clusters: int, seconds: float) -> Figures:
    numbers = range(min(POLLED, clusters))
    requests = [poll.raw(poll.path(number, view), True) for number in numbers for view in poll.VIEWS]
    poll.loaded(server.port, requests, marker="inputs")  # every answer is prepared

    def cost() -> float:
        busy = server.cpu_seconds()
        count: int = poll.loaded(server.port, requests, seconds=seconds)["requests"]
        return (server.cpu_seconds() - busy) / count * 1e6

    def waited() -> float:
        wait: float = poll.loaded(server.port, requests, seconds=seconds, connections=1)["p50"]
        return wait * 1000

    return {"poll": median(cost), "waited": median(waited)}


def asked(server: servers.Process, clusters: int) -> Figures:
    operator, marks = Asked(server), iter(range(1_000_000))

    def write() -> float:
        return operator.took("PATCH", f"/clusters/cluster-{clusters // 2:05}", {"labels": {"mark": str(next(marks))}})

    def catalog() -> float:
        return operator.took("PATCH", f"/platform_components/{generated.EVERYWHERE}", {"oci_tag": f"v9.0.{next(marks)}"})

    def plan() -> float:
        change = {"op": "patch", "kind": "platform_components", "id": generated.EVERYWHERE, "document": {"oci_tag": "v10.0.0"}}
        return operator.took("POST", "/plan", {"operations": [change]})

    return {
        "write": median(write, 15) * 1000,
        "batch": median(lambda: operator.patched(0, min(BATCH, clusters))) * 1000,
        "catalog": median(catalog),
        "plan": median(plan),
        "patch": median(lambda: operator.patched(0, clusters), 1),
    }


def measured(backend: str, clusters: int, options: argparse.Namespace) -> Figures:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, stores.store(backend, Path(folder)) as url:
        home = Path(folder)
        stores.fill(home, url, clusters)
        found = started(home, url, options.rounds)
        with servers.ours(home, DATABASE_URL=url) as server:
            server.wait("/ready")
            found |= polled(server, clusters, options.seconds)
            return found | asked(server, clusters)


# Telling


Series = dict[int, Figures]  # by number of clusters


def exponents(series: Series) -> dict[str, float | None]:
    """Of each measure; none from one size alone."""
    lines = {name: points(series, name) for name in MEASURES}
    return {name: plot.exponent(line) if len(line) > 1 else None for name, line in lines.items()}


def points(series: Series, name: str) -> list[tuple[float, float]]:
    return [(size, found[name]) for size, found in series.items() if not math.isnan(found[name])]


def shown_as(measure: Measure, value: float) -> str:
    return "refused: too expensive" if math.isnan(value) else f"{value:.{measure.digits}f} {measure.unit}"


def tell(backend: str, series: Series) -> None:
    growth = exponents(series)
    for name, measure in MEASURES.items():
        values = {f"{size:,}": shown_as(measure, found[name]) for size, found in series.items()}
        power = growth[name]
        shown = "" if power is None else f"{power:.2f}"
        figures.row("By clusters", {"Store": backend, "What": measure.title, **values, "Exponent": shown})
        print(f"{backend:11}{measure.title:42}" + "".join(f"{each:>14}" for each in values.values()) + f"   exponent {shown}")


def judged(backend: str, series: Series) -> bool:
    sizes = sorted(series)
    small, large = series[sizes[0]], series[sizes[-1]]
    held = []

    def bar(name: str, ratio: float, limit: float, shown: str, anchor: str) -> None:
        held.append(figures.verdict(f"{backend}: {name}", shown, f"≤ {limit:g} ×", ratio <= limit, anchor=anchor, ratio=ratio))

    if len(sizes) > 1:
        shown = f"{large['poll']:.1f} µs at {sizes[-1]:,} clusters, {small['poll']:.1f} µs at {sizes[0]:,}"
        bar("a poll does not grow", large["poll"] / small["poll"], LEVEL, shown, f"that at {sizes[0]:,} clusters")
    tenth = series.get(sizes[-1] // 10)
    if tenth:
        for name, words in (("start", "a start grows in proportion at most"), ("memory", "memory grows in proportion at most")):
            unit = MEASURES[name].unit
            shown = f"{large[name]:.2f} {unit} at {sizes[-1]:,} clusters, {tenth[name]:.2f} {unit} at {sizes[-1] // 10:,}"
            bar(words, large[name] / tenth[name], TENFOLD, shown, f"that at {sizes[-1] // 10:,} clusters")
    shown = f"{large['peak']:.0f} MB while it starts, {large['memory']:.0f} MB afterwards"
    bar("the snapshot is loaded as a stream", large["peak"] / large["memory"], PEAK, shown, "that afterwards")
    return all(held)


def drawn(all_series: Mapping[str, Series]) -> str:
    panels = []
    for name, measure in MEASURES.items():
        lines: dict[str, Sequence[tuple[float, float]]] = {}
        for backend, series in all_series.items():
            lines[backend] = points(series, name)
        panels.append(plot.Panel(measure.title, measure.unit, {backend: line for backend, line in lines.items() if line}))
    return plot.svg(panels, "clusters")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--stores", nargs="+", default=[stores.SQLITE, stores.POSTGRES], choices=[stores.SQLITE, stores.POSTGRES])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each of three runs of polls")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="starts")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where an SVG is written")
    options = parser.parse_args()
    everything: dict[str, Series] = {}
    for backend in options.stores:
        everything[backend] = {}
        for clusters in sorted(options.sizes):
            began = time.perf_counter()
            everything[backend][clusters] = measured(backend, clusters, options)
            print(f"{backend}, {clusters} clusters: measured in {time.perf_counter() - began:.0f} s", flush=True)
        tell(backend, everything[backend])
    held = [judged(backend, series) for backend, series in everything.items()]
    if options.plot:
        options.plot.write_text(drawn(everything), encoding="utf-8")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
