"""The effect of a change: the inputs in which the answers to Flux differ before and after it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from flux_resourceset import differences, merge
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Change, Document
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds.model import CLUSTERS, Referenced
from flux_resourceset.merge import Assignment, Input
from flux_resourceset.overlay import Key, Overlay

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="deterministic").encode

ADDED: Literal["added"] = "added"
REMOVED: Literal["removed"] = "removed"
CHANGED: Literal["changed"] = "changed"


class InputChange(NamedTuple):
    """What becomes of one input of one view. `enabled` from true to false is removed, for Flux uninstalls it; and back, added."""

    view: str
    input: str
    change: Literal["added", "removed", "changed"]
    fields: tuple[dict[str, Any], ...]  # of a changed one
    shown: bytes  # the above, encoded: equal for whatever looks equal

    def described(self) -> dict[str, Any]:
        about = {"view": self.view, "input": self.input, "change": self.change}
        return {**about, "fields": list(self.fields)} if self.change == CHANGED else about


class ClusterEffect(NamedTuple):
    """What becomes of the answers of one cluster."""

    id: str
    before: str | None  # its environment; None: it was not there
    after: str | None  # the same; None: it is gone
    changes: tuple[InputChange, ...]
    content: bytes  # a digest of the whole inputs that change, before and after

    @property
    def environment(self) -> str:
        return self.after or self.before or ""

    def count(self, change: str) -> int:
        return sum(item.change == change for item in self.changes)


class Effect(NamedTuple):
    """The clusters whose answers differ, by id. The order of inputs, digests and the block about the cluster do not count."""

    clusters: tuple[ClusterEffect, ...] = ()

    def count(self, change: str) -> int:
        """Of inputs, over all clusters."""
        return sum(cluster.count(change) for cluster in self.clusters)


def of(base: Fleet, made: Sequence[Change]) -> Effect:
    """The effect of changes on a fleet; those of kinds that are not known here have none."""
    before, after = Overlay(base, Budget()), Overlay(base, Budget())
    known = [change for change in made if change.kind in base.kinds.by_name]
    for change in known:
        after.put(base.kinds.by_name[change.kind], change.id, change.after)
    return between(before, after, ((change.kind, change.id) for change in known))


def between(before: Overlay, after: Overlay, changed: Iterable[Key]) -> Effect:
    """The effect of the documents that changed, on top of one fleet. Grows with the clusters that these reach."""
    comparison = _Comparison(before, after)
    touched = _touched(before, after, changed)
    clusters = (comparison.of_cluster(id, touched[id]) for id in sorted(touched))
    return Effect(tuple(cluster for cluster in clusters if cluster.changes))


# Which inputs of which views of a cluster have to be looked at; None: all of them
_Touched = dict[str, Container[str] | None]


def _touched(before: Overlay, after: Overlay, changed: Iterable[Key]) -> dict[str, _Touched]:
    kinds = before.kinds
    touched: dict[str, dict[str, set[str] | None]] = {}
    for name, id in changed:
        kind = kinds.referenced_by_name.get(name)
        if name == CLUSTERS:
            touched[id] = {each.name: None for each in kinds.referenced}
        elif kind is not None:
            users = before.users(kind, id) | after.users(kind, id)
            before.budget.spend(len(users))
            comes_or_goes = (before.get(name, id) is None) != (after.get(name, id) is None)  # others may wait for it
            for user in users:
                views = touched.setdefault(user, {})
                if comes_or_goes:
                    views[name] = None
                elif (inputs := views.setdefault(name, set())) is not None:
                    inputs.add(id)
    return {id: dict(views) for id, views in touched.items()}


class _Said(NamedTuple):
    """What makes an input beside its definition, encoded: two are equal when these are."""

    reference: bytes = b""
    wait_for: bytes = b""
    patches: bytes = b""


class _Comparison:
    """Of answers before and after; what clusters have in common is compared once."""

    def __init__(self, before: Overlay, after: Overlay) -> None:
        self._before, self._after = before, after
        self._defined_anew = before.touched | after.touched  # kinds of which documents changed
        self._definitions: dict[str, tuple[dict[str, Document], dict[str, Document]]] = {}  # by kind
        self._digests: dict[tuple[str, str], bytes] = {}  # of a definition before and after, by kind and id
        self._compared: dict[tuple[str | bytes | bool, ...], InputChange | None] = {}

    def of_cluster(self, id: str, touched: _Touched) -> ClusterEffect:
        old, new = self._before.get(CLUSTERS, id), self._after.get(CLUSTERS, id)
        found: list[InputChange] = []
        content = hashlib.sha256()
        for name, inputs in touched.items():
            self._before.budget.spend()
            kind = self._before.kinds.referenced_by_name[name]
            olds, news = self._sides(kind)
            if old is None or new is None or old["cluster_dns"] == new["cluster_dns"]:
                only = self._only(kind, old, new) if inputs is None and old and new else inputs
                found += self._changes(kind, _inputs(kind, old, olds, only), _inputs(kind, new, news, only), content)
            else:  # answers belong to id and name together
                found += self._changes(kind, _inputs(kind, old, olds, inputs), {}, content)
                found += self._changes(kind, {}, _inputs(kind, new, news, inputs), content)
        found.sort(key=lambda item: item.shown)
        environments = (old["environment"] if old else None, new["environment"] if new else None)
        return ClusterEffect(id, *environments, tuple(found), content.digest())

    def _sides(self, kind: Referenced) -> tuple[dict[str, Document], dict[str, Document]]:
        """The definitions of a kind, before and after."""
        sides = self._definitions.get(kind.name)
        if sides is None:
            sides = self._definitions[kind.name] = self._before.documents(kind.name), self._after.documents(kind.name)
        return sides

    def _only(self, kind: Referenced, old: Document, new: Document) -> Container[str] | None:
        """The inputs of a changed cluster that can differ, where that is easily told; None: all of them."""
        field = kind.cluster_field
        if kind.name in self._defined_anew or not _are_same(old[field], new[field]):
            return None
        if not kind.patches:
            return ()
        before, after = old["patches"], new["patches"]
        return {id for id in before.keys() | after.keys() if not _are_same(before.get(id), after.get(id), _canonical)}

    def _changes(
        self, kind: Referenced, old: dict[str, Assignment], new: dict[str, Assignment], content: hashlib._Hash
    ) -> Iterator[InputChange]:
        for id in sorted(old.keys() | new.keys()):
            before, after = old.get(id), new.get(id)
            was = _said(before)
            will = was if _say_the_same(before, after) else _said(after)
            if was == will and before and after and before.definition is after.definition:
                continue
            change = self._change(kind, id, (before, was), (after, will))
            if change is not None:
                content.update(b"\0".join((change.shown, *was, *will, self._digest(kind, id))))
                yield change

    def _change(
        self, kind: Referenced, id: str, before: tuple[Assignment | None, _Said], after: tuple[Assignment | None, _Said]
    ) -> InputChange | None:
        (old, was), (new, will) = before, after
        key: tuple[str | bytes | bool, ...] = kind.name, id, old is None  # that it comes or goes is all there is to say
        if old is not None and new is not None:
            key = kind.name, id, was.reference, was.wait_for, will.reference, will.wait_for
            if was.patches != will.patches:  # they differ from cluster to cluster, and those that stay make no difference here
                old, new = _without_common_patches(old, new)
                key = *key, _encode(old.patches), _encode(new.patches)
        if key not in self._compared:
            self._before.budget.spend()
            self._compared[key] = _compared(kind, id, old, new)
        return self._compared[key]

    def _digest(self, kind: Referenced, id: str) -> bytes:
        digest = self._digests.get((kind.name, id))
        if digest is None:
            olds, news = self._sides(kind)
            digest = hashlib.sha256(_canonical((olds.get(id), news.get(id)))).digest()
            self._digests[kind.name, id] = digest
        return digest


def _inputs(
    kind: Referenced, cluster: Document | None, definitions: dict[str, Document], only: Container[str] | None
) -> dict[str, Assignment]:
    if cluster is None or only == ():
        return {}
    return {item.reference["id"]: item for item in merge.assignments(kind, cluster, definitions, only)}


def _are_same(one: Any, other: Any, encode: Callable[[Any], bytes] = _encode) -> bool:
    return one is other or encode(one) == encode(other)


def _say_the_same(one: Assignment | None, other: Assignment | None) -> bool:
    """Whether that is seen at a glance, as it is where only the definition changes."""
    if one is None or other is None:
        return one is other
    return one.reference is other.reference and one.patches is other.patches and one.wait_for == other.wait_for


def _without_common_patches(one: Assignment, other: Assignment) -> tuple[Assignment, Assignment]:
    old, new = one.patches, other.patches
    common = {name for name in old.keys() & new.keys() if _are_same(old[name], new[name], _canonical)}
    if not common:
        return one, other
    olds, news = ({name: value for name, value in each.items() if name not in common} for each in (old, new))
    return one._replace(patches=olds), other._replace(patches=news)


def _said(item: Assignment | None) -> _Said:
    if item is None:
        return _NOTHING_SAID
    return _Said(_canonical(item.reference), _canonical(item.wait_for), _canonical(item.patches))


_NOTHING_SAID = _Said()


def _compared(kind: Referenced, id: str, before: Assignment | None, after: Assignment | None) -> InputChange | None:
    old = None if before is None else merge.part(kind, before)
    new = None if after is None else merge.part(kind, after)
    change: Literal["added", "removed", "changed"] = CHANGED
    fields: tuple[dict[str, Any], ...] = ()
    if old is None or (new is not None and _runs(new) and not _runs(old)):
        change = ADDED
    elif new is None or (_runs(old) and not _runs(new)):
        change = REMOVED
    else:
        fields = tuple(differences.fields(differences.of_inputs(old, new)))
        if not fields:
            return None
    return InputChange(kind.endpoint, id, change, fields, _canonical((kind.endpoint, id, change, fields)))


def _runs(content: Input) -> bool:
    return content.get("enabled", True) is not False
