"""HTTP as bytes on a socket: requests exactly as Flux sends them, and whatever comes back."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import NamedTuple

import live
from api.fleets import DEMO_DNS, view

ORDINARY = f"Connection: {live.ORDINARY}\r\n"
POLLED = view(DEMO_DNS, "namespaces")


class Answer(NamedTuple):
    status: int
    body: bytes


def request(target: str = POLLED, token: str = live.READ, method: str = "GET", more: str = "", body: bytes = b"") -> bytes:
    """With nothing but what Flux sends, a poll takes the fast path; ORDINARY in `more` sends it the ordinary way."""
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{length}{more}\r\n".encode() + body


@contextlib.contextmanager
def connected(server: live.Server) -> Iterator[socket.socket]:
    with socket.create_connection(server.address, timeout=20) as connection:
        yield connection


def answered(connection: socket.socket) -> Answer:
    """The next answer, from a connection that has no other under way."""
    received = b""
    while not (found := answers(received)):
        chunk = connection.recv(65536)
        assert chunk, f"the connection ended after {received!r}"
        received += chunk
    return found[0]


def answers(received: bytes) -> list[Answer]:
    """The whole answers at the beginning of what came."""
    found = []
    while b"\r\n\r\n" in received:
        head, _, rest = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), 0)
        if len(rest) < length:
            break
        found.append(Answer(int(lines[0].split()[1]), rest[:length]))
        received = rest[length:]
    return found


def everything(connection: socket.socket) -> bytes:
    """Until the other side ends."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received
