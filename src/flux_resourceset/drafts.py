"""A draft of a transaction: operations on top of the fleet as it is, checked as a whole before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from flux_resourceset import cautions, documents, effects, errors, fleet, json_pieces, overlay, records, rules
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Applied, Change, Decommissioned, Document, Forgone, Tombstone
from flux_resourceset.effects import Effect
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds.model import CLUSTERS, Kind, Referenced
from flux_resourceset.overlay import Key, Overlay


class Precondition(NamedTuple):
    """If-Match and If-None-Match, as sets of tags; `*` stands for any."""

    if_match: frozenset[str] | None = None
    if_none_match: frozenset[str] | None = None

    def check(self, subject: str, revision: int | None) -> None:
        tags = set() if revision is None else {"*", f'"{revision}"'}
        if self.if_match is not None and not tags & self.if_match:
            at = f"is at revision {revision}" if revision else "was not found"
            raise errors.PreconditionFailed(
                f"{subject} {at}, not at {', '.join(sorted(self.if_match))}; read it again, merge and retry"
            )
        if self.if_none_match is not None and tags & self.if_none_match:
            raise errors.PreconditionFailed(f"{subject} exists at revision {revision}; drop If-None-Match to replace it")


class Draft:
    def __init__(
        self,
        base: fleet.Fleet,
        budget: Budget | None = None,
        protected: Collection[str] = (),
        stored: records.Records | None = None,
    ) -> None:
        self.base = base
        self.applied = records.Applications(stored)  # what managers applied last
        self.budget = budget or Budget()
        self.kinds = base.kinds
        self.forced = False
        self.reverts: int | None = None  # the revision that it undoes
        self._protected = protected  # environments in which versions should be exact
        self.warnings: list[str] = []  # of what is allowed and can hardly be meant; complete once it is finished
        # what an import may do beyond a write; `imports` says when, and warns of it
        self.may_rename = False
        self.may_misname = False  # patch keys
        self.decommissions = True  # whether the name of a cluster that goes answers with an empty list from then on
        self._lost: frozenset[Key] = frozenset()  # definitions that references may lack
        self._tombstones: dict[str, str] = {}
        self._view = Overlay(base, self.budget)
        self._force: set[Key] = set()
        self._looked_at: dict[Key, Document] = {}  # documents with nothing wrong in view of the others, as these were then
        self._buried: dict[str, Tombstone] | None = None  # by the id that the cluster had, made when first asked for

    # Reading

    def get(self, kind: str, id: str) -> Document | None:
        return self._view.get(kind, id)

    def ids(self, kind: str) -> list[str]:
        return self._view.ids(kind)

    def require(self, kind: str, id: str) -> Document:
        document = self.get(kind, id)
        if document is None:
            raise rules.not_found(kind, id)
        return document

    def buried(self, id: str, dns: object) -> Tombstone | None:
        """The tombstone of a cluster that had this id, or this DNS name; the latest."""
        if self._buried is None:
            self._buried = {}
            for each in sorted(self.base.tombstones.values(), key=lambda tombstone: tombstone.revision):
                self._buried[each.id] = each
        found = [self._buried.get(id), self.base.tombstones.get(dns) if isinstance(dns, str) else None]
        return max((each for each in found if each), key=lambda tombstone: tombstone.revision, default=None)

    def expect(self, kind: str, id: str, precondition: Precondition) -> None:
        stored = self.base.get(kind, id)
        precondition.check(rules.subject(kind, id), stored.revision if stored else None)

    # Whole documents

    def create(self, kind: Kind, document: Any) -> str:
        id = document.get("id") if isinstance(document, dict) else None
        if isinstance(id, str) and self.get(kind.name, id) is not None:
            raise errors.AlreadyExists(f"{rules.subject(kind.name, id)} exists already", extra={"kind": kind.name, "id": id})
        return self._put(kind, id if isinstance(id, str) else "", document)

    def replace(self, kind: Kind, id: str, document: Any, must: str = "PUT must") -> None:
        before = self.require(kind.name, id)
        violations = []
        if isinstance(document, dict):
            document = {**self._left(kind, id), "id": id, **document}
            if kind.name == CLUSTERS:
                violations = [
                    Violation(pointer([name]), f"is not empty; send {_empty(before[name])} to empty it: {must} name it")
                    for name in (*self.kinds.by_field, "patches")
                    if name not in document and before.get(name)
                ]
        self._put(kind, id, document, violations)

    def create_at(self, kind: Kind, id: str, document: Any) -> None:
        if isinstance(document, dict):
            document = {"id": id, **document}
        self._put(kind, id, document)

    def merge(self, kind: Kind, id: str, patch: Any) -> None:
        before = self.require(kind.name, id)
        violations = list(self._nulls(kind, id, patch)) if isinstance(patch, dict) else []
        self._put(kind, id, documents.merge_patch(before, patch), violations)

    def _nulls(self, kind: Kind, id: str, patch: Document) -> Iterator[Violation]:
        """Where null would empty what PUT demands to be emptied in so many words."""
        if kind.name != CLUSTERS:
            return
        remedies = {
            **dict.fromkeys(self._left(kind, id), "leave it out: it is kept for a kind that is not here"),
            **dict.fromkeys(self.kinds.by_field, "send [] to empty it"),
            "patches": 'send {"<component>": null} for each one to remove',  # {} would merge into what is there
        }
        for name, remedy in remedies.items():
            if name in patch and patch[name] is None:
                yield Violation(pointer([name]), f"must not be null; {remedy}")

    def put(self, kind: Kind, document: Any) -> str:
        """Create or replace, whatever was there."""
        id = document.get("id") if isinstance(document, dict) else None
        return self._put(kind, id if isinstance(id, str) else "", document)

    def take_tombstone(self, dns: str, id: str) -> None:
        """Take over a tombstone; it counts for nothing if a cluster has the name."""
        self._tombstones[dns] = id

    def taken_tombstones(self) -> tuple[Decommissioned, ...]:
        alive, given_up = self._names()
        held = self.base.cluster_ids.keys() - given_up | alive | self.base.tombstones.keys()
        return tuple(Decommissioned(dns, id) for dns, id in self._tombstones.items() if dns not in held)

    def vanished(self) -> tuple[str, ...]:
        """The names that clusters gave up without being decommissioned, neither here nor elsewhere."""
        return () if self.decommissions else tuple(sorted(self._names()[1] - self._tombstones.keys()))

    def _names(self) -> tuple[set[str], set[str]]:
        """Of the clusters that were touched: those they have now, and those that nobody has any more."""
        touched = {id: after for (kind, id), after in self._view.after.items() if kind == CLUSTERS}
        alive = {after["cluster_dns"] for after in touched.values() if after is not None}
        before = (self.base.get(CLUSTERS, id) for id in touched)
        return alive, {stored.body["cluster_dns"] for stored in before if stored is not None} - alive

    def forgo(self, lost: Iterable[Key]) -> None:
        """Let references to these definitions stand although they are not there."""
        self._lost = frozenset(lost)
        self.forced = self.forced or bool(self.forgone())

    def forgone(self) -> tuple[Forgone, ...]:
        return tuple(Forgone(kind, id) for kind, id in sorted(self._lost - self.base.forgone))

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def delete(self, kind: Kind, id: str, force: bool = False) -> Document:
        before = self.require(kind.name, id)
        self._view.put(kind, id, None)
        self.applied.forget((kind.name, id))
        if force:
            self._force.add((kind.name, id))
        return before

    # Parts of a cluster

    def reference(self, cluster_id: str, kind: Referenced, id: str) -> Document:
        held = self.held_reference(cluster_id, kind, id)
        if held is None:
            raise errors.NotFound(
                f'{rules.subject(CLUSTERS, cluster_id)} does not have {kind.singular} "{id}"; assign it first',
                extra={"kind": CLUSTERS, "id": cluster_id},
            )
        return held

    def held_reference(self, cluster_id: str, kind: Referenced, id: str) -> Document | None:
        held = self._reference(self.require(CLUSTERS, cluster_id), kind, id)
        return held[1] if held else None

    def assign(self, cluster_id: str, kind: Referenced, id: str, reference: Any) -> None:
        """Add a reference, or replace the one that is there."""
        cluster = self.require(CLUSTERS, cluster_id)
        held = self._reference(cluster, kind, id)
        if not isinstance(reference, dict):
            raise rules.invalid(CLUSTERS, cluster_id, [Violation("", "must be a JSON object")])
        if reference.get("id", id) != id:
            raise rules.invalid(CLUSTERS, cluster_id, [Violation("/id", f"must be {id}, as in the path, or left out")])
        field = kind.cluster_field
        references = list(cluster[field])
        position = held[0] if held else len(references)
        references[position:] = [{**reference, "id": id}, *references[position + 1 :]]
        self._put(self.kinds.clusters, cluster_id, {**cluster, field: references}, below=pointer([field, position]))

    def merge_reference(self, cluster_id: str, kind: Referenced, id: str, patch: Any) -> None:
        self.assign(cluster_id, kind, id, documents.merge_patch(self.reference(cluster_id, kind, id), patch))

    def unassign(self, cluster_id: str, kind: Referenced, id: str) -> int:
        """Drop a reference if it is there, and its patches; how many patch keys went with it."""
        cluster = self.require(CLUSTERS, cluster_id)
        held = self._reference(cluster, kind, id)
        if held is None:
            return 0
        field = kind.cluster_field
        references = [reference for reference in cluster[field] if reference["id"] != id]
        patches = dict(cluster["patches"])
        removed = len(patches.pop(id, ())) if kind.patches else 0
        self._put(self.kinds.clusters, cluster_id, {**cluster, field: references, "patches": patches})
        return removed

    def patches(self, cluster_id: str, id: str) -> Document:
        cluster = self.require(CLUSTERS, cluster_id)
        if not any(self._reference(cluster, kind, id) for kind in self.kinds.patched):
            raise errors.NotFound(
                f'{rules.subject(CLUSTERS, cluster_id)} does not have "{id}", so it has no patches; assign it first',
                extra={"kind": CLUSTERS, "id": cluster_id},
            )
        values: Document = cluster["patches"].get(id, {})
        return values

    def set_patches(self, cluster_id: str, id: str, values: Any) -> None:
        self.patches(cluster_id, id)
        self._set_patches(cluster_id, id, values)

    def _set_patches(self, cluster_id: str, id: str, values: Any) -> None:
        cluster = self.require(CLUSTERS, cluster_id)
        if not isinstance(values, dict):
            raise rules.invalid(CLUSTERS, cluster_id, [Violation("", "must be a JSON object")])
        patches = {**cluster["patches"], id: values}
        if not values:
            del patches[id]
        self._put(self.kinds.clusters, cluster_id, {**cluster, "patches": patches}, below=pointer(["patches", id]))

    def merge_patches(self, cluster_id: str, id: str, patch: Any) -> None:
        self._set_patches(cluster_id, id, documents.merge_patch(self.patches(cluster_id, id), patch))

    @staticmethod
    def _reference(cluster: Document, kind: Referenced, id: str) -> tuple[int, Document] | None:
        references = enumerate(cluster[kind.cluster_field])
        return next(((position, ref) for position, ref in references if ref["id"] == id), None)

    # Checking one document

    def _put(self, kind: Kind, id: str, document: Any, violations: list[Violation] | None = None, below: str = "") -> str:
        """Take a document into the draft, or refuse it with everything that is wrong with it.

        `below` is the place in the document that the request's body stands for: pointers count from there.
        """
        self.budget.spend()
        kept: Document = {}
        before = self.get(kind.name, id)
        if isinstance(document, dict):
            kept = {name: value for name, value in self._left(kind, id).items() if document.get(name) == value}
            if kept:
                document = {name: value for name, value in document.items() if name not in kept}
            document = documents.completed(kind, document)
        violations = [*documents.violations(self.kinds, kind, document, kept, before), *(violations or ())]
        if isinstance(document, dict):
            violations += self._changed_identity(kind, id, document)
        if violations:
            if isinstance(document, dict):
                violations += self._related(kind, id, document)
            raise rules.invalid(kind.name, id, [_relative(violation, below) for violation in violations])
        id = document["id"]
        whole = {**document, **kept} if kept else document
        if below:  # references that a sub-resource adds are told of in its own terms
            related = list(self._related(kind, id, document))
            own = [_relative(violation, below) for violation in related if violation.pointer.startswith(below)]
            if own:
                raise rules.invalid(kind.name, id, own)
            if not related:
                self._looked_at[kind.name, id] = whole
        self._view.put(kind, id, whole)
        return id

    def _left(self, kind: Kind, id: str) -> Document:
        """What a cluster says of kinds that are not configured now: it stays, for they may come back."""
        before = self.get(kind.name, id) if kind.name == CLUSTERS else None
        if before is None or kind.properties.keys() >= before.keys():
            return {}
        return {name: value for name, value in before.items() if name not in kind.properties}

    def _changed_identity(self, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
        given = document.get("id", id)
        if given != id and isinstance(given, str):
            yield Violation("/id", f"never changes; it must be {id}, as in the path")
        before = self.get(kind.name, id)
        fixed = before is not None and kind.name == CLUSTERS and not self.may_rename
        dns = before["cluster_dns"] if before is not None and fixed else None
        if dns is not None and document.get("cluster_dns", dns) != dns:
            yield Violation("/cluster_dns", "never changes; decommission the cluster and create it anew")

    def _related(self, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
        """What is wrong with a document in view of the others."""
        if kind.name == CLUSTERS:
            yield from rules.unknown_references(self._view, id, document, self._lost)
        if kind.name == CLUSTERS and not self.may_misname:
            yield from rules.misnamed_patches(self._view, id, document)
        if isinstance(kind, Referenced) and kind.patch_keys and not self.may_misname:
            yield from rules.misnaming(self._view, kind, id, document)
        if kind.dependencies:
            yield from rules.broken_dependencies(self._view, kind, id, document)

    def applications(self) -> list[Applied]:
        """The records that it makes, to be written beside its documents."""
        return self.applied.made(lambda key: self.get(*key) is not None)

    # Checking the whole

    def let_go(self) -> None:
        """Of its documents, one by one; nothing can be asked of it any more but its warnings."""
        json_pieces.let_go(self._view.after, 1)

    def finish(self) -> tuple[Change, ...]:
        """The changes, in the order they were made; refuses what must not become true."""
        changes = self.changes()
        for refusal in self.refusals(changes):
            raise refusal
        return changes

    def changes(self) -> tuple[Change, ...]:
        return tuple(overlay.changes(Overlay(self.base, self.budget), self._view))

    def refusals(self, changes: tuple[Change, ...]) -> Iterator[errors.Refusal]:
        """Everything that speaks against the whole. Grows with what is touched."""
        yield from rules.taken_names(self._view, changes)
        for change in changes:
            self.budget.spend()
            kind = self.kinds.by_name[change.kind]
            if change.after is None:
                force = (change.kind, change.id) in self._force
                yield from self._without_warnings(rules.still_used(self._view, kind, change.id, force))
            else:
                if not self._is_looked_at(change):
                    violations = list(self._related(kind, change.id, change.after))
                    if violations:
                        yield rules.invalid(kind.name, change.id, violations)
                yield from self._without_warnings(cautions.new_warnings(self._view, change, self.may_misname))
                yield from self._without_warnings(cautions.new_risks(self._view, change, self._protected))
        yield from self._without_warnings(rules.large_answers(self._view, changes))

    def _is_looked_at(self, change: Change) -> bool:
        """Whether nothing has changed that could make something wrong with it: it is that very document, and all others are
        clusters too."""
        return self._looked_at.get((change.kind, change.id)) is change.after and self._view.touched == {CLUSTERS}

    def effect(self, changes: Iterable[Change]) -> Effect:
        """What the changes mean to the answers of all clusters. Grows with the clusters that they reach."""
        before = Overlay(self.base, self.budget)
        return effects.between(before, self._view, ((change.kind, change.id) for change in changes))

    def _without_warnings(self, objections: Iterator[errors.Refusal | rules.Warning]) -> Iterator[errors.Refusal]:
        """The refusals among them; the warnings are kept."""
        for item in objections:
            if isinstance(item, rules.Warning):
                self.warnings.append(item.message)
                self.forced = self.forced or item.forced
            else:
                yield item


def _empty(value: Any) -> str:
    return "[]" if isinstance(value, list) else "{}"


def _relative(violation: Violation, below: str) -> Violation:
    return Violation(violation.pointer.removeprefix(below), violation.message)
