"""What every store does with the answers that are kept under idempotency keys."""

from __future__ import annotations

from contract.entries import create, entry, time
from flux_resourceset.store import Memo, Store


def memo(key: str, day: int, body: bytes = b"\x00answer") -> Memo:
    return Memo(key, time(day), "digest", body)


def recalled(store: Store, key: str) -> Memo | None:
    transaction = store.begin()
    try:
        return transaction.recall(key)
    finally:
        transaction.rollback()


def test_a_memo_is_recalled_by_its_key(store: Store) -> None:
    assert recalled(store, "k") is None
    store.begin().commit(entry(1, create("n", "a")), memo("k", 1))
    assert recalled(store, "k") == memo("k", 1)
    assert recalled(store, "K") is None


def test_a_memo_is_kept_without_an_entry(store: Store) -> None:
    store.begin().commit(None, memo("k", 1))
    assert recalled(store, "k") == memo("k", 1)
    assert store.snapshot().revision == 0
    assert store.entries(0) == []


def test_a_memo_takes_the_place_of_an_older_one(store: Store) -> None:
    store.begin().commit(None, memo("k", 1))
    store.begin().commit(None, memo("k", 2, b"new"))
    assert recalled(store, "k") == memo("k", 2, b"new")


def test_old_memos_are_forgotten_when_asked(store: Store) -> None:
    store.begin().commit(None, memo("old", 1))
    store.begin().commit(None, memo("edge", 3))
    store.begin().commit(None, memo("new", 4), forget_before=time(3))
    assert [recalled(store, key) is not None for key in ("old", "edge", "new")] == [False, True, True]


def test_old_memos_are_forgotten_by_any_commit(store: Store) -> None:
    store.begin().commit(None, memo("old", 1))
    store.begin().commit(entry(1, create("n", "a")), forget_before=time(2))
    assert recalled(store, "old") is None


def test_memos_are_kept_when_nothing_is_to_be_forgotten(store: Store) -> None:
    store.begin().commit(None, memo("old", 1))
    store.begin().commit(entry(1, create("n", "a")))
    assert recalled(store, "old") is not None
