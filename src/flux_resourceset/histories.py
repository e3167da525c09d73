"""The history of an export: checked step by step, and put in the place of everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flux_resourceset import changes, differences, documents, drafts, effects, errors, fleet, imports, overlay
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Decommissioned, Document, Entry, Stored, Tombstone
from flux_resourceset.effects import Effect
from flux_resourceset.imports import Export
from flux_resourceset.kinds.model import CLUSTERS, Kinds
from flux_resourceset.overlay import Key, Overlay


class Replay(NamedTuple):
    """What a log adds up to."""

    documents: dict[str, dict[str, Stored]]
    tombstones: dict[str, Tombstone]
    forgone: set[Key]


def replayed(history: list[Entry]) -> Replay:
    documents, tombstones = changes.replayed(history)
    forgone: set[Key] = set()
    for entry in history:
        changes.forgo(forgone, entry)
    return Replay(documents, {tombstone.dns: tombstone for tombstone in tombstones}, forgone)


def check(kinds: Kinds, export: Export, source: str) -> None:
    """Refuse a history that does not lead, step by step, to what the file holds."""
    history = export.history or []
    if [entry.revision for entry in history] != list(range(1, len(history) + 1)):
        raise errors.Invalid(f"{source}: the history has gaps")
    try:
        for wrong in _leaps(history):
            raise errors.Invalid(f"{source}: the history says of {wrong} what cannot follow from what it said before")
        replay = replayed(history)
    except (KeyError, TypeError) as exc:
        raise errors.Invalid(f"{source}: a change of the history lacks {exc}") from exc
    bodies = _bodies(kinds, replay)
    for name in sorted({*kinds.by_name, *bodies}):
        kind, wanted = kinds.by_name.get(name), export.documents.get(name, [])
        if bodies.get(name, {}) != {document["id"]: documents.completed(kind, document) for document in wanted if kind}:
            raise errors.Invalid(f"{source}: the history does not lead to the {name}")
    living = {document["cluster_dns"] for document in export.documents[CLUSTERS]}
    buried = {(tombstone.dns, tombstone.id) for tombstone in export.tombstones if tombstone.dns not in living}
    if {(tombstone.dns, tombstone.id) for tombstone in replay.tombstones.values()} != buried:
        raise errors.Invalid(f"{source}: the history does not lead to the tombstones")


def _bodies(kinds: Kinds, replay: Replay) -> dict[str, dict[str, Document]]:
    """The documents by kind and id, completed where the kind is known."""
    bodies: dict[str, dict[str, Document]] = {}
    for name, of_kind in replay.documents.items():
        kind = kinds.by_name.get(name)
        bodies[name] = {id: documents.completed(kind, stored.body) if kind else stored.body for id, stored in of_kind.items()}
    return bodies


def _leaps(history: list[Entry]) -> Iterator[str]:
    """Changes of what was not there, or of clusters under another name: they could bury names that no write would."""
    names: dict[Key, str | None] = {}  # of all documents; the DNS names of clusters
    for entry in history:
        keys: set[Key] = set()
        for change in entry.changes:
            key, before, after = (change.kind, change.id), change.before, change.after
            operation = "create" if before is None else "delete" if after is None else "update"
            follows = (before is not None) == (key in names) and names.get(key) == _name(change.kind, before)
            if operation != change.operation or not follows or (after or before or {})["id"] != change.id or key in keys:
                yield f"{change.kind}/{change.id} in revision {entry.revision}"
            keys.add(key)
            if after is None:
                names.pop(key, None)
            else:
                names[key] = _name(change.kind, after)


def _name(kind: str, document: Document | None) -> str | None:
    return document["cluster_dns"] if document is not None and kind == CLUSTERS else None


class Restoration:
    """An export with its history, put in the place of everything."""

    def __init__(self, kinds: Kinds, export: Export, decommission_absent: bool) -> None:
        self._kinds = kinds
        self._absent = decommission_absent
        self.history = export.history or []
        self.applied = export.applied or []
        self.replay = replayed(self.history)
        empty = fleet.Fleet(kinds)
        empty.forgone = self.replay.forgone
        self._draft = drafts.Draft(empty)  # for the rules that bind documents together
        imports.importing(export, "", replace=True)(self._draft)
        self._draft.finish()

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._draft.warnings)

    def planned(self, state: fleet.Fleet) -> tuple[Entry, Effect]:
        """What it does to a fleet, as if it were one transaction; and what that does to the answers. Grows with documents."""
        before, after = Overlay(state, Budget()), Overlay(state, Budget())
        bodies = _bodies(self._kinds, self.replay)
        for kind in self._kinds:
            here, there = before.documents(kind.name), bodies.get(kind.name, {})
            for id in sorted(here.keys() | there.keys()):
                if not differences.same(here.get(id), there.get(id)):
                    after.put(kind, id, there.get(id))
        made = tuple(overlay.changes(before, after))
        names = self.names(state)
        vanished = tuple(sorted((state.cluster_ids.keys() | state.tombstones.keys()) - names.living - names.buried))
        buried = tuple(Decommissioned(dns, "") for dns in sorted(names.buried - state.tombstones.keys()))
        entry = Entry(0, "", "", None, None, None, False, made, buried, vanished)
        return entry, effects.between(before, after, after.after)

    def names(self, state: fleet.Fleet) -> imports.Names:
        """The DNS names of the fleet that it leads to."""
        living = {stored.body["cluster_dns"] for stored in self.replay.documents.get(CLUSTERS, {}).values()}
        return imports.Names(living, self.replay.tombstones.keys() | {each.dns for each in self.decommissioned(state)})

    def decommissioned(self, state: fleet.Fleet) -> tuple[Decommissioned, ...]:
        """The names that are known here and not in the file, if absence was said to be a decommission."""
        known = {dns: tombstone.id for dns, tombstone in state.tombstones.items()} | state.cluster_ids if self._absent else {}
        living = {stored.body["cluster_dns"] for stored in self.replay.documents.get(CLUSTERS, {}).values()}
        in_the_file = living | self.replay.tombstones.keys()
        return tuple(Decommissioned(dns, known[dns]) for dns in sorted(known.keys() - in_the_file))

    def closed(self, state: fleet.Fleet, time: str, origin: changes.Origin) -> list[Entry]:
        """The history, with an entry for what it does not say of the fleet that it is to lead to."""
        decommissioned, forgone = self.decommissioned(state), self._draft.forgone()
        if not decommissioned and not forgone:
            return self.history
        revision = len(self.history) + 1
        last = Entry(revision, time, origin.actor, None, None, origin.reason, bool(forgone), (), decommissioned, forgone=forgone)
        return [*self.history, last]
