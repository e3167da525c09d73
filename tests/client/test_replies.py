"""Answers in every form that HTTP/1.1 has, and in forms that it has not."""

from __future__ import annotations

import socket

import pytest

from client import servers
from flux_resourceset.client import Client, Unreachable

JSON = b"Content-Type: application/json\r\n"


def answered(data: bytes) -> object:
    def handle(connection: socket.socket) -> None:
        servers.head(connection)
        connection.sendall(data)

    with servers.listening(handle) as port:
        client = Client(f"http://127.0.0.1:{port}", {"read": "token"}, timeout=10)
        try:
            return client.get("/clusters").json()
        finally:
            client.close()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n" + JSON + b"Content-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + JSON + b"Content-Length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\n" + JSON + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\nTrailer: x\r\n\r\n",
    ],
    ids=["a length", "after an interim answer", "until the end", "chunks with a trailer"],
)
def test_an_answer_is_read_in_every_form(data: bytes) -> None:
    assert answered(data) == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"x" * 300_000, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X-Long: 1234567\r\n" * 20_000 + b"\r\n", "too many headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "content-length of '-1'"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "broken chunk"),
        (b"HTTP/2 200\r\n\r\n", "not HTTP/1.1"),
    ],
    ids=["no line", "many headers", "a wrong length", "a broken chunk", "another version"],
)
def test_what_cannot_be_an_answer_is_said(data: bytes, why: str) -> None:
    with pytest.raises(Unreachable, match=why):
        answered(data)
