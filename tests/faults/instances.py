"""Servers that break and come back at the same address, and how long it took until all was well again."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import live
from faults import load
from faults.load import Load, Target

NAME = "recovered"  # of the property of a test's report


class Instance:
    """One address, with a server that can be started again and again."""

    def __init__(self, directory: Path, name: str, overrides: Mapping[str, str], program: tuple[str, ...] = live.PROGRAM) -> None:
        self._directory = directory
        self._environment = live.environment(directory, **overrides)
        self._program = program
        self.server = live.Server(directory, self._environment, program)
        self.target = Target(name, self.server.address)

    def wait(self, path: str = "/ready") -> None:
        self.server.wait(path)

    def start(self) -> None:
        self.target.generation += 1
        self.server = live.Server(self._directory, self._environment, self._program)

    def kill(self) -> None:
        self.server.kill()

    @property
    def pid(self) -> int:
        return self.server.process.pid


@contextlib.contextmanager
def running(directory: Path, names: str, **overrides: str) -> Iterator[list[Instance]]:
    """Writers and readers by their names, such as "writer writer reader", on one store, which the first one makes."""
    found: list[Instance] = []
    try:
        for number, name in enumerate(names.split()):
            mode = {"API_MODE": "crud" if name == "writer" else "read-only"}
            found.append(Instance(directory, f"{name}-{number}", {**mode, **overrides}))
            if number == 0:
                found[0].wait()
        for instance in found:
            instance.wait()
        yield found
    finally:
        for instance in found:
            instance.server.end()


@contextlib.contextmanager
def loaded(instances: list[Instance], **more: Any) -> Iterator[Load]:
    """Clients poll all of them and write to those that take writes; when the block begins, all went well for a while."""
    writers = [each.target for each in instances if each.target.name.startswith("writer")]
    with Load([each.target for each in instances], writers, **more) as made:
        made.go_on()
        yield made


class Recovery:
    """What is printed at the end of a run: what broke, and how long it took from the end of the fault until all was well."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def note(self, what: str, seconds: float, times: int = 1) -> None:
        assert not math.isinf(seconds), f"{what}: not yet"
        self._properties.append((NAME, (what, seconds, times)))

    def until_well(self, made: Load, what: str, since: float | None = None) -> None:
        """Wait until polls and writes are good again; the fault has just ended, if nothing else is said."""
        began = time.monotonic() if since is None else since
        made.go_on()
        self.note(what, made.recovered(began))


@pytest.fixture
def recovery(request: pytest.FixtureRequest) -> Recovery:
    return Recovery(request.node.user_properties)


def table(reports: list[Any]) -> list[str]:
    """The lines of the table, from the reports of a run: of what happened several times, the longest."""
    longest: dict[str, tuple[float, int]] = {}
    for report in reports:
        for name, value in report.user_properties:
            if name == NAME:
                what, seconds, times = value
                before, count = longest.get(what, (0.0, 0))
                longest[what] = max(before, seconds), count + times
    width = max(map(len, longest), default=0)
    return [
        f"{what:<{width}}  {seconds:8.2f} s{f'  the longest of {count}' if count > 1 else ''}"
        for what, (seconds, count) in longest.items()
    ]


def assert_polls_go_on(made: Load) -> None:
    """Whatever became of the store, everybody gets an answer."""
    since = time.monotonic()
    made.until_polled(lambda _: True, 50)
    assert {poll.status for poll in made.polls[-500:] if poll.asked > since} == {200}


def agree(instances: list[Instance]) -> None:
    """Wait until every view is the same everywhere; nobody writes meanwhile."""
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(contextlib.closing(load.Client(each.target, live.READ))) for each in instances]

        def same() -> bool:
            return all(len({client.ask("GET", load.path_of(key)) for client in clients}) == 1 for key in load.KEYS)

        live.until(same)
