"""What every store does, run unchanged against each of them."""

from __future__ import annotations

import threading
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest

import live
from contract.entries import bodies, commit, create, delete, entry, matching, time, update
from flux_resourceset import changes, errors
from flux_resourceset.changes import Charge, Decommissioned, Entry, Forgone, Query, Snapshot, Stored, Tombstone, View
from flux_resourceset.store import Memo, Outline, Store

LIVE = {"id": "c1", "cluster_dns": "c1.example.com"}


def content(store: Store) -> tuple[Any, ...]:
    found = store.snapshot()
    return found.epoch, found.revision, found.documents, found.tombstones


def assert_differs(store: Store, before: object) -> None:
    """The version, at once, or by itself where the store lags."""
    if store.lags:
        live.until(lambda: store.version() != before)
    assert store.version() != before


# An empty store


def test_a_new_store_is_empty_at_revision_zero(store: Store) -> None:
    found = store.snapshot()
    assert (found.revision, found.documents, found.tombstones) == (0, {}, ())
    assert store.entries(0) == []
    assert matching(store, Query()) == []


def test_a_new_store_has_an_epoch_of_its_own(store: Store) -> None:
    assert store.epoch()
    assert store.epoch() == store.snapshot().epoch == store.epoch()
    transaction = store.begin()
    assert transaction.epoch == store.epoch()
    transaction.rollback()


# Committing


def test_a_commit_writes_documents_and_log_together(store: Store) -> None:
    first = entry(1, create("namespaces", "a", labels={"x": "y"}), create("things", "a"))
    commit(store, first)
    assert store.snapshot().documents == {
        "namespaces": {"a": Stored({"id": "a", "labels": {"x": "y"}}, 1)},
        "things": {"a": Stored({"id": "a"}, 1)},
    }
    assert store.entries(0) == [first]
    assert store.snapshot().revision == 1


def test_an_update_and_a_delete_are_carried_out(store: Store) -> None:
    commit(
        store,
        entry(1, create("n", "a", v=1), create("n", "b"), create("n", "c")),
        entry(2, update("n", {"id": "a", "v": 1}, {"id": "a", "v": 2}), delete("n", {"id": "b"})),
    )
    assert store.snapshot().documents == {"n": {"a": Stored({"id": "a", "v": 2}, 2), "c": Stored({"id": "c"}, 1)}}


def test_a_kind_without_documents_is_not_in_the_snapshot(store: Store) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, delete("n", {"id": "a"})))
    assert store.snapshot().documents == {}
    assert store.snapshot().revision == 2


def test_everything_of_an_entry_comes_back(store: Store) -> None:
    whole = Entry(
        revision=1,
        time=time(1),
        actor="robot",
        on_behalf_of="Jane Döe",
        request_id="r-1",
        reason="because „of“ it",
        forced=True,
        changes=(create("n", "a"), create("n", "b")),
        decommissioned=(Decommissioned("old.example.com", "old"),),
        vanished=("gone.example.com",),
        forgone=(Forgone("n", "lost"),),
        reverts=7,
    )
    commit(store, whole)
    assert store.entries(0) == [whole]
    assert matching(store, Query()) == [whole]


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 2**53 - 1, 0.5, 1e300, "", "ü🚀", "a\u2028b", "'; DROP TABLE", [], {}, [None, [1, {"a": "b"}]]],
)  # fmt: skip
def test_every_json_value_survives(store: Store, value: Any) -> None:
    commit(store, entry(1, create("n", "a", value=value, nested={"deep": [value]})))
    found = bodies(store, "n")["a"]
    assert found == {"id": "a", "value": value, "nested": {"deep": [value]}}
    assert type(found["value"]) is type(value)
    assert store.entries(0)[0].changes[0].after == found


def test_the_order_of_fields_survives(store: Store) -> None:
    commit(store, entry(1, create("n", "a", z=1, a=2, m=3)))
    assert list(bodies(store, "n")["a"]) == ["id", "z", "a", "m"]


def test_changes_keep_their_order(store: Store) -> None:
    changes = [create("n", id) for id in ("z", "a", "m")]
    commit(store, entry(1, *changes))
    assert list(store.entries(0)[0].changes) == changes


def test_the_same_id_in_two_kinds_is_two_documents(store: Store) -> None:
    commit(store, entry(1, create("n", "a", v=1), create("m", "a", v=2)), entry(2, delete("n", {"id": "a"})))
    assert bodies(store, "n") == {}
    assert bodies(store, "m") == {"a": {"id": "a", "v": 2}}


# The log


def test_entries_come_oldest_first_behind_a_revision(store: Store) -> None:
    entries = [entry(number, create("n", f"a{number}")) for number in range(1, 6)]
    commit(store, *entries)
    assert store.entries(0) == entries
    assert store.entries(3) == entries[3:]
    assert store.entries(5) == []
    assert store.entries(99) == []


def test_a_transaction_sees_the_log_too(store: Store) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
    transaction = store.begin()
    assert [found.revision for found in transaction.entries(1)] == [2]
    transaction.rollback()


def test_the_version_differs_once_something_was_committed(store: Store) -> None:
    seen = [store.version()]
    assert store.version() == seen[0]
    for number in range(1, 4):
        commit(store, entry(number, create("n", f"a{number}")))
        seen.append(store.version())
        assert store.version() == seen[-1]
    assert len(set(seen)) == 4


def test_the_version_stays_when_nothing_was_committed(store: Store) -> None:
    before = store.version()
    store.begin().rollback()
    assert store.version() == before


# Following


def test_what_came_behind_a_head_is_followed(store: Store, peer: Store) -> None:
    heads = [store.head()]
    entries = [entry(number, create("n", f"a{number}")) for number in range(1, 4)]
    for each in entries:
        commit(store, each)
        heads.append(peer.head())
    for number, head in enumerate(heads):
        followed = peer.follow(head)
        assert followed is not None
        assert followed.entries == entries[number:]
        assert followed.hash == heads[-1].hash
    assert len({head.hash for head in heads}) == 4
    assert store.snapshot().hash == heads[-1].hash


def test_many_changes_behind_a_head_are_outlined(store: Store, peer: Store) -> None:
    commit(store, entry(1, create("n", "a"), create("n", "b")))
    head = peer.head()
    assert peer.follow_few(head, 0) == peer.follow(head)
    first, second, third = ({"id": "a", "x": x} for x in range(3))
    commit(store, entry(2, update("n", first, second), delete("n", {"id": "b"})))
    commit(store, entry(3, update("n", second, third), create("m", "a")))
    assert peer.follow_few(head, 4) == peer.follow(head)
    for few in (0, 3):
        outline = peer.follow_few(head, few)
        assert isinstance(outline, Outline), few
        assert outline.head == store.head()
        assert outline.changed == {("n", "a"), ("n", "b"), ("m", "a")}
        assert peer.follow_few(head, few, outline) is outline
    assert isinstance(outline, Outline)
    store.begin().commit(None, charge=Charge((View("n", "n", "n"),), "now"))
    assert peer.follow_few(head, 0, outline) == outline._replace(views=(View("n", "n", "n"),))
    commit(store, entry(4, create("m", "b")))
    assert peer.follow_few(head, 0, outline) == peer.follow_few(head, 0) != outline
    assert peer.follow_few(msgspec.structs.replace(head, hash="another"), 0) is None


def test_many_names_that_came_along_are_outlined_too(store: Store, peer: Store) -> None:
    head = peer.head()
    decommissioned = tuple(Decommissioned(f"d{number}.example.com", f"d{number}") for number in range(1000))
    commit(store, msgspec.structs.replace(entry(1), decommissioned=decommissioned))
    assert isinstance(peer.follow_few(head, 10), Outline)
    assert not isinstance(peer.follow_few(head, 100_000), Outline)


def test_some_documents_are_read_as_they_are_at_the_end_of_the_log(store: Store, peer: Store) -> None:
    commit(store, entry(1, create("n", "a", x=1), create("n", "b")))
    commit(store, entry(2, update("n", {"id": "a", "x": 1}, {"id": "a", "x": 2}), delete("n", {"id": "b"})))
    keys = [("n", "a"), ("n", "b"), ("m", "a")]
    assert peer.stored(keys, store.head()) == {("n", "a"): store.snapshot().documents["n"]["a"]}
    assert peer.stored([], store.head()) == {}
    before = store.head()
    commit(store, entry(3, create("n", "c")))
    assert peer.stored(keys, before) is None


def test_a_commit_tells_the_hash_of_the_end(store: Store) -> None:
    for number in range(1, 3):
        hash = store.begin().commit(entry(number, create("n", f"a{number}")))
        assert hash == store.head().hash
    assert store.begin().commit(None) == hash


@pytest.mark.parametrize(
    "wrong",
    [{"epoch": "another"}, {"hash": "another"}, {"revision": 1}, {"revision": 3}, {"revision": 0, "hash": "not empty"}],
)
def test_a_log_that_does_not_go_on_from_a_head_is_not_followed(store: Store, wrong: dict[str, Any]) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
    known = msgspec.structs.replace(store.head(), **wrong)
    transaction = store.begin()
    expected = [1, 2] if known.revision == 0 and not known.hash else None
    for found in (store.follow(known), transaction.follow(known)):
        assert (found and [each.revision for each in found.entries]) == expected
    transaction.rollback()


def test_the_hash_tells_logs_apart_that_say_something_else(stores: tuple[Store, Store], tmp_path: Path) -> None:
    whole = Entry(1, time(1), "t", "o", "r", "why", False, (create("n", "a", x=1),), (Decommissioned("d.example.com", "d"),))
    others = [
        msgspec.structs.replace(whole, **change)
        for change in (
            {"time": time(2)}, {"actor": "u"}, {"on_behalf_of": None}, {"request_id": "s"}, {"reason": None}, {"forced": True},
            {"changes": (create("n", "a", x=2),)}, {"changes": (create("n", "b", x=1),)}, {"changes": (create("m", "a", x=1),)},
            {"decommissioned": ()}, {"forgone": (Forgone("n", "z"),)}, {"vanished": ("v.example.com",)},
        )
    ]  # fmt: skip
    hashes = {changes.chained("", each) for each in (whole, *others)} | {changes.chained("before", whole)}
    assert len(hashes) == len(others) + 2
    commit(stores[0], whole)
    assert stores[1].head().hash == changes.chained("", stores[1].entries(0)[0])  # what is read has the hash of what was written


# What a store remembers besides


def test_a_definition_deleted_by_force_is_remembered_until_it_is_back(store: Store) -> None:
    forced = msgspec.structs.replace(entry(2, delete("n", {"id": "a"}), delete("n", {"id": "b"})), forced=True)
    commit(store, entry(1, create("n", "a"), create("n", "b"), create("n", "c")), forced, entry(3, delete("n", {"id": "c"})))
    assert store.snapshot().forgone == {("n", "a"), ("n", "b")}
    commit(store, entry(4, create("n", "a")))
    assert store.snapshot().forgone == {("n", "b")}


def test_a_cluster_deleted_by_force_is_no_definition(store: Store) -> None:
    forced = msgspec.structs.replace(entry(2, delete("clusters", LIVE)), forced=True)
    commit(store, entry(1, create("clusters", **LIVE)), forced)
    assert store.snapshot().forgone == frozenset()


def test_definitions_deleted_elsewhere_come_along_with_an_entry(store: Store) -> None:
    brought = msgspec.structs.replace(entry(1, create("m", "x")), forgone=(Forgone("n", "a"),))
    commit(store, brought)
    assert store.snapshot().forgone == {("n", "a")}
    assert store.entries(0) == [brought]


def test_a_cluster_that_vanished_leaves_no_tombstone(store: Store) -> None:
    vanished = msgspec.structs.replace(entry(2, delete("clusters", LIVE)), vanished=("c1.example.com",))
    commit(store, entry(1, create("clusters", **LIVE)), vanished)
    assert store.snapshot().tombstones == ()
    assert store.entries(1) == [vanished]


def test_whoever_takes_charge_is_seen_by_everybody(store: Store, peer: Store) -> None:
    before = peer.version()
    views = (View("a-s", "a", "as"), View("b-s", "b", "bs"))
    store.begin().commit(None, charge=Charge(views, time(1)))
    assert_differs(peer, before)
    followed = peer.follow(peer.head())
    assert followed is not None
    assert followed.views == peer.snapshot().views == views
    assert followed.opened == peer.snapshot().opened == time(1)
    store.begin().commit(None, charge=Charge(views[:1], time(2)))
    followed = peer.follow(peer.head())
    assert followed is not None
    assert followed.views == peer.snapshot().views == views[:1]


def test_whoever_takes_charge_later_is_the_later_one_also_with_a_clock_that_was_set_back(store: Store) -> None:
    for now, opened in ((3, time(3)), (2, time(3)[:-2] + "1Z"), (1, time(3)[:-2] + "2Z"), (4, time(4)), (4, time(4)[:-2] + "1Z")):
        store.begin().commit(None, charge=Charge((), time(now)))
        assert store.snapshot().opened == opened


# Finding


@pytest.fixture
def found_in(store: Store) -> Store:
    commit(
        store,
        entry(1, create("n", "a"), actor="jane"),
        entry(2, create("n", "b"), create("m", "a"), actor="joe"),
        entry(3, update("n", {"id": "a"}, {"id": "a", "v": 1}), actor="joe"),
        entry(4, create("m", "b"), actor="jane"),
        entry(5, delete("n", {"id": "b"}), actor="jane"),
    )
    return store


@pytest.mark.parametrize(
    ("query", "revisions"),
    [
        (Query(), [5, 4, 3, 2, 1]),
        (Query(kind="n"), [5, 3, 2, 1]),
        (Query(kind="m"), [4, 2]),
        (Query(kind="none"), []),
        (Query(id="a"), [3, 2, 1]),
        (Query(kind="m", id="a"), [2]),
        (Query(kind="n", id="b"), [5, 2]),
        (Query(actor="joe"), [3, 2]),
        (Query(actor="Joe"), []),
        (Query(since=time(3)), [5, 4, 3]),
        (Query(until=time(3)), [3, 2, 1]),
        (Query(since=time(2), until=time(4)), [4, 3, 2]),
        (Query(since=time(4), until=time(2)), []),
        (Query(before=3), [2, 1]),
        (Query(before=1), []),
        (Query(limit=2), [5, 4]),
        (Query(limit=2, before=4), [3, 2]),
        (Query(kind="n", limit=2), [5, 3]),
        (Query(kind="n", actor="jane", since=time(2), before=6), [5]),
        (Query(id="'; DROP TABLE entries; --"), []),
    ],
)
def test_the_log_is_searched_newest_first(found_in: Store, query: Query, revisions: list[int]) -> None:
    assert [each.revision for each in matching(found_in, query)] == revisions


def test_a_kind_and_an_id_must_meet_in_one_change(found_in: Store) -> None:
    assert matching(found_in, Query(kind="m", id="b"))[0].revision == 4
    assert all(each.revision != 2 for each in matching(found_in, Query(kind="m", id="b")))


def test_a_filter_keeps_whole_transactions(found_in: Store) -> None:
    (only,) = matching(found_in, Query(kind="m", id="a"))
    assert [(change.kind, change.id) for change in only.changes] == [("n", "b"), ("m", "a")]


# Tombstones


def test_deleting_a_cluster_leaves_a_tombstone(store: Store) -> None:
    commit(store, entry(1, create("clusters", **LIVE)), entry(2, delete("clusters", LIVE)))
    assert store.snapshot().tombstones == (Tombstone("c1.example.com", "c1", 2),)


def test_deleting_anything_else_leaves_none(store: Store) -> None:
    other = {"id": "a", "cluster_dns": "a.example.com"}
    commit(store, entry(1, create("n", **other)), entry(2, delete("n", other)))
    assert store.snapshot().tombstones == ()


def test_the_same_name_revives(store: Store) -> None:
    heir = {"id": "heir", "cluster_dns": "c1.example.com"}
    commit(store, entry(1, create("clusters", **LIVE)), entry(2, delete("clusters", LIVE)), entry(3, create("clusters", **heir)))
    assert store.snapshot().tombstones == ()


def test_another_name_of_the_same_id_leaves_the_old_tombstone(store: Store) -> None:
    moved = {"id": "c1", "cluster_dns": "moved.example.com"}
    commit(store, entry(1, create("clusters", **LIVE)), entry(2, delete("clusters", LIVE)), entry(3, create("clusters", **moved)))
    assert [tombstone.dns for tombstone in store.snapshot().tombstones] == ["c1.example.com"]


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_handed_over_in_one_entry_lives_in_either_order(store: Store, order: int) -> None:
    handed = [delete("clusters", LIVE), create("clusters", "heir", cluster_dns="c1.example.com")]
    commit(store, entry(1, create("clusters", **LIVE)), entry(2, *handed[::order]))
    assert store.snapshot().tombstones == ()
    assert set(bodies(store, "clusters")) == {"heir"}


def test_a_cluster_that_changed_its_name_leaves_a_tombstone(store: Store) -> None:
    moved = {"id": "c1", "cluster_dns": "moved.example.com"}
    commit(store, entry(1, create("clusters", **LIVE)), entry(2, update("clusters", LIVE, moved)))
    assert store.snapshot().tombstones == (Tombstone("c1.example.com", "c1", 2),)


def test_a_name_may_go_without_a_tombstone(store: Store) -> None:
    other = {"id": "c2", "cluster_dns": "c2.example.com"}
    commit(store, entry(1, create("clusters", **LIVE), create("clusters", **other)))
    commit(store, entry(2, delete("clusters", LIVE), delete("clusters", other), vanished=("c1.example.com",)))
    assert store.snapshot().tombstones == (Tombstone("c2.example.com", "c2", 2),)


def test_a_tombstone_is_renewed(store: Store) -> None:
    commit(store, entry(1, create("clusters", **LIVE)), entry(2, delete("clusters", LIVE)))
    commit(store, entry(3, create("clusters", **LIVE)), entry(4, delete("clusters", LIVE)))
    assert store.snapshot().tombstones == (Tombstone("c1.example.com", "c1", 4),)


def test_tombstones_can_come_along_with_an_entry(store: Store) -> None:
    commit(store, entry(1, create("n", "a"), decommissioned=(Decommissioned("far.example.com", "far"),)))
    assert store.snapshot().tombstones == (Tombstone("far.example.com", "far", 1),)


def test_an_entry_of_tombstones_alone_is_found_unless_a_document_is_asked_for(store: Store) -> None:
    only = entry(1, decommissioned=(Decommissioned("far.example.com", "far"),))
    commit(store, only)
    assert matching(store, Query()) == [only]
    assert matching(store, Query(kind="n")) == matching(store, Query(id="far")) == []


# Rolling back, and one writer at a time


def test_a_rollback_writes_nothing_and_lets_the_next_one_in(store: Store) -> None:
    store.begin().rollback()
    commit(store, entry(1, create("n", "a")))
    assert store.snapshot().revision == 1


def test_a_transaction_that_is_left_without_a_commit_is_rolled_back(store: Store) -> None:
    with store.begin() as transaction:
        assert transaction.epoch == store.epoch()
    with store.begin():
        pass  # the one before is over
    commit(store, entry(1, create("n", "a")))
    assert store.snapshot().revision == 1


@pytest.mark.parametrize("exception", [ValueError, KeyboardInterrupt])
def test_a_transaction_that_an_exception_leaves_is_rolled_back(store: Store, exception: type[BaseException]) -> None:
    with pytest.raises(exception), store.begin():
        raise exception
    commit(store, entry(1, create("n", "a")))
    assert store.snapshot().revision == 1


def test_what_was_committed_stays_whatever_comes_after_it(store: Store) -> None:
    def fails() -> None:
        with store.begin() as transaction:
            transaction.commit(entry(2, create("n", "b")))
            raise ValueError("later")

    with store.begin() as transaction:
        transaction.commit(entry(1, create("n", "a")))
    with pytest.raises(ValueError, match="later"):
        fails()
    assert store.snapshot().revision == 2
    with store.begin() as transaction:
        transaction.restore(Snapshot("e", 0, {}, ()), [])
    assert content(store) == ("e", 0, {}, ())
    commit(store, entry(1, create("n", "c")))


def test_a_transaction_that_is_over_does_not_end_the_next_one(store: Store, peer: Store) -> None:
    first = store.begin()
    first.commit(entry(1, create("n", "a")))
    second = store.begin()
    first.rollback()
    first.rollback()
    waiting = threading.Thread(target=lambda: commit(peer, entry(3, create("n", "c"))))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    second.commit(entry(2, create("n", "b")))
    second.rollback()
    waiting.join(20)
    assert [found.revision for found in store.entries(0)] == [1, 2, 3]


def test_a_second_writer_waits_for_the_first(store: Store, peer: Store) -> None:
    first = store.begin()
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.set()
        transaction = peer.begin()
        order.append("second in")
        assert [found.revision for found in transaction.entries(0)] == [1]
        transaction.commit(entry(2, create("n", "b")))

    waiting = threading.Thread(target=second)
    waiting.start()
    assert inside.wait(10)
    waiting.join(0.05)
    assert waiting.is_alive()
    order.append("first out")
    first.commit(entry(1, create("n", "a")))
    waiting.join(20)
    assert order == ["first out", "second in"]
    assert [found.revision for found in store.entries(0)] == [1, 2]


def test_readers_do_not_wait_for_a_writer(store: Store, peer: Store) -> None:
    commit(store, entry(1, create("n", "a")))
    transaction = peer.begin()
    for reader in (store, peer):
        assert reader.snapshot().revision == 1
        assert len(reader.entries(0)) == len(matching(reader, Query())) == 1
    transaction.rollback()


def test_an_open_transaction_is_not_seen(store: Store, peer: Store) -> None:
    before = store.version(), peer.version()
    transaction = store.begin()
    assert (store.version(), peer.version()) == before
    transaction.commit(entry(1, create("n", "a")))
    assert store.version() != before[0]
    assert_differs(peer, before[1])


def test_a_commit_is_seen_by_everybody_at_once(store: Store, peer: Store) -> None:
    for number in range(1, 6):
        commit((store, peer)[number % 2], entry(number, create("n", f"a{number}")))
        assert store.snapshot() == peer.snapshot()
        assert store.entries(0) == peer.entries(0)
        assert peer.snapshot().revision == number


def test_a_restore_is_seen_by_everybody_at_once(store: Store, peer: Store) -> None:
    commit(store, entry(1, create("n", "a")))
    before = peer.version()
    epoch = peer.epoch()
    store.begin().restore(Snapshot("another", 0, {}, ()), [])
    assert_differs(peer, before)
    assert peer.snapshot().replaced == (epoch,)
    assert peer.epoch() == "another"
    assert content(peer) == ("another", 0, {}, ())


# Restoring


def test_a_restore_takes_the_place_of_everything(store: Store) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, create("clusters", **LIVE)), entry(3, delete("clusters", LIVE)))
    store.begin().commit(None, Memo("k", time(1), "digest", b"answer"))
    version = store.version()
    history = [
        entry(1, create("m", "x"), decommissioned=(Decommissioned("gone.example.com", "gone"),)),
        entry(2, create("m", "y")),
    ]
    documents = {"m": {"x": Stored({"id": "x"}, 1), "y": Stored({"id": "y"}, 2)}}
    snapshot = Snapshot("another", 2, documents, (Tombstone("gone.example.com", "gone", 1),))
    store.begin().restore(snapshot, history)
    assert content(store) == ("another", 2, documents, snapshot.tombstones)
    assert store.entries(0) == history
    assert store.epoch() == "another"
    assert store.version() != version
    transaction = store.begin()
    assert transaction.recall("k") is None
    transaction.rollback()


def test_a_history_that_does_not_lead_to_its_fleet_is_doubt_and_leaves_everything(store: Store) -> None:
    commit(store, entry(1, create("n", "a")))
    before = store.snapshot()
    for whole in (Snapshot("e", 1, {}, ()), Snapshot("e", 2, {"n": {"b": Stored({"id": "b"}, 1)}}, ())):
        with pytest.raises(errors.Doubt, match="does not lead to"):
            store.begin().restore(whole, [entry(1, create("n", "b"))])
    assert store.snapshot() == before
    commit(store, entry(2, create("n", "b")))


def test_writing_goes_on_after_a_restore(store: Store) -> None:
    store.begin().restore(Snapshot("e", 1, {"n": {"a": Stored({"id": "a"}, 1)}}, ()), [entry(1, create("n", "a"))])
    commit(store, entry(2, delete("n", {"id": "a"})))
    assert content(store) == ("e", 2, {}, ())


def test_a_store_can_be_restored_to_nothing(store: Store) -> None:
    commit(store, entry(1, create("n", "a")))
    store.begin().restore(Snapshot("e", 0, {}, ()), [])
    assert content(store) == ("e", 0, {}, ())


def test_what_was_read_before_is_not_changed_by_what_comes_after(store: Store) -> None:
    commit(store, entry(1, create("n", "a")))
    snapshot, log = store.snapshot(), store.entries(0)
    commit(store, entry(2, update("n", {"id": "a"}, {"id": "a", "v": 1}), create("n", "b")))
    assert snapshot.documents == {"n": {"a": Stored({"id": "a"}, 1)}}
    assert len(log) == 1


def test_a_transaction_sees_what_the_store_holds(store: Store) -> None:
    commit(store, entry(1, create("n", "a"), create("n", "b")))
    transaction = store.begin()
    assert transaction.snapshot() == store.snapshot()
    transaction.rollback()


def test_a_store_that_answers_says_that_it_does(store: Store) -> None:
    store.on_change(lambda: None)
    began = monotonic()
    live.until(lambda: store.seen() >= began)  # one that lags looks by itself
    assert store.is_reachable()
    assert store.seen() <= monotonic()
