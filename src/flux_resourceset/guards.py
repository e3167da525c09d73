"""What holds up a write that is allowed: many removals, many clusters, a freeze; each passes if it is said to be meant. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from flux_resourceset import changes, effects, errors, selectors
from flux_resourceset.changes import Document, Entry
from flux_resourceset.effects import Effect
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds.model import CLUSTERS, FREEZES

CONFIRM_REMOVALS = "X-Confirm-Removals"
CONFIRM_CLUSTERS = "X-Confirm-Clusters"
OVERRIDE_FREEZE = "X-Override-Freeze"

_SHOWN = 20  # clusters or inputs: enough to recognise what is meant


class Limits(NamedTuple):
    """Where the guards stand; 0 switches a number off."""

    removal_clusters: int = 5
    clusters: int = 0
    protected: frozenset[str] = frozenset()  # environments


class Consent(NamedTuple):
    """What whoever writes says about the effect: the plan that was agreed to, and what is known and meant."""

    plan: str | None = None
    removals: int | None = None
    clusters: int | None = None
    freezes: frozenset[str] = frozenset()


NO_CONSENT = Consent()
DEFAULT_LIMITS = Limits()


class Removals(NamedTuple):
    """Inputs that are removed, for Flux deletes what they stand for."""

    inputs: int
    clusters: int
    protected: int  # of these clusters, how many are in a protected environment
    first: list[dict[str, str]]
    tripped: bool

    def confirmation(self) -> dict[str, str]:
        return {CONFIRM_REMOVALS: str(self.inputs)}

    def described(self) -> dict[str, Any]:
        numbers = {"removals": self.inputs, "clusters": self.clusters, "protected": self.protected}
        return {"guard": "removals", "tripped": self.tripped, **numbers, "first": self.first, "confirm": self.confirmation()}


class Spread(NamedTuple):
    """Clusters that get other answers."""

    clusters: int
    tripped: bool

    def confirmation(self) -> dict[str, str]:
        return {CONFIRM_CLUSTERS: str(self.clusters)}

    def described(self) -> dict[str, Any]:
        return {"guard": "clusters", "tripped": self.tripped, "clusters": self.clusters, "confirm": self.confirmation()}


class Freeze(NamedTuple):
    """One that is in force, and the clusters that a write would change in spite of it."""

    document: Document
    clusters: list[str]

    @property
    def id(self) -> str:
        return str(self.document["id"])

    def about(self) -> dict[str, Any]:
        return {"id": self.id, "reason": self.document["reason"], "until": self.document.get("until")}

    def described(self) -> dict[str, Any]:
        about = {"guard": "freeze", "tripped": True, "freeze": self.id, **self.about()}
        shown = {"clusters": self.clusters[:_SHOWN], "count": len(self.clusters)}
        return {**about, **shown, "confirm": {OVERRIDE_FREEZE: self.id}}


class Guards(NamedTuple):
    """What the guards say of one write."""

    removals: Removals
    spread: Spread
    freezes: tuple[Freeze, ...]

    def described(self) -> list[dict[str, Any]]:
        return [self.removals.described(), self.spread.described(), *(freeze.described() for freeze in self.freezes)]

    def check(self, consent: Consent) -> None:
        """Refuse what nobody has said to be meant. Freezes first: no number lifts them."""
        for refusal in (*_frozen(self.freezes, consent), *_unconfirmed(self.removals, self.spread, consent)):
            raise refusal


def guards(limits: Limits, base: Fleet, entry: Entry | None, effect: Effect, now: datetime.datetime) -> Guards:
    """Counted from the effect, like everything that is said of it."""
    return Guards(_removals(limits, effect), _spread(limits, effect), tuple(_freezes(base, entry, effect, now)))


def _removals(limits: Limits, effect: Effect) -> Removals:
    losing = [cluster for cluster in effect.clusters if cluster.count(effects.REMOVED)]
    protected = sum(not limits.protected.isdisjoint({cluster.before, cluster.after}) for cluster in losing)
    removed = (
        {"cluster": cluster.id, "view": item.view, "input": item.input}
        for cluster in losing
        for item in cluster.changes
        if item.change == effects.REMOVED
    )
    first = [inputs for inputs, _ in zip(removed, range(_SHOWN), strict=False)]
    many = 0 < limits.removal_clusters < len(losing)
    return Removals(effect.count(effects.REMOVED), len(losing), protected, first, many or protected > 0)


def _spread(limits: Limits, effect: Effect) -> Spread:
    return Spread(len(effect.clusters), 0 < limits.clusters < len(effect.clusters))


def _unconfirmed(removals: Removals, spread: Spread, consent: Consent) -> Iterator[errors.Refusal]:
    reasons: list[str] = []
    confirm: dict[str, str] = {}
    if removals.tripped and consent.removals != removals.inputs:
        where = f", {removals.protected} of them protected" if removals.protected else ""
        reasons.append(f"removes {removals.inputs} input(s) from {removals.clusters} cluster(s){where}")
        confirm |= removals.confirmation()
    if spread.tripped and consent.clusters != spread.clusters:
        reasons.append(f"changes the answers of {spread.clusters} cluster(s)")
        confirm |= spread.confirmation()
    if reasons:
        said = " and ".join(f"{header}: {value}" for header, value in confirm.items())
        yield errors.ConfirmationRequired(
            f"this {' and '.join(reasons)}; nothing was written. If it is meant, send {said}",
            extra={
                "removals": removals.inputs,
                "clusters": removals.clusters if removals.tripped else spread.clusters,
                "first": removals.first,
                "confirm": confirm,
            },
        )


# Freezes


def _frozen(freezes: Sequence[Freeze], consent: Consent) -> Iterator[errors.Refusal]:
    standing = [freeze for freeze in freezes if freeze.id not in consent.freezes]
    if standing:
        clusters = sorted({id for freeze in standing for id in freeze.clusters})
        why = "; ".join(f"{freeze.id} ({freeze.document['reason']})" for freeze in standing)
        ids = ",".join(freeze.id for freeze in freezes)
        yield errors.Frozen(
            f"{len(clusters)} cluster(s) are frozen by {why}; nothing was written. Wait, or send {OVERRIDE_FREEZE}: {ids} "
            "with an X-Reason",
            extra={
                "freezes": [freeze.about() for freeze in standing],
                "clusters": clusters[:_SHOWN],
                "count": len(clusters),
                "confirm": {OVERRIDE_FREEZE: ids},
            },
        )


def _freezes(base: Fleet, entry: Entry | None, effect: Effect, now: datetime.datetime) -> Iterator[Freeze]:
    """Those in force before the write that it would hit: by other answers, a decommission, or a way out of the freeze."""
    in_force = [stored.body for _, stored in sorted(base.documents.get(FREEZES, {}).items()) if _is_in_force(stored.body, now)]
    changed = {change.id: change for change in entry.changes if change.kind == CLUSTERS} if entry and in_force else {}
    affected = {cluster.id for cluster in effect.clusters if cluster.before is not None}
    candidates = sorted(affected | {id for id, change in changed.items() if change.before is not None}) if in_force else []
    for freeze in in_force:
        matches = _matcher(freeze)
        hit = []
        for id in candidates:
            before = base.documents[CLUSTERS][id].body
            after = changed[id].after if id in changed else before
            if matches(before) and (id in affected or after is None or not matches(after)):
                hit.append(id)
        if hit:
            yield Freeze(freeze, hit)


def _is_in_force(freeze: Document, now: datetime.datetime) -> bool:
    until = changes.moment(freeze.get("until") or "")
    return until is None or until > now


def _matcher(freeze: Document) -> Callable[[Document], bool]:
    environment, selector = freeze.get("environment"), selectors.parse(freeze.get("selector") or "")
    return lambda cluster: environment in (None, cluster["environment"]) and selector(cluster["labels"])
