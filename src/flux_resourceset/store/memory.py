"""The store that forgets: everything in memory, for demos, tests and as the model of the others."""

from __future__ import annotations

import threading
import uuid

from flux_resourceset import changes
from flux_resourceset.changes import Entry, Query, Snapshot, Stored, Tombstone
from flux_resourceset.store import Memo


class MemoryStore:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._epoch = uuid.uuid4().hex
        self.documents: dict[str, dict[str, Stored]] = {}
        self.tombstones: dict[str, Tombstone] = {}
        self.log: list[Entry] = []
        self.memos: dict[str, Memo] = {}

    def version(self) -> object:
        return self._epoch, len(self.log)

    def epoch(self) -> str:
        return self._epoch

    def snapshot(self) -> Snapshot:
        documents = {kind: dict(of_kind) for kind, of_kind in self.documents.items() if of_kind}
        return Snapshot(self._epoch, len(self.log), documents, tuple(self.tombstones.values()))

    def entries(self, after: int) -> list[Entry]:
        return self.log[after:]

    def find(self, query: Query) -> list[Entry]:
        matching = (entry for entry in reversed(self.log) if query.matches(entry))
        return [entry for entry, _ in zip(matching, range(query.limit), strict=False)]

    def begin(self) -> MemoryTransaction:
        self.lock.acquire()
        return MemoryTransaction(self)

    def close(self) -> None:
        pass


class MemoryTransaction:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    @property
    def epoch(self) -> str:
        return self._store.epoch()

    def entries(self, after: int) -> list[Entry]:
        return self._store.entries(after)

    def recall(self, key: str) -> Memo | None:
        return self._store.memos.get(key)

    def commit(self, entry: Entry | None, memo: Memo | None = None, forget_before: str = "") -> None:
        store = self._store
        if entry is not None:
            changes.settle(store.documents, store.tombstones, entry)
            store.log.append(entry)
        store.memos = {key: old for key, old in store.memos.items() if old.time >= forget_before}
        if memo is not None:
            store.memos[memo.key] = memo
        store.lock.release()

    def restore(self, snapshot: Snapshot, history: list[Entry]) -> None:
        store = self._store
        store._epoch = snapshot.epoch
        store.documents = {kind: dict(of_kind) for kind, of_kind in snapshot.documents.items()}
        store.tombstones = {tombstone.dns: tombstone for tombstone in snapshot.tombstones}
        store.log = list(history)
        store.memos = {}
        store.lock.release()

    def rollback(self) -> None:
        self._store.lock.release()
