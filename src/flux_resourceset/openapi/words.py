"""The few shapes that all schemas of the document are made of."""

from __future__ import annotations

import copy
from typing import Any

from flux_resourceset.kinds.model import Schema

REVISION: Schema = {"type": "integer", "minimum": 0, "description": "Revision of the fleet.", "example": 12}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def members(properties: dict[str, Schema], required: list[str] | None = None) -> Schema:
    """An object with these members and no others; all of them are required unless it is said which."""
    names = list(properties) if required is None else required
    return {
        "type": "object",
        **({"required": names} if names else {}),
        "additionalProperties": False,
        "properties": copy.deepcopy(properties),
    }


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def array(items: Schema, description: str) -> Schema:
    return {"type": "array", "description": description, "items": items}


def free(description: str = "", **more: Any) -> Schema:
    """An object with any members; said in so many words, for some generators take silence for an empty one."""
    return {"type": "object", "additionalProperties": True, **({"description": description} if description else {}), **more}
