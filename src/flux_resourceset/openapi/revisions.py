"""Revisions in headers, of every path that asks for a token: the one that an answer tells of, and the least that is wanted."""

from __future__ import annotations

from typing import Any

from flux_resourceset import errors
from flux_resourceset.openapi import building
from flux_resourceset.openapi.building import Item
from flux_resourceset.openapi.words import members, text

PARAMETER = "XMinRevision"
SHOWN: dict[str, Any] = {
    "description": "The revision of the fleet that the answer tells of; of a write, the one that it made.",
    "schema": {"type": "integer", "minimum": 0, "example": 12},
}


def parameters(greatest: int) -> dict[str, Any]:
    return {
        PARAMETER: {
            "name": "X-Min-Revision",
            "in": "header",
            "description": (
                "Wait until the server is at this revision at least, up to 5 seconds; then 503 `behind`. "
                "As X-Revision of a write told it, so that what is read afterwards from another replica is not older."
            ),
            "schema": {"type": "integer", "minimum": 0, "maximum": greatest, "example": 12},
        }
    }


def readiness() -> dict[str, Any]:
    """What is told besides where the answers may be older than the store."""
    told = {
        "status": text("That the server is well.", enum=["ok"]),
        "revision": {"type": "integer", "minimum": 0, "description": "The revision of the fleet that is served.", "example": 12},
        "store": text("Whether the database can be reached.", enum=["ok", "unreachable"]),
        "age": {"type": "number", "minimum": 0, "description": "Seconds since the database last answered.", "example": 0.3},
    }
    return members(told, ["status"])


def add(paths: dict[str, Item]) -> None:
    """To whatever asks for a token."""
    for path, item in paths.items():
        for method, operation in item.items():
            if method != "parameters" and operation.get("security") != []:
                _add_to(operation, reads=method == "get", shows=not path.startswith("/api/v2/flux/"))


def _add_to(operation: dict[str, Any], *, reads: bool, shows: bool) -> None:
    responses = operation["responses"]
    if reads:
        operation["parameters"] = [*operation.get("parameters", ()), building.parameter(PARAMETER)]
        for refusal in (errors.BadRequest, errors.Unavailable):
            responses.setdefault(str(refusal.status), building.refused(refusal))
        operation["responses"] = {status: responses[status] for status in sorted(responses)}
    for response in responses.values() if shows else ():
        if "$ref" not in response:
            response.setdefault("headers", {})["X-Revision"] = {"$ref": "#/components/headers/X-Revision"}
