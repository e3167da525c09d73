"""Measures writes that reach a whole fleet: python bench/batch.py (two cores: one for the server, one for the rest).

A change in the catalog and the answers that it makes new, fetched by every cluster; then the same change, an assignment to every
cluster and a patch of every cluster, each by the command line as an operator types it, and such a patch as the one request that
it is, while polls go on: the longest wait of one is kept, and one that fails is counted. On fleets of 100, 1,000 and 10,000
clusters. What the command line takes for itself is to fetch the clusters, and to read and print the answer.

--before REV measures another commit as well, in turns, with the libraries of this environment; then the ratios count.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from bench import generated, poll, servers  # noqa: E402

SIZES = (100, 1_000, 10_000)
BAR = 10.0  # seconds for 10,000 clusters
LONGEST = 0.1  # seconds, for any poll, whatever is written
RATIOS = {"batch": 0.5, "fresh": 0.83, "packed": 0.79}  # of what it was before: bars for 10,000 clusters
PROGRAM = str(Path(sys.executable).parent / "flux-resourceset-cli")


class Polls:
    """What clusters do meanwhile: ask, one after the other, on new connections."""

    def __init__(self, port: int, clusters: int) -> None:
        self._port = port
        self._clusters = clusters
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.done, self.failed, self.slowest = 0, 0, 0.0

    def _poll(self) -> None:
        while not self._over.wait(0.005):
            path = f"/api/v2/flux/clusters/{generated.dns(self.done % self._clusters)}/platform-components"
            started = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {servers.READ}"})
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
    """Seconds, and polls."""

    fresh: float  # from a catalog change to the last of all new answers
    packed: float  # the same, with gzip
    catalog: float
    assign: float
    patch: float
    batch: float  # the same as one request
    fresh_cpu: float  # CPU time of the server for these
    packed_cpu: float
    patch_cpu: float  # and of the command line
    batch_cpu: float
    polls: float
    failed: float
    slowest: float


def run(environment: dict[str, str], *words: str) -> float:
    started = time.perf_counter()
    done = subprocess.run([PROGRAM, *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return time.perf_counter() - started


def measured(clusters: int, checkout: Path | None) -> Figures:
    everywhere = generated.EVERYWHERE
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with servers.ours(home, checkout, SEED_FILE="") as server:
            server.wait("/ready")
            environment = {
                "PATH": os.environ["PATH"], "HOME": folder, "FLUX_API_URL": f"http://127.0.0.1:{server.port}",
                "FLUX_API_TOKEN": servers.READ, "FLUX_API_WRITE_TOKEN": servers.WRITE,
                **({"PYTHONPATH": str(checkout / "src")} if checkout else {}),
            }  # fmt: skip
            (home / "fleet.json").write_bytes(generated.export(clusters))
            run(environment, "import", str(home / "fleet.json"), "--yes", "--timeout", "300")
            run(environment, "namespace", "create", "everywhere")
            for packed in (False, True):  # as in a fleet that was polled before
                poll.all_fresh(server, clusters, packed)
            cpu = [server.cpu_seconds()]
            fresh = poll.all_fresh(server, clusters, packed=False)
            cpu.append(server.cpu_seconds())
            packed_fresh = poll.all_fresh(server, clusters, packed=True)
            cpu.append(server.cpu_seconds())
            whole = ("--all", "--yes", "--timeout", "300")
            with Polls(server.port, clusters) as polls:
                catalog = run(environment, "component", "update", everywhere, "--oci-tag", "v2.0.0")
                assign = run(environment, "namespace", "assign", "everywhere", *whole)
                busy = server.cpu_seconds() + _children()
                patch = run(environment, "component", "patch", everywhere, "--set", "a=b", *whole)
                busy = server.cpu_seconds() + _children() - busy
                cpu.append(server.cpu_seconds())
                batch = patched(server.port, clusters)
                cpu.append(server.cpu_seconds())
            seconds = fresh, packed_fresh, catalog, assign, patch, batch
            return Figures(
                *seconds, cpu[1] - cpu[0], cpu[2] - cpu[1], busy, cpu[4] - cpu[3], polls.done, polls.failed, polls.slowest
            )


def patched(port: int, clusters: int) -> float:
    """Seconds for one request that patches every cluster."""
    ids = [generated.cluster_id(number) for number in range(clusters)]
    operation = {"op": "patch-values", "kind": "platform_components", "id": generated.EVERYWHERE, "values": {"a": "c"}}
    body = json.dumps({"operations": [{**operation, "clusters": ids}]})
    headers = {"Authorization": f"Bearer {servers.WRITE}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    started = time.perf_counter()
    connection.request("POST", "/batch", body, headers)
    answer = connection.getresponse()
    answer.read()
    seconds = time.perf_counter() - started
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"POST /batch: {answer.status}")
    return seconds


def _children() -> float:
    """CPU time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def checked_out(revision: str | None) -> Iterator[Path | None]:
    """Another commit, in a work tree of its own that goes afterwards."""
    if revision is None:
        yield None
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "before"
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), revision], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def summed_up(rounds: list[Figures]) -> Figures:
    """Medians, and of polls all that went wrong."""
    middle = Figures(*(statistics.median(figures) for figures in zip(*rounds, strict=True)))
    failed, slowest = sum(figures.failed for figures in rounds), max(figures.slowest for figures in rounds)
    return middle._replace(failed=failed, slowest=slowest)


TIMES = ("fresh", "packed", "catalog", "assign", "patch", "batch", "fresh_cpu", "packed_cpu", "patch_cpu", "batch_cpu")


def show(whose: str, clusters: int, figures: Figures) -> None:
    seconds = "".join(f"{getattr(figures, name):9.2f} s" for name in TIMES)
    polls = f"{figures.polls:.0f} ({figures.failed:.0f} failed, slowest {figures.slowest * 1000:.0f} ms)"
    print(f"{clusters:8}  {whose:6}{seconds}  {polls}", flush=True)


def compared(before: Figures, now: Figures, clusters: int) -> list[str]:
    """Time tells where nobody else uses the machine; CPU time tells a little less, and always. What the bars say of it."""
    ratios = {name: getattr(now, name) / max(getattr(before, name), 1e-9) for name in TIMES}
    print(f"{'':8}  {'ratio':6}" + "".join(f"{ratio:9.2f}  " for ratio in ratios.values()))
    return [
        f"{_said(ratios[name] <= bar)}  {name} of {clusters} clusters, share of before: "
        f"{ratios[name]:.2f}, {ratios[f'{name}_cpu']:.2f} by CPU time (bar: <= {bar})"
        for name, bar in RATIOS.items()
        if clusters == max(SIZES)
    ]


def _said(met: bool) -> str:
    return "met   " if met else "MISSED"


def series(sizes: list[int], rounds: int, before: Path | None) -> tuple[dict[int, Figures], list[str]]:
    """Of each size what was measured now, and what the bars say of the ratios; both, and their ratio, are shown."""
    found, told = {}, []
    for clusters in sizes:
        taken: dict[str, list[Figures]] = {"before": [], "now": []}
        for number in range(rounds):
            turns = [("now", None), *([("before", before)] if before else [])]
            for whose, checkout in turns if number % 2 else reversed(turns):
                taken[whose].append(measured(clusters, checkout))
        found[clusters] = summed_up(taken["now"])
        if before:
            show("before", clusters, summed_up(taken["before"]))
        show("now", clusters, found[clusters])
        if before:
            told += compared(summed_up(taken["before"]), found[clusters], clusters)
    return found, told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--before", metavar="REV", help="another commit, which takes turns with this one")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f}; fresh: until all have the answers of a new catalog, packed: with gzip")
    print(f"clusters  commit{''.join(f'{name:>11}' for name in TIMES)}  polls during catalog, assign and patch")
    with checked_out(options.before) as before:
        found, told = series(options.sizes, options.rounds, before)
    first, last = min(found), max(found)
    print(f"growth from {first} to {last} clusters, {last / first:.0f} x:", end="")
    for name in ("catalog", "assign", "patch", "batch"):
        print(f" {name} {getattr(found[last], name) / getattr(found[first], name):.1f} x", end="")
    slow = max(found[last].catalog, found[last].assign, found[last].patch)
    slowest = max(figures.slowest for figures in found.values())
    failed = sum(figures.failed for figures in found.values())
    told += [
        f"{_said(slow <= BAR)}  any of these by the command line, {last} clusters: {slow:.2f} s (bar: <= {BAR:.0f} s)",
        f"{_said(slowest <= LONGEST)}  longest wait of a poll meanwhile: {slowest * 1e3:.0f} ms (bar: <= {LONGEST * 1e3:.0f} ms)",
        f"{_said(not failed)}  failed polls: {failed:.0f} (bar: none)",
    ]
    print("\n\n" + "\n".join(told) + f"\nload average after: {os.getloadavg()[0]:.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
