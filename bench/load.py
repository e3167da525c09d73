"""The load generator: a JSON order on stdin, what came of it on stdout; never more than its connections and its time.

Sockets block and are read in the order in which they were written: two system calls less per request than with epoll,
because a load generator that is slower than the server measures itself.
"""

from __future__ import annotations

import _socket  # without the convenience of socket.socket, which costs as much as a send
import itertools
import json
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

IP_BIND_ADDRESS_NO_PORT = 24  # choose the port when connecting; from linux/in.h
NUMBER = b"0123456789abcdef" * 2  # in the place of which a request gets an id of its own
TIMEOUT = (30).to_bytes(8, "little") + bytes(8)  # struct timeval: a server that hangs must not hang the measurement


class Sent(NamedTuple):
    connection: _socket.socket
    started: float


class Load:
    def __init__(self, port: int, connections: int, keep_alive: bool, numbered: bool = False) -> None:
        self.address = ("127.0.0.1", port)
        self.connections = connections
        self.keep_alive = keep_alive
        self.numbered = numbered  # each request holds a NUMBER, and gets one of its own
        self.latencies: list[float] = []

    def answers(self, requests: Iterable[bytes], end: float = float("inf")) -> Iterator[bytes]:
        """Send the requests until the end, over new connections as Flux does or over the same ones, and yield the answers."""
        waiting: deque[Sent] = deque()
        for request in requests:
            connection = None
            if len(waiting) == self.connections:
                sent = waiting.popleft()
                yield self._received(sent)
                if self.keep_alive:
                    connection = sent.connection
                else:
                    sent.connection.close()
            now = time.perf_counter()
            if now >= end:
                break
            connection = connection or self._connected()
            connection.send(request.replace(NUMBER, b"%032x" % len(self.latencies)) if self.numbered else request)
            waiting.append(Sent(connection, now))
        for sent in waiting:
            yield self._received(sent)
            sent.connection.close()

    def _connected(self) -> _socket.socket:
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, TIMEOUT)
        # a closed connection holds its port for a while, and one address has 28,000: change the address in time
        connection.setsockopt(_socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        connection.bind((f"127.0.1.{len(self.latencies) // 8192 % 250 + 1}", 0))
        connection.connect(self.address)
        return connection

    def _received(self, sent: Sent) -> bytes:
        data = whole_answer(sent.connection)
        self.latencies.append(time.perf_counter() - sent.started)
        return data


def whole_answer(connection: _socket.socket) -> bytes:
    data: bytes = connection.recv(65536)
    if not data.startswith(b"HTTP/1.1 200 "):
        raise SystemExit(f"not a good answer: {data[:400]!r}")
    end = data.index(b"\r\n\r\n") + 4
    head = data[:end].lower()
    start = head.index(b"content-length: ") + 16
    size = end + int(head[start : head.index(b"\r", start)])
    while len(data) < size:
        more = connection.recv(65536)
        if not more:
            raise SystemExit("an answer was cut off")
        data += more
    return data


def body(data: bytes) -> bytes:
    head, _, content = data.partition(b"\r\n\r\n")
    return zlib.decompress(content, wbits=31) if b"content-encoding: gzip" in head.lower() else content


def run(order: dict[str, Any]) -> dict[str, Any]:
    """`seconds`: repeat the requests for that long. Without: each once, after the `write`; `fresh` counts the `marker`."""
    requests = [request.encode() for request in order["requests"]]
    load = Load(order["port"], order["connections"], order["keep_alive"], NUMBER in requests[0])
    kept: list[bytes] = []
    began = time.perf_counter()
    if order["seconds"]:
        for _ in load.answers(itertools.cycle(requests), began + order["seconds"]):
            pass
    else:
        for _ in Load(order["port"], 1, False).answers([order["write"].encode()] if order["write"] else []):
            pass
        kept = list(load.answers(requests))
    seconds = time.perf_counter() - began
    latencies = sorted(load.latencies)
    return {
        "requests": len(latencies),
        "seconds": seconds,
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[len(latencies) * 99 // 100],
        "fresh": sum(order["marker"].encode() in body(answer) for answer in kept),  # looked at when the clock has stopped
    }


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
