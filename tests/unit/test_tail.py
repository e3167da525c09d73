"""The end of the log: what is read once for all, what is kept of it, and what those get who are far behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from contract import folding
from flux_resourceset import errors, tail
from flux_resourceset.changes import Snapshot
from flux_resourceset.kinds import kind_files
from flux_resourceset.log_events import EVERYTHING, Filter
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.tail import Tail
from unit import samples
from unit.samples import namespace

KNOWN = kind_files.load()


class Log:
    """A log that is written, and its end."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.ledger = samples.ledger_of(KNOWN, self.store)
        self.tail = Tail(self.ledger.follower)
        self._count = 0

    def write(self, count: int = 1, each: int = 1, size: int = 1) -> None:
        for _ in range(count):
            documents = [namespace(f"n{self._count + n}", annotations={"a": "x" * size}) for n in range(each)]
            samples.create(self.ledger, "namespaces", *documents)
            self._count += each

    def fold(self, base: int) -> None:
        folding.fold(self.store, base)

    async def begun(self) -> Tail:
        self.tail.begin(await self.tail.meet())
        return self.tail

    async def read(self) -> list[int]:
        """To its end; the revisions that came."""
        before = self.tail.revision
        while True:
            end = self.tail.end
            await self.tail.advance()
            if self.tail.end == end:
                return [n for n in range(before + 1, self.tail.revision + 1) if self.tail.event(n)]


@pytest.fixture
def log() -> Log:
    made = Log()
    made.write(5)
    return made


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def test_what_comes_is_read_without_gaps_page_by_page(log: Log) -> None:
    async def test() -> None:
        end = await log.begun()
        assert await log.read() == []
        log.write(3 * tail.PAGE_ENTRIES)
        log.write(2, each=tail.PAGE_CHANGES + 1)
        assert await log.read() == list(range(6, 6 + 3 * tail.PAGE_ENTRIES + 2))
        found = [end.event(number) for number in range(6, end.revision + 1)]
        assert [event.revision for event in found if event] == list(range(6, end.revision + 1))
        assert end.event(5) is None
        assert end.event(end.revision + 1) is None

    run(test)


def test_no_more_is_kept_than_may_wait_and_the_newest(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "KEPT_BYTES", 5000)

    async def test() -> None:
        end = await log.begun()
        log.write(20, size=1000)
        kept = await log.read()
        assert kept == list(range(end.revision - len(kept) + 1, end.revision + 1))
        assert 3 <= len(kept) <= 5
        assert not end.is_heavy or len(kept) > 1
        log.write(size=100_000)
        assert (await log.read())[-1] == end.revision
        assert end.is_heavy
        end.forget()
        assert not end.is_heavy
        log.write()
        assert await log.read() == [end.revision]

    run(test)


def test_the_past_comes_in_pages_and_narrowed(log: Log) -> None:
    async def test() -> None:
        end = await log.begun()
        log.write(2 * tail.PAGE_ENTRIES)
        log.write(2, size=200_000)
        await log.read()
        seen: list[int] = []
        after = 0
        while after < end.revision:
            page = await end.past(end.epoch, after, EVERYTHING)
            assert page is not None
            assert sum(event.size for event in page.events[:-1]) <= tail.PAGE_BYTES
            seen += [event.revision for event in page.events]
            after = page.end
            end.give_back(page)
        assert seen == list(range(1, end.revision + 1))
        narrowed = await end.past(end.epoch, 0, Filter(id="n3"))
        assert narrowed is not None
        assert [event.revision for event in narrowed.events] == [4]
        nothing = await end.past(end.epoch, 4, Filter(id="n3"))
        assert nothing is not None
        assert (nothing.events, nothing.end) == ([], end.revision)

    run(test)


def test_what_was_folded_away_or_is_another_log_has_no_page(log: Log) -> None:
    async def test() -> None:
        end = await log.begun()
        log.fold(3)
        assert [await end.reaches_back_to(revision) for revision in (0, 2, 3, 4)] == [False, False, True, True]
        assert await end.past(end.epoch, 2, EVERYTHING) is None
        assert await end.past("another", 3, EVERYTHING) is None
        page = await end.past(end.epoch, 3, EVERYTHING)
        assert page is not None
        assert [event.revision for event in page.events] == [4, 5]

    run(test)


def test_whoever_reads_the_past_waits_until_there_is_room(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "ROOM_BYTES", 1000)

    async def test() -> None:
        end = await log.begun()
        held = await end.past(end.epoch, 0, EVERYTHING)
        assert end.is_crowded
        waiting = [asyncio.ensure_future(end.past(end.epoch, 0, EVERYTHING)) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
        waiting[0].cancel()
        for task in waiting[1:]:
            end.give_back(held)
            held = await task
            assert held is not None
        end.give_back(held)
        assert not end.is_crowded

    run(test)


def test_a_log_that_does_not_go_on_begins_anew(log: Log) -> None:
    async def test() -> None:
        end = await log.begun()
        log.write(2)
        assert await log.read() == [6, 7]
        beginnings, epoch = end.beginnings, end.epoch
        log.ledger.restore(lambda state: (Snapshot("another", 0, {}, ()), []), samples.nothing_planned)
        await end.advance()
        assert (end.beginnings, end.event(7)) == (beginnings + 1, None)
        assert end.epoch != epoch
        log.write()
        assert await log.read() == [end.revision]

    run(test)


def test_entries_that_were_folded_before_they_were_read_are_a_new_beginning(log: Log) -> None:
    async def test() -> None:
        end = await log.begun()
        log.write(3)
        log.fold(7)
        beginnings = end.beginnings
        await end.advance()
        assert (end.beginnings, end.revision) == (beginnings + 1, 8)

    run(test)


def test_doubt_is_told(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        end = await log.begun()

        def broken(*_: object) -> Any:
            raise errors.Doubt("the disk is on fire")

        log.write()
        monkeypatch.setattr(log.store, "find", broken)
        with pytest.raises(errors.Doubt):
            await end.advance()

    run(test)
