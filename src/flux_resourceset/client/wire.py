"""As much of HTTP/1.1 as the API needs, over one kept connection.

The standard library's http.client takes three times as long to import as Python takes to start, mostly for the headers of
mail, and a command line must answer at once.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from flux_resourceset.client import proxies, replies
from flux_resourceset.client.replies import CHUNK, Progress, Reader, Reply, Unreachable

if TYPE_CHECKING:
    import ssl

_CONNECT = 10.0  # seconds after which a host that says nothing is taken for absent


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


class Connection:
    """The way to one server; `left` says how many seconds the next step may take."""

    def __init__(self, url: str, left: Callable[[], float], progress: Progress | None, environment: Mapping[str, str]) -> None:
        self._address = address = Address.of(url)
        self.proxy = proxies.proxy(address.secure, address.host, address.port, environment)
        self._authorities = {name: environment.get(name) or "" for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
        self.named = f"{url} through the proxy {self.proxy.shown}" if self.proxy else url  # for whoever has to mend it
        self._left = left
        self._progress = progress
        self._socket: socket.socket | None = None

    def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        kept = self._socket is not None
        connection = self._socket or self._connect()
        self._socket = None
        head = "\r\n".join([*self._start(method, target), *(f"{name}: {value}" for name, value in headers.items()), "\r\n"])
        reader = Reader(connection, self._left, self._progress)
        try:
            self._send(connection, head.encode("utf-8") + body)
            reply, closes = replies.reply(reader)
        except OSError as exc:
            connection.close()
            unknown = "; what it was asked to write may have happened, or still happen" if body else ""
            if isinstance(exc, TimeoutError):
                raise Unreachable(f"{self.named} did not answer in time{unknown}") from exc
            if kept and not reader.anything:
                raise Stale(f"{self.named} closes every connection") from exc
            raise Broken(f"{self.named} broke off: {_reason(exc)}{unknown}") from exc
        except Unreachable as exc:
            connection.close()
            raise Unreachable(f"cannot reach {self.named}: {exc}") if self.is_forwarded else exc from None
        finally:
            if self._progress:
                self._progress("", 0, 0)
        if closes:
            connection.close()
        else:
            self._socket = connection
        return reply

    def stream(self, target: str, headers: Mapping[str, str], quiet: float) -> Iterator[Reply]:
        """An answer without an end, over a connection of its own: its head, then its body as it comes.

        `quiet`: after so many seconds without a byte it is taken for dead.
        """
        connection = self._connect()
        head = "\r\n".join([*self._start("GET", target), *(f"{name}: {value}" for name, value in headers.items()), "\r\n"])
        try:
            self._send(connection, head.encode("utf-8"))
            reader = Reader(connection, lambda: quiet, None)
            status, found, _ = reader.head()
            while 100 <= status < 200:
                status, found, _ = reader.head()
            yield Reply(status, found, b"")
            for piece in reader.arriving(found):
                yield Reply(status, found, piece)
        except OSError as exc:
            raise Broken(f"{self.named} broke off: {_reason(exc)}") from exc
        finally:
            connection.close()

    @property
    def is_forwarded(self) -> bool:
        """Whether a proxy reads the requests and may answer them itself; through a tunnel it cannot."""
        return self.proxy is not None and not self._address.secure

    def _start(self, method: str, target: str) -> list[str]:
        """The first lines of a request. A proxy of plain HTTP is told the whole URL; a tunnel leads to the server itself."""
        path, host = f"{self._address.path}{target}", f"Host: {self._address.authority}"
        if self.proxy is not None and self.is_forwarded:
            return [f"{method} http://{self._address.authority}{path} HTTP/1.1", host, *_authorization(self.proxy)]
        return [f"{method} {path} HTTP/1.1", host]

    def _connect(self) -> socket.socket:
        end = self.proxy or self._address
        connection = None
        try:
            connection = self._open_socket(_addresses(end.host, end.port, min(self._left(), _CONNECT)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(self._left())
            if not self._address.secure:
                return connection
            if self.proxy is not None:
                self._open_tunnel(connection, self.proxy)
            return self._tls_context().wrap_socket(connection, server_hostname=self._address.host)
        except (OSError, UnicodeError, Unreachable) as exc:
            if connection is not None:
                connection.close()
            raise Unreachable(f"cannot reach {self.named}: {_reason(exc)}") from exc

    def _open_tunnel(self, connection: socket.socket, proxy: proxies.Proxy) -> None:
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        end = f"{host}:{self._address.port}"
        lines = [f"CONNECT {end} HTTP/1.1", f"Host: {end}", *_authorization(proxy), "\r\n"]
        connection.sendall("\r\n".join(lines).encode())
        reader = Reader(connection, self._left, self._progress)
        try:
            status, _, _ = reader.head()
        except Unreachable:
            raise Unreachable("it does not answer as an HTTP proxy") from None
        if not 200 <= status < 300:
            raise Unreachable(refusal(status))
        if reader.rest_of_buffer:
            raise Unreachable("it does not answer as an HTTP proxy: more came than an answer")
        connection.settimeout(self._left())

    def _tls_context(self) -> ssl.SSLContext:
        """The system's authorities, and those of the environment: OpenSSL by itself would pass over a file that is not there."""
        import ssl  # a third of the start-up time of everything else, and seldom needed on a laptop

        context = ssl.create_default_context()
        try:
            if file := self._authorities["SSL_CERT_FILE"]:
                context.load_verify_locations(cafile=file)
            for folder in filter(None, self._authorities["SSL_CERT_DIR"].split(os.pathsep)):
                context.load_verify_locations(capath=folder)
        except OSError as exc:  # also of what is no certificate
            raise Unreachable(f"SSL_CERT_FILE or SSL_CERT_DIR cannot be used: {_reason(exc)}") from exc
        return context

    def _open_socket(self, addresses: list[tuple[str, int]]) -> socket.socket:
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
            for start in range(0, len(view), CHUNK):
                if self._progress and len(view) > CHUNK:
                    self._progress("sending", start, len(view))
                connection.sendall(view[start : start + CHUNK])
        except ConnectionError:
            pass  # a server may refuse a body before it has read it; its answer says why

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _authorization(proxy: proxies.Proxy) -> list[str]:
    return [f"Proxy-Authorization: {proxy.authorization}"] if proxy.authorization else []


def refusal(status: int) -> str:
    """What the refusal of a proxy means."""
    if status == 407:
        return "it wants a user and a password, or others (407); write them as in http://user:password@proxy.example.com:3128"
    return f"it answered {status}"


def _addresses(host: str, port: int, seconds: float) -> list[tuple[str, int]]:
    """Where a name leads. The system knows no deadline for that, so it is asked in a thread that may be left behind."""
    try:
        # as bytes: for text Python loads the codec of international names, which no number needs
        addresses = [socket.getaddrinfo(host.encode(), port, flags=socket.AI_NUMERICHOST, type=socket.SOCK_STREAM)]
    except socket.gaierror:
        import threading

        addresses, failed = [], list[Exception]()

        def look_up() -> None:
            try:
                addresses.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as exc:
                failed.append(exc)

        thread = threading.Thread(target=look_up, daemon=True)
        thread.start()
        thread.join(seconds)
        if failed:
            raise failed[0] from None
        if not addresses:
            raise TimeoutError from None
    return [(str(address[0]), port) for *_, address in addresses[0]]


def _reason(exc: Exception) -> str:
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    return getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
