"""What documents were written for, held against the kinds of today: no view may lose its data because a kind file changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flux_resourceset.changes import View
from flux_resourceset.kinds import Kinds

Document = Mapping[str, Any]


def served(kinds: Kinds) -> tuple[View, ...]:
    """The views that these kinds make."""
    return tuple(View(kind.endpoint, kind.name, kind.cluster_field or "") for kind in kinds.referenced)


def remembered(known: Iterable[View], kinds: Kinds) -> tuple[View, ...]:
    """What a store is to remember once it is served with these kinds; views of kinds that are away stay."""
    by_endpoint = {view.endpoint: view for view in (*known, *served(kinds))}
    return tuple(by_endpoint[endpoint] for endpoint in sorted(by_endpoint))


def losses(known: Iterable[View], kinds: Kinds, clusters: Sequence[Document]) -> dict[str, str]:
    """The views of today that would lose what clusters refer to, by endpoint, each with what happened to it."""
    found: dict[str, str] = {}
    for view in known:
        users = sum(bool(cluster.get(view.field)) for cluster in clusters)
        if not users:
            continue  # nobody gets anything through it
        for kind in (kinds.by_endpoint.get(view.endpoint), kinds.by_field.get(view.field)):
            if kind is not None and (kind.name, kind.cluster_field) != (view.kind, view.field):
                found.setdefault(
                    kind.endpoint,
                    f"the view {kind.endpoint} is of kind {kind.name} in the field {kind.cluster_field}, but {users} cluster(s) "
                    f"refer to {view.kind} in the field {view.field}, and would lose them; give the old kind file back, "
                    f"or drop them with flux-resourceset retire-kind {view.kind}",
                )
    return found
