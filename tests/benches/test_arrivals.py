"""The load of bench/herd.py: it counts from when a request was due, and whatever is no whole good answer is an error."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import live

sys.path.insert(0, str(live.ROOT))

from bench import arrivals

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
AT_ONCE = b"\1\0\0\0\0\0\0\0"  # struct linger: a close is a reset
REQUEST = b"GET / HTTP/1.1\r\n\r\n"

Answer = Callable[[socket.socket], None]


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """A server that treats every connection in this way, one after the other; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(4096)
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def asked(answer: Answer, count: int = 3) -> arrivals.Arrivals:
    with answering(answer) as port:
        made = arrivals.Arrivals([REQUEST] * count, [0.0] * count, [port])
        made.run()
        return made


def in_pieces(connection: socket.socket) -> None:
    for piece in (GOOD[:30], GOOD[30:-2], GOOD[-2:]):
        connection.sendall(piece)
        time.sleep(0.02)


@pytest.mark.parametrize("answer", [lambda connection: connection.sendall(GOOD), in_pieces])
def test_every_answer_is_awaited_as_a_whole(answer: Answer) -> None:
    made = asked(answer)
    assert (made.errors, sum(wait >= 0 for wait in made.waits)) == ({}, 3)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda connection: connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), "HTTP/1.1 503 Service Unavailable"),
        (lambda connection: None, "closed without an answer"),
        (lambda connection: connection.sendall(GOOD[:-1]), "closed without an answer"),
        (lambda connection: connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE), "Connection reset by peer"),
    ],
)
def test_what_is_not_a_whole_good_answer_is_an_error(answer: Answer, error: str) -> None:
    made = asked(answer)
    assert made.errors == {error: 3}
    assert arrivals.summary(made, 0.0)["answered"] == 0


def test_an_address_where_nobody_listens_is_an_error() -> None:
    made = arrivals.Arrivals([REQUEST], [0.0], [live.free_port()])
    made.run()
    assert made.errors == {"Connection refused": 1}


def test_an_answer_that_never_comes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "PATIENCE", 0.2)
    over = threading.Event()

    def silent(_: socket.socket) -> None:
        over.wait(30)

    with answering(silent) as port:
        made = arrivals.Arrivals([REQUEST], [0.0], [port])
        made.run()
        over.set()
    assert made.errors == {"no answer": 1}


def test_a_wait_counts_from_when_the_request_was_due_and_not_from_when_it_was_sent() -> None:
    with answering(lambda connection: connection.sendall(GOOD)) as port:
        made = arrivals.Arrivals([REQUEST] * 2, [-60.0, -50.0], [port])  # a minute ago: the load is late
        made.run()
    assert made.waits[0] >= 60
    assert made.waits[1] >= 50
    assert made.behind >= 60


def test_requests_are_due_in_order_and_within_their_time() -> None:
    dues = arrivals.spread(1000, 2.0)
    assert dues == sorted(dues)
    assert dues[0] >= 0
    assert dues[-1] <= 2.0
    assert dues == arrivals.spread(1000, 2.0)
