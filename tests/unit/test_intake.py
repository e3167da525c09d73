"""What arrives on a connection is parsed in slices, with a turn of the event loop for everybody else between them."""

from __future__ import annotations

import asyncio
import itertools
import socket

import uvloop

from flux_resourceset.http import ordinary

SENT = bytes(range(256)) * 1000
TURN = "a turn of the loop"


class Receiving(asyncio.Protocol):
    """Takes down what is handed on, and every turn of the loop until all of it was."""

    def __init__(self, pauses: bool = False) -> None:
        self.events: list[str | bytes] = []
        self.over = asyncio.Event()
        self._pauses = pauses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._intake = ordinary.Intake(transport, self._loop, self._take)  # type: ignore[arg-type]  # streams have Transports

    def data_received(self, data: bytes) -> None:
        if not self.events:
            self._loop.call_soon(self._turn)
        self._intake.add(data)

    def eof_received(self) -> None:
        self.over.set()

    def _take(self, data: bytes) -> None:
        self.events.append(data)
        if self._pauses:
            self._intake.pause_reading()
            self._loop.call_later(0.001, self._intake.resume_reading)

    def _turn(self) -> None:
        self.events.append(TURN)
        if not self.over.is_set():
            self._loop.call_soon(self._turn)


def received(*, pauses: bool = False) -> list[str | bytes]:
    async def receive() -> list[str | bytes]:
        near, far = socket.socketpair()
        far.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(SENT))
        near.setblocking(False)
        protocol = Receiving(pauses)
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, near)
        await asyncio.to_thread(far.sendall, SENT)
        far.close()
        await asyncio.wait_for(protocol.over.wait(), 10)
        transport.close()
        return protocol.events

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(receive())


def slices(events: list[str | bytes]) -> list[bytes]:
    return [event for event in events if isinstance(event, bytes)]


def test_everything_is_handed_on_in_order_and_before_the_end() -> None:
    for pauses in (False, True):
        assert b"".join(slices(received(pauses=pauses))) == SENT


def test_no_slice_is_long_and_the_loop_has_a_turn_after_each() -> None:
    events = received()
    assert max(map(len, slices(events))) <= ordinary.SLICE_BYTES
    large = [place for place, event in enumerate(events) if len(event) == ordinary.SLICE_BYTES]
    assert large
    assert all(events[place + 1 : place + 2] == [TURN] for place in large)


def test_nothing_is_handed_on_while_there_is_enough_to_do() -> None:
    events = received(pauses=True)
    places = [place for place, event in enumerate(events) if event != TURN]
    assert all(TURN in events[first:second] for first, second in itertools.pairwise(places))
