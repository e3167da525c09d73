"""Connections as bare descriptors, on a loop of the test: one look for all that was read, and what becomes of who is idle."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop

import live
from api.fleets import DEMO_DNS, cluster
from api.raw_requests import PLAIN
from flux_resourceset import tokens
from flux_resourceset.changes import Origin
from flux_resourceset.follower import Follower
from flux_resourceset.http import listening, metrics, poll
from flux_resourceset.http.ordinary import Brought
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="elsewhere uvicorn listens")

EMPTY = b'{"inputs":[]}'


class Ordinary(asyncio.Protocol):
    """Says what it was handed."""

    def bring(self, brought: Brought) -> None:
        self.brought = brought

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # TCP transports are Transports
        self.transport.write(self.brought.unsent + b"ordinary")

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"ordinary")


class Scene:
    """A ledger, and what listens for polls of it."""

    def __init__(self) -> None:
        memory = MemoryStore()
        self.ledger = Ledger(Follower(kind_files.load(), lambda: memory))
        kinds = self.ledger.kinds
        created = cluster("one", cluster_dns=DEMO_DNS)
        self.ledger.write_now(lambda draft: draft.create(kinds.clusters, created), Origin("test"))
        self.follower = Follower(kinds, lambda: memory)  # of another process
        self.follower.refresh()
        known = tokens.Tokens([tokens.Token.of("read", "read", live.READ)])
        self.fast = poll.Fast(self.follower, known, metrics.Metrics(self.follower))
        self.tasks: set[asyncio.Task[None]] = set()
        make: Any = Ordinary
        self.listening = listening.Listening(self.fast, make, self.tasks)

    def decommission(self) -> None:
        self.ledger.write_now(lambda draft: draft.delete(self.ledger.kinds.clusters, "one", force=True), Origin("test"))

    @contextlib.contextmanager
    def open(self) -> Iterator[tuple[str, int]]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.listening.open([listener])
            try:
                yield listener.getsockname()
            finally:
                self.listening.close()


def run(test: Callable[[Scene, tuple[str, int]], Awaitable[None]]) -> None:
    async def whole() -> None:
        scene = Scene()
        with scene.open() as address:
            await asyncio.wait_for(test(scene, address), 30)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(whole())


async def until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    return await asyncio.wait_for(reader.readuntil(end), 10)


def test_all_that_was_read_in_one_turn_shares_one_look_which_comes_after_it() -> None:
    async def test(scene: Scene, address: tuple[str, int]) -> None:
        looks: list[int] = []
        look = scene.follower.look

        def looking() -> None:
            looks.append(len(looks))
            look()

        scene.follower.look = looking  # type: ignore[method-assign]
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(address)) for _ in range(20)]
            for client in clients:
                client.sendall(PLAIN)  # all before the loop has its turn
                client.setblocking(False)
            loop = asyncio.get_running_loop()
            for client in clients:
                assert (await loop.sock_recv(client, 65536)).endswith(EMPTY)
        assert len(looks) == 1

    run(test)


def test_what_was_written_before_the_look_is_in_the_answers_and_they_stay_on_the_fast_path() -> None:
    async def test(scene: Scene, address: tuple[str, int]) -> None:
        for pause in (True, False):  # on a connection that is known, and on a new one
            reader, writer = await asyncio.open_connection(*address)
            if pause:
                writer.write(PLAIN)
                assert EMPTY in await until(reader, EMPTY)
            kinds = scene.ledger.kinds
            number = scene.ledger.fleet.revision

            def build(draft: Any, kinds: Any = kinds, number: int = number) -> Any:
                draft.create(kinds.by_name["namespaces"], {"id": f"n{number}"})
                return draft.replace(
                    kinds.clusters, "one", cluster("one", cluster_dns=DEMO_DNS, namespaces=[{"id": f"n{number}"}])
                )

            scene.ledger.write_now(build, Origin("test"))
            writer.write(PLAIN)
            assert f'"id":"n{number}"'.encode() in await until(reader, b"]}")
            writer.write(PLAIN)  # it was listened to again
            assert f'"id":"n{number}"'.encode() in await until(reader, b"]}")
            writer.close()

    run(test)


def test_what_idles_for_two_sweeps_is_closed_and_what_polls_is_kept() -> None:
    async def test(scene: Scene, address: tuple[str, int]) -> None:
        (idle, idle_writer), (busy, busy_writer) = [await asyncio.open_connection(*address) for _ in range(2)]
        for _ in range(3):
            busy_writer.write(PLAIN)
            await until(busy, EMPTY)
            scene.listening.sweep()
        assert await asyncio.wait_for(idle.read(), 10) == b""
        busy_writer.write(PLAIN)
        assert (await until(busy, EMPTY)).startswith(b"HTTP/1.1 200 OK")
        for _ in range(2):
            scene.listening.sweep()
        assert await asyncio.wait_for(busy.read(), 10) == b""  # nobody is kept for what they did once
        for writer in (idle_writer, busy_writer):
            writer.close()

    run(test)


def test_a_connection_that_was_handed_over_after_idling_is_not_closed_by_the_next_sweep() -> None:
    async def test(scene: Scene, address: tuple[str, int]) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(PLAIN)
        await until(reader, EMPTY)
        scene.listening.sweep()
        for _ in range(2):
            writer.write(b"something else")
            assert await until(reader, b"ordinary") == b"ordinary"
            scene.listening.sweep()
        writer.close()

    run(test)
