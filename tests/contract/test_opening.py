"""Stores by the scheme of their URL: what is opened, and what happens when it is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.entries import bodies, commit, create, entry
from flux_resourceset import errors
from flux_resourceset.store import opening
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore


def at(path: Path, mode: str = "rwc") -> opening.Location:
    return opening.location(f"sqlite://{path}?mode={mode}")


@pytest.mark.parametrize("writing", [True, False])
def test_memory_is_the_same_store_however_often_it_is_opened(writing: bool) -> None:
    where = opening.location("memory://")
    assert not where.is_kept
    open_store = opening.opener(where, writing=writing)
    first = open_store()
    assert isinstance(first, MemoryStore)
    assert open_store() is first
    assert opening.opener(where, writing=writing)() is not first


def test_a_writer_creates_a_file_once_and_never_again(tmp_path: Path) -> None:
    open_store = opening.opener(at(tmp_path / "fleet.db"), writing=True)
    open_store().close()
    (tmp_path / "fleet.db").unlink()
    with pytest.raises(errors.Unavailable, match="there is no database"):
        open_store()
    assert not (tmp_path / "fleet.db").exists()


def test_a_writer_creates_only_where_the_mode_says_so(tmp_path: Path) -> None:
    with pytest.raises(errors.Unavailable, match="mode=rwc"):
        opening.opener(at(tmp_path / "fleet.db", "rw"), writing=True)()


def test_a_lost_store_is_begun_anew_once_and_only_if_that_was_said(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"

    def lose() -> None:
        commit(store, entry(store.head().revision + 1, create("n", f"a{store.head().revision}")))
        store.close()
        path.unlink()

    store = SqliteStore(path)
    lose()
    with pytest.raises(errors.Unavailable, match="is lost"):
        opening.opener(at(path), writing=True)()
    open_store = opening.opener(at(path), writing=True, begin_anew=True)
    store = open_store()  # type: ignore[assignment]
    lose()
    with pytest.raises(errors.Unavailable, match="is lost"):
        open_store()


def test_a_reader_reads_whatever_the_mode_is(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "fleet.db")
    commit(store, entry(1, create("n", "a")))
    reader = opening.opener(at(tmp_path / "fleet.db"), writing=False)()
    assert isinstance(reader, SqliteStore)
    assert reader.read_only
    assert bodies(reader, "n") == {"a": {"id": "a"}}
    reader.close()
    store.close()


def test_what_is_left_beside_a_lost_store_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    Path(f"{path}-wal").write_bytes(b"left over")
    with pytest.raises(errors.Unavailable, match="-wal says that there was one"):
        opening.opener(at(path), writing=True)()
    store = opening.opener(at(path), writing=True, begin_anew=True)()
    assert store.head().revision == 0
    assert Path(f"{path}-wal.lost").read_bytes() == b"left over"
    store.close()


def test_an_empty_copy_in_the_place_of_a_filled_store_is_another_store(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    store = SqliteStore(path)
    empty, epoch = path.read_bytes(), store.epoch()
    commit(store, entry(1, create("n", "a")))
    store.close()
    path.write_bytes(empty)
    with pytest.raises(errors.Unavailable, match=r"is empty, and .* says that there was a store with documents"):
        opening.opener(at(path), writing=True)()
    anew = opening.opener(at(path), writing=True, begin_anew=True)()
    assert anew.epoch() != epoch
    anew.close()
