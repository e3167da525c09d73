"""What is allowed and can hardly be meant: what a write makes documents say, and clusters run, that is told as a warning."""

from __future__ import annotations

import collections
import re
from collections.abc import Collection, Container, Iterable, Iterator

from flux_resourceset import rules
from flux_resourceset.changes import Change, Document
from flux_resourceset.kinds import helm_paths
from flux_resourceset.kinds.model import CLUSTERS, Kind, Referenced
from flux_resourceset.overlay import Overlay

_RANGE = re.compile(r"[<>=~^*|, ]|(?:^|\.)[xX](?:\.|$)|^v?\d+(?:\.\d+)?$")  # how Helm reads a version that leaves a choice


def new_warnings(view: Overlay, change: Change, may_misname: bool) -> Iterator[rules.Warning]:
    """What a change makes a document say that can hardly be meant; patch keys only if they were not refused."""
    after = list(_warnings(view, change, change.after, change.before, may_misname))
    before = set(_warnings(view, change, change.before, change.after, may_misname)) if after else set()
    return (warning for warning in after if warning not in before)


def _warnings(
    view: Overlay, change: Change, document: Document | None, other: Document | None, may_misname: bool
) -> Iterator[rules.Warning]:
    """But for those of a cluster that the same objects in its other state make as well."""
    about = rules.subject(change.kind, change.id)
    if document is None:
        return
    if change.kind != CLUSTERS:
        kind = view.kinds.by_name[change.kind]
        yield from _loose_versions(kind, about, document, document)
        yield from _unlike_versions(kind, about, document)
        return
    for kind in view.kinds.referenced:
        fields = kind.versions.fields if kind.versions else ()
        same = other is not None and other[kind.cluster_field] is document[kind.cluster_field]
        for reference in document[kind.cluster_field] if fields and not same else ():
            if reference.keys().isdisjoint(fields):
                continue
            definition = view.get(kind.name, reference["id"]) or {}
            yield from _loose_versions(kind, f'{about}: "{reference["id"]}"', {**definition, **reference}, reference)
    for wrong in rules.misnamed(view.kinds.patched, view.get, document, other) if may_misname else ():
        yield rules.Warning(f"{about}: {wrong.pointer} {wrong.message}")
    for id, values in document["patches"].items():
        if other is None or other["patches"].get(id) is not values:
            yield from (rules.Warning(f'{about}: patches of "{id}": {text}') for text in helm_paths.surprises(values))


def _versions(kind: Kind, document: Document) -> dict[str, str]:
    """The versions that a document pins."""
    hint = kind.versions
    if hint is None or any(document.get(name) != value for name, value in hint.where.items()):
        return {}
    pinned = {name: document.get(name) for name in hint.fields}
    return {name: version for name, version in pinned.items() if isinstance(version, str) and version != hint.unpinned}


def _loose_versions(kind: Kind, about: str, document: Document, given: Document) -> Iterator[rules.Warning]:
    for name, version in _versions(kind, document).items():
        if name in given and _RANGE.search(version):
            yield rules.Warning(f"{about}: {name} {version} leaves Helm a choice; pin an exact version")


def _unlike_versions(kind: Kind, about: str, document: Document) -> Iterator[rules.Warning]:
    pinned = _versions(kind, document)
    if len({version.removeprefix("v") for version in pinned.values()}) > 1:  # Helm reads v1.0.0 and 1.0.0 alike
        said = " and ".join(f"{name} {version}" for name, version in pinned.items())
        yield rules.Warning(f"{about}: {said} disagree; {next(iter(pinned))} counts")


def new_risks(view: Overlay, change: Change, protected: Collection[str]) -> Iterator[rules.Warning]:
    """What a change makes clusters run that may surprise: something without what it depends on, or in no exact version."""
    kinds = _risky(view, change, protected)
    after = list(_risks(view, kinds, change, change.after, protected))
    before = set(_risks(Overlay(view.base, view.budget), kinds, change, change.before, protected)) if after else set()
    return (warning for warning in after if warning not in before)


def _risky(view: Overlay, change: Change, protected: Collection[str]) -> list[Referenced]:
    """The kinds of which a change can make clusters run something in another way."""
    kinds = [kind for kind in view.kinds.referenced if kind.dependencies or kind.versions]
    old, new = change.before, change.after
    if change.kind != CLUSTERS:
        kinds = [kind for kind in kinds if kind.name == change.kind]
        if not old or not new or CLUSTERS in view.touched:
            return kinds
        return [kind for kind in kinds if any(old.get(name) != new.get(name) for name in _risky_fields(kind, protected))]
    if not old or not new or old["environment"] != new["environment"]:
        return kinds
    return [kind for kind in kinds if kind.name in view.touched or old[kind.cluster_field] is not new[kind.cluster_field]]


def _risky_fields(kind: Kind, protected: Collection[str]) -> list[str]:
    """The fields of a definition that decide."""
    needed = [kind.dependencies.field] if kind.dependencies else []
    return [*needed, *kind.versions.fields, *kind.versions.where] if kind.versions and protected else needed


def _risks(
    view: Overlay, kinds: Iterable[Referenced], change: Change, document: Document | None, protected: Container[str]
) -> Iterator[rules.Warning]:
    if document is None:
        return
    for kind in kinds:
        if change.kind == CLUSTERS:
            yield from _risks_of_references(view, kind, rules.subject(change.kind, change.id), document, protected)
            continue
        counts: collections.Counter[str] = collections.Counter()
        for user in view.users(kind, change.id):
            view.budget.spend()
            found = _risks_of_references(view, kind, "", view.get(CLUSTERS, user) or {}, protected, change.id)
            counts.update(warning.message for warning in found)
        yield from (rules.Warning(f"{count} cluster(s){text}") for text, count in sorted(counts.items()))


def _risks_of_references(
    view: Overlay, kind: Referenced, about: str, cluster: Document, protected: Container[str], only: str | None = None
) -> Iterator[rules.Warning]:
    references = cluster[kind.cluster_field]
    assigned = {reference["id"] for reference in references}
    for reference in references:
        if only in (None, reference["id"]):
            yield from _risks_of_reference(view, kind, about, cluster, reference, assigned, protected)


def _risks_of_reference(
    view: Overlay,
    kind: Referenced,
    about: str,
    cluster: Document,
    reference: Document,
    assigned: Container[str],
    protected: Container[str],
) -> Iterator[rules.Warning]:
    id = reference["id"]
    definition = view.get(kind.name, id)
    if definition is None:
        return
    if kind.dependencies:
        for needed in definition.get(kind.dependencies.field, ()):
            if needed not in assigned:
                yield rules.Warning(f'{about}: {kind.singular} "{id}" is assigned without "{needed}", which it depends on')
    if kind.versions and cluster["environment"] in protected:
        merged = {**definition, **{name: value for name, value in reference.items() if value is not None}}
        version = _version_at_work(kind, merged)
        if version is None or _RANGE.search(version):
            said = kind.versions.unpinned if version is None else version
            yield rules.Warning(
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
