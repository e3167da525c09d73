"""Exports on their way into a fleet: they obey every rule of a write, but for what is named here, each with a warning.

- A reference whose definition was deleted by force where the export was made: the cluster has done without it there. The file
  must say so, or come from the first release, which could not.
- A tombstone: the cluster was decommissioned there. It counts for nothing if a cluster has the name here.
- A document of a kind that the API lets nobody create: it came with a seed, and must be able to move. Not by a merge.
- Patch keys that Flux does not take for what they patch: they were allowed once, and must be able to move. Not by a merge.
- Another `cluster_dns` for a cluster, or no cluster any more: only in the place of everything, and after a question.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Set
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import changes, documents, drafts, effects, errors, fleet, names, outcomes, plans, records, rules
from flux_resourceset.changes import Applied, Document, Entry, Forgone, Tombstone
from flux_resourceset.effects import ClusterEffect, Effect
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds.model import CLUSTERS, Kind, Kinds
from flux_resourceset.outcomes import Outcome
from flux_resourceset.overlay import Key

SHOWN_WARNINGS = 100  # of an import: more than anybody reads, and few enough for an answer
_SHOWN = 50  # of the problems of a file: a line that can still be read
_SHOWN_CLUSTERS = 20  # as many as fit on a screen beside the question
_SHOWN_USERS = 5  # of a definition that is not there: enough to begin looking


def is_empty(state: fleet.Fleet) -> bool:
    return state.revision == 0 and not state.tombstones and not any(state.documents.values())


# The file


class Export(msgspec.Struct):
    format: str
    revision: int
    documents: dict[str, list[dict[str, Any]]]
    tombstones: list[Tombstone]
    checksum: str
    deleted_by_force: list[Forgone] | None = None  # what references may lack; the first release did not tell
    history: list[Entry] | None = None
    applied: list[Applied] | None = None  # comes with the history

    @property
    def count(self) -> int:
        return sum(map(len, self.documents.values()))


def parsed(kinds: Kinds, data: Any, source: str) -> Export:
    """An export whose documents are good, each looked at alone."""
    try:
        export = msgspec.convert(data, Export)
    except msgspec.ValidationError as exc:
        raise errors.Invalid(f"{source}: {exc}") from exc
    for name in export.documents:
        if name not in kinds.by_name:
            raise errors.Invalid(f"{source}: {name!r} is no kind here; add its file to RESOURCES_DIR")
    export.documents = {kind.name: export.documents.get(kind.name, []) for kind in kinds}
    problems = list(_problems(kinds, export))
    if problems:
        raise errors.Invalid(f"{source}: {'; '.join(problems[:_SHOWN])}")
    return export


def _problems(kinds: Kinds, export: Export) -> Iterator[str]:
    for kind in kinds:
        for document in export.documents[kind.name]:
            for violation in documents.violations(kinds, kind, documents.completed(kind, document)):
                yield f'{kind.name} "{document.get("id", "")}": {violation.pointer} {violation.message}'
    for kind in kinds:
        yield from repeated(kind.name, "id", export.documents[kind.name])
    yield from repeated(CLUSTERS, "cluster_dns", export.documents[CLUSTERS])
    for tombstone in export.tombstones:
        if not names.is_dns_name(tombstone.dns):
            yield f"tombstones: {tombstone.dns!r} is no DNS name"
        elif not names.is_dns_label(tombstone.id):
            yield f"tombstones: {tombstone.id!r} is no id of a cluster"
    yield from _wrong_records(export)


def _wrong_records(export: Export) -> Iterator[str]:
    """Each stands beside a document of the file, once for a manager."""
    there = {(name, str(document.get("id"))) for name, of_kind in export.documents.items() for document in of_kind}
    seen: set[tuple[str, str, str]] = set()
    for each in export.applied or ():
        key = (each.kind, each.id, each.manager)
        if each.document is None or key[:2] not in there or key in seen or not records.is_manager(each.manager):
            yield f"what {each.manager!r} applied to {each.kind} {each.id!r} cannot stand beside the documents of the file"
        seen.add(key)


def repeated(name: str, field: str, documents_of_kind: list[Document]) -> list[str]:
    counted = collections.Counter(str(document.get(field)) for document in documents_of_kind)
    return [f'{name}: duplicate {field} "{value}"' for value, count in counted.items() if count > 1]


# Into a draft


def importing(
    export: Export, remedy: str, *, replace: bool = False, merge: bool = False, decommission_absent: bool = False
) -> Callable[[drafts.Draft], None]:
    """The work of an import: into an empty store, in the place of everything, or on top of what is there."""

    def work(draft: drafts.Draft) -> None:
        if not (replace or merge or is_empty(draft.base)):
            raise not_empty(remedy)
        draft.may_rename = replace
        draft.may_misname = not merge
        draft.decommissions = decommission_absent or not replace
        lost = _lost(export, draft, merge)
        draft.forgo(lost)
        for kind in draft.kinds if replace else ():
            wanted = {document["id"] for document in export.documents[kind.name]}
            for id in [id for id in draft.base.documents[kind.name] if id not in wanted]:
                draft.delete(kind, id, force=(kind.name, id) in lost)
        for kind in draft.kinds:
            for document in export.documents[kind.name]:
                _merge(draft, kind, document) if merge else draft.put(kind, document)
            if not merge and export.documents[kind.name] and "post" not in kind.methods["resource"]:
                draft.warn(f"{len(export.documents[kind.name])} {kind.name} come along, though the API lets nobody create them")
        _bury(draft, export)
        for each in export.applied or ():
            draft.applied.put((each.kind, each.id), each.manager, each.document or {})

    return work


def not_empty(remedy: str) -> errors.Conflict:
    return errors.Conflict(f"the store is not empty; {remedy}")


def _merge(draft: drafts.Draft, kind: Kind, document: Document) -> None:
    """As a POST or a PUT of the document would."""
    id = document["id"]
    before = draft.get(kind.name, id)
    level, method = ("resource", "post") if before is None else ("instance", "put")
    if method not in kind.methods[level] and documents.completed(kind, document) != before:
        word = "create" if before is None else "replace"
        refused = f"{kind.name} do not take {word}, neither here nor on their own routes"
        raise rules.invalid(kind.name, id, [Violation("", refused)])
    if before is None:
        draft.create(kind, document)
    else:
        draft.replace(kind, id, document, must="the file must")


def _lost(export: Export, draft: drafts.Draft, merge: bool) -> set[Key]:
    """The definitions that the clusters of the file refer to and that will not be there; each must have been deleted by force."""
    listed = {(each.kind, each.id) for each in export.deleted_by_force or ()} | draft.base.forgone
    there = {kind.name: {document["id"] for document in export.documents[kind.name]} for kind in draft.kinds}
    users: dict[Key, list[str]] = {}
    for cluster in export.documents[CLUSTERS]:
        violations = []
        for field, position, kind, id in _references(draft.kinds, cluster):
            if id in there[kind.name] or (merge and draft.get(kind.name, id) is not None):
                continue
            users.setdefault((kind.name, id), []).append(cluster["id"])
            if export.deleted_by_force is not None and (kind.name, id) not in listed:
                remedy = "create it first, or leave the reference out"
                why = f'{kind.singular} "{id}" not found, and deleted_by_force does not name it'
                violations.append(Violation(pointer([field, position, "id"]), f"{why}; {remedy}"))
        if violations:
            raise rules.invalid(CLUSTERS, cluster["id"], violations)
    for (name, id), clusters in users.items():
        shown = ", ".join(clusters[:_SHOWN_USERS]) + (" and more" if len(clusters) > _SHOWN_USERS else "")
        draft.warn(f"{rules.subject(name, id)} was deleted by force; {len(clusters)} cluster(s) go without it: {shown}")
    return set(users)


def _references(kinds: Kinds, cluster: Document) -> Iterator[tuple[str, int, Kind, str]]:
    for field, kind in kinds.by_field.items():
        for position, reference in enumerate(cluster.get(field, ())):
            yield field, position, kind, reference["id"]


def _bury(draft: drafts.Draft, export: Export) -> None:
    for tombstone in export.tombstones:
        draft.take_tombstone(tombstone.dns, tombstone.id)
    taken = {each.dns for each in draft.taken_tombstones()}
    living = {draft.require(CLUSTERS, id)["cluster_dns"]: id for id in draft.ids(CLUSTERS)}
    for tombstone in export.tombstones:
        name = f'{tombstone.dns} of cluster "{tombstone.id}"'
        if tombstone.dns in taken:
            draft.warn(f"{name} was decommissioned where the file was made; its answers are [] from now on")
        elif tombstone.dns in living:
            draft.warn(
                f'{name} was decommissioned where the file was made; cluster "{living[tombstone.dns]}" has the name and stays'
            )


# What it means

# worst first: it is what a person must not miss
_DECOMMISSIONED, _LOSES, _VANISHES, _CHANGES, _APPEARS = _SORTS = (
    "is decommissioned",
    "loses inputs",
    "vanishes",
    "gets other inputs",
    "appears",
)
_MEANING = {
    _DECOMMISSIONED: "its answers become [], and Flux deletes everything",
    _LOSES: "Flux deletes what they stood for",
    _VANISHES: "its answers become 404, and Flux keeps what is there",
}
_WORDS = {effects.REMOVED: "lost", effects.ADDED: "gained", effects.CHANGED: "changed"}


class Consequence(NamedTuple):
    """What an import means to one cluster, by its DNS name."""

    sort: str
    dns: str
    views: str = ""

    def __str__(self) -> str:
        return f"{self.dns} {self.sort}" + (f": {self.views}" if self.views else "")


class Names(NamedTuple):
    """DNS names of a fleet."""

    living: Set[str]
    buried: Set[str]


class Plan(NamedTuple):
    """What an import will do, to be agreed to before anything is written."""

    outcome: Outcome[None]
    consequences: list[Consequence]
    warnings: list[str]
    into_empty: bool  # then nothing is taken from anybody

    @property
    def id(self) -> str:
        return plans.identity(self.outcome.entry, self.outcome.effect)

    def lines(self) -> list[str]:
        """For a person to read: how many of each sort, and the first by name."""
        counts = collections.Counter(each.sort for each in self.consequences)
        lines = [
            f"{sort}: {counts[sort]}" + (f" ({_MEANING[sort]})" if sort in _MEANING else "") for sort in _SORTS if counts[sort]
        ]
        lines += [f"  {each}" for each in self.consequences[:_SHOWN_CLUSTERS]]
        if len(self.consequences) > _SHOWN_CLUSTERS:
            lines.append(f"  and {len(self.consequences) - _SHOWN_CLUSTERS} more")
        return lines or ["nothing changes for any cluster"]


def plan(state: fleet.Fleet, outcome: Outcome[None], after: Names) -> Plan:
    told = list(_consequences(state, outcome.effect, after))
    told.sort(key=lambda each: (_SORTS.index(each.sort), each.dns))
    return Plan(outcome, told, outcomes.first(outcome.warnings, SHOWN_WARNINGS), is_empty(state))


def names_after(state: fleet.Fleet, entry: Entry | None) -> Names:
    """The names once an entry was taken."""
    living, buried = set(state.cluster_ids), dict(state.tombstones)
    if entry is not None:
        of_clusters = [change for change in entry.changes if change.kind == CLUSTERS]
        living -= {change.before["cluster_dns"] for change in of_clusters if change.before is not None}
        living |= {change.after["cluster_dns"] for change in of_clusters if change.after is not None}
        changes.bury(buried, entry)
    return Names(living, buried.keys())


def _consequences(state: fleet.Fleet, effect: Effect, after: Names) -> Iterator[Consequence]:
    living, buried = state.cluster_ids.keys(), state.tombstones.keys()
    yield from (Consequence(_APPEARS, dns) for dns in after.living - living)
    yield from (Consequence(_DECOMMISSIONED, dns) for dns in after.buried - buried)
    yield from (Consequence(_VANISHES, dns) for dns in (living | buried) - after.living - after.buried)
    for cluster in effect.clusters:
        stored = state.get(CLUSTERS, cluster.id)
        if stored is not None and cluster.after is not None and stored.body["cluster_dns"] in after.living:
            sort = _LOSES if cluster.count(effects.REMOVED) else _CHANGES
            yield Consequence(sort, stored.body["cluster_dns"], _told(cluster))


def _told(cluster: ClusterEffect) -> str:
    counts: dict[str, collections.Counter[str]] = {}
    for item in cluster.changes:
        counts.setdefault(item.view, collections.Counter())[item.change] += 1
    return "; ".join(
        f"{view} {', '.join(f'{of_view[change]} {word}' for change, word in _WORDS.items() if of_view[change])}"
        for view, of_view in counts.items()
    )
