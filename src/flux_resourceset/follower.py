"""Keeps the fleet true to the log: compares numbers before every answer, and reads what came since in a thread.

On the event loop nothing waits for a disk or a network. Whoever asks while something is read waits for it; many changes take
so long that answers are made one by one meanwhile (see ahead.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from flux_resourceset import changes, errors, fleet, news
from flux_resourceset.ahead import Ahead, Late, Read, Unread
from flux_resourceset.changes import Document, Entry, Stored
from flux_resourceset.fleet import Key
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.news import Known, News, Remembered, damage_reported
from flux_resourceset.store import Followed, Outline, Store

log = logging.getLogger(__name__)

LONG_LOOK_SECONDS = 0.05  # at a store that turns out to be unusable; a missing file takes less, a damaged fleet of thousands more
FEW_CHANGES = 250  # to take into the fleet between two answers: some 50 microseconds each


class Follower:
    lags = False  # as of the store

    def __init__(
        self,
        kinds: Kinds,
        open_store: Callable[[], Store],
        clock: Callable[[], float] = time.monotonic,
        *,
        max_staleness: float = 0,  # seconds that the database may not have answered; 0: without limit
        vouches: bool = False,  # it belongs to a writer
    ) -> None:
        self.kinds = kinds
        self.fleet = fleet.Fleet(kinds)
        self._clock = clock
        self.seen = clock()  # when the store was last found readable, or else since when it was not
        self.views: tuple[changes.View, ...] = ()  # that the store's documents were written for
        self.own_step: fleet.Step | None = None  # that this very process is committing
        self.listeners: set[Callable[[], None]] = set()  # are told at once of what this process has written
        self.stands_in = False  # the fleet comes from a file, for the store has been away since the start
        self.replaced: tuple[str, ...] = ()  # as of a snapshot
        self.base = 0  # likewise
        self.opened = ""  # when a writer last vouched for the log
        self._max_staleness = max_staleness
        self._is_up = False
        self._vouches = vouches
        self.remembered: Remembered | None = None  # what a snapshot file says was served before this start
        self._why = "the database was not read yet"  # it could not be asked
        self._behind_since: float | None = None  # something is known to have been written that is not in the fleet
        self._open_store = open_store
        self._store: Store | None = None  # belongs to the thread that catches up, while one does
        self._version: object = None
        self._doubt = ""  # what the last look found wrong
        self._look_again = 0.0  # monotonic time before which that is taken as still true
        self._ahead: Ahead | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None  # many changes, to their end
        self._could_not_read = False  # them, beside: then all of them are read by whoever looks, and everybody waits
        self._few = ThreadPoolExecutor(1, "follower-few")
        self._many = ThreadPoolExecutor(1, "follower-many")  # of its own, so that nobody who asks for little waits for it

    def begin(self) -> None:
        """What is to be done on the event loop beside answers: here nothing, for whoever asks looks first."""

    # Asking, on the event loop

    def answer(self, key: bytes, packed: bool) -> bytes:
        """The body for b"<dns>/<endpoint>", or for b"<dns>/<endpoint>/<id>"; or Late: then wait for it."""
        self.look()
        return self.answer_looked(key, packed)

    def answer_looked(self, key: bytes, packed: bool) -> bytes:
        """answer() for what was asked before the last look(), or catch_up()."""
        return self.fleet.answer(key, packed) if self._ahead is None else _answer_ahead(self._ahead, key, packed, {})

    async def wait_for_answer(self, key: bytes, packed: bool) -> bytes:
        """The same, once all that it takes was read."""
        await self.catch_up()
        ahead = self._ahead
        if ahead is None:
            return self.fleet.answer(key, packed)
        read: dict[Key, Document | None] = {}
        while self._ahead is ahead:  # else what was read for it is worth nothing any more
            try:
                return _answer_ahead(ahead, key, packed, read)
            except Unread as unread:
                read |= await asyncio.get_running_loop().run_in_executor(self._few, _read, ahead, unread.keys)
            except Late:
                break
        return (await self.fresh()).answer(key, packed)

    async def fresh(self) -> fleet.Fleet:
        """The fleet as the log says it is, once all of it was read; or Unavailable."""
        await self.catch_up()
        while self._reading is not None:
            await asyncio.shield(self._reading)
            await self.catch_up()
        return self.fleet

    # Looking

    def look(self) -> None:
        """Compare numbers. Late: something was written since, and has to be read; Unavailable: no answer can be vouched for."""
        self._check_doubt()
        if not self._is_current():
            raise Late

    async def catch_up(self) -> None:
        """Wait until the fleet holds, or an outline names, all that was written before this call; or Unavailable."""
        self._check_doubt()
        if self._catching_up is not None:  # it began before this call, so it may lack what was written just now
            await asyncio.wait([self._catching_up])
        if self._is_current():
            return
        if self._catching_up is None:
            self._catching_up = asyncio.ensure_future(self._catch_up())
            self._catching_up.add_done_callback(self._have_caught_up)
        try:
            await asyncio.shield(self._catching_up)
        except errors.Unreachable:
            if not self.stands_in:
                raise
            self._check_staleness()

    def refresh(self) -> None:
        """Bring the fleet up to the store, whatever it takes; without an event loop."""
        self._check_doubt()
        if not self._is_current():
            self._ahead = None
            self._take(self._news(self._known(), whole=True))

    def _check_doubt(self) -> None:
        if self._clock() < self._look_again:
            raise errors.Doubt(self._doubt)

    def _is_current(self) -> bool:
        if self._store is None or self._catching_up is not None:
            return False
        try:
            current = self._store.version() == self._version
        except errors.Unavailable:
            return False  # whoever reads it finds out what is wrong
        if current:
            self.seen, self._is_up = self._clock(), True
        return current

    async def _catch_up(self) -> None:
        run = asyncio.get_running_loop().run_in_executor
        news = await run(self._few, self._news, self._known(), self._could_not_read)
        self._take(news)
        if isinstance(news.behind, changes.Snapshot):
            self._many.submit(free_fleet, news.known.fleet)

    def _have_caught_up(self, catching_up: asyncio.Task[None]) -> None:
        self._catching_up = None
        if catching_up.cancelled() or catching_up.exception() is not None:  # those who wait are told; there may be none left
            self._ahead = None

    def _known(self) -> Known:
        self._version = None  # whatever becomes of the reading, it is worth nothing any more
        outline = None if self._ahead is None else self._ahead.outline
        return Known(
            self.fleet, self.fleet.head, self.own_step, outline, self.opened, self.stands_in, self._vouches, self.remembered
        )

    # Reading, in a thread

    def _news(self, known: Known, whole: bool) -> News:
        started = self._clock()
        was_open = self._store is not None
        try:
            try:
                return self._read_news(known, whole)
            except errors.Unavailable:
                self._let_go()
                if not was_open:
                    raise
                return self._read_news(known, whole)  # the file may have been replaced by a good one: open what is there now
        except errors.Unavailable as exc:
            self._let_go()
            now, self._why, self._is_up = self._clock(), exc.detail, False
            if self.stands_in and isinstance(exc, errors.Unreachable):
                raise
            if now - started > LONG_LOOK_SECONDS:  # then rest as long: others want to be told so, and /health answered
                self._doubt, self._look_again = exc.detail, now + (now - started)
            if known.fleet.epoch and isinstance(exc, errors.Unreachable):
                raise errors.Doubt(exc.detail) from exc  # it was here, and nothing is between it and us
            raise

    def _read_news(self, known: Known, whole: bool) -> News:
        """What the log holds behind the fleet, if it proves to go on from there; or else everything anew."""
        if self._store is None:
            self._store = self._open_store()
        store, version = self._store, self._store.version()
        with damage_reported():
            step = news.own_step(store, known)
            head = step.after if step else known.head
            followed = None
            if known.fleet.epoch:
                followed = store.follow(head) if whole else store.follow_few(head, FEW_CHANGES, known.outline)
            if followed is not None:
                return News(known, store, version, step, followed, None)
            if known.fleet.epoch:
                self._begin_anew(known)
            snapshot = store.snapshot()
            return News(known, store, version, None, snapshot, news.loaded(self.kinds, known, store, snapshot))

    def _begin_anew(self, known: Known) -> None:
        """The log does not go on from what was followed. Here everybody who asks waits for what comes of that."""

    def _take(self, news: News) -> None:
        """Become what was read, between two answers. Of the fleet's own steps some may have been taken meanwhile."""
        if news.own_step is not None and news.own_step.before == self.fleet.head:
            self.fleet.take(news.own_step)
        if isinstance(news.behind, Outline):
            self._read_on(news.store, news.behind)
        else:
            self._ahead = None
            if isinstance(news.behind, Followed):
                with damage_reported():
                    self.go_on(news.behind)
            elif news.loaded is not None:
                self._become(news.loaded, news.behind)
        self._version, self.seen, self._could_not_read = news.version, self._clock(), False
        self._meet_store()

    def _become(self, loaded: fleet.Fleet, snapshot: changes.Snapshot) -> None:
        self.fleet, self.views, self.opened = loaded, snapshot.views, snapshot.opened
        self.replaced, self.base = snapshot.replaced, snapshot.base

    def _meet_store(self) -> None:
        self._is_up = True
        if self.stands_in:
            self.stands_in = False
            log.info("the database is back, and is followed", extra={"revision": self.fleet.revision})

    def go_on(self, followed: Followed) -> None:
        self.fleet.apply(followed.entries, followed.hash)
        self.views, self.opened = followed.views, followed.opened
        self.fleet.compare_views(followed.views)  # also when they are the same: what clusters refer to may be new

    # Reading on in a thread

    def _read_on(self, store: Store, outline: Outline) -> None:
        if self._ahead is None or self._ahead.outline is not outline:
            self._ahead = Ahead(self.fleet, outline, store, has_other_views=outline.views != self.views)
        if self._reading is None:
            self._behind_since = self._clock()
            self._reading = asyncio.ensure_future(self._read_to_end(store))
            self._reading.add_done_callback(self._have_read)

    def _have_read(self, reading: asyncio.Task[None]) -> None:
        self._reading = self._ahead = self._behind_since = self._version = None  # the next look finds what is missing, or wrong
        self._could_not_read = reading.cancelled() or reading.exception() is not None

    async def _read_to_end(self, store: Store) -> None:
        run = asyncio.get_running_loop().run_in_executor
        followed = await run(self._many, store.follow, self.fleet.head)
        if followed is not None:
            await self.go_on_in_thread(followed)

    async def go_on_in_thread(self, followed: Followed) -> None:
        """go_on(), but answers are given meanwhile: on a fleet beside, which comes in the place of this one at the end."""
        run = asyncio.get_running_loop().run_in_executor
        before = self.fleet
        successor = await run(self._many, _successor, before.copied(), followed)
        if self.fleet is before and before.head == successor.head_before:  # else somebody else was faster
            successor.fleet.inherit(before, successor.untrue)
            self.fleet, self.views, self.opened = successor.fleet, followed.views, followed.opened
            self._ahead = self._version = None  # the next look tells what came meanwhile
        del before
        await run(self._many, _free, successor)

    # While the store is away

    def stand_in(self, snapshot: changes.Snapshot, age: float) -> None:
        """Serve what a file says, which is so many seconds old, until the store can be asked for the first time."""
        with damage_reported():
            self._become(news.fleet_of(self.kinds, snapshot), snapshot)
        self.stands_in, self.seen = True, self._clock() - age

    def is_reachable(self) -> bool:
        return self._is_up

    def check_reachable(self) -> None:
        """For those whom what is in memory does not help."""
        if self.stands_in:
            raise errors.Unreachable(self._why)

    def age(self) -> float:
        """Seconds since the store last answered."""
        return max(self._clock() - self.seen, 0.0)

    def lag(self) -> float:
        """Seconds for which something is known to have been written that is not in the fleet."""
        return 0.0 if self._behind_since is None else max(self._clock() - self._behind_since, 0.0)

    def _check_staleness(self) -> None:
        if self._max_staleness and self.age() > self._max_staleness:
            raise errors.Stale(
                f"the database has not answered for {self.age():.0f} seconds, and MAX_STALENESS is {self._max_staleness:g}"
            )

    # For those who read the log, and who write

    @property
    def store(self) -> Store:
        """As it was last looked at."""
        store = self._store
        if store is None:
            raise errors.Unreachable(f"the store has to be opened again: {self._why}; try again")
        return store

    def snapshot(self) -> changes.Snapshot:
        """Everything the store holds, of whatever kind, known here or not. Grows with documents."""
        self.refresh()
        return self.store.snapshot()

    def close(self) -> None:
        """In order, once its threads have ended; of what is in doubt nothing is touched."""
        for pool in (self._few, self._many):
            pool.shutdown(cancel_futures=True)
        if self._store is not None:
            with contextlib.suppress(errors.Unavailable):
                self.refresh()
                self.store.settle()
        self._let_go()

    def _let_go(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None


def _answer_ahead(ahead: Ahead, key: bytes, packed: bool, read: Read) -> bytes:
    with damage_reported():
        return ahead.answer(key, packed, read)


def _read(ahead: Ahead, keys: list[Key]) -> Read:
    with damage_reported():
        return ahead.read(keys)


class _Successor(NamedTuple):
    fleet: fleet.Fleet
    head_before: changes.Head
    untrue: list[bytes]  # answers
    replaced: list[Stored | None]
    entries: list[Entry]


def _successor(still: fleet.Fleet, followed: Followed) -> _Successor:
    """What a fleet becomes by what it follows; in a thread."""
    before = still.head
    replaced = [still.documents.get(made.kind, {}).get(made.id) for entry in followed.entries for made in entry.changes]
    with damage_reported():
        untrue = still.apply(followed.entries, followed.hash)
        still.compare_views(followed.views)
    return _Successor(still, before, untrue, replaced, followed.entries)


def _free(successor: _Successor) -> None:
    """One document at a time: to free ten thousand in one go holds up everybody for 100 ms."""
    while successor.replaced:
        successor.replaced.pop()
    changes.let_go(successor.entries)


def free_fleet(former: fleet.Fleet) -> None:
    """Likewise."""
    for of_kind in former.documents.values():
        while of_kind:
            of_kind.popitem()
