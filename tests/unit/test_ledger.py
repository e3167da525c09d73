"""The ledger: one door to the store, true to the log before every answer."""

from __future__ import annotations

import asyncio
import datetime
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import changes, drafts, effects, errors, guards, outcomes, plans, views
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Entry, Snapshot, Stored
from flux_resourceset.fleet import Fleet
from flux_resourceset.follower import Follower
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger, utc_now
from flux_resourceset.store.memory import MemoryStore, MemoryTransaction
from flux_resourceset.store.sqlite import SqliteStore
from unit import samples
from unit.samples import ORIGIN, cluster, create, namespace, refused, write

KNOWN = kind_files.load()
NAMESPACES = KNOWN.referenced_by_name["namespaces"]


def test_revisions_are_one_two_three() -> None:
    ledger = samples.ledger_of(KNOWN)
    entries = [create(ledger, "namespaces", namespace(id)) for id in ("a", "b", "c")]
    assert [entry.revision for entry in entries if entry] == [1, 2, 3]
    assert [entry.revision for entry in samples.history(ledger)] == [1, 2, 3]


def test_an_entry_says_who_when_and_why() -> None:
    noon = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    ledger = samples.ledger_of(KNOWN, clock=lambda: noon)
    origin = changes.Origin("robot", on_behalf_of="jane", request_id="r-1", reason="because")
    entry = ledger.write_now(lambda draft: draft.create(NAMESPACES, namespace("a")), origin).entry
    assert entry is not None
    assert (entry.actor, entry.on_behalf_of, entry.request_id, entry.reason) == ("robot", "jane", "r-1", "because")
    assert entry.time == "2026-01-01T12:00:00.000000Z"
    assert samples.history(ledger) == [entry]


def test_unless_it_is_given_another_clock_it_is_now() -> None:
    before = datetime.datetime.now(datetime.UTC)
    assert before <= utc_now() <= datetime.datetime.now(datetime.UTC)
    written = create(samples.ledger_of(KNOWN), "namespaces", namespace("a"))
    assert written is not None
    assert written.time >= changes.timestamp(before)


def test_a_refused_write_lets_the_next_one_in() -> None:
    ledger = samples.ledger_of(KNOWN)
    refused(errors.NotFound, ledger, lambda draft: draft.delete(NAMESPACES, "ghost"))
    assert create(ledger, "namespaces", namespace("a")) is not None


def test_a_write_that_fails_by_a_mistake_lets_the_next_one_in() -> None:
    ledger = samples.ledger_of(KNOWN)

    def broken(draft: drafts.Draft) -> None:
        draft.create(NAMESPACES, namespace("a"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(ledger, broken)
    assert create(ledger, "namespaces", namespace("b")) is not None
    assert set(ledger.fleet.documents["namespaces"]) == {"b"}


@pytest.mark.parametrize("exception", [ZeroDivisionError, KeyboardInterrupt])
def test_a_write_that_fails_in_its_thread_lets_the_next_one_in(exception: type[BaseException]) -> None:
    ledger = samples.ledger_of(KNOWN)

    def broken(draft: drafts.Draft) -> None:
        raise exception

    with pytest.raises(exception):
        asyncio.run(ledger.write(broken, ORIGIN))
    assert asyncio.run(ledger.write(lambda draft: draft.create(NAMESPACES, namespace("b")), ORIGIN)).revision == 1


# The outcome


def test_the_outcome_of_a_write_tells_result_entry_warnings_and_revision(caplog: pytest.LogCaptureFixture) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", namespace("used"))
    create(ledger, "clusters", cluster("c1", namespaces=[{"id": "used"}]))

    def work(draft: drafts.Draft) -> str:
        draft.delete(NAMESPACES, "used", force=True)
        return "done"

    for outcome in (asyncio.run(ledger.rehearse(work, ORIGIN, Budget())), asyncio.run(ledger.write(work, ORIGIN))):
        assert (outcome.result, outcome.base_revision, outcome.revision) == ("done", 2, 3)
        assert outcome.entry is not None
        assert outcome.entry.forced
        (warning,) = outcome.warnings
        assert "used" in warning
    assert caplog.text.count(warning) == 1  # a dry run is not worth a word


def test_the_outcome_of_a_write_that_changes_nothing_has_no_entry() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", namespace("a"))
    for outcome in (
        ledger.write_now(lambda draft: draft.merge(NAMESPACES, "a", {}), ORIGIN),
        asyncio.run(ledger.write(lambda draft: draft.merge(NAMESPACES, "a", {}), ORIGIN)),
        asyncio.run(ledger.rehearse(lambda draft: draft.merge(NAMESPACES, "a", {}), ORIGIN, Budget())),
    ):
        assert (outcome.entry, outcome.base_revision, outcome.revision) == (None, 1, 1)
    assert create(ledger, "namespaces", namespace("b")) is not None


def test_many_warnings_are_shown_as_the_first_and_how_many_more() -> None:
    ledger = samples.ledger_of(KNOWN)

    def work(draft: drafts.Draft) -> None:
        for number in range(25):
            draft.warn(f"warning {number}")

    outcome = ledger.write_now(work, ORIGIN)
    assert len(outcome.warnings) == 25
    assert outcome.shown_warnings == [*(f"warning {number}" for number in range(10)), "and 15 more warnings"]
    assert outcomes.first(outcome.warnings, 25) == list(outcome.warnings)


def test_a_refusal_of_the_whole_is_explained_and_one_of_the_work_is_not() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", namespace("used"))
    create(ledger, "clusters", cluster("c1", namespaces=[{"id": "used"}]))

    def explained(refusal: errors.Refusal) -> errors.Refusal:
        refusal.extra["explained"] = True
        return refusal

    with pytest.raises(errors.InUse) as whole:
        asyncio.run(ledger.write(lambda draft: draft.delete(NAMESPACES, "used"), ORIGIN, explain=explained))
    with pytest.raises(errors.NotFound) as alone:
        asyncio.run(ledger.rehearse(lambda draft: draft.delete(NAMESPACES, "ghost"), ORIGIN, Budget(), explained))
    assert whole.value.extra["explained"]
    assert "explained" not in alone.value.extra


# Dry runs


def test_a_dry_run_writes_nothing() -> None:
    ledger = samples.ledger_of(KNOWN)
    asyncio.run(_dry_run(ledger))
    assert ledger.fleet.revision == 0
    assert samples.history(ledger) == []


async def _dry_run(ledger: Ledger) -> None:
    await ledger.rehearse(lambda draft: draft.create(NAMESPACES, namespace("a")), ORIGIN, Budget())
    with pytest.raises(errors.AlreadyExists):
        await ledger.rehearse(_twice, ORIGIN, Budget())


def test_a_cancelled_dry_run_stops() -> None:
    work = _Endless()

    async def cancel(ledger: Ledger) -> None:
        dry_run = await work.begin(ledger)
        dry_run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dry_run

    asyncio.run(cancel(samples.ledger_of(KNOWN)))
    assert isinstance(work.refusal.get(), errors.Unavailable)


def test_a_server_that_stops_ends_dry_runs_and_begins_no_more() -> None:
    work = _Endless()

    async def stop(ledger: Ledger) -> None:
        dry_run = await work.begin(ledger)
        ledger.stop_rehearsals()
        with pytest.raises(errors.Unavailable, match="the server stops"):
            await dry_run
        with pytest.raises(errors.Unavailable, match="the server stops"):
            await ledger.rehearse(lambda draft: None, ORIGIN, Budget())

    asyncio.run(stop(samples.ledger_of(KNOWN)))


class _Endless:
    """Work that ends only by its budget."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.refusal = queue.SimpleQueue[errors.Refusal]()

    async def begin(self, ledger: Ledger) -> asyncio.Task[Any]:
        dry_run = asyncio.create_task(ledger.rehearse(self, ORIGIN, Budget(seconds=20, clock=time.monotonic)))
        await asyncio.to_thread(self.began.wait)
        return dry_run

    def __call__(self, draft: drafts.Draft) -> None:
        self.began.set()
        try:
            while True:
                draft.budget.spend(0)
        except errors.Refusal as refusal:
            self.refusal.put(refusal)
            raise


def _twice(draft: drafts.Draft) -> None:
    draft.create(NAMESPACES, namespace("a"))
    draft.create(NAMESPACES, namespace("a"))


def test_many_writers_lose_nothing() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", *(namespace(f"n{number}") for number in range(20)))
    create(ledger, "clusters", cluster("c1"))

    def assigning(id: str) -> Callable[[drafts.Draft], None]:
        return lambda draft: draft.assign("c1", NAMESPACES, id, {})

    async def all_at_once() -> None:
        await asyncio.gather(*(ledger.write(assigning(f"n{number}"), ORIGIN) for number in range(20)))

    asyncio.run(all_at_once())
    assert {reference["id"] for reference in samples.stored(ledger, "clusters", "c1")["namespaces"]} == {
        f"n{number}" for number in range(20)
    }
    assert ledger.fleet.revision == 22


def test_a_cancelled_request_does_not_cancel_its_write() -> None:
    ledger = samples.ledger_of(KNOWN)

    async def given_up() -> None:
        writing = asyncio.ensure_future(ledger.write(lambda d: d.create(NAMESPACES, namespace("a")), ORIGIN))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await ledger.write(lambda d: d.create(NAMESPACES, namespace("b")), ORIGIN)

    asyncio.run(given_up())
    assert set(ledger.fleet.documents["namespaces"]) == {"a", "b"}


def test_two_ledgers_on_one_store_see_each_other_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    writer = samples.ledger_of(KNOWN, SqliteStore(path))
    other = samples.ledger_of(KNOWN, SqliteStore(path))
    reader = samples.ledger_of(KNOWN, SqliteStore(path, read_only=True))
    for number in range(5):
        create((writer, other)[number % 2], "namespaces", namespace(f"n{number}"))
        reader.follower.refresh()
        assert reader.fleet.revision == number + 1
        assert f"n{number}" in reader.fleet.documents["namespaces"]
    for ledger in (writer, other, reader):
        ledger.close()


@pytest.mark.parametrize("ids", [(), ("a", "b")])
def test_what_is_recorded_unchecked_has_an_outcome_like_any_write(ids: tuple[str, ...]) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", namespace("here"))
    made = tuple(changes.Change("unknown", id, "create", None, {"id": id}) for id in ids)
    outcome = ledger.record(lambda state: (made, state.views), ORIGIN)
    assert (outcome.base_revision, outcome.revision, outcome.warnings) == (1, 2 if ids else 1, ())
    assert (outcome.entry and outcome.entry.changes) == (made or None)
    assert ledger.fleet.revision == outcome.revision


def test_a_store_put_in_the_place_of_another_is_read_anew() -> None:
    store = MemoryStore()
    ledger, other = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    create(ledger, "namespaces", namespace("a"))
    other.follower.refresh()

    def build(state: Fleet) -> tuple[Snapshot, list[Entry]]:
        return Snapshot("new", 0, {}, ()), []

    outcome = ledger.restore(build, samples.nothing_planned, ("a warning",))
    assert (outcome.entry, outcome.revision, outcome.warnings) == (None, 0, ("a warning",))
    assert ledger.fleet.epoch == "new"
    other.follower.refresh()
    assert other.fleet.epoch == "new"
    assert other.fleet.documents["namespaces"] == {}
    create(other, "namespaces", namespace("b"))
    assert other.fleet.revision == 1


def test_a_store_put_in_the_place_of_another_is_written_to_at_once() -> None:
    store = MemoryStore()
    ledger, other = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    create(ledger, "namespaces", namespace("a"))
    ledger.restore(lambda state: (Snapshot("new", 0, {}, ()), []), samples.nothing_planned)
    asyncio.run(other.write(lambda draft: draft.create(NAMESPACES, namespace("b")), ORIGIN))
    assert set(other.fleet.documents["namespaces"]) == {"b"}


def test_a_restore_that_refuses_leaves_everything_as_it_was() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", namespace("a"))

    def build(state: Fleet) -> tuple[Snapshot, list[Entry]]:
        raise errors.Conflict("no")

    with pytest.raises(errors.Conflict):
        ledger.restore(build, samples.nothing_planned)
    assert create(ledger, "namespaces", namespace("b")) is not None


def test_a_damaged_document_is_doubt(tmp_path: Path) -> None:
    store = MemoryStore()
    change = changes.Change("clusters", "c1", "create", None, {"cluster_dns": "x", "namespaces": [1]})
    store.begin().commit(Entry(1, "2026-01-01T00:00:00.000000Z", "t", None, None, None, False, (change,)))
    with pytest.raises(errors.Unavailable, match="damaged"):
        Ledger(Follower(KNOWN, lambda: store)).follower.refresh()


def test_a_damaged_entry_is_doubt_for_those_who_follow_the_log() -> None:
    store = MemoryStore()
    ledger = samples.ledger_of(KNOWN, store)
    change = changes.Change("clusters", "c1", "create", None, {"id": "c1"})
    store.documents["clusters"] = {"c1": Stored({"id": "c1"}, 1)}
    store.log.append(Entry(1, "2026-01-01T00:00:00.000000Z", "t", None, None, None, False, (change,)))
    with pytest.raises(errors.Unavailable, match="damaged"):
        ledger.follower.refresh()


def test_a_look_at_a_bad_store_is_followed_by_a_rest_as_long() -> None:
    now = [100.0]
    looks = []

    def look() -> MemoryStore:
        looks.append(now[0])
        now[0] += 0.5
        raise errors.Unavailable("broken")

    ledger = Ledger(Follower(KNOWN, look, lambda: now[0]))
    for later in (0, 0, 0.499, 0.001):
        now[0] += later
        with pytest.raises(errors.Unavailable, match="broken"):
            ledger.follower.refresh()
    assert looks == [100.0, 101.0]


def test_a_short_look_at_a_bad_store_is_followed_by_the_next() -> None:
    looks = []

    def look() -> MemoryStore:
        looks.append(1)
        raise errors.Unavailable("broken")

    ledger = Ledger(Follower(KNOWN, look, lambda: 100.0))
    for _ in range(3):
        with pytest.raises(errors.Unavailable, match="broken"):
            ledger.follower.refresh()
    assert len(looks) == 3


def test_a_file_that_came_back_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    writer = samples.ledger_of(KNOWN, SqliteStore(path))
    create(writer, "namespaces", namespace("a"))
    writer.close()
    reader = Ledger(Follower(KNOWN, lambda: SqliteStore(path, read_only=True)))
    reader.follower.refresh()
    path.rename(tmp_path / "away.db")
    for _ in range(2):
        with pytest.raises(errors.Unavailable):
            reader.follower.refresh()
    (tmp_path / "away.db").rename(path)
    reader.follower.refresh()
    assert set(reader.fleet.documents["namespaces"]) == {"a"}
    reader.close()


class Overtaken(MemoryStore):
    """One to which something happens between the last look and the beginning of a transaction."""

    happens: Callable[[], object] | None = None

    def begin(self) -> MemoryTransaction:
        happening, self.happens = self.happens, None
        if happening is not None:
            happening()
        return super().begin()


def test_a_write_sees_what_was_written_since_its_last_look() -> None:
    store = Overtaken()
    ledger, other = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    store.happens = lambda: create(other, "namespaces", namespace("a"))
    with pytest.raises(errors.AlreadyExists):
        create(ledger, "namespaces", namespace("a"))
    entry = create(ledger, "namespaces", namespace("b"))
    assert entry is not None
    assert entry.revision == 2


def test_a_write_on_a_store_that_was_replaced_just_now_is_doubt_and_the_next_goes_on() -> None:
    store = Overtaken()
    ledger, other = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    store.happens = lambda: other.restore(lambda state: (Snapshot("new", 0, {}, ()), []), samples.nothing_planned)
    with pytest.raises(errors.Unavailable):
        create(ledger, "namespaces", namespace("a"))
    assert store.log == []
    assert create(ledger, "namespaces", namespace("b")) is not None


class Watched(MemoryStore):
    """One to which something happens behind a commit, before whoever committed goes on."""

    happens: Callable[[], object] | None = None

    def begin(self) -> MemoryTransaction:
        self.lock.acquire()
        return WatchedTransaction(self)


class WatchedTransaction(MemoryTransaction):
    def commit(self, *args: Any, **kwargs: Any) -> str:
        end = super().commit(*args, **kwargs)
        assert isinstance(self._store, Watched)
        happening, self._store.happens = self._store.happens, None
        if happening is not None:
            happening()
        return end


@pytest.mark.parametrize("another", [False, True])
def test_a_poll_that_is_faster_than_the_writer_takes_what_it_committed_and_whatever_came_then(another: bool) -> None:
    store = Watched()
    ledger, other = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    create(ledger, "namespaces", namespace("a"))
    polled = []

    def happening() -> None:
        if another:
            write(other, lambda draft: draft.merge(NAMESPACES, "a", {"labels": {"by": "other"}}))
        ledger.follower.refresh()
        polled.append(samples.stored(ledger, "namespaces", "a")["labels"])

    store.happens = happening
    outcome = asyncio.run(ledger.write(lambda draft: draft.merge(NAMESPACES, "a", {"labels": {"by": "me"}}), ORIGIN))
    assert outcome.revision == 2
    assert ledger.fleet.revision == (3 if another else 2)
    assert polled == [samples.stored(ledger, "namespaces", "a")["labels"]] == [{"by": "other" if another else "me"}]


def test_what_is_skipped_or_not_served_is_told_once_it_is_loaded(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    ledger = samples.ledger_of(KNOWN, store)
    create(ledger, "namespaces", namespace("lost"))
    create(ledger, "clusters", cluster("c1", namespaces=[{"id": "lost"}]))
    samples.ledger_of(KNOWN, store)
    assert "references without a definition" not in caplog.text
    write(ledger, lambda draft: draft.delete(NAMESPACES, "lost", force=True))
    caplog.clear()
    samples.ledger_of(KNOWN, store)
    assert "references without a definition" in caplog.text
    assert "unknown kinds" not in caplog.text


class Full(MemoryStore):
    """One that can be read, and not be written to."""

    def begin(self) -> MemoryTransaction:
        raise errors.Unavailable("the disk is full")


def test_a_writer_that_cannot_write_starts_only_if_the_store_knows_its_views_already() -> None:
    store = Full()
    with pytest.raises(errors.Unavailable, match="full"):
        samples.ledger_of(KNOWN, store).take_charge()
    store._views = views.remembered((), KNOWN)
    samples.ledger_of(KNOWN, store).take_charge()


def test_a_writer_vouches_for_the_store_before_its_first_write() -> None:
    store = MemoryStore()
    samples.ledger_of(KNOWN, store).take_charge()
    reader = samples.ledger_of(KNOWN, store)
    assert reader.follower.views == views.remembered((), KNOWN)
    assert reader.fleet.revision == 0


def test_a_write_does_not_vouch_for_the_store_again() -> None:
    """Whoever follows takes an older state only from a writer that was started later."""
    ledger = samples.ledger_of(KNOWN)
    ledger.take_charge()
    vouched = ledger.follower.store.snapshot().opened
    create(ledger, "namespaces", namespace("a"))
    assert ledger.follower.store.snapshot().opened == vouched != ""


class Counted(MemoryStore):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_store_is_closed_with_its_ledger() -> None:
    store = Counted()
    samples.ledger_of(KNOWN, store).close()
    assert store.closed == 1


# Guards at the door


def frozen_ledger() -> Ledger:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "namespaces", namespace("used"))
    create(ledger, "clusters", cluster("c1", namespaces=[{"id": "used"}]))
    create(ledger, "freezes", {"id": "f", "reason": "r", "environment": "dev"})
    return ledger


def test_a_write_that_overrides_a_freeze_is_forced_and_others_are_not() -> None:
    ledger = frozen_ledger()

    def labelled(draft: drafts.Draft) -> None:
        draft.merge(NAMESPACES, "used", {"labels": {"x": "y"}})

    with pytest.raises(errors.Frozen):
        asyncio.run(ledger.write(labelled, ORIGIN))
    forced = asyncio.run(ledger.write(labelled, ORIGIN, consent=guards.Consent(freezes=frozenset({"f"})))).entry
    assert forced is not None
    assert forced.forced
    assert samples.history(ledger)[-1].forced
    untouched = asyncio.run(ledger.write(lambda draft: draft.create(NAMESPACES, namespace("b")), ORIGIN)).entry
    assert untouched is not None
    assert not untouched.forced
    nothing = asyncio.run(ledger.write(labelled, ORIGIN, consent=guards.Consent(freezes=frozenset({"f"}))))
    assert nothing.entry is None


def test_a_dry_run_is_held_up_by_another_plan_and_not_by_guards() -> None:
    ledger = frozen_ledger()

    def deleted(draft: drafts.Draft) -> None:
        draft.delete(KNOWN.clusters, "c1")

    outcome = asyncio.run(ledger.rehearse(deleted, ORIGIN, Budget()))
    assert [freeze.id for freeze in outcome.guards.freezes] == ["f"]
    agreed = guards.Consent(plan=plans.identity(outcome.entry, outcome.effect))
    assert asyncio.run(ledger.rehearse(deleted, ORIGIN, Budget(), consent=agreed)).entry is not None
    with pytest.raises(errors.PlanChanged):
        asyncio.run(ledger.rehearse(deleted, ORIGIN, Budget(), consent=guards.Consent(plan="0" * 32)))
    with pytest.raises(errors.PlanChanged):  # before freezes are asked
        asyncio.run(ledger.write(deleted, ORIGIN, consent=guards.Consent(plan="0" * 32)))


def test_a_start_is_not_held_up_and_commands_are() -> None:
    ledger = frozen_ledger()
    with pytest.raises(errors.Frozen):
        ledger.write_now(lambda draft: draft.delete(KNOWN.clusters, "c1"), ORIGIN, guards.NO_CONSENT)
    assert ledger.write_now(lambda draft: draft.delete(KNOWN.clusters, "c1"), ORIGIN).entry is not None


def test_what_is_recorded_or_restored_passes_guards_too() -> None:
    ledger = frozen_ledger()
    gone = changes.Change("clusters", "c1", "delete", samples.stored(ledger, "clusters", "c1"), None)
    with pytest.raises(errors.Frozen):
        ledger.record(lambda state: ((gone,), ()), ORIGIN)

    def planned(state: Fleet) -> tuple[Entry, effects.Effect]:
        return Entry(0, "", "", None, None, None, False, (gone,)), effects.of(state, [gone])

    with pytest.raises(errors.Frozen):
        ledger.restore(lambda state: (Snapshot("new", 0, {}, ()), []), planned)
    assert ledger.fleet.revision == 3
    outcome = ledger.rehearse_restore(planned, ("w",))
    assert (outcome.base_revision, outcome.warnings, outcome.guards.freezes[0].clusters) == (0, ("w",), ["c1"])
    passed = ledger.record(lambda state: ((gone,), ()), ORIGIN, guards.Consent(freezes=frozenset({"f"})))
    assert (passed.base_revision, passed.revision, passed.effect.count(effects.REMOVED)) == (3, 4, 1)
