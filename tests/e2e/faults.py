"""A proxy between Flux and our server that can fail in every way a network or a server can."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Fault = Callable[["_Handler"], bool]  # True when it answered (or refused to) itself


class Proxy(ThreadingHTTPServer):
    """Passes requests on, unless a fault is set; remembers what was asked."""

    daemon_threads = True

    def __init__(self, target: tuple[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.fault: Fault | None = None
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    def asked_for(self, path_end: str) -> int:
        return sum(path.endswith(path_end) for path, _ in self.requests)


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the name that http.server calls
        self.server.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        fault = self.server.fault
        if fault is not None and fault(self):
            return
        try:
            status, headers, body = self._pass_on()
        except OSError:
            self.close_connection = True  # our server is away: so is this one
            return
        self.answer(status, body, headers)

    def _pass_on(self) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(*self.server.target, timeout=30)
        try:
            connection.request("GET", self.path, headers=dict(self.headers))
            response = connection.getresponse()
            body = response.read()
            kept = {n: v for n, v in response.getheaders() if n.lower() in ("content-type", "content-encoding", "vary")}
            return response.status, kept, body
        finally:
            connection.close()

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status not in (204, 304):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: `requests` remembers."""


# Faults


def status(code: int, body: bytes = b"", **headers: str) -> Fault:
    def fault(handler: _Handler) -> bool:
        handler.answer(code, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return True

    return fault


def body(text: str) -> Fault:
    """A 200 with a body of our choice."""
    return status(200, text.encode(), Content_Type="application/json")


def slow(seconds: float) -> Fault:
    def fault(handler: _Handler) -> bool:
        time.sleep(seconds)
        return False

    return fault


def hang_up(handler: _Handler) -> bool:
    handler.close_connection = True
    return True


def times(count: int, fault: Fault) -> Fault:
    """The fault for the first requests only."""
    left = [count]
    lock = threading.Lock()

    def counted(handler: _Handler) -> bool:
        with lock:
            left[0] -= 1
            active = left[0] >= 0
        return active and fault(handler)

    return counted


@contextmanager
def proxying(target: tuple[str, int], tls: tuple[Path, Path] | None = None) -> Iterator[Proxy]:
    """A running proxy; with a certificate and its key it speaks TLS."""
    with Proxy(target) as proxy:
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
            proxy.scheme = "https"
        thread = threading.Thread(target=proxy.serve_forever, name="proxy", daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
