"""The last good state in a file: exactly what the store has, refused when it is damaged or of another store, and kept in time."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import atomic_files, changes, errors, snapshot_file, snapshot_keeper
from flux_resourceset.changes import Charge, Snapshot, Stored, Tombstone, View
from flux_resourceset.follower import Follower
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.news import Remembered
from flux_resourceset.snapshot_file import About, Parts
from flux_resourceset.snapshot_keeper import SnapshotKeeper
from flux_resourceset.store import Store
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import cluster, namespace

KNOWN = kind_files.load()
TARGET = "postgresql://localhost:5432/fleet"


class Fleet:
    """A store with documents of kinds known and not, complete and not; a follower of it, and its file."""

    def __init__(self, directory: Path) -> None:
        self.store = MemoryStore()
        self.writer = samples.ledger_of(KNOWN, self.store)
        samples.create(self.writer, "namespaces", namespace("n1"), namespace("n2", annotations={"note": 'ü "\\'}))
        samples.create(self.writer, CLUSTERS, cluster("c1", namespaces=[{"id": "n1"}, {"id": "n2"}]), cluster("c2"))
        samples.write(self.writer, lambda draft: draft.delete(KNOWN.clusters, "c2"))
        samples.write(self.writer, lambda draft: draft.delete(KNOWN.by_name["namespaces"], "n2", True))
        self.commit(changes.Change("widgets", "w1", "create", None, {"id": "w1"}))
        incomplete = {"id": "n3"}  # as it was stored before the kind had more fields
        self.commit(changes.Change("namespaces", "n3", "create", None, incomplete))
        self.file = directory / "snapshot"
        self.is_away = False
        self.follower = self.another()
        self.follower.refresh()

    def commit(self, *made: changes.Change) -> None:
        entry = changes.Entry(len(self.store.log) + 1, "2026-01-31T12:00:00.000000Z", "a", None, None, None, False, made)
        with self.store.begin() as transaction:
            transaction.commit(entry, charge=Charge((View("namespaces", "namespaces", "namespaces"),), "2026-01-31"))

    def another(self, **options: Any) -> Follower:
        def opened() -> Store:
            if self.is_away:
                raise errors.Unreachable("the database is away")
            return self.store

        return Follower(KNOWN, opened, **options)

    def remembering(self, *, away: bool = False, **options: Any) -> Follower:
        """A process that starts with the file: on the database, or from the file and then on the database."""
        self.kept()
        started = self.another(**options)
        about = snapshot_file.about(self.file)
        assert about is not None
        started.remembered = Remembered(self.file, changes.Head(about.epoch, about.revision, about.hash), about.opened)
        if away:
            self.is_away = True
            assert self.keeper(started).load()
            self.is_away = False
        return started

    def keeper(self, of: Follower | None = None, **options: Any) -> SnapshotKeeper:
        return SnapshotKeeper(of or self.follower, self.file, TARGET, **options)

    def kept(self) -> bytes:
        self.keeper().write_last()
        return self.file.read_bytes()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_it_holds_exactly_what_the_store_has(fleet: Fleet) -> None:
    fleet.kept()
    read = snapshot_file.read(fleet.file, TARGET)
    assert read is not None
    assert read.snapshot == fleet.store.snapshot()
    assert "labels" not in read.snapshot.documents["namespaces"]["n3"].body  # with which it is served
    assert "labels" in fleet.follower.fleet.documents["namespaces"]["n3"].body


def test_it_holds_that_also_of_what_was_followed(fleet: Fleet) -> None:
    """Changes to what is not known, or was not complete, change what is kept of it."""
    for made in (
        changes.Change("widgets", "w1", "update", {"id": "w1"}, {"id": "w1", "size": 2}),
        changes.Change("widgets", "w2", "create", None, {"id": "w2"}),
        changes.Change("namespaces", "n4", "create", None, {"id": "n4"}),
        changes.Change("namespaces", "n3", "update", {"id": "n3"}, {"id": "n3", "labels": {}, "annotations": {}}),
        changes.Change("widgets", "w1", "delete", {"id": "w1", "size": 2}, None),
        changes.Change("namespaces", "n4", "delete", {"id": "n4"}, None),
    ):
        fleet.commit(made)
        fleet.follower.refresh()
        fleet.kept()
        read = snapshot_file.read(fleet.file, TARGET)
        assert read is not None
        assert read.snapshot == fleet.store.snapshot()


def test_a_process_that_starts_from_it_serves_the_same_and_goes_on(fleet: Fleet) -> None:
    fleet.kept()
    fleet.is_away = True
    started = fleet.another()
    assert fleet.keeper(started).load()
    assert started.fleet.documents == fleet.follower.fleet.documents
    assert started.fleet.head == fleet.store.head()

    async def test() -> None:
        key = b"c1.example.com/namespaces"
        assert await started.wait_for_answer(key, False) == fleet.follower.fleet.answer(key)
        assert await started.wait_for_answer(b"c2.example.com/namespaces", False) == b'{"inputs":[]}'  # its tombstone came along
        assert not started.is_reachable()
        with pytest.raises(errors.Unreachable):
            started.check_reachable()
        fleet.commit(changes.Change("namespaces", "n5", "create", None, {"id": "n5", "labels": {}, "annotations": {}}))
        fleet.is_away = False
        assert (await started.fresh()).head == fleet.store.head()
        assert not started.stands_in
        fleet.is_away = True
        started._let_go()  # from now on it is as ever: what cannot be looked at is not vouched for
        with pytest.raises(errors.Doubt):
            await started.fresh()

    asyncio.run(test())


def test_its_age_counts_for_max_staleness(fleet: Fleet) -> None:
    fleet.kept()
    content = fleet.file.read_bytes()
    about, _, rest = content.partition(b"\n")
    read = snapshot_file.read(fleet.file, TARGET)
    assert read is not None
    old = about.replace(changes.timestamp(read.seen).encode(), b"2020-01-31T12:00:00.000000Z")
    assert old != about
    _rewrite(fleet.file, old + b"\n" + rest)
    fleet.is_away = True
    started = fleet.another(max_staleness=3600)
    assert fleet.keeper(started).load()
    with pytest.raises(errors.Stale):
        asyncio.run(started.fresh())


def _rewrite(file: Path, content: bytes) -> None:
    """With a checksum that fits."""
    import hashlib

    body = content[: content.rindex(b'{"sha256"')]
    file.write_bytes(body + b'{"sha256":"%b"}\n' % hashlib.sha256(body).hexdigest().encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1] + b"x\n",
        lambda content: content[: len(content) // 2],
        lambda content: content[: content.rindex(b'{"sha256"')],
        lambda content: content.replace(b'"n1"', b'"n9"', 1),
        lambda content: content.replace(b'["document"', b'["nonsense"', 1),
        lambda content: content + b'["document","namespaces","more",1,{}]\n',
        lambda content: content.replace(b"snapshot/v1", b"snapshot/v9"),
        lambda content: b"[" * 5000,
        lambda content: bytes(range(256)) * 10,
    ],
)
def test_a_damaged_one_is_refused_and_named(fleet: Fleet, damage: Any) -> None:
    fleet.file.write_bytes(damage(fleet.kept()))
    started = fleet.another()
    with pytest.raises(errors.Doubt, match=rf"the snapshot file {fleet.file} is damaged"):
        fleet.keeper(started).load()
    assert started.fleet.epoch == ""


def test_every_byte_counts(fleet: Fleet) -> None:
    content = fleet.kept()
    for position in range(0, len(content), 7):
        fleet.file.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(errors.Doubt):
            snapshot_file.read(fleet.file, TARGET)


def test_one_of_another_store_is_foreign_at_once(fleet: Fleet) -> None:
    fleet.kept()
    with pytest.raises(errors.Doubt, match="is of another store"):
        snapshot_file.read(fleet.file, TARGET + "2")
    assert TARGET.encode() not in fleet.file.read_bytes()


def test_one_that_is_not_there_or_not_to_be_read_is_told_apart(fleet: Fleet, tmp_path: Path) -> None:
    assert not fleet.keeper().load()
    with pytest.raises(errors.Doubt, match="cannot be read: Is a directory"):
        snapshot_file.read(tmp_path, TARGET)


# Compared with the database


def older_than(store: MemoryStore, opened: str = "") -> MemoryStore:
    """The same store as it was two entries after its start, which a writer opened then or at the time that is given."""
    older = MemoryStore()
    older._epoch, older._opened = store.epoch(), opened or store._opened
    for entry in store.log[:2]:
        with older.begin() as transaction:
            transaction.commit(entry)
    return older


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("vouches", [False, True])
def test_a_file_of_another_epoch_is_refused_and_named(fleet: Fleet, vouches: bool, away: bool) -> None:
    started = fleet.remembering(vouches=vouches, away=away)
    fleet.store = MemoryStore()
    samples.create(samples.ledger_of(KNOWN, fleet.store), "namespaces", namespace("other"))
    with pytest.raises(errors.Doubt, match=f"the snapshot file {fleet.file} is of another store"):
        asyncio.run(started.fresh())


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("vouches", [False, True])
def test_a_database_in_whose_place_an_import_came_is_taken(fleet: Fleet, vouches: bool, away: bool) -> None:
    before = fleet.store.epoch()
    started = fleet.remembering(vouches=vouches, away=away)
    fleet.store = MemoryStore()
    fleet.store._replaced = (before,)
    samples.create(samples.ledger_of(KNOWN, fleet.store), "namespaces", namespace("other"))
    assert list(asyncio.run(started.fresh()).documents["namespaces"]) == ["other"]


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("vouches", [False, True])
def test_a_log_that_stepped_back_is_refused(fleet: Fleet, vouches: bool, away: bool) -> None:
    started = fleet.remembering(vouches=vouches, away=away)
    fleet.store = older_than(fleet.store)
    with pytest.raises(errors.Doubt, match=f"the database has stepped back: .* the snapshot file {fleet.file}"):
        asyncio.run(started.fresh())


@pytest.mark.parametrize("away", [False, True])
def test_a_reader_takes_a_log_that_stepped_back_once_a_writer_was_started_on_it(fleet: Fleet, away: bool) -> None:
    reader = fleet.remembering(away=away)
    fleet.store = older_than(fleet.store, opened="2099-01-31")
    assert asyncio.run(reader.fresh()).revision == 2


def test_a_writer_with_a_newer_file_takes_no_older_log_even_after_another_started_on_it(fleet: Fleet) -> None:
    writer = fleet.remembering(vouches=True)
    fleet.store = older_than(fleet.store, opened="2099-01-31")
    with pytest.raises(errors.Doubt, match="has stepped back"):
        asyncio.run(writer.fresh())


# When it is written


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_it_is_written_after_a_change_and_rests_then(fleet: Fleet) -> None:
    clock = Clock()

    async def test() -> None:
        keeper = fleet.keeper(clock=clock)
        await keeper.look()
        assert fleet.file.exists()
        first = fleet.file.read_bytes()
        fleet.commit(changes.Change("widgets", "w2", "create", None, {"id": "w2"}))
        clock.now += 9
        await keeper.look()
        assert fleet.file.read_bytes() == first
        clock.now += 1
        await keeper.look()
        assert b'"w2"' in fleet.file.read_bytes()
        second = fleet.file.stat().st_ino
        clock.now += 100
        await keeper.look()
        assert fleet.file.stat().st_ino == second  # nothing has changed

    asyncio.run(test())


def test_what_cannot_be_written_is_a_warning(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(snapshot_keeper, "REST_SECONDS", 0.0)
    fleet.file = fleet.file.parent / "none" / "snapshot"

    async def test() -> None:
        keeper = fleet.keeper(clock=Clock())
        for _ in range(3):
            await keeper.look()
        assert caplog.text.count("cannot be written: No such file or directory") == 1
        fleet.file.parent.mkdir()
        await keeper.look()
        assert fleet.file.exists()

    asyncio.run(test())


def test_a_state_that_comes_from_the_file_is_not_written(fleet: Fleet) -> None:
    content = fleet.kept()
    fleet.is_away = True
    started = fleet.another()
    keeper = fleet.keeper(started)
    assert keeper.load()
    fleet.file.unlink()
    keeper.write_last()
    assert not fleet.file.exists()
    assert content


def test_a_large_one_takes_little_memory_to_write_and_no_more_than_its_documents_to_read(tmp_path: Path) -> None:
    file, count = tmp_path / "large", 2000
    about = About(
        snapshot_file.FORMAT, snapshot_file.name(TARGET), "2026-01-31T12:00:00Z", "e", count, "h", "", 0, (), ()
    )  # fmt: skip
    documents = ((("clusters", f"c{n}"), Stored({"id": f"c{n}", "text": "x" * 1000}, n)) for n in range(count))
    tracemalloc.start()
    try:
        snapshot_file.write(file, about, Parts(documents, [Tombstone("d", "c", 1)], [("namespaces", "n")]))
        written = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        read = snapshot_file.read(file, TARGET)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert file.stat().st_size > count * 1000
    assert written < file.stat().st_size / 4
    assert peak < held * 1.1
    assert read is not None
    assert isinstance(read.snapshot, Snapshot)
    assert len(read.snapshot.documents["clusters"]) == count


def test_a_file_is_replaced_piece_by_piece_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    atomic_files.replace(file, iter([b"a", b"b"]))
    assert file.read_bytes() == b"ab"

    def broken() -> Any:
        yield b"c"
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        atomic_files.replace(file, broken())
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"ab", [file])
