"""Request bodies: of the right type, not too large, and strict JSON."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from flux_resourceset import errors, strict_json

MAX_BYTES = 1024 * 1024  # no document is that large, for Flux takes no answer of that size
MAX_BULK_BYTES = 64 * 1024 * 1024  # ten thousand documents, or a whole fleet

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
        return await asyncio.to_thread(strict_json.decoded, raw)  # takes a while, and polls go on
    return strict_json.decoded(raw)


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
