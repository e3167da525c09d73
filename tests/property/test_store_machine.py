"""Any sequence of what can be done to a store: memory is the model, the databases must do the same."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import live
import postgres_server
from flux_resourceset import changes, errors
from flux_resourceset.changes import Applied, Change, Decommissioned, Entry, Query, Snapshot, Tombstone
from flux_resourceset.store import Memo, Store, postgres_connections
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.postgres import PostgresStore
from flux_resourceset.store.sqlite import SqliteStore

pytestmark = pytest.mark.long

kinds = st.sampled_from(["clusters", "n"])
ids = st.sampled_from(["a", "b"])
names = st.sampled_from(["x.example.com", "y.example.com"])
actors = st.sampled_from(["jane", "joe"])
days = st.integers(1, 9)
fields = st.dictionaries(
    st.sampled_from("pqrs"), st.integers(-1, 1) | st.text("ü'\"", max_size=2) | st.none(), max_size=3
)  # in any order


def time(day: int) -> str:
    return f"2026-01-{day:02}T00:00:00.000000Z"


class Stores(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.held = contextlib.ExitStack()
        self.model: Store = MemoryStore()
        self.place()
        self.system: Store = self.opened(create=True)
        self.reader: Store = self.opened(read_only=True)
        self.kept: list[tuple[Snapshot, list[Entry], list[Applied]]] = []
        self.recorded: dict[int, Snapshot] = {0: self.model.snapshot()}  # what was there when each revision was written
        self.seen = self.versions()

    def teardown(self) -> None:
        self.system.close()
        self.reader.close()
        self.held.close()

    def place(self) -> None:
        self.path = Path(self.held.enter_context(tempfile.TemporaryDirectory())) / "fleet.db"

    def opened(self, *, read_only: bool = False, create: bool = False) -> Store:
        return SqliteStore(self.path, read_only=read_only, create=create)

    def versions(self) -> tuple[object, ...]:
        if self.reader.lags:
            live.until(lambda: self.reader.version() == self.system.version())
        return self.model.version(), self.system.version(), self.reader.version()

    def changed(self) -> None:
        """Everybody must have noticed what was committed."""
        now = self.versions()
        assert all(before != after for before, after in zip(self.seen, now, strict=True))
        self.seen = now

    def change(self, kind: str, id: str, dns: str, more: dict[str, Any], remove: bool) -> Change | None:
        stored = self.model.snapshot().documents.get(kind, {}).get(id)
        after = None if remove else {"id": id, "cluster_dns": dns, **more}
        if stored is None:
            return None if after is None else Change(kind, id, "create", None, after)
        return Change(kind, id, "delete" if after is None else "update", stored.body, after)

    @rule(
        wanted=st.lists(st.tuples(kinds, ids, names, fields, st.booleans()), max_size=3, unique_by=lambda item: item[:2]),
        actor=actors,
        day=days,
        forced=st.booleans(),
        memo=st.none() | st.tuples(ids, days),
        far=st.none() | names,
    )
    def commit(self, wanted: Any, actor: str, day: int, forced: bool, memo: Any, far: str | None) -> None:
        made = tuple(change for change in (self.change(*item) for item in wanted) if change)
        came = (Decommissioned(far, "far"),) if far else ()
        revision = self.model.snapshot().revision + 1
        entry = (
            Entry(revision, time(day), actor, None, "r", None, forced, made, came, reverts=revision % 3 or None)
            if made or came
            else None
        )
        kept = Memo(memo[0], time(memo[1]), "digest", b"\x00\xff") if memo else None
        for store in (self.model, self.system):
            store.begin().commit(entry, kept, time(memo[1] - 1) if memo else "")
        if entry:
            self.changed()
            self.recorded[revision] = self.system.snapshot()
        self.seen = self.versions()

    @rule(kind=kinds, id=ids, manager=actors, named=st.none() | fields)
    def apply(self, kind: str, id: str, manager: str, named: dict[str, Any] | None) -> None:
        if id in self.model.snapshot().documents.get(kind, {}):
            for store in (self.model, self.system):
                store.begin().commit(None, applied=[Applied(kind, id, manager, named)])
            self.seen = self.versions()

    @rule()
    def roll_back(self) -> None:
        for store in (self.model, self.system):
            store.begin().rollback()
        assert self.versions() == self.seen

    @rule()
    def remember(self) -> None:
        if not self.model.base():
            self.kept.append((self.model.snapshot(), self.model.entries(0), self.applied(self.model)))

    def applied(self, store: Store) -> list[Applied]:
        keys = [(kind, id) for kind in ("clusters", "n") for id in ("a", "b")]
        found = store.applied(keys)
        return [Applied(*key, manager, found[key][manager]) for key in sorted(found) for manager in sorted(found[key])]

    @rule(share=st.floats(0, 1))
    def fold(self, share: float) -> None:
        base, revision = self.model.base(), self.model.snapshot().revision
        if revision > base:
            into = base + 1 + int(share * (revision - base - 1))
            for store in (self.model, self.system):
                with store.begin() as transaction:
                    assert transaction.fold(into + 1) == into - base
            self.seen = self.versions()

    @rule(number=st.integers(0, 5), data=st.data())
    def restore(self, number: int, data: st.DataObject) -> None:
        if self.kept:
            snapshot, history, applied = data.draw(st.sampled_from(self.kept))
            again = Snapshot(f"epoch {number} {len(self.kept)}", snapshot.revision, snapshot.documents, snapshot.tombstones)
            for store in (self.model, self.system):
                store.begin().restore(again, history, applied)
            self.seen = self.versions()
            states = MemoryStore()  # on its way there
            self.recorded = {0: states.snapshot()}
            for entry in history:
                states.begin().commit(entry)
                self.recorded[entry.revision] = states.snapshot()
            assert self.model.epoch() == self.system.epoch() == self.reader.epoch()

    @rule()
    def open_again(self) -> None:
        self.system.close()
        self.reader.close()
        self.system = self.opened()
        self.reader = self.opened(read_only=True)
        self.seen = self.versions()

    @rule(
        query=st.builds(
            Query,
            kind=st.none() | kinds,
            id=st.none() | ids,
            actor=st.none() | actors,
            since=st.none() | days.map(time),
            until=st.none() | days.map(time),
            before=st.none() | st.integers(1, 9),
            after=st.none() | st.integers(0, 9),
            limit=st.integers(1, 4),
        ),
        page=st.integers(1, 4),
    )
    def find(self, query: Query, page: int) -> None:
        pages = [list(store.find(query, page)) for store in (self.system, self.model, self.reader)]
        assert pages[0] == pages[1] == pages[2]

    @rule(after=st.integers(0, 9), until=st.none() | st.integers(0, 9))
    def read_a_stretch(self, after: int, until: int | None) -> None:
        wanted = self.model.entries(after, until)
        assert self.system.entries(after, until) == self.reader.entries(after, until) == wanted
        assert all(after < entry.revision and (until is None or entry.revision <= until) for entry in wanted)

    @rule(behind=st.integers(0, 9))
    def follow(self, behind: int) -> None:
        """From any revision of which the log still knows the hash."""
        known = [changes.Head("", self.model.base(), self.base_hash()), *map(self.head_of, self.model.entries(0))]
        head = known[max(len(known) - 1 - behind, 0)]
        for store in (self.model, self.system, self.reader):
            followed = store.follow(msgspec.structs.replace(head, epoch=store.epoch()))
            assert followed is not None
            assert [entry.revision for entry in followed.entries] == [*range(head.revision + 1, store.head().revision + 1)]

    def head_of(self, entry: Entry) -> changes.Head:
        assert isinstance(self.model, MemoryStore)
        return changes.Head("", entry.revision, self.model.hashes[entry.revision - self.model.base() - 1])

    def base_hash(self) -> str:
        assert isinstance(self.model, MemoryStore)
        return self.model._base.hash

    @rule(back=st.integers(0, 9))
    def look_back(self, back: int) -> None:
        """Everything was as it was recorded then, byte by byte; below the base nobody can tell."""
        revision = max(self.model.head().revision - back, 0)
        keys = [(kind, id) for kind in ("clusters", "n") for id in ("a", "b")]
        for store in (self.model, self.system, self.reader):
            if revision < store.base():
                with pytest.raises(errors.Compacted):
                    store.state_at(revision)
                with pytest.raises(errors.Compacted):
                    store.document_at("n", "a", revision)
                continue
            wanted = exact(self.recorded[revision].documents)
            found = store.state_at(revision)
            assert exact(found.documents) == wanted
            assert (found.revision, buried(found)) == (revision, buried(self.recorded[revision]))
            assert (found.hash, found.forgone) == (self.recorded[revision].hash, self.recorded[revision].forgone)
            some = store.documents_at(keys, revision)
            assert {key: (msgspec.json.encode(each.body), each.revision) for key, each in some.items()} == wanted
            assert {key: each for key in keys if (each := store.document_at(*key, revision))} == some
        assert len({store.digest_at(max(revision, store.base())) for store in (self.model, self.system)}) == 1

    @rule(kind=kinds, id=ids, before=st.none() | st.integers(1, 9), limit=st.integers(1, 4))
    def look_at_touches(self, kind: str, id: str, before: int | None, limit: int) -> None:
        found = [told(store, kind, id, before, limit) for store in (self.model, self.system, self.reader)]
        assert found[0] == found[1] == found[2]

    @rule(day=days)
    def look_for_a_time(self, day: int) -> None:
        found = []
        for store in (self.model, self.system, self.reader):
            try:
                found.append(store.revision_at(time(day)))
            except errors.Compacted:
                found.append(-1)
        assert found[0] == found[1] == found[2]

    @rule()
    def verify(self) -> None:
        assert self.system.verified() == self.reader.verified() == self.model.verified()
        assert self.system.verified().fault is None

    @rule(key=ids)
    def recall(self, key: str) -> None:
        found = []
        for store in (self.model, self.system):
            transaction = store.begin()
            found.append(transaction.recall(key))
            transaction.rollback()
        assert found[0] == found[1]

    @invariant()
    def all_hold_the_same(self) -> None:
        wanted = self.model.snapshot()
        for store in (self.system, self.reader):
            found = store.snapshot()
            assert (found.revision, found.documents) == (wanted.revision, wanted.documents)
            assert (found.hash, found.forgone, found.base) == (wanted.hash, wanted.forgone, wanted.base)
            assert buried(found) == buried(wanted)
            assert msgspec.json.encode(store.entries(0)) == msgspec.json.encode(self.model.entries(0))
            assert msgspec.json.encode(self.applied(store)) == msgspec.json.encode(self.applied(self.model))
            for manager in ("jane", "joe"):
                assert store.applied_by(manager, ["n", "clusters"]) == self.model.applied_by(manager, ["n", "clusters"])

    @invariant()
    def revisions_have_no_gaps(self) -> None:
        found = self.model.snapshot().revision
        assert [entry.revision for entry in self.system.entries(0)] == list(range(self.system.base() + 1, found + 1))


def exact(documents: dict[str, dict[str, changes.Stored]]) -> dict[tuple[str, str], tuple[bytes, int]]:
    """With the order of fields."""
    return {
        (kind, id): (msgspec.json.encode(stored.body), stored.revision)
        for kind, of_kind in documents.items()
        for id, stored in of_kind.items()
    }


def told(store: Store, kind: str, id: str, before: int | None, limit: int) -> bytes:
    try:
        return msgspec.json.encode(store.touches(kind, id, before, limit))
    except errors.Compacted as refusal:
        return refusal.detail.encode()


def buried(snapshot: Snapshot) -> set[Tombstone]:
    return set(snapshot.tombstones)


class PostgresStores(Stores):
    def place(self) -> None:
        self.target = postgres_connections.target(self.held.enter_context(postgres_server.shared().store()))

    def opened(self, *, read_only: bool = False, create: bool = False) -> Store:
        return PostgresStore(self.target, read_only=read_only, create=create)


TestPostgresStores = PostgresStores.TestCase
TestPostgresStores.settings = settings(max_examples=6, stateful_step_count=20, deadline=None)
TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
