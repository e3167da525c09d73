"""Keeps the last good state in a file, for a start while the database is away."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flux_resourceset import changes, errors, snapshot_file
from flux_resourceset.fleet import Fleet
from flux_resourceset.follower import Follower
from flux_resourceset.snapshot_file import About, Parts

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # between two looks whether there is something to write
REST_SECONDS = 10.0  # between two writings, at least
SHARE = 10  # times as long as the last writing took is the least rest, however large the fleet is


class SnapshotKeeper:
    def __init__(
        self,
        follower: Follower,
        file: Path,
        target: str,
        max_staleness: float = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._follower = follower
        self._file = file
        self._target = target
        self._max_staleness = max_staleness
        self._clock = clock
        self._written: object = None  # what the file says, as far as is known
        self._seen = 0.0  # when that was last known to be so, as it says
        self._not_before = 0.0
        self._failed = ""
        self._thread = ThreadPoolExecutor(1, "snapshot")

    # At the start

    def load(self) -> bool:
        """Whether the follower serves what the file says, until its store can be asked; Doubt says what is wrong with it."""
        found = snapshot_file.read(self._file, self._target)
        if found is None:
            return False
        age = max((_now() - found.seen).total_seconds(), 0.0)
        try:
            self._follower.stand_in(found.snapshot, age)
        except errors.Doubt as doubt:
            raise errors.Doubt(f"the snapshot file {self._file} cannot be used: {doubt.detail}") from doubt
        log.warning(
            "the database cannot be reached; what the snapshot file says is served",
            extra={"file": str(self._file), "revision": found.snapshot.revision, "age": round(age)},
        )
        return True

    # While it serves

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Write what is new, if enough time has passed since the last time."""
        with contextlib.suppress(errors.Unavailable):  # then what was good last is to be kept all the same
            await self._follower.fresh()
        if self._clock() < self._not_before or not self._has_something():
            return
        began, still = self._clock(), self._follower.fleet.copied()
        about, kept, seen = self._about(), self._state(), self._seen_now()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._write, about, still)
        if not self._failed:
            self._written, self._seen = kept, seen
        self._not_before = self._clock() + max(REST_SECONDS, SHARE * (self._clock() - began))

    def write_last(self) -> None:
        """At an orderly end, when nobody serves any more."""
        self._thread.shutdown()
        if self._has_something(at_the_end=True):
            self._write(self._about(), self._follower.fleet)

    def _has_something(self, at_the_end: bool = False) -> bool:
        if not self._follower.fleet.epoch or self._follower.stands_in:
            return False
        ageing = at_the_end or (self._max_staleness and self._clock() - self._seen > self._max_staleness / 2)
        return self._written != self._state() or bool(ageing and self._seen_now() > self._seen)

    def _state(self) -> object:
        return self._follower.fleet.head, self._follower.opened, self._follower.views

    def _seen_now(self) -> float:
        return self._clock() - self._follower.age()

    def _about(self) -> About:
        followed, head = self._follower, self._follower.fleet.head
        seen = changes.timestamp(_now() - datetime.timedelta(seconds=followed.age()))
        return About(
            snapshot_file.FORMAT, snapshot_file.name(self._target), seen, head.epoch, head.revision, head.hash,
            followed.opened, followed.base, followed.replaced, followed.views,
        )  # fmt: skip

    def _write(self, about: About, still: Fleet) -> None:
        """A full disk is no reason not to serve."""
        try:
            snapshot_file.write(self._file, about, Parts(still.stored(), still.tombstones.values(), still.forgone))
            self._failed = ""
        except Exception as exc:
            why = getattr(exc, "strerror", None) or repr(exc)
            if why != self._failed:
                log.warning("the snapshot file %s cannot be written: %s", self._file, why)
            self._failed = why


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
