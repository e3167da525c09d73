"""A proxy on loopback in front of a PostgreSQL, that stalls, cuts connections off, or keeps notices back as a pooler does."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

NOTICE = b"A"  # how the server's messages about NOTIFY begin


class Proxy:
    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self.keeps_notices = False
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Take everything, and say nothing any more, to nobody."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def cut(self) -> None:
        """Everybody who is connected."""
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self.flow()
        while self._open:
            time.sleep(0.001)

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                inner.close()
                continue
            with self._lock:
                self._open += [inner, outer]
            threading.Thread(target=self._serve, args=(inner, outer), daemon=True).start()

    def _serve(self, inner: socket.socket, outer: socket.socket) -> None:
        back = threading.Thread(target=self._pass_on, args=(outer, inner, self._without_notices()), daemon=True)
        back.start()
        self._pass_on(inner, outer, bytes)
        back.join()
        with self._lock:
            for each in (inner, outer):
                each.close()
                self._open.remove(each)

    def _pass_on(self, source: socket.socket, sink: socket.socket, change: Callable[[bytes], bytes]) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                self._flows.wait()
                sink.sendall(change(piece))
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _without_notices(self) -> Callable[[bytes], bytes]:
        """Of the server's messages those that are whole, but for the notices; what is left waits for the next piece."""
        rest = b""

        def change(piece: bytes) -> bytes:
            nonlocal rest
            if not self.keeps_notices:
                return piece
            rest, kept = rest + piece, b""
            while len(rest) >= 5 and len(rest) >= (size := 1 + int.from_bytes(rest[1:5])):
                message, rest = rest[:size], rest[size:]
                kept += message if message[:1] != NOTICE else b""
            return kept

        return change


@contextlib.contextmanager
def proxied(port: int, *, keeps_notices: bool = False) -> Iterator[Proxy]:
    proxy = Proxy(port)
    proxy.keeps_notices = keeps_notices
    try:
        yield proxy
    finally:
        proxy.close()
