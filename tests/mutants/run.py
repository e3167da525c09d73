"""Plants one fault after the other in copies of the project, and tells which of them no test notices.

    python -m mutants.run [--all] [--only TEXT] [--list]

There are tools for this (mutmut, cosmic-ray); they know Python only, not templates, and change what the test process
imports, not what the servers run that the tests start.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutants import explained, known, subjects
from mutants.fault import Fault
from mutants.subjects import ROOT, Subject

COPIED = ("src", "tests", "deploy", "data", "examples", "openapi", "docs", "pyproject.toml", "demo.py")
WORKERS = 2  # as many as the cores of the smallest machine that runs this
SECONDS = 120.0  # for one stage of tests; what takes longer hangs, and that is noticed too
PASSED, NO_TESTS, NO_TIME = 0, 5, -1  # codes of pytest, and of the worker
WAYS = ("noticed", "endless", "not noticed", "explained")  # what becomes of a fault; one without an end is noticed too


class Outcome(NamedTuple):
    fault: Fault
    how: str  # one of WAYS
    seconds: float = 0.0


class Copy:
    """The project in a directory of its own, with an interpreter that runs this copy, and so do all that tests start."""

    def __init__(self, directory: Path) -> None:
        self.root = directory
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, directory / name)
        self._make_interpreter()
        python = directory / ".venv" / "bin" / "python"
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
        self._process = subprocess.Popen(
            [str(python), "tests/mutants/worker.py"],
            cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _make_interpreter(self) -> None:
        place = self.root / ".venv"
        venv.create(place, symlinks=True)
        (packages,) = place.glob("lib/python*/site-packages")
        others = [path for path in sys.path if path.endswith("site-packages")]
        (packages / "copy.pth").write_text("\n".join([str(self.root / "src"), *others]) + "\n")
        for program, module in (("flux-resourceset", "server"), ("flux-resourceset-cli", "cli")):
            script = place / "bin" / program
            script.write_text(f"#!{place}/bin/python\nimport sys\nfrom flux_resourceset.{module} import main\nsys.exit(main())\n")
            script.chmod(0o755)

    def write(self, path: str, text: str) -> None:
        written = [self.root / path]
        if path.startswith(subjects.VIEWS):
            written.append(self.root / (subjects.BUNDLE + path.removeprefix(subjects.VIEWS)))
        for file in written:
            file.write_text(text, encoding="utf-8")
            for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
                compiled.unlink()  # it would be taken for fresh if the size and the second are the same

    def run(self, tests: Iterable[str]) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"tests": list(tests), "seconds": SECONDS}), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if answer["code"] == NO_TESTS:
            raise AssertionError(f"there are no tests in {' '.join(tests)}")
        return answer["code"], answer["output"]

    def close(self) -> None:
        self._process.communicate()


def plan(everything: bool, only: str) -> list[tuple[Subject, Fault]]:
    """Raises Stale when the list of known faults does not fit the code."""
    by_path = {subject.path: subject for subject in subjects.SUBJECTS}
    found = [(by_path[each.path], known.planted(each, ROOT)) for each in known.KNOWN]
    for subject in subjects.SUBJECTS:
        found += [(subject, fault) for fault in (subjects.possible if everything else subjects.chosen)(subject)]
    return [(subject, fault) for subject, fault in found if only in fault.said]


def carried_out(work: list[tuple[Subject, Fault]]) -> list[Outcome]:
    """What became of each; those that are explained are not planted."""
    planted = [(subject, fault) for subject, fault in work if fault.said not in explained.EXPLAINED]
    stages = list(dict.fromkeys(stage for subject, _ in planted for stage in subject.tests))
    copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        for number in range(WORKERS):
            copy = Copy(Path(scratch, str(number)))
            stack.callback(copy.close)
            copies.put(copy)
        pool = stack.enter_context(ThreadPoolExecutor(WORKERS))
        list(pool.map(functools.partial(check_soundness, copies), stages))
        found = list(pool.map(functools.partial(outcome, copies), planted))
    return found + [Outcome(fault, "explained") for _, fault in work if fault.said in explained.EXPLAINED]


def check_soundness(copies: queue.SimpleQueue[Copy], stage: tuple[str, ...]) -> None:
    """Without a fault everything passes; otherwise every fault would seem to be noticed."""
    copy = copies.get()
    code, output = copy.run(stage)
    copies.put(copy)
    if code != PASSED:
        raise AssertionError(f"{' '.join(stage)} does not pass without any fault:\n{output}")


def outcome(copies: queue.SimpleQueue[Copy], work: tuple[Subject, Fault]) -> Outcome:
    subject, fault = work
    started = time.monotonic()
    copy = copies.get()
    copy.write(fault.path, fault.planted)
    codes = (copy.run(stage)[0] for stage in subject.tests)
    code = next((code for code in codes if code != PASSED), PASSED)
    copy.write(fault.path, fault.text)
    copies.put(copy)
    how = {PASSED: "not noticed", NO_TIME: "endless"}.get(code, "noticed")
    if how != "noticed":
        print(f"{how}: {fault.said}", flush=True)
    return Outcome(fault, how, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--all", action="store_true", help="plant every fault that can be made, not only the chosen ones")
    parser.add_argument("--only", default="", help="those whose name contains this text")
    parser.add_argument("--list", action="store_true", help="name them, and plant nothing")
    parser.add_argument("--slowest", type=int, default=0, help="show this many that took longest")
    options = parser.parse_args()
    started = time.monotonic()
    work = plan(options.all, options.only)
    if options.list:
        print("\n".join(fault.said for _, fault in work))
        return 0
    found = carried_out(work)
    if options.slowest:
        for each in sorted(found, key=lambda each: -each.seconds)[: options.slowest]:
            print(f"{each.seconds:.0f} s: {each.fault.said}")
    count = {how: sum(each.how == how for each in found) for how in WAYS}
    told = ", ".join(f"{number} {how}" for how, number in count.items())
    print(f"{len(found)} planted faults in {time.monotonic() - started:.0f} s: {told}")
    return 1 if count["not noticed"] else 0


if __name__ == "__main__":
    sys.exit(main())
