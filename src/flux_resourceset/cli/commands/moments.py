"""Moments as people say them: a time, or how long ago it was."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from flux_resourceset.cli import failures

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGO = re.compile(r"([0-9]{1,7}[smhdw])+")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+")  # the server reads it with care


def moment(text: str, option: str, clock: Callable[[], float] = time.time) -> str:
    """RFC 3339 of a time, or of so long ago: 90m, 1h, 2d, 1w, 1h30m."""
    if _AGO.fullmatch(text):
        seconds = sum(int(part[:-1]) * _SECONDS[part[-1]] for part in re.findall(r"[0-9]+[smhdw]", text))
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(max(0, clock() - seconds)))
    if _TIME.fullmatch(text):
        return text
    raise failures.usage(f"{option} is {text!r}; say a time such as 2026-01-31T12:00:00Z, or as long ago as 90m, 1h or 2d")
