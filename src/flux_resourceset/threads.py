"""Threads for work that grows with the fleet or with a request: few of them, so that polls always find their turn."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

COUNT = 2  # more would only take turns from the event loop

# Each waits for its own kind only: however many read, whoever writes or polls does not stand in their queue.
FOR_READS = ThreadPoolExecutor(COUNT, "for-reads")
FOR_WRITES = ThreadPoolExecutor(1, "for-writes")  # their bodies and answers; the ledger has a thread for transactions
FOR_FOLLOWERS = ThreadPoolExecutor(1, "for-followers")  # the log, for those who are told of what is new
FOR_POLLS = ThreadPoolExecutor(1, "for-polls")  # the fleet list; every other poll is answered on the event loop


async def run(pool: ThreadPoolExecutor, work: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, functools.partial(work, *arguments))
