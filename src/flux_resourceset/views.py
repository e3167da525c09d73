"""What documents were written for, held against the kinds of today: no view may lose its data because a kind file changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flux_resourceset.changes import View
from flux_resourceset.kinds.model import Kinds


def served(kinds: Kinds) -> tuple[View, ...]:
    """The views that these kinds make."""
    return tuple(View(kind.endpoint, kind.name, kind.cluster_field) for kind in kinds.referenced)


def remembered(known: Iterable[View], kinds: Kinds) -> tuple[View, ...]:
    """What a store is to remember once it is served with these kinds; views of kinds that are away stay."""
    of_today = served(kinds)
    fields = {view.field: view.kind for view in of_today}
    kept = [view for view in known if fields.get(view.field, view.kind) == view.kind]  # else its field is another kind's now
    by_endpoint = {view.endpoint: view for view in (*kept, *of_today)}
    return tuple(by_endpoint[endpoint] for endpoint in sorted(by_endpoint))


def losses(known: Iterable[View], kinds: Kinds, users_of: Callable[[str], int]) -> dict[str, str]:
    """The views of today that would lose what clusters refer to in a field, by endpoint, each with what happened to it."""
    reasons: dict[str, str] = {}
    for view in known:
        kinds_there = (kinds.by_endpoint.get(view.endpoint), kinds.by_field.get(view.field))
        others = [kind for kind in kinds_there if kind and (kind.name, kind.cluster_field) != (view.kind, view.field)]
        users = users_of(view.field) if others else 0
        for kind in others if users else ():  # else nobody gets anything through it
            reasons.setdefault(
                kind.endpoint,
                f"the view {kind.endpoint} is of kind {kind.name} in the field {kind.cluster_field}, but {users} cluster(s) "
                f"refer to {view.kind} in the field {view.field}, and would lose them; give the old kind file back, "
                f"or drop them with flux-resourceset retire-kind {view.kind}",
            )
    return reasons
