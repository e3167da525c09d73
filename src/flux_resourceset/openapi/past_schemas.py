"""The schemas of what was: histories, differences between two revisions, and where values come from."""

from __future__ import annotations

from typing import Any

from flux_resourceset.kinds.model import Schema
from flux_resourceset.openapi.words import array, members, ref, text


def _number(description: str, **more: Any) -> Schema:
    return {"type": "integer", "minimum": 0, "description": description, **more}


_OPERATION: Schema = {"type": "string", "enum": ["create", "update", "delete"], "description": "What was done."}


def signature(nullable: bool = False) -> dict[str, Schema]:
    """Who made a change."""
    known: Schema = {"nullable": True} if nullable else {}
    return {
        "revision": _number("Revision of the change.", example=12, **known),
        "time": text("When, in UTC.", format="date-time", example="2026-01-31T12:00:00.000000Z", **known),
        "actor": text("Name of the token.", example="write", **known),
        "on_behalf_of": text("X-Actor of the request.", nullable=True, example="alice"),
        "reason": text("X-Reason of the request.", nullable=True, example="ticket 42"),
    }


def schemas() -> dict[str, Schema]:
    return {"Touch": _touch(), "Origin": _origin(), "Diff": _diff(), **_revert()}


def _touch() -> Schema:
    fields = array(ref("FieldChange"), "What it changed; a document that is not there has no fields.")
    return members({**signature(), "operation": _OPERATION, "fields": fields})


def _origin() -> Schema:
    sources = ["definition", "reference", "patch", "cluster", "default", "computed"]
    told: dict[str, Schema] = {
        "path": text("JSON pointer to the value in the input.", example="/source/oci_tag"),
        "value": {"description": "A scalar, an array, or an empty object.", "nullable": True},
        "source": {"type": "string", "enum": sources, "description": "What says so; the rest is there for the first four."},
    }
    whence = {
        "kind": text("Kind of the document that says so."),
        "id": text("Its id."),
        "field": text("JSON pointer to where it says so.", example="/platform_components/podinfo/oci_tag"),
        **signature(nullable=True),
    }
    return members({**told, **whence}, list(told))


def _diff() -> Schema:
    document = {
        "kind": text("Kind of the document."),
        "id": text("Id of the document."),
        "operation": _OPERATION,
        "fields": array(ref("FieldChange"), "What is different."),
    }
    return members(
        {
            "from": _number("The earlier revision."),
            "to": _number("The later revision."),
            "summary": ref("PlanSummary"),
            "groups": array(ref("PlanGroup"), "Clusters whose answers differ in the same way; as of a plan."),
            "groups_total": _number("How many groups there are."),
            "documents": array(members(document), "Documents that differ."),
        }
    )


def _revert() -> dict[str, Schema]:
    to: Schema = {
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "format": "date-time"}],
        "description": "A revision, or a time.",
        "example": 12,
    }
    narrowed: dict[str, Schema] = {
        "kind": text("Only documents of this kind.", nullable=True),
        "environment": text("Only clusters that are or were in this environment.", nullable=True),
        "selector": text("Only clusters whose labels match, or matched.", nullable=True),
    }
    return {"Return": members({"to": to}), "FleetReturn": members({"to": to, **narrowed}, ["to"])}
