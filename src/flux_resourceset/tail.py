"""The end of the log for those who follow it: read once, in a thread, encoded once, and shared by all of them.

Whoever is further behind is given pages from the store; what such readers hold at a time is bounded, whoever they are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from flux_resourceset import changes, log_events, threads
from flux_resourceset.changes import Head, Query
from flux_resourceset.follower import Follower
from flux_resourceset.log_events import EVERYTHING, Event, Filter
from flux_resourceset.store import Store

KEPT_BYTES = 4 * 1024 * 1024  # of events that are shared, beside the newest: whoever has not taken them by then is too slow
PAGE_ENTRIES = 100  # to look for at a time
PAGE_CHANGES = 250  # to read at a time, or one entry with more
PAGE_BYTES = 256 * 1024  # to encode at a time, or one entry with more
ROOM_BYTES = 32 * 1024 * 1024  # that readers of the past may hold together before the next of them is given a page


class Page(NamedTuple):
    """A stretch of the log: the events in it that were asked for, and where it ends."""

    events: list[Event]
    end: int

    @property
    def size(self) -> int:
        return sum(event.size for event in self.events)


class Tail:
    """As long as nobody follows, it stands still, and is begun anew by the next one."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.beginnings = 0  # how often the log did not go on from where it was
        self._known = Head("", 0, "")  # of which all has been read
        self.revision = 0  # of the newest event
        self._events: deque[Event] = deque()  # without gaps, up to the newest one
        self._bytes = 0
        self._turn = asyncio.Lock()  # of those who read the past
        self._taken = 0  # bytes of the past that are held
        self._given_back = asyncio.Event()

    # What is new

    @property
    def epoch(self) -> str:
        return self._known.epoch

    async def meet(self) -> Head:
        """Where the log ends, as the fleet is vouched for; if it does not go on from what was known, everything begins anew."""
        head = (await self._follower.fresh()).head
        known = self._known
        behind = head.revision < self.revision or (head.revision == known.revision and head.hash != known.hash)
        if head.epoch != known.epoch or behind:
            self.begin(head)
        return head

    def begin(self, head: Head) -> None:
        self._known, self.revision = head, head.revision
        self.beginnings += 1
        self.forget()

    def forget(self) -> None:
        self._events.clear()
        self._bytes = 0

    @property
    def end(self) -> tuple[int, int]:
        """Differs when there is something new."""
        return self.beginnings, self.revision

    async def advance(self) -> None:
        """Read what came since, a page at a time."""
        head = await self.meet()
        beginnings = self.beginnings
        if head.revision == self.revision:
            return
        store, known = self._follower.store, self._known
        page = await threads.run(threads.FOR_FOLLOWERS, _next_page, store, known, self.revision, head.revision)
        if beginnings != self.beginnings:
            return  # somebody who came meanwhile has noticed more
        if page is None:
            self.begin(head)
            return
        self.add(page)
        if self.revision == head.revision:
            self._known = head

    def add(self, page: Page) -> None:
        for event in page.events:
            self._events.append(event)
            self._bytes += event.size
        self.revision = page.end
        while self._events and self._bytes - self._events[-1].size > KEPT_BYTES:
            self._bytes -= self._events.popleft().size

    def event(self, revision: int) -> Event | None:
        """None when it is not here any more, or never was."""
        place = revision - self.revision - 1 + len(self._events)
        return self._events[place] if 0 <= place < len(self._events) else None

    @property
    def is_heavy(self) -> bool:
        """Whether the newest event is so large that it is not to be kept for nobody."""
        return self._bytes > KEPT_BYTES

    # What was before

    @property
    def is_crowded(self) -> bool:
        return self._taken > ROOM_BYTES

    async def past(self, epoch: str, after: int, wanted: Filter) -> Page | None:
        """The next page above a revision; None when the log does not reach back that far, or is another one.

        It takes room until it is given back: one event may be as large as ten thousand documents.
        """
        async with self._turn:
            while self.is_crowded:
                self._given_back.clear()
                await self._given_back.wait()
            page = await threads.run(threads.FOR_FOLLOWERS, _page, self._follower.store, epoch, after, self.revision, wanted)
            self._taken += page.size if page else 0
            return page

    def give_back(self, page: Page | None) -> None:
        self._taken -= page.size if page else 0
        self._given_back.set()

    async def is_written(self, revision: int) -> bool:
        """Whether the log has come that far, be it that nobody here has read it yet."""
        return revision <= (await threads.run(threads.FOR_FOLLOWERS, self._follower.store.head)).revision

    async def reaches_back_to(self, revision: int) -> bool:
        """Whether everything above a revision is still in the log."""
        return revision >= await threads.run(threads.FOR_FOLLOWERS, self._follower.store.base)


def _next_page(store: Store, known: Head, after: int, until: int) -> Page | None:
    """None also when something is missing, which no log that goes on from there can have."""
    page = _page(store, known.epoch, after, until, EVERYTHING) if store.continues(known) else None
    return page if page and len(page.events) == page.end - after else None


def _page(store: Store, epoch: str, after: int, until: int, wanted: Filter) -> Page | None:
    query = Query(wanted.kind, wanted.id, wanted.actor, after=after, before=until + 1, limit=PAGE_ENTRIES)
    entries = next(store.find(query, PAGE_CHANGES), [])
    try:
        if store.epoch() != epoch or store.base() > after:  # now; so it was not otherwise when the entries were read
            return None
        events: list[Event] = []
        size = 0
        for entry in entries:
            events.append(log_events.event(epoch, entry))
            size += events[-1].size
            if size >= PAGE_BYTES:
                break
        return Page(events, events[-1].revision if events else until)
    finally:
        changes.let_go(entries)
