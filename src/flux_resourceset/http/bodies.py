"""Request bodies: JSON, strictly, before anybody looks at what it means."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any, NoReturn

from starlette.requests import Request

from flux_resourceset import errors

MAX_BYTES = 1024 * 1024  # no document is that large, for Flux takes no answer of that size
MAX_BULK_BYTES = 64 * 1024 * 1024  # ten thousand documents, or a whole fleet
MAX_DEPTH = 64  # documents have five levels; deeper ones are made to break parsers

JSON = ("application/json",)
MERGE_PATCH = ("application/merge-patch+json", "application/json")


async def read(request: Request, media_types: tuple[str, ...] = JSON, *, empty: Any = None, limit: int = MAX_BYTES) -> Any:
    """The decoded body; `empty` stands for a body that was left out, where that is allowed."""
    raw = await _raw(request, limit)
    if not raw and empty is not None:
        return empty
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise errors.UnsupportedMediaType(
            f"Content-Type is {media_type or 'missing'}; send {' or '.join(media_types)}", headers={"Accept": media_types[0]}
        )
    if len(raw) > MAX_BYTES:
        return await asyncio.to_thread(decoded, raw)  # takes a while, and polls go on
    return decoded(raw)


async def _raw(request: Request, limit: int) -> bytes:
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise _too_large(limit)
    chunks = bytearray()
    async for chunk in request.stream():
        chunks += chunk
        if len(chunks) > limit:
            raise _too_large(limit)
    return bytes(chunks)


def _too_large(limit: int) -> errors.BodyTooLarge:
    return errors.BodyTooLarge(f"a body has at most {limit} bytes here; split the request")


def decoded(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise errors.MalformedBody(f"the body is not UTF-8: {exc.reason} at byte {exc.start}") from exc
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
    except RecursionError as exc:
        raise _too_deep() from exc
    except ValueError as exc:
        raise errors.MalformedBody(f"the body is not JSON: {exc}") from exc
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
            raise errors.MalformedBody("the body holds half of a surrogate pair, which is not Unicode text") from exc
    elif isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise _too_deep()
        for item in value:
            _check(item, depth + 1)
        if isinstance(value, dict):
            for item in value.values():
                _check(item, depth + 1)


def _too_deep() -> errors.MalformedBody:
    return errors.MalformedBody(f"the body is nested deeper than {MAX_DEPTH} levels")
