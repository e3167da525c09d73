"""What every store says of its log to others: any stretch of it, forwards and backwards, also when its beginning is gone."""

from __future__ import annotations

import threading

import msgspec
import pytest

from contract.entries import bodies, commit, create, delete, entry, matching, time, update
from contract.folding import fold
from flux_resourceset import errors
from flux_resourceset.changes import Decommissioned, Entry, Head, Query, Snapshot, Stored
from flux_resourceset.store import Store

LOG = [
    entry(1, create("n", "a"), actor="jane"),
    entry(2, create("n", "b"), create("m", "a"), actor="joe"),
    entry(3, update("n", {"id": "a"}, {"id": "a", "v": 1}), actor="joe"),
    entry(4, create("m", "b"), actor="jane"),
    entry(5, delete("n", {"id": "b"}), decommissioned=(Decommissioned("far.example.com", "far"),), actor="jane"),
]


@pytest.fixture
def logged(store: Store) -> Store:
    commit(store, *LOG)
    return store


# Stretches


@pytest.mark.parametrize(
    ("after", "until", "revisions"),
    [
        (0, None, [1, 2, 3, 4, 5]),
        (0, 5, [1, 2, 3, 4, 5]),
        (0, 99, [1, 2, 3, 4, 5]),
        (1, 3, [2, 3]),
        (2, 3, [3]),
        (3, 3, []),
        (4, 2, []),
        (0, 0, []),
        (5, None, []),
        (99, 100, []),
    ],
)
def test_entries_are_those_above_a_revision_up_to_another_one(
    logged: Store, peer: Store, after: int, until: int | None, revisions: list[int]
) -> None:
    wanted = [LOG[revision - 1] for revision in revisions]
    assert logged.entries(after, until) == peer.entries(after, until) == wanted
    with logged.begin() as transaction:
        assert transaction.entries(after, until) == wanted


def test_entries_are_read_in_any_thread(logged: Store) -> None:
    found: list[list[Entry]] = []
    threads = [threading.Thread(target=lambda: found.append(logged.entries(1, 4))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [LOG[1:4]] * 4


# Forwards


@pytest.mark.parametrize(
    ("query", "revisions"),
    [
        (Query(after=0), [1, 2, 3, 4, 5]),
        (Query(after=3), [4, 5]),
        (Query(after=5), []),
        (Query(after=99), []),
        (Query(after=0, limit=2), [1, 2]),
        (Query(after=2, limit=2), [3, 4]),
        (Query(after=1, before=4), [2, 3]),
        (Query(after=0, kind="n"), [1, 2, 3, 5]),
        (Query(after=1, kind="n", limit=2), [2, 3]),
        (Query(after=0, kind="m", id="b"), [4]),
        (Query(after=1, actor="jane"), [4, 5]),
        (Query(after=0, since=time(2), until=time(4), limit=2), [2, 3]),
    ],
)
def test_the_log_is_searched_oldest_first_above_a_revision(logged: Store, query: Query, revisions: list[int]) -> None:
    assert matching(logged, query) == [LOG[revision - 1] for revision in revisions]


def test_the_log_can_be_read_page_by_page_in_both_directions(logged: Store) -> None:
    forwards: list[Entry] = []
    while page := matching(logged, Query(after=forwards[-1].revision if forwards else 0, limit=2)):
        forwards += page
    backwards: list[Entry] = []
    while page := matching(logged, Query(before=backwards[-1].revision if backwards else None, limit=2)):
        backwards += page
    assert forwards == LOG == backwards[::-1]


# Page by page


@pytest.mark.parametrize(
    ("page", "pages"),
    [(1, [[1], [2], [3], [4], [5]]), (2, [[1], [2], [3, 4], [5]]), (3, [[1, 2], [3, 4, 5]]), (99, [[1, 2, 3, 4, 5]])],
)
def test_a_page_has_up_to_so_many_changes_or_one_entry(logged: Store, page: int, pages: list[list[int]]) -> None:
    assert [[each.revision for each in entries] for entries in logged.find(Query(after=0), page)] == pages
    backwards = [each.revision for entries in logged.find(Query(), page) for each in entries]
    assert backwards == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("page", [1, 2, 99])
@pytest.mark.parametrize("query", [Query(actor="jane"), Query(actor="jane", after=0), Query(actor="jane", before=9, after=2)])
def test_documents_are_whole_though_others_changed_them_in_between(store: Store, query: Query, page: int) -> None:
    """In entries that were not asked for: also where the document went and came back."""
    made, body = [create("n", "a", v=0)], {"id": "a", "v": 0}
    for number in range(1, 11):
        if number in (5, 8):
            made += [delete("n", body), create("n", "a", v=number)]
        else:
            made.append(update("n", body, {"id": "a", "v": number}))
        body = {"id": "a", "v": number}
    log = [entry(revision, change, actor=("jane", "joe", "joe")[revision % 3]) for revision, change in enumerate(made, 1)]
    commit(store, *log)
    wanted = [each for each in log if query.matches(each)]
    assert len(wanted) > 1
    assert matching(store, query, page) == (wanted if query.ascending else wanted[::-1])


def test_an_entry_that_brings_names_only_is_one_of_a_page_too(store: Store) -> None:
    commit(store, *(entry(number, decommissioned=(Decommissioned(f"d{number}.example.com", "d"),)) for number in range(1, 4)))
    assert [len(entries) for entries in store.find(Query(), 2)] == [2, 1]


def test_pages_may_be_read_by_one_thread_after_the_other(logged: Store) -> None:
    pages, read = logged.find(Query(after=0), 1), []
    for _ in LOG:
        thread = threading.Thread(target=lambda: read.extend(next(pages)))
        thread.start()
        thread.join(30)
    assert read == LOG


def test_what_is_written_between_two_pages_is_not_in_them(logged: Store, peer: Store) -> None:
    pages = logged.find(Query(after=0), 1)
    first = next(pages)
    commit(peer, entry(6, create("n", "c")))
    assert [*first, *(each for entries in pages for each in entries)] == LOG


def test_a_log_that_is_replaced_between_two_pages_is_doubt_and_no_mixture(logged: Store, peer: Store) -> None:
    pages = logged.find(Query(after=0), 1)
    next(pages)
    history = [entry(number, create("n", f"x{number}")) for number in range(1, 6)]
    documents = {"n": {f"x{number}": Stored({"id": f"x{number}"}, number) for number in range(1, 6)}}
    with peer.begin() as transaction:
        transaction.restore(Snapshot("another", 5, documents, ()), history)
    with pytest.raises(errors.Unavailable, match="replaced"):
        next(pages)


# A log whose beginning was folded away


def test_a_log_that_was_never_folded_begins_at_zero(store: Store, peer: Store) -> None:
    assert (store.base(), store.snapshot().base) == (0, 0)
    commit(store, *LOG)
    assert (peer.base(), peer.snapshot().base) == (0, 0)


@pytest.mark.parametrize("base", [1, 3, 5])
def test_what_was_folded_away_is_still_in_the_documents(logged: Store, peer: Store, base: int) -> None:
    before = peer.snapshot()
    fold(logged, base)
    after = peer.snapshot()
    assert (peer.base(), after.base) == (base, base)
    assert msgspec.structs.replace(after, base=0) == before
    assert peer.head() == Head(before.epoch, 5, before.hash)


def test_the_rest_of_a_folded_log_is_found(logged: Store) -> None:
    fold(logged, 2)
    assert logged.entries(0) == logged.entries(2) == LOG[2:]
    assert logged.entries(0, 3) == LOG[2:3]
    assert logged.entries(0, 2) == logged.entries(0, 1) == []
    assert [each.revision for each in matching(logged, Query())] == [5, 4, 3]
    assert [each.revision for each in matching(logged, Query(after=0))] == [3, 4, 5]
    assert matching(logged, Query(before=3)) == []


def test_a_folded_log_is_followed_from_its_base_on_and_from_nowhere_below(store: Store, peer: Store) -> None:
    heads = [store.head()]
    for each in LOG:
        commit(store, each)
        heads.append(store.head())
    fold(store, 3)
    for number, head in enumerate(heads):
        followed = peer.follow(head)
        assert peer.continues(head) == (number >= 3)
        assert (followed and [found.revision for found in followed.entries]) == ([*range(number + 1, 6)] if number >= 3 else None)
        with store.begin() as transaction:
            assert transaction.follow(head) == followed
    for wrong in (msgspec.structs.replace(heads[3], hash="another"), msgspec.structs.replace(heads[3], revision=0)):
        assert not peer.continues(wrong)


@pytest.mark.parametrize("base", [3, 5])
def test_a_folded_log_is_written_on(logged: Store, peer: Store, base: int) -> None:
    """Also one of which nothing is left: its hash and its number of documents stay."""
    head = logged.head()
    fold(logged, base)
    commit(logged, entry(6, create("n", "c"), delete("m", {"id": "a"})))
    assert peer.snapshot().documents == {
        "n": {"a": Stored({"id": "a", "v": 1}, 3), "c": Stored({"id": "c"}, 6)},
        "m": {"b": Stored({"id": "b"}, 4)},
    }
    followed = peer.follow(head)
    assert followed is not None
    assert [found.revision for found in followed.entries] == [6]
    assert peer.snapshot().revision == 6


def test_a_restore_begins_a_whole_log(logged: Store, peer: Store) -> None:
    fold(logged, 3)
    history = [entry(1, create("n", "x"))]
    with logged.begin() as transaction:
        transaction.restore(Snapshot("another", 1, {"n": {"x": Stored({"id": "x"}, 1)}}, ()), history)
    assert (peer.base(), peer.entries(0)) == (0, history)
    commit(peer, entry(2, create("n", "y")))
    assert set(bodies(logged, "n")) == {"x", "y"}


# Who wrote


def test_signatures_are_entries_without_what_they_changed(logged: Store, peer: Store) -> None:
    bare = {each.revision: msgspec.structs.replace(each, changes=(), decommissioned=()) for each in LOG}
    assert logged.signatures([5, 2, 2]) == peer.signatures({2, 5}) == {2: bare[2], 5: bare[5]}
    assert logged.signatures([0, 6, 99]) == {}
    fold(logged, 2)
    assert logged.signatures(range(9)) == peer.signatures(range(9)) == {revision: bare[revision] for revision in (3, 4, 5)}
