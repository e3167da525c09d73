"""Threads for work that grows with the fleet or with a request: few of them, so that polls always find their turn."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

COUNT = 2  # more would only take turns from the event loop

FOR_ALL = ThreadPoolExecutor(COUNT, "for-all")
FOR_WRITERS = ThreadPoolExecutor(1, "for-writers")  # so that nobody who may only read holds up those who write


async def run(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, functools.partial(work, *arguments))
