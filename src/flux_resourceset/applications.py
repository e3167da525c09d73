"""Applying and pruning, as work on a draft: documents that a manager names, merged into what is there, and those it gave up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import applying, differences, documents, errors, rules, selectors
from flux_resourceset.changes import Document, Entry
from flux_resourceset.differences import ABSENT, Steps
from flux_resourceset.drafts import Draft
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds.model import CLUSTERS, Kind
from flux_resourceset.overlay import Key

SHOWN_CONFLICTS = 1000  # of all operations together: more than anybody decides at once
_SHOWN_BYTES = 1024 * 1024  # of both sides of them, for each may be a whole document long

_encode = msgspec.json.Encoder().encode


# by kind, id and places of a document: the entries that last set them, but for those that were folded away
LastSet = Callable[[str, str, list[Steps]], Mapping[Steps, Entry]]


class Place(NamedTuple):
    """A field of a document, as others made it; or the very draft, by an operation before."""

    key: Key
    steps: Steps
    drafted: bool = False


class Conflict(NamedTuple):
    operation: int  # its index
    place: Place
    yours: Any
    theirs: Any


class Application(NamedTuple):
    conflicts: list[Conflict]
    kept: list[Place]


def apply(
    draft: Draft, index: int, kind: Kind, id: str, manager: str, document: Document, *, force: bool, revive: bool
) -> Application:
    """Take what a manager applies into the draft, where both sides changed something as if by force; and its record."""
    _check_document(kind, id, document)
    key, live = (kind.name, id), draft.get(kind.name, id)
    result = Application([], [])
    if live is None:
        _check_methods(kind, id, "create")
        _check_revival(draft, kind, id, document, revive)
        draft.create(kind, {"id": id, **document})
    else:
        result = _merge(draft, index, kind, live, manager, document)
    draft.applied.put(key, manager, document)
    return Application([], result.kept) if force else result


def _check_document(kind: Kind, id: str, document: Document) -> None:
    if not documents.is_bounded(document):
        raise rules.invalid(kind.name, id, [Violation("", documents.TOO_LARGE)])
    if document.get("id", id) != id:
        raise rules.invalid(kind.name, id, [Violation("/id", "must equal the operation's id")])


def _check_methods(kind: Kind, id: str, word: str) -> None:
    level, methods = ("resource", {"post"}) if word == "create" else ("instance", {"put", "patch"})
    if methods.isdisjoint(kind.methods[level]):
        refused = f"{kind.name} do not take {word}, neither here nor on their own routes"
        raise rules.invalid(kind.name, id, [Violation("", refused)])


def _check_revival(draft: Draft, kind: Kind, id: str, document: Document, revive: bool) -> None:
    """A cluster that was decommissioned does not come back because somebody has an old file."""
    if kind.name != CLUSTERS or revive:
        return
    dns = document.get("cluster_dns")
    buried = [each for each in draft.base.tombstones.values() if each.id == id or each.dns == dns]
    if buried:
        latest = max(buried, key=lambda each: each.revision)
        what = "it" if latest.id == id else f'the cluster "{latest.id}", which had the DNS name {latest.dns},'
        raise errors.Conflict(
            f"{rules.subject(kind.name, id)} is not there: {what} was decommissioned in revision {latest.revision}; take it out "
            "of what you apply, or say revive to bring it back",
            extra={"kind": kind.name, "id": id},
        )


def _merge(draft: Draft, index: int, kind: Kind, live: Document, manager: str, document: Document) -> Application:
    key, id = (kind.name, live["id"]), live["id"]
    records = draft.applied.of(key)

    def completed(given: Document) -> Document:
        draft.budget.spend(_extent(given))
        return documents.completed(kind, given)

    others = [record for name, record in records.items() if name != manager]
    merged = applying.merged(records.get(manager), document, live, others, completed, _fields(draft, kind))
    result = completed(merged.document)
    if not differences.same(result, live):
        _check_methods(kind, id, "replace")
        draft.replace(kind, id, result)
    place = _places(draft, key, live)
    conflicts = [Conflict(index, place(steps), _value(yours), _value(theirs)) for steps, yours, theirs in merged.conflicts]
    return Application(conflicts, [place(steps) for steps in merged.kept])


def _fields(draft: Draft, kind: Kind) -> applying.Fields:
    references = draft.kinds.references(kind.name)
    return applying.Fields(references, references & {each.cluster_field for each in draft.kinds.patched})


def _extent(document: Document) -> int:
    """How much there is to complete, about."""
    return sum(1 + (len(value) if isinstance(value, dict | list) else 0) for value in document.values())


def _value(side: Any) -> Any:
    return None if side is ABSENT else side


def _places(draft: Draft, key: Key, live: Document) -> Callable[[Steps], Place]:
    """Fields of a document as this draft found it."""
    stored = draft.base.get(*key)
    if stored is not None and stored.body is live:
        return lambda steps: Place(key, steps)
    before = stored.body if stored else {}
    return lambda steps: Place(key, steps, not differences.same(differences.at(before, steps), differences.at(live, steps)))


# Conflicts


def refusal(conflicts: list[Conflict], last_set: LastSet | None = None) -> errors.Conflict:
    """All of them in one, with who changed what meanwhile if anybody can tell."""
    shown = list(_shown(conflicts))
    setters = signed([each.place for each in shown], last_set)
    told = [_told(each, setters.get(each.place)) for each in shown]
    first = told[0]
    who = f" (by {first['actor']} in revision {first['revision']})" if first["revision"] is not None else ""
    return errors.Conflict(
        f"{len(conflicts)} field(s) that you change were changed by others as well, the first being {first['path']} of "
        f"{rules.subject(first['kind'], first['id'])}{who}; take over what is there, or say force to take yours",
        extra={"index": conflicts[0].operation, "conflicts": told, "conflicts_total": len(conflicts)},
    )


def _shown(conflicts: list[Conflict]) -> Iterator[Conflict]:
    size = 0
    for each in conflicts[:SHOWN_CONFLICTS]:
        size += len(_encode((each.yours, each.theirs)))
        if size > _SHOWN_BYTES and each is not conflicts[0]:
            return
        yield each


def _told(conflict: Conflict, entry: Entry | None) -> Document:
    kind, id = conflict.place.key
    about = {"kind": kind, "id": id, "path": pointer(conflict.place.steps)}
    return {**about, "yours": conflict.yours, "theirs": conflict.theirs, **_signature(entry)}


def kept(places: list[Place], last_set: LastSet | None, entry: Entry | None) -> list[Document]:
    """What stays as others made it, and who did; `entry` is the one that the draft has made."""
    setters = signed(places, last_set)
    return [
        {"path": pointer(place.steps), **_signature(entry if place.drafted else setters.get(place))}
        for place in dict.fromkeys(places)
    ]


def signed(places: Iterable[Place], last_set: LastSet | None) -> dict[Place, Entry]:
    """The entries that last set them; none of what the draft itself did, and of what was folded away."""
    found: dict[Place, Entry] = {}
    by_key: dict[Key, list[Place]] = {}
    for place in places:
        if not place.drafted:
            by_key.setdefault(place.key, []).append(place)
    if last_set is None:
        return found
    for key, of_key in by_key.items():
        entries = last_set(*key, [place.steps for place in of_key])
        found.update({place: entries[place.steps] for place in of_key if place.steps in entries})
    return found


def _signature(entry: Entry | None) -> Document:
    return {"actor": entry.actor if entry else None, "revision": entry.revision if entry else None}


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
