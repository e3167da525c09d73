"""Which threads work for a request: one that writes does not wait for those that read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request

from flux_resourceset import threads

T = TypeVar("T")


async def run(request: Request, work: Callable[..., T], *arguments: object) -> T:
    return await threads.run(threads.FOR_WRITES if _writes(request) else threads.FOR_READS, work, *arguments)


def _writes(request: Request) -> bool:
    """What a writer only reads may be a whole fleet with its log, and the next write would wait for that too."""
    return request.method not in ("GET", "HEAD") and request.state.principal.may_write
