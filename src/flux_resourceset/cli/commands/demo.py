"""The shortcuts that the book's demo uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import batches, inspection, per_cluster_verbs
from flux_resourceset.cli.known_kinds import CLUSTERS

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind
    from flux_resourceset.cli.session import Session


def add_namespace(session: Session) -> int:
    """The same as `namespace create … --cluster`."""
    from flux_resourceset.cli.commands import kind_verbs

    values = session.values
    values.set("id", values.required("namespace"))
    values.set("cluster", [values.required("cluster")])
    session.begin(session.command._replace(kind="namespaces"), values)
    return kind_verbs.create(session)


def patch_component(session: Session) -> int:
    kind = _patched_kind(session)
    cluster, id = session.values.required("cluster"), session.values.required("component")
    values = per_cluster_verbs.patched(session.values)
    operation = {"op": "patch-values", "kind": kind.name, "id": id, "values": values, "clusters": [cluster]}
    (result,) = batches.submit(session, [operation])
    before, after = (result[name]["patches"].get(id, {}) for name in ("before", "after"))
    lines = [f"{key}: {before.get(key, '(none)')} → {after.get(key, '(none)')}" for key in dict.fromkeys([*before, *after])]
    patched = {"cluster": cluster, kind.singular: id, "before": before, "after": after}
    session.data(patched, *lines, name=f"{CLUSTERS}/{cluster}")
    session.say(batches.summary([result], False))
    return failures.OK


def _patched_kind(session: Session) -> Kind:
    return next(kind for kind in session.kinds if kind.group == "component")


def flux_namespaces(session: Session) -> int:
    session.values.set("view", "namespaces")
    return inspection.inputs(session)
