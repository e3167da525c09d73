"""Plans: what a write would do to which cluster, as data that people agree to before it is done. Pure."""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import effects, errors
from flux_resourceset.changes import Entry
from flux_resourceset.effects import ClusterEffect, Effect

SHOWN_GROUPS = 100  # unless all are asked for: more than anybody reads
SHOWN_CLUSTERS = 20  # of a group, likewise

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Group(NamedTuple):
    """Clusters whose answers change in the same way."""

    clusters: Sequence[ClusterEffect]

    def described(self, full: bool) -> dict[str, Any]:
        ids = [cluster.id for cluster in self.clusters]
        environments = collections.Counter(cluster.environment for cluster in self.clusters)
        return {
            "count": len(ids),
            "clusters": ids if full else ids[:SHOWN_CLUSTERS],
            "environments": dict(sorted(environments.items())),
            "changes": [change.described() for change in self.clusters[0].changes],
        }


def identity(entry: Entry | None, effect: Effect) -> str:
    """The same for whatever changes the same documents in the same way, with the same effect; however it was asked for."""
    digest = hashlib.sha256()
    for change in sorted(entry.changes, key=lambda change: (change.kind, change.id)) if entry else ():
        before = change.before if change.after is not None else None  # what goes, goes whatever it was
        digest.update(_canonical((change.kind, change.id, change.operation, before, change.after)))
    if entry is not None:
        digest.update(_canonical((sorted(entry.decommissioned, key=str), sorted(entry.vanished), sorted(entry.forgone, key=str))))
    for cluster in effect.clusters:
        digest.update(cluster.id.encode() + cluster.content)
    return digest.hexdigest()[:32]  # 128 bits are plenty to tell two plans apart


def check(wanted: str | None, entry: Entry | None, effect: Effect) -> None:
    """Refuse to do anything else than what was agreed to."""
    if wanted is None:
        return
    plan = identity(entry, effect)
    if plan != wanted:
        raise errors.PlanChanged(
            f"the plan is {plan} by now, not {wanted}, because something changed meanwhile; nothing was written: look at "
            "the new plan and agree to it",
            extra={"plan": plan, "summary": summary(entry, effect)},
        )


def summary(entry: Entry | None, effect: Effect) -> dict[str, int]:
    return {"documents": len(entry.changes) if entry else 0, **counts(effect)}


def counts(effect: Effect) -> dict[str, int]:
    """How many clusters get other answers, and how many inputs come, go and change."""
    return {
        "clusters": len(effect.clusters),
        "added": effect.count(effects.ADDED),
        "removed": effect.count(effects.REMOVED),
        "changed": effect.count(effects.CHANGED),
    }


def grouped(effect: Effect) -> list[Group]:
    """The largest first, then by the first id."""
    by_changes: dict[tuple[bytes, ...], list[ClusterEffect]] = {}
    for cluster in effect.clusters:
        by_changes.setdefault(tuple(item.shown for item in cluster.changes), []).append(cluster)
    return sorted((Group(clusters) for clusters in by_changes.values()), key=lambda group: (-len(group.clusters), group[0][0].id))


def described(groups: list[Group], full: bool = False, cluster: str | None = None) -> Iterator[dict[str, Any]]:
    """Groups as JSON; of one cluster only, if it is named."""
    chosen: Iterable[Group] = groups if full else groups[:SHOWN_GROUPS]
    if cluster is not None:
        found = (each for group in groups for each in group.clusters if each.id == cluster)
        chosen = [Group([each]) for each in found]
    for group in chosen:
        yield group.described(full)
