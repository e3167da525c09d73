"""The follower: what it answers while it reads many changes, and how it comes to their end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from flux_resourceset import changes, drafts, errors, follower
from flux_resourceset.ahead import Late
from flux_resourceset.changes import Head, Snapshot, View
from flux_resourceset.follower import Follower
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.ledger import Ledger
from flux_resourceset.store import Followed, Outline
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import ORIGIN, cluster, component, namespace

KNOWN = kind_files.load()
NAMESPACES, COMPONENTS = KNOWN.referenced_by_name["namespaces"], KNOWN.referenced_by_name["platform_components"]
EMPTY = b'{"inputs":[]}'


class SlowStore(MemoryStore):
    """One whose log is read to its end only when it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.may_be_read = threading.Event()
        self.broken = False
        self.happened: list[str] = []

    def follow(self, known: Head) -> Followed | None:
        if threading.current_thread().name.startswith("follower-many"):
            assert self.may_be_read.wait(30)
            if self.broken:
                raise errors.Unavailable("the disk is on fire")
            self.happened.append("read to its end")
        return super().follow(known)

    def begin(self) -> Any:
        self.happened.append("begun to write")
        return super().begin()


def key(id: str, view: str = "namespaces") -> bytes:
    return f"{id}.example.com/{view}".encode()


class Pair:
    """A writer, and somebody who follows it."""

    def __init__(self) -> None:
        self.store = SlowStore()
        self.writer = samples.ledger_of(KNOWN, self.store)
        samples.create(self.writer, "namespaces", namespace("n1"), namespace("n2"))
        samples.create(self.writer, "platform_components", component("p1"))
        parts = {"namespaces": [{"id": "n1"}], "platform_components": [{"id": "p1"}]}
        samples.create(self.writer, CLUSTERS, *(cluster(f"c{number}", **parts) for number in range(4)))
        self.follower = samples.ledger_of(KNOWN, self.store).follower

    def write(self, *works: Callable[[drafts.Draft], Any]) -> None:
        """In one transaction; and then one more change, so that it is never just one."""

        def work(draft: drafts.Draft) -> None:
            for each in works:
                each(draft)
            draft.create(NAMESPACES, namespace(f"more-{draft.base.revision}"))

        samples.write(self.writer, work)

    def truth(self, key: bytes) -> bytes:
        return self.writer.fleet.answer(key)

    async def answered(self, key: bytes, packed: bool = False) -> bytes:
        """While the log is ahead: by those who follow it, without its being read to its end."""
        answer = await self.follower.wait_for_answer(key, packed)
        assert not self.store.may_be_read.is_set()
        return answer


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setattr(follower, "FEW_CHANGES", 1)
    return Pair()


def run(test: Callable[[], Coroutine[Any, Any, None]], pair: Pair) -> None:
    async def bounded() -> None:
        try:
            await asyncio.wait_for(test(), 30)
        finally:
            pair.store.may_be_read.set()

    asyncio.run(bounded())


async def turns_of_the_loop() -> None:
    """So many that whatever waits for nothing else is done."""
    for _ in range(100):
        await asyncio.sleep(0)


def assign(id: str, name: str) -> Callable[[drafts.Draft], Any]:
    return lambda draft: draft.assign(id, NAMESPACES, name, {})


def test_what_was_written_since_has_to_be_read_first(pair: Pair) -> None:
    async def test() -> None:
        pair.follower.answer(key("c0"), False)
        samples.write(pair.writer, assign("c0", "n2"))
        with pytest.raises(Late):
            pair.follower.answer(key("c0"), False)
        assert await pair.answered(key("c0")) == pair.truth(key("c0"))
        assert pair.follower.answer(key("c0"), False) == pair.truth(key("c0"))

    run(test, pair)


def test_what_was_not_changed_is_answered_at_once(pair: Pair) -> None:
    async def test() -> None:
        before = pair.follower.answer(key("c1"), False)
        pair.write(assign("c0", "n2"))
        await pair.follower.catch_up()
        assert pair.follower.answer(key("c1"), False) is before
        assert await pair.answered(key("c0")) == pair.truth(key("c0"))
        assert pair.follower.fleet.revision == 3

    run(test, pair)


def test_what_was_changed_is_answered_as_it_is_now(pair: Pair) -> None:
    async def test() -> None:
        for changed in (key("c0"), key("c1", "platform-components")):
            pair.follower.answer(changed, False)
        pair.write(assign("c0", "n2"), lambda draft: draft.merge(COMPONENTS, "p1", {"oci_tag": "2.0.0"}))
        for changed in (key("c0"), key("c1", "platform-components")):
            for _ in range(2):
                assert await pair.answered(changed) == pair.truth(changed)
            assert await pair.answered(changed, True) == pair.writer.fleet.answer(changed, True)
        assert b"2.0.0" in pair.follower.answer(key("c2", "platform-components"), False)  # the definition was read before
        assert pair.follower.fleet.revision == 3

    run(test, pair)


SINGLE = (("c1", "n1"), ("c0", "n1"), ("c0", "n2"), ("c0", "n3"))  # unchanged, changed, newly assigned, not assigned


def test_single_inputs_are_answered_as_they_are_now(pair: Pair) -> None:
    async def test() -> None:
        unchanged, changed, came, never = (f"{id}.example.com/namespaces/{name}".encode() for id, name in SINGLE)
        before = pair.follower.answer(unchanged, True)
        for each in (came, never):
            with pytest.raises(errors.NotFound):
                pair.follower.answer(each, False)
        pair.follower.answer(changed, False)
        pair.write(
            assign("c0", "n2"),
            lambda draft: draft.create(NAMESPACES, namespace("n3")),
            lambda draft: draft.merge(KNOWN.clusters, "c0", {"cluster_name": "renamed"}),
        )
        for each in (changed, came):
            assert await pair.answered(each) == pair.truth(each)
            assert await pair.answered(each, True) == pair.writer.fleet.answer(each, True)
        assert b"renamed" in await pair.answered(changed)
        assert pair.follower.answer(unchanged, True) is before
        with pytest.raises(errors.NotFound, match="has no namespace 'n3'"):
            await pair.answered(never)
        assert pair.follower.fleet.revision == 3

    run(test, pair)


def test_single_inputs_that_are_still_true_are_kept(pair: Pair) -> None:
    async def test() -> None:
        kept, changed = (f"{id}.example.com/namespaces/n1".encode() for id in ("c1", "c0"))
        before = pair.follower.answer(kept, True)
        pair.follower.answer(changed, True)
        pair.write(lambda draft: draft.merge(KNOWN.clusters, "c0", {"cluster_name": "renamed"}))
        pair.store.may_be_read.set()
        await pair.follower.fresh()
        assert pair.follower.answer(kept, True) is before
        assert pair.follower.answer(changed, True) == pair.writer.fleet.answer(changed, True)
        assert b"renamed" in pair.follower.answer(changed, False)

    run(test, pair)


def test_a_single_input_of_what_was_decommissioned_is_waited_for(pair: Pair) -> None:
    async def test() -> None:
        single = key("c0") + b"/n1"
        pair.follower.answer(single, False)
        pair.write(lambda draft: draft.delete(KNOWN.clusters, "c0"))
        await pair.follower.catch_up()
        with pytest.raises(Late):
            pair.follower.answer(single, False)
        pair.store.may_be_read.set()
        assert await pair.follower.wait_for_answer(single, False) == EMPTY

    run(test, pair)


def test_what_went_on_again_is_answered_as_it_is_then(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"))
        assert await pair.answered(key("c0")) == pair.truth(key("c0"))
        pair.write(lambda draft: draft.unassign("c0", NAMESPACES, "n1"), assign("c1", "n2"))
        for id in ("c0", "c1", "c2"):
            assert await pair.answered(key(id)) == pair.truth(key(id))
        pair.store.may_be_read.set()
        assert (await pair.follower.fresh()).revision == 5
        assert pair.follower.fleet.documents == pair.writer.fleet.documents

    run(test, pair)


@pytest.mark.parametrize(
    ("id", "work"),
    [
        ("new", lambda draft: draft.create(KNOWN.clusters, cluster("new"))),
        ("c0", lambda draft: draft.delete(KNOWN.clusters, "c0")),
        ("c0", lambda draft: draft.delete(NAMESPACES, "n1", True)),
        (
            "c0",
            lambda draft: (draft.delete(KNOWN.clusters, "c0"), draft.create(KNOWN.clusters, cluster("c0", cluster_dns="x.y"))),
        ),
    ],
    ids=["a new cluster", "one that was decommissioned", "a definition deleted by force", "an id that has another name"],
)
def test_what_cannot_be_told_yet_is_waited_for(pair: Pair, id: str, work: Callable[[drafts.Draft], Any]) -> None:
    async def test() -> None:
        pair.write(work)
        await pair.follower.catch_up()
        with pytest.raises(Late):
            pair.follower.answer(key(id), False)
        waiting = asyncio.ensure_future(pair.follower.wait_for_answer(key(id), False))
        await turns_of_the_loop()
        assert not waiting.done()
        pair.store.may_be_read.set()
        assert await waiting == pair.truth(key(id))

    run(test, pair)


def test_a_name_that_nobody_has_any_more_is_waited_for(pair: Pair) -> None:
    async def test() -> None:
        pair.write(
            lambda draft: draft.delete(KNOWN.clusters, "c0"),
            lambda draft: draft.create(KNOWN.clusters, cluster("heir", cluster_dns="c0.example.com")),
        )
        await pair.follower.catch_up()
        with pytest.raises(Late):
            pair.follower.answer(key("c0"), False)
        pair.store.may_be_read.set()
        assert await pair.follower.wait_for_answer(key("c0"), False) == EMPTY == pair.truth(key("c0"))

    run(test, pair)


def test_a_reference_without_a_definition_does_not_make_others_wait(pair: Pair) -> None:
    samples.write(pair.writer, lambda draft: draft.delete(NAMESPACES, "n1", True))
    pair.follower.refresh()

    async def test() -> None:
        pair.write(assign("c0", "n2"))
        assert await pair.answered(key("c0")) == pair.truth(key("c0"))

    run(test, pair)


def test_a_view_that_does_not_exist_is_said_at_once(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"))
        with pytest.raises(errors.NotFound):
            await pair.answered(key("c0", "nothing"))

    run(test, pair)


def test_answers_that_are_still_true_are_kept(pair: Pair) -> None:
    async def test() -> None:
        kept, packed = pair.follower.answer(key("c1"), False), pair.follower.answer(key("c1"), True)
        pair.follower.answer(key("c0"), False)
        pair.write(assign("c0", "n2"))
        pair.store.may_be_read.set()
        await pair.follower.fresh()
        assert pair.follower.answer(key("c1"), False) is kept
        assert pair.follower.answer(key("c1"), True) is packed
        assert pair.follower.answer(key("c0"), False) == pair.truth(key("c0"))
        assert pair.follower.fleet.revision == 4

    run(test, pair)


def test_a_log_that_cannot_be_read_beside_is_read_while_everybody_waits(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"))
        pair.store.broken = True
        pair.store.may_be_read.set()
        with pytest.raises(errors.Unavailable, match="on fire"):
            await pair.follower.fresh()
        assert await pair.follower.wait_for_answer(key("c0"), False) == pair.truth(key("c0"))
        assert pair.follower.fleet.revision == 4
        pair.store.broken = False
        pair.store.may_be_read.clear()
        pair.write(assign("c1", "n2"))
        await pair.follower.catch_up()
        assert pair.follower.fleet.revision == 4  # beside again
        pair.store.may_be_read.set()
        assert (await pair.follower.fresh()).revision == 5

    run(test, pair)


def test_a_damaged_entry_among_many_is_doubt_for_everybody(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"), assign("c2", "n2"))
        damaged = next(change.after for change in pair.store.log[-1].changes if change.id == "c2")
        assert damaged is not None
        del damaged["cluster_dns"]
        pair.store.may_be_read.set()
        with pytest.raises(errors.Unavailable, match="damaged"):
            await pair.follower.fresh()
        for _ in range(2):
            with pytest.raises(errors.Unavailable, match="damaged"):
                await pair.follower.wait_for_answer(key("c1"), False)
            with pytest.raises(errors.Unavailable, match="damaged"):
                await pair.follower.catch_up()

    run(test, pair)


def test_a_damaged_document_is_doubt(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"))
        del pair.store.documents[CLUSTERS]["c0"].body["cluster_dns"]
        with pytest.raises(errors.Unavailable, match="damaged"):
            await pair.answered(key("c0"))

    run(test, pair)


def test_other_views_make_everything_wait(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"))
        pair.store._views = ()
        pair.store._opened = "9"
        pair.follower.views = (View("namespaces", "namespaces", "namespaces"),)
        await pair.follower.catch_up()
        with pytest.raises(Late):
            pair.follower.answer(key("c1"), False)

    run(test, pair)


def test_a_write_goes_on_top_of_what_is_still_being_read(pair: Pair) -> None:
    ledger = Ledger(pair.follower)

    async def test() -> None:
        pair.write(assign("c0", "n2"))
        await pair.answered(key("c1"))
        pair.store.happened.clear()
        writing = asyncio.ensure_future(ledger.write(assign("c1", "n2"), ORIGIN))
        await turns_of_the_loop()
        pair.store.may_be_read.set()
        entry = (await writing).entry
        assert pair.store.happened == ["read to its end", "begun to write"]
        assert entry is not None
        assert entry.revision == 5
        pair.writer.follower.refresh()
        assert pair.follower.fleet.documents == pair.writer.fleet.documents
        for id in ("c0", "c1"):
            assert await pair.follower.wait_for_answer(key(id), False) == pair.truth(key(id))

    run(test, pair)


class BeatenStore(MemoryStore):
    """One to which somebody else writes between the last look and the transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.before_begin: Callable[[], object] | None = None

    def begin(self) -> Any:
        before, self.before_begin = self.before_begin, None
        if before is not None:
            before()
        return super().begin()


def test_a_write_goes_on_top_of_what_came_in_between() -> None:
    store = BeatenStore()
    first, second = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    samples.create(first, "namespaces", namespace("a"))

    async def test() -> None:
        store.before_begin = lambda: samples.write(first, lambda draft: draft.merge(NAMESPACES, "a", {"labels": {"x": "y"}}))
        entry = (await second.write(lambda draft: draft.create(NAMESPACES, namespace("b")), ORIGIN)).entry
        assert entry is not None
        assert entry.revision == 3
        assert second.fleet.documents["namespaces"]["a"].body["labels"] == {"x": "y"}
        assert second.fleet.documents.keys() == first.fleet.documents.keys()

    asyncio.run(test())


def test_what_this_process_has_written_itself_is_not_read_again(pair: Pair) -> None:
    async def test() -> None:
        many = [namespace(f"m{number}") for number in range(10)]
        await pair.writer.write(lambda draft: [draft.create(NAMESPACES, each) for each in many], ORIGIN)
        assert pair.writer.fleet.revision == 4
        assert (await pair.writer.follower.fresh()).revision == 4  # though nobody may read the log

    run(test, pair)


def test_a_follower_takes_an_outline_only_for_many() -> None:
    pair = Pair()
    assert isinstance(pair.store.follow_few(Head(pair.store.epoch(), 0, ""), 1), Outline)

    async def test() -> None:
        pair.write(assign("c0", "n2"))
        assert await pair.answered(key("c0")) == pair.truth(key("c0"))
        assert pair.follower.fleet.revision == 4

    run(test, pair)


def test_nobody_answers_from_a_store_that_was_let_go(pair: Pair) -> None:
    async def test() -> None:
        pair.write(assign("c0", "n2"))
        await pair.answered(key("c0"))
        lost = errors.Unavailable("the file is gone")

        def version() -> object:
            raise lost

        pair.store.version = version  # type: ignore[method-assign]
        with pytest.raises(Late):
            pair.follower.answer(key("c1"), False)
        for _ in range(2):
            with pytest.raises(errors.Unavailable, match="gone"):
                await pair.answered(key("c1"))

    run(test, pair)


def test_a_follower_of_nothing_loads_everything(pair: Pair) -> None:
    follower = Follower(KNOWN, lambda: pair.store)
    assert follower.fleet.revision == 0
    assert asyncio.run(follower.fresh()).documents == pair.writer.fleet.documents


class OffTheLoop:
    """A store of which nobody may ask anything but its version on the event loop."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.asked: set[str] = set()
        self.lost = False

    def version(self) -> object:
        if self.lost:
            raise errors.Unavailable("the file is gone")
        return self._store.version()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*arguments: Any) -> Any:
            assert threading.current_thread() is not threading.main_thread(), name
            self.asked.add(name)
            return getattr(self._store, name)(*arguments)

        return method


def test_nothing_is_read_opened_or_loaded_on_the_event_loop(pair: Pair) -> None:
    """Neither a few changes, nor many, nor everything anew, nor a store that was lost."""
    store: Any = OffTheLoop(pair.store)
    follower = Follower(KNOWN, lambda: store.opened() or store)
    pair.store.opened = lambda: None  # type: ignore[attr-defined]  # so that it is asked like the rest

    async def test() -> None:
        assert (await follower.fresh()).revision == 3
        samples.write(pair.writer, assign("c0", "n2"))
        assert await follower.wait_for_answer(key("c0"), False) == pair.truth(key("c0"))
        pair.write(assign("c1", "n2"))
        assert await follower.wait_for_answer(key("c1"), False) == pair.truth(key("c1"))
        pair.store.may_be_read.set()
        assert (await follower.fresh()).revision == 5
        pair.writer.restore(lambda state: (Snapshot("another", 0, {}, ()), []), samples.nothing_planned)
        assert (await follower.fresh()).epoch == "another"
        store.lost = True
        with pytest.raises(errors.Unavailable, match="gone"):
            await follower.fresh()
        store.lost = False
        assert (await follower.fresh()).epoch == "another"

    run(test, pair)
    assert store.asked == {"opened", "snapshot", "follow_few", "stored", "follow", "close"}


class Held:
    """Reads what few changes there are at once, and tells only when it may."""

    def __init__(self, store: MemoryStore) -> None:
        self._follow_few = store.follow_few
        self.has_read, self.may_tell = threading.Event(), threading.Event()
        store.follow_few = self.follow_few  # type: ignore[assignment,method-assign]

    def follow_few(self, *arguments: Any) -> Any:
        read = self._follow_few(*arguments)
        self.has_read.set()
        assert self.may_tell.wait(30)
        return read


def test_whoever_asks_while_others_wait_sees_what_was_written_meanwhile() -> None:
    pair = Pair()
    held = Held(pair.store)

    async def test() -> None:
        samples.write(pair.writer, assign("c0", "n2"))
        first = asyncio.ensure_future(pair.follower.fresh())
        assert await asyncio.to_thread(held.has_read.wait, 30)
        samples.write(pair.writer, assign("c1", "n2"))
        second = asyncio.ensure_future(pair.follower.wait_for_answer(key("c1"), False))
        await asyncio.sleep(0)
        held.may_tell.set()
        assert await second == pair.truth(key("c1"))
        await first

    run(test, pair)


def test_what_was_read_before_this_process_went_on_is_not_taken_twice() -> None:
    store = BeatenStore()
    other, ledger = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    held = Held(store)

    async def test() -> None:
        loop, polls = asyncio.get_running_loop(), []

        def overtake() -> None:
            samples.create(other, "namespaces", namespace("a"))
            polls.append(asyncio.run_coroutine_threadsafe(ledger.follower.catch_up(), loop))
            assert held.has_read.wait(30)

        store.before_begin = overtake
        assert (await ledger.write(lambda draft: draft.create(NAMESPACES, namespace("b")), ORIGIN)).revision == 2
        held.may_tell.set()
        await asyncio.wrap_future(polls[0])
        assert (await ledger.follower.fresh()).revision == 2
        assert set(ledger.fleet.documents["namespaces"]) == {"a", "b"}

    asyncio.run(asyncio.wait_for(test(), 30))


def test_a_follower_is_not_kept_from_answering_by_writes_without_end(pair: Pair) -> None:
    """What is written while it reads is for the next look."""
    follow_few = pair.store.follow_few

    def overtaken(*arguments: Any) -> Any:
        answer = follow_few(*arguments)
        samples.write(pair.writer, lambda draft: draft.create(NAMESPACES, namespace(f"more-{draft.base.revision}")))
        return answer

    pair.store.follow_few = overtaken  # type: ignore[assignment,method-assign]

    async def test() -> None:
        samples.write(pair.writer, assign("c0", "n2"))
        assert await pair.follower.wait_for_answer(key("c0"), False) == pair.truth(key("c0"))

    run(test, pair)


# One look for all that was asked before it


def test_what_was_asked_before_a_look_is_answered_as_of_that_look(pair: Pair) -> None:
    async def test() -> None:
        pair.follower.look()
        before = pair.follower.answer_looked(key("c0"), False)
        samples.write(pair.writer, assign("c0", "n2"))
        assert pair.follower.answer_looked(key("c0"), False) is before
        with pytest.raises(Late):
            pair.follower.look()
        await pair.follower.catch_up()
        assert pair.follower.answer_looked(key("c0"), False) == pair.truth(key("c0")) != before

    run(test, pair)


# A fleet that was worked out in vain


@pytest.mark.parametrize("in_place", [True, False])
def test_a_successor_that_comes_too_late_is_dropped(pair: Pair, monkeypatch: pytest.MonkeyPatch, in_place: bool) -> None:
    """Meanwhile the fleet went on by itself, or another one took its place."""
    released, made = threading.Event(), follower._successor

    def held(*arguments: Any) -> Any:
        assert released.wait(30)
        return made(*arguments)

    async def test() -> None:
        pair.write(assign("c0", "n2"))
        followed = MemoryStore.follow(pair.store, pair.follower.fleet.head)
        assert followed is not None
        monkeypatch.setattr(follower, "_successor", held)
        late = asyncio.ensure_future(pair.follower.go_on_in_thread(followed))
        await asyncio.sleep(0)
        pair.write(assign("c1", "n2"))
        if in_place:
            pair.follower.refresh()
        else:
            pair.follower.fleet = pair.follower.fleet.copied()
            pair.follower.refresh()
        released.set()
        await late
        assert pair.follower.fleet.revision == 5
        assert pair.follower.fleet.documents == pair.writer.fleet.documents

    run(test, pair)


def test_it_ends_after_its_threads_and_closes_the_store_only_then() -> None:
    happened: list[str] = []
    reading, goes_on = threading.Event(), threading.Event()

    class Slow(MemoryStore):
        def snapshot(self) -> Snapshot:
            reading.set()
            goes_on.wait(30)
            happened.append("read")
            return super().snapshot()

        def close(self) -> None:
            happened.append("closed")

    slow = Follower(KNOWN, Slow)
    work = slow._few.submit(slow.refresh)
    assert reading.wait(30)
    threading.Timer(0.01, goes_on.set).start()
    slow.close()
    assert work.done()
    assert happened == ["read", "closed"]


def test_a_log_that_was_folded_beyond_what_was_followed_is_loaded_anew() -> None:
    store = MemoryStore()
    writer, behind = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store).follower
    for name in ("a", "b", "c"):
        samples.create(writer, "namespaces", namespace(name))
    with store.begin() as transaction:
        assert transaction.fold(3) == 2
    behind.refresh()
    assert (set(behind.fleet.documents["namespaces"]), behind.fleet.revision) == ({"a", "b", "c"}, 3)
    assert behind.fleet.head == writer.fleet.head


def test_a_log_that_was_folded_just_where_it_was_followed_has_to_go_on_from_there() -> None:
    store = MemoryStore()
    writer, behind = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store).follower
    for name in ("a", "b"):
        samples.create(writer, "namespaces", namespace(name))
    behind.refresh()
    store._base, store.log, store.hashes = changes.Head("", 2, "of another log"), [], []
    store.append(changes.Entry(3, "", "somebody", None, None, None, False, ()))
    with pytest.raises(errors.Doubt, match="does not go on from revision 2"):
        behind.refresh()
