"""What a change does to the objects of tenants, as Markdown for a review, whatever the objects hold. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_MOST = 60_000  # characters: GitHub takes 65,536 in a comment
_MOST_NAMES = 20  # tenants that are named in a group
_BACKTICKS = re.compile(r"`+")


def of_diff(told: dict[str, Any]) -> str:
    totals = told["totals"]
    if not totals["tenants"]:
        return "**No object of any tenant changes.**\n"
    head = (
        f"**{totals['tenants']} tenant(s) change**: {totals['added']} object(s) added, "
        f"{totals['removed']} removed, {totals['changed']} changed.\n"
    )
    text = head
    for count, group in enumerate(told["groups"]):
        part = "\n" + "\n".join(_group(group)) + "\n"
        if len(text) + len(part) > _MOST:
            return text + f"\n… and {len(told['groups']) - count} more group(s), for which a comment has no room.\n"
        text += part
    return text


def _group(group: dict[str, Any]) -> Iterator[str]:
    names = [f"{each['environment']}/{each['cluster']}/{each['tenant']}" for each in group["tenants"]]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    yield f"### {', '.join(map(_code, names[:_MOST_NAMES]))}{more}"
    yield ""
    lines = list(_changes(group))
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in _BACKTICKS.findall(line)), 3)
    yield f"{fence}diff"
    yield from lines
    yield fence


def _changes(group: dict[str, Any]) -> Iterator[str]:
    yield from (f"+ {_line(name)}" for name in group["added"])
    yield from (f"- {_line(name)}" for name in group["removed"])
    for change in group["changed"]:
        yield f"  {_line(change['object'])}"
        for field in change["fields"]:
            if field["before"] is not None:
                yield f"-   {_line(field['path'])}: {json.dumps(field['before'])}"
            if field["after"] is not None:
                yield f"+   {_line(field['path'])}: {json.dumps(field['after'])}"


def _line(text: str) -> str:
    return json.dumps(text)[1:-1]  # one line, whatever it holds


def _code(text: str) -> str:
    run = max((len(found) for found in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (run + 1)
    return f"{fence}{_line(text)}{fence}"
