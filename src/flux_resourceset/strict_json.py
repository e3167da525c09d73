"""JSON from outside, read strictly: what two readers could take differently is refused."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from flux_resourceset import errors

MAX_DEPTH = 64  # documents have five levels; deeper ones are made to break parsers


def decoded(raw: bytes) -> Any:
    """What the bytes say, or MalformedBody."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise errors.MalformedBody(f"not UTF-8: {exc.reason} at byte {exc.start}") from exc
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
    except RecursionError as exc:
        raise _too_deep() from exc
    except ValueError as exc:
        raise errors.MalformedBody(f"not JSON: {exc}") from exc
    _check(value, 0)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add() is None, which is false
        raise errors.MalformedBody(f"the key {twice!r} stands twice in one object")
    return result


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


def _check(value: Any, depth: int) -> None:
    """Depth, and escapes of half a character, which no UTF-8 can carry on."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as exc:
            raise errors.MalformedBody("it holds half of a surrogate pair, which is not Unicode text") from exc
    elif isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise _too_deep()
        for item in value:
            _check(item, depth + 1)
        if isinstance(value, dict):
            for item in value.values():
                _check(item, depth + 1)


def _too_deep() -> errors.MalformedBody:
    return errors.MalformedBody(f"it is nested deeper than {MAX_DEPTH} levels")
