"""The paths and schemas of what runs where: definitions by the clusters that use them, and clusters that are no more."""

from __future__ import annotations

from flux_resourceset import errors
from flux_resourceset.kinds.model import Kinds, Referenced, Schema
from flux_resourceset.openapi import building
from flux_resourceset.openapi.building import READ, Item, parameter, query
from flux_resourceset.openapi.past_schemas import signature
from flux_resourceset.openapi.schemas import Samples
from flux_resourceset.openapi.words import array, members, ref, text

WHERE = "What runs where"  # capitals: no kind has this name
TAGS = {WHERE: "Which clusters use a definition, with which values; and clusters that were decommissioned."}

_LISTED = ("X-Total-Count", "X-Revision")


def of_kinds(kinds: Kinds, samples: Samples) -> dict[str, Item]:
    shown = next((kind for kind in kinds.referenced if samples.of(kind)), kinds.referenced[0])
    kind = building.path(
        "kind", "A kind that clusters refer to.", {"type": "string", "enum": [each.name for each in kinds.referenced]}, shown.name
    )
    id = building.path("id", "Id of the definition.", {"type": "string"}, (samples.of(shown) or {}).get("id", "example"))
    return {
        "/usage/{kind}": {"parameters": [kind], "get": _usage(kinds, shown, samples, "usage.list", "of a kind")},
        "/usage/{kind}/{id}": {"parameters": [kind, id], "get": _usage(kinds, shown, samples, "usage.get", "of one definition")},
        "/tombstones": {"get": _tombstones()},
    }


def _usage(kinds: Kinds, shown: Referenced, samples: Samples, name: str, what: str) -> building.Operation:
    environment = query("environment", "Only clusters of this environment.", {"type": "string", "enum": list(kinds.environments)})
    return building.operation(
        name, WHERE, f"What runs where, {what}",
        {200: building.answer("By id, then by cluster.", array(ref("Usage"), "Rows."), _row(shown, samples), _LISTED)},
        (*READ, errors.NotFound, errors.Invalid),
        [environment, *map(parameter, ("Selector", "Limit", "Offset", "XRequestId"))],
        description="A row for each definition and cluster that refers to it, with the values that Flux gets.",
    )  # fmt: skip


def _row(kind: Referenced, samples: Samples) -> list[Schema] | None:
    document = samples.of(kind)
    if document is None:
        return None
    values = {name: document.get(name) for name in kind.overrides}
    fixed = {"enabled": True, "overridden": [], "patches": 0}
    return [{"id": document["id"], "cluster": "demo-cluster-01", "environment": "dev", **values, **fixed}]


def _tombstones() -> building.Operation:
    row = {
        "id": "demo-cluster-01", "cluster_dns": "demo-cluster-01.k8s.example.com", "revision": 12,
        "time": "2026-01-31T12:00:00.000000Z", "actor": "write", "on_behalf_of": "alice", "reason": "ticket 42",
    }  # fmt: skip
    return building.operation(
        "tombstones.list", WHERE, "Clusters that were decommissioned",
        {200: building.answer("By DNS name.", array(ref("DecommissionedCluster"), "Rows."), [row], _LISTED)},
        READ, [*map(parameter, ("Limit", "Offset", "XRequestId"))],
        description="Flux gets empty lists for their DNS names. Who did it, when and why is null where the log was compacted; "
        "of one that came along with an import it is told of the import.",
    )  # fmt: skip


def schemas() -> dict[str, Schema]:
    row = members(
        {
            "id": text("Id of the definition."),
            "cluster": text("Id of the cluster."),
            "environment": text("Environment of the cluster."),
            "enabled": {"type": "boolean", "description": "Whether it runs; true where the kind has no such field."},
            "overridden": array({"type": "string"}, "Fields whose value the reference sets."),
            "patches": {"type": "integer", "minimum": 0, "description": "How many keys the cluster patches."},
        }
    )
    row |= {
        "description": "Beside what every row has, the fields that a reference may override, with the values at work.",
        "additionalProperties": True,
    }
    told = signature(nullable=True)
    told["revision"] = {"type": "integer", "minimum": 0, "description": "Revision that decommissioned it.", "example": 12}
    cluster = members({"id": text("Id of the cluster."), "cluster_dns": text("Its DNS name."), **told})
    return {"Usage": row, "DecommissionedCluster": cluster}
