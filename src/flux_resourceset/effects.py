"""What a change of the whole fleet means to its clusters: who appears, vanishes, is decommissioned, loses inputs. Pure."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from flux_resourceset import answers
from flux_resourceset.changes import Document
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds.model import CLUSTERS, Kinds, Referenced

_NAMED = 20  # of the clusters: as many as fit on a screen beside the question

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


class State(NamedTuple):
    """What answers are made from."""

    clusters: Mapping[str, Document]  # by DNS name
    definitions: Mapping[str, Mapping[str, Document]]  # by kind and id
    tombstones: Set[str]  # DNS names

    def of(self, kind: Referenced) -> Mapping[str, Document]:
        return self.definitions.get(kind.name, {})


class Difference(NamedTuple):
    """Between two answers of one view, in inputs."""

    endpoint: str
    lost: int
    gained: int
    changed: int

    def __str__(self) -> str:
        counts = {"lost": self.lost, "gained": self.gained, "changed": self.changed}
        return f"{self.endpoint} {', '.join(f'{count} {word}' for word, count in counts.items() if count)}"


class Effect(NamedTuple):
    sort: str
    dns: str
    views: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        return f"{self.dns} {self.sort}" + (f": {'; '.join(map(str, self.views))}" if self.views else "")


def state_of(fleet: Fleet) -> State:
    bodies = {kind: {id: stored.body for id, stored in of_kind.items()} for kind, of_kind in fleet.documents.items()}
    return state(bodies, fleet.tombstones.keys())


def state(bodies: Mapping[str, Mapping[str, Document]], tombstones: Set[str]) -> State:
    clusters = {cluster["cluster_dns"]: cluster for cluster in bodies.get(CLUSTERS, {}).values()}
    return State(clusters, bodies, tombstones - clusters.keys())


def between(kinds: Kinds, before: State, after: State) -> list[Effect]:
    """What changes for whom, the worst first. Grows with documents."""
    effects = [*_comings_and_goings(before, after), *_other_answers(kinds, before, after)]
    return sorted(effects, key=lambda effect: (_SORTS.index(effect.sort), effect.dns))


def _comings_and_goings(before: State, after: State) -> Iterator[Effect]:
    known = before.clusters.keys() | before.tombstones
    yield from (Effect(_APPEARS, dns) for dns in after.clusters.keys() - before.clusters.keys())
    yield from (Effect(_DECOMMISSIONED, dns) for dns in after.tombstones - before.tombstones)
    yield from (Effect(_VANISHES, dns) for dns in known - after.clusters.keys() - after.tombstones)


def _other_answers(kinds: Kinds, before: State, after: State) -> Iterator[Effect]:
    touched = [kind for kind in kinds.referenced if before.of(kind) != after.of(kind)]
    old_encoder, new_encoder = answers.Encoder(), answers.Encoder()
    for dns in before.clusters.keys() & after.clusters.keys():
        same = before.clusters[dns] == after.clusters[dns]
        views: list[Difference] = []
        for kind in touched if same else kinds.referenced:
            old, new = _digests(old_encoder, kind, before, dns), _digests(new_encoder, kind, after, dns)
            if old != new:
                views += _differences(kind.endpoint, old, new)
        if views:
            yield Effect(_LOSES if any(view.lost for view in views) else _CHANGES, dns, tuple(views))


def _digests(encoder: answers.Encoder, kind: Referenced, state: State, dns: str) -> dict[str, str]:
    return encoder.digests(kind, state.clusters[dns], state.of(kind))


def _differences(endpoint: str, old: dict[str, str], new: dict[str, str]) -> Iterator[Difference]:
    changed = sum(1 for id in old.keys() & new.keys() if old[id] != new[id])
    difference = Difference(endpoint, len(old.keys() - new.keys()), len(new.keys() - old.keys()), changed)
    if any(difference[1:]):  # else they only stand in another order
        yield difference


def described(effects: Iterable[Effect]) -> list[str]:
    """For a person to read: how many of each sort, and the first by name."""
    effects = list(effects)
    counts = collections.Counter(effect.sort for effect in effects)
    lines = [f"{sort}: {counts[sort]}" + (f" ({_MEANING[sort]})" if sort in _MEANING else "") for sort in _SORTS if counts[sort]]
    lines += [f"  {effect}" for effect in effects[:_NAMED]]
    if len(effects) > _NAMED:
        lines.append(f"  and {len(effects) - _NAMED} more")
    return lines or ["nothing changes for any cluster"]
