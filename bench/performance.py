"""Runs the benchmarks and writes their figures into docs/performance.md: make performance, or with --only NAME … some of them.

What the page explains is written by hand. Figures stand between `<!-- figures: NAME -->` and `<!-- end of figures -->`; the name
is that of one of BENCHES, `machine` or `bars`. A benchmark hands them over by bench/figures.py; of one that does not, what it
prints is shown. One that fails, takes too long or is not here is told in its place.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bench import figures, machine  # noqa: E402

PAGE = ROOT / "docs" / "performance.md"
BUSY = 0.1  # share of the cores that others use before a benchmark, from which on they are told of


class Bench(NamedTuple):
    name: str
    words: str = ""  # its arguments
    minutes: float = 5.0  # it is ended after so long

    @property
    def file(self) -> Path:
        return ROOT / "bench" / f"{self.name}.py"

    @property
    def command(self) -> str:
        return f"bench/{self.name}.py {self.words}".strip()


BENCHES = (
    Bench("poll", "--rounds 5 --seconds 2", minutes=8),
    Bench("workers"),
    Bench("herd", minutes=8),
    Bench("steady"),
    Bench("growth", "--plot docs/growth.svg", minutes=20),
    Bench("batch", "--rounds 3 --before dd2e741", minutes=8),  # the last commit with SQLite alone
    Bench("stall"),
    Bench("plan"),
    Bench("apply"),
    Bench("history"),
    Bench("feed"),
    Bench("cli", "--rounds 21"),
    Bench("fleet", "--rounds 2", minutes=15),
)


# Running


class Result(NamedTuple):
    bench: Bench
    began: datetime.datetime
    others: float  # what they used of the machine before
    seconds: float
    status: int | str  # exit code, or why there is none
    lines: list[dict[str, Any]]  # what it handed over
    printed: str
    complaint: str  # the end of what it said to stderr

    @property
    def bars(self) -> list[dict[str, str]]:
        if not self.lines:
            return [_bar(match) for match in _PRINTED_BAR.finditer(self.printed)]
        return [line["bar"] for line in self.lines if "bar" in line]

    @property
    def failure(self) -> str:
        """Why its figures are missing or incomplete. A bar that is not held may be its exit code, and is no failure."""
        if isinstance(self.status, str):
            return self.status
        missed = any(bar[""] != figures.told(True) for bar in self.bars) or "MISSED" in self.printed
        if self.status == 0 or (self.status == 1 and missed):
            return ""
        last = self.complaint.strip().splitlines()[-1:] or ["it said nothing"]
        return f"it failed with exit code {self.status}: `{last[0][:300].replace('`', '')}`"


# as those print it that hand nothing over
_PRINTED_BAR = re.compile(r"^(met|MISSED) +(.+?): ((?:\d|not |two ).*) \(bar: (.+?)[;)].*$", re.MULTILINE)


def _bar(match: re.Match[str]) -> dict[str, str]:
    return {"What": match[2], "Measured": match[3], "Against": "", "Bar": match[4], "": figures.told(match[1] == "met")}


def run(bench: Bench) -> Result:
    began, others = datetime.datetime.now(datetime.UTC), machine.others_use()
    if not bench.file.exists():
        return Result(bench, began, others, 0.0, f"bench/{bench.name}.py is not here", [], "", "")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="figures-") as folder:
        handed, said = Path(folder) / "figures", Path(folder) / "stderr"
        handed.touch()
        with said.open("wb") as complaints:
            status, printed = _ran(bench, {**os.environ, figures.VARIABLE: str(handed)}, complaints)
        lines = [json.loads(line) for line in handed.read_text(encoding="utf-8").splitlines()]
        complaint = said.read_text(encoding="utf-8", errors="replace")
    return Result(bench, began, others, time.perf_counter() - started, status, lines, printed, complaint)


def _ran(bench: Bench, environment: dict[str, str], complaints: Any) -> tuple[int | str, str]:
    process = subprocess.Popen(
        [sys.executable, str(bench.file), *shlex.split(bench.words)], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
        stderr=complaints, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=60 * bench.minutes)
    except subprocess.TimeoutExpired:
        return f"it was ended after {bench.minutes:g} minutes", _ended(process)
    except BaseException:
        _ended(process)  # with us
        raise
    return process.returncode, printed


def _ended(process: subprocess.Popen[str]) -> str:
    """With all that it started; what it has printed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, number)
        try:
            return process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            continue
    return ""


# Showing


def table(rows: Sequence[dict[str, str]]) -> str:
    """Rows with the same columns; one that is empty throughout is left out."""
    head = [name for name in dict.fromkeys(name for row in rows for name in row) if any(row.get(name) for row in rows)]
    lines = [head, ["---"] * len(head), *([row.get(name, "") for name in head] for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines)


def caption(result: Result) -> str:
    busy = f"; **others used {result.others:.0%} of the machine** when it began" if result.others > BUSY else ""
    when = f"{result.began:%Y-%m-%d %H:%M} UTC, {result.seconds:.0f} s, {machine.short()}"
    return f"`{result.bench.command}`, {when}{busy}.\n"


def block(result: Result) -> str:
    parts = [caption(result)]
    if result.failure:
        parts.append(f"**Not measured, or not to the end:** {result.failure}.\n")
    tables: dict[str, list[dict[str, str]]] = {}
    for line in result.lines:
        if "table" in line:
            tables.setdefault(line["table"], []).append(line["cells"])
    parts += [f"{title}:\n\n{table(rows)}" for title, rows in tables.items()]
    parts += ["".join(f"- {line['note']}\n" for line in result.lines if "note" in line)]
    if result.lines and result.bars:
        parts.append(table(result.bars))
    if not result.lines and result.printed.strip():
        parts.append(f"```text\n{result.printed.strip()}\n```\n")
    return "\n".join(part for part in parts if part)


def put(page: str, name: str, content: str) -> str:
    """The page with a block of figures as it should be."""
    pattern = re.compile(rf"(<!-- figures: {re.escape(name)} -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    page, count = pattern.subn(lambda match: f"{match[1]}\n{content}\n{match[2]}", page)
    if count != 1:
        raise SystemExit(f"{PAGE.name} has {count} places for the figures of {name!r}, not one")
    return page


def summary(results: Sequence[Result]) -> str:
    """Every bar of a run, and what was not measured."""
    rows = [{"Benchmark": f"`{result.bench.name}`", **bar} for result in results for bar in result.bars]
    held = sum(row[""] == figures.told(True) for row in rows)
    failed = [f"`{result.bench.name}`" for result in results if result.failure]
    told = f"{held} of {len(rows)} bars were held."
    if failed:
        told += f" Not measured, or not to the end: {', '.join(failed)}."
    return f"{told}\n\n{table([row for row in rows if row[''] != figures.told(True)])}" if held < len(rows) else f"{told}\n"


# The command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[bench.name for bench in BENCHES], help="the others keep their figures")
    parser.add_argument("--page", type=Path, default=PAGE, help="another page than docs/performance.md")
    options = parser.parse_args()
    chosen = [bench for bench in BENCHES if not options.only or bench.name in options.only]
    page = options.page.read_text(encoding="utf-8")
    for bench in chosen:
        put(page, bench.name, "")  # what has no place is noticed before anything runs
    results = []
    for bench in chosen:
        print(f"{bench.command} …", flush=True)
        result = run(bench)
        results.append(result)
        print(f"  {result.seconds:.0f} s{f', {result.failure}' if result.failure else ''}", flush=True)
        page = put(page, bench.name, block(result))
        options.page.write_text(page, encoding="utf-8")  # one by one: what was measured is not lost
    page = put(page, "machine", machine.described())
    if not options.only:
        page = put(page, "bars", summary(results))
    options.page.write_text(page, encoding="utf-8")
    print(f"{options.page.name} written, after {sum(result.seconds for result in results):.0f} s")
    return 1 if any(result.failure for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
