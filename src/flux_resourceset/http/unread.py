"""Clients that do not read their answers: they are let go, for every one of them holds bytes and a descriptor."""

from __future__ import annotations

import asyncio

UNREAD_SECONDS = 30.0  # without taking a single byte; as long as we wait for the next piece of a request


class Unread:
    """Looks at every connection now and then."""

    def __init__(self) -> None:
        self.connections: set[asyncio.Transport] = set()  # all that are open, also those that close once their answer is read
        self._waiting: dict[asyncio.Transport, tuple[int, float]] = {}  # bytes that are left, and since when that many

    def sweep(self, now: float) -> None:
        before, self._waiting = self._waiting, {}
        for transport in list(self.connections):
            left = transport.get_write_buffer_size()
            if not left:
                continue
            size, since = before.get(transport, (-1, now))
            if left != size:
                since = now  # some of it was read
            elif now - since >= UNREAD_SECONDS:
                transport.abort()  # close() would wait for the rest to be read
                continue
            self._waiting[transport] = left, since
