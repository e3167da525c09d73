"""Measures writes that reach a whole fleet, while it is polled: python bench/batch.py.

A change in the catalog and an assignment to every cluster, each by the command line as an operator types it, on fleets of
100, 1,000 and 10,000 clusters. Meanwhile polls go on, and one that fails is counted.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import generated  # noqa: E402

import live  # noqa: E402  # the same server that the tests start

SIZES = (100, 1_000, 10_000)
BAR = 10.0  # seconds for 10,000 clusters
PROGRAM = str(Path(sys.executable).parent / "flux-resourceset-cli")


class Polls:
    """What clusters do meanwhile: ask, one after the other, on new connections."""

    def __init__(self, server: live.Server, clusters: int) -> None:
        self._server = server
        self._clusters = clusters
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.done, self.failed, self.slowest = 0, 0, 0.0

    def _poll(self) -> None:
        while not self._over.wait(0.005):
            path = f"/api/v2/flux/clusters/{generated.dns(self.done % self._clusters)}/platform-components"
            started = time.perf_counter()
            connection = http.client.HTTPConnection(*self._server.address, timeout=60)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {live.READ}"})
                answer = connection.getresponse()
                good = answer.status == 200 and bool(answer.read())
            except (OSError, http.client.HTTPException):
                good = False
            finally:
                connection.close()
            self.done += 1
            self.failed += not good
            self.slowest = max(self.slowest, time.perf_counter() - started)

    def __enter__(self) -> Polls:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Figures(NamedTuple):
    clusters: int
    catalog: float
    assign: float
    patch: float
    polls: Polls


def run(environment: dict[str, str], *words: str) -> float:
    started = time.perf_counter()
    done = subprocess.run([PROGRAM, *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return time.perf_counter() - started


def measured(clusters: int) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with live.serving(home, SEED_FILE="") as server:
            environment = {
                "PATH": os.environ["PATH"], "HOME": folder, "FLUX_API_URL": server.url,
                "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE,
            }  # fmt: skip
            (home / "fleet.json").write_bytes(generated.export(clusters))
            run(environment, "import", str(home / "fleet.json"), "--yes", "--timeout", "300")
            run(environment, "namespace", "create", "everywhere")
            with Polls(server, clusters) as polls:
                return Figures(
                    clusters,
                    run(environment, "component", "update", generated.EVERYWHERE, "--oci-tag", "v2.0.0"),
                    run(environment, "namespace", "assign", "everywhere", "--all", "--yes", "--timeout", "300"),
                    run(
                        environment,
                        "component",
                        "patch",
                        generated.EVERYWHERE,
                        "--all",
                        "--yes",
                        "--set",
                        "a=b",
                        "--timeout",
                        "300",
                    ),
                    polls,
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().sizes
    series = []
    print("clusters   catalog change   assign to all   patch all   polls meanwhile")
    for clusters in sizes:
        figures = measured(clusters)
        series.append(figures)
        polls = f"{figures.polls.done} ({figures.polls.failed} failed, slowest {figures.polls.slowest:.2f} s)"
        print(f"{clusters:8}   {figures.catalog:12.2f} s   {figures.assign:11.2f} s   {figures.patch:7.2f} s   {polls}")
    first, last = series[0], series[-1]
    print(f"growth from {first.clusters} to {last.clusters} clusters, {last.clusters / first.clusters:.0f} x:", end="")
    for name in ("catalog", "assign", "patch"):
        print(f" {name} {getattr(last, name) / getattr(first, name):.1f} x", end="")
    slow = max(last.catalog, last.assign, last.patch)
    failed = sum(figures.polls.failed for figures in series)
    print(f"\nbar {BAR:.0f} s for {last.clusters} clusters: {'met' if slow <= BAR else 'MISSED'} ({slow:.2f} s)", end="")
    print(f"; no failed poll: {'met' if not failed else f'MISSED ({failed})'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
