"""The one door for writes: transactions on top of exactly what the fleet holds, and dry runs beside it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import functools
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from flux_resourceset import changes, drafts, effects, errors, guards, plans, records, views
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Entry, Origin
from flux_resourceset.effects import Effect
from flux_resourceset.fleet import Fleet
from flux_resourceset.follower import Follower
from flux_resourceset.guards import NO_CONSENT, Consent
from flux_resourceset.news import damage_reported
from flux_resourceset.outcomes import Answered, Idempotency, Outcome
from flux_resourceset.store import Followed, Memo, Store, Transaction

log = logging.getLogger(__name__)

DRY_RUNS_AT_ONCE = 2  # they share one interpreter with the polls
DRY_RUN_WAIT_SECONDS = 2  # for one of them to end
KEPT = datetime.timedelta(hours=24)  # how long an answer is kept under its idempotency key

T = TypeVar("T")
Work = Callable[[drafts.Draft], T]
Explain = Callable[[errors.Refusal], errors.Refusal]
Clock = Callable[[], datetime.datetime]
Planned = Callable[[Fleet], tuple[Entry, Effect]]  # what something does to a fleet, and to its answers


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def as_it_is(refusal: errors.Refusal) -> errors.Refusal:
    return refusal


@dataclass(frozen=True, slots=True)
class _Task(Generic[T]):
    work: Work[T]
    origin: Origin
    explain: Explain = as_it_is  # a refusal of the whole, in terms of the request
    consent: Consent | None = NO_CONSENT  # None: no guard is asked
    idempotency: Idempotency[T] | None = None


class Ledger:
    def __init__(self, follower: Follower, clock: Clock = utc_now, limits: guards.Limits = guards.DEFAULT_LIMITS) -> None:
        self.kinds = follower.kinds
        self.limits = limits
        self.follower = follower
        self._clock = clock
        self._writing = asyncio.Lock()
        self._writer = ThreadPoolExecutor(1, "writer")  # so that no other work in threads holds up a write
        self._dry_run_threads = ThreadPoolExecutor(DRY_RUNS_AT_ONCE, "rehearsal")
        self._free_slots = asyncio.Semaphore(DRY_RUNS_AT_ONCE)
        self._rehearsing: set[Budget] = set()
        self._stopping = False
        self._tasks: set[asyncio.Task[object]] = set()
        self.owes_charge = False  # a writer that started while its store was away takes charge with its first transaction

    @property
    def fleet(self) -> Fleet:
        return self.follower.fleet

    def close(self) -> None:
        self.follower.close()

    # Rehearsing

    async def rehearse(
        self, work: Work[T], origin: Origin, budget: Budget, explain: Explain = as_it_is, consent: Consent = NO_CONSENT
    ) -> Outcome[T]:
        """Run the work on a draft and write nothing: without a lock, or anything that others wait for."""
        await self._wait_for_slot()
        try:
            if self._stopping:
                raise _stops()
            still = (await self.follower.fresh()).copied()
            self._rehearsing.add(budget)
            return await asyncio.get_running_loop().run_in_executor(
                self._dry_run_threads, self._rehearse, self._draft(still, budget), _Task(work, origin, explain, consent)
            )
        except asyncio.CancelledError:
            budget.stop(_abandoned)
            raise
        finally:
            self._rehearsing.discard(budget)
            self._free_slots.release()

    def rehearse_now(self, work: Work[T], origin: Origin) -> Outcome[T]:
        """The same without an event loop, for commands."""
        return self._rehearse(self._draft(self.fleet.copied()), _Task(work, origin))

    def _rehearse(self, draft: drafts.Draft, task: _Task[T]) -> Outcome[T]:
        try:
            outcome = self._outcome(draft, task, self._clock())
            plans.check(task.consent.plan if task.consent else None, outcome.entry, outcome.effect)
            return outcome
        finally:
            draft.let_go()

    def stop_rehearsals(self) -> None:
        """Whoever waits for one is told so at once, and none begins any more."""
        self._stopping = True
        for budget in self._rehearsing:
            budget.stop(_stops)

    async def _wait_for_slot(self) -> None:
        try:
            await asyncio.wait_for(self._free_slots.acquire(), DRY_RUN_WAIT_SECONDS)
        except TimeoutError:
            raise errors.Unavailable(
                f"{DRY_RUNS_AT_ONCE} dry runs are under way, and more would slow everybody down; try again in a moment",
                headers={"Retry-After": str(DRY_RUN_WAIT_SECONDS)},
            ) from None

    # Writing

    def take_charge(self) -> None:
        """What a writer does first: refuse kinds that would make a view lose its data, and vouch for the store as it is."""
        if self.fleet.doubts:
            raise errors.StartupError("; ".join(dict.fromkeys(self.fleet.doubts.values())))
        wanted = views.remembered(self.follower.views, self.kinds)
        try:
            with self._begin_now() as transaction:
                transaction.commit(None, charge=_charge(wanted, self._clock()))
        except errors.Unavailable as exc:
            if wanted != self.follower.views:
                raise
            log.warning("cannot write: %s", exc)  # a full disk is no reason not to serve
        self.follower.refresh()

    async def write(
        self,
        work: Work[T],
        origin: Origin,
        budget: Budget | None = None,
        explain: Explain = as_it_is,
        consent: Consent | None = NO_CONSENT,
    ) -> Outcome[T]:
        """Run the work on a draft and commit what it made, as one transaction; no entry when nothing changed."""
        outcome, _ = await self._shielded(self._write(_Task(work, origin, explain, consent), budget))
        return outcome

    async def write_once(
        self,
        work: Work[T],
        origin: Origin,
        idempotency: Idempotency[T],
        budget: Budget | None = None,
        explain: Explain = as_it_is,
        consent: Consent = NO_CONSENT,
    ) -> bytes:
        """The same, but a request that was carried out before gets its first answer again."""
        try:
            outcome, answer = await self._shielded(self._write(_Task(work, origin, explain, consent, idempotency), budget))
        except Answered as answered:
            return answered.body
        self._writer.submit(changes.let_go, [] if outcome.entry is None else [outcome.entry])  # nobody else wants it
        del outcome
        return answer

    async def _shielded(self, writing: Coroutine[Any, Any, T]) -> T:
        """Not cancelled with its request: a half-waited commit would leave the caller without the truth."""
        task = asyncio.ensure_future(writing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        finally:
            del task  # an exception of the task refers to this frame, which must not refer to the task

    async def _write(self, task: _Task[T], budget: Budget | None) -> tuple[Outcome[T], bytes]:
        run = functools.partial(asyncio.get_running_loop().run_in_executor, self._writer)
        async with self._writing:
            await self.follower.fresh()
            self.follower.check_reachable()
            head = self.fleet.head
            # waiting for another process and for the disk must not hold up polls, hence the thread;
            # nobody else can commit while the transaction is open, so the fleet stands still meanwhile
            transaction, followed = await run(_begin, self.follower.store, head)
            with contextlib.ExitStack() as until_the_thread_has_it:
                until_the_thread_has_it.enter_context(transaction)
                while _goes_on(followed).entries or self.fleet.head != head:  # came in between
                    if self.fleet.head == head:  # else it was followed to somewhere else meanwhile
                        await self.follower.go_on_in_thread(_goes_on(followed))
                    head = self.fleet.head
                    followed = await run(transaction.follow, head)
                self.follower.go_on(_goes_on(followed))
                until_the_thread_has_it.pop_all()  # nobody may roll back what a thread is committing
            try:
                outcome, answer = await run(
                    self._execute, transaction, self._draft(self.fleet.copied(), budget, transaction), task
                )
                self._publish(outcome.entry)
                return outcome, answer
            finally:
                self.follower.own_step = None  # also when the commit failed

    def write_now(self, work: Work[T], origin: Origin, consent: Consent | None = None) -> Outcome[T]:
        """The same without an event loop, for start-up, which no guard holds up, and commands."""
        transaction = self._begin_now()
        draft = self._draft(self.fleet.copied(), stored=transaction)
        outcome, _ = self._execute(transaction, draft, _Task(work, origin, consent=consent))
        self._publish(outcome.entry)
        return outcome

    def rehearse_restore(self, planned: Planned, warnings: tuple[str, ...]) -> Outcome[None]:
        """What restore() would do to the fleet as it is."""
        entry, effect = planned(self.fleet)
        found = guards.guards(self.limits, self.fleet, entry, effect, self._clock())
        return Outcome(None, entry, warnings, 0, effect, found)

    def restore(
        self,
        build: Callable[[Fleet], tuple[changes.Snapshot, list[Entry]]],
        planned: Planned,
        warnings: tuple[str, ...] = (),
        consent: Consent = NO_CONSENT,
        applied: Sequence[changes.Applied] = (),
    ) -> Outcome[None]:
        """Put a whole fleet with its log, built from what is there, in the place of everything."""
        with self._begin_now() as transaction:
            snapshot, history = build(self.fleet)
            outcome = self.rehearse_restore(planned, warnings)
            _agreed(outcome, consent)
            transaction.restore(snapshot, history, applied)
        self.follower.refresh()
        return dataclasses.replace(outcome, entry=history[-1] if history else None)  # a log of its own begins with nothing

    def record(
        self,
        build: Callable[[changes.Snapshot], tuple[tuple[changes.Change, ...], tuple[changes.View, ...]]],
        origin: Origin,
        consent: Consent = NO_CONSENT,
    ) -> Outcome[None]:
        """Write changes to documents of whatever kind, known here or not, and the views that remain; only guards check them."""
        with self._begin_now() as transaction:
            made, known = build(transaction.snapshot())
            now, base = self._clock(), self.fleet
            entry = _entry(base.revision + 1, origin, now, changes=made, forced=True) if made else None
            effect = effects.of(base, made)
            outcome = Outcome(None, entry, (), base.revision, effect, guards.guards(self.limits, base, entry, effect, now))
            _agreed(outcome, consent)
            transaction.commit(entry, charge=_charge(known, now))
        self.follower.refresh()
        return outcome

    def _begin_now(self) -> Transaction:
        self.follower.refresh()
        transaction, followed = _begin(self.follower.store, self.fleet.head)
        with contextlib.ExitStack() as unless_it_goes_on, damage_reported():
            unless_it_goes_on.enter_context(transaction)
            self.follower.go_on(_goes_on(followed))
            unless_it_goes_on.pop_all()
        return transaction

    def _execute(self, transaction: Transaction, draft: drafts.Draft, task: _Task[T]) -> tuple[Outcome[T], bytes]:
        """Work, check and commit; what came of it, and the answer to keep under an idempotency key."""
        try:
            with transaction:
                outcome, answer = self._commit(transaction, draft, task)
        finally:
            draft.let_go()
        for warning in outcome.shown_warnings:
            log.warning(warning, extra={"actor": task.origin.actor, "request_id": task.origin.request_id})
        return outcome, answer

    def _commit(self, transaction: Transaction, draft: drafts.Draft, task: _Task[T]) -> tuple[Outcome[T], bytes]:
        """What it means to the fleet is worked out before, for polls see it from the commit on."""
        now = self._clock()
        forget_before = changes.timestamp(now - KEPT)
        wanted = views.remembered(self.follower.views, self.kinds)
        for doubt in draft.base.doubts.values():  # of views that another process serves with other kinds
            raise errors.Doubt(doubt)
        if task.idempotency is not None:
            known = transaction.recall(task.idempotency.key)
            if known is not None and known.time >= forget_before:
                transaction.commit(None)  # whoever was told that it is unknown must not hear yes before every standby has it
                task.idempotency.repeat(known.digest, known.body)
        outcome = self._outcome(draft, task, now)
        if task.consent is not None:
            outcome = _agreed(outcome, task.consent)
        entry, applied, memo, answer = outcome.entry, draft.applications(), None, b""
        if task.idempotency is not None:
            answer = task.idempotency.answer(outcome)
            memo = Memo(task.idempotency.key, changes.timestamp(now), task.idempotency.digest, answer)
        elif entry is None and not applied and not self.owes_charge:
            transaction.commit(None)  # likewise: that it is there already may be news to a standby
            return outcome, answer
        hash = changes.chained(draft.base.hash, entry) if entry else None
        self.follower.own_step = draft.base.step(entry, hash or "") if entry else None
        # another process may have made the store forget what this one writes documents for
        charge = _charge(wanted, now) if self.owes_charge or wanted != self.follower.views else None
        transaction.commit(entry, memo, forget_before, charge, hash, applied)
        self.owes_charge = False
        return outcome, answer

    def _draft(self, still: Fleet, budget: Budget | None = None, stored: records.Records | None = None) -> drafts.Draft:
        return drafts.Draft(still, budget, self.limits.protected, stored or self.follower.store)

    def _outcome(self, draft: drafts.Draft, task: _Task[T], now: datetime.datetime) -> Outcome[T]:
        result = task.work(draft)
        try:
            entry = _finished(draft, task.origin, now)
        except errors.Refusal as refusal:
            raise task.explain(refusal) from None
        effect = draft.effect(entry.changes if entry else ())
        found = guards.guards(self.limits, draft.base, entry, effect, now)
        return Outcome(result, entry, tuple(draft.warnings), draft.base.revision, effect, found)

    def _publish(self, entry: Entry | None) -> None:
        if entry is None:
            return
        if self.follower.own_step is not None and self.follower.own_step.before == self.fleet.head:  # else a poll was faster
            self.fleet.take(self.follower.own_step)
        for listener in self.follower.listeners:
            listener()
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


def _stops() -> errors.Unavailable:
    return errors.Unavailable("the server stops; ask again")


def _abandoned() -> errors.Unavailable:
    return errors.Unavailable("nobody waits for this any more")


def _finished(draft: drafts.Draft, origin: Origin, now: datetime.datetime) -> Entry | None:
    """The entry that a draft makes, once it was checked as a whole; None when nothing changes."""
    content = {"changes": draft.finish(), "decommissioned": draft.taken_tombstones(), "forgone": draft.forgone()}
    if not any(content.values()):
        return None
    about = {"vanished": draft.vanished(), "forced": draft.forced, "reverts": draft.reverts}
    return _entry(draft.base.revision + 1, origin, now, **content, **about)


def _agreed(outcome: Outcome[T], consent: Consent) -> Outcome[T]:
    """Refuse what is not the plan that was agreed to, or what a guard holds up; a freeze that is overridden makes it forced."""
    plans.check(consent.plan, outcome.entry, outcome.effect)
    outcome.guards.check(consent)
    if outcome.guards.freezes and outcome.entry is not None:
        return dataclasses.replace(outcome, entry=msgspec.structs.replace(outcome.entry, forced=True))
    return outcome


def _charge(known: tuple[changes.View, ...], now: datetime.datetime) -> changes.Charge:
    return changes.Charge(known, changes.timestamp(now))


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
    with contextlib.ExitStack() as unless_it_is_read:
        transaction = unless_it_is_read.enter_context(store.begin())
        followed = transaction.follow(head)
        unless_it_is_read.pop_all()
        return transaction, followed


def _goes_on(followed: Followed | None) -> Followed:
    """A write goes on top of exactly what the fleet holds, or not at all."""
    if followed is None:
        raise errors.Doubt("the store was replaced or went back just now; try again")
    return followed
