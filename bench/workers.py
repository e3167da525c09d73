"""Measures what several workers cost and bring: python bench/workers.py (Linux, two cores; four for the throughput).

One server with one worker and one with two serve the same fleet and take turns, under the same load. On two cores all workers
share the one of the server, so the CPU time per poll tells what it costs that there are two of them. Where four cores are there,
each worker has one and so has each of two load generators, and the polls per second tell what the second worker brings.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # so that it can be started as a file

from bench.servers import LOAD_CORE, SERVER_CORE, Process, environment, headers, ours  # noqa: E402

VIEW = "platform-components"
CONNECTIONS = 64  # for each worker: what a turn of its loop costs is shared by those who wait, so there must be as many of them
WORKERS = (1, 2)
FULL = 0.8  # share of the cores; when neither server nor load used as much, others used the machine
COST_BAR, RATE_BAR = 1.1, 1.7


class Run(NamedTuple):
    rate: float
    cost: float  # CPU seconds of the server per poll
    undisturbed: bool


class Cores(NamedTuple):
    server: list[int]
    load: list[int]


def cores() -> Cores:
    known = sorted(os.sched_getaffinity(0))
    if len(known) < 2:
        raise SystemExit("two cores are needed: one for the server, one for the load")
    return Cores(known[:2], known[2:4]) if len(known) >= 4 else Cores([known[SERVER_CORE]], [known[LOAD_CORE]])


def requests(clusters: int) -> list[str]:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers(packed=True).items())
    path = "/api/v2/flux/clusters/cluster-{:05}.k8s.example.com/" + VIEW
    return [f"GET {path.format(number)} HTTP/1.1\r\n{lines}\r\n" for number in range(clusters)]


@contextlib.contextmanager
def serving(home: Path, workers: int, on: list[int]) -> Iterator[Process]:
    with ours(home, WORKERS=str(workers)) as server:
        server.wait("/ready")
        while server.log.read_text().count('"listening"') < workers:
            if server.process.poll() is not None:
                raise SystemExit(f"the server did not start:\n{server.log.read_text()}")
        for pid in server.pids():
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), on)
        yield server


def measured(server: Process, workers: int, asked: list[str], keep_alive: bool, seconds: float, given: Cores) -> Run:
    order = {
        "port": server.port, "requests": asked, "connections": CONNECTIONS * workers // len(given.load), "keep_alive": keep_alive,
        "seconds": seconds, "write": "", "marker": "",
    }  # fmt: skip
    before, before_load = server.cpu_seconds(), os.times()
    loads = [
        subprocess.Popen(
            ["taskset", "-c", str(core), sys.executable, str(HERE / "load.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for core in given.load
    ]  # fmt: skip
    for load in loads:
        assert load.stdin is not None
        load.stdin.write(json.dumps(order))
        load.stdin.close()
    reports = []
    for load in loads:
        assert load.stdout is not None
        reports.append(json.loads(load.stdout.read()))
        load.stdout.close()
        load.wait()
    used, used_load = server.cpu_seconds() - before, os.times()
    spent = used_load.children_user + used_load.children_system - before_load.children_user - before_load.children_system
    polls = sum(report["requests"] for report in reports)
    busy = max(used / seconds / len(given.server), spent / seconds / len(given.load))
    return Run(sum(report["requests"] / report["seconds"] for report in reports), used / polls, busy >= FULL)


def compared(servers: dict[int, Process], asked: list[str], keep_alive: bool, options: argparse.Namespace, given: Cores) -> str:
    """Rounds in which each has its turn; those that others disturbed are made again, whatever their result was."""
    quiet: list[dict[int, Run]] = []
    every: list[dict[int, Run]] = []
    while len(quiet) < options.rounds and len(every) < 3 * options.rounds:
        order = WORKERS if len(every) % 2 else WORKERS[::-1]
        every.append({count: measured(servers[count], count, asked, keep_alive, options.seconds, given) for count in order})
        if all(run.undisturbed for run in every[-1].values()):
            quiet.append(every[-1])
    used, note = quiet, f"{len(quiet)} of {len(every)} rounds"
    if len(quiet) < min(3, options.rounds):
        used, note = every, "DISTURBED: others used the machine, so repeat it when that is quiet"
    name = "keep-alive" if keep_alive else "new connections"
    for count in WORKERS:
        rate, cost = (statistics.median(getattr(runs[count], what) for runs in used) for what in ("rate", "cost"))
        print(f"{name:18}{count:9}{rate:10.0f}{cost * 1e6:8.1f}")
    cost = statistics.median(runs[2].cost / runs[1].cost for runs in used)
    if len(given.server) == 1:
        met = cost <= COST_BAR
        return f"{said(met)}  {name}: two workers take {cost:.2f} of the CPU time per poll of one (bar: <= {COST_BAR}; {note})"
    rate = statistics.median(runs[2].rate / runs[1].rate for runs in used)
    met = rate >= RATE_BAR
    return f"{said(met)}  {name}: two workers answer {rate:.2f} of the polls of one (bar: >= {RATE_BAR}; {note})"


def said(met: bool) -> str:
    return "met   " if met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run in a round")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # by way of every `finally`, so that no server stays behind
    given, asked = cores(), requests(options.clusters)
    print(f"{options.clusters} clusters; {len(given.server)} cores for the servers, {len(given.load)} for the load; "
          f"load average before: {os.getloadavg()[0]:.1f}")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-") as directory, contextlib.ExitStack() as stack:
        home = Path(directory)
        subprocess.run([sys.executable, str(HERE / "generated.py"), str(options.clusters), "fleet.json"], cwd=home, check=True)
        command = [sys.executable, "-m", "flux_resourceset.server", "import", "fleet.json"]
        subprocess.run(command, cwd=home, env=environment(0, home), check=True)
        servers = {count: stack.enter_context(serving(home, count, given.server)) for count in WORKERS}
        for count, server in servers.items():  # so that every worker has prepared its answers
            measured(server, count, asked, True, 2.0, given)
        print(f"{'':18}{'workers':>9}{'polls/s':>10}{'µs CPU':>8}")
        told = [compared(servers, asked, keep_alive, options, given) for keep_alive in (True, False)]
    print()
    print("\n".join(told))
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
