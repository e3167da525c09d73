"""A draft of a transaction: operations on top of the fleet as it is, checked as a whole before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import documents, errors, fleet, merge
from flux_resourceset.changes import Change, Document, Retired
from flux_resourceset.documents import pointer
from flux_resourceset.errors import Violation
from flux_resourceset.kinds import CLUSTERS, Kind

Key = tuple[str, str]  # kind and id

_encode = msgspec.json.Encoder(order="deterministic").encode

_SHOWN_USERS = 20
_WARN_BYTES = fleet.MAX_BODY_BYTES * 8 // 10


class Precondition(NamedTuple):
    """If-Match and If-None-Match, as sets of tags; `*` stands for any."""

    if_match: frozenset[str] | None = None
    if_none_match: frozenset[str] | None = None

    def check(self, subject: str, revision: int | None) -> None:
        tags = set() if revision is None else {"*", f'"{revision}"'}
        if self.if_match is not None and not tags & self.if_match:
            raise errors.PreconditionFailed(
                f"{subject} is at revision {revision}, not at {', '.join(sorted(self.if_match))}; read it again, merge and retry"
            )
        if self.if_none_match is not None and tags & self.if_none_match:
            raise errors.PreconditionFailed(f"{subject} exists at revision {revision}; drop If-None-Match to replace it")


class Draft:
    def __init__(self, base: fleet.Fleet) -> None:
        self.base = base
        self.kinds = base.kinds
        self.forced = False
        self.warnings: list[str] = []
        self.importing = False  # an export may hold references that force left dangling
        self._retired: dict[str, str] = {}
        self._after: dict[Key, Document | None] = {}
        self._force: set[Key] = set()
        self._dependents_of: dict[str, dict[str, list[str]]] = {}  # by kind, made when first asked for

    # Reading

    def get(self, kind: str, id: str) -> Document | None:
        if (kind, id) in self._after:
            return self._after[kind, id]
        stored = self.base.get(kind, id)
        return stored.body if stored else None

    def require(self, kind: str, id: str) -> Document:
        document = self.get(kind, id)
        if document is None:
            raise errors.NotFound(f"{_subject(kind, id)} does not exist", extra={"kind": kind, "id": id})
        return document

    def expect(self, kind: str, id: str, precondition: Precondition) -> None:
        stored = self.base.get(kind, id)
        precondition.check(_subject(kind, id), stored.revision if stored else None)

    # Whole documents

    def create(self, kind: Kind, document: Any) -> str:
        id = document.get("id") if isinstance(document, dict) else None
        if isinstance(id, str) and self.get(kind.name, id) is not None:
            raise errors.AlreadyExists(
                f"{_subject(kind.name, id)} exists; change it with PUT or PATCH", extra={"kind": kind.name, "id": id}
            )
        return self._put(kind, id if isinstance(id, str) else "", document)

    def replace(self, kind: Kind, id: str, document: Any) -> None:
        before = self.require(kind.name, id)
        found = []
        if isinstance(document, dict):
            document = {"id": id, **document}
            if kind.name == CLUSTERS:
                found = [
                    Violation(pointer([name]), f"is not empty; send {_empty(before[name])} to empty it, or use PATCH")
                    for name in (*self.kinds.by_field, "patches")
                    if name not in document and before.get(name)
                ]
        self._put(kind, id, document, found)

    def create_at(self, kind: Kind, id: str, document: Any) -> None:
        if isinstance(document, dict):
            document = {"id": id, **document}
        self._put(kind, id, document)

    def merge(self, kind: Kind, id: str, patch: Any) -> None:
        before = self.require(kind.name, id)
        self._put(kind, id, documents.merge_patch(before, patch))

    def put(self, kind: Kind, document: Any) -> str:
        """Create or replace, whatever was there."""
        id = document.get("id") if isinstance(document, dict) else None
        return self._put(kind, id if isinstance(id, str) else "", document)

    def retire(self, dns: str, id: str) -> None:
        """Take over a tombstone; it counts for nothing if a cluster has the name."""
        self._retired[dns] = id

    def retired(self) -> tuple[Retired, ...]:
        alive = {after["cluster_dns"] for (kind, _), after in self._after.items() if kind == CLUSTERS and after}
        gone = {id for (kind, id), after in self._after.items() if kind == CLUSTERS and after is None}
        return tuple(
            Retired(dns, id)
            for dns, id in self._retired.items()
            if dns not in alive and dns not in self.base.tombstones and self.base.cluster_ids.get(dns, "") in {"", *gone}
        )

    def delete(self, kind: Kind, id: str, force: bool = False) -> Document:
        before = self.require(kind.name, id)
        self._after[kind.name, id] = None
        self._dependents_of.pop(kind.name, None)
        if force:
            self._force.add((kind.name, id))
        return before

    # Parts of a cluster

    def reference(self, cluster_id: str, kind: Kind, id: str) -> Document:
        found = self.held_reference(cluster_id, kind, id)
        if found is None:
            raise errors.NotFound(
                f'{_subject(CLUSTERS, cluster_id)} does not have {kind.singular} "{id}"',
                extra={"kind": kind.name, "id": id},
            )
        return found

    def held_reference(self, cluster_id: str, kind: Kind, id: str) -> Document | None:
        found = self._reference(self.require(CLUSTERS, cluster_id), kind, id)
        return found[1] if found else None

    def assign(self, cluster_id: str, kind: Kind, id: str, reference: Any) -> None:
        """Add a reference, or replace the one that is there."""
        cluster = self.require(CLUSTERS, cluster_id)
        found = self._reference(cluster, kind, id)
        if not isinstance(reference, dict):
            raise _invalid(CLUSTERS, cluster_id, [Violation("", "must be a JSON object")])
        if reference.get("id", id) != id:
            raise _invalid(CLUSTERS, cluster_id, [Violation("/id", f"must be {id}, as in the path, or left out")])
        field = kind.cluster_field or ""
        references = list(cluster[field])
        position = found[0] if found else len(references)
        references[position:] = [{**reference, "id": id}, *references[position + 1 :]]
        self._put(self.kinds.clusters, cluster_id, {**cluster, field: references}, below=pointer([field, position]))

    def merge_reference(self, cluster_id: str, kind: Kind, id: str, patch: Any) -> None:
        self.assign(cluster_id, kind, id, documents.merge_patch(self.reference(cluster_id, kind, id), patch))

    def unassign(self, cluster_id: str, kind: Kind, id: str) -> int:
        """Drop a reference if it is there, and its patches; how many patch keys went with it."""
        cluster = self.require(CLUSTERS, cluster_id)
        found = self._reference(cluster, kind, id)
        if found is None:
            return 0
        field = kind.cluster_field or ""
        references = [reference for reference in cluster[field] if reference["id"] != id]
        patches = dict(cluster["patches"])
        removed = len(patches.pop(id, ())) if kind.patches else 0
        self._put(self.kinds.clusters, cluster_id, {**cluster, field: references, "patches": patches})
        return removed

    def patches(self, cluster_id: str, id: str) -> Document:
        cluster = self.require(CLUSTERS, cluster_id)
        if not any(self._reference(cluster, kind, id) for kind in self.kinds.patched):
            raise errors.NotFound(
                f'{_subject(CLUSTERS, cluster_id)} does not have "{id}", so it has no patches; assign it first',
                extra={"kind": CLUSTERS, "id": cluster_id},
            )
        values: Document = cluster["patches"].get(id, {})
        return values

    def set_patches(self, cluster_id: str, id: str, values: Any) -> None:
        self.patches(cluster_id, id)
        cluster = self.require(CLUSTERS, cluster_id)
        if not isinstance(values, dict):
            raise _invalid(CLUSTERS, cluster_id, [Violation("", "must be a JSON object")])
        patches = {**cluster["patches"], id: values}
        if not values:
            del patches[id]
        self._put(self.kinds.clusters, cluster_id, {**cluster, "patches": patches}, below=pointer(["patches", id]))

    def merge_patches(self, cluster_id: str, id: str, patch: Any) -> None:
        self.set_patches(cluster_id, id, documents.merge_patch(self.patches(cluster_id, id), patch))

    @staticmethod
    def _reference(cluster: Document, kind: Kind, id: str) -> tuple[int, Document] | None:
        references = enumerate(cluster[kind.cluster_field or ""])
        return next(((position, ref) for position, ref in references if ref["id"] == id), None)

    # Checking one document

    def _put(self, kind: Kind, id: str, document: Any, found: list[Violation] | None = None, below: str = "") -> str:
        """Take a document into the draft, or refuse it with everything that is wrong with it.

        `below` is the place in the document that the request's body stands for: pointers count from there.
        """
        if isinstance(document, dict):
            document = documents.completed(kind, document)
        found = [*documents.violations(self.kinds, kind, document), *(found or ())]
        if isinstance(document, dict):
            found += self._changed_identity(kind, id, document)
        if found:
            if isinstance(document, dict):
                found += self._related(kind, id, document)
            raise _invalid(kind.name, id, [_relative(violation, below) for violation in found])
        if below:  # references that a sub-resource adds are told of in its own terms
            related = [_relative(v, below) for v in self._related(kind, id, document) if v.pointer.startswith(below)]
            if related:
                raise _invalid(kind.name, id, related)
        id = document["id"]
        self._after[kind.name, id] = document
        self._dependents_of.pop(kind.name, None)
        return id

    def _changed_identity(self, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
        given = document.get("id", id)
        if given != id and isinstance(given, str):
            yield Violation("/id", f"never changes; it must be {id}, as in the path")
        before = self.get(kind.name, id)
        fixed = before is not None and kind.name == CLUSTERS and not self.importing
        dns = before["cluster_dns"] if before is not None and fixed else None
        if dns is not None and document.get("cluster_dns", dns) != dns:
            yield Violation("/cluster_dns", "never changes; decommission the cluster and create it anew")

    def _related(self, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
        """What is wrong with a document in view of the others."""
        if kind.name == CLUSTERS and not self.importing:
            yield from self._unknown_references(id, document)
        if kind.dependencies:
            yield from self._broken_dependencies(kind, id, document)

    def _unknown_references(self, id: str, cluster: Document) -> Iterator[Violation]:
        stored = self.base.get(CLUSTERS, id)
        for field, kind in self.kinds.by_field.items():
            before = {ref["id"] for ref in stored.body[field]} if stored else set()
            references = cluster.get(field)
            for position, reference in enumerate(references if isinstance(references, list) else ()):
                wanted = reference.get("id") if isinstance(reference, dict) else None
                if isinstance(wanted, str) and wanted not in before and self.get(kind.name, wanted) is None:
                    yield Violation(
                        pointer([field, position, "id"]), f'{kind.singular} "{wanted}" does not exist; create it first'
                    )

    def _broken_dependencies(self, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
        assert kind.dependencies
        field = kind.dependencies.field
        names = document.get(field)
        for position, name in enumerate(names if isinstance(names, list) else ()):
            other = document if name == id else self.get(kind.name, name) if isinstance(name, str) else None
            at = pointer([field, position])
            if other is None:
                yield Violation(at, f'{kind.singular} "{name}" does not exist; create it first')
                continue
            for same in kind.dependencies.same:
                if other.get(same) != document.get(same):
                    yield Violation(at, f'"{name}" has {same} {other.get(same)}, and dependencies need the same {same}')
            cycle = self._path(kind, name, id, document)
            if cycle:
                yield Violation(at, "makes a cycle: " + " → ".join([id, *cycle]))
        for name in self._dependents(kind, id):
            other = self.require(kind.name, name)
            for same in kind.dependencies.same:
                if name != id and other.get(same) != document.get(same):
                    yield Violation(pointer([same]), f'must stay {other.get(same)}: "{name}" depends on it and has that {same}')

    def _path(self, kind: Kind, start: str, goal: str, document: Document) -> list[str] | None:
        """A way along dependencies from start to goal, where goal is the document in hand."""
        assert kind.dependencies
        ways: list[list[str]] = [[start]]
        seen = {start}
        while ways:
            way = ways.pop()
            if way[-1] == goal:
                return way
            for name in (self.get(kind.name, way[-1]) or {}).get(kind.dependencies.field, ()):
                if name not in seen:
                    seen.add(name)
                    ways.append([*way, name])
        return None

    def _dependents(self, kind: Kind, id: str) -> list[str]:
        assert kind.dependencies
        if kind.name not in self._dependents_of:
            reverse = self._dependents_of[kind.name] = {}
            names = {*self.base.documents[kind.name], *(name for of, name in self._after if of == kind.name)}
            for name in sorted(names):
                for other in (self.get(kind.name, name) or {}).get(kind.dependencies.field, ()):
                    reverse.setdefault(other, []).append(name)
        return self._dependents_of[kind.name].get(id, [])

    # Checking the whole

    def finish(self) -> tuple[Change, ...]:
        """The changes, in the order they were made; refuses what must not become true."""
        found = self.changes()
        for refusal in self.refusals(found):
            raise refusal
        return found

    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes())

    def refusals(self, found: tuple[Change, ...]) -> Iterator[errors.Refusal]:
        """Everything that speaks against the whole. Grows with what is touched."""
        self._overlay = {id: after for (kind, id), after in self._after.items() if kind == CLUSTERS}
        self._overlay_users: dict[Key, set[str]] = {}
        for cluster_id, cluster in self._overlay.items():
            for kind in self.kinds.referenced if cluster else ():
                for reference in (cluster or {})[kind.cluster_field or ""]:
                    self._overlay_users.setdefault((kind.name, reference["id"]), set()).add(cluster_id)
        yield from self._taken_names(found)
        for change in found:
            kind = self.kinds.by_name[change.kind]
            if change.after is None:
                yield from self._still_used(kind, change.id)
            else:
                violations = list(self._related(kind, change.id, change.after))
                if violations:
                    yield _invalid(kind.name, change.id, violations)
        yield from self._large_answers(found)

    def _changes(self) -> Iterator[Change]:
        for (kind, id), after in self._after.items():
            stored = self.base.get(kind, id)
            before = stored.body if stored else None
            if before is None and after is not None:
                yield Change(kind, id, "create", None, after)
            elif before is not None and after is None:
                yield Change(kind, id, "delete", before, None)
            elif before is not None and _encode(before) != _encode(after):
                yield Change(kind, id, "update", before, after)

    def _taken_names(self, found: tuple[Change, ...]) -> Iterator[errors.Refusal]:
        taken: dict[str, str] = {}
        for change in found:
            if change.kind != CLUSTERS or change.after is None:
                continue
            dns = change.after["cluster_dns"]
            owner = self.base.cluster_ids.get(dns)
            if owner is not None and self.get(CLUSTERS, owner) is None:
                owner = None  # decommissioned in this very transaction
            owner = taken.setdefault(dns, owner or change.id)
            if owner != change.id:
                yield errors.AlreadyExists(
                    f'{_subject(CLUSTERS, change.id)}: /cluster_dns {dns} belongs to cluster "{owner}"',
                    extra={"kind": CLUSTERS, "id": change.id},
                )

    def _users(self, kind: Kind, id: str) -> set[str]:
        """The clusters that refer to a definition once this draft is true."""
        before = self.base.users.get((kind.name, id), set())
        return {user for user in before if user not in self._overlay} | self._overlay_users.get((kind.name, id), set())

    def _still_used(self, kind: Kind, id: str) -> Iterator[errors.Refusal]:
        if kind.dependencies:
            dependents = self._dependents(kind, id)
            if dependents:
                yield _in_use(kind, id, f"{kind.singular}(s) depend on it, and force does not help", dependents)
        users = self._users(kind, id) if kind.cluster_field else set()
        if not users:
            return
        if (kind.name, id) not in self._force:
            yield _in_use(kind, id, "cluster(s) use it; unassign it there first, or use force", sorted(users))
            return
        self.forced = True
        self.warnings.append(f"{_subject(kind.name, id)} was deleted by force under {len(users)} cluster(s)")

    def _large_answers(self, found: tuple[Change, ...]) -> Iterator[errors.Refusal]:
        """No write may make an answer that Flux refuses or cuts."""
        touched: dict[Key, tuple[Kind, Change]] = {}
        for change in found:
            if change.after is None:
                continue
            if change.kind == CLUSTERS:
                for kind in self.kinds.referenced:
                    touched[change.id, kind.name] = (kind, change)
            elif self.kinds.by_name[change.kind].cluster_field:
                kind = self.kinds.by_name[change.kind]
                for user in self._users(kind, change.id):
                    touched.setdefault((user, kind.name), (kind, change))
        sizes: dict[Key, int] = {}
        for (cluster_id, _), (kind, change) in touched.items():
            cluster = self.get(CLUSTERS, cluster_id)
            if cluster is not None and self._bound(kind, cluster, sizes) >= _WARN_BYTES:
                yield from self._large_answer(kind, cluster, change)

    def _bound(self, kind: Kind, cluster: Document, sizes: dict[Key, int]) -> int:
        """More bytes than the answer can have, without merging it; MAX when it has too many inputs."""
        references = cluster[kind.cluster_field or ""]
        if len(references) > fleet.MAX_INPUTS:
            return fleet.MAX_BODY_BYTES
        # every field of an input stands in the definition, the cluster document or the cluster block
        each = 400 + sum(map(len, kind.nest)) + 6 * (len(cluster["cluster_name"]) + len(cluster["cluster_dns"]))
        total = len(_encode(cluster)) + len(references) * each
        for reference in references:
            key = kind.name, reference["id"]
            if key not in sizes:
                definition = self.get(*key)
                # what it depends on may stand in the answer twice, the second time as wait_for
                sizes[key] = len(_encode(definition)) * (2 if kind.dependencies else 1) if definition else 0
            total += sizes[key]
        return total

    def _large_answer(self, kind: Kind, cluster: Document, change: Change) -> Iterator[errors.Refusal]:
        field = kind.cluster_field or ""
        definitions = {ref["id"]: self.get(kind.name, ref["id"]) for ref in cluster[field]}
        inputs = merge.inputs(kind, cluster, {id: found for id, found in definitions.items() if found})
        body = fleet.encoded(inputs)
        size = f'cluster "{cluster["id"]}": the {kind.endpoint} answer has {len(inputs)} inputs and {len(body)} bytes'
        if fleet.exceeds(body, len(inputs)):
            yield errors.AnswerTooLarge(
                f"{size}; Flux takes up to {fleet.MAX_INPUTS} inputs and less than {fleet.MAX_BODY_BYTES} bytes",
                violations=[Violation(pointer([field]) if change.kind == CLUSTERS else "", "makes an answer too large")],
                extra={"kind": change.kind, "id": change.id},
            )
        elif len(body) >= _WARN_BYTES or len(inputs) >= fleet.MAX_INPUTS * 8 // 10:
            self.warnings.append(f"{size}, over 80 % of what Flux takes")


def _subject(kind: str, id: str) -> str:
    return f'{kind} "{id}"'


def _empty(value: Any) -> str:
    return "[]" if isinstance(value, list) else "{}"


def _relative(violation: Violation, below: str) -> Violation:
    return Violation(violation.pointer.removeprefix(below), violation.message)


def _invalid(kind: str, id: str, violations: list[Violation]) -> errors.Invalid:
    refusal = errors.Invalid.document(_subject(kind, id), dict.fromkeys(violations))
    refusal.extra = {"kind": kind, "id": id}
    return refusal


def _in_use(kind: Kind, id: str, why: str, users: list[str]) -> errors.InUse:
    shown = ", ".join(users[:_SHOWN_USERS]) + (", …" if len(users) > _SHOWN_USERS else "")
    return errors.InUse(
        f"{_subject(kind.name, id)}: {len(users)} {why}: {shown}",
        extra={"kind": kind.name, "id": id, "users": users[:_SHOWN_USERS], "count": len(users)},
    )
