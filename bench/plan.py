"""Measures plans against preparing the answers that they are about, once, in the same process: python bench/plan.py.

A change in the catalog that reaches every cluster, and a patch of every cluster, on fleets of 100, 1,000 and 10,000 clusters.
Then the same plans of the largest fleet over HTTP, while the server is polled: no poll waits for a plan as a whole.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated  # noqa: E402
from bench.batch import Polls  # noqa: E402

import live  # noqa: E402  # the same server that the tests start
from flux_resourceset import answers, imports, operations, plans, transfer  # noqa: E402
from flux_resourceset.budgets import Budget  # noqa: E402
from flux_resourceset.changes import Origin  # noqa: E402
from flux_resourceset.follower import Follower  # noqa: E402
from flux_resourceset.kinds import kind_files  # noqa: E402
from flux_resourceset.ledger import Ledger  # noqa: E402
from flux_resourceset.store.memory import MemoryStore  # noqa: E402

SIZES = (100, 1_000, 10_000)
BAR = 1.0  # times preparing the answers once
CATALOG = {"op": "patch", "kind": "platform_components", "id": generated.EVERYWHERE, "document": {"oci_tag": "v9.0.0"}}
PATCH = {"op": "patch-values", "kind": "platform_components", "id": generated.EVERYWHERE, "values": {"a": "b"}, "selector": ""}


class Times(NamedTuple):
    clusters: int
    prepare: float  # the answers of the view that changes, of all clusters
    catalog: float  # the plan of the change in the catalog
    patch: float  # the plan of the patch of every cluster


def filled(clusters: int) -> Ledger:
    store = MemoryStore()
    ledger = Ledger(Follower(kind_files.load(), lambda: store))
    export = transfer.parsed(ledger.kinds, msgspec.json.decode(generated.export(clusters)), "generated")
    ledger.write_now(imports.importing(export, ""), Origin(actor="bench"))
    return ledger


def prepare(ledger: Ledger, clusters: int) -> None:
    fleet = ledger.fleet
    fleet.answers.clear()
    fleet._encoder = answers.Encoder()  # as after a change in the catalog
    for number in range(clusters):
        fleet.answer(f"{generated.dns(number)}/platform-components".encode())


def plan(ledger: Ledger, operation: dict[str, Any], clusters: int) -> None:
    """All that a dry run works out, with the id of the plan and its groups."""
    batch = operations.Batch(operations.parsed(ledger.kinds, {"operations": [operation]}, Budget()))
    outcome = ledger.rehearse_now(batch.work, Origin(actor="bench"))
    plans.identity(outcome.entry, outcome.effect)
    groups = plans.grouped(outcome.effect)
    assert sum(len(group.clusters) for group in groups) == clusters


def timed(deed: Callable[[], object]) -> float:
    started = time.process_time()
    deed()
    return time.process_time() - started


def measured(clusters: int, rounds: int) -> Times:
    ledger = filled(clusters)
    taken: dict[str, list[float]] = {"prepare": [], "catalog": [], "patch": []}
    for _ in range(rounds):  # in turns, for the machine may be shared
        taken["prepare"].append(timed(lambda: prepare(ledger, clusters)))
        taken["catalog"].append(timed(lambda: plan(ledger, CATALOG, clusters)))
        taken["patch"].append(timed(lambda: plan(ledger, PATCH, clusters)))
    ledger.close()
    return Times(clusters, *(statistics.median(times) for times in taken.values()))


def exponent(series: list[Times], name: str) -> float:
    """How a figure grows with clusters: 1 is in proportion."""
    first, last = series[0], series[-1]
    return math.log(getattr(last, name) / getattr(first, name)) / math.log(last.clusters / first.clusters)


def over_http(clusters: int) -> None:
    with tempfile.TemporaryDirectory() as folder, live.serving(Path(folder), SEED_FILE="") as server:
        ask(server, "/import", generated.export(clusters))
        for name, operation in (("catalog", CATALOG), ("patch of all", PATCH)):
            with Polls(server.address[1], clusters) as polls:
                started = time.perf_counter()
                answer = ask(server, "/plan", msgspec.json.encode({"operations": [operation]}))
                took = time.perf_counter() - started
            summary = json.loads(answer)["summary"]  # not beside the polls: it is long, and these would wait for it here
            assert summary["clusters"] == clusters, summary
            print(
                f"over HTTP, {clusters} clusters, {name}: {took:.2f} s; {polls.done} polls meanwhile, {polls.failed} failed,"
                f" the longest took {polls.slowest * 1000:.0f} ms, {polls.slowest / took:.2f} of the plan"
            )
            figures.row(
                f"Over HTTP, {clusters:,} clusters",
                {
                    "Plan": name, "Took": f"{took:.2f} s", "Polls meanwhile": polls.done, "Failed": polls.failed,
                    "The longest": f"{polls.slowest * 1000:.0f} ms",
                },
            )  # fmt: skip


def ask(server: live.Server, path: str, body: bytes) -> bytes:
    connection = http.client.HTTPConnection(*server.address, timeout=300)
    headers = {"Authorization": f"Bearer {live.WRITE}", "Content-Type": "application/json"}
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {content[:500]!r}")
    return content


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    asyncio.set_event_loop(asyncio.new_event_loop())
    series = []
    print("CPU time, and times preparing the answers once\nclusters   prepare    catalog            patch of all")
    for clusters in options.sizes:
        times = measured(clusters, options.rounds)
        series.append(times)
        shown = "   ".join(f"{took:6.3f} s ({took / times.prepare:4.2f} x)" for took in times[2:])
        print(f"{clusters:8}   {times.prepare:6.3f} s   {shown}")
        plans_of = zip(("Change in the catalog that reaches all", "Patch of all"), times[2:], strict=True)
        cells = {name: f"{took:.3f} s, {took / times.prepare:.2f} × that" for name, took in plans_of}
        figures.row("CPU time", {"Clusters": f"{clusters:,}", "Preparing all answers once": f"{times.prepare:.3f} s", **cells})
    growth = ", ".join(f"{name} {exponent(series, name):.2f}" for name in Times._fields[1:]) if len(series) > 1 else "one size"
    ratio = series[-1].catalog / series[-1].prepare
    print(f"exponent of growth with clusters: {growth}")
    figures.note(f"Exponent of growth with clusters: {growth}.")
    shown = f"{series[-1].catalog:.3f} s"
    anchor = "preparing the answers once"
    figures.bar("the plan of a change in the catalog", shown, f"≤ {BAR:.1f} ×", ratio <= BAR, anchor=anchor, ratio=ratio)
    print(f"bar {BAR:.1f} x for the change in the catalog: {'met' if ratio <= BAR else 'MISSED'} ({ratio:.2f} x)")
    over_http(options.sizes[-1])
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
