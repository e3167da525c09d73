"""Keeps the fleet true to the log: compares numbers before every answer, and reads what came since.

A few changes are read at once. Many are read in a thread, and meanwhile answers are made one by one (see ahead.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from flux_resourceset import changes, errors, fleet, threads
from flux_resourceset.ahead import Ahead, Late
from flux_resourceset.answers import compressed
from flux_resourceset.changes import Document, Entry, Query, Stored
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.store import Followed, Outline, Store

log = logging.getLogger(__name__)

LONG_LOOK_SECONDS = 0.05  # at a store that turns out to be unusable; a missing file takes less, a damaged fleet of thousands more
PAGE_CHANGES = 1000  # of the log to hold at a time: a megabyte or some
FEW_CHANGES = 250  # to read between two answers: some 50 microseconds each


class Follower:
    def __init__(self, kinds: Kinds, open_store: Callable[[], Store], clock: Callable[[], float] = time.monotonic) -> None:
        self.kinds = kinds
        self.fleet = fleet.Fleet(kinds)
        self._clock = clock
        self.seen = clock()  # when the store was last found readable, or else since when it was not
        self.views: tuple[changes.View, ...] = ()  # that the store's documents were written for
        self.own_step: fleet.Step | None = None  # that this very process is committing
        self._open_store = open_store
        self._store: Store | None = None
        self._version: object = None
        self._opened = ""  # when a writer last vouched for the log
        self._doubt = ""  # what the last look found wrong
        self._look_again = 0.0  # monotonic time before which that is taken as still true
        self._checked = False
        self._ahead: Ahead | None = None
        self._reading: asyncio.Task[None] | None = None  # what the log is ahead by
        self._could_not_read = False  # it in the thread: then the next look reads it, and tells everybody what is wrong
        self._thread = ThreadPoolExecutor(1, "follower")

    # Asking, on the event loop

    def answer_read(self, key: bytes, packed: bool) -> bytes:
        """answer() for what was read from a connection in this very call of the event loop."""
        self._check()
        return self._answer(key, packed)

    def answer(self, key: bytes, packed: bool) -> bytes:
        """The body for b"<dns>/<endpoint>", or Late: then wait for it."""
        self.look()
        return self._answer(key, packed)

    def _answer(self, key: bytes, packed: bool) -> bytes:
        if self._ahead is None:
            return self.fleet.answer(key, packed)
        with damage_reported():
            return self._ahead.answer(key, packed)

    async def wait_for_answer(self, key: bytes, packed: bool) -> bytes:
        try:
            return self.answer(key, packed)
        except Late:
            return (await self.fresh()).answer(key, packed)

    async def fresh(self) -> fleet.Fleet:
        """The fleet as the log says it is, once all of it was read; or Unavailable."""
        self.look()
        while self._reading is not None:
            await asyncio.shield(self._reading)
            self.look()
        return self.fleet

    def _check(self) -> None:
        """look(), once for all connections that are read in one turn of the event loop: what they brought was there before.

        Tasks run in between, so what they ask must not count: a request that comes after it would be answered without a look.
        """
        if not self._checked:
            self.look()
            self._checked = True
            asyncio.get_running_loop().call_soon(self._unchecked)

    def _unchecked(self) -> None:
        self._checked = False

    # Looking

    def look(self) -> None:
        """Learn what came behind the fleet, and read it if it is not much; or raise Unavailable: no answer can be vouched for."""
        self._look(whole=False)

    def refresh(self) -> None:
        """Bring the fleet up to the store, whatever it takes; without an event loop."""
        self._look(whole=True)

    def _look(self, *, whole: bool) -> None:
        started = self._clock()
        if started < self._look_again:
            raise errors.Doubt(self._doubt)
        known = self._store is not None
        try:
            try:
                self._look_once(whole)
            except errors.Unavailable:
                if not known:
                    raise
                self._look_once(whole)  # the file may have been replaced by a good one: open what is there now
        except errors.Unavailable as exc:
            now = self._clock()
            if now - started > LONG_LOOK_SECONDS:  # then rest as long: others want to be told so, and /health answered
                self._doubt, self._look_again = exc.detail, now + (now - started)
            raise
        self.seen, self._could_not_read = self._clock(), False

    def _look_once(self, whole: bool) -> None:
        try:
            if self._store is None:
                self._store = self._open_store()
                self._version = None
            version = self._store.version()
            if version != self._version:
                self._follow(self._store, whole or self._could_not_read)
                self._version = version
        except errors.Unavailable:
            self._let_go()
            raise

    def _follow(self, store: Store, whole: bool) -> None:
        """Prove that the log goes on from where the fleet stands, and go on with it; or load everything anew."""
        with damage_reported():
            self._take_own(store)
            if not self.fleet.epoch:
                self._load(store.snapshot())
                return
            head = self.fleet.head
            outline = None if self._ahead is None else self._ahead.outline
            followed = store.follow(head) if whole else store.follow_few(head, FEW_CHANGES, outline)
            if isinstance(followed, Outline):
                self._read_on(store, followed)
                return
            self._ahead = None
            if followed is None:
                self._load(store.snapshot())
            else:
                self.go_on(followed)

    def _take_own(self, store: Store) -> None:
        """What this very process has just committed need not be read again, however large it is."""
        step = self.own_step
        if step is not None and step.before == self.fleet.head and store.continues(step.after):
            self.fleet.take(step)

    def go_on(self, followed: Followed) -> None:
        self.fleet.apply(followed.entries, followed.hash)
        self.views, self._opened = followed.views, followed.opened
        self.fleet.compare_views(followed.views)  # also when they are the same: what clusters refer to may be new

    def _load(self, snapshot: changes.Snapshot) -> None:
        """A log that does not go on from where it was is only taken from those who may say so."""
        before = self.fleet
        if before.epoch and snapshot.epoch != before.epoch and before.epoch not in snapshot.replaced:
            raise errors.Doubt(
                f"the store is another one now (its epoch is {snapshot.epoch}, not {before.epoch}), and no import says why; "
                "put the right one back, or restart this server if it is meant"
            )
        if before.epoch == snapshot.epoch and self._opened >= snapshot.opened:
            raise errors.Doubt(
                f"the log ends at revision {snapshot.revision} and does not go on from revision {before.revision}, which was "
                "followed; put the newest files back, or restart the writer if an older state is meant"
            )
        fresh = fleet.Fleet(self.kinds)
        fresh.load(snapshot)
        self.fleet, self.views, self._opened = fresh, snapshot.views, snapshot.opened
        if before.epoch:
            revisions = {"before": before.revision, "now": fresh.revision}
            log.warning("the log does not go on from where it was: everything was loaded anew", extra=revisions)
        _report(fresh)

    # Reading on in a thread

    def _read_on(self, store: Store, outline: Outline) -> None:
        if self._ahead is None or self._ahead.outline is not outline:
            self._ahead = Ahead(self.fleet, outline, store, has_other_views=outline.views != self.views)
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_to_end(store))
            self._reading.add_done_callback(self._have_read)

    def _have_read(self, reading: asyncio.Task[None]) -> None:
        self._reading = self._ahead = self._version = None  # so that the next look finds what is still missing, or wrong
        self._could_not_read = reading.cancelled() or reading.exception() is not None

    async def _read_to_end(self, store: Store) -> None:
        run = asyncio.get_running_loop().run_in_executor
        followed = await run(self._thread, store.follow, self.fleet.head)
        if followed is not None:
            await self.go_on_in_thread(followed)

    async def go_on_in_thread(self, followed: Followed) -> None:
        """go_on(), but answers are given meanwhile: on a fleet beside, which comes in the place of this one at the end."""
        run = asyncio.get_running_loop().run_in_executor
        before = self.fleet
        successor = await run(self._thread, _successor, before.copied(), followed)
        if self.fleet is before and before.head == successor.head_before:  # else somebody else was faster
            successor.fleet.inherit(before, successor.untrue)
            self.fleet, self.views, self._opened = successor.fleet, followed.views, followed.opened
            self._ahead = self._version = None  # the next look tells what came meanwhile
        del before
        await run(self._thread, _free, successor)

    # Reading what grows with the fleet or the log, in threads

    async def documents(self, kind: str, matches: Callable[[Document], bool]) -> list[Document]:
        """Those of a kind that match, by id."""
        stored = dict((await self.fresh()).documents[kind])  # it goes on changing, and the search is in a thread
        return await threads.run(threads.FOR_READS, _matching, stored, matches)

    async def fleet_list(self, matches: Callable[[Document], bool], filters: Iterable[str], packed: bool) -> bytes:
        """The list of clusters for provisioners; gzipped if it is to be packed."""
        still = (await self.fresh()).copied()
        return await threads.run(threads.FOR_POLLS, _fleet_list, still, matches, filters, packed)

    async def find(self, query: Query) -> Iterator[list[Entry]]:
        """The pages of the log that a query asks for, to be read in a thread; whoever has read one may let go of it."""
        await self.fresh()
        return self.store.find(query, PAGE_CHANGES)

    async def entry(self, revision: int) -> list[Entry]:
        """The one with this revision, or none."""
        await self.fresh()
        return await threads.run(threads.FOR_READS, self.store.entries, revision - 1, revision)

    # For those who write

    @property
    def store(self) -> Store:
        """As it was last looked at."""
        assert self._store is not None
        return self._store

    def snapshot(self) -> changes.Snapshot:
        """Everything the store holds, of whatever kind, known here or not. Grows with documents."""
        self.refresh()
        return self.store.snapshot()

    def close(self) -> None:
        """In order; of what is in doubt nothing is touched."""
        if self._store is not None:
            with contextlib.suppress(errors.Unavailable):
                self.refresh()
                self.store.settle()
        self._let_go()

    def _let_go(self) -> None:
        self._ahead = None
        if self._store is not None:
            self._store.close()
        self._store = None


def _matching(stored: dict[str, Stored], matches: Callable[[Document], bool]) -> list[Document]:
    return [body for body in (stored[id].body for id in sorted(stored)) if matches(body)]


def _fleet_list(still: fleet.Fleet, matches: Callable[[Document], bool], filters: Iterable[str], packed: bool) -> bytes:
    body = still.list_answer(matches, filters)
    return compressed(body) if packed else body


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


def _report(fresh: fleet.Fleet) -> None:
    """What is odd about a fleet that was loaded."""
    if fresh.unknown:
        log.warning("documents of unknown kinds are kept, not served", extra={"kinds": ", ".join(fresh.unknown)})
    for doubt in fresh.doubts.values():
        log.error(doubt)
    skipped = fresh.dangling()
    if skipped:
        shown = ", ".join(f"{kind}/{id} of {cluster}" for cluster, kind, id in skipped[:20])
        log.warning("references without a definition", extra={"count": len(skipped), "first": shown})


@contextlib.contextmanager
def damage_reported() -> Iterator[None]:
    """What the store holds was checked when it was written, so it is only looked at as it is used."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as exc:
        raise errors.Doubt(f"a stored document is damaged ({exc!r}); restore a backup") from exc
