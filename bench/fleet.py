"""Measures the commands of `fleet` on repositories of 100 to 10,000 tenants, as processes: python bench/fleet.py.

Each size is a fleet of its own, made from the sample of `fleet init`: three environments, a hundred tenants in a cluster. The
anchor is the smallest fleet of the same run: how `lint` and `render` grow, what a change of one tenant costs in a fleet that
is a hundred times as large, and how much memory they take. Then what a poll of one input, which is how a tenant asks the API,
costs beside the poll of its view.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, poll, servers  # noqa: E402

SIZES = (100, 1_000, 10_000)
ENVIRONMENTS = ("dev", "staging", "prod")
PER_CLUSTER = 100  # tenants
TENANT = "payment-app"


class Cost(NamedTuple):
    seconds: float  # CPU, with the git processes that it starts
    megabytes: float  # at most, of one process


class Fleet:
    """Both repositories, with as many tenants."""

    def __init__(self, folder: Path, tenants: int) -> None:
        self._folder = folder
        self.run("fleet", "init", str(folder))
        self.root = folder / "acme-fleet-config"
        each = tenants // len(ENVIRONMENTS)
        for environment in ENVIRONMENTS:
            first = self.root / environment / f"{environment}-use1-01"
            for number in range(each):
                cluster = first.with_name(f"{environment}-use1-{number // PER_CLUSTER + 1:02}")
                if not cluster.exists():
                    _copy(first, cluster, first.name, cluster.name, without="tenants")
                if number:
                    _copy(
                        first / "tenants" / TENANT,
                        cluster / "tenants" / f"app-{number:05}",
                        "payment",
                        f"app{number:05}",
                        first.name,
                        cluster.name,
                        TENANT,
                        f"app-{number:05}",
                    )
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "tenants")

    def _git(self, *words: str) -> None:
        subprocess.run(
            ["git", "-C", str(self.root), "-c", "user.name=bench", "-c", "user.email=bench@example.com", *words], check=True
        )

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Cost:
        """A command as a process of its own; what it prints goes nowhere."""
        command = [sys.executable, "-m", "flux_resourceset.cli", *words]
        with open(os.devnull, "wb") as nowhere:
            process = subprocess.Popen(command, cwd=self._folder if words[1] == "init" else self.root, stdout=nowhere)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
        return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)

    def change_one(self) -> None:
        self.run("fleet", "set", TENANT, "--environment", "dev", "--cluster", "dev-use1-01", "--set-json", "replicas=3")


def _copy(source: Path, target: Path, *words: str, without: str = "") -> None:
    """A directory with other names in its files."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(without) if without else None)
    for file in target.rglob("*.yaml"):
        text = file.read_text()
        for old, new in sorted(zip(words[::2], words[1::2], strict=True), key=lambda pair: -len(pair[0])):
            text = text.replace(old, new)
        file.write_text(text)


def measured(fleet: Fleet, rounds: int) -> dict[str, Cost]:
    def best(*words: str, codes: tuple[int, ...] = (0,)) -> Cost:
        runs = [fleet.run(*words, codes=codes) for _ in range(rounds)]
        return Cost(statistics.median(run.seconds for run in runs), max(run.megabytes for run in runs))

    costs = {"lint": best("fleet", "lint"), "render": best("fleet", "render", "-o", "json", "--engine", "builtin")}
    fleet.change_one()
    costs["diff of one tenant"] = best("fleet", "diff", "--engine", "builtin", codes=(1,))
    costs["promote one tenant"] = best("fleet", "promote", TENANT, "--to", "staging", "--dry-run")
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="TENANTS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clusters", type=int, default=1_000, help="of the server whose polls are measured; 0: none are")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run of polls")
    options = parser.parse_args()
    costs: dict[int, dict[str, Cost]] = {}
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            costs[size] = measured(Fleet(Path(folder), size), options.rounds)
        for name, cost in costs[size].items():
            print(f"{size:6} tenants  {name:20} {cost.seconds:8.2f} s CPU  {cost.megabytes:6.0f} MB", flush=True)
            figures.row(
                "fleet", {"Tenants": size, "Command": name, "CPU": f"{cost.seconds:.2f} s", "Memory": f"{cost.megabytes:.0f} MB"}
            )
    judge(costs)
    if options.clusters:
        judge_polls(options)


def judge_polls(options: argparse.Namespace) -> None:
    """One input against its view, on a server with a generated fleet."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        generator = ROOT / "bench" / "generated.py"
        subprocess.run([sys.executable, str(generator), str(options.clusters), "fleet.json"], cwd=home, check=True)
        poll.imported(home)
        with servers.ours(home, None, TOKENS_FILE=str(poll.write_tokens(home, options.clusters))) as server:
            server.wait("/ready")
            for bar in poll.one_by_one(server, options, home):
                figures.verdict(bar.name, bar.value, bar.limit, bar.met, anchor="the poll of its view")


def judge(costs: dict[int, dict[str, Cost]]) -> None:
    first, *_, last = costs
    if first == last:
        return
    start = costs[first]["promote one tenant"].seconds  # what every command takes before it has read a tenant, about
    for name in ("lint", "render"):
        small, large = (max(costs[size][name].seconds - start, 0.001) for size in (first, last))
        exponent = math.log(large / small) / math.log(last / first)
        figures.verdict(f"growth of {name}", f"{exponent:.2f}", "exponent ≤ 1.15", exponent <= 1.15, anchor=f"{first} tenants")
        middle = sorted(costs)[-2]
        ratio = costs[last][name].megabytes / costs[middle][name].megabytes
        figures.verdict(f"memory of {name}", f"{ratio:.2f} ×", "≤ 2 ×", ratio <= 2, anchor=f"{middle} tenants", ratio=ratio)
    for name in ("diff of one tenant", "promote one tenant"):
        ratio = costs[last][name].seconds / costs[first][name].seconds
        figures.verdict(name, f"{ratio:.2f} ×", "≤ 5 ×", ratio <= 5, anchor=f"{first} tenants", ratio=ratio)


if __name__ == "__main__":
    main()
