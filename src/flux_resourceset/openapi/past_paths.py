"""The paths of what was, and of going back to it."""

from __future__ import annotations

from typing import Any

from flux_resourceset import errors
from flux_resourceset.kinds.model import CLUSTERS, Kind, Kinds
from flux_resourceset.openapi import building
from flux_resourceset.openapi.building import READ, WRITE, Item, Refusals, parameter, query, statement
from flux_resourceset.openapi.schemas import Samples
from flux_resourceset.openapi.words import ref

HISTORY = "History"  # capitals: no kind has this name
TAGS = {HISTORY: "What was, how it came about, and the way back."}

_PAST: Refusals = (*READ, errors.NotFound, errors.Compacted, errors.Invalid)
_SIGNATURE: dict[str, Any] = {
    "revision": 12,
    "time": "2026-01-31T12:00:00.000000Z",
    "actor": "write",
    "on_behalf_of": "alice",
    "reason": "ticket 42",
}
_FIELD = {"path": "/labels/zone", "before": "edge", "after": "core"}


def of_kinds(kinds: Kinds, samples: Samples) -> dict[str, Item]:
    paths: dict[str, Item] = {}
    for kind in kinds:
        if "get" in kind.methods["instance"]:
            paths[f"/{kind.name}/{{id}}/history"] = _history(kind)
        if {"post", "put", "patch"} & {*kind.methods["resource"], *kind.methods["instance"]}:
            paths[f"/{kind.name}/{{id}}/revert"] = _document_revert(kind, samples)
    paths |= _inputs(kinds, samples) | {"/diff": {"get": _diff(kinds)}} | _reverts()
    return paths


def _history(kind: Kind) -> Item:
    touch = {**_SIGNATURE, "operation": "update", "fields": [_FIELD]}
    before = query("before", "Below this revision, for paging.", {"type": "integer", "minimum": 1, "maximum": 10**15 - 1})
    get = building.operation(
        f"{kind.name}.history", HISTORY, f"The changes of a {kind.singular}",
        {200: building.answer("Newest first.", {"type": "array", "items": ref("Touch")}, [touch])},
        (*READ, errors.NotFound), [before, parameter("ChangesLimit"), parameter("XRequestId")],
        description="Also of a document that was deleted. Changes that were compacted are not in it.",
    )  # fmt: skip
    return {"parameters": [building.id_path(kind)], "get": get}


def _inputs(kinds: Kinds, samples: Samples) -> dict[str, Item]:
    kind = kinds.referenced[0]
    shown = (samples.of(kind) or {}).get("id", "example")
    cluster = building.id_path(kinds.clusters)
    view = building.path("view", "The view.", {"type": "string", "enum": list(kinds.by_endpoint)}, kind.endpoint)
    input = building.path("input", "Id of the input.", {"type": "string"}, shown)
    inputs = {"anyOf": [ref(f"{kind.singular}-input") for kind in kinds.referenced]}
    answer = {"type": "object", "required": ["inputs"], "properties": {"inputs": {"type": "array", "items": inputs}}}
    origin = {"path": "/labels/zone", "value": "core", "source": "definition", "kind": kind.name, "id": shown}
    told = [{**origin, "field": "/labels/zone", **_SIGNATURE}, {"path": "/digest", "value": 32 * "0", "source": "computed"}]
    prefix = f"/{CLUSTERS}/{{id}}/inputs/{{view}}"
    return {
        prefix: {"parameters": [cluster, view], "get": building.operation(
            "inputs.get", HISTORY, "Byte for byte what Flux gets for a cluster, or got",
            {200: building.answer("The answer.", answer, None, ("X-Revision",))},
            _PAST, [parameter("At"), parameter("XRequestId")],
            description="Also of a cluster that is decommissioned, at a time when it was there.",
        )},
        f"{prefix}/{{input}}/provenance": {"parameters": [cluster, view, input], "get": building.operation(
            "inputs.provenance", HISTORY, "Why an input is as it is",
            {200: building.answer("Value by value.", {"type": "array", "items": ref("Origin")}, told, ("X-Revision",))},
            _PAST, [parameter("At"), parameter("XRequestId")],
            description="`default`: a value that is the schema's own and came with the document, or the reference, when that was "
            "made. All fields of the change are null if it was compacted.",
        )},
    }  # fmt: skip


def _diff(kinds: Kinds) -> building.Operation:
    point = ref("RevisionOrTime")
    parameters = [
        {**query("from", "Where to begin: a revision, or a time.", point, 1), "required": True},
        query("to", "Where to end; now, if left out.", point),
        query("kind", "Only documents of this kind; answers are told of all.", {"type": "string", "enum": list(kinds.by_name)}),
        query("cluster", "Only the answers of this cluster; documents are told all.", {"type": "string"}),
        query("full", "All groups with all their clusters.", {"type": "boolean", "default": False}),
    ]
    return building.operation(
        "diff.get", HISTORY, "What is different between two revisions, in documents and in answers",
        {200: building.answer("What came and went in between is not told.", ref("Diff"))},
        (*READ, errors.Compacted, errors.Invalid), [*parameters, parameter("XRequestId")],
    )  # fmt: skip


# The way back


def _document_revert(kind: Kind, samples: Samples) -> Item:
    done = building.answer("The document as it is now.", ref(kind.singular), samples.of(kind), ("ETag", "X-Warning"))
    post = building.operation(
        f"{kind.name}.revert", HISTORY, f"Make a {kind.singular} what it was",
        {200: done}, (*WRITE, errors.NotFound, errors.Compacted, errors.Conflict), statement("IfMatch"),
        building.body(ref("Return"), {"to": 12}),
        "One that was deleted comes back.",
    )  # fmt: skip
    return {"parameters": [building.id_path(kind)], "post": post}


def _reverts() -> dict[str, Item]:
    revision = building.path("revision", "Revision of the fleet.", {"type": "integer", "minimum": 1}, 12)
    force = query("force", "Undo also what was changed again since.", {"type": "boolean", "default": False})
    done = building.answer("As of a batch.", ref("BatchAnswer"))
    refusals = (*WRITE, errors.NotFound, errors.Compacted, errors.Invalid, errors.Conflict)
    return {
        "/changes/{revision}/revert": {"parameters": [revision], "post": building.operation(
            "changes.revert", HISTORY, "Undo a change", {200: done},
            (*refusals, errors.RequestTimeout, errors.BodyTooLarge, errors.UnsupportedMediaType), [force, *statement()],
            description="Field by field; what others changed since stays. Nothing left to do: no new revision.",
        )},
        "/revert": {"post": building.operation(
            "revert.create", HISTORY, "Make the whole fleet what it was", {200: done}, refusals, statement(),
            building.body(ref("FleetReturn"), {"to": 12}),
            "One transaction, which obeys every rule of a write. Freezes stay as they are.",
        )},
    }  # fmt: skip
