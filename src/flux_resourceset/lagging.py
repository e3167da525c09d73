"""Follows a store that is across a network: answers come from memory and wait for nothing; the log is read beside them.

The store tells when something was written, or when it cannot be reached; this is the one that listens. What is in memory
goes on to be served while the store is away, but not when there is doubt about the data themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from typing import Any

from flux_resourceset import changes, errors, follower
from flux_resourceset.follower import Follower
from flux_resourceset.news import Known, News
from flux_resourceset.store import Followed

log = logging.getLogger(__name__)

NET_SECONDS = 1.0  # between two looks at the store's number, if it tells nothing
FIRST_REST, LAST_REST = 0.1, 2.0  # seconds before a store that failed is tried again


class LaggingFollower(Follower):
    lags = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._news_came = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pursuing: asyncio.Task[None] | None = None
        self._told = ""  # in the log, why the store is not followed

    # Asking: nothing here waits

    def look(self) -> None:
        self._check_doubt()
        if not self.fleet.epoch:
            raise errors.Unreachable(self._why)
        self._check_staleness()

    async def catch_up(self) -> None:
        self.look()

    def refresh(self) -> None:
        self._take(self._news(self._known(), whole=True))
        self._look_again = 0.0

    def is_reachable(self) -> bool:
        return self._store is not None and self._store.is_reachable()

    def check_reachable(self) -> None:
        if not self.is_reachable():
            raise errors.Unreachable(self._why if self._store is None else "the database cannot be reached; try again")

    def age(self) -> float:
        seen = self.seen if self._store is None else self._store.seen()
        return max(self._clock() - seen, 0.0)

    def _is_current(self) -> bool:
        return self._store is not None and self._store.version() == self._version

    # Following, beside

    def begin(self) -> None:
        """From now on, on this event loop, by itself."""
        self._loop = asyncio.get_running_loop()
        self._pursuing = asyncio.ensure_future(self._pursue())

    def hear(self) -> None:
        """Something was written, or cannot be reached, or can be again; called from any thread."""
        if (loop := self._loop) is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._news_came.set)

    async def _pursue(self) -> None:
        rest = FIRST_REST
        while True:
            self._news_came.clear()
            began = self._clock()
            if await self._went_on():
                rest = FIRST_REST
                if self._is_current():
                    await self._wait(NET_SECONDS)
            else:
                # a load that failed may have taken long: then rest as long
                await self._wait(max(rest * random.uniform(0.5, 1), self._clock() - began))  # noqa: S311  # to spread load
                rest = min(2 * rest, LAST_REST)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for() of Python 3.11 may swallow that it was cancelled
                await self._news_came.wait()

    async def _went_on(self) -> bool:
        """Whether the fleet holds what the store told of before this call."""
        try:
            if not self._is_current():
                await self._go_on()
            self._tell("")
            return True
        except errors.Doubt as exc:
            self._doubt_it(exc.detail)
        except errors.Unavailable as exc:
            self._tell(exc.detail)
        except Exception:
            log.exception("the log cannot be followed")
            self._doubt_it("the log cannot be followed; the log of the server says why")
        return False

    def _doubt_it(self, why: str) -> None:
        self._doubt, self._look_again = why, math.inf
        self._tell(why)

    def _tell(self, why: str) -> None:
        if why and why != self._told:
            serves = "what is in memory is served" if self.fleet.epoch and self._look_again != math.inf else "not ready"
            log.warning("the store is not followed, %s: %s", serves, why)
        elif self._told and not why:
            log.info("the store is followed again", extra={"revision": self.fleet.revision})
        self._told = why

    async def _go_on(self) -> None:
        self._behind_since = self._behind_since or self._clock()
        run = asyncio.get_running_loop().run_in_executor
        read = await run(self._few, self._news, self._known(), True)
        if read.own_step is not None and read.own_step.before == self.fleet.head:
            self.fleet.take(read.own_step)
        after = read.own_step.after if read.own_step is not None else read.known.head
        if self.fleet.head != after:
            return  # a write has gone on meanwhile: what was read is no proof that the log goes on from there
        if _is_large(read):
            assert isinstance(read.behind, Followed)
            hash = read.behind.hash
            await self.go_on_in_thread(read.behind)
            if self.fleet.hash != hash:
                return
            self._version = read.version
            self._meet_store()
        else:
            self._take(read)
            if isinstance(read.behind, changes.Snapshot):
                self._many.submit(follower.free_fleet, read.known.fleet)
        self._look_again, self._behind_since = 0.0, None
        for listener in self.listeners:
            listener()

    # Reading, in a thread

    def _news(self, known: Known, whole: bool) -> News:
        try:
            if self._store is None:
                self._store = self._open_store()
                self._store.on_change(self.hear)
            return self._read_news(known, whole)
        except errors.Unavailable as exc:
            self._why = exc.detail
            raise

    def _begin_anew(self, known: Known) -> None:
        """The log does not go on from what was followed: nothing is answered until it is known what to go on from."""
        self._doubt = f"the log does not go on from revision {known.head.revision}, which was followed; it is read anew"
        self._look_again = math.inf

    def close(self) -> None:
        """What is still being read is given up."""
        self._loop = None
        self._let_go()
        for pool in (self._few, self._many):
            pool.shutdown(wait=False, cancel_futures=True)


def _is_large(read: News) -> bool:
    return isinstance(read.behind, Followed) and sum(len(entry.changes) for entry in read.behind.entries) > follower.FEW_CHANGES
