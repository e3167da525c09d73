"""Measures how long the command line takes to start, against `python -c pass` in the same run: python bench/cli.py.

Three times: as in daily use, with a home in which nothing is cached yet, and with nothing in the environment at all. The
commands take turns with the anchor, because the machine may be shared; the figures are medians. A missed bar is told, and is
the exit code.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]

from bench import figures  # noqa: E402

import live  # noqa: E402  # the same server that the tests start

BAR = 6.0  # times the start of Python itself: what people type all day, and every press of the tab key, has to feel immediate
PROGRAM = str(Path(sys.executable).parent / "flux-resourceset-cli")
ANCHOR = "python -c pass"


class Measured(NamedTuple):
    words: Sequence[str]
    barred: bool = False  # whether it has to meet the bar
    asks: bool = False  # whether it needs a server


COMMANDS = {
    "--help": Measured(["--help"], barred=True),
    "version": Measured(["version"], barred=True),
    "cluster list": Measured(["cluster", "list"], barred=True, asks=True),
    "completing a word": Measured(["__complete", "clu"], barred=True),
    "completing an id": Measured(["__complete", "cluster", "get", ""], barred=True, asks=True),
    "component --help": Measured(["component", "--help"]),
    "component create --help": Measured(["component", "create", "--help"]),
    "namespace assign": Measured(["namespace", "assign", "podinfo", "--cluster", "demo-cluster-01"], asks=True),
}


class Time(NamedTuple):
    """What a command took, in seconds."""

    wall: float
    cpu: float


def timed(command: Sequence[str], environment: Mapping[str, str]) -> Time:
    started, used = time.perf_counter(), _cpu_of_children()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return Time(time.perf_counter() - started, _cpu_of_children() - used)


def _cpu_of_children() -> float:
    """Of those that have ended: the server is none of them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(
    rounds: int, commands: Mapping[str, Sequence[str]], environment: Callable[[str], Mapping[str, str]]
) -> dict[str, list[Time]]:
    """The commands and the anchor, in turns; `environment` is asked for that of a command, by its name."""
    taking_turns = {ANCHOR: [sys.executable, "-c", "pass"], **commands}
    times: dict[str, list[Time]] = {name: [] for name in taking_turns}
    for number in range(rounds + 1):
        for name, command in taking_turns.items():
            took = timed(command, environment(name))
            if number:  # the first round warms the caches: the file system's, and that of the kinds
                times[name].append(took)
    return times


def asking(server: live.Server, home: str) -> dict[str, str]:
    return {"FLUX_API_URL": server.url, "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE, "HOME": home}


def cases(server: live.Server, folder: str) -> dict[str, tuple[list[str], Callable[[str], dict[str, str]]]]:
    """Which commands are measured under which circumstances."""
    return {
        "a server, its kinds known": (list(COMMANDS), lambda _: asking(server, folder)),
        "a server, a fresh HOME": (list(COMMANDS), lambda _: asking(server, tempfile.mkdtemp(dir=folder))),
        "an empty environment": ([name for name, command in COMMANDS.items() if not command.asks], lambda _: {}),
    }


def tell(title: str, times: dict[str, list[Time]]) -> bool:
    """Print the figures; whether every bar was met."""
    met = True
    for name, took in times.items():
        # the ratio within a round: what slows the machine down slows both
        ratio = statistics.median(own.wall / anchor.wall for own, anchor in zip(took, times[ANCHOR], strict=True))
        bar = ""
        if name in COMMANDS and COMMANDS[name].barred:
            bar = f"   bar {BAR:.1f}: {'met' if ratio <= BAR else 'MISSED'}"
            met = met and ratio <= BAR
            figures.bar(f"`{name}`, {title}", f"{ratio:.2f} ×", f"≤ {BAR:g} ×", ratio <= BAR, anchor=f"`{ANCHOR}`")
        print(f"  {name:26} {statistics.median(own.wall for own in took) * 1000:7.1f} ms   {ratio:5.2f} x {ANCHOR}{bar}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory() as folder,
        live.serving(Path(folder), SEED_FILE=str(HERE.parent / "data" / "seed.json")) as server,
    ):
        met = True
        for title, (names, environment) in cases(server, folder).items():
            print(f"{title}:")
            commands = {name: [PROGRAM, *COMMANDS[name].words] for name in names}
            met = tell(title, measured(rounds, commands, environment)) and met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
