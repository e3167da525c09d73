"""Giving up a kind: its documents, and what clusters say of them, go in one transaction, whether it is still known or not."""

from __future__ import annotations

from typing import NamedTuple

from flux_resourceset import errors
from flux_resourceset.changes import Change, Document, Origin, Snapshot, View
from flux_resourceset.guards import NO_CONSENT, Consent
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Outcome

_SHOWN = 20  # clusters that are named: enough to recognise them, few enough to read


class Plan(NamedTuple):
    kind: str
    documents: int
    views: tuple[View, ...]
    inputs: dict[str, int]  # how many a cluster loses, by its id

    def lines(self) -> list[str]:
        """The plan in words."""
        through = ", ".join(sorted({view.endpoint for view in self.views})) or "no view"
        lines = [
            f"{self.kind}: {self.documents} document(s) are deleted.",
            f"{len(self.inputs)} cluster(s) lose {sum(self.inputs.values())} input(s) of {through}: where this view is served, "
            "Flux removes there what they stood for.",
        ]
        lines += [f"  {id} loses {count}" for id, count in sorted(self.inputs.items())[:_SHOWN]]
        if len(self.inputs) > _SHOWN:
            lines.append(f"  and {len(self.inputs) - _SHOWN} more")
        return lines


def planned(ledger: Ledger, kind: str) -> Plan:
    """What giving up a kind would take away. Grows with documents."""
    return _planned(ledger.follower.snapshot(), kind)


def _planned(state: Snapshot, kind: str) -> Plan:
    known = tuple(view for view in state.views if view.kind == kind)
    documents = len(state.documents.get(kind, {}))
    if kind == CLUSTERS:
        raise errors.StartupError(f"{CLUSTERS} cannot be retired; delete them one by one")
    if not documents and not known:
        raise errors.StartupError(f"the store knows no kind {kind!r}; it knows {', '.join(sorted(_kinds(state))) or 'none'}")
    clusters = {id: stored.body for id, stored in state.documents.get(CLUSTERS, {}).items()}
    lost = {id: len(_lost(cluster, known)) for id, cluster in clusters.items()}
    return Plan(kind, documents, known, {id: count for id, count in lost.items() if count})


def _kinds(state: Snapshot) -> set[str]:
    return {*state.documents, *(view.kind for view in state.views)} - {CLUSTERS}


def _lost(cluster: Document, known: tuple[View, ...]) -> list[str]:
    """The ids that a cluster refers to in the fields of the views."""
    return [reference["id"] for field in sorted({view.field for view in known}) for reference in cluster.get(field) or ()]


def retire(ledger: Ledger, plan: Plan, consent: Consent = NO_CONSENT) -> Outcome[None]:
    """Carry out the plan; refuses when the store says another one by now."""

    def build(state: Snapshot) -> tuple[tuple[Change, ...], tuple[View, ...]]:
        if _planned(state, plan.kind) != plan:
            raise errors.StartupError("the fleet changed meanwhile, and nothing was done; look at the new plan")
        deleted = [Change(plan.kind, id, "delete", old.body, None) for id, old in state.documents.get(plan.kind, {}).items()]
        clusters = state.documents.get(CLUSTERS, {})
        updated = [Change(CLUSTERS, id, "update", clusters[id].body, _without(clusters[id].body, plan)) for id in plan.inputs]
        return (*updated, *deleted), tuple(view for view in state.views if view.kind != plan.kind)

    return ledger.record(build, Origin(actor="retire-kind", reason=f"{plan.kind} retired"), consent)


def _without(cluster: Document, plan: Plan) -> Document:
    fields = {view.field for view in plan.views}
    gone = set(_lost(cluster, plan.views))
    # patches go with what they patch, unless something else of the same id is still there
    others = {
        reference["id"]
        for name, references in cluster.items()
        if name not in fields and isinstance(references, list)
        for reference in references
        if isinstance(reference, dict) and "id" in reference
    }
    patches = {id: values for id, values in cluster["patches"].items() if id not in gone - others}
    return {**cluster, **{field: [] for field in fields if field in cluster}, "patches": patches}
