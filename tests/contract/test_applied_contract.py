"""What every store does with the records of what managers applied last."""

from __future__ import annotations

from contract.entries import commit, create, delete, entry, update
from flux_resourceset.changes import Applied, Snapshot, Stored
from flux_resourceset.store import Store

A, B = ("n", "a"), ("n", "b")


def record(id: str, manager: str = "ci", kind: str = "n", **fields: object) -> Applied:
    return Applied(kind, id, manager, {"id": id, **fields})


def two(store: Store) -> None:
    applied = [record("a", v=1), record("a", "cli", w={"x": [1, None]}), record("b")]
    store.begin().commit(entry(1, create("n", "a"), create("n", "b"), create("m", "a")), applied=applied)


def test_what_was_applied_is_found_by_document_and_by_manager(store: Store, peer: Store) -> None:
    two(store)
    for each in (store, peer):
        assert each.applied([A, B, ("m", "a"), ("n", "nobody")]) == {
            A: {"ci": {"id": "a", "v": 1}, "cli": {"id": "a", "w": {"x": [1, None]}}},
            B: {"ci": {"id": "b"}},
        }
        assert each.applied([]) == {}
        assert each.applied_by("ci", ["n", "m"]) == [A, B]
        assert each.applied_by("cli", {"n"}) == [A]
        assert each.applied_by("ci", ["m"]) == each.applied_by("nobody", ["n"]) == each.applied_by("ci", []) == []


def test_a_transaction_sees_the_same(store: Store) -> None:
    two(store)
    with store.begin() as transaction:
        assert transaction.applied([A]) == store.applied([A])
        assert transaction.applied_by("ci", ["n"]) == [A, B]


def test_a_record_is_written_without_an_entry_and_takes_the_place_of_an_older_one(store: Store, peer: Store) -> None:
    two(store)
    hash = store.head().hash
    assert store.begin().commit(None, applied=[record("a", v=2), record("b", "cli")]) == hash
    assert peer.head().revision == 1
    assert peer.applied([A])[A]["ci"] == {"id": "a", "v": 2}
    assert peer.applied([B]) == {B: {"ci": {"id": "b"}, "cli": {"id": "b"}}}


def test_a_record_without_a_document_is_dropped(store: Store) -> None:
    two(store)
    store.begin().commit(None, applied=[Applied(*A, "ci", None), Applied(*B, "ci", None), Applied("n", "c", "ci", None)])
    assert list(store.applied([A])[A]) == ["cli"]
    assert store.applied([B]) == {}
    assert store.applied_by("ci", ["n"]) == []


def test_records_go_with_their_document_and_stay_with_its_changes(store: Store) -> None:
    two(store)
    commit(store, entry(2, update("n", {"id": "a"}, {"id": "a", "v": 9}), delete("n", {"id": "b"})))
    assert store.applied([A, B]).keys() == {A}
    commit(store, entry(3, create("n", "b")))
    assert store.applied([B]) == {}  # it is another one
    assert store.applied_by("ci", ["n"]) == [A]


def test_what_is_rolled_back_is_not_kept(store: Store) -> None:
    two(store)
    with store.begin() as transaction:
        transaction.rollback()
    assert store.applied([A])[A].keys() == {"ci", "cli"}


def test_records_are_in_no_entry_of_the_log_and_in_no_digest(store: Store) -> None:
    two(store)
    before = store.digest_at(1), store.entries(0), store.head()
    store.begin().commit(None, applied=[record("a", "third")])
    assert (store.digest_at(1), store.entries(0), store.head()) == before


def test_a_whole_fleet_brings_its_own_records_and_no_others_stay(store: Store) -> None:
    two(store)
    history = [entry(1, create("n", "a"))]
    whole = Snapshot("another", 1, {"n": {"a": Stored({"id": "a"}, 1)}}, ())
    store.begin().restore(whole, history, [record("a", "new", v=3)])
    assert store.applied([A, B]) == {A: {"new": {"id": "a", "v": 3}}}
    store.begin().restore(Snapshot("third", 1, whole.documents, ()), history)
    assert store.applied([A, B]) == {}


def test_records_survive_folding(store: Store) -> None:
    two(store)
    commit(store, entry(2, create("n", "c")))
    with store.begin() as transaction:
        transaction.fold(3)
    assert store.applied_by("ci", ["n"]) == [A, B]


def test_a_record_whose_document_is_not_there_is_a_fault(store: Store) -> None:
    two(store)
    assert store.verified().fault is None
    store.begin().commit(None, applied=[record("gone")])
    fault = store.verified().fault
    assert fault is not None
    assert (fault.revision, "'gone'" in fault.what) == (1, True)
