"""What the log says of a change, as people read it: when, who, and which field became what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def moment(change: Mapping[str, Any]) -> str:
    return str(change.get("time") or "")[:19].replace("T", " ")


def author(change: Mapping[str, Any]) -> str:
    for_whom = change.get("on_behalf_of")
    return str(change.get("actor") or "") + (f" for {for_whom}" if for_whom else "")


def field(item: Mapping[str, Any]) -> str:
    """A field before and after; a side on which there is nothing is left out of the API's answer."""
    before, after = (text(item[side]) if side in item else "(none)" for side in ("before", "after"))
    return f"{item['path']}: {before} → {after}"


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
