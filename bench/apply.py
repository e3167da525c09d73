"""Measures `apply` against replacing the same documents, in the same process: python bench/apply.py.

Every cluster of a fleet as one batch, on a SQLite file: created, applied again unchanged, and applied with one changed label; the
anchors are the same batches with `create` and `replace`. Then the refusal of a batch in which every cluster has a conflict.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, generated  # noqa: E402

from flux_resourceset import errors, imports, operations, transfer  # noqa: E402
from flux_resourceset.budgets import Budget  # noqa: E402
from flux_resourceset.changes import Document, Origin  # noqa: E402
from flux_resourceset.follower import Follower  # noqa: E402
from flux_resourceset.kinds import kind_files  # noqa: E402
from flux_resourceset.ledger import Ledger  # noqa: E402
from flux_resourceset.store.sqlite import SqliteStore  # noqa: E402

SIZES = (100, 1_000, 5_000)


class Times(NamedTuple):
    clusters: int
    create: float  # the anchor of apply_new
    apply_new: float
    replace_same: float  # the anchor of apply_same
    apply_same: float
    replace_changed: float  # the anchor of apply_changed and of refuse
    apply_changed: float
    refuse: float


class Fleet:
    """A store with the definitions of a generated fleet, and its clusters as files would have them."""

    def __init__(self, folder: Path, clusters: int) -> None:
        store = SqliteStore(folder / "fleet.db")
        self._ledger = Ledger(Follower(kind_files.load(), lambda: store))
        self.clusters: list[Document] = msgspec.json.decode(generated.export(clusters))["documents"]["clusters"]
        definitions = transfer.parsed(self._ledger.kinds, msgspec.json.decode(generated.export(0)), "generated")
        self._ledger.follower.refresh()
        self._ledger.take_charge()
        self._ledger.write_now(imports.importing(definitions, ""), Origin(actor="bench"))

    def submit(self, op: str, **label: str) -> None:
        made = [self._operation(op, document, label) for document in self.clusters]
        batch = operations.Batch(operations.parsed(self._ledger.kinds, {"operations": made}, Budget()))
        self._ledger.write_now(batch.work, Origin(actor=op))

    @staticmethod
    def _operation(op: str, document: Document, label: dict[str, str]) -> Document:
        changed = {**document, "labels": {**document["labels"], **label}}
        return {"op": op, "kind": "clusters", "id": document["id"], "document": changed} | (
            {"manager": "bench"} if op == "apply" else {}
        )

    def close(self) -> None:
        self._ledger.close()


def timed(deed: Callable[[], object]) -> float:
    started = time.process_time()
    deed()
    return time.process_time() - started


def measured(clusters: int) -> Times:
    with tempfile.TemporaryDirectory() as replaced, tempfile.TemporaryDirectory() as applied:
        anchor, fleet = Fleet(Path(replaced), clusters), Fleet(Path(applied), clusters)
        times: list[float] = []
        for step in ({}, {}, {"round": "1"}):  # in turns, for the machine may be shared
            op = "create" if not times else "replace"
            times += [timed(lambda: anchor.submit(op, **step)), timed(lambda: fleet.submit("apply", **step))]  # noqa: B023  # at once
        fleet.submit("replace", round="2")
        times.append(timed(lambda: refused(fleet)))
        anchor.close()
        fleet.close()
    return Times(clusters, *times)


def refused(fleet: Fleet) -> None:
    try:
        fleet.submit("apply", round="3")
    except errors.Conflict as exc:
        if exc.extra["conflicts_total"] == len(fleet.clusters):
            return
    raise SystemExit("not every conflict was noticed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("CPU time, and times the anchor")
    print("clusters   created            unchanged          changed            refused")
    medians = []
    for clusters in options.sizes:
        rounds = [measured(clusters) for _ in range(options.rounds)]
        times = Times(clusters, *(statistics.median(column) for column in list(zip(*rounds, strict=True))[1:]))
        medians.append(times)
        pairs = [(times.apply_new, times.create), (times.apply_same, times.replace_same)]
        pairs += [(took, times.replace_changed) for took in (times.apply_changed, times.refuse)]
        titles = (
            "All are new (`create`)",
            "Unchanged (`replace`)",
            "One label each (`replace`)",
            "Refused, a conflict in each (`replace`)",
        )
        cells = {title: f"{took:.3f} s, {took / anchor:.2f} ×" for title, (took, anchor) in zip(titles, pairs, strict=True)}
        figures.row("CPU time, and times the anchor", {"Clusters": f"{clusters:,}", **cells})
        print(f"{clusters:8}   " + "   ".join(f"{took:6.3f} s ({took / anchor:4.2f} x)" for took, anchor in pairs))
    if len(medians) > 1:
        first, last = medians[0], medians[-1]
        growth = math.log(last.apply_changed / first.apply_changed) / math.log(last.clusters / first.clusters)
        print(f"exponent of growth with clusters: {growth:.2f}")
        figures.note(f"Exponent of growth with clusters: {growth:.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
