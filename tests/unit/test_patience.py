"""How long a server waits for the rest of a request, and listens to who has ended their side, by a clock that tests turn."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

from flux_resourceset.http import ordinary
from flux_resourceset.http.ordinary import HALF_CLOSED_SECONDS, IDLE_SECONDS, PATIENCE_SECONDS, OrdinaryProtocol
from flux_resourceset.http.unread import Unread
from unit.connections import Transport, TurnedLoop, at_once, never, with_protocol

MOMENT = 0.001
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
LENGTH = POST + b"Content-Length: 9\r\n\r\n"


async def once_all_is_there(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await at_once(scope, receive, send)


async def without_end(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x", "more_body": True})
    await asyncio.Event().wait()


class Connection:
    """A connection to the ordinary protocol, in a time that the test turns."""

    def __init__(self, protocol: OrdinaryProtocol, transport: Transport) -> None:
        assert isinstance(protocol.loop, TurnedLoop)
        self.protocol, self.transport, self.turn = protocol, transport, protocol.loop.turn

    async def send(self, data: bytes) -> None:
        self.protocol.data_received(data)
        await self.turn()

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.transport.written)]

    @property
    def seen(self) -> tuple[list[int], bool]:
        """The statuses of all answers, and whether the connection was closed."""
        return self.statuses, self.transport.closed


def on_a_connection(app: Any, check: Callable[[Connection], Any]) -> None:
    with_protocol(
        app,
        lambda protocol, transport: check(Connection(protocol, transport)),
        functools.partial(OrdinaryProtocol, Unread(), None),
        TurnedLoop,
        timeout_keep_alive=int(PATIENCE_SECONDS * 10),  # which is uvicorn's, and not the subject here
    )


@pytest.mark.parametrize(
    "sent", [GET[:-2], LENGTH + b"{", POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n"], ids=["head", "body", "chunks"]
)
def test_who_does_not_send_the_rest_in_time_is_told_and_let_go(sent: bytes) -> None:
    async def check(connection: Connection) -> None:
        await connection.send(sent)
        await connection.turn(PATIENCE_SECONDS - MOMENT)
        assert connection.seen == ([], False)
        await connection.turn(MOMENT)
        assert connection.seen == ([408], True)
        assert b'"code":"request-timeout"' in connection.transport.written

    on_a_connection(once_all_is_there, check)


def test_who_sends_on_is_waited_for_however_long_it_takes() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(LENGTH)
        for _ in range(9):
            await connection.turn(PATIENCE_SECONDS - MOMENT)
            assert connection.seen == ([], False)
            await connection.send(b"x")
        assert connection.seen == ([200], False)

    on_a_connection(once_all_is_there, check)


def test_the_time_counts_from_the_last_piece_of_a_body() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(LENGTH)
        await connection.turn(PATIENCE_SECONDS / 2)
        await connection.send(b"x")
        await connection.turn(PATIENCE_SECONDS - MOMENT)
        assert connection.seen == ([], False)
        await connection.turn(MOMENT)
        assert connection.seen == ([408], True)

    on_a_connection(once_all_is_there, check)


def test_pieces_of_a_head_gain_no_time() -> None:
    async def check(connection: Connection) -> None:
        for piece in (b"GET / HTTP/1.1\r\n", b"A: b\r\n", b"C: d\r\n"):
            assert connection.seen == ([], False)
            await connection.send(piece)
            await connection.turn(PATIENCE_SECONDS / 3)
        assert connection.seen == ([408], True)

    on_a_connection(never, check)


def test_nobody_is_waited_for_between_two_requests() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(GET)
        await connection.turn(PATIENCE_SECONDS * 2)
        assert connection.seen == ([200], False)
        await connection.send(GET)
        assert connection.seen == ([200, 200], False)

    on_a_connection(at_once, check)


def test_nobody_is_waited_for_while_a_whole_request_is_carried_out() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(GET)
        await connection.turn(PATIENCE_SECONDS * 2)
        assert connection.seen == ([], False)

    on_a_connection(never, check)


def test_nobody_is_blamed_while_it_is_the_server_that_does_not_read() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(LENGTH + b"x")
        connection.protocol.flow.pause_reading()
        await connection.turn(PATIENCE_SECONDS * 3)
        assert connection.seen == ([], False)
        connection.protocol.flow.resume_reading()
        await connection.turn(PATIENCE_SECONDS)
        assert connection.seen == ([408], True)

    on_a_connection(once_all_is_there, check)


def test_who_is_being_answered_gets_no_second_answer() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(LENGTH)
        await connection.turn(PATIENCE_SECONDS - MOMENT)
        assert connection.seen == ([200], False)
        await connection.turn(MOMENT)
        assert connection.seen == ([200], True)

    on_a_connection(without_end, check)


def test_who_was_answered_by_the_head_alone_has_a_while_to_see_it_and_no_longer() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(LENGTH)
        await connection.turn(IDLE_SECONDS - MOMENT)
        await connection.send(b"x")  # a body that trickles on
        assert connection.seen == ([200], False)
        await connection.turn(MOMENT)
        assert connection.seen == ([200], True)

    on_a_connection(at_once, check)


def test_who_sends_the_rest_of_what_was_answered_keeps_the_connection() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(LENGTH)
        await connection.turn(IDLE_SECONDS - MOMENT)
        await connection.send(b"x" * 9)
        await connection.turn(PATIENCE_SECONDS)
        await connection.send(GET)
        assert connection.seen == ([200, 200], False)

    on_a_connection(at_once, check)


def test_a_head_without_an_end_is_refused_before_it_fills_the_memory() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(GET[:-2])
        for _ in range(2 * ordinary.MAX_HEAD_BYTES // 1024 - 1):
            await connection.send(b"X: %b\r\n" % (b"x" * 1019))
            assert connection.seen == ([], False)
        await connection.send(b"X: %b\r\n" % (b"x" * 1019))
        assert connection.seen == ([400], True)

    on_a_connection(never, check)


# Whoever has ended their side


def test_who_has_ended_their_side_is_let_go_if_no_answer_begins_soon() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(GET)
        assert connection.protocol.eof_received()
        await connection.turn(HALF_CLOSED_SECONDS - MOMENT)
        assert connection.seen == ([], False)
        await connection.turn(MOMENT)
        assert connection.seen == ([], True)

    on_a_connection(never, check)


def test_who_has_ended_their_side_gets_the_whole_of_an_answer_that_has_begun() -> None:
    async def check(connection: Connection) -> None:
        await connection.send(GET)
        assert connection.protocol.eof_received()
        for _ in range(5):
            await connection.turn(HALF_CLOSED_SECONDS)
            assert connection.seen == ([200], False)

    on_a_connection(without_end, check)
