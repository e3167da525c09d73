"""Requests that come when they are due, whether or not earlier ones were answered: each on a new connection, as Flux asks.

The order comes as JSON on stdin, the result goes to stdout as JSON. A wait counts from the moment at which the request was due,
so a load generator that falls behind makes the figures worse, not better; by how much it fell behind is told beside. One thread
with bare sockets and epoll, and ports that it counts itself: a connection costs it little more than what the kernel takes.
"""

from __future__ import annotations

import _socket  # without the convenience of socket.socket, which costs as much as a send
import errno
import gc
import json
import os
import random
import resource
import select
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

AT_MOST = 8192  # bytes that one read takes; an answer of the generated fleet is smaller when packed
FIRST_PORT, LAST_PORT = (
    10_240,
    60_999,
)  # of our side. A closed connection holds its port for a minute: each is used once per address
ADDRESSES = 250  # 127.0.1.1 and so on: enough for 12 million connections
PATIENCE = 20.0  # seconds after the last request was due; what was not answered then is an error
NOT_YET = {errno.EINPROGRESS, errno.EAGAIN, errno.ENOTCONN}


class Ports:
    """Addresses and ports of our side, each handed out once."""

    def __init__(self) -> None:
        self._port, self._address = LAST_PORT, random.SystemRandom().randrange(ADDRESSES)  # a run before may hold some

    def bind(self, connection: _socket.socket) -> None:
        while True:
            self._port += 1
            if self._port > LAST_PORT:
                self._port, self._address = FIRST_PORT, (self._address + 1) % ADDRESSES
            try:
                connection.bind((f"127.0.1.{self._address + 1}", self._port))
            except OSError as exc:
                if exc.errno != errno.EADDRINUSE:
                    raise
            else:
                return


class Open:
    """A connection on its way."""

    __slots__ = ("connection", "number", "received", "request")

    def __init__(self, connection: _socket.socket, number: int, request: bytes) -> None:
        self.connection = connection
        self.number = number
        self.request = request  # what was not sent yet
        self.received = b""


class Arrivals:
    def __init__(self, requests: list[bytes], dues: list[float], ports: list[int]) -> None:
        """The requests, when each is due (seconds from the start, ascending), and servers that are asked in turn."""
        self._requests, self._dues = requests, dues
        self._addresses = [("127.0.0.1", port) for port in ports]
        self._ports = Ports()
        self._epoll = select.epoll()
        self._most = _descriptors() - 100
        self._open: dict[int, Open] = {}  # by descriptor
        self.waits = [-1.0] * len(requests)
        self.behind = 0.0  # by how much the load was late at worst
        self.most_open = 0
        self.errors: Counter[str] = Counter()

    def run(self) -> None:
        requests, dues, clock = self._requests, self._dues, time.perf_counter
        sent, count, last = 0, len(requests), 0.0
        self._start = start = clock()
        while sent < count or self._open:
            now = clock() - start
            burst = sent + 64  # then look for answers, for these must not wait for us
            while sent < count and dues[sent] <= now and sent < burst and len(self._open) < self._most:
                self.behind = max(self.behind, now - dues[sent])
                self._connect(sent)
                sent += 1
                last = now = clock() - start
            self.most_open = max(self.most_open, len(self._open))
            pause = max(0.0, dues[sent] - now) if sent < count else 0.1
            for descriptor, event in self._epoll.poll(pause, 1024):
                self._ready(descriptor, event)
            if sent == count and now > last + PATIENCE:
                break
        for each in list(self._open.values()):
            self._failed(each, "no answer")

    def _connect(self, number: int) -> None:
        connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK)
        self._ports.bind(connection)
        each = Open(connection, number, self._requests[number])
        self._open[connection.fileno()] = each
        refused = connection.connect_ex(self._addresses[number % len(self._addresses)])
        if refused and refused != errno.EINPROGRESS:
            self._failed(each, os.strerror(refused))
        elif self._send(each):  # on loopback a connection is there at once, unless the server's queue is full
            self._epoll.register(connection, select.EPOLLIN)
        elif connection.fileno() >= 0:
            self._epoll.register(connection, select.EPOLLOUT)

    def _send(self, each: Open) -> bool:
        try:
            each.request = each.request[each.connection.send(each.request) :]
        except OSError as exc:
            if exc.errno not in NOT_YET:
                self._failed(each, str(exc.strerror))
            return False
        return not each.request

    def _ready(self, descriptor: int, event: int) -> None:
        each = self._open[descriptor]
        if each.request:
            if self._send(each):
                self._epoll.modify(descriptor, select.EPOLLIN)
            return
        try:
            data = each.connection.recv(AT_MOST)
        except OSError as exc:
            self._failed(each, str(exc.strerror))
            return
        if each.received:
            data = each.received + data if data else b""
        if not data.startswith(b"HTTP/1.1 200 "):
            self._failed(each, data[:40].partition(b"\r")[0].decode("latin-1") or "closed without an answer")
        elif _whole(data):
            self.waits[each.number] = time.perf_counter() - self._start - self._dues[each.number]
            self._close(each)
        else:
            each.received = data

    def _failed(self, each: Open, why: str) -> None:
        self.errors[why] += 1
        self._close(each)

    def _close(self, each: Open) -> None:
        del self._open[each.connection.fileno()]
        each.connection.close()  # epoll forgets it by itself


def _descriptors() -> int:
    """As many as we may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def _whole(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n") + 4
    start = data.find(b"content-length: ", 0, end) + 16
    return end > 3 and start > 15 and len(data) - end == int(data[start : data.index(b"\r", start)])


def spread(count: int, seconds: float) -> list[float]:
    """When each request is due: at random within a time, for clusters know nothing of each other."""
    chance = random.Random(count)  # the same in every run
    return sorted(chance.random() * seconds for _ in range(count))


def summary(arrivals: Arrivals, cpu: float) -> dict[str, Any]:
    waits = sorted(each for each in arrivals.waits if each >= 0)
    return {
        "answered": len(waits),
        "errors": dict(arrivals.errors),
        "waits": {str(share): waits[min(len(waits) - 1, int(len(waits) * share))] for share in (0.5, 0.95, 0.99, 0.999, 1.0)}
        if waits
        else {},
        "behind": arrivals.behind,
        "most_open": arrivals.most_open,
        "cost": cpu / max(1, len(arrivals.waits)),  # seconds of the load's own core, for each request
    }


def main() -> None:
    """For each line on stdin an order: a file of requests, one per line, over how many seconds they come, the servers' ports."""
    gc.disable()
    texts: dict[str, list[bytes]] = {}
    for line in sys.stdin:
        order = json.loads(line)
        place = order["requests"]
        if place not in texts:
            texts[place] = [text.encode() for text in json.loads(Path(place).read_text())]
        requests = texts[place]
        arrivals = Arrivals(requests, spread(len(requests), order["seconds"]), order["ports"])
        began = time.process_time()
        arrivals.run()
        json.dump(summary(arrivals, time.process_time() - began), sys.stdout)
        print(flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
