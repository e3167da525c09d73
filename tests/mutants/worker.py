"""Runs tests in a copy of the project, each time in a fork: what all of them import of others is loaded once.

Started by run.py in the copy, with the copy's own interpreter. Reads one JSON object a line, `{"tests", "seconds"}`, and
answers `{"code", "output"}`; the code is pytest's, or -1 when the time was over.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time

import pytest

LOADED = ("httpx", "hypothesis.stateful", "jsonschema_rs", "msgspec", "starlette.routing", "uvicorn", "yaml")  # they take long

MAX_MEMORY = 4 * 1024**3  # of a test process or a server: a fault may grow without an end
OPTIONS = (
    "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist", "-m", "not thorough",
    "--hypothesis-seed=0", "-W", "ignore::pytest.PytestAssertRewriteWarning",
    "-k", "not postgres",  # their SQL is the same, and a file of SQLite is there at once
)  # fmt: skip


def run(tests: list[str], seconds: float) -> dict[str, object]:
    output = os.path.abspath("output")
    child = os.fork()
    if child == 0:
        _become(output, tests)
    code = _waited(child, time.monotonic() + seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # servers that a test left behind
    with open(output, encoding="utf-8", errors="replace") as file:
        return {"code": code, "output": file.read()[-4000:]}


def _become(output: str, tests: list[str]) -> None:
    os.setsid()
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    os._exit(int(pytest.main([*OPTIONS, "--basetemp", "temporary", *tests])))


def _waited(child: int, deadline: float) -> int:
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


if __name__ == "__main__":
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)
