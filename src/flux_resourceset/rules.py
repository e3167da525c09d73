"""The rules that bind documents together: what must not become true, however it is written."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import answers, errors, flux_limits
from flux_resourceset.changes import Change, Document
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds import formats
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
        references = cluster.get(field)
        if stored and references is stored.body[field]:
            continue
        before = {ref["id"] for ref in stored.body[field]} if stored else set()
        for position, reference in enumerate(references if isinstance(references, list) else ()):
            wanted = reference.get("id") if isinstance(reference, dict) else None
            if not isinstance(wanted, str) or wanted in before or (kind.name, wanted) in lost:
                continue
            if view.get(kind.name, wanted) is None:
                yield Violation(pointer([field, position, "id"]), f'{kind.singular} "{wanted}" not found; create it first')


def misnamed_patches(view: Overlay, id: str, cluster: Document) -> Iterator[Violation]:
    """Patch keys that a write makes wrong for what they patch; those that were wrong before wait for their own mending."""
    kinds, stored = view.kinds.patched, view.base.get(CLUSTERS, id)
    defined_anew = any(kind.name in view.touched for kind in kinds)
    wrong = list(misnamed(kinds, view.get, cluster, stored.body if stored and not defined_anew else None))
    wrong_before = set(misnamed(kinds, Overlay(view.base, view.budget).get, stored.body)) if wrong and stored else set()
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
        wrong = next((wrong for wrong in misnamed([kind], view.get, cluster) if wrong.pointer.split("/")[2] == id), None)
        if wrong:
            place = pointer([next(iter(where), "id")])
            yield Violation(
                place, f'does not fit cluster "{user}", where {wrong.pointer} {wrong.message}; take the patch back first'
            )
            return


def misnamed(
    kinds: Iterable[Referenced], get: Callable[[str, str], Document | None], cluster: Document, other: Document | None = None
) -> Iterator[Violation]:
    """But for what the same objects say in another state of the cluster, with the same definitions."""
    given = cluster.get("patches")
    patches = given if isinstance(given, dict) else {}
    for kind in kinds:
        hint = kind.patch_keys
        same = other["patches"] if other and other[kind.cluster_field] is cluster.get(kind.cluster_field) else {}
        changed = {id: values for id, values in patches.items() if same.get(id) is not values}
        for reference, values in _patched(kind, cluster, changed) if hint and changed else ():
            id = reference["id"]
            if hint and _is_where(hint.where, get(kind.name, id) or {}, reference):
                syntax = formats.FORMATS[hint.format]
                said = "".join(f", as {name} of the {kind.singular} is {value}" for name, value in hint.where.items())
                for key, value in values.items():
                    if not syntax.check(key):
                        yield Violation(pointer(["patches", id, key]), syntax.message + said)
                    elif isinstance(value, list) and hint.format != "helm-path":
                        yield Violation(pointer(["patches", id, key]), "must be a text, a number, true or false" + said)


def _is_where(where: Mapping[str, Any], definition: Document, reference: Document) -> bool:
    """Whether the two together say so; what a reference has beats the definition, unless it is null."""
    for name, value in where.items():
        own = reference.get(name)
        if (definition.get(name) if own is None else own) != value:
            return False
    return True


def _patched(kind: Referenced, cluster: Document, patches: Document) -> Iterator[tuple[Document, Document]]:
    """References to a kind with the patches of each, in a document that may not have been checked yet."""
    references = cluster.get(kind.cluster_field)
    for reference in references if isinstance(references, list) else ():
        id = reference.get("id") if isinstance(reference, dict) else None
        values = patches.get(id) if isinstance(id, str) else None
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
    touched: dict[str, dict[str, tuple[Referenced, Change]]] = {}  # by cluster and kind
    for change in changes:
        if change.after is None:
            continue
        if change.kind == CLUSTERS:
            touched[change.id] = {kind.name: (kind, change) for kind in view.kinds.referenced}
        elif isinstance(changed := view.kinds.by_name[change.kind], Referenced):
            users = view.users(changed, change.id)
            view.budget.spend(len(users))
            for user in users:
                touched.setdefault(user, {}).setdefault(changed.name, (changed, change))
    sizes: dict[str, dict[str, int]] = {kind.name: {} for kind in view.kinds.referenced}  # of definitions
    for cluster_id, reached in touched.items():
        view.budget.spend(len(reached))
        cluster = view.get(CLUSTERS, cluster_id)
        if cluster is None:
            continue
        if _bound(view, (kind for kind, _ in reached.values()), cluster, sizes) >= _WARN_BYTES:
            for kind, change in reached.values():
                yield from _large_answer(view, kind, cluster, change)


def _bound(view: Overlay, kinds: Iterable[Referenced], cluster: Document, sizes: dict[str, dict[str, int]]) -> int:
    """More bytes than these answers of a cluster have together, without merging them."""
    total = len(_encode(cluster))
    for kind in kinds:
        references = cluster[kind.cluster_field]
        known = sizes[kind.name]
        for reference in references:
            id = reference["id"]
            if id not in known:
                definition = view.get(kind.name, id)
                # what it depends on may stand in the answer twice, the second time as wait_for
                known[id] = len(_encode(definition)) * (2 if kind.dependencies else 1) if definition else 0
            total += known[id]
        # every field of an input stands in the definition, the cluster document or the cluster block; 400 is for names and digest
        each = 400 + sum(map(len, kind.nest)) + 6 * (len(cluster["cluster_name"]) + len(cluster["cluster_dns"]))
        total += len(references) * each
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
