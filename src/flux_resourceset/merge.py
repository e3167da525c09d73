"""The merge: a cluster and the definitions it refers to become the inputs that Flux gets. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from flux_resourceset.kinds import Kind

Document = Mapping[str, Any]
Input = dict[str, Any]

_encode = msgspec.json.Encoder(order="deterministic").encode


def inputs(kind: Kind, cluster: Document, definitions: Mapping[str, Document]) -> list[Input]:
    """One input per reference, in the cluster's own order; a reference without a definition is skipped."""
    block = {
        "name": cluster["cluster_name"],
        "dns": cluster["cluster_dns"],
        "environment": cluster["environment"],
    }
    references = [ref for ref in cluster.get(kind.cluster_field or "", ()) if ref["id"] in definitions]
    running = {ref["id"] for ref in references if ref.get("enabled", True)}
    return [_input(kind, ref, definitions[ref["id"]], cluster, block, running) for ref in references]


def _input(kind: Kind, reference: Document, definition: Document, cluster: Document, block: Input, running: set[str]) -> Input:
    # the definition, then the reference: an override that is null or absent leaves the definition's value
    result = {**definition, **(_without_nulls(reference) if None in reference.values() else reference)}
    if kind.patches:
        result["patches"] = cluster["patches"].get(reference["id"], {})
    if kind.dependencies:
        # a HelmRelease that depends on one that is not there waits for ever, so templates use this
        result["wait_for"] = [id for id in definition.get(kind.dependencies.field, ()) if id in running]
    for group, names in kind.nest.items():
        result[group] = {name: result.pop(name) for name in names if name in result}
    result["cluster"] = block
    if None in result.values():
        result = _without_nulls(result)
    result["digest"] = digest(result)
    return result


def _without_nulls(fields: Document) -> Input:
    return {name: value for name, value in fields.items() if value is not None}


def digest(value: Input) -> str:
    """Names an input's content, so that a cluster can tell what it applied; 128 bits are plenty for that."""
    return hashlib.sha256(_encode(value)).hexdigest()[:32]


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
