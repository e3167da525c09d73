"""One stream of events: its place in the log, what it is sent next, and whether anybody reads it."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import Scope, Send

from flux_resourceset import errors, log_events
from flux_resourceset.http.ordinary import TRANSPORT
from flux_resourceset.http.unread import UNREAD_SECONDS
from flux_resourceset.log_events import CHUNK_BYTES, Filter
from flux_resourceset.tail import Page, Tail

COMMENT_SECONDS = 15.0  # proxies close what is silent for a minute or half of one, and clients do well to notice a dead server
BUFFER_BYTES = 16 * 1024  # of a connection, beyond which nothing is added before some of it was taken


class Stream:
    def __init__(self, tail: Tail, scope: Scope, wanted: Filter, position: int, is_lost: bool) -> None:
        self._tail = tail
        self._wanted = wanted
        connection = scope["extensions"][TRANSPORT]
        connection["is_endless"] = True
        self._transport: asyncio.Transport = connection["transport"]
        self._transport.set_write_buffer_limits(high=BUFFER_BYTES)
        self.position = position  # revision of what was sent last, is being sent, or was passed over
        self._is_lost = is_lost  # the log does not go on from where the client was
        self._epoch, self._beginnings = tail.epoch, tail.beginnings
        self._is_live = False  # from when on it must keep up
        self._woken = asyncio.Event()
        self._is_over = False
        now = self._clock()
        self._comment_at = now + COMMENT_SECONDS
        self._written = 0
        self._taken = 0, now  # bytes, and when there were last more of them
        self._held_since: float | None = None  # a page of the past

    def _clock(self) -> float:
        return asyncio.get_running_loop().time()

    # From outside

    def wake(self) -> None:
        if not self._is_over and self._has_lost_touch():
            self._cut_off()
        self._woken.set()

    def end(self) -> None:
        """At once: what is half sent is no event to the client; and nobody waits for one who does not read."""
        self._is_over = True
        self._woken.set()
        if self._transport.get_write_buffer_size():
            self._transport.abort()

    def look_after(self, now: float) -> None:
        """Now and then: whoever takes nothing is let go, and so is one who keeps others from reading the past."""
        left = self._transport.get_write_buffer_size()
        taken = self._written - left
        if not left or taken != self._taken[0]:
            self._taken = taken, now
        held = self._held_since
        is_in_the_way = self._tail.is_crowded and held is not None and now - held >= UNREAD_SECONDS
        if is_in_the_way or now - self._taken[1] >= UNREAD_SECONDS:
            self._cut_off()
        if now >= self._comment_at:
            self._woken.set()

    def _cut_off(self) -> None:
        self._is_over = True
        self._woken.set()
        self._transport.abort()  # close() would wait for the rest to be read

    def _has_lost_touch(self) -> bool:
        """Whether more waits than is kept for anybody."""
        tail = self._tail
        is_behind = self._is_live and self._beginnings == tail.beginnings and self.position < tail.revision
        return is_behind and tail.event(self.position + 1) is None

    # Sending

    async def run(self, send: Send) -> None:
        """To its end; doubt about the store is one, and whoever comes back is told of it."""
        self._send = send
        with contextlib.suppress(errors.Refusal):
            await self._run()

    async def _run(self) -> None:
        if self._is_lost:
            await self._write(log_events.reset(self._epoch, self.position))
        else:
            await self._write(log_events.place(self._epoch, self.position))
        while not self._is_over:
            await self._comment()
            if self._beginnings != self._tail.beginnings:
                await self._begin_anew()
            elif self.position >= self._tail.revision:
                self._is_live = True
                await self._wait()
            elif self._tail.event(self.position + 1) is not None:
                self._is_live = True
                await self._send_shared()
            elif self._is_live:
                self._cut_off()
            else:
                await self._send_past()

    async def _write(self, data: bytes) -> None:
        if not self._is_over:
            self._written += len(data) + len(b"%x" % len(data)) + 4  # with what makes a chunk of it
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _wait(self, reading: asyncio.Task[Page | None] | None = None) -> None:
        """Until something is new."""
        self._woken.clear()
        if not self._is_over and not (reading and reading.done()):
            await self._woken.wait()

    async def _comment(self) -> None:
        """With the place that was reached, which may be far beyond the last event if a filter passes few."""
        now = self._clock()
        if now >= self._comment_at:
            self._comment_at = now + COMMENT_SECONDS
            await self._write(log_events.place(self._epoch, self.position))

    async def _begin_anew(self) -> None:
        self._epoch, self._beginnings, self.position = self._tail.epoch, self._tail.beginnings, self._tail.revision
        await self._write(log_events.reset(self._epoch, self.position))

    async def _send_shared(self) -> None:
        """What is new: small events together, a large one in chunks; whoever is slow holds no copy of it."""
        ready: list[bytes] = []
        size = 0
        while (event := self._tail.event(self.position + 1)) is not None:
            if event.passes(self._wanted):
                if ready and size + event.size > CHUNK_BYTES:
                    break
                ready.extend(event.chunks)
                size += event.size
            self.position += 1
            if size >= CHUNK_BYTES:
                break
        if size <= CHUNK_BYTES:
            ready = [b"".join(ready)] if ready else []
        for chunk in ready:
            await self._write(chunk)

    async def _send_past(self) -> None:
        reading = asyncio.ensure_future(self._tail.past(self._epoch, self.position, self._wanted))
        reading.add_done_callback(lambda _: self._woken.set())
        try:
            while not reading.done() and not self._is_over:  # others may be before it
                await self._comment()
                await self._wait(reading)
            if reading.done():
                self._held_since = self._clock()
                await self._send_page(reading.result())
        finally:
            self._held_since = None
            if not reading.cancel() and not reading.cancelled() and reading.exception() is None:
                self._tail.give_back(reading.result())
            del reading  # a refusal refers to this frame, and its task to the refusal

    async def _send_page(self, page: Page | None) -> None:
        if page is None:  # folded away, or replaced, just now
            await self._tail.meet()
            await self._begin_anew()
            return
        for event in page.events:
            for chunk in event.chunks:
                await self._write(chunk)
        self.position = page.end
