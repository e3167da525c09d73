"""As much of HTTP/1.1 as the API needs, over one kept connection.

The standard library's http.client takes three times as long to import as Python takes to start, mostly for the headers of
mail, and a command line must answer at once.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

Progress = Callable[[str, int, int], None]  # what happens, bytes done, bytes in all (0: unknown); "" when it is over

_MAX_HEAD = 256 * 1024  # no honest answer has more header bytes
_CHUNK = 256 * 1024
_SLICE = 0.25  # seconds between two signs of life while waiting
_CONNECT = 10.0  # seconds after which a host that says nothing is taken for absent


class Unreachable(Exception):
    """There is no answer, or none that can be understood."""


class Broken(Unreachable):
    """The connection ended after the request was sent: nobody knows whether it was carried out."""


class Stale(Broken):
    """A kept connection was closed by the other side before it took the request."""


class Address(NamedTuple):
    """A base URL, taken apart."""

    secure: bool
    host: str
    port: int
    authority: str
    path: str

    @classmethod
    def of(cls, url: str) -> Address:
        scheme, _, rest = url.partition("://")
        authority, slash, path = rest.partition("/")
        host, colon, port = authority.rpartition(":") if not authority.endswith("]") else (authority, "", "")
        if not colon:
            host, port = authority, "443" if scheme == "https" else "80"
        usable = port.isascii() and port.isdigit() and 0 < int(port) < 65536 and bool(host) and not set(host) & set("@?# ")
        if scheme not in ("http", "https") or not usable or set(path) & set("?# ") or not url.isprintable():
            raise ValueError(f"{url!r} is no base URL; write it as in http://127.0.0.1:8080")
        return cls(scheme == "https", host.strip("[]"), int(port), authority, (slash + path).rstrip("/"))


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case; the values of one that came more than once are lines
    body: bytes


class Connection:
    """The way to one server; `left` says how many seconds the next step may take."""

    def __init__(self, url: str, left: Callable[[], float], progress: Progress | None) -> None:
        self._url = url
        self._address = Address.of(url)
        self._left = left
        self._progress = progress
        self._socket: socket.socket | None = None

    def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        kept = self._socket is not None
        connection = self._socket or self._connect()
        self._socket = None
        lines = [f"{method} {self._address.path}{target} HTTP/1.1", f"Host: {self._address.authority}"]
        head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "\r\n"])
        reader = _Reader(connection, self._left, self._progress)
        try:
            self._send(connection, head.encode("utf-8") + body)
            reply, closes = _reply(reader)
        except OSError as exc:
            connection.close()
            unknown = "; what it was asked to write may have happened, or still happen" if body else ""
            if isinstance(exc, TimeoutError):
                raise Unreachable(f"{self._url} did not answer in time{unknown}") from exc
            if kept and not reader.anything:
                raise Stale(f"{self._url} closes every connection") from exc
            raise Broken(f"{self._url} broke off: {_reason(exc)}{unknown}") from exc
        except Unreachable:
            connection.close()
            raise
        finally:
            if self._progress:
                self._progress("", 0, 0)
        if closes:
            connection.close()
        else:
            self._socket = connection
        return reply

    def _connect(self) -> socket.socket:
        try:
            connection = self._reached(_addresses(self._address.host, self._address.port, min(self._left(), _CONNECT)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(self._left())
            if self._address.secure:
                import ssl  # a third of the start-up time of everything else, and seldom needed on a laptop

                return ssl.create_default_context().wrap_socket(connection, server_hostname=self._address.host)
            return connection
        except (OSError, UnicodeError) as exc:
            raise Unreachable(f"cannot reach {self._url}: {_reason(exc)}") from exc

    def _reached(self, addresses: list[tuple[str, int]]) -> socket.socket:
        for position, address in enumerate(addresses, start=1):
            try:
                return socket.create_connection(address, min(self._left(), _CONNECT))
            except OSError:
                if position == len(addresses):
                    raise
        raise OSError("the name has no address")

    def _send(self, connection: socket.socket, message: bytes) -> None:
        view = memoryview(message)
        try:
            for start in range(0, len(view), _CHUNK):
                if self._progress and len(view) > _CHUNK:
                    self._progress("sending", start, len(view))
                connection.sendall(view[start : start + _CHUNK])
        except (BrokenPipeError, ConnectionResetError):
            pass  # a server may refuse a body before it has read it; its answer says why

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _addresses(host: str, port: int, seconds: float) -> list[tuple[str, int]]:
    """Where a name leads. The system knows no deadline for that, so it is asked in a thread that may be left behind."""
    try:
        found = [socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST, type=socket.SOCK_STREAM)]
    except socket.gaierror:
        import threading

        found, failed = [], list[Exception]()

        def look_up() -> None:
            try:
                found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as exc:
                failed.append(exc)

        thread = threading.Thread(target=look_up, daemon=True)
        thread.start()
        thread.join(seconds)
        if failed:
            raise failed[0] from None
        if not found:
            raise TimeoutError from None
    return [(str(address[0]), port) for *_, address in found[0]]


def _reply(reader: _Reader) -> tuple[Reply, bool]:
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


class _Reader:
    """The bytes of one answer."""

    def __init__(self, connection: socket.socket, left: Callable[[], float], progress: Progress | None) -> None:
        self._connection = connection
        self._left = left
        self._progress = progress
        self._buffer = bytearray()
        self.anything = False

    def _more(self) -> bytes:
        ends = time.monotonic() + self._left()
        patience = _SLICE if self._progress and not self.anything else self._left()
        while True:
            self._connection.settimeout(max(min(patience, ends - time.monotonic()), 0.001))
            try:
                received = self._connection.recv(_CHUNK)
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
            if self._progress and length > _CHUNK:
                self._progress("receiving", len(self._buffer), length)
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def chunks(self) -> bytes:
        body = bytearray()
        while True:
            size = self.line().partition(b";")[0].strip()
            try:
                length = int(size, 16)
            except ValueError:
                raise Unreachable("the answer has a broken chunk") from None
            if length == 0:
                while self.line():
                    pass  # trailers say nothing we need
                return bytes(body)
            body += self.exactly(length)
            self.line()

    def rest(self) -> bytes:
        while received := self._more():
            self._buffer += received
        return bytes(self._buffer)


def _reason(exc: Exception) -> str:
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    return getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
