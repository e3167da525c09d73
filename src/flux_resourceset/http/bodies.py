"""Request bodies: of the right type, not too large, and strict JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.requests import Request

from flux_resourceset import errors, strict_json
from flux_resourceset.http import heavy


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
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in media_types:
        raise errors.UnsupportedMediaType(
            f"Content-Type is {media_type or 'missing'}; send {' or '.join(media_types)}", headers={"Accept": media_types[0]}
        )
    if len(raw) > _QUICK_BYTES:
        return await heavy.run_for(request, strict_json.decoded, raw)
    return strict_json.decoded(raw)


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
