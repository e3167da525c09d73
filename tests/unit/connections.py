"""Connections without a network, for tests of uvicorn's protocols and of ours, and a loop whose time a test turns."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState


class Transport(asyncio.Transport):
    """Remembers what a protocol does to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.paused: list[bool] = []

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused.append(True)

    def resume_reading(self) -> None:
        self.paused.append(False)


class TurnedLoop(asyncio.SelectorEventLoop):
    """One whose time stands still until a test turns it."""

    _now = 1000.0

    def time(self) -> float:
        return self._now

    async def turn(self, seconds: float = 0.0) -> None:
        """Let the time pass, and everybody go on who waited for it; nobody may wait for anything from outside."""
        self._now += seconds
        for _ in range(10):  # more turns than any chain of callbacks here is long
            await asyncio.sleep(0)


async def never(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


async def at_once(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def with_protocol(
    app: Any,
    check: Callable[[Any, Transport], Any],
    make_protocol: Callable[..., HttpToolsProtocol] = HttpToolsProtocol,
    make_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    **configured: Any,
) -> None:
    """Give a connected protocol to a check, on a loop; what it leaves is cancelled."""

    async def run() -> None:
        state = ServerState()
        config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, **configured)
        protocol = make_protocol(config, state, {})
        transport = Transport()
        protocol.connection_made(transport)
        result = check(protocol, transport)
        if inspect.isawaitable(result):
            await result
        for task in list(state.tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        protocol._unset_keepalive_if_required()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(run())
