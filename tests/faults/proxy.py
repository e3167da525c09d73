"""A proxy on loopback between a server and its database, that lets connections stall, crawl, break, or seem to be there."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Weather = Literal["fine", "stalled", "slow", "reset", "half open", "silent"]

_RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: what is closed is reset
PIECE, SECONDS = 512, 0.01  # of a slow connection: some 50 kB/s


class Proxy:
    """fine: as a cable. stalled: nothing comes through, and all of it later. slow: a little at a time. reset: whoever is
    connected, or connects, is reset. half open: the other side is gone, and nobody says so. silent: who connects is accepted, and
    no more; who is connected stalls."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._weather: Weather = "fine"
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.accepted = 0

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(30)

    def set(self, weather: Weather) -> None:
        self._do(self._set(weather))

    async def _set(self, weather: Weather) -> None:
        self._weather = weather
        self._changed.set()
        self._changed = asyncio.Event()
        for here, there in list(self._pairs):
            if weather == "reset":
                _cut(here)
                _cut(there)
            elif weather == "half open":
                _cut(there)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        try:
            if self._weather == "reset":
                _cut(writer)
                return
            while self._weather in ("silent", "stalled", "half open"):
                await self._changed.wait()
            with contextlib.suppress(OSError):
                await self._join(reader, writer)
        except asyncio.CancelledError:
            pass  # the end of the proxy
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        its_reader, its_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        pair = (writer, its_writer)
        self._pairs.add(pair)
        try:
            done = {asyncio.ensure_future(self._pump(reader, its_writer)), asyncio.ensure_future(self._pump(its_reader, writer))}
            try:
                await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
                while self._weather == "half open":  # the other side has gone, and this one is not told
                    await self._changed.wait()
            finally:
                for each in done:
                    each.cancel()
                await asyncio.gather(*done, return_exceptions=True)
        finally:
            self._pairs.discard(pair)
            its_writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            while self._weather in ("stalled", "silent"):
                await self._changed.wait()
            if self._weather != "slow":
                writer.write(data)
            else:
                for begin in range(0, len(data), PIECE):
                    writer.write(data[begin : begin + PIECE])
                    await asyncio.sleep(SECONDS)
            await writer.drain()

    def close(self) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _cut(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@contextlib.contextmanager
def before(port: int) -> Iterator[Proxy]:
    made = Proxy(port)
    try:
        yield made
    finally:
        made.close()
