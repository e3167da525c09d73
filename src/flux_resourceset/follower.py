"""Keeps the fleet true to the log: compares numbers before every answer, and reads what came since in a thread.

On the event loop nothing waits for a disk or a network. Whoever asks while something is read waits for it; many changes take
so long that answers are made one by one meanwhile (see ahead.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from flux_resourceset import changes, errors, fleet
from flux_resourceset.ahead import Ahead, Late, Read, Unread
from flux_resourceset.changes import Document, Entry, Stored
from flux_resourceset.fleet import Key
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.store import Followed, Outline, Store

log = logging.getLogger(__name__)

LONG_LOOK_SECONDS = 0.05  # at a store that turns out to be unusable; a missing file takes less, a damaged fleet of thousands more
FEW_CHANGES = 250  # to take into the fleet between two answers: some 50 microseconds each


class _Known(NamedTuple):
    """Where the fleet stands: what a thread is to go on from, however the fleet goes on meanwhile."""

    fleet: fleet.Fleet
    head: changes.Head
    own_step: fleet.Step | None
    outline: Outline | None
    opened: str  # when a writer last vouched for the log


class _News(NamedTuple):
    """What a store holds beyond what was known."""

    known: _Known
    store: Store
    version: object  # before it was read: what came while it was read is found by the next look
    own_step: fleet.Step | None  # of this process, if the log has it
    behind: Followed | Outline | changes.Snapshot  # that; a snapshot where the log does not go on from what was known
    loaded: fleet.Fleet | None  # of the snapshot


class Follower:
    def __init__(self, kinds: Kinds, open_store: Callable[[], Store], clock: Callable[[], float] = time.monotonic) -> None:
        self.kinds = kinds
        self.fleet = fleet.Fleet(kinds)
        self._clock = clock
        self.seen = clock()  # when the store was last found readable, or else since when it was not
        self.views: tuple[changes.View, ...] = ()  # that the store's documents were written for
        self.own_step: fleet.Step | None = None  # that this very process is committing
        self.listeners: set[Callable[[], None]] = set()  # are told at once of what this process has written
        self._open_store = open_store
        self._store: Store | None = None  # belongs to the thread that catches up, while one does
        self._version: object = None
        self._opened = ""  # when a writer last vouched for the log
        self._doubt = ""  # what the last look found wrong
        self._look_again = 0.0  # monotonic time before which that is taken as still true
        self._checked = False
        self._ahead: Ahead | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None  # many changes, to their end
        self._could_not_read = False  # them, beside: then all of them are read by whoever looks, and everybody waits
        self._few = ThreadPoolExecutor(1, "follower-few")
        self._many = ThreadPoolExecutor(1, "follower-many")  # of its own, so that nobody who asks for little waits for it

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
        await asyncio.shield(self._catching_up)

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
            self.seen = self._clock()
        return current

    async def _catch_up(self) -> None:
        run = asyncio.get_running_loop().run_in_executor
        news = await run(self._few, self._news, self._known(), self._could_not_read)
        self._take(news)
        if isinstance(news.behind, changes.Snapshot):
            self._many.submit(_free_fleet, news.known.fleet)

    def _have_caught_up(self, catching_up: asyncio.Task[None]) -> None:
        self._catching_up = None
        if catching_up.cancelled() or catching_up.exception() is not None:  # those who wait are told; there may be none left
            self._ahead = None

    def _known(self) -> _Known:
        self._version = None  # whatever becomes of the reading, it is worth nothing any more
        outline = None if self._ahead is None else self._ahead.outline
        return _Known(self.fleet, self.fleet.head, self.own_step, outline, self._opened)

    # Reading, in a thread

    def _news(self, known: _Known, whole: bool) -> _News:
        started = self._clock()
        was_open = self._store is not None
        try:
            try:
                return self._read_news(known, whole)
            except errors.Unavailable:
                if not was_open:
                    raise
                return self._read_news(known, whole)  # the file may have been replaced by a good one: open what is there now
        except errors.Unavailable as exc:
            now = self._clock()
            if now - started > LONG_LOOK_SECONDS:  # then rest as long: others want to be told so, and /health answered
                self._doubt, self._look_again = exc.detail, now + (now - started)
            raise

    def _read_news(self, known: _Known, whole: bool) -> _News:
        """What the log holds behind the fleet, if it proves to go on from there; or else everything anew."""
        try:
            if self._store is None:
                self._store = self._open_store()
            store, version = self._store, self._store.version()
            with damage_reported():
                step = _own_step(store, known)
                head = step.after if step else known.head
                followed = None
                if known.fleet.epoch:
                    followed = store.follow(head) if whole else store.follow_few(head, FEW_CHANGES, known.outline)
                if followed is not None:
                    return _News(known, store, version, step, followed, None)
                snapshot = store.snapshot()
                return _News(known, store, version, None, snapshot, _loaded(self.kinds, known, snapshot))
        except errors.Unavailable:
            self._let_go()
            raise

    def _take(self, news: _News) -> None:
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
                self.fleet, self.views, self._opened = news.loaded, news.behind.views, news.behind.opened
        self._version, self.seen, self._could_not_read = news.version, self._clock(), False

    def go_on(self, followed: Followed) -> None:
        self.fleet.apply(followed.entries, followed.hash)
        self.views, self._opened = followed.views, followed.opened
        self.fleet.compare_views(followed.views)  # also when they are the same: what clusters refer to may be new

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
            self.fleet, self.views, self._opened = successor.fleet, followed.views, followed.opened
            self._ahead = self._version = None  # the next look tells what came meanwhile
        del before
        await run(self._many, _free, successor)

    # For those who read the log, and who write

    @property
    def store(self) -> Store:
        """As it was last looked at."""
        store = self._store
        if store is None:
            raise errors.Unavailable("the store has to be opened again; try again")
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


def _own_step(store: Store, known: _Known) -> fleet.Step | None:
    """What this very process has just committed need not be read again, however large it is."""
    step = known.own_step
    return step if step is not None and step.before == known.head and store.continues(step.after) else None


def _loaded(kinds: Kinds, known: _Known, snapshot: changes.Snapshot) -> fleet.Fleet:
    """Everything anew. A log that does not go on from where it was is only taken from those who may say so."""
    before = known.fleet
    if before.epoch and snapshot.epoch != before.epoch and before.epoch not in snapshot.replaced:
        raise errors.Doubt(
            f"the store is another one now (its epoch is {snapshot.epoch}, not {before.epoch}), and no import says why; "
            "put the right one back, or restart this server if it is meant"
        )
    folded = snapshot.base > known.head.revision  # then nobody can tell any more, and the log has gone on at any rate
    if before.epoch == snapshot.epoch and known.opened >= snapshot.opened and not folded:
        raise errors.Doubt(
            f"the log ends at revision {snapshot.revision} and does not go on from revision {known.head.revision}, which was "
            "followed; put the newest files back, or restart the writer if an older state is meant"
        )
    fresh = fleet.Fleet(kinds)
    fresh.load(snapshot)
    if before.epoch:
        revisions = {"before": known.head.revision, "now": fresh.revision}
        log.warning("the log does not go on from where it was: everything was loaded anew", extra=revisions)
    _report(fresh)
    return fresh


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


def _free_fleet(former: fleet.Fleet) -> None:
    """Likewise."""
    for of_kind in former.documents.values():
        while of_kind:
            of_kind.popitem()


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
