"""What every store says of the past: documents and whole states as they were, who touched a document, and since when."""

from __future__ import annotations

import msgspec
import pytest

from contract.entries import commit, create, delete, entry, time, update
from contract.folding import fold
from flux_resourceset import errors
from flux_resourceset.changes import Change, Decommissioned, Document, Entry, Snapshot, Stored, Tombstone
from flux_resourceset.store import Store

C1 = {"id": "c1", "cluster_dns": "c1.example.com"}
MOVED = {"id": "c1", "cluster_dns": "moved.example.com", "z": 1, "a": [1, 2, {"b": "ü"}]}


def forced(each: Entry) -> Entry:
    return msgspec.structs.replace(each, forced=True)


# creates, updates, deletes, revivals, names that move, definitions deleted by force, names from elsewhere
LOG = [
    entry(1, create("clusters", "c1", cluster_dns="c1.example.com"), create("n", "a", v=1)),
    entry(2, update("n", {"id": "a", "v": 1}, {"id": "a", "v": 2}), create("n", "b")),
    entry(3, update("clusters", C1, MOVED), delete("n", {"id": "b"})),
    forced(entry(4, delete("n", {"id": "a", "v": 2}))),
    entry(5, delete("clusters", MOVED), decommissioned=(Decommissioned("far.example.com", "far"),)),
    entry(6, create("clusters", "c1", cluster_dns="moved.example.com"), create("n", "a", other=True)),
    entry(7, update("n", {"id": "a", "other": True}, {"other": True, "id": "a"})),  # only the order of fields
    entry(8, create("m", "x")),
]
KEYS = [("clusters", "c1"), ("n", "a"), ("n", "b"), ("m", "x"), ("m", "never")]


def exact(state: Snapshot) -> tuple[object, ...]:
    """With the order of fields, which JSON keeps and equality of documents does not."""
    documents = {
        (kind, id): (msgspec.json.encode(stored.body), stored.revision)
        for kind, of_kind in state.documents.items()
        for id, stored in of_kind.items()
    }
    return state.epoch, state.revision, state.hash, documents, set(state.tombstones), state.forgone


@pytest.fixture
def states(store: Store) -> list[Snapshot]:
    """What the store held after every entry, from before the first one on."""
    seen = [store.snapshot()]
    for each in LOG:
        commit(store, each)
        seen.append(store.snapshot())
    return seen


@pytest.mark.parametrize("base", [0, 1, 3, 5, 8])
def test_everything_is_found_as_it_was_from_the_base_on(store: Store, peer: Store, states: list[Snapshot], base: int) -> None:
    digests = [store.digest_at(revision) for revision in range(9)]
    assert len(set(digests)) == 9
    fold(store, base)
    for revision, state in enumerate(states[base:], base):
        assert exact(peer.state_at(revision)) == exact(state)
        assert peer.digest_at(revision) == digests[revision]
        wanted = {(kind, id): state.documents[kind][id] for kind, id in KEYS if id in state.documents.get(kind, {})}
        found = peer.documents_at(KEYS, revision)
        assert found == wanted
        assert {key: list(stored.body) for key, stored in found.items()} == {key: list(wanted[key].body) for key in wanted}
        assert {key: stored for key in KEYS if (stored := peer.document_at(*key, revision))} == wanted


def test_the_documents_that_were_changed_between_two_revisions(store: Store, states: list[Snapshot]) -> None:
    assert sorted(store.touched(0, 8)) == [("clusters", "c1"), ("m", "x"), ("n", "a"), ("n", "b")]
    assert sorted(store.touched(1, 2)) == [("n", "a"), ("n", "b")]
    assert sorted(store.touched(3, 5)) == [("clusters", "c1"), ("n", "a")]
    assert store.touched(8, 8) == store.touched(5, 5) == []
    fold(store, 3)
    assert sorted(store.touched(3, 5)) == [("clusters", "c1"), ("n", "a")]
    with pytest.raises(errors.Compacted):
        store.touched(2, 5)


@pytest.mark.parametrize("base", [1, 3, 5, 8])
def test_what_was_below_the_base_is_gone(store: Store, peer: Store, states: list[Snapshot], base: int) -> None:
    fold(store, base)
    for ask in (
        lambda: peer.document_at("n", "a", base - 1),
        lambda: peer.document_at("n", "never", 0),
        lambda: peer.documents_at([], base - 1),
        lambda: peer.state_at(base - 1),
        lambda: peer.digest_at(base - 1),
        lambda: peer.touches("n", "a", base, 5),
        lambda: peer.revision_at(time(base - 1) if base > 1 else ""),
    ):
        with pytest.raises(errors.Compacted, match=f"the oldest that can be asked for is revision {base}") as refused:
            ask()
        assert (refused.value.status, refused.value.code, refused.value.extra) == (410, "compacted", {"oldest": base})


def test_what_is_not_there_yet_is_a_mistake(store: Store, states: list[Snapshot]) -> None:
    for ask in (
        lambda: store.document_at("n", "a", 9),
        lambda: store.documents_at(KEYS, 9),
        lambda: store.state_at(9),
        lambda: store.digest_at(9),
    ):
        with pytest.raises(ValueError, match="not there yet; the newest is 8"):
            ask()


def touched(found: list[Entry]) -> list[tuple[int, str, Document | None, Document | None]]:
    assert all(len(each.changes) == 1 and not (each.decommissioned or each.vanished or each.forgone) for each in found)
    return [(each.revision, *msgspec.structs.astuple(each.changes[0])[2:]) for each in found]


A = [
    (7, "update", {"id": "a", "other": True}, {"other": True, "id": "a"}),
    (6, "create", None, {"id": "a", "other": True}),
    (4, "delete", {"id": "a", "v": 2}, None),
    (2, "update", {"id": "a", "v": 1}, {"id": "a", "v": 2}),
    (1, "create", None, {"id": "a", "v": 1}),
]


@pytest.mark.parametrize(
    ("before", "limit", "wanted"),
    [(None, 9, A), (None, 2, A[:2]), (7, 9, A[1:]), (5, 1, A[2:3]), (2, 9, A[4:]), (1, 9, []), (99, 9, A)],
)
def test_who_touched_a_document(
    store: Store, peer: Store, states: list[Snapshot], before: int | None, limit: int, wanted: list[object]
) -> None:
    found = peer.touches("n", "a", before, limit)
    assert touched(found) == wanted
    assert all((each.time, each.forced) == (time(each.revision), each.revision == 4) for each in found)


def test_what_is_left_of_a_document_s_changes_is_told(store: Store, peer: Store, states: list[Snapshot]) -> None:
    fold(store, 1)
    assert touched(peer.touches("n", "a", None, 9)) == A[:4]
    assert peer.touches("n", "a", 2, 9) == []
    assert peer.touches("n", "never", None, 9) == []
    several = peer.touches_of([("n", "a"), ("n", "never")], None, 2)
    assert several == {("n", "a"): peer.touches("n", "a", None, 2), ("n", "never"): []}


def test_what_others_changed_in_the_same_entry_is_left_out(store: Store, states: list[Snapshot]) -> None:
    assert [each.revision for each in store.touches("clusters", "c1", None, 9)] == [6, 5, 3, 1]
    assert [each.changes for each in store.touches("m", "x", None, 9)] == [(create("m", "x"),)]


@pytest.mark.parametrize(
    ("moment", "revision"), [("", 0), (time(1), 1), (time(4), 4), (time(5)[:-2] + "1Z", 5), (time(8), 8), ("9", 8)]
)
def test_the_revision_at_a_time(store: Store, states: list[Snapshot], moment: str, revision: int) -> None:
    assert store.revision_at(moment) == revision


def test_the_newest_revision_counts_when_a_clock_went_back(store: Store) -> None:
    for revision, day in enumerate((5, 6, 2, 7), 1):
        commit(store, msgspec.structs.replace(entry(revision, create("n", f"a{revision}")), time=time(day)))
    assert [store.revision_at(time(day)) for day in (1, 2, 5, 6, 7)] == [0, 3, 3, 3, 4]


def test_a_time_before_the_rest_of_a_folded_log_is_its_base(store: Store, states: list[Snapshot]) -> None:
    fold(store, 3)
    assert [store.revision_at(time(day)) for day in (3, 4)] == [3, 4]
    with pytest.raises(errors.Compacted):
        store.revision_at(time(2))


# What the log says of documents before a change


def test_documents_before_a_change_are_those_that_were_stored(store: Store, peer: Store) -> None:
    """Whoever makes an entry may have completed them with what kinds have got since."""
    first = entry(1, create("n", "a", v=1), create("n", "b"))
    commit(store, first)
    completed = {"id": "a", "v": 1, "added": "later"}
    commit(store, entry(2, update("n", completed, {**completed, "v": 2}), delete("n", {"id": "b", "added": "later"})))
    made = (update("n", {"id": "a", "v": 1}, {**completed, "v": 2}), delete("n", {"id": "b"}))
    assert peer.entries(0) == [first, entry(2, *made)]
    assert peer.touches("n", "a", None, 1)[0].changes == made[:1]


@pytest.mark.parametrize(
    "wrong",
    [
        create("n", "a"),
        update("n", {"id": "b"}, {"id": "b"}),
        delete("n", {"id": "b"}),
        Change("n", "a", "create", {"id": "a"}, {"id": "a"}),
    ],
)
def test_a_change_that_does_not_fit_what_is_stored_is_doubt(store: Store, wrong: Change) -> None:
    commit(store, entry(1, create("n", "a")))
    with pytest.raises(errors.Doubt, match="does not fit"):
        commit(store, entry(2, wrong))
    assert store.head().revision == 1
    commit(store, entry(2, create("n", "b")))


# Folding


def test_a_fold_tells_how_many_entries_went(store: Store, peer: Store, states: list[Snapshot]) -> None:
    assert [store.begin().fold(before) for before in (1, 4, 3, 4, 9)] == [0, 3, 0, 0, 5]
    assert (peer.base(), peer.head()) == (8, store.head())
    with pytest.raises(ValueError, match="not there yet"), store.begin() as transaction:
        transaction.fold(10)
    commit(store, entry(9, update("n", {"other": True, "id": "a"}, {"id": "a"})))
    assert peer.document_at("n", "a", 8) == Stored({"other": True, "id": "a"}, 7)
    assert peer.state_at(8).tombstones == (Tombstone("c1.example.com", "c1", 3), Tombstone("far.example.com", "far", 5))


def test_a_fold_that_is_rolled_back_leaves_everything(store: Store, states: list[Snapshot]) -> None:
    store.begin().rollback()
    with pytest.raises(RuntimeError), store.begin():
        raise RuntimeError
    assert (store.base(), len(store.entries(0))) == (0, 8)
