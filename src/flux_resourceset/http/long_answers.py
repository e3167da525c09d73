"""Long answers, made in threads and in steps while they are read: polls go on, and what nobody reads is not made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from flux_resourceset.http import request_threads

T = TypeVar("T")

_STEP_BYTES = 256 * 1024  # of an answer: what a client does not take yet is not made yet


async def json_answer(request: Request, pieces: Iterator[bytes], headers: Mapping[str, str] | None = None) -> Response:
    """A short answer as a whole; a long one made while it is read, so that whoever does not read it costs little."""
    first, over = await request_threads.run(request, _step, pieces)
    if not over and request.scope["http_version"] == "1.0":  # knows no chunks
        first, over = first + await request_threads.run(request, b"".join, pieces), True
    if over:
        return Response(first, headers=headers, media_type="application/json")
    return _LongAnswer(_steps(request, first, pieces), headers=headers, media_type="application/json")


async def whole_answer(request: Request, make: Callable[[], bytes], media_type: str) -> Response:
    """One that is made in one go."""
    return Response(await request_threads.run(request, make), media_type=media_type)


class _LongAnswer(StreamingResponse):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Starlette does it with a task group of anyio, which leaves a reference cycle that holds the rest of the answer."""
        with contextlib.suppress(ClientDisconnect):
            await while_listening(receive, self.stream_response(send))


async def while_listening(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run the work, but cancel it when the client leaves: nobody would read what comes of it."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        del working, leaving  # a refusal refers to this frame, and its task to the refusal


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":  # a body that nobody asked for goes unread
        pass


async def _steps(request: Request, first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    over = False
    while not over:
        step, over = await request_threads.run(request, _step, pieces)
        yield step


def _step(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """The next bytes, and whether they are the last."""
    step, size = [], 0
    for piece in pieces:
        step.append(piece)
        size += len(piece)
        if size >= _STEP_BYTES:
            return b"".join(step), False
    return b"".join(step), True
