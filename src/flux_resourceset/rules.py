"""The rules that bind documents together: what must not become true, however it is written."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

import msgspec

from flux_resourceset import errors, fleet, merge
from flux_resourceset.changes import Change, Document
from flux_resourceset.documents import pointer
from flux_resourceset.errors import Violation
from flux_resourceset.kinds import CLUSTERS, Kind
from flux_resourceset.overlay import Key, Overlay

_SHOWN_USERS = 20  # enough to recognise them, few enough to read
_WARN_BYTES = fleet.MAX_BODY_BYTES * 8 // 10

_encode = msgspec.json.Encoder().encode


class Warned(NamedTuple):
    """Allowed, but worth a line in the log."""

    message: str
    forced: bool = False


def subject(kind: str, id: str) -> str:
    return f'{kind} "{id}"'


def invalid(kind: str, id: str, violations: list[Violation]) -> errors.Invalid:
    refusal = errors.Invalid.document(subject(kind, id), dict.fromkeys(violations))
    refusal.extra = {"kind": kind, "id": id}
    return refusal


# One document in view of the others


def unknown_references(view: Overlay, id: str, cluster: Document, lost: Container[Key] = ()) -> Iterator[Violation]:
    """References that a write adds and that lead nowhere; older ones may dangle by force, and those to what is lost."""
    stored = view.base.get(CLUSTERS, id)
    for field, kind in view.kinds.by_field.items():
        before = {ref["id"] for ref in stored.body[field]} if stored else set()
        references = cluster.get(field)
        for position, reference in enumerate(references if isinstance(references, list) else ()):
            wanted = reference.get("id") if isinstance(reference, dict) else None
            if not isinstance(wanted, str) or wanted in before or (kind.name, wanted) in lost:
                continue
            if view.get(kind.name, wanted) is None:
                yield Violation(pointer([field, position, "id"]), f'{kind.singular} "{wanted}" does not exist; create it first')


def broken_dependencies(view: Overlay, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
    """Dependencies must exist, agree in what the kind says, and never lead back."""
    assert kind.dependencies
    field = kind.dependencies.field
    names = document.get(field)
    for position, name in enumerate(names if isinstance(names, list) else ()):
        if not isinstance(name, str):
            continue  # the schema says so
        other = document if name == id else view.get(kind.name, name)
        at = pointer([field, position])
        if other is None:
            yield Violation(at, f'{kind.singular} "{name}" does not exist; create it first')
            continue
        for same in kind.dependencies.same:
            if other.get(same) != document.get(same):
                yield Violation(at, f'"{name}" has {same} {other.get(same)}, and dependencies need the same {same}')
        cycle = _path(view, kind, name, id)
        if cycle:
            yield Violation(at, "makes a cycle: " + " → ".join([id, *cycle]))
    for name in view.dependents(kind, id):
        if (kind.name, name) in view.after:
            continue  # it is looked at itself
        other = view.get(kind.name, name) or {}
        for same in kind.dependencies.same:
            if other.get(same) != document.get(same):
                yield Violation(pointer([same]), f'must stay {other.get(same)}: "{name}" depends on it and has that {same}')


def _path(view: Overlay, kind: Kind, start: str, goal: str) -> list[str] | None:
    """A way along dependencies from start to goal."""
    assert kind.dependencies
    ways: list[list[str]] = [[start]]
    seen = {start}
    while ways:
        way = ways.pop()
        if way[-1] == goal:
            return way
        for name in (view.get(kind.name, way[-1]) or {}).get(kind.dependencies.field, ()):
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return None


# The whole


def taken_names(view: Overlay, found: tuple[Change, ...]) -> Iterator[errors.Refusal]:
    """A DNS name belongs to one cluster."""
    taken: dict[str, str] = {}
    for change in found:
        if change.kind != CLUSTERS or change.after is None:
            continue
        dns = change.after["cluster_dns"]
        owner = view.base.cluster_ids.get(dns)
        if owner is not None and (view.get(CLUSTERS, owner) or {}).get("cluster_dns") != dns:
            owner = None  # given up in this very transaction
        owner = taken.setdefault(dns, owner or change.id)
        if owner != change.id:
            yield errors.AlreadyExists(
                f'{subject(CLUSTERS, change.id)}: /cluster_dns {dns} belongs to cluster "{owner}"',
                violations=[Violation("/cluster_dns", f'belongs to cluster "{owner}"')],
                extra={"kind": CLUSTERS, "id": change.id},
            )


def still_used(view: Overlay, kind: Kind, id: str, force: bool) -> Iterator[errors.Refusal | Warned]:
    """What is deleted must not be needed: by a dependent never, by a cluster only with force."""
    if kind.dependencies:
        dependents = view.dependents(kind, id)
        if dependents:
            yield _in_use(kind, id, f"{kind.singular}(s) depend on it, and force does not help", dependents)
    users = view.users(kind, id) if kind.cluster_field else set()
    if not users:
        return
    if not force:
        yield _in_use(kind, id, "cluster(s) use it; unassign it there first, or delete it by force", sorted(users))
        return
    yield Warned(f"{subject(kind.name, id)} was deleted by force under {len(users)} cluster(s)", forced=True)


def _in_use(kind: Kind, id: str, why: str, users: list[str]) -> errors.InUse:
    shown = ", ".join(users[:_SHOWN_USERS]) + (", …" if len(users) > _SHOWN_USERS else "")
    return errors.InUse(
        f"{subject(kind.name, id)}: {len(users)} {why}: {shown}",
        extra={"kind": kind.name, "id": id, "users": users[:_SHOWN_USERS], "count": len(users)},
    )


def large_answers(view: Overlay, found: tuple[Change, ...]) -> Iterator[errors.Refusal | Warned]:
    """No write may make an answer that Flux refuses or cuts."""
    touched: dict[Key, tuple[Kind, Change]] = {}
    for change in found:
        if change.after is None:
            continue
        if change.kind == CLUSTERS:
            for kind in view.kinds.referenced:
                touched[change.id, kind.name] = (kind, change)
        elif view.kinds.by_name[change.kind].cluster_field:
            kind = view.kinds.by_name[change.kind]
            for user in view.users(kind, change.id):
                touched.setdefault((user, kind.name), (kind, change))
    sizes: dict[Key, int] = {}
    for (cluster_id, _), (kind, change) in touched.items():
        cluster = view.get(CLUSTERS, cluster_id)
        if cluster is not None and _bound(view, kind, cluster, sizes) >= _WARN_BYTES:
            yield from _large_answer(view, kind, cluster, change)


def _bound(view: Overlay, kind: Kind, cluster: Document, sizes: dict[Key, int]) -> int:
    """More bytes than the answer can have, without merging it; MAX when it has too many inputs."""
    references = cluster[kind.cluster_field or ""]
    if len(references) > fleet.MAX_INPUTS:
        return fleet.MAX_BODY_BYTES
    # every field of an input stands in the definition, the cluster document or the cluster block; 400 is for names and digest
    each = 400 + sum(map(len, kind.nest)) + 6 * (len(cluster["cluster_name"]) + len(cluster["cluster_dns"]))
    total = len(_encode(cluster)) + len(references) * each
    for reference in references:
        key = kind.name, reference["id"]
        if key not in sizes:
            definition = view.get(*key)
            # what it depends on may stand in the answer twice, the second time as wait_for
            sizes[key] = len(_encode(definition)) * (2 if kind.dependencies else 1) if definition else 0
        total += sizes[key]
    return total


def _large_answer(view: Overlay, kind: Kind, cluster: Document, change: Change) -> Iterator[errors.Refusal | Warned]:
    field = kind.cluster_field or ""
    definitions = {ref["id"]: view.get(kind.name, ref["id"]) for ref in cluster[field]}
    body, count = merge.answer(kind, cluster, {id: found for id, found in definitions.items() if found})
    size = f'cluster "{cluster["id"]}": the {kind.endpoint} answer has {count} inputs and {len(body)} bytes'
    if fleet.exceeds(body, count):
        yield errors.AnswerTooLarge(
            f"{size}; Flux takes up to {fleet.MAX_INPUTS} inputs and less than {fleet.MAX_BODY_BYTES} bytes",
            violations=[Violation(pointer([field]) if change.kind == CLUSTERS else "", "makes an answer too large")],
            extra={"kind": change.kind, "id": change.id},
        )
    elif len(body) >= _WARN_BYTES or count >= fleet.MAX_INPUTS * 8 // 10:
        yield Warned(f"{size}, over 80 % of what Flux takes")


# Allowed, but hardly meant

_RANGE = re.compile(r"[<>=~^*|, ]|(?:^|\.)[xX](?:\.|$)|^v?\d+(?:\.\d+)?$")  # how Helm reads a version that leaves a choice


def doubts(view: Overlay, change: Change) -> Iterator[Warned]:
    """What a change makes a document say that can hardly be meant."""
    found = list(_doubts(view, change, change.after))
    known = set(_doubts(view, change, change.before)) if found else set()
    return (warned for warned in found if warned not in known)


def _doubts(view: Overlay, change: Change, document: Document | None) -> Iterator[Warned]:
    about = subject(change.kind, change.id)
    if document is None:
        return
    if change.kind != CLUSTERS:
        kind = view.kinds.by_name[change.kind]
        yield from _loose_versions(kind, about, document, document)
        yield from _unlike_versions(kind, about, document)
        return
    for kind in view.kinds.referenced:
        fields = kind.versions.fields if kind.versions else ()
        for reference in document[kind.cluster_field or ""] if fields else ():
            if reference.keys().isdisjoint(fields):
                continue
            definition = view.get(kind.name, reference["id"]) or {}
            yield from _loose_versions(kind, f'{about}: "{reference["id"]}"', {**definition, **reference}, reference)
    for id, values in document["patches"].items():
        yield from _hidden_patches(f'{about}: patches of "{id}"', values)


def _versions(kind: Kind, document: Document) -> dict[str, str]:
    """The versions that a document pins."""
    hint = kind.versions
    if hint is None or any(document.get(name) != value for name, value in hint.where.items()):
        return {}
    pinned = {name: document.get(name) for name in hint.fields}
    return {name: version for name, version in pinned.items() if isinstance(version, str) and version != hint.unpinned}


def _loose_versions(kind: Kind, about: str, document: Document, given: Document) -> Iterator[Warned]:
    for name, version in _versions(kind, document).items():
        if name in given and _RANGE.search(version):
            yield Warned(f"{about}: {name} {version} leaves Helm a choice; pin an exact version")


def _unlike_versions(kind: Kind, about: str, document: Document) -> Iterator[Warned]:
    pinned = _versions(kind, document)
    if len({version.removeprefix("v") for version in pinned.values()}) > 1:  # Helm reads v1.0.0 and 1.0.0 alike
        said = " and ".join(f"{name} {version}" for name, version in pinned.items())
        yield Warned(f"{about}: {said} disagree; {next(iter(pinned))} counts")


def _hidden_patches(about: str, values: Document) -> Iterator[Warned]:
    for key in values:
        steps = key.split(".")
        above = [".".join(steps[:count]) for count in range(1, len(steps))]
        for other in above:
            if other in values:
                yield Warned(f"{about}: {key} cannot be set below {other}; Helm refuses the release")
