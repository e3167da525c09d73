"""A follower of a store that lags: what is answered from memory, until when, and how it goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from flux_resourceset import drafts, errors, follower
from flux_resourceset.changes import Snapshot
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.lagging import LaggingFollower
from flux_resourceset.ledger import Ledger
from flux_resourceset.readings import Readings
from flux_resourceset.store import Store
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.lagging_store import AWAY, LaggingStore
from unit.samples import ORIGIN, cluster, namespace

KNOWN = kind_files.load()
NAMESPACES = KNOWN.referenced_by_name["namespaces"]
KEY = b"c0.example.com/namespaces"


def assign(id: str, name: str) -> Callable[[drafts.Draft], Any]:
    return lambda draft: draft.assign(id, NAMESPACES, name, {})


class Fleet:
    """A writer beside the database, and a process that follows it from afar."""

    def __init__(self, **options: Any) -> None:
        self.database = MemoryStore()
        self.writer = samples.ledger_of(KNOWN, self.database)
        samples.create(self.writer, "namespaces", *(namespace(f"n{number}") for number in range(5)))
        samples.create(self.writer, CLUSTERS, cluster("c0"), cluster("c1"))
        self.store = LaggingStore(self.database)
        self.follower = LaggingFollower(KNOWN, self.opened, **options)
        self.ledger = Ledger(self.follower)
        self.is_away_at_the_start = False

    def opened(self) -> Store:
        if self.is_away_at_the_start:
            raise errors.Unreachable(AWAY)
        made: Any = self.store
        return made  # type: ignore[no-any-return]  # it does what a store does

    def write(self, work: Callable[[drafts.Draft], Any]) -> None:
        samples.write(self.writer, work)

    def answer(self) -> bytes:
        self.follower.look()
        return self.follower.fleet.answer(KEY)

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110  # it is about the state of others, who tell nobody
            await asyncio.sleep(0.001)

    async def until_at(self, revision: int) -> None:
        await self.until(lambda: self.follower.fleet.revision == revision)


def run(test: Callable[[Fleet], Coroutine[Any, Any, None]], fleet: Fleet | None = None, *, started: bool = True) -> None:
    made = fleet or Fleet()

    async def bounded() -> None:
        if started:
            made.follower.refresh()
        made.follower.begin()
        try:
            await asyncio.wait_for(test(made), 30)
        finally:
            made.store.may_be_read.set()

    asyncio.run(bounded())
    made.follower.close()


def names(answer: bytes) -> list[bytes]:
    return [name for name in (b"n0", b"n1", b"n2", b"n3", b"n4") if b'"id":"%b"' % name in answer]


# What is written


def test_what_another_process_writes_is_answered_once_the_store_tells() -> None:
    async def test(fleet: Fleet) -> None:
        assert names(fleet.answer()) == []
        fleet.write(assign("c0", "n1"))
        assert names(fleet.answer()) == []  # without waiting, or raising Late
        fleet.store.tell()
        await fleet.until_at(3)
        assert names(fleet.answer()) == [b"n1"]
        assert fleet.follower.lag() == 0

    run(test)


def test_its_own_writes_are_in_its_next_answer() -> None:
    async def test(fleet: Fleet) -> None:
        for number in range(3):
            fleet.write(assign("c1", f"n{number}"))  # others go on, and nobody has told so
            await fleet.ledger.write(assign("c0", f"n{number}"), ORIGIN)
            assert len(names(fleet.answer())) == number + 1
            assert fleet.follower.fleet.head == fleet.database.head()

    run(test)


def test_nobody_waits_while_the_log_is_read() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.store.may_be_read.clear()
        fleet.write(assign("c0", "n1"))
        fleet.store.tell()
        for _ in range(3):
            assert names(fleet.answer()) == []
            assert names(await fleet.follower.wait_for_answer(KEY, False)) == []
            assert (await fleet.follower.fresh()).revision == 2
            await asyncio.sleep(0.01)
        assert fleet.follower.lag() > 0
        fleet.store.may_be_read.set()
        await fleet.until_at(3)
        assert names(fleet.answer()) == [b"n1"]

    run(test)


def test_many_changes_are_taken_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "FEW_CHANGES", 1)
    released, made = threading.Event(), follower._successor

    def held(*arguments: Any) -> Any:
        assert released.wait(30)
        return made(*arguments)

    monkeypatch.setattr(follower, "_successor", held)

    async def test(fleet: Fleet) -> None:
        before = fleet.answer()
        fleet.write(lambda draft: [assign(id, "n1")(draft) for id in ("c0", "c1")])
        fleet.store.tell()
        for _ in range(5):
            assert fleet.answer() is before
            await asyncio.sleep(0.01)
        released.set()
        await fleet.until_at(3)
        assert names(fleet.answer()) == [b"n1"]

    run(test)


def test_what_was_read_for_another_head_is_not_taken() -> None:
    """A write of this process is faster than the reading of what came before: that goes on from there, not from what was read."""

    async def test(fleet: Fleet) -> None:
        fleet.store.may_be_read.clear()
        fleet.write(assign("c1", "n1"))
        fleet.store.tell()
        await asyncio.sleep(0.01)  # its thread hangs
        await fleet.ledger.write(assign("c0", "n1"), ORIGIN)
        assert fleet.follower.fleet.revision == 4
        fleet.store.may_be_read.set()
        fleet.write(assign("c0", "n2"))
        fleet.store.tell()
        await fleet.until_at(5)
        assert names(fleet.answer()) == [b"n1", b"n2"]
        assert fleet.follower.fleet.documents == fleet.writer.fleet.documents

    run(test)


# While the database is away


def test_the_last_good_state_is_served_while_the_database_is_away() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.store.leave(seconds_ago=3600)
        before = fleet.follower.fleet.revision
        fleet.write(assign("c0", "n1"))
        await asyncio.sleep(0.05)
        assert names(fleet.answer()) == []
        assert (await Readings(fleet.follower).documents("namespaces", lambda _: True)).revision == before
        assert not fleet.follower.is_reachable()
        assert fleet.follower.age() >= 3600
        with pytest.raises(errors.Unreachable):
            await fleet.ledger.write(assign("c0", "n2"), ORIGIN)
        with pytest.raises(errors.Unreachable):
            await Readings(fleet.follower).entry(1)
        fleet.store.come_back()
        await fleet.until_at(3)
        assert names(fleet.answer()) == [b"n1"]
        assert fleet.follower.is_reachable()
        assert fleet.follower.age() < 3600

    run(test)


def test_max_staleness_is_the_limit() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.store.leave(seconds_ago=59)
        assert names(fleet.answer()) == []
        fleet.store.leave(seconds_ago=61)
        for asked in (fleet.follower.wait_for_answer(KEY, False), fleet.follower.fresh(), fleet.follower.catch_up()):
            with pytest.raises(errors.Stale, match="61 seconds, and MAX_STALENESS is 60"):
                await asked
        with pytest.raises(errors.Stale):
            fleet.answer()
        fleet.store.come_back()
        assert names(fleet.answer()) == []

    run(test, Fleet(max_staleness=60))


def test_without_any_state_nothing_is_answered_until_the_database_is_there() -> None:
    """Neither that there are no clusters, nor that one has nothing."""

    async def test(fleet: Fleet) -> None:
        for _ in range(3):
            with pytest.raises(errors.Unreachable, match=AWAY):
                await fleet.follower.wait_for_answer(KEY, False)
            with pytest.raises(errors.Unavailable):
                await fleet.follower.fresh()
            await asyncio.sleep(0.01)
        fleet.is_away_at_the_start = False
        await fleet.until_at(2)
        assert names(fleet.answer()) == []

    fleet = Fleet()
    fleet.is_away_at_the_start = True
    run(test, fleet, started=False)


# Doubt


def forked(fleet: Fleet, *, opened: str = "") -> None:
    """The database becomes one that was restored from before the last entry, and was written to since."""
    older = MemoryStore()
    older._epoch = fleet.database.epoch()
    again = samples.ledger_of(KNOWN, older)
    for entry in fleet.database.log[:-1]:
        with older.begin() as transaction:
            transaction.commit(entry)
    older._views, older._opened = fleet.database._views, opened or fleet.database._opened
    again.follower.refresh()
    samples.write(again, assign("c0", "n4"))
    samples.write(again, assign("c0", "n3"))
    fleet.store.database = older


def test_a_log_that_forked_is_in_doubt_and_no_entry_goes_on_an_old_base() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.write(assign("c0", "n1"))
        fleet.store.tell()
        await fleet.until_at(3)
        fleet.store.leave()
        forked(fleet)
        fleet.store.come_back()
        await fleet.until(lambda: fleet.follower._look_again)
        with pytest.raises(errors.Doubt, match="does not go on from revision 3"):
            fleet.answer()
        assert fleet.follower.fleet.revision == 3
        with pytest.raises(errors.Doubt):
            await fleet.ledger.write(assign("c0", "n2"), ORIGIN)
        fleet.store.leave()  # which is no reason to trust what is in memory
        await asyncio.sleep(0.05)
        with pytest.raises(errors.Doubt):
            fleet.answer()
        fleet.store.database._opened = "2999-01-01T00:00:00.000000Z"  # a writer was started, and says that it is meant
        fleet.store.come_back()
        await fleet.until_at(4)
        await fleet.until(lambda: not fleet.follower._look_again)
        assert names(fleet.answer()) == [b"n3", b"n4"]

    run(test)


def test_nothing_is_answered_while_an_older_state_is_loaded() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.write(assign("c0", "n1"))
        fleet.store.tell()
        await fleet.until_at(3)
        released, snapshot = threading.Event(), fleet.database.snapshot

        def held() -> Snapshot:
            assert released.wait(30)
            return fleet.store.database.__class__.snapshot(fleet.store.database)

        forked(fleet, opened="2999-01-01T00:00:00.000000Z")
        fleet.store.database.snapshot = held  # type: ignore[method-assign]
        fleet.store.tell()
        await fleet.until(lambda: fleet.follower._look_again)
        with pytest.raises(errors.Doubt, match="read anew"):
            fleet.answer()
        released.set()
        await fleet.until_at(4)
        assert snapshot().revision == 3
        await fleet.until(lambda: not fleet.follower._look_again)
        assert names(fleet.answer()) == [b"n3", b"n4"]

    run(test)


def test_an_import_that_replaces_everything_is_followed() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.writer.restore(lambda state: (Snapshot("another", 0, {}, ()), []), samples.nothing_planned)
        fleet.store.tell()
        await fleet.until(lambda: fleet.follower.fleet.epoch == "another")
        with pytest.raises(errors.NotFound):
            fleet.answer()

    run(test)


def test_another_store_in_its_place_is_doubt() -> None:
    async def test(fleet: Fleet) -> None:
        fleet.store.database = MemoryStore()
        fleet.store.tell()
        await fleet.until(lambda: fleet.follower._look_again)
        with pytest.raises(errors.Doubt, match=r"(another one now|does not go on)"):
            fleet.answer()
        assert fleet.follower.fleet.revision == 2

    run(test)


def test_a_defect_ends_neither_the_following_nor_the_truth(caplog: pytest.LogCaptureFixture) -> None:
    async def test(fleet: Fleet) -> None:
        follow = fleet.database.follow

        def broken(known: Any) -> Any:
            raise RuntimeError("a defect")

        fleet.database.follow = broken  # type: ignore[method-assign]
        fleet.database._opened = "x"
        fleet.store.tell()
        await fleet.until(lambda: fleet.follower._look_again)
        with pytest.raises(errors.Doubt, match="the log of the server says why"):
            fleet.answer()
        fleet.database.follow = follow  # type: ignore[method-assign]
        await fleet.until(lambda: not fleet.follower._look_again)
        assert names(fleet.answer()) == []

    run(test)
    assert "a defect" in caplog.text
