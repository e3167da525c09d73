"""Conflicts of an apply: a line for each field that somebody else changed as well, and each cluster that was decommissioned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_REMEDY = "--force-conflicts takes yours"


def lines(problem: Mapping[str, Any]) -> tuple[str, ...]:
    """What a refusal says of both sides of each field, and of decommissioned clusters; nothing for any other refusal."""
    return (*_of_buried(problem), *_of_fields(problem))


def _of_buried(problem: Mapping[str, Any]) -> tuple[str, ...]:
    found = problem.get("decommissioned")
    told = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    total = problem.get("decommissioned_total")
    hidden = total - len(told) if isinstance(total, int) else 0
    more = (f"… and {hidden} more cluster(s); --revive brings them back",) if told and hidden > 0 else ()
    return (*map(_grave, told), *more)


def _grave(item: Mapping[str, Any]) -> str:
    was = "" if item.get("was") == item.get("id") else f' as "{item.get("was")}", which had its DNS name,'
    what = f'clusters "{item.get("id")}" was decommissioned{was} in revision {item.get("revision")}'
    return f"{what}; take it out of the files, or bring it back with --revive"


def _of_fields(problem: Mapping[str, Any]) -> tuple[str, ...]:
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
        return "by a change that was compacted"
    for_whom = f" for {item['on_behalf_of']}" if item.get("on_behalf_of") else ""
    return f"by {item.get('actor')}{for_whom}, revision {item['revision']}"


def _value(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
