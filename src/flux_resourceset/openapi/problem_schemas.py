"""The schemas of refusals: what every problem has, and what some have besides."""

from __future__ import annotations

from collections.abc import Iterator

from flux_resourceset import errors
from flux_resourceset.kinds.model import Schema
from flux_resourceset.openapi import application_schemas
from flux_resourceset.openapi.words import REVISION, array, free, members, ref, text


def refusals() -> Iterator[type[errors.Refusal]]:
    """Every refusal there is, the general before the particular."""
    families = list(errors.Refusal.__subclasses__())
    for refusal in families:
        yield refusal
        families += refusal.__subclasses__()


def problems() -> dict[str, Schema]:
    violation = members(
        {
            "pointer": text("JSON pointer to what is wrong; empty for the whole body.", example="/cluster_name"),
            "message": text("What is wrong with it.", example="is required"),
        }
    )
    with_errors = {"allOf": [ref("Problem"), {"type": "object", "required": ["errors"]}]}
    return {"Conflict": _conflict(), "Violation": violation, "Problem": _problem(), "InvalidProblem": with_errors}


def _problem() -> Schema:
    problem = members(
        {
            "type": {"type": "string", "format": "uri", "description": "The code as a URN."},
            "title": text("What the code means."),
            "status": {"type": "integer", "description": "The HTTP status."},
            "detail": text("What happened here, and what to do about it."),
            "code": {
                "type": "string",
                "enum": list(dict.fromkeys(refusal.code for refusal in refusals())),
                "description": "Stable; for programs.",
            },
            "request_id": text("The X-Request-Id of the request, as the log of the server has it."),
        }
    )
    problem["properties"] |= _BESIDES
    del problem["additionalProperties"]  # RFC 9457 lets problems grow
    return problem


# What only some of them have.
_BESIDES: dict[str, Schema] = {
    "errors": {**array(ref("Violation"), "Everything that is wrong with a document; the first 100."), "maxItems": 100},
    "errors_total": {
        "type": "integer",
        "minimum": 101,
        "description": "How many there are, when more than 100 were found.",
    },
    "kind": text("The kind of the document that it is about."),
    "id": text("The id of the document that it is about."),
    "users": array({"type": "string"}, "Who uses the document; the first 20."),
    "count": {"type": "integer", "minimum": 1, "description": "How many use the document, or are frozen."},
    "index": {"type": "integer", "minimum": 0, "description": "The operation of a batch that it is about."},
    "conflicts": array(ref("Conflict"), "What others changed meanwhile: of a revert the first 100, of an apply 10,000."),
    "conflicts_total": {"type": "integer", "minimum": 1, "description": "How many there are."},
    **application_schemas.DECOMMISSIONED,
    "oldest": {"type": "integer", "minimum": 0, "description": "The oldest revision that can be asked for."},
    "plan": text("Id of the plan as it is now."),
    "summary": ref("PlanSummary"),
    "removals": {"type": "integer", "minimum": 0, "description": "How many inputs would be removed."},
    "clusters": {"description": "How many clusters are concerned; where a freeze refuses, the first 20 ids of them."},
    "first": array(free(), "The first 20 inputs that would be removed, each with cluster and view."),
    "freezes": array(free(), "The freezes that refuse, each with id, reason and until."),
    "confirm": {
        "type": "object",
        "description": "The headers with which the write passes.",
        "additionalProperties": {"type": "string"},
    },
}


def _conflict() -> Schema:
    conflict = members(
        {
            "kind": text("Kind of the document."),
            "id": text("Id of the document."),
            "path": text("JSON pointer to what was changed again; empty for the whole document."),
            "revision": {**REVISION, "nullable": True, "description": "Which change did so; null if it was compacted."},
        }
    )
    conflict["properties"] |= application_schemas.CONFLICT
    return conflict
