"""Requests that do not come to an end: a server whose patience is short, for it is only its length that makes it slow to see.

Nothing here has to be done within that patience; what does is in tests/unit/test_patience.py, by a clock that tests turn.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator

import pytest

import live

IMPATIENT = """
from flux_resourceset import server
from flux_resourceset.http import ordinary
ordinary.PATIENCE_SECONDS = 0.2
ordinary.IDLE_SECONDS = 60
server.main()
"""
HEAD = (
    f"POST /namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.WRITE}\r\nContent-Type: application/json\r\n".encode()
)
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    directory = tmp_path_factory.mktemp("impatient")
    server = live.Server(directory, live.environment(directory, STORE_BACKEND="memory"), (sys.executable, "-c", IMPATIENT))
    try:
        server.wait("/ready")
        yield server
    finally:
        server.kill()


def connected(server: live.Server) -> socket.socket:
    return socket.create_connection(server.address, timeout=20)


def until_closed(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def health(connection: socket.socket) -> bytes:
    """The answer to one request, on a connection that stays."""
    connection.sendall(HEALTH)
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(65536)
    return answer


@pytest.mark.parametrize("sent", [HEALTH[:-2], HEAD + b"Content-Length: 20\r\n\r\n{"], ids=["head", "body"])
def test_who_does_not_send_the_rest_is_told_and_let_go(impatient: live.Server, sent: bytes) -> None:
    with connected(impatient) as connection:
        connection.sendall(sent)
        answer = until_closed(connection)
    assert answer.count(b"HTTP/1.1 408 ") == 1
    assert b'"code":"request-timeout"' in answer


def test_nobody_is_waited_for_between_two_requests(impatient: live.Server) -> None:
    with connected(impatient) as idle, connected(impatient) as slow:
        assert health(idle).startswith(b"HTTP/1.1 200 ")
        slow.sendall(HEALTH[:-2])
        assert until_closed(slow).startswith(b"HTTP/1.1 408 ")  # so the patience with the other would be at its end as well
        assert health(idle).startswith(b"HTTP/1.1 200 ")


def test_a_head_without_an_end_is_refused_before_it_fills_the_memory(server: live.Server) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        with contextlib.suppress(ConnectionError):
            for number in range(10_000):
                connection.sendall(b"X-%d: %b\r\n" % (number, b"x" * 1000))
        answer = until_closed(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")  # a reset may overtake the answer
    with server.client() as client:
        assert client.get("/health").status_code == 200
