"""The rules that bind documents together: what must not become true, however it is written."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import NamedTuple

import msgspec

from flux_resourceset import answers, errors, flux_limits
from flux_resourceset.changes import Change, Document
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds import formats, helm_paths
from flux_resourceset.kinds.model import CLUSTERS, Kind, Referenced
from flux_resourceset.overlay import Key, Overlay

_SHOWN_USERS = 20  # enough to recognise them, few enough to read
_WARN_BYTES = flux_limits.MAX_BODY_BYTES * 8 // 10

_encode = msgspec.json.Encoder().encode


class Warning(NamedTuple):
    """Allowed, but worth a line in the log."""

    message: str
    forced: bool = False


def subject(kind: str, id: str) -> str:
    return f'{kind} "{id}"'


def not_found(kind: str, id: str) -> errors.NotFound:
    return errors.NotFound(f"{subject(kind, id)} not found", extra={"kind": kind, "id": id})


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
                yield Violation(pointer([field, position, "id"]), f'{kind.singular} "{wanted}" not found; create it first')


def misnamed_patches(view: Overlay, id: str, cluster: Document) -> Iterator[Violation]:
    """Patch keys that a write makes wrong for what they patch; those that were wrong before wait for their own mending."""
    wrong = list(_misnamed(view.kinds.patched, view.get, cluster))
    stored = view.base.get(CLUSTERS, id) if wrong else None
    wrong_before = set(_misnamed(view.kinds.patched, Overlay(view.base, view.budget).get, stored.body)) if stored else set()
    return (violation for violation in wrong if violation not in wrong_before)


def misnaming(view: Overlay, kind: Referenced, id: str, definition: Document) -> Iterator[Violation]:
    """A definition that becomes what the patches of its clusters do not fit; the first tells what is meant."""
    where = kind.patch_keys.where if kind.patch_keys else {}
    stored = view.base.get(kind.name, id)
    if stored and all(stored.body.get(name) == definition.get(name) for name in where):
        return
    for user in sorted(view.users(kind, id)):
        cluster = view.get(CLUSTERS, user)
        if cluster is None or (CLUSTERS, user) in view.after:
            continue  # it is looked at itself
        wrong = next((wrong for wrong in _misnamed([kind], view.get, cluster) if wrong.pointer.split("/")[2] == id), None)
        if wrong:
            place = pointer([next(iter(where), "id")])
            yield Violation(
                place, f'does not fit cluster "{user}", where {wrong.pointer} {wrong.message}; take the patch back first'
            )
            return


def _misnamed(kinds: Iterable[Referenced], get: Callable[[str, str], Document | None], cluster: Document) -> Iterator[Violation]:
    for kind in kinds:
        hint = kind.patch_keys
        for reference, values in _patched(kind, cluster) if hint else ():
            id = reference["id"]
            merged = {**(get(kind.name, id) or {}), **{name: value for name, value in reference.items() if value is not None}}
            if hint and all(merged.get(name) == value for name, value in hint.where.items()):
                syntax = formats.FORMATS[hint.format]
                said = "".join(f", as {name} of the {kind.singular} is {value}" for name, value in hint.where.items())
                for key, value in values.items():
                    if not syntax.check(key):
                        yield Violation(pointer(["patches", id, key]), syntax.message + said)
                    elif isinstance(value, list) and hint.format != "helm-path":
                        yield Violation(pointer(["patches", id, key]), "must be a text, a number, true or false" + said)


def _patched(kind: Referenced, cluster: Document) -> Iterator[tuple[Document, Document]]:
    """References to a kind with the patches of each, in a document that may not have been checked yet."""
    references, patches = cluster.get(kind.cluster_field), cluster.get("patches")
    for reference in references if patches and isinstance(references, list) else ():
        id = reference.get("id") if isinstance(reference, dict) else None
        values = patches.get(id) if isinstance(patches, dict) and isinstance(id, str) else None
        if isinstance(values, dict):
            yield reference, values


def broken_dependencies(view: Overlay, kind: Kind, id: str, document: Document) -> Iterator[Violation]:
    """Dependencies must exist, agree in what the kind says, and never lead back."""
    assert kind.dependencies
    field = kind.dependencies.field
    names = document.get(field)
    ways = _ways_back(view, kind, id, document)
    for position, name in enumerate(names if isinstance(names, list) else ()):
        if not isinstance(name, str):
            continue  # the schema says so
        other = document if name == id else view.get(kind.name, name)
        at = pointer([field, position])
        if other is None:
            yield Violation(at, f'{kind.singular} "{name}" not found; create it first')
            continue
        for same in kind.dependencies.same:
            if other.get(same) != document.get(same):
                yield Violation(at, f'"{name}" has {same} {other.get(same)}, and dependencies need the same {same}')
        if name in ways:
            yield Violation(at, "makes a cycle: " + " → ".join([id, *_way(ways, name, id)]))
    for name in view.dependents(kind, id):
        if (kind.name, name) in view.after:
            continue  # it is looked at itself
        other = view.get(kind.name, name) or {}
        for same in kind.dependencies.same:
            if other.get(same) != document.get(same):
                yield Violation(pointer([same]), f'must stay {other.get(same)}: "{name}" depends on it and has that {same}')


def _ways_back(view: Overlay, kind: Kind, id: str, document: Document) -> dict[str, str]:
    """Whatever leads to a document along dependencies, with the next step; only if the document can be part of a cycle."""
    if view.get(kind.name, id) is document and id not in view.cyclic(kind):
        return {}
    ways, waiting = {id: id}, [id]
    for name in waiting:
        for other in view.dependents(kind, name):
            view.budget.spend()
            if other not in ways:
                ways[other] = name
                waiting.append(other)
    return ways


def _way(ways: dict[str, str], start: str, goal: str) -> list[str]:
    """The names from start to goal; of a long way both ends."""
    names = [start]
    while names[-1] != goal:
        names.append(ways[names[-1]])
    half = _SHOWN_USERS // 2
    return names if len(names) <= _SHOWN_USERS else [*names[:half], "…", *names[-half:]]


# The whole


def taken_names(view: Overlay, changes: tuple[Change, ...]) -> Iterator[errors.Refusal]:
    """A DNS name belongs to one cluster."""
    taken: dict[str, str] = {}
    for change in changes:
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


def still_used(view: Overlay, kind: Kind, id: str, force: bool) -> Iterator[errors.Refusal | Warning]:
    """What is deleted must not be needed: by a dependent never, by a cluster only with force."""
    if kind.dependencies:
        dependents = view.dependents(kind, id)
        if dependents:
            yield _in_use(kind, id, f"{kind.singular}(s) depend on it, and force does not help", dependents)
    users = view.users(kind, id)
    view.budget.spend(len(users))
    if not users:
        return
    if not force:
        yield _in_use(kind, id, "cluster(s) use it; unassign it there first, or delete it by force", sorted(users))
    else:
        yield Warning(f"{subject(kind.name, id)} is deleted by force, and {len(users)} cluster(s) go without it", forced=True)


def _in_use(kind: Kind, id: str, why: str, users: list[str]) -> errors.InUse:
    shown = ", ".join(users[:_SHOWN_USERS]) + (", …" if len(users) > _SHOWN_USERS else "")
    return errors.InUse(
        f"{subject(kind.name, id)}: {len(users)} {why}: {shown}",
        extra={"kind": kind.name, "id": id, "users": users[:_SHOWN_USERS], "count": len(users)},
    )


def large_answers(view: Overlay, changes: tuple[Change, ...]) -> Iterator[errors.Refusal | Warning]:
    """No write may make an answer that Flux refuses or cuts."""
    touched: dict[Key, tuple[Referenced, Change]] = {}
    for change in changes:
        if change.after is None:
            continue
        if change.kind == CLUSTERS:
            for kind in view.kinds.referenced:
                touched[change.id, kind.name] = (kind, change)
        elif isinstance(changed := view.kinds.by_name[change.kind], Referenced):
            users = view.users(changed, change.id)
            view.budget.spend(len(users))
            for user in users:
                touched.setdefault((user, changed.name), (changed, change))
    sizes: dict[Key, int] = {}
    for (cluster_id, _), (kind, change) in touched.items():
        view.budget.spend()
        cluster = view.get(CLUSTERS, cluster_id)
        if cluster is not None and _bound(view, kind, cluster, sizes) >= _WARN_BYTES:
            yield from _large_answer(view, kind, cluster, change)


def _bound(view: Overlay, kind: Referenced, cluster: Document, sizes: dict[Key, int]) -> int:
    """More bytes than the answer can have, without merging it; MAX when it has too many inputs."""
    references = cluster[kind.cluster_field]
    if len(references) > flux_limits.MAX_INPUTS:
        return flux_limits.MAX_BODY_BYTES
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


def _large_answer(view: Overlay, kind: Referenced, cluster: Document, change: Change) -> Iterator[errors.Refusal | Warning]:
    field = kind.cluster_field
    definitions = {ref["id"]: view.get(kind.name, ref["id"]) for ref in cluster[field]}
    body, count = answers.Encoder().answer(
        kind, cluster, {id: definition for id, definition in definitions.items() if definition}
    )
    size = f'cluster "{cluster["id"]}": the {kind.endpoint} answer has {count} inputs and {len(body)} bytes'
    if flux_limits.exceeds(body, count):
        yield errors.AnswerTooLarge(
            f"{size}; Flux takes up to {flux_limits.MAX_INPUTS} inputs and less than {flux_limits.MAX_BODY_BYTES} bytes",
            violations=[Violation(pointer([field]) if change.kind == CLUSTERS else "", "makes an answer too large")],
            extra={"kind": change.kind, "id": change.id},
        )
    elif len(body) >= _WARN_BYTES:  # which 8,000 inputs have in any case, as each takes over 100 bytes
        yield Warning(f"{size}, over 80 % of what Flux takes")


# Allowed, but hardly meant

_RANGE = re.compile(r"[<>=~^*|, ]|(?:^|\.)[xX](?:\.|$)|^v?\d+(?:\.\d+)?$")  # how Helm reads a version that leaves a choice


def new_warnings(view: Overlay, change: Change) -> Iterator[Warning]:
    """What a change makes a document say that can hardly be meant."""
    after = list(_warnings(view, change, change.after))
    before = set(_warnings(view, change, change.before)) if after else set()
    return (warning for warning in after if warning not in before)


def _warnings(view: Overlay, change: Change, document: Document | None) -> Iterator[Warning]:
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
        for reference in document[kind.cluster_field] if fields else ():
            if reference.keys().isdisjoint(fields):
                continue
            definition = view.get(kind.name, reference["id"]) or {}
            yield from _loose_versions(kind, f'{about}: "{reference["id"]}"', {**definition, **reference}, reference)
    for wrong in _misnamed(view.kinds.patched, view.get, document):  # what is imported may hold them
        yield Warning(f"{about}: {wrong.pointer} {wrong.message}")
    for id, values in document["patches"].items():
        yield from (Warning(f'{about}: patches of "{id}": {text}') for text in helm_paths.surprises(values))


def _versions(kind: Kind, document: Document) -> dict[str, str]:
    """The versions that a document pins."""
    hint = kind.versions
    if hint is None or any(document.get(name) != value for name, value in hint.where.items()):
        return {}
    pinned = {name: document.get(name) for name in hint.fields}
    return {name: version for name, version in pinned.items() if isinstance(version, str) and version != hint.unpinned}


def _loose_versions(kind: Kind, about: str, document: Document, given: Document) -> Iterator[Warning]:
    for name, version in _versions(kind, document).items():
        if name in given and _RANGE.search(version):
            yield Warning(f"{about}: {name} {version} leaves Helm a choice; pin an exact version")


def _unlike_versions(kind: Kind, about: str, document: Document) -> Iterator[Warning]:
    pinned = _versions(kind, document)
    if len({version.removeprefix("v") for version in pinned.values()}) > 1:  # Helm reads v1.0.0 and 1.0.0 alike
        said = " and ".join(f"{name} {version}" for name, version in pinned.items())
        yield Warning(f"{about}: {said} disagree; {next(iter(pinned))} counts")


def new_risks(view: Overlay, change: Change, protected: Container[str]) -> Iterator[Warning]:
    """What a change makes clusters run that may surprise: something without what it depends on, or in no exact version."""
    after = list(_risks(view, change, change.after, protected))
    before = set(_risks(Overlay(view.base, view.budget), change, change.before, protected)) if after else set()
    return (warning for warning in after if warning not in before)


def _risks(view: Overlay, change: Change, document: Document | None, protected: Container[str]) -> Iterator[Warning]:
    about = subject(change.kind, change.id)
    if document is None:
        return
    if change.kind == CLUSTERS:
        for kind in view.kinds.referenced:
            for reference in document[kind.cluster_field]:
                yield from _risks_of_reference(view, kind, about, document, reference, protected)
        return
    changed = view.kinds.referenced_by_name.get(change.kind)
    if changed is None or not (changed.dependencies or changed.versions):
        return
    counts: collections.Counter[str] = collections.Counter()
    for user in view.users(changed, change.id):
        view.budget.spend()
        cluster = view.get(CLUSTERS, user) or {}
        for reference in cluster[changed.cluster_field]:
            if reference["id"] == change.id:
                found = _risks_of_reference(view, changed, "", cluster, reference, protected)
                counts.update(warning.message for warning in found)
    yield from (Warning(f"{count} cluster(s){text}") for text, count in sorted(counts.items()))


def _risks_of_reference(
    view: Overlay, kind: Referenced, about: str, cluster: Document, reference: Document, protected: Container[str]
) -> Iterator[Warning]:
    id = reference["id"]
    definition = view.get(kind.name, id)
    if definition is None:
        return
    if kind.dependencies:
        assigned = {each["id"] for each in cluster[kind.cluster_field]}
        for needed in definition.get(kind.dependencies.field, ()):
            if needed not in assigned:
                yield Warning(f'{about}: {kind.singular} "{id}" is assigned without "{needed}", which it depends on')
    if kind.versions and cluster["environment"] in protected:
        merged = {**definition, **{name: value for name, value in reference.items() if value is not None}}
        version = _version_at_work(kind, merged)
        if version is None or _RANGE.search(version):
            said = kind.versions.unpinned if version is None else version
            yield Warning(
                f'{about}: {kind.singular} "{id}" has no exact version ({said}) in {cluster["environment"]}, which is protected'
            )


def _version_at_work(kind: Kind, document: Document) -> str | None:
    """The first field that pins one; where the document is another sort of thing, the first field alone counts."""
    assert kind.versions
    pinned = list(_versions(kind, document).values())
    if pinned or all(document.get(name) == value for name, value in kind.versions.where.items()):
        return pinned[0] if pinned else None
    first = document.get(kind.versions.fields[0])
    return None if first in (None, kind.versions.unpinned) else str(first)
