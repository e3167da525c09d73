"""The answer to a request, read from its connection: HTTP/1.1 with a length, in chunks, or until the end."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

Progress = Callable[[str, int, int], None]  # what happens, bytes done, bytes in all (0: unknown); "" when it is over

CHUNK = 256 * 1024  # bytes to take, or to send, in one step
_MAX_HEAD = 256 * 1024  # no honest answer has more header bytes
_SLICE = 0.25  # seconds between two signs of life while waiting


class Unreachable(Exception):
    """There is no answer, or none that can be understood."""


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case; the values of one that came more than once are lines
    body: bytes


def reply(reader: Reader) -> tuple[Reply, bool]:
    """The answer, and whether the connection ends with it."""
    status, headers, version = reader.head()
    while 100 <= status < 200:
        status, headers, version = reader.head()
    closes = headers.get("connection", "").lower() == "close" or version == "HTTP/1.0"
    if status in (204, 304):
        return Reply(status, headers, b""), closes
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Reply(status, headers, reader.chunks()), closes
    length = headers.get("content-length")
    if length is None:
        return Reply(status, headers, reader.rest()), True
    if not length.isascii() or not length.isdigit():
        raise Unreachable(f"the server sent a content-length of {length!r}")
    return Reply(status, headers, reader.exactly(int(length))), closes


class Reader:
    """The bytes of one answer."""

    def __init__(self, connection: socket.socket, left: Callable[[], float], progress: Progress | None) -> None:
        self._connection = connection
        self._left = left
        self._progress = progress
        self._buffer = bytearray()
        self.anything = False

    @property
    def rest_of_buffer(self) -> bytes:
        """What came along with what was read."""
        return bytes(self._buffer)

    def _more(self) -> bytes:
        ends = time.monotonic() + self._left()
        patience = _SLICE if self._progress and not self.anything else self._left()
        while True:
            self._connection.settimeout(max(min(patience, ends - time.monotonic()), 0.001))
            try:
                received = self._connection.recv(CHUNK)
                self.anything = self.anything or bool(received)
                return received
            except TimeoutError:
                if time.monotonic() >= ends or not self._progress:
                    raise
                self._progress("waiting", 0, 0)

    def _fill(self) -> None:
        received = self._more()
        if not received:
            raise ConnectionResetError("the connection ended early")
        self._buffer += received

    def line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _MAX_HEAD:
                raise Unreachable("the answer is not HTTP")
            self._fill()
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        return line

    def head(self) -> tuple[int, dict[str, str], str]:
        version, _, rest = self.line().decode("latin-1").partition(" ")
        status = rest[:3]
        if not version.startswith("HTTP/1.") or not status.isascii() or not status.isdigit() or len(status) != 3:
            raise Unreachable("the answer is not HTTP/1.1; check the URL")
        headers: dict[str, str] = {}
        size = 0
        while line := self.line():
            size += len(line)
            if size > _MAX_HEAD:
                raise Unreachable("the answer has too many headers")
            name, _, value = line.decode("utf-8", "replace").partition(":")
            key = name.strip().lower()
            headers[key] = f"{headers[key]}\n{value.strip()}" if key in headers else value.strip()
        return int(status), headers, version

    def exactly(self, length: int) -> bytes:
        while len(self._buffer) < length:
            self._fill()
            if self._progress and length > CHUNK:
                self._progress("receiving", len(self._buffer), length)
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def chunks(self) -> bytes:
        body = bytearray()
        while length := self._chunk_length():
            body += self.exactly(length)
            self.line()
        while self.line():
            pass  # trailers say nothing we need
        return bytes(body)

    def arriving(self, headers: Mapping[str, str]) -> Iterator[bytes]:
        """The body of an answer as it comes."""
        length = headers.get("content-length", "")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := self._chunk_length():
                yield self.exactly(size)
                self.line()
        elif length.isascii() and length.isdigit():
            yield self.exactly(int(length))
        else:
            yield self.rest_of_buffer
            while received := self._more():
                yield received

    def _chunk_length(self) -> int:
        size = self.line().partition(b";")[0].strip()
        try:
            return int(size, 16)
        except ValueError:
            raise Unreachable("the answer has a broken chunk") from None

    def rest(self) -> bytes:
        while received := self._more():
            self._buffer += received
        return bytes(self._buffer)
