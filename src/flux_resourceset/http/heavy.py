"""Work that grows with the fleet, off the event loop: few at a time and in steps, so that polls always find their turn."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

T = TypeVar("T")

THREADS = 2  # more would only take turns from the event loop
_STEP_BYTES = 256 * 1024  # of an answer: what a client does not take yet is not made yet

_POOL = ThreadPoolExecutor(THREADS, "heavy")
_OF_WRITERS = ThreadPoolExecutor(1, "heavy-writer")  # so that nobody who may only read holds up those who write


async def run(work: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(_POOL, functools.partial(work, *arguments))


async def run_for(request: Request, work: Callable[..., T], *arguments: object) -> T:
    """Of what comes with a request: those who may write do not wait for those who may not."""
    pool = _OF_WRITERS if request.state.token.role == "write" else _POOL
    return await asyncio.get_running_loop().run_in_executor(pool, functools.partial(work, *arguments))


async def json_answer(request: Request, pieces: Iterator[bytes], headers: Mapping[str, str] | None = None) -> Response:
    """A short answer as a whole; a long one made while it is read, so that whoever does not read it costs little."""
    first, over = await run(_step, pieces)
    if not over and request.scope["http_version"] == "1.0":  # knows no chunks
        first, over = first + await run(b"".join, pieces), True
    if over:
        return Response(first, headers=headers, media_type="application/json")
    return StreamingResponse(_steps(first, pieces), headers=headers, media_type="application/json")


async def _steps(first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    over = False
    while not over:
        step, over = await run(_step, pieces)
        yield step


def _step(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """The next bytes, and whether they are the last."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= _STEP_BYTES:
            return b"".join(found), False
    return b"".join(found), True
