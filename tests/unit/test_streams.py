"""One stream of events: comments, and who is let go when; by a clock that the test turns, without a network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flux_resourceset import errors, log_events, tail
from flux_resourceset.changes import Change, Entry, Head
from flux_resourceset.follower import Follower
from flux_resourceset.http.ordinary import TRANSPORT
from flux_resourceset.http.streams import COMMENT_SECONDS, Stream
from flux_resourceset.http.unread import UNREAD_SECONDS
from flux_resourceset.kinds import kind_files
from flux_resourceset.log_events import EVERYTHING, Filter
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.tail import KEPT_BYTES, Page, Tail
from unit.connections import TurnedLoop

EPOCH = "e"
MOMENT = 0.001


class Reader:
    """The client's end: what it does not take stays in the buffer of the connection, and no more is sent then."""

    def __init__(self, takes: bool = True) -> None:
        self.takes = takes
        self.received = b""
        self.waiting = b""
        self.aborted = False
        self._drained = asyncio.Event()
        self._high = 0

    def set_write_buffer_limits(self, high: int) -> None:
        self._high = high

    def get_write_buffer_size(self) -> int:
        return len(self.waiting)

    def abort(self) -> None:
        self.aborted = True
        self._drained.set()

    async def send(self, message: Any) -> None:
        while len(self.waiting) > self._high and not self.aborted:
            self._drained.clear()
            await self._drained.wait()
        data = message["body"]
        self.waiting += b"%x\r\n%b\r\n" % (len(data), data)
        if self.takes:
            self.take()

    def take(self, most: int | None = None) -> None:
        self.received, self.waiting = self.received + self.waiting[:most], b"" if most is None else self.waiting[most:]
        self._drained.set()


class Following:
    """A stream with its reader, at the end of a log that the test writes."""

    def __init__(self, log: Tail, wanted: Filter = EVERYTHING, takes: bool = True) -> None:
        self.log = log
        self.reader = Reader(takes)
        scope = {"extensions": {TRANSPORT: {"transport": self.reader, "is_endless": False}}}
        self.stream = Stream(log, scope, wanted, log.revision, is_lost=False)
        self.task = asyncio.ensure_future(self.stream.run(self.reader.send))

    async def turn(self, seconds: float = 0.0) -> None:
        """As the feed does: streams are looked after again and again."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TurnedLoop)
        await loop.turn(seconds)
        self.stream.look_after(loop.time())
        await loop.turn()

    async def write(self, size: int = 100, actor: str = "a") -> None:
        entry = Entry(self.log.revision + 1, "", actor, None, None, None, False, (change("x" * size),))
        self.log.add(Page([log_events.event(EPOCH, entry)], entry.revision))
        self.stream.wake()
        await self.turn()

    def seen(self) -> list[bytes]:
        return [line for line in self.reader.received.split(b"\n") if line.startswith(b"id: ")]


def change(text: str) -> Change:
    return Change("namespaces", "n", "create", None, {"id": text})


def on_a_log(check: Callable[[Tail], Awaitable[None]]) -> None:
    async def run() -> None:
        log = Tail(Follower(kind_files.load(), MemoryStore))
        log.begin(Head(EPOCH, 0, ""))
        await check(log)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    with asyncio.Runner(loop_factory=TurnedLoop) as runner:
        runner.run(run())


def test_a_comment_is_sent_every_fifteen_seconds_with_the_place_that_was_reached() -> None:
    async def check(log: Tail) -> None:
        following = Following(log, Filter(actor="b"))
        await following.turn()
        assert following.seen() == [b"id: e-0"]
        await following.write(actor="a")
        await following.turn(COMMENT_SECONDS - MOMENT)
        assert following.seen() == [b"id: e-0"]
        await following.turn(MOMENT)
        assert following.seen() == [b"id: e-0", b"id: e-1"]  # nothing is asked for again that was passed over
        for _ in range(3):
            await following.turn(COMMENT_SECONDS)
        assert following.reader.received.count(b"\r\n:\n") == 5

    on_a_log(check)


def test_who_reads_is_never_let_go_however_long_nothing_happens() -> None:
    async def check(log: Tail) -> None:
        following = Following(log)
        for _ in range(20):
            await following.turn(UNREAD_SECONDS)
        await following.write()
        assert not following.reader.aborted
        assert following.seen()[-1] == b"id: e-1"

    on_a_log(check)


def test_who_takes_nothing_for_thirty_seconds_is_let_go_though_comments_and_events_are_added() -> None:
    async def check(log: Tail) -> None:
        following = Following(log, takes=False)
        await following.turn()
        for _ in range(2):
            await following.turn(UNREAD_SECONDS / 2 - MOMENT)
            await following.write()
            assert not following.reader.aborted
        await following.turn(2 * MOMENT)
        assert following.reader.aborted
        await asyncio.wait_for(following.task, 1)

    on_a_log(check)


def test_who_takes_a_little_is_waited_for() -> None:
    async def check(log: Tail) -> None:
        following = Following(log, takes=False)
        await following.write(size=200_000)
        for _ in range(10):
            await following.turn(UNREAD_SECONDS - MOMENT)
            assert not following.reader.aborted
            following.reader.take(1)
        await following.turn(UNREAD_SECONDS - MOMENT)
        following.reader.takes = True
        following.reader.take()
        await following.turn()
        assert following.reader.received.count(b"x") == 200_000

    on_a_log(check)


def test_who_leaves_more_than_four_megabytes_is_let_go_at_once() -> None:
    async def check(log: Tail) -> None:
        slow, quick = Following(log, takes=False), Following(log)
        written = 0
        while not slow.reader.aborted:
            await slow.write(size=100_000)
            quick.stream.wake()
            await quick.turn()
            written += 100_000
            assert written < KEPT_BYTES + 500_000  # what is in the buffers, and what makes JSON of it
        assert written > KEPT_BYTES
        assert not quick.reader.aborted
        assert quick.seen() == [b"id: e-%d" % number for number in range(log.revision + 1)]

    on_a_log(check)


@pytest.mark.long
def test_an_event_that_is_larger_than_what_may_wait_reaches_whoever_reads_it() -> None:
    async def check(log: Tail) -> None:
        following = Following(log, takes=False)
        await following.write()
        await following.write(size=3 * KEPT_BYTES)
        await following.write()
        assert not following.reader.aborted
        while following.reader.waiting:
            following.reader.take()
            await following.turn()
        assert following.seen() == [b"id: e-0", b"id: e-1", b"id: e-2", b"id: e-3"]

    on_a_log(check)


def test_whoever_is_let_go_in_the_midst_of_a_large_event_gets_no_end_of_it() -> None:
    async def check(log: Tail) -> None:
        following = Following(log, takes=False)
        await following.write(size=KEPT_BYTES)
        following.stream.end()
        await following.turn()
        assert following.reader.aborted  # an orderly end would wait for the buffer to be read
        assert not following.reader.waiting.endswith(b"\n\n\r\n")
        assert following.task.done()

    on_a_log(check)


def test_a_log_that_begins_anew_is_a_reset_and_the_old_events_are_gone() -> None:
    async def check(log: Tail) -> None:
        following = Following(log)
        await following.write()
        log.begin(Head("f", 7, ""))
        following.stream.wake()
        await following.turn()
        assert following.reader.received.endswith(b'id: f-7\nevent: reset\ndata: {"revision":7}\n\n\r\n')
        assert log.event(1) is None

    on_a_log(check)


def test_a_place_that_is_folded_away_while_it_is_read_is_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(log: Tail) -> None:
        following = Following(log)
        log.begin(Head(EPOCH, 5, ""))
        following.stream._beginnings = log.beginnings  # one that has come with an old place

        async def past(*_: object) -> None:
            return None

        async def meet() -> Head:
            return Head(EPOCH, 5, "")

        monkeypatch.setattr(log, "past", past)
        monkeypatch.setattr(log, "meet", meet)
        following.stream.wake()
        await following.turn()
        assert following.reader.received.endswith(b'id: e-5\nevent: reset\ndata: {"revision":5}\n\n\r\n')
        await following.write()
        assert following.seen() == [b"id: e-0", b"id: e-5", b"id: e-6"]

    on_a_log(check)


@pytest.mark.parametrize("failure", [errors.Doubt("the disk is on fire"), errors.NotFound("gone")])
def test_doubt_about_the_past_ends_the_stream(monkeypatch: pytest.MonkeyPatch, failure: errors.Refusal) -> None:
    async def check(log: Tail) -> None:
        following = Following(log)
        log.begin(Head(EPOCH, 5, ""))
        following.stream._beginnings = log.beginnings

        async def past(*_: object) -> None:
            raise failure

        monkeypatch.setattr(log, "past", past)
        following.stream.wake()
        await following.turn()
        assert following.task.done()
        assert following.task.exception() is None
        assert not log.is_crowded

    on_a_log(check)


def test_who_holds_the_room_of_others_for_long_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "ROOM_BYTES", 1000)

    async def check(log: Tail) -> None:
        page = Page([log_events.event(EPOCH, Entry(1, "", "a", None, None, None, False, (change("x" * 500_000),)))], 1)

        async def past(*_: object) -> Page:
            log._taken += page.size
            return page

        monkeypatch.setattr(log, "past", past)
        log.begin(Head(EPOCH, 0, ""))
        following = Following(log, takes=False)
        log.begin(Head(EPOCH, 1, ""))
        following.stream._beginnings = log.beginnings  # one that has come with an old place
        following.stream.wake()
        for _ in range(int(UNREAD_SECONDS)):
            assert not following.reader.aborted
            following.reader.take(1)  # so little that it would take for days
            await following.turn(1)
        await following.turn(1)
        assert following.reader.aborted
        assert not log.is_crowded

    on_a_log(check)


def test_small_events_go_out_together_and_large_ones_in_chunks() -> None:
    async def check(log: Tail) -> None:
        following = Following(log)
        await following.turn()
        sent = following.reader.received
        for _ in range(20):
            entry = Entry(log.revision + 1, "", "a", None, None, None, False, (change("y"),))
            log.add(Page([log_events.event(EPOCH, entry)], entry.revision))
        following.stream.wake()
        await following.turn()
        assert following.reader.received.removeprefix(sent).count(b"\r\n") == 2  # one chunk
        await following.write(size=log_events.CHUNK_BYTES * 3)
        assert following.seen() == [b"id: e-%d" % number for number in range(22)]

    on_a_log(check)
