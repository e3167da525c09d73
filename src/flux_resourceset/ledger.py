"""The one door to the store: keeps the fleet true to the log before every answer, and writes transactions."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from flux_resourceset import changes, drafts, errors, fleet, views
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Entry, Origin
from flux_resourceset.kinds import Kinds
from flux_resourceset.store import Followed, Memo, Store, Transaction

log = logging.getLogger(__name__)

LONG_LOOK_SECONDS = 0.05  # at a store that turns out to be unusable; a missing file takes less, a damaged fleet of thousands more
STAGES = 2  # rehearsals at a time; they share one interpreter with the polls
STAGE_SECONDS = 2  # to wait for one
KEPT = datetime.timedelta(hours=24)  # how long an answer is kept under its idempotency key

T = TypeVar("T")
Work = Callable[[drafts.Draft], T]


class Once(Generic[T]):
    """A write under an idempotency key: its answer is kept with it, and given again for the same request."""

    def __init__(self, key: str, digest: str, render: Callable[[T, Entry | None], bytes]) -> None:
        self.key = key
        self.digest = digest
        self.render = render
        self.body = b""


class Ledger:
    def __init__(self, kinds: Kinds, open_store: Callable[[], Store]) -> None:
        self.kinds = kinds
        self.fleet = fleet.Fleet(kinds)
        self.seen = time.monotonic()  # when the store was last found readable, or else since when it was not
        self._open_store = open_store
        self._store: Store | None = None
        self._version: object = None
        self._doubt = ""  # what the last look found wrong
        self._look_again = 0.0  # monotonic time before which that is taken as still true
        self._checked = False
        self._views: tuple[changes.View, ...] = ()  # that the store's documents were written for
        self._opened = ""  # when a writer last vouched for the log
        self._step: fleet.Step | None = None  # that is being committed
        self._writing = asyncio.Lock()
        self._writer = ThreadPoolExecutor(1, "writer")  # so that no other work in threads holds up a write
        self._stages = ThreadPoolExecutor(STAGES, "rehearsal")
        self._free_stages = asyncio.Semaphore(STAGES)
        self._rehearsing: set[Budget] = set()
        self._stopping = False
        self._tasks: set[asyncio.Task[object]] = set()

    # Reading

    def refresh(self) -> None:
        """Bring the fleet up to the store, or raise Unavailable: then no answer can be vouched for."""
        started = time.monotonic()
        if started < self._look_again:
            raise errors.Unavailable(self._doubt)
        known = self._store is not None
        try:
            try:
                self._refresh()
            except errors.Unavailable:
                if not known:
                    raise
                self._refresh()  # the file may have been replaced by a good one: open what is there now
        except errors.Unavailable as exc:
            now = time.monotonic()
            if now - started > LONG_LOOK_SECONDS:  # then rest as long: others want to be told so, and /health answered
                self._doubt, self._look_again = exc.detail, now + (now - started)
            raise
        self.seen = time.monotonic()

    def _refresh(self) -> None:
        try:
            if self._store is None:
                self._store = self._open_store()
                self._version = None
            version = self._store.version()
            if version != self._version:
                self._follow(self._store)
                self._version = version
        except errors.Unavailable:
            self._let_go()
            raise

    def check(self) -> None:
        """refresh(), once per turn of the event loop: requests of one turn arrived before it began."""
        if not self._checked:
            self.refresh()
            self._checked = True
            asyncio.get_running_loop().call_soon(self._unchecked)

    def _unchecked(self) -> None:
        self._checked = False

    def _follow(self, store: Store) -> None:
        """Prove that the log goes on from where the fleet stands, and go on with it; or load everything anew."""
        with _trusting():
            self._take_own(store)
            followed = store.follow(self.fleet.head) if self.fleet.epoch else None
            if followed is None:
                self._load(store.snapshot())
                return
            self._go_on(followed)

    def _go_on(self, followed: Followed) -> None:
        self.fleet.apply(followed.entries, followed.hash)
        self._views, self._opened = followed.views, followed.opened
        self.fleet.heed(followed.views)  # also when they are the same: what clusters refer to may be new

    def _take_own(self, store: Store) -> None:
        """What this very process has just committed need not be read again, however large it is."""
        step = self._step
        if step is not None and step.before == self.fleet.head and store.continues(step.after):
            self.fleet.take(step)

    def _load(self, snapshot: changes.Snapshot) -> None:
        """A log that does not go on from where it was is only taken from those who may say so."""
        before = self.fleet
        if before.epoch and snapshot.epoch != before.epoch and before.epoch not in snapshot.replaced:
            raise errors.Unavailable(
                f"the store is another one now (its epoch is {snapshot.epoch}, not {before.epoch}), and no import says why; "
                "put the right one back, or restart this server if it is meant"
            )
        if before.epoch == snapshot.epoch and self._opened >= snapshot.opened:
            raise errors.Unavailable(
                f"the log ends at revision {snapshot.revision} and does not go on from revision {before.revision}, which was "
                "followed; put the newest files back, or restart the writer if an older state is meant"
            )
        fresh = fleet.Fleet(self.kinds)
        fresh.load(snapshot)
        self.fleet, self._views, self._opened = fresh, snapshot.views, snapshot.opened
        if before.epoch:
            told = {"before": before.revision, "now": fresh.revision}
            log.warning("the log does not go on from where it was: everything was loaded anew", extra=told)
        if fresh.unknown:
            log.warning("documents of unknown kinds are kept, not served", extra={"kinds": ", ".join(fresh.unknown)})
        for doubt in fresh.doubts.values():
            log.error(doubt)
        skipped = fresh.dangling()
        if skipped:
            shown = ", ".join(f"{kind}/{id} of {cluster}" for cluster, kind, id in skipped[:20])
            log.warning("references without a definition", extra={"count": len(skipped), "first": shown})

    def take_charge(self) -> None:
        """What a writer does first: refuse kinds that would make a view lose its data, and vouch for the store as it is."""
        if self.fleet.doubts:
            raise errors.StartupError("; ".join(dict.fromkeys(self.fleet.doubts.values())))
        wanted = views.remembered(self._views, self.kinds)
        try:
            self._begin_now().commit(None, charge=_charge(wanted))
        except errors.Unavailable as exc:
            if wanted != self._views:
                raise
            log.warning("cannot write: %s", exc)  # a full disk is no reason not to serve
        self.refresh()

    def snapshot(self) -> changes.Snapshot:
        """Everything the store holds, of whatever kind, known here or not. Grows with documents."""
        self.refresh()
        assert self._store is not None
        return self._store.snapshot()

    def finding(self, query: changes.Query) -> Callable[[], list[Entry]]:
        """The search of the log, to be called in a thread: it grows with what it finds."""
        return functools.partial(self.finder(), query)

    def finder(self) -> Callable[[changes.Query], list[Entry]]:
        """The same, for more than one search in the log as it is now."""
        self.refresh()
        assert self._store is not None
        return self._store.find

    def close(self) -> None:
        """In order; of what is in doubt nothing is touched."""
        if self._store is not None:
            with contextlib.suppress(errors.Unavailable):
                self.refresh()
                self._store.settle()
        self._let_go()

    def _let_go(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None

    # Rehearsing

    async def rehearse(self, work: Work[T], origin: Origin, budget: Budget) -> tuple[T, Entry | None]:
        """Run the work on a draft and write nothing: without the store, a lock, or anything that others wait for."""
        await self._stage()
        try:
            if self._stopping:
                raise _stops()
            self.refresh()
            self._rehearsing.add(budget)
            return await asyncio.get_running_loop().run_in_executor(
                self._stages, _rehearse, work, origin, drafts.Draft(self.fleet.still(), budget)
            )
        except asyncio.CancelledError:
            budget.stop(errors.Unavailable("nobody waits for this any more"))
            raise
        finally:
            self._rehearsing.discard(budget)
            self._free_stages.release()

    def stop_rehearsals(self) -> None:
        """Whoever waits for one is told so at once, and none begins any more."""
        self._stopping = True
        for budget in self._rehearsing:
            budget.stop(_stops())

    async def _stage(self) -> None:
        try:
            await asyncio.wait_for(self._free_stages.acquire(), STAGE_SECONDS)
        except TimeoutError:
            raise errors.Unavailable(
                f"{STAGES} dry runs are under way, and more would slow everybody down; try again in a moment",
                headers={"Retry-After": str(STAGE_SECONDS)},
            ) from None

    # Writing

    async def write(self, work: Work[T], origin: Origin, budget: Budget | None = None) -> tuple[T, Entry | None]:
        """Run the work on a draft and commit what it made, as one transaction; no entry when nothing changed."""
        return await self._shielded(self._write(work, origin, None, budget))

    async def write_once(self, work: Work[T], origin: Origin, once: Once[T], budget: Budget | None = None) -> bytes:
        """The same, but a request that was carried out before gets its first answer again."""
        try:
            await self._shielded(self._write(work, origin, once, budget))
        except _Answered as answered:
            return answered.body
        return once.body

    async def _shielded(self, writing: Coroutine[Any, Any, T]) -> T:
        """Not cancelled with its request: a half-waited commit would leave the caller without the truth."""
        task = asyncio.ensure_future(writing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _write(self, work: Work[T], origin: Origin, once: Once[T] | None, budget: Budget | None) -> tuple[T, Entry | None]:
        run = functools.partial(asyncio.get_running_loop().run_in_executor, self._writer)
        async with self._writing:
            self.refresh()
            assert self._store is not None
            # waiting for another process and for the disk must not hold up polls, hence the thread;
            # nobody else can commit while the transaction is open, so the fleet stands still meanwhile
            transaction, followed = await run(_begin, self._store, self.fleet.head)
            self._catch_up(transaction, followed)
            try:
                result, entry = await run(
                    self._execute, transaction, drafts.Draft(self.fleet.still(), budget), work, origin, once
                )
                return result, self._published(entry)
            finally:
                self._step = None  # also when the commit failed

    def write_now(self, work: Work[T], origin: Origin) -> tuple[T, Entry | None]:
        """The same without an event loop, for start-up and commands."""
        transaction = self._begin_now()
        result, entry = self._execute(transaction, drafts.Draft(self.fleet.still()), work, origin, None)
        return result, self._published(entry)

    def restore(self, build: Callable[[fleet.Fleet], tuple[changes.Snapshot, list[Entry]]]) -> None:
        """Put a whole fleet with its log, built from what is there, in the place of everything."""
        transaction = self._begin_now()
        with _rolling_back(transaction):
            snapshot, history = build(self.fleet)
        transaction.restore(snapshot, history)
        self.refresh()

    def record(
        self, build: Callable[[changes.Snapshot], tuple[tuple[changes.Change, ...], tuple[changes.View, ...]]], origin: Origin
    ) -> Entry | None:
        """Write changes to documents of whatever kind, known here or not, and the views that remain; nothing checks them."""
        transaction = self._begin_now()
        with _rolling_back(transaction):
            made, known = build(transaction.snapshot())
            now = datetime.datetime.now(datetime.UTC)
            entry = _entry(self.fleet.revision + 1, origin, now, changes=made, forced=True) if made else None
        transaction.commit(entry, charge=_charge(known))
        self.refresh()
        return entry

    def _begin_now(self) -> Transaction:
        self.refresh()
        assert self._store is not None
        transaction, followed = _begin(self._store, self.fleet.head)
        self._catch_up(transaction, followed)
        return transaction

    def _catch_up(self, transaction: Transaction, followed: Followed | None) -> None:
        """A write goes on top of exactly what the fleet holds, or not at all."""
        with _rolling_back(transaction), _trusting():
            if followed is None:
                raise errors.Unavailable("the store was replaced or went back just now; try again")
            self._go_on(followed)

    def _execute(
        self, transaction: Transaction, draft: drafts.Draft, work: Work[T], origin: Origin, once: Once[T] | None
    ) -> tuple[T, Entry | None]:
        """Work, check and commit; what it means to the fleet is worked out before, for polls see it from the commit on."""
        now = datetime.datetime.now(datetime.UTC)
        forget_before = changes.timestamp(now - KEPT)
        wanted = views.remembered(self._views, self.kinds)
        with _rolling_back(transaction):
            for doubt in draft.base.doubts.values():  # of views that another process serves with other kinds
                raise errors.Unavailable(doubt)
            if once is not None:
                _check_repeated(transaction.recall(once.key), once, forget_before)
            result = work(draft)
            entry = _finished(draft, origin, now)
            if entry is None and once is None:
                transaction.rollback()
                return result, None
            memo = None
            if once is not None:
                once.body = once.render(result, entry)
                memo = Memo(once.key, changes.timestamp(now), once.digest, once.body)
            hash = changes.chained(draft.base.hash, entry) if entry else None
            self._step = draft.base.step(entry, hash or "") if entry else None
        # another process may have made the store forget what this one writes documents for
        charge = _charge(wanted) if wanted != self._views else None
        transaction.commit(entry, memo, forget_before, charge, hash)
        for warning in draft.warnings:
            log.warning(warning, extra={"actor": origin.actor, "request_id": origin.request_id})
        return result, entry

    def _published(self, entry: Entry | None) -> Entry | None:
        if entry is not None:
            if self._step is not None and self._step.before == self.fleet.head:  # else a poll was faster
                self.fleet.take(self._step)
            log.info(
                "changed",
                extra={
                    "revision": entry.revision,
                    "actor": entry.actor,
                    "on_behalf_of": entry.on_behalf_of,
                    "request_id": entry.request_id,
                    "reason": entry.reason,
                    "forced": entry.forced,
                    "changes": len(entry.changes),
                    "first": [f"{c.operation} {c.kind}/{c.id}" for c in entry.changes[:5]],
                },
            )
        return entry


def _stops() -> errors.Unavailable:
    return errors.Unavailable("the server stops; ask again")


def _rehearse(work: Work[T], origin: Origin, draft: drafts.Draft) -> tuple[T, Entry | None]:
    result = work(draft)
    return result, _finished(draft, origin, datetime.datetime.now(datetime.UTC))


def _finished(draft: drafts.Draft, origin: Origin, now: datetime.datetime) -> Entry | None:
    """The entry that a draft makes, once it was checked as a whole; None when nothing changes."""
    content = {"changes": draft.finish(), "retired": draft.retired(), "forgone": draft.forgone()}
    if not any(content.values()):
        return None
    return _entry(draft.base.revision + 1, origin, now, **content, vanished=draft.vanished(), forced=draft.forced)


def _charge(known: tuple[changes.View, ...]) -> changes.Charge:
    return changes.Charge(known, changes.timestamp(datetime.datetime.now(datetime.UTC)))


def _entry(revision: int, origin: Origin, now: datetime.datetime, **content: Any) -> Entry:
    return Entry(
        revision=revision,
        time=changes.timestamp(now),
        actor=origin.actor,
        on_behalf_of=origin.on_behalf_of,
        request_id=origin.request_id,
        reason=origin.reason,
        **content,
    )


def _begin(store: Store, head: changes.Head) -> tuple[Transaction, Followed | None]:
    transaction = store.begin()
    with _rolling_back(transaction):
        return transaction, transaction.follow(head)


@contextlib.contextmanager
def _rolling_back(transaction: Transaction) -> Iterator[None]:
    """Unless all goes well."""
    try:
        yield
    except BaseException:
        transaction.rollback()
        raise


@contextlib.contextmanager
def _trusting() -> Iterator[None]:
    """What the store holds was checked when it was written, so it is only looked at as it is used."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as exc:
        raise errors.Unavailable(f"a stored document is damaged ({exc!r}); restore a backup") from exc


class _Answered(Exception):
    """Not an error: the request was carried out before."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


def _check_repeated(memo: Memo | None, once: Once[T], forget_before: str) -> None:
    if memo is None or memo.time < forget_before:
        return
    if memo.digest != once.digest:
        raise errors.KeyReused("Idempotency-Key was used for another request within 24 hours; use a new one")
    raise _Answered(memo.body)
