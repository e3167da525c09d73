"""Measures how long the command line takes to start, against `python -c pass` in the same run: python bench/cli.py.

Three times: as in daily use, with a home in which nothing is cached yet, and with nothing in the environment at all. The
commands take turns with the anchor, because the machine may be shared; the figures are medians. A missed bar is told, and is
the exit code.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import live  # noqa: E402  # the same server that the tests start

BAR = 4.0  # times the start of Python itself
PROGRAM = str(Path(sys.executable).parent / "flux-resourceset-cli")
ANCHOR = "python -c pass"


def commands() -> dict[str, tuple[list[str], bool]]:
    """What is measured, and whether it has to meet the bar."""
    return {
        ANCHOR: ([sys.executable, "-c", "pass"], False),
        "--help": ([PROGRAM, "--help"], True),
        "version": ([PROGRAM, "version"], True),
        "component --help": ([PROGRAM, "component", "--help"], False),
        "component create --help": ([PROGRAM, "component", "create", "--help"], False),
        "cluster list": ([PROGRAM, "cluster", "list"], False),
        "namespace assign": ([PROGRAM, "namespace", "assign", "podinfo", "--cluster", "demo-cluster-01"], False),
    }


def seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def measured(rounds: int, names: list[str], environment: Callable[[], dict[str, str]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names:
            took = seconds(commands()[name][0], environment())
            if number:  # the first round warms the caches: the file system's, and that of the kinds
                found[name].append(took)
    return found


def cases(server: live.Server, folder: str) -> dict[str, tuple[list[str], Callable[[], dict[str, str]]]]:
    """Which commands are measured under which circumstances."""
    everything = list(commands())
    asking = {"FLUX_API_URL": server.url, "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE}

    def fresh() -> dict[str, str]:
        return {**asking, "HOME": tempfile.mkdtemp(dir=folder)}

    return {
        "a server, its kinds known": (everything, lambda: {**asking, "HOME": folder}),
        "a server, a fresh HOME": (everything, fresh),
        "an empty environment": ([name for name in everything if name == "version" or "--help" in name or name == ANCHOR], dict),
    }


def tell(found: dict[str, list[float]]) -> None:
    for name, took in found.items():
        # the ratio within a round: what slows the machine down slows both
        ratio = statistics.median(own / anchor for own, anchor in zip(took, found[ANCHOR], strict=True))
        barred = commands()[name][1]
        bar = f"   bar {BAR:.1f}: {'met' if ratio <= BAR else 'MISSED'}" if barred else ""
        print(f"  {name:26} {statistics.median(took) * 1000:7.1f} ms   {ratio:5.2f} x {ANCHOR}{bar}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory() as folder,
        live.serving(Path(folder), SEED_FILE=str(HERE.parent / "data" / "seed.json")) as server,
    ):
        for title, (names, environment) in cases(server, folder).items():
            print(f"{title}:")
            tell(measured(rounds, names, environment))


if __name__ == "__main__":
    main()
