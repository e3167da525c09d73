"""Servers on loopback for one test: one that answers as the API does, with TLS or without, and a proxy."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Handler = Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(handle: Handler) -> Iterator[int]:
    """The port of a server that hands every connection to a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def accept() -> None:
            with contextlib.suppress(OSError):  # the listener was closed
                while True:
                    connection, _ = listener.accept()
                    threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
                    threads[-1].start()

        def serve(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                connection.settimeout(20)
                handle(connection)

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(10)
        for thread in threads:
            thread.join(10)


def head(connection: socket.socket) -> list[str]:
    """The lines of a request without a body."""
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        received = connection.recv(1)
        if not received:
            raise OSError("the client has gone")
        text += received
    return text.decode().split("\r\n")[:-2]


def answer(value: object, status: str = "200 OK", kind: str = "application/json") -> bytes:
    body = json.dumps(value).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def api(certificate: Path | None = None) -> Handler:
    """Says which line of request it got, on a connection that is kept."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
    if context and certificate:
        context.load_cert_chain(certificate)

    def handle(connection: socket.socket) -> None:
        speaking = context.wrap_socket(connection, server_side=True) if context else connection
        with speaking:
            while True:
                speaking.sendall(answer({"request": head(speaking)[0]}))

    return handle


class Proxy:
    """A proxy with CONNECT and with whole URLs; it remembers what it was asked."""

    def __init__(self, port: int, credentials: str | None = None) -> None:
        self.heads: list[list[str]] = []
        self._port = port  # of the one server that it knows, whatever it is called
        self._credentials = credentials

    def __call__(self, connection: socket.socket) -> None:
        lines = head(connection)
        self.heads.append(lines)
        if self._credentials and f"Proxy-Authorization: {self._credentials}" not in lines:
            connection.sendall(answer("who?", "407 Proxy Authentication Required", "text/html"))
            return
        with socket.create_connection(("127.0.0.1", self._port)) as upstream:
            if lines[0].startswith("CONNECT "):
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                while True:
                    _forward(lines, connection, upstream)
                    lines = head(connection)
            _join(connection, upstream)


def _forward(lines: list[str], client: socket.socket, server: socket.socket) -> None:
    method, url, version = lines[0].split(" ")
    path = "/" + url.removeprefix("http://").partition("/")[2]
    server.sendall("\r\n".join([f"{method} {path} {version}", *lines[1:], "\r\n"]).encode())
    found = head(server)
    (size,) = (int(line.partition(":")[2]) for line in found if line.startswith("Content-Length"))
    client.sendall("\r\n".join([*found, "\r\n"]).encode() + server.recv(size, socket.MSG_WAITALL))


def _join(one: socket.socket, other: socket.socket) -> None:
    ways = {one: other, other: one}
    while True:
        for source in select.select(list(ways), [], [], 20)[0]:
            data = source.recv(65536)
            if not data:
                return
            ways[source].sendall(data)
