"""The store that forgets: everything in memory, for demos, tests and as the model of the others."""

from __future__ import annotations

import bisect
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

import msgspec

from flux_resourceset import changes, errors
from flux_resourceset.changes import Applied, Change, Charge, Document, Entry, Head, Query, Snapshot, Stored, Tombstone, View
from flux_resourceset.store import (
    Fault,
    Followed,
    Key,
    Memo,
    Outline,
    Verified,
    applied_to_nothing,
    check_foldable,
    check_led_to,
    check_reachable,
    digest,
    pages,
    replaced_meanwhile,
)


class MemoryStore:
    lags = False

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._epoch = uuid.uuid4().hex
        self.documents: dict[str, dict[str, Stored]] = {}
        self.tombstones: dict[str, Tombstone] = {}
        self.log: list[Entry] = []
        self.hashes: list[str] = []
        self.memos: dict[str, Memo] = {}
        self._applied: dict[Key, dict[str, Document]] = {}  # by manager
        self._forgone: set[tuple[str, str]] = set()
        self._views: tuple[View, ...] = ()
        self._replaced: tuple[str, ...] = ()
        self._opened = ""
        self._base = Head("", 0, "")  # where what was folded away ended; its epoch does not matter
        self._base_time = ""
        self._floor = _State({}, {}, set())  # what it added up to
        self._touched: dict[Key, list[int]] = {}  # the revisions in the log that changed a document

    def version(self) -> object:
        return self._epoch, self._revision, self._opened

    def seen(self) -> float:
        return time.monotonic()

    def is_reachable(self) -> bool:
        return True

    def on_change(self, callback: Callable[[], None]) -> None:
        pass  # whoever looks at the version knows

    @property
    def _revision(self) -> int:
        return self._base.revision + len(self.log)

    def base(self) -> int:
        return self._base.revision

    def epoch(self) -> str:
        return self._epoch

    def head(self) -> Head:
        return Head(self._epoch, self._revision, self.hashes[-1] if self.hashes else self._base.hash)

    def snapshot(self) -> Snapshot:
        return Snapshot(
            epoch=self._epoch,
            revision=self._revision,
            documents={kind: dict(of_kind) for kind, of_kind in self.documents.items() if of_kind},
            tombstones=tuple(self.tombstones.values()),
            hash=self.head().hash,
            forgone=frozenset(self._forgone),
            views=self._views,
            replaced=self._replaced,
            opened=self._opened,
            base=self._base.revision,
        )

    def continues(self, known: Head) -> bool:
        hashes = [self._base.hash, *self.hashes]
        place = known.revision - self._base.revision
        return known.epoch == self._epoch and 0 <= place < len(hashes) and hashes[place] == known.hash

    def follow(self, known: Head) -> Followed | None:
        if not self.continues(known):
            return None
        return Followed(self.entries(known.revision), self.head().hash, self._opened, self._views)

    def follow_few(self, known: Head, few: int, before: Outline | None = None) -> Followed | Outline | None:
        followed = self.follow(known)
        if followed is None or sum(map(_weight, followed.entries)) <= few:
            return followed
        changed = frozenset((change.kind, change.id) for entry in followed.entries for change in entry.changes)
        outline = Outline(self.head(), changed, self._views)
        return before if outline == before else outline

    def stored(self, keys: Iterable[tuple[str, str]], at: Head) -> dict[tuple[str, str], Stored] | None:
        if self.head() != at:
            return None
        return {(kind, id): self.documents[kind][id] for kind, id in keys if id in self.documents.get(kind, ())}

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        base = self._base.revision
        end = None if until is None else max(until - base, 0)
        return self.log[max(after - base, 0) : end]

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        return {key: dict(self._applied[key]) for key in keys if key in self._applied}

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        return sorted(key for key, of_key in self._applied.items() if manager in of_key and key[0] in kinds)

    def find(self, query: Query, page: int) -> Iterator[list[Entry]]:
        epoch = self._epoch
        ordered = iter(self.log) if query.ascending else reversed(self.log)
        found = list(itertools.islice(filter(query.matches, ordered), query.limit))
        for entries in pages(found, lambda entry: len(entry.changes), page):
            if self._epoch != epoch:
                raise replaced_meanwhile()
            yield entries

    # As it was

    def document_at(self, kind: str, id: str, revision: int) -> Stored | None:
        check_reachable(revision, self._base.revision, self._revision)
        touched = self._touched.get((kind, id), [])
        place = bisect.bisect_right(touched, revision)
        if place == 0:
            return self._floor.documents.get(kind, {}).get(id)
        after = self._change(kind, id, touched[place - 1]).after
        return None if after is None else Stored(after, touched[place - 1])

    def documents_at(self, keys: Iterable[Key], revision: int) -> dict[Key, Stored]:
        check_reachable(revision, self._base.revision, self._revision)
        return {key: stored for key in keys if (stored := self.document_at(*key, revision))}

    def state_at(self, revision: int) -> Snapshot:
        check_reachable(revision, self._base.revision, self._revision)
        state = self._floor.advanced(self.entries(0, revision))
        return Snapshot(
            epoch=self._epoch,
            revision=revision,
            documents={kind: of_kind for kind, of_kind in state.documents.items() if of_kind},
            tombstones=tuple(state.tombstones.values()),
            hash=[self._base.hash, *self.hashes][revision - self._base.revision],
            forgone=frozenset(state.forgone),
            base=self._base.revision,
        )

    def touches(self, kind: str, id: str, before: int | None, limit: int) -> list[Entry]:
        if before is not None:
            check_reachable(before - 1, self._base.revision, max(self._revision, before))
        touched = self._touched.get((kind, id), [])
        place = len(touched) if before is None else bisect.bisect_left(touched, before)
        found = [(revision, self._change(kind, id, revision)) for revision in touched[max(place - limit, 0) : place][::-1]]
        return [changes.narrowed(self._entry(revision), change) for revision, change in found]

    def touches_of(self, keys: Iterable[Key], before: int | None, limit: int) -> dict[Key, list[Entry]]:
        return {key: self.touches(*key, before, limit) for key in keys}

    def touched(self, after: int, until: int) -> list[Key]:
        check_reachable(after, self._base.revision, self._revision)
        return list({(change.kind, change.id) for entry in self.entries(after, until) for change in entry.changes})

    def signatures(self, revisions: Iterable[int]) -> dict[int, Entry]:
        base = self._base.revision
        return {revision: changes.signed(self._entry(revision)) for revision in revisions if base < revision <= self._revision}

    def revision_at(self, time: str) -> int:
        for entry in reversed(self.log):
            if entry.time <= time:
                return entry.revision
        if time < self._base_time:
            raise errors.Compacted.below(self._base.revision, f"what was there at {time}")
        return self._base.revision

    def digest_at(self, revision: int) -> str:
        then = self.state_at(revision)
        documents = (
            (kind, id, stored.revision, msgspec.json.encode(stored.body))
            for kind, of_kind in sorted(then.documents.items())
            for id, stored in sorted(of_kind.items())
        )
        return digest(documents, then.tombstones, then.forgone)

    def verified(self) -> Verified:
        """Nobody but this process can touch it, so the documents are all there is to look at."""
        led_to = self._floor.advanced(self.log)
        there = _State(self.documents, self.tombstones, self._forgone)
        same = led_to.filled() == there.filled()
        fault = None if same else Fault(self._revision, "the log does not lead to the documents")
        for kind, id in sorted(self._applied) if fault is None else ():
            if id not in self.documents.get(kind, {}):
                fault = fault or Fault(self._revision, applied_to_nothing(kind, id))
        return Verified(self.base(), self._revision, sum(map(len, self.documents.values())), fault)

    def _entry(self, revision: int) -> Entry:
        return self.log[revision - self._base.revision - 1]

    def _change(self, kind: str, id: str, revision: int) -> Change:
        return next(change for change in self._entry(revision).changes if (change.kind, change.id) == (kind, id))

    def begin(self) -> MemoryTransaction:
        self.lock.acquire()
        return MemoryTransaction(self)

    def apply(self, applied: Iterable[Applied]) -> None:
        for each in applied:
            of_key = self._applied.setdefault((each.kind, each.id), {})
            if each.document is None:
                of_key.pop(each.manager, None)
            else:
                of_key[each.manager] = each.document
            if not of_key:
                del self._applied[each.kind, each.id]

    def append(self, entry: Entry) -> None:
        self.log.append(entry)
        self.hashes.append(changes.chained(self.head().hash, entry))
        changes.forgo(self._forgone, entry)
        for change in entry.changes:
            self._touched.setdefault((change.kind, change.id), []).append(entry.revision)
            if change.after is None:
                self._applied.pop((change.kind, change.id), None)

    def begin_anew(self, epoch: str, state: _State, history: list[Entry]) -> None:
        self._replaced = (*self._replaced, self._epoch)
        self._epoch = epoch
        self.documents, self.tombstones, self.memos, self._applied = state.documents, state.tombstones, {}, {}
        self.log, self.hashes, self._forgone, self._touched = [], [], set(), {}
        self._base, self._base_time, self._floor = Head("", 0, ""), "", _State({}, {}, set())
        for entry in history:
            self.append(entry)

    def fold(self, gone: list[Entry]) -> None:
        """The first entries of the log into its base."""
        self._floor = self._floor.advanced(gone)
        self._base = Head("", gone[-1].revision, self.hashes[len(gone) - 1])
        self._base_time = gone[-1].time
        self.log, self.hashes = self.log[len(gone) :], self.hashes[len(gone) :]
        left = {key: [each for each in revisions if each > self.base()] for key, revisions in self._touched.items()}
        self._touched = {key: revisions for key, revisions in left.items() if revisions}

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class _State(NamedTuple):
    documents: dict[str, dict[str, Stored]]
    tombstones: dict[str, Tombstone]
    forgone: set[Key]

    def filled(self) -> _State:
        return self._replace(documents={kind: of_kind for kind, of_kind in self.documents.items() if of_kind})

    def advanced(self, entries: Iterable[Entry]) -> _State:
        """Another one, in which these were carried out."""
        state = _State(
            {kind: dict(of_kind) for kind, of_kind in self.documents.items()}, dict(self.tombstones), set(self.forgone)
        )
        for entry in entries:
            changes.settle(state.documents, state.tombstones, entry)
            changes.forgo(state.forgone, entry)
        return state


def _weight(entry: Entry) -> int:
    return len(entry.changes) + len(entry.decommissioned) + len(entry.forgone)


class MemoryTransaction:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.rollback()

    @property
    def epoch(self) -> str:
        return self._store.epoch()

    def follow(self, known: Head) -> Followed | None:
        return self._store.follow(known)

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        return self._store.entries(after, until)

    def snapshot(self) -> Snapshot:
        return self._store.snapshot()

    def recall(self, key: str) -> Memo | None:
        return self._store.memos.get(key)

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        return self._store.applied(keys)

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        return self._store.applied_by(manager, kinds)

    def commit(
        self,
        entry: Entry | None,
        memo: Memo | None = None,
        forget_before: str = "",
        charge: Charge | None = None,
        hash: str | None = None,
        applied: Sequence[Applied] = (),
    ) -> str:
        with self:
            store = self._store
            if entry is not None:
                made = changes.grounded(store.documents, entry)
                changes.settle(store.documents, store.tombstones, made)
                store.append(made)
            store.apply(applied)
            if charge is not None:
                store._views, store._opened = charge.views, changes.vouched(charge.opened, store._opened)
            store.memos = {key: old for key, old in store.memos.items() if old.time >= forget_before}
            if memo is not None:
                store.memos[memo.key] = memo
            return store.head().hash

    def restore(self, snapshot: Snapshot, history: list[Entry], applied: Sequence[Applied] = ()) -> None:
        with self:
            state, grounded = _State({}, {}, set()), []
            for entry in history:
                grounded.append(changes.grounded(state.documents, entry))
                changes.settle(state.documents, state.tombstones, grounded[-1])
            check_led_to(snapshot, len(history), state.documents, state.tombstones.values())
            self._store.begin_anew(snapshot.epoch, state, grounded)
            self._store.apply(applied)

    def fold(self, before: int, digest: str | None = None) -> int:
        with self:
            check_foldable(before, self._store.head().revision)
            gone = self._store.entries(0, before - 1)
            if gone:
                self._store.fold(gone)
            return len(gone)

    def rollback(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._store.lock.release()
