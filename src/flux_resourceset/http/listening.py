"""Listens: takes connections as bare descriptors, answers the polls on them, and hands everything else to the ordinary route.

Flux opens a new connection for every poll, so what a connection costs counts most, and a transport of the event loop costs
more than the answer. A descriptor has none until it needs one: for a request that is not a whole, plain poll, or for an answer
that the client does not read at once.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import select
import socket
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import uvicorn

from flux_resourceset.ahead import Late
from flux_resourceset.http.ordinary import Brought, OrdinaryProtocol
from flux_resourceset.http.poll import MAX_ASKED_BYTES, Fast, Poll
from flux_resourceset.http.unread import Unread

log = logging.getLogger(__name__)

_IS_POSSIBLE = hasattr(select, "epoll")  # on Linux; elsewhere uvicorn listens, and polls take the fast path on its transports

# How much is done before others have their turn of the event loop: mostly less than a millisecond.
ROUNDS_PER_TURN = 4  # as long as there is something to do: a turn of the loop costs more than a question to the kernel
EVENTS_PER_ROUND = 64
ACCEPTS_PER_ROUND = 64

PAUSE_SECONDS = 0.1  # before more connections are taken, when the system had no descriptor or memory for one
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

Asked = tuple[int, bytes, list[Poll]]  # descriptor, what was read from it, what that asks for


class Server(uvicorn.Server):
    """uvicorn's, with its own way of listening; without a fast path it is all uvicorn's."""

    def __init__(self, config: uvicorn.Config, fast: Fast | None, unread: Unread) -> None:
        super().__init__(config)
        self._unread = unread
        self._listening: Listening | None = None
        if fast is not None and _IS_POSSIBLE:
            self._listening = Listening(fast, self._protocol, self.server_state.tasks)

    def _protocol(self) -> OrdinaryProtocol:
        make: Any = self.config.http_protocol_class
        made: OrdinaryProtocol = make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        return made

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets if self._listening is None else [])
        if self._listening is not None:
            self._listening.open(sockets or [])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._listening is not None:
            self._listening.close()  # with idle connections, which uvicorn does not know of
        await super().shutdown(sockets)

    def sweep(self) -> None:
        """Close what is idle, and what is not read; called once a period."""
        if self._listening is not None:
            self._listening.sweep()
        self._unread.sweep(time.monotonic())


class Listening:
    def __init__(self, fast: Fast, make_protocol: Callable[[], OrdinaryProtocol], tasks: set[asyncio.Task[None]]) -> None:
        self._fast = fast
        self._make_protocol = make_protocol
        self._tasks = tasks  # those that the server waits for before it ends
        self._listeners: dict[int, socket.socket] = {}
        self._kept: dict[int, int] = {}  # descriptors that wait for a request, and the period in which they last were heard
        self._ending: set[int] = set()  # those of them that are not listened to any more
        self._period = 0
        self._is_exhausted = False

    def open(self, sockets: Iterable[socket.socket]) -> None:
        """Begin to take connections, on the running loop."""
        self._loop = asyncio.get_running_loop()
        # one descriptor for the event loop, behind which are all others: they need no objects of it, and come many at a time
        self._epoll = select.epoll()
        for listener in sockets:
            listener.setblocking(False)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
            self._listeners[listener.fileno()] = listener
            self._epoll.register(listener.fileno(), select.EPOLLIN)
        self._loop.add_reader(self._epoll.fileno(), self._turn)

    def close(self) -> None:
        """Answer what has come, and take no more."""
        self._turn()
        self._loop.remove_reader(self._epoll.fileno())
        self._listeners.clear()
        for fd in list(self._kept):
            self._close(fd)
        self._epoll.close()

    def sweep(self) -> None:
        """Close what has been idle for a whole period; called once a period."""
        for fd, period in list(self._kept.items()):
            if period < self._period:
                self._close(fd)
        self._period += 1

    # In each round: first all is read, then tokens and store are looked at once, which tells of whatever was written
    # before any of it was sent, and then all is answered.

    def _turn(self) -> None:
        for _ in range(ROUNDS_PER_TURN):
            events = self._epoll.poll(0, EVENTS_PER_ROUND)
            if not events:
                return
            arrived: list[tuple[int, bytes]] = []
            for fd, _ in events:
                if fd in self._kept:
                    self._read(fd, arrived)
                elif fd in self._listeners:
                    self._accept(self._listeners[fd], arrived)
            if arrived:
                self._answer(arrived)

    def _accept(self, listener: socket.socket, arrived: list[tuple[int, bytes]]) -> None:
        for _ in range(ACCEPTS_PER_ROUND):
            try:
                fd, _ = listener._accept()  # type: ignore[attr-defined]  # accept() without an object, which costs as much again
            except BlockingIOError:
                break
            except OSError as exc:
                if exc.errno in _EXHAUSTED:
                    self._pause(listener, exc)
                    return
                continue  # the client has gone
            os.set_blocking(fd, False)
            self._read(fd, arrived)
        self._is_exhausted = False

    def _pause(self, listener: socket.socket, exc: OSError) -> None:
        """They wait in the kernel meanwhile. It would tell of them again and again, so it is not asked."""
        if not self._is_exhausted:
            log.warning("no more connections can be taken for now: %s", exc.strerror)
        self._is_exhausted = True
        self._epoll.unregister(listener.fileno())
        self._loop.call_later(PAUSE_SECONDS, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if listener.fileno() in self._listeners:
            self._epoll.register(listener.fileno(), select.EPOLLIN)

    def _read(self, fd: int, arrived: list[tuple[int, bytes]]) -> None:
        try:
            data = os.read(fd, MAX_ASKED_BYTES)
        except BlockingIOError:
            self._keep(fd)
        except OSError:  # reset
            self._close(fd)
        else:
            if not data:
                self._close(fd)
            elif fd not in self._ending:
                arrived.append((fd, data))

    def _answer(self, arrived: list[tuple[int, bytes]]) -> None:
        started = time.perf_counter()
        self._fast.reload()
        asked: list[Asked] = []
        for fd, data in arrived:
            polls = self._fast.polls(data)
            if polls is None:
                self._hand_over(fd, Brought(data))
            else:
                asked.append((fd, data, polls))
        if not asked:
            return
        try:
            self._fast.follower.look()
        except Late:
            for fd, _, _ in asked:
                self._let_go(fd)
            self._start(self._wait(asked, started))
        except Exception:  # the ordinary route says what is wrong
            self._hand_over_all(asked)
        else:
            self._respond(asked, started)

    async def _wait(self, asked: list[Asked], started: float) -> None:
        """Until the fleet holds all that was written before they asked."""
        try:
            await self._fast.follower.catch_up()
        except Exception:
            self._hand_over_all(asked)
        except asyncio.CancelledError:  # the server stops, and the time to finish is over
            for fd, _, _ in asked:
                os.close(fd)
            raise
        else:
            self._respond(asked, started)

    def _respond(self, asked: list[Asked], started: float) -> None:
        for fd, data, polls in asked:
            responses = self._fast.responses(polls, started)
            if responses is None:
                self._hand_over(fd, Brought(data))
                continue
            try:
                sent = os.write(fd, responses)
            except BlockingIOError:
                sent = 0
            except OSError:  # reset
                self._close(fd)
                continue
            closes = polls[-1][-1]
            if sent < len(responses):
                self._hand_over(fd, Brought(unsent=responses[sent:], closes=closes))
            elif closes and len(data) < MAX_ASKED_BYTES:
                self._close(fd)
            elif closes:
                self._end(fd)
            else:
                self._keep(fd)

    # What becomes of a descriptor

    def _keep(self, fd: int) -> None:
        """For the next request, if it comes soon."""
        if fd not in self._kept:
            if not self._listeners:
                os.close(fd)  # the server stops
                return
            self._epoll.register(fd, select.EPOLLIN)
        self._kept[fd] = self._period

    def _let_go(self, fd: int) -> None:
        """Listen no more, but leave it open."""
        if self._kept.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def _close(self, fd: int) -> None:
        self._kept.pop(fd, None)
        self._ending.discard(fd)
        os.close(fd)

    def _end(self, fd: int) -> None:
        """Where more may have come than was read: to close it would be to reset it, which may take the answer away."""
        with socket.socket(fileno=os.dup(fd)) as whole:
            whole.shutdown(socket.SHUT_WR)
        self._keep(fd)
        self._ending.add(fd)

    def _hand_over_all(self, asked: list[Asked]) -> None:
        for fd, data, _ in asked:
            self._hand_over(fd, Brought(data))

    def _hand_over(self, fd: int, brought: Brought) -> None:
        self._let_go(fd)
        protocol = self._make_protocol()
        protocol.bring(brought)
        self._start(self._connect(protocol, socket.socket(fileno=fd)))

    async def _connect(self, protocol: OrdinaryProtocol, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            connection.close()  # the client has gone

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
