"""Paths into Helm values, as the targetPath of a HelmRelease takes them, and which values can be set there."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Steps = tuple[str | int, ...]

LONGEST = 250  # characters: the targetPath of a HelmRelease ends there
# A dot inside a segment is escaped. Helm gives up below 30 dots; an element beyond 9999 would be a list of that many nulls.
_SEGMENT = r"([A-Za-z0-9_/-]|\\\.)+(\[(0|[1-9][0-9]{0,3})\])*"
PATTERN = rf"{_SEGMENT}(\.{_SEGMENT}){{0,30}}"

_PATH = re.compile(PATTERN)
_STEP = re.compile(r"\[([0-9]{1,4})\]|((?:[^.\[\\]|\\.?)+)")


def is_path(text: str) -> bool:
    return len(text) <= LONGEST and _PATH.fullmatch(text) is not None


def steps(path: str) -> Steps:
    """The keys and the places in lists that a path leads along."""
    return _known_steps(path) if len(path) <= LONGEST else _steps(path)


def _steps(path: str) -> Steps:
    return tuple(int(place) if place else name.replace("\\.", ".") for place, name in _STEP.findall(path))


_known_steps = functools.lru_cache(2048)(_steps)  # thousands of clusters set the same


def shown(way: Steps) -> str:
    """The path of these steps."""
    parts = (f"[{step}]" if isinstance(step, int) else "." + step.replace(".", "\\.") for step in way)
    return "".join(parts).removeprefix(".")


def mistake(path: str, value: Any) -> str | None:
    """Why a value cannot be set at a path; None if it can.

    Lists, and numbers with a fraction, travel as values documents, which Helm merges: those replace lists, and reach no element.
    """
    if "[" not in path or not any(isinstance(step, int) for step in steps(path)):
        return None
    if isinstance(value, list):
        return "is a list below a list element, where Helm cannot be given one; set its elements one by one, as in path[0]"
    if isinstance(value, float) and not (value.is_integer() and str(value) != "-0.0"):
        return (
            "is a number with a fraction in a list element, where Helm takes whole numbers only; set the whole list as an array"
        )
    if value == "" and not path.endswith("]"):
        return "is an empty text below a list element, which Helm would drop; leave it out, or set another text"
    return None


def remedy(place: Sequence[Any], value: Any) -> str:
    """What to do about a value in the patches of a cluster that is more than a scalar or a list of them."""
    match place:
        case ["patches", _, str(path)] if isinstance(value, dict):
            return f"; set what is in it path by path, as in {path}.name"
        case ["patches", _, str(path), int()]:
            return f"; set the elements one by one, as in {path}[0].name"
    return ""


def surprises(values: Mapping[str, Any]) -> Iterator[str]:
    """What Helm makes of values by their paths that can hardly be meant."""
    ways = {steps(path): path for path in values}
    for way, path in ways.items():
        for count in range(1, len(way)):
            other = ways.get(way[:count])
            if other is None or (isinstance(values[other], list) and isinstance(way[count], int)):
                continue  # of a list that is set as a whole, an element may be another
            dropped = isinstance(way[count - 1], int) and isinstance(way[count], str)
            yield f"{path} cannot be set below {other}" + (", which Helm drops" if dropped else "; Helm refuses the release")
    yield from _gaps(ways, values)


def _gaps(ways: Mapping[Steps, str], values: Mapping[str, Any]) -> Iterator[str]:
    """Elements of lists that nobody sets, below others that somebody sets."""
    places: dict[Steps, set[int]] = {}
    for way in ways:
        for count, step in enumerate(way):
            if isinstance(step, int):
                places.setdefault(way[:count], set()).add(step)
    for way, found in places.items():
        whole = values.get(ways.get(way, ""))
        known = found | {*range(len(whole))} if isinstance(whole, list) else found
        gap = next((place for place in range(max(found)) if place not in known), None)
        if gap is not None:
            yield f"{shown((*way, gap))} is null, for Helm replaces the list of the chart; set it, too"
