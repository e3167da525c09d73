"""Request bodies: of the right type, not too large, and strict JSON; long ones are decoded in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

from flux_resourceset import errors, json_pieces, strict_json
from flux_resourceset.http import request_threads

T = TypeVar("T")


class Limit(NamedTuple):
    bytes: int
    elements: int  # values; `[],[],…` takes twenty-five times its size in memory


DOCUMENT = Limit(1024 * 1024, 250_000)  # no document is that large, for Flux takes no answer of that size
BULK = Limit(64 * 1024 * 1024, 2_500_000)  # ten thousand documents, or a whole fleet, with 250 values in each
_QUICK_BYTES = 64 * 1024  # what is larger takes a millisecond or more to read, and polls go on meanwhile

JSON = ("application/json",)
MERGE_PATCH = ("application/merge-patch+json", "application/json")


async def read(request: Request, media_types: tuple[str, ...] = JSON, *, empty: Any = None, limit: Limit = DOCUMENT) -> Any:
    """The decoded body; `empty` stands for a body that was left out, where that is allowed."""
    raw = await _raw(request, limit)
    if not raw and empty is not None:
        return empty
    _check_type(request, media_types)
    if len(raw) > _QUICK_BYTES:
        return await request_threads.run(request, strict_json.decoded, raw)
    return strict_json.decoded(raw)


async def read_bulk(request: Request, parsed: Callable[[Any], T]) -> T:
    """What is made of the body of a request for much at once; the body itself is let go."""
    unread = await receive_bulk(request)
    return await request_threads.run(request, unread.read, parsed)


async def receive_bulk(request: Request) -> Unread:
    raw = await _raw(request, BULK if request.state.principal.may_write else DOCUMENT)
    _check_type(request, JSON)
    return Unread(raw)


class Unread:
    """A body that is here and not yet decoded."""

    def __init__(self, raw: bytearray) -> None:
        self._raw = raw

    def read(self, parsed: Callable[[Any], T]) -> T:
        """What is made of it, once; takes long, so in a thread."""
        body = strict_json.decoded(self._raw)
        self._raw.clear()  # nobody needs both
        try:
            return parsed(body)
        finally:
            json_pieces.let_go(body, 3)


async def let_go(request: Request, value: Any, levels: int) -> None:
    """Free what came with a request and is not needed any more, piece by piece."""
    await request_threads.run(request, json_pieces.let_go, value, levels)


def _check_type(request: Request, media_types: tuple[str, ...]) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise errors.UnsupportedMediaType(
            f"Content-Type is {media_type or 'missing'}; send {' or '.join(media_types)}", headers={"Accept": media_types[0]}
        )


async def _raw(request: Request, limit: Limit) -> bytearray:
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit.bytes:
        raise _too_large(limit)
    chunks, elements = bytearray(), 0
    async for chunk in request.stream():
        chunks += chunk
        elements += strict_json.elements(chunk)
        if len(chunks) > limit.bytes:
            raise _too_large(limit)
        if elements > limit.elements:
            raise errors.BodyTooLarge(f"a body has at most {limit.elements} values here; split the request")
    return chunks


def _too_large(limit: Limit) -> errors.BodyTooLarge:
    return errors.BodyTooLarge(f"a body has at most {limit.bytes} bytes here; split the request")
