"""Conflicts of an apply: a line for each field that somebody else changed as well."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_REMEDY = "--force-conflicts takes yours"


def lines(problem: Mapping[str, Any]) -> tuple[str, ...]:
    """What a refusal says of both sides of each field; nothing for any other refusal."""
    found = problem.get("conflicts")
    told = [item for item in found if isinstance(item, dict) and "yours" in item] if isinstance(found, list) else []
    total = problem.get("conflicts_total")
    hidden = total - len(told) if isinstance(total, int) else 0
    more = (f"… and {hidden} more field(s); {_REMEDY}",) if told and hidden > 0 else ()
    return (*map(_line, told), *more)


def _line(item: Mapping[str, Any]) -> str:
    sides = f"theirs is {_value(item.get('theirs'))} ({origin(item)}), yours is {_value(item['yours'])}"
    return f'{item.get("kind")} "{item.get("id")}": {item.get("path")}: {sides}; {_REMEDY}'


def origin(item: Mapping[str, Any]) -> str:
    """Who last set a field, as far as the log still tells."""
    if item.get("revision") is None:
        return "by a change that was folded away"
    return f"by {item.get('actor')}, revision {item['revision']}"


def _value(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
