"""Applying and pruning, as work on a draft: documents that a manager names, merged into what is there, and those it gave up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import applying, differences, documents, errors, rules, selectors
from flux_resourceset.changes import Document, Entry, Setter, Tombstone
from flux_resourceset.differences import ABSENT, Steps
from flux_resourceset.drafts import Draft
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds.model import CLUSTERS, Kind
from flux_resourceset.overlay import Key

SHOWN_CONFLICTS = 10_000  # of all operations together: one in every document of the largest batch
_SHOWN_BYTES = 1024 * 1024  # of both sides of them, for each may be a whole document long

_FIELDS_PER_STEP = 10  # to complete takes less than to look at another document

_encode = msgspec.json.Encoder().encode


# who last set places of documents; of what was folded away nobody knows
LastSet = Callable[[Mapping[Key, list[Steps]]], Mapping[Key, Mapping[Steps, Setter]]]

_NOBODY = Setter()


class Place(NamedTuple):
    """A field of a document, as others made it; or the very draft, by an operation before."""

    key: Key
    steps: Steps
    cause: Steps  # what they did it to: the field itself, or the reference that they removed with it
    drafted: bool


class Conflict(NamedTuple):
    operation: int  # its index
    place: Place
    yours: Any
    theirs: Any


class Buried(NamedTuple):
    """A cluster that was decommissioned, and does not come back because somebody has an old file."""

    operation: int  # its index
    id: str
    tombstone: Tombstone


class Application(NamedTuple):
    conflicts: list[Conflict]
    kept: list[Place]
    buried: Buried | None = None


def apply(
    draft: Draft, index: int, kind: Kind, id: str, manager: str, document: Document, *, force: bool, revive: bool
) -> Application:
    """Take what a manager applies into the draft, where both sides changed something as if by force; and its record."""
    _check_document(kind, id, document)
    key, live = (kind.name, id), draft.get(kind.name, id)
    result = Application([], [])
    if live is None:
        _check_methods(kind, id, "create")
        latest = draft.buried(id, document.get("cluster_dns")) if kind.name == CLUSTERS and not revive else None
        if latest is not None:
            return Application([], [], Buried(index, id, latest))
        draft.create(kind, {"id": id, **document})
    else:
        result = _merge(draft, index, kind, live, manager, document, force)
    draft.applied.put(key, manager, document)
    return Application([], result.kept) if force else result


def _check_document(kind: Kind, id: str, document: Document) -> None:
    if not documents.is_bounded(document):
        raise rules.invalid(kind.name, id, [Violation("", documents.TOO_LARGE)])
    if document.get("id", id) != id:
        raise rules.invalid(kind.name, id, [Violation("/id", "must equal the operation's id")])


def _check_empty(kind: Kind, live: Document, document: Document) -> None:
    """What is empty names nothing, and so is merged into nothing; a name that nobody knows is a mistake all the same."""
    empty = [name for name, value in document.items() if value in ({}, [])]
    unknown = [name for name in empty if name not in kind.properties and name not in live]
    if unknown:
        raise rules.invalid(kind.name, live["id"], [Violation(pointer([name]), documents.NOT_KNOWN) for name in unknown])


def _check_methods(kind: Kind, id: str, word: str) -> None:
    level, methods = ("resource", {"post"}) if word == "create" else ("instance", {"put", "patch"})
    if methods.isdisjoint(kind.methods[level]):
        refused = f"{kind.name} do not take {word}, neither here nor on their own routes"
        raise rules.invalid(kind.name, id, [Violation("", refused)])


def _merge(draft: Draft, index: int, kind: Kind, live: Document, manager: str, document: Document, force: bool) -> Application:
    key, id = (kind.name, live["id"]), live["id"]
    _check_empty(kind, live, document)
    records = draft.applied.of(key)

    def completed(given: Document) -> Document:
        draft.budget.spend(_extent(given))
        return documents.completed(kind, given)

    others = [record for name, record in records.items() if name != manager]
    fields = _fields(draft, kind)
    merged = applying.merged(records.get(manager), document, live, others, completed, fields)
    result = completed(merged.document)
    if not differences.same(result, live):
        _check_methods(kind, id, "replace")
        try:
            draft.replace(kind, id, result)
        except errors.Invalid as refusal:
            if force or not _is_theirs(refusal, merged.conflicts):
                raise
    place = _places(draft, kind, live, document, fields)
    conflicts = [Conflict(index, place(steps), _value(yours), _value(theirs)) for steps, yours, theirs in merged.conflicts]
    return Application(conflicts, [place(steps) for steps in merged.kept])


def _is_theirs(refusal: errors.Invalid, conflicts: Iterable[applying.Conflict]) -> bool:
    """Whether all that is wrong is that others unassigned what is patched: then the patches are told as conflicts."""
    gone = {pointer(steps[:2]) for steps, _, theirs in conflicts if steps[0] == applying.PATCHES and theirs is ABSENT}
    return {violation.pointer for violation in refusal.violations} <= gone != set()


def _fields(draft: Draft, kind: Kind) -> applying.Fields:
    references = draft.kinds.references(kind.name)
    return applying.Fields(references, references & {each.cluster_field for each in draft.kinds.patched})


def _extent(document: Document) -> int:
    """How much there is to complete, about, in steps."""
    return 1 + sum(len(value) if isinstance(value, dict | list) else 1 for value in document.values()) // _FIELDS_PER_STEP


def _value(side: Any) -> Any:
    return None if side is ABSENT else side


def _places(draft: Draft, kind: Kind, live: Document, document: Document, fields: applying.Fields) -> Callable[[Steps], Place]:
    """Fields of a document as this draft found it."""
    stored = draft.base.get(kind.name, live["id"])
    before = stored.body if stored else {}

    def place(steps: Steps) -> Place:
        holders = fields.patched if steps[0] == applying.PATCHES else [steps[0]] if steps[0] in fields.references else []
        references = [(name, steps[1]) for name in holders if len(steps) > 2]
        named = [each for each in references if differences.at(document, each) is not ABSENT]
        removed = [each for each in named if differences.at(live, each) is ABSENT]
        cause = removed[0] if removed else steps
        drafted = before is not live and not differences.same(differences.at(before, cause), differences.at(live, cause))
        return Place((kind.name, live["id"]), steps, cause, drafted)

    return place


# Conflicts


def refusal(conflicts: list[Conflict], buried: list[Buried], last_set: LastSet | None = None) -> errors.Conflict:
    """All of them in one, with who changed what meanwhile if anybody can tell."""
    parts = [part for part in (_of_buried(buried), _of_conflicts(conflicts, last_set)) if part is not None]
    extra = {name: value for part in reversed(parts) for name, value in part.extra.items()}
    first = min([each.operation for each in conflicts] + [each.operation for each in buried])
    return errors.Conflict("; and ".join(part.detail for part in parts), extra={**extra, "index": first})


def _of_buried(buried: list[Buried]) -> errors.Conflict | None:
    if not buried:
        return None
    first, latest = buried[0], buried[0].tombstone
    what = "it" if latest.id == first.id else f'the cluster "{latest.id}", which had the DNS name {latest.dns},'
    more = f" ({len(buried) - 1} more likewise)" if len(buried) > 1 else ""
    told = [
        {"id": each.id, "cluster_dns": each.tombstone.dns, "was": each.tombstone.id, "revision": each.tombstone.revision}
        for each in buried[:SHOWN_CONFLICTS]
    ]
    return errors.Conflict(
        f"{rules.subject(CLUSTERS, first.id)} is not there: {what} was decommissioned in revision {latest.revision}{more}; "
        "take it out of what you apply, or say revive to bring it back",
        extra={"kind": CLUSTERS, "id": first.id, "decommissioned": told, "decommissioned_total": len(buried)},
    )


def _of_conflicts(conflicts: list[Conflict], last_set: LastSet | None) -> errors.Conflict | None:
    if not conflicts:
        return None
    shown = list(_shown(conflicts))
    setters = signed([each.place for each in shown], last_set)
    told = [_told(each, setters[each.place]) for each in shown]
    first = told[0]
    who = f" (by {first['actor']} in revision {first['revision']})" if first["revision"] is not None else ""
    return errors.Conflict(
        f"{len(conflicts)} field(s) that you change were changed by others as well, the first being {first['path']} of "
        f"{rules.subject(first['kind'], first['id'])}{who}; take over what is there, or say force to take yours",
        extra={"conflicts": told, "conflicts_total": len(conflicts)},
    )


def _shown(conflicts: list[Conflict]) -> Iterator[Conflict]:
    size = 0
    for each in conflicts[:SHOWN_CONFLICTS]:
        size += len(_encode((each.yours, each.theirs)))
        if size > _SHOWN_BYTES and each is not conflicts[0]:
            return
        yield each


def _told(conflict: Conflict, setter: Setter) -> Document:
    kind, id = conflict.place.key
    about = {"kind": kind, "id": id, "path": pointer(conflict.place.steps)}
    return {**about, "yours": conflict.yours, "theirs": conflict.theirs, **_signature(setter)}


def _signature(setter: Setter) -> Document:
    """Who it was, and for whom if that was said."""
    for_whom = {"on_behalf_of": setter.on_behalf_of} if setter.on_behalf_of is not None else {}
    return {"actor": setter.actor, "revision": setter.revision, **for_whom}


def kept(places: Iterable[Place], setters: Mapping[Place, Setter]) -> list[Document]:
    """What stays as others made it, and who did."""
    signatures = ((place.steps, setters[place]) for place in dict.fromkeys(places))
    return [{"path": pointer(steps), **_signature(setter)} for steps, setter in signatures]


def signed(places: Iterable[Place], last_set: LastSet | None, entry: Entry | None = None) -> dict[Place, Setter]:
    """Who last set each of them; what the draft itself did is in the entry that it has made."""
    drafted = Setter(entry.actor, entry.revision, entry.on_behalf_of) if entry else _NOBODY
    by_key: dict[Key, list[Steps]] = {}
    every = list(places)
    for place in every:
        by_key.setdefault(place.key, []).append(place.cause)
    told = last_set(by_key) if last_set is not None and every else {}
    return {place: drafted if place.drafted else told.get(place.key, {}).get(place.cause, _NOBODY) for place in every}


# Pruning


def prune(
    draft: Draft, kind: Kind, manager: str, keep: Iterable[str], environment: str | None, selector: str | None
) -> Iterator[Key]:
    """Delete what a manager applied of a kind, names no more, and nobody else applied; each as it goes."""
    kept = frozenset(keep)
    candidates = [key for key in draft.applied.by(manager, kind.name) if key[1] not in kept]
    draft.applied.load(candidates)
    matches = selectors.parse(selector or "")
    draft.budget.spend(len(candidates) * matches.cost)
    for key in candidates:
        document = draft.get(*key)
        if document is None or draft.applied.of(key).keys() != {manager}:
            continue
        if environment in (None, document.get("environment")) and matches(document.get("labels") or {}):
            draft.delete(kind, key[1])
            yield key
