"""The merge: a cluster and the definitions it refers to become the inputs that Flux gets. Pure, but for what it remembers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from flux_resourceset.kinds import Kind

Document = Mapping[str, Any]
Input = dict[str, Any]

MAX_PARTS = 4096  # to remember: a fleet has hundreds, and a kilobyte each is little

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="deterministic").encode


class Part(NamedTuple):
    """An input but for its cluster: the same for all clusters that say the same of a definition."""

    definition: Document
    body: bytes  # JSON without its last brace
    hash: Any  # of its content, whatever the order


Parts = dict[tuple[str, bytes, tuple[str, ...]], Part]


def answer(kind: Kind, cluster: Document, definitions: Mapping[str, Document], parts: Parts | None = None) -> tuple[bytes, int]:
    """What Flux gets for a cluster and a kind, and how many inputs that are; `parts` remembers what clusters share.

    One input per reference, in the cluster's own order; a reference without a definition is skipped.
    """
    parts = {} if parts is None else parts
    name, dns, environment = cluster["cluster_name"], cluster["cluster_dns"], cluster["environment"]
    block = b',"cluster":' + _encode({"name": name, "dns": dns, "environment": environment})
    references = [ref for ref in cluster.get(kind.cluster_field or "", ()) if ref["id"] in definitions]
    running = {ref["id"] for ref in references if ref.get("enabled", True)}
    found = []
    for reference in references:
        part = _part(kind, reference, definitions[reference["id"]], cluster, running, parts)
        digest = part.hash.copy()
        digest.update(block)
        # names the content, so that a cluster can tell what it applied; 128 bits are plenty for that
        found.append(b'%b%b,"digest":"%b"}' % (part.body, block, digest.hexdigest()[:32].encode()))
    return b'{"inputs":[%b]}' % b",".join(found), len(found)


def _part(kind: Kind, reference: Document, definition: Document, cluster: Document, running: set[str], parts: Parts) -> Part:
    # a HelmRelease that depends on one that is not there waits for ever, so templates use this
    needed = definition.get(kind.dependencies.field, ()) if kind.dependencies else ()
    wait_for = tuple(id for id in needed if id in running)
    patches = cluster["patches"].get(reference["id"]) if kind.patches else None
    if patches:
        return _made(kind, reference, definition, patches, wait_for)  # hardly any other cluster has the same
    key = kind.name, _encode(reference), wait_for
    part = parts.get(key)
    if part is None or part.definition is not definition:
        if len(parts) >= MAX_PARTS:
            parts.clear()
        part = parts[key] = _made(kind, reference, definition, {}, wait_for)
    return part


def _made(kind: Kind, reference: Document, definition: Document, patches: Document, wait_for: tuple[str, ...]) -> Part:
    # the definition, then the reference: an override that is null or absent leaves the definition's value
    result = {**definition, **{name: value for name, value in reference.items() if value is not None}}
    if kind.patches:
        result["patches"] = patches
    if kind.dependencies:
        result["wait_for"] = wait_for
    for group, names in kind.nest.items():
        result[group] = {name: result.pop(name) for name in names if name in result}
    body = _encode(result)
    if b"null" in body:  # rare, or just a word in a string
        result = without_nulls(result)
        body = _encode(result)
    return Part(definition, body[:-1], hashlib.sha256(_canonical(result)))


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
