"""Measures polls against nginx, and what a fleet costs in memory and time: python bench/poll.py (Linux, two cores).

The server under test has one core, the load has the other, and the two servers take turns. Ratios are medians over
the rounds that nobody disturbed, because the machine may be shared. A missed bar is printed, and is no failure.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # so that it can be started as a file

from bench import generated, load  # noqa: E402
from bench.servers import LOAD_CORE, READ, WRITE, Process, environment, headers, nginx, ours, pinned  # noqa: E402

CONNECTIONS = 64
POLLED = 1000  # clusters whose components the load asks for, in turn, from both servers
VIEWS = ("platform-components", "namespaces", "rolebindings")
FULL = 0.8  # share of a core; when neither server nor load used as much, others used the machine

T = TypeVar("T")


class Bar(NamedTuple):
    name: str
    limit: str
    value: str
    met: bool


class Run(NamedTuple):
    rate: float
    p50: float
    p99: float
    cost: float  # CPU seconds of the server per request
    server_busy: float
    load_busy: float

    @property
    def undisturbed(self) -> bool:
        return max(self.server_busy, self.load_busy) >= FULL


class Scenario(NamedTuple):
    name: str
    bar: float  # share of nginx, by requests; where our own load generator asks, by CPU time as well
    keep_alive: bool = False
    by_wrk: bool = False  # which is faster than load.py, but cannot do as Flux does: close by itself
    packed: bool = False
    more: str = ""  # header lines
    tokens: int = 1  # different ones, in turn


# As an ingress adds them; an id is a new one for each request.
PROXY = f"""\
X-Request-Id: {load.NUMBER.decode()}
X-Real-IP: 10.244.3.17
X-Forwarded-For: 10.244.3.17
X-Forwarded-Host: api.example.com
X-Forwarded-Port: 443
X-Forwarded-Proto: https
X-Forwarded-Scheme: https
Forwarded: for=10.244.3.17;host=api.example.com;proto=https
Via: 1.1 ingress
traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
X-Envoy-Expected-Rq-Timeout-Ms: 15000
""".replace("\n", "\r\n")

SCENARIOS = (
    Scenario("keep-alive", 1.0, keep_alive=True, by_wrk=True),
    Scenario("keep-alive, gzip", 1.0, keep_alive=True, by_wrk=True, packed=True),
    Scenario("new connections", 0.9),
    Scenario("new connections, gzip", 0.9, packed=True),
    Scenario("behind a proxy", 0.7, more=PROXY),
    Scenario("10,000 tokens", 0.8, tokens=10_000),
    Scenario("Connection: close", 0.8, by_wrk=True, more="Connection: close\r\n"),
)

FEW = VIEWS[2]  # a view of three inputs; one of them is asked for by itself, and the view as well
ONE_INPUT = (
    Scenario("one input, keep-alive", 0.9, keep_alive=True, by_wrk=True),
    Scenario("one input, new connections, gzip", 0.9, packed=True),
)


# Load


def dns(number: int) -> str:
    return f"cluster-{number:05}.k8s.example.com"


def path(number: int, view: str) -> str:
    return f"/api/v2/flux/clusters/{dns(number)}/{view}"


def polled(clusters: int) -> list[str]:
    return [path(number, VIEWS[0]) for number in range(min(clusters, POLLED))]


def raw(request_path: str, packed: bool, more: str = "", token: str = READ) -> str:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers(packed, token).items())
    return f"GET {request_path} HTTP/1.1\r\n{lines}{more}\r\n"


def secret(number: int) -> str:
    return f"{number:032}"


def write_tokens(home: Path, clusters: int) -> Path:
    """One for each cluster, bound to it, as a fleet has them; the load asks for the clusters in turn."""
    file = home / "tokens"
    polled = min(clusters, POLLED)
    most = max(scenario.tokens for scenario in SCENARIOS)
    file.write_text("".join(f"t{number} read {secret(number)} {dns(number % polled)}\n" for number in range(most)))
    file.chmod(0o600)
    return file


def loaded(port: int, requests: list[str], **order: Any) -> Any:
    """What our own load generator says."""
    whole = {"connections": CONNECTIONS, "keep_alive": False, "seconds": 0, "write": "", "marker": "", **order}
    done = subprocess.run(
        [sys.executable, str(HERE / "load.py")],
        input=json.dumps({"port": port, "requests": requests, **whole}),
        stdout=subprocess.PIPE, text=True, check=True, preexec_fn=pinned(LOAD_CORE),
    )  # fmt: skip
    return json.loads(done.stdout)


def wrk(program: str, port: int, paths: list[str], scenario: Scenario, seconds: float, home: Path) -> Any:
    (home / "paths").write_text("".join(f"{each}\n" for each in paths))
    command = [program, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", str(HERE / "poll.lua")]
    for line in [*(f"{name}: {value}" for name, value in headers(scenario.packed).items()), *scenario.more.splitlines()]:
        command += ["-H", line]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{port}", "--", str(home / "paths")],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=pinned(LOAD_CORE),
    )
    report = json.loads(done.stdout.strip().splitlines()[-1])
    if report["errors"]:
        raise SystemExit(f"wrk met errors:\n{done.stdout}")
    return report


def measured(server: Process, scenario: Scenario, paths: list[str], seconds: float, home: Path) -> Run:
    program = shutil.which("wrk")
    busy, spent, began = server.cpu_seconds(), _children(), time.perf_counter()
    if scenario.by_wrk and program:
        report = wrk(program, server.port, paths, scenario, seconds, home)
    else:
        requests = [raw(each, scenario.packed, scenario.more) for each in paths]
        if scenario.tokens > 1:
            known = range(scenario.tokens)
            requests = [raw(paths[number % len(paths)], scenario.packed, token=secret(number)) for number in known]
        report = loaded(server.port, requests, seconds=seconds, keep_alive=scenario.keep_alive)
    busy, spent, wall = server.cpu_seconds() - busy, _children() - spent, time.perf_counter() - began
    return Run(
        rate=report["requests"] / report["seconds"],
        p50=report["p50"],
        p99=report["p99"],
        cost=busy / report["requests"],
        server_busy=busy / report["seconds"],
        load_busy=spent / wall,
    )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Measurements


def repeated(measure: Callable[[], tuple[T, bool]], rounds: int) -> tuple[list[T], str]:
    """The rounds that others did not disturb, and a note; disturbed ones are made again, whatever their result was."""
    every: list[T] = []
    quiet: list[T] = []
    while len(quiet) < rounds and len(every) < 3 * rounds:
        result, undisturbed = measure()
        every.append(result)
        if undisturbed:
            quiet.append(result)
    if len(quiet) >= min(3, rounds):
        return quiet, f"{len(quiet)} of {len(every)} rounds"
    return every, "DISTURBED: others used the machine, so repeat it when that is quiet"


def against_nginx(server: Process, before: Process | None, options: argparse.Namespace, home: Path) -> list[Bar]:
    for number in range(min(options.clusters, POLLED)):
        file = home / f"www{path(number, VIEWS[0])}"
        file.parent.mkdir(parents=True)
        for each in filter(None, (before, server)):  # which both prepare their answers, in the same order
            body, packed = (each.get(path(number, VIEWS[0]), packed=wanted)[1] for wanted in (False, True))
        file.write_bytes(body)
        file.with_name(file.name + ".gz").write_bytes(packed)
    print(f"\nPolls of {len(body)} bytes, {len(gzip.compress(body, 1))} packed; {CONNECTIONS} connections; "
          f"{options.rounds} rounds of {options.seconds:g} s; medians")  # fmt: skip
    print(f"{'':33}{'':7}{'req/s':>8}{'p50 ms':>8}{'p99 ms':>8}{'µs CPU':>8}{'server':>8}{'load':>6}")
    with nginx(home) as anchor:
        if anchor is None:
            print("nginx is not on this system: no ratios")
        else:
            anchor.wait(path(0, VIEWS[0]))
        named = {name: process for name, process in (("ours", server), ("before", before), ("nginx", anchor)) if process}
        return [bar for scenario in SCENARIOS for bar in _compared(named, scenario, options, home)]


def _compared(servers: dict[str, Process], scenario: Scenario, options: argparse.Namespace, home: Path) -> list[Bar]:
    rounds = itertools.count()

    def each() -> tuple[dict[str, Run], bool]:
        first = next(rounds) % len(servers)  # whoever comes behind nginx is slower by up to a tenth, so all of them do in turn
        order = [*servers][first:] + [*servers][:first]
        runs = {name: measured(servers[name], scenario, polled(options.clusters), options.seconds, home) for name in order}
        return runs, all(run.undisturbed for run in runs.values())

    used, note = repeated(each, options.rounds)
    _print_medians(used, scenario)
    if "nginx" not in servers:
        return [Bar(f"{scenario.name}, share of nginx", f">= {scenario.bar}", "not measured", False)]
    return [_share(used, name, scenario, note) for name in servers if name != "nginx"]


def _print_medians(used: list[dict[str, Run]], scenario: Scenario) -> None:
    for name in used[0]:
        medians = Run(*map(statistics.median, zip(*(runs[name] for runs in used), strict=True)))
        print(
            f"{scenario.name:33}{name:7}{medians.rate:8.0f}{medians.p50 * 1e3:8.2f}{medians.p99 * 1e3:8.2f}"
            f"{medians.cost * 1e6:8.1f}{medians.server_busy:8.0%}{medians.load_busy:6.0%}"
        )


def one_by_one(server: Process, options: argparse.Namespace, home: Path) -> list[Bar]:
    """Single inputs, and the view that they are in, in turns."""
    numbers = range(min(options.clusters, POLLED))
    paths = {"view": [path(number, FEW) for number in numbers]}
    paths["input"] = [f"{path(number, FEW)}/{generated.rolebinding(number)}" for number in numbers]
    bars = []
    for scenario in ONE_INPUT:
        rounds = itertools.count()

        def each(scenario: Scenario = scenario, rounds: Iterator[int] = rounds) -> tuple[dict[str, Run], bool]:
            order = ("view", "input") if next(rounds) % 2 else ("input", "view")
            runs = {name: measured(server, scenario, paths[name], options.seconds, home) for name in order}
            return runs, all(run.undisturbed for run in runs.values())

        used, note = repeated(each, options.rounds)
        _print_medians(used, scenario)
        ratio = statistics.median(runs["input"].rate / runs["view"].rate for runs in used)
        by_cost = statistics.median(runs["view"].cost / runs["input"].cost for runs in used)
        value = f"{ratio:.2f} by requests, {by_cost:.2f} by CPU time; {note}"
        bars.append(Bar(f"{scenario.name}, share of its view", f">= {scenario.bar}", value, ratio >= scenario.bar))
    return bars


def _share(used: list[dict[str, Run]], name: str, scenario: Scenario, note: str) -> Bar:
    ratio = statistics.median(runs[name].rate / runs["nginx"].rate for runs in used)
    # where the load was the limit, its rate says little: then the CPU time of the server tells who is faster
    by_cost = statistics.median(runs["nginx"].cost / runs[name].cost for runs in used)
    value = f"{ratio:.2f} by requests, {by_cost:.2f} by CPU time; {note}"
    whose = ", before" if name == "before" else ""
    met = (ratio if scenario.by_wrk else min(ratio, by_cost)) >= scenario.bar
    return Bar(f"{scenario.name}{whose}, share of nginx", f">= {scenario.bar}", value, met)


def unloaded(server: Process, clusters: int) -> None:
    requests = [raw(path(number, VIEWS[0]), True) for number in range(min(clusters, POLLED))]
    report = loaded(server.port, requests, seconds=1, connections=1)
    print(f"\nOne poll at a time, each on a new connection: p50 {report['p50'] * 1e3:.2f} ms, p99 {report['p99'] * 1e3:.2f} ms")


def demo_memory(home: Path) -> Bar:
    seed = HERE.parent / "data" / "seed.json"
    home.mkdir()
    with ours(home, SEED_FILE=str(seed)) as server:
        server.wait("/ready")
        cluster = json.loads(seed.read_bytes())["clusters"][0]["cluster_dns"]
        for view in VIEWS:
            for packed in (False, True):
                assert server.get(f"/api/v2/flux/clusters/{cluster}/{view}", packed)[0] == 200
        resident = server.resident()
    return Bar("resident memory with the demo data", "<= 64 MiB", f"{resident / 2**20:.0f} MiB", resident <= 64 * 2**20)


def restart(home: Path, rounds: int) -> Bar:
    def once() -> tuple[float, bool]:
        with ours(home) as server:
            seconds = server.wait("/ready")
            return seconds, server.cpu_seconds() >= FULL * seconds

    return _timed("restart to ready", *repeated(once, rounds))


def _timed(name: str, times: list[float], note: str) -> Bar:
    median = statistics.median(times)
    return Bar(name, "<= 2 s", f"{median:.2f} s ({min(times):.2f} to {max(times):.2f}; {note})", median <= 2)


def prepared_memory(server: Process, clusters: int) -> Bar:
    sizes = [server.resident()]
    for packed in (True, False):
        requests = [raw(path(number, view), packed) for number in range(clusters) for view in VIEWS]
        assert loaded(server.port, requests, marker="inputs")["fresh"] == len(requests)
        sizes.append(server.resident())
    started, as_flux, both = (size / 1e6 for size in sizes)
    value = f"{both:.0f} MB in both forms; {as_flux:.0f} MB packed only, as Flux asks; {started:.0f} MB after the start"
    return Bar(f"resident memory with {3 * clusters} answers", "<= 250 MB", value, both <= 250)


def after_a_write(server: Process, clusters: int, packed: bool, rounds: int) -> Bar:
    """From the catalog write to the last cluster's new answer, each fetched over a connection of its own."""

    def once() -> tuple[float, bool]:
        busy = server.cpu_seconds()
        seconds = all_fresh(server, clusters, packed)
        return seconds, server.cpu_seconds() - busy >= FULL * seconds

    return _timed(f"catalog write to {clusters} fresh answers{', gzip' if packed else ''}", *repeated(once, rounds))


def all_fresh(server: Process, clusters: int, packed: bool) -> float:
    """Seconds from a catalog write to the last cluster's new answer."""
    requests, tag = [raw(path(number, VIEWS[0]), packed) for number in range(clusters)], f"v9-{time.time_ns()}"
    report = loaded(server.port, requests, write=_catalog_write(tag), marker=tag)
    if report["fresh"] != clusters:
        raise SystemExit(f"only {report['fresh']} of {clusters} answers were fresh")
    seconds: float = report["seconds"]
    return seconds


def _catalog_write(tag: str) -> str:
    change = json.dumps({"oci_tag": tag})
    return (
        f"PATCH /platform_components/component-00 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {WRITE}\r\n"
        f"Content-Type: application/merge-patch+json\r\nContent-Length: {len(change)}\r\n\r\n{change}"
    )


def imported(home: Path, checkout: Path | None = None) -> None:
    command = [sys.executable, "-m", "flux_resourceset.server", "import", "fleet.json"]
    subprocess.run(command, cwd=home, env=environment(0, home, checkout), check=True)


@contextlib.contextmanager
def older(home: Path, checkout: Path | None, **more: str) -> Iterator[Process | None]:
    """The server of another checkout, with the same fleet in a database of its own."""
    if checkout is None:
        yield None
        return
    place = home / "before"
    place.mkdir()
    shutil.copy(home / "fleet.json", place)
    imported(place, checkout)
    with ours(place, checkout, **more) as server:
        server.wait("/ready")
        yield server


def alone(home: Path, options: argparse.Namespace) -> list[Bar]:
    """What needs no anchor."""
    bars = [demo_memory(home / "demo"), restart(home, options.rounds)]
    with ours(home) as server:
        server.wait("/ready")
        bars.append(prepared_memory(server, options.clusters))
        bars += [after_a_write(server, options.clusters, packed, options.rounds) for packed in (False, True)]
        unloaded(server, options.clusters)
    return bars


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run in a round")
    parser.add_argument("--polls", action="store_true", help="measure nothing but polls, against nginx")
    parser.add_argument(
        "--before", type=Path, metavar="DIR", help="a checkout of an older state, whose polls take turns with ours"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # by way of every `finally`, so that no server stays behind
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("two cores are needed: one for the server, one for the load")
    print(f"{options.clusters} clusters; load average before: {os.getloadavg()[0]:.1f}; "
          f"keep-alive and close by {'wrk' if shutil.which('wrk') else 'load.py (wrk is not on this system)'}")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        subprocess.run([sys.executable, str(HERE / "generated.py"), str(options.clusters), "fleet.json"], cwd=home, check=True)
        imported(home)
        bars = [] if options.polls else alone(home, options)
        known = {"TOKENS_FILE": str(write_tokens(home, options.clusters))}
        with (
            ours(home, None, **known) as server,
            older(home, options.before, **known) as before,
        ):  # both new, for a fair comparison
            server.wait("/ready")
            bars += against_nginx(server, before, options, home)
            bars += one_by_one(server, options, home)
    print()
    for bar in bars:
        print(f"{'met   ' if bar.met else 'MISSED'}  {bar.name}: {bar.value} (bar: {bar.limit})")
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
