"""Measures what the past costs: python bench/history.py.

How much the file grows when one value is patched on every cluster by the command line, against what whole documents before and
after would take. How long a document of the past takes, after few changes of it and after many, against the present one. How
long the log takes to be read page by page, to be verified, and how long writers wait while it is folded, against one write.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import batch, figures, generated  # noqa: E402

import live  # noqa: E402  # the same server that the tests start
from flux_resourceset.changes import Change, Document, Entry, Query  # noqa: E402
from flux_resourceset.store.sqlite import SqliteStore  # noqa: E402

CLUSTERS = 10_000
PATCHES = 3
BAR = 15.0  # MB for a patch of 10,000 clusters
FEW, MANY = 10, 1_000  # changes of one document
ROUNDS = 20


def tell(what: str, value: str) -> None:
    figures.row("What the past costs", {"What": what, "Measured": value})


def megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6


def patched(home: Path, clusters: int) -> list[float]:
    """By how much the file grew each time; the server has ended, so all of it is in there."""
    path, sizes = home / "fleet.db", []
    for number in range(PATCHES + 1):
        with live.serving(home, SEED_FILE="") as server:
            environment = {
                "PATH": os.environ["PATH"], "HOME": str(home), "FLUX_API_URL": server.url,
                "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE,
            }  # fmt: skip
            if number == 0:
                (home / "fleet.json").write_bytes(generated.export(clusters))
                batch.run(environment, "import", str(home / "fleet.json"), "--yes", "--timeout", "300")
            else:
                words = ("component", "patch", generated.EVERYWHERE, "--all", "--yes", "--set", f"a={number}")
                batch.run(environment, *words, "--timeout", "300")
            server.stop()
        sizes.append(megabytes(path))
    return [after - before for before, after in itertools.pairwise(sizes)]


def whole(path: Path) -> float:
    """What every cluster before and after would take."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return 2 * float(db.execute("SELECT total(length(body)) FROM documents WHERE kind = 'clusters'").fetchone()[0]) / 1e6


def taken(act: Callable[[], object]) -> float:
    """The quickest of some, in milliseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - started)
    return best * 1000


def update(store: SqliteStore, kind: str, body: Document, value: str) -> Document:
    after = {**body, "patches": {**body["patches"], "component-00": {"value": value}}}
    revision = store.head().revision + 1
    made = (Change(kind, body["id"], "update", body, after),)
    with store.begin() as transaction:
        transaction.commit(Entry(revision, f"2026-01-01T00:00:00.{revision:06}Z", "bench", None, None, None, False, made))
    return after


def documents(path: Path) -> None:
    with contextlib.closing(SqliteStore(path)) as store:
        body = store.snapshot().documents["clusters"]["cluster-00000"].body
        start = store.head().revision
        for number in range(MANY):
            body = update(store, "clusters", body, str(number))
        head = store.head().revision
        now = taken(lambda: store.document_at("clusters", "cluster-00000", head))
        few = taken(lambda: store.document_at("clusters", "cluster-00000", head - FEW))
        many = taken(lambda: store.document_at("clusters", "cluster-00000", start))
        print(f"a document now {now:.2f} ms; {FEW} changes ago {few:.2f} ms, {few / now:.1f} x; ", end="")
        tell("A document now", f"{now:.2f} ms")
        tell(f"The same, {FEW} of its changes ago", f"{few:.2f} ms, {few / now:.1f} × that")
        tell(f"The same, {MANY:,} ago", f"{many:.2f} ms, {many / now:.1f} ×, {(many - now) / MANY * 1000:.1f} µs for each change")
        print(f"{MANY} ago {many:.2f} ms, {many / now:.1f} x, {(many - now) / MANY * 1000:.1f} µs for each change")
        other = taken(lambda: store.document_at("clusters", "cluster-00001", start))
        tell(f"Another one, {MANY:,} changes of the fleet ago", f"{other:.2f} ms, {other / now:.1f} ×")
        print(f"another one, {MANY} changes of the fleet ago: {other:.2f} ms, {other / now:.1f} x")
        log(store, start)


def log(store: SqliteStore, start: int) -> None:
    for word, query in (("oldest", Query(after=start, limit=MANY)), ("newest", Query(limit=MANY))):
        once = taken(lambda query=query: list(store.find(query, MANY)))  # type: ignore[misc]
        paged = taken(lambda query=query: list(store.find(query, 20)))  # type: ignore[misc]
        tell(
            f"{MANY:,} entries of the log, {word} first",
            f"{once:.0f} ms; in {MANY // 20} pages {paged:.0f} ms, {paged / once:.1f} ×",
        )
        print(
            f"{MANY} entries of the log, {word} first: {once:.0f} ms, in {MANY // 20} pages {paged:.0f} ms, {paged / once:.1f} x"
        )


def upkeep(path: Path) -> None:
    with contextlib.closing(SqliteStore(path)) as store:
        body = store.snapshot().documents["clusters"]["cluster-00000"].body
        started = time.perf_counter()
        update(store, "clusters", body, "last")
        write = time.perf_counter() - started
        started = time.perf_counter()
        found = store.verified()
        took = time.perf_counter() - started
        print(f"verified {found.revision} revisions with {found.documents} documents in {took:.1f} s")
        tell(f"`verify` of {found.revision:,} revisions with {found.documents:,} documents", f"{took:.1f} s")
        if found.fault:
            raise SystemExit(found.fault)
        digest = store.digest_at(found.revision)
        started = time.perf_counter()
        with store.begin() as transaction:
            gone = transaction.fold(found.revision + 1, digest)
        lasted = time.perf_counter() - started
        tell(f"Writers wait while {gone:,} entries are folded", f"{lasted:.2f} s, {lasted / write:.0f} × a write")
        print(f"folded {gone} entries; writers waited {lasted:.2f} s, {lasted / write:.0f} x a write")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    clusters = parser.parse_args().clusters
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        grown = patched(home, clusters)
        before_and_after = whole(home / "fleet.db")
        print(f"a patch of {clusters} clusters adds {', '.join(f'{each:.1f}' for each in grown)} MB to the file;", end=" ")
        print(f"documents before and after alone are {before_and_after:.1f} MB, {max(grown) / before_and_after:.2f} of that")
        met = max(grown) <= BAR * clusters / CLUSTERS
        adds = ", ".join(f"{each:.1f}" for each in grown)
        tell(f"A patch of one value on {clusters:,} clusters, by the command line, adds to the file", f"{adds} MB")
        tell("The same documents before and after, as wholes", f"{before_and_after:.1f} MB")
        limit = f"≤ {BAR * clusters / CLUSTERS:g} MB"
        figures.bar(f"what a patch of {clusters:,} clusters adds to the file", f"{max(grown):.1f} MB", limit, met)
        print(f"bar {BAR:.0f} MB for {CLUSTERS} clusters: {'met' if met else 'MISSED'}")
        documents(home / "fleet.db")
        upkeep(home / "fleet.db")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
