"""The proxy that breaks connections does break them, in each of its ways."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from faults import proxy
from faults.proxy import Proxy

pytestmark = pytest.mark.quick


@pytest.fixture
def echo() -> Iterator[int]:
    """Somebody who says what he is told."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def between(echo: int) -> Iterator[Proxy]:
    with proxy.before(echo) as made:
        yield made


def connect(between: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", between.port), timeout=10)


def told(connection: socket.socket, word: bytes) -> bytes:
    connection.sendall(word)
    found = b""
    while len(found) < len(word):
        found += connection.recv(65536)
    return found


def nothing_comes(connection: socket.socket) -> bool:
    connection.settimeout(0.1)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    else:
        return False
    finally:
        connection.settimeout(10)


def test_in_fine_weather_it_is_a_cable(between: Proxy) -> None:
    with connect(between) as connection:
        assert told(connection, b"x" * 200_000) == b"x" * 200_000


def test_what_stalls_comes_later(between: Proxy) -> None:
    with connect(between) as connection:
        assert told(connection, b"a") == b"a"
        between.set("stalled")
        connection.sendall(b"b")
        assert nothing_comes(connection)
        between.set("fine")
        assert connection.recv(1) == b"b"


def test_who_connects_to_silence_is_accepted_and_told_nothing(between: Proxy) -> None:
    between.set("silent")
    with connect(between) as connection:
        connection.sendall(b"a")
        assert nothing_comes(connection)


def test_slow_connections_bring_all_of_it(between: Proxy) -> None:
    between.set("slow")
    with connect(between) as connection:
        assert told(connection, b"x" * 5000) == b"x" * 5000


def test_a_reset_is_told_to_those_who_are_connected_and_to_those_who_connect(between: Proxy) -> None:
    with connect(between) as connection:
        assert told(connection, b"a") == b"a"
        between.set("reset")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
    with pytest.raises(ConnectionError), connect(between) as another:
        told(another, b"a" * 100_000)


def test_half_open_means_that_nobody_is_told(between: Proxy) -> None:
    with connect(between) as connection:
        assert told(connection, b"a") == b"a"
        between.set("half open")
        connection.sendall(b"b")
        assert nothing_comes(connection)
        between.set("fine")
        assert connection.recv(1) == b""  # now it is
