"""The order in which releases follow one another: hotfixes after their release, candidates before it."""

from __future__ import annotations

import re

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(?:-(\d+)|[-.]?([A-Za-z].*?))?")

Order = tuple[int, tuple[int, ...], int, int, tuple[tuple[int, str], ...], str]


def base(tag: str) -> str:
    """The release that a hotfix or a candidate belongs to: v1.0.0 of v1.0.0-1."""
    match = _RELEASE.fullmatch(tag)
    return tag[: match.end(1)] if match else tag


def order(tag: str) -> Order:
    """Sorts tags as releases follow one another, which SemVer does not for hotfixes; words come last."""
    match = _RELEASE.fullmatch(tag)
    if match is None:
        return (1, (), 0, 0, (), tag)
    numbers = tuple(map(int, match[1].split(".")))
    candidate = match[3] or ""
    stage = -1 if candidate else 0
    parts = tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", candidate))
    return (0, numbers, stage, int(match[2] or 0), parts, tag)
