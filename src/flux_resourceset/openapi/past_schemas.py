"""The schemas of what was: histories, differences between two revisions, and where values come from."""

from __future__ import annotations

from typing import Any

from flux_resourceset.kinds.model import Schema


def _object(properties: dict[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def _text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def _number(description: str, **more: Any) -> Schema:
    return {"type": "integer", "minimum": 0, "description": description, **more}


def _array(name: str, description: str) -> Schema:
    return {"type": "array", "description": description, "items": {"$ref": f"#/components/schemas/{name}"}}


_OPERATION: Schema = {"type": "string", "enum": ["create", "update", "delete"], "description": "What was done."}
_WORDS: Schema = {"type": "string"}


def _signature(nullable: bool = False) -> dict[str, Schema]:
    """Who made a change."""
    known: Schema = {"nullable": True} if nullable else {}
    return {
        "revision": _number("Revision of the change.", example=12, **known),
        "time": _text("When, in UTC.", format="date-time", example="2026-01-31T12:00:00.000000Z", **known),
        "actor": _text("Name of the token.", example="write", **known),
        "on_behalf_of": _text("X-Actor of the request.", nullable=True, example="alice"),
        "reason": _text("X-Reason of the request.", nullable=True, example="ticket 42"),
    }


def schemas() -> dict[str, Schema]:
    return {"Field": _field(), "Touch": _touch(), "Origin": _origin(), "Diff": _diff(), **_revert()}


def _field() -> Schema:
    sides: dict[str, Schema] = {
        "before": {"description": "What stood there; left out where nothing did.", "nullable": True},
        "after": {"description": "What stands there then; left out where nothing does.", "nullable": True},
    }
    path = _text(
        "JSON pointer to what changed; references of a cluster are named by their ids.",
        example="/platform_components/podinfo/oci_tag",
    )
    return _object({"path": path, **sides}, ("before", "after"))


def _touch() -> Schema:
    fields = _array("Field", "What it changed; a document that is not there has no fields.")
    return _object({**_signature(), "operation": _OPERATION, "fields": fields})


def _origin() -> Schema:
    sources = ["definition", "reference", "patch", "cluster", "default", "computed"]
    told: dict[str, Schema] = {
        "path": _text("JSON pointer to the value in the input.", example="/source/oci_tag"),
        "value": {"description": "A scalar, an array, or an empty object.", "nullable": True},
        "source": {"type": "string", "enum": sources, "description": "What says so; the rest is there for the first four."},
    }
    whence = {
        "kind": _text("Kind of the document that says so."),
        "id": _text("Its id."),
        "field": _text("JSON pointer to where it says so.", example="/platform_components/podinfo/oci_tag"),
        **_signature(nullable=True),
    }
    return _object({**told, **whence}, tuple(whence))


def _diff() -> Schema:
    document = {
        "kind": _text("Kind of the document."),
        "id": _text("Id of the document."),
        "operation": _OPERATION,
        "fields": _array("Field", "What is different."),
    }
    return _object(
        {
            "from": _number("The earlier revision."),
            "to": _number("The later revision."),
            "summary": _object({name: _number(f"How many: {name}.") for name in _COUNTED}),
            "groups": {"type": "array", "description": "Clusters whose answers differ in the same way.", "items": _group()},
            "groups_total": _number("How many groups there are."),
            "documents": {"type": "array", "description": "Documents that differ.", "items": _object(document)},
        }
    )


_COUNTED = ("documents", "clusters", "added", "removed", "changed")


def _group() -> Schema:
    change = {
        "view": _text("The view."),
        "input": _text("Id of the input."),
        "change": {"type": "string", "enum": ["added", "removed", "changed"], "description": "What became of it."},
        "fields": _array("Field", "What changed in it."),
    }
    return _object(
        {
            "count": _number("How many clusters."),
            "clusters": {"type": "array", "description": "Their ids; the first 20.", "items": _WORDS},
            "environments": {"type": "object", "description": "How many of each.", "additionalProperties": {"type": "integer"}},
            "changes": {"type": "array", "description": "What changes.", "items": _object(change, ("fields",))},
        }
    )


def _revert() -> dict[str, Schema]:
    to: Schema = {
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "format": "date-time"}],
        "description": "A revision, or a time.",
        "example": 12,
    }
    narrowed: dict[str, Schema] = {
        "kind": _text("Only documents of this kind.", nullable=True),
        "environment": _text("Only clusters that are or were in this environment.", nullable=True),
        "selector": _text("Only clusters whose labels match, or matched.", nullable=True),
    }
    return {"Return": _object({"to": to}), "FleetReturn": _object({"to": to, **narrowed}, tuple(narrowed))}
