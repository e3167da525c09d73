"""Whoever follows the log over several processes and connections: every change exactly once, in order."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import live
from api.streams import Followed
from processes.asking import Asking, once

pytestmark = pytest.mark.long

WRITERS, READERS = 4, 6


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[live.Server, live.Server]]:
    with live.serving(tmp_path) as first, live.serving(tmp_path) as second:
        yield first, second


def test_what_one_process_writes_reaches_those_who_follow_another(pair: tuple[live.Server, live.Server]) -> None:
    with (
        Followed(pair[0]).opened() as here,
        Followed(pair[1]).opened() as there,
        Asking(pair[0]) as ask,
        Asking(pair[1]) as other,
    ):
        for number in range(20):
            asked = ask if number % 2 else other
            assert asked("POST", "/namespaces", {"id": f"n{number}"})[0] == 201
        assert here.events(20) == there.events(20)
    with Followed(pair[0], "?since_revision=0") as later:
        assert [event.data for event in later.events(20)] == once(pair[1], "GET", "/changes?after=0")[1]


def test_whoever_comes_back_to_another_process_goes_on_where_it_was(pair: tuple[live.Server, live.Server]) -> None:
    place, seen = "", list[int]()
    with Asking(pair[0]) as ask, Followed(pair[0]) as first:
        assert first.block()
        place = first.place
        for number in range(10):
            assert ask("POST", "/namespaces", {"id": f"n{number}"})[0] == 201
            with Followed(pair[number % 2], "?since_revision=0" if not place else "", last=place) as followed:
                event = followed.events(1)[0]
                seen.append(event.revision)
                place = followed.place
    assert seen == list(range(1, 11))


def test_whoever_does_not_read_is_cut_off_and_loses_nothing(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, Asking(server) as ask:
        assert ask("POST", "/namespaces", {"id": "large"})[0] == 201
        with Followed(server, buffer=4096).opened() as slow, Followed(server).opened() as quick:
            count = 0

            def is_cut_off() -> bool:
                nonlocal count
                status, _ = ask("PATCH", "/namespaces/large", {"annotations": {"a": f"{count:0200000}"}})
                assert status == 200
                count += 1
                quick.events(1)
                return "flux_resourceset_streams 1.0" in metrics(server)

            live.until(is_cut_off)
            assert count < 60  # of 0.4 MB each: what the kernel holds, and four megabytes
            seen = []
            while event := slow.event():
                seen.append(event.revision)
        with Followed(server, last=slow.place) as again:
            seen += [event.revision for event in again.events(count - len(seen))]
        assert seen == list(range(2, count + 2))


def metrics(server: live.Server) -> str:
    with server.client() as api:
        return api.get("/metrics").text


class Reader:
    """Reads, goes away at random, in the midst of events too, and comes back to any of the servers."""

    def __init__(self, servers: tuple[live.Server, ...], seed: int) -> None:
        self._servers = servers
        self._random = random.Random(seed)
        self.seen: list[int] = []
        self.connections = 0
        self.resets = 0

    def read_until(self, last: int, stop: threading.Event) -> None:
        place = ""
        while (not self.seen or self.seen[-1] < last) and not stop.is_set():
            self.connections += 1
            query = "" if place else "?since_revision=0"
            with Followed(self._servers[self._random.randrange(len(self._servers))], query, place) as followed:
                for _ in range(self._random.randrange(1, 12)):
                    event = followed.event()
                    if event is None:
                        break
                    self.resets += event.name == "reset"
                    self.seen.append(event.revision)
                    if event.revision == last:
                        break
                if self._random.random() < 0.3 and self.seen and self.seen[-1] < last:
                    followed.response.read(self._random.randrange(1, 200))  # half an event, which is none
                place = followed.place if self._random.random() < 0.5 else self._as_seen(followed.place)

    def _as_seen(self, place: str) -> str:
        return f"{place.rpartition('-')[0]}-{self.seen[-1]}" if self.seen else place


@pytest.mark.parametrize("writes", [60, pytest.param(400, marks=pytest.mark.thorough)])
def test_readers_who_come_and_go_see_each_change_exactly_once_in_order(
    pair: tuple[live.Server, live.Server], writes: int
) -> None:
    def write(number: int) -> int:
        pause = random.Random(number)
        with Asking(pair[number % 2]) as ask:
            for n in range(writes):
                assert ask("POST", "/namespaces", {"id": f"w{number}-{n}"})[0] == 201
                time.sleep(pause.random() / 100)
        return writes

    stop = threading.Event()
    readers = [Reader(pair, seed) for seed in range(READERS)]
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        reading = [pool.submit(reader.read_until, WRITERS * writes, stop) for reader in readers]
        try:
            assert sum(pool.map(write, range(WRITERS))) == WRITERS * writes
            for each in reading:
                each.result(120)
        finally:
            stop.set()
    for reader in readers:
        assert reader.seen == list(range(1, WRITERS * writes + 1))
        assert reader.resets == 0
        assert reader.connections > 5


@pytest.mark.thorough
def test_what_nobody_reads_costs_no_memory(tmp_path: Path) -> None:
    from faults import crowds

    with live.serving(tmp_path) as server, Asking(server) as ask, contextlib.ExitStack() as stack:
        large = [
            {"op": "create", "kind": "namespaces", "id": f"n{n}", "document": {"annotations": {"a": "x" * 200_000}}}
            for n in range(100)
        ]
        assert ask("POST", "/batch", {"operations": large})[0] == 200  # an event of twenty megabytes
        before = crowds.resident(server)
        for _ in range(100):
            stack.enter_context(Followed(server, "?since_revision=0", buffer=4096).opened())
        with Followed(server).opened() as quick:
            assert ask("POST", "/namespaces", {"id": "small"})[0] == 201
            assert quick.events(1)[0].data["changes"][0]["id"] == "small"
        assert crowds.resident(server) - before < 400 * 2**20  # a hundred copies would be two gigabytes
