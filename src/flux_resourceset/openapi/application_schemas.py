"""The schemas of what managers apply: the operations of a batch, what is kept of others, and records in exports."""

from __future__ import annotations

from collections.abc import Iterator

from flux_resourceset.kinds.model import Kinds, Schema
from flux_resourceset.openapi.conversion import nullable
from flux_resourceset.openapi.words import array, members, ref, text

_MANAGER = text("Who applies: each keeps what it applied last.", pattern="^[a-z0-9.-]{1,64}$", example="ci")
_ACTOR = text("Name of the token of the change that last set it; null if that change was compacted.", nullable=True)
_FOR = text("For whom that change was made, if it was said (X-Actor); otherwise it is left out.", example="alice")
_SINCE: Schema = {"type": "integer", "minimum": 1, "nullable": True, "description": "The revision of that change."}

KEPT = array(ref("Kept"), "Of an apply: fields that others changed, which it names as before, and which stay as they are.")
CONFLICT: dict[str, Schema] = {
    "yours": {"nullable": True, "description": "Of an apply: what it says; null if it no longer names it."},
    "theirs": {"nullable": True, "description": "Of an apply: what is there; null if nothing is."},
    "actor": {**_ACTOR, "description": "Of an apply: name of the token of that change; null if it was compacted."},
    "on_behalf_of": {**_FOR, "description": "Of an apply: for whom that change was made, if it was said (X-Actor)."},
}
DECOMMISSIONED: dict[str, Schema] = {
    "decommissioned": array(
        members(
            {
                "id": text("Id of the cluster that is applied."),
                "cluster_dns": text("DNS name that was decommissioned."),
                "was": text("Id of the cluster that had it."),
                "revision": {"type": "integer", "minimum": 1, "description": "Which change decommissioned it."},
            }
        ),
        "Clusters that come back only with revive; the first 10,000.",
    ),
    "decommissioned_total": {"type": "integer", "minimum": 1, "description": "How many clusters these are."},
}
APPLIED: Schema = {**array(ref("Applied"), "What managers applied last; comes with history."), "nullable": True}


def schemas() -> dict[str, Schema]:
    path = text("JSON pointer to the field, with references by id.", example="/platform_components/podinfo/oci_tag")
    record = {
        "kind": text("Kind of the document."),
        "id": text("Id of the document."),
        "manager": _MANAGER,
        "document": {"type": "object", "description": "What it applied last, as it was sent."},
    }
    kept = {"path": path, "actor": _ACTOR, "revision": _SINCE}
    return {"Kept": members({**kept, "on_behalf_of": _FOR}, list(kept)), "Applied": members(record)}


def operations(kinds: Kinds) -> Iterator[Schema]:
    yield _apply(kinds)
    yield _prune(kinds)


def _apply(kinds: Kinds) -> Schema:
    required: dict[str, Schema] = {
        **_basic("apply", "Merge what a manager names into what is there.", kinds),
        "id": text("Id of the document."),
        "manager": _MANAGER,
        "document": {"type": "object", "description": "What it names; partial where the document exists."},
    }
    optional: dict[str, Schema] = {
        "force": {"type": "boolean", "default": False, "description": "Take yours where others changed the same field."},
        "revive": {"type": "boolean", "default": False, "description": "Bring a cluster back that was decommissioned."},
    }
    return members(required | optional, list(required))


def _prune(kinds: Kinds) -> Schema:
    ids = array({"type": "string"}, "Ids of the documents that stay.")
    required: dict[str, Schema] = {
        **_basic("prune", "Delete what a manager applied and names no more, unless another one applied it, too.", kinds),
        "manager": _MANAGER,
        "keep": {**ids, "maxItems": 10_000},
    }
    optional: dict[str, Schema] = {
        "selector": nullable(text("Only clusters that match this label selector.", example="zone=edge")),
        "environment": nullable(text("Only clusters of this environment.", enum=list(kinds.environments))),
    }
    return members(required | optional, list(required))


def _basic(word: str, description: str, kinds: Kinds) -> dict[str, Schema]:
    return {
        "op": {"type": "string", "enum": [word], "description": description},
        "kind": {"type": "string", "enum": list(kinds.by_name), "description": "The kind."},
    }
