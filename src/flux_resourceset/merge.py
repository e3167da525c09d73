"""The merge: a cluster and the definitions it refers to become the inputs that Flux gets. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flux_resourceset.kinds import Kind

Document = Mapping[str, Any]
Input = dict[str, Any]


def inputs(kind: Kind, cluster: Document, definitions: Mapping[str, Document]) -> list[Input]:
    """One input per reference, in the cluster's own order; a reference without a definition is skipped."""
    block = {
        "name": cluster["cluster_name"],
        "dns": cluster["cluster_dns"],
        "environment": cluster["environment"],
    }
    return [
        _input(kind, reference, definitions[reference["id"]], cluster, block)
        for reference in cluster.get(kind.cluster_field or "", ())
        if reference["id"] in definitions
    ]


def missing(kind: Kind, cluster: Document, definitions: Mapping[str, Document]) -> list[str]:
    """The ids that a cluster refers to and that do not exist."""
    return [ref["id"] for ref in cluster.get(kind.cluster_field or "", ()) if ref["id"] not in definitions]


def _input(kind: Kind, reference: Document, definition: Document, cluster: Document, block: Input) -> Input:
    # the definition, then the reference: an override that is null or absent leaves the definition's value
    result = {name: value for name, value in definition.items() if value is not None}
    result.update((name, value) for name, value in reference.items() if value is not None)
    if kind.patches:
        result["patches"] = cluster["patches"].get(reference["id"], {})
    for group, names in kind.nest.items():
        result[group] = {name: result.pop(name) for name in names if name in result}
    result["cluster"] = block
    return result


def fleet_input(cluster: Document) -> Input:
    """A cluster as the fleet list shows it to provisioners."""
    return {name: cluster[name] for name in ("id", "cluster_name", "cluster_dns", "environment")}


def without_nulls(value: Any) -> Any:
    """A null vanishes from the provider's status and then breaks the template, so none is ever sent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
