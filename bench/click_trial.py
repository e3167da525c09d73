"""Measures our command line and a prototype on click 8 against `python -c pass` in the same run: python bench/click_trial.py.

All take turns, because the machine may be shared. A figure is the median of the ratios within the rounds of a run; the least and
the most of all runs are printed, and in how many of them it was above the bar of bench/cli.py. docs/why.md says what came of it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from bench import cli  # noqa: E402

import live  # noqa: E402  # the same server that the tests start

PROTOTYPE = [sys.executable, "-c", "from click_prototype import run; run()"]
# what has to be in the answer of each
TRIED = {
    "--help": "Usage: flux-resourceset-cli",
    "completing a word": "cluster",
    "completing an id": "demo-cluster-01",
    "cluster list": '"demo-cluster-01"',
}


class Started(NamedTuple):
    command: Sequence[str]
    environment: Mapping[str, str] = MappingProxyType({})


def on_click(words: Sequence[str]) -> Started:
    """What ours does for these words; click takes an unfinished command line from the environment."""
    if words[0] != "__complete":
        return Started([*PROTOTYPE, *words])
    line = {"COMP_WORDS": " ".join(["flux-resourceset-cli", *words[1:]]), "COMP_CWORD": str(len(words) - 1)}
    return Started(PROTOTYPE, {"_FLUX_RESOURCESET_CLI_COMPLETE": "bash_complete", **line})


def started() -> dict[str, Started]:
    every = {"import click": Started([sys.executable, "-c", "import click"])}
    for name in TRIED:
        words = cli.COMMANDS[name].words
        every |= {f"click: {name}": on_click(words), f"ours: {name}": Started([cli.PROGRAM, *words])}
    return every


def check(every: dict[str, Started], environment: dict[str, str]) -> None:
    """So that nothing is measured that only fails quickly."""
    for name, (command, own) in every.items():
        done = subprocess.run(command, env={**environment, **own}, capture_output=True, text=True, check=True)
        assert TRIED.get(name.partition(": ")[2], "") in done.stdout, (name, done)


def shown(ratios: list[float]) -> str:
    above = sum(ratio > cli.BAR for ratio in ratios)
    return f"{min(ratios):4.1f} to {max(ratios):4.1f}" + (f", above {cli.BAR:.0f} in {above}" if above else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    every = started()
    ratios: dict[str, list[cli.Time]] = {name: [] for name in every}
    print(f"{options.runs} runs of {options.rounds} rounds; load average before: {os.getloadavg()[0]:.1f}")
    with (
        tempfile.TemporaryDirectory() as folder,
        live.serving(Path(folder), SEED_FILE=str(HERE.parent / "data" / "seed.json")) as server,
    ):
        environment = {**cli.asking(server, folder), "PYTHONPATH": str(HERE)}
        check(every, environment)
        for _ in range(options.runs):
            commands = {name: each.command for name, each in every.items()}
            times = cli.measured(
                options.rounds, commands, lambda name: {**environment, **(every[name].environment if name in every else {})}
            )
            for name in every:
                pairs = list(zip(times[name], times[cli.ANCHOR], strict=True))
                wall = statistics.median(own.wall / anchor.wall for own, anchor in pairs)
                ratios[name].append(cli.Time(wall, statistics.median(own.cpu / anchor.cpu for own, anchor in pairs)))
    print(f"{'times ' + cli.ANCHOR:28}{'CPU time':28}wall time")
    for name, of_runs in ratios.items():
        print(f"{name:28}{shown([each.cpu for each in of_runs]):28}{shown([each.wall for each in of_runs])}")
    print(f"load average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
