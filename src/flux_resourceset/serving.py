"""Serving: the listening socket, uvicorn with the fast path in front of it, and the way out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator

import uvicorn
import uvloop

from flux_resourceset import collector, errors, openapi, settings, starting, tokens
from flux_resourceset.http import app, feed, listening, metrics, ordinary, poll, unread, workers
from flux_resourceset.ledger import Ledger

log = logging.getLogger(__name__)

DRAIN_SECONDS = 8  # to finish requests in flight; with the rest of the way out it stays below ten
TAKE_IN_SECONDS = 0.5  # to accept whoever waits for that, and then a moment to read what they sent
READ_SECONDS = 0.05
LAST_SECONDS = 9  # to be gone: a thread in a long computation, or waiting for a lock, would keep the process

SWITCH_SECONDS = 0.001  # how long a thread may compute while another one, such as that of the polls, wants its turn


IN_EARNEST = signal.SIGUSR1  # from the supervisor to a worker that is ending already
BACKLOG = 65_535  # connections that wait to be accepted: Flux polls for all clusters at once; the kernel has a limit of its own


def listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as exc:
        raise errors.StartupError(f"LISTEN_ADDR {host}:{port} cannot be used: {exc.strerror or exc}") from exc


def prepare() -> None:
    """Before the fleet is loaded: polls do not wait long for what other threads and the garbage collector do."""
    sys.setswitchinterval(SWITCH_SECONDS)
    collector.hold_back()


def run(
    configured: settings.Settings,
    ledger: Ledger,
    known: tokens.Tokens,
    document: bytes | None,
    listener: socket.socket,
    worker: workers.Worker | None = None,
) -> None:
    """Serve until a signal ends it; `document`: an OpenAPI document in the place of the one made from the kinds."""
    collector.freeze_loaded()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(configured, ledger, known, document, listener, worker))


class _Server(listening.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        fast: poll.Fast | None,
        slow: unread.Unread,
        followed: feed.Feed,
        ledger: Ledger,
        is_worker: bool,
    ) -> None:
        super().__init__(config, fast, slow)
        self._is_worker = is_worker
        self._feed = followed
        self._ledger = ledger

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._take_in(sockets or [])
        self._feed.close()  # they would never end by themselves
        self._ledger.stop_rehearsals()  # nothing is lost with them
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise the signal again after a clean stop; we exit with 0."""
        loop = asyncio.get_running_loop()
        if self._is_worker:  # it may get SIGTERM from the supervisor and from whoever ends the whole group
            loop.add_signal_handler(signal.SIGTERM, self._stop)
            loop.add_signal_handler(IN_EARNEST, self._stop_in_earnest)
        else:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, lambda: self._stop_in_earnest() if self.should_exit else self._stop())
        yield

    def _stop(self) -> None:
        if not self.should_exit:
            last = threading.Timer(LAST_SECONDS, _leave)
            last.daemon = True
            last.start()
        self.should_exit = True

    def _stop_in_earnest(self) -> None:
        self._stop()
        self.force_exit = True

    async def _take_in(self, sockets: list[socket.socket]) -> None:
        """Connections that wait to be accepted would be lost with the socket; then nobody else can connect."""
        queue = select.poll()
        for listener in sockets:
            queue.register(listener, select.POLLIN)
        end = time.monotonic() + TAKE_IN_SECONDS
        while queue.poll(0) and time.monotonic() < end and not self.force_exit:  # noqa: ASYNC110  # accepting sets no event
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        await asyncio.sleep(READ_SECONDS)


def _leave() -> None:
    """At once, whatever is running: what was acknowledged is on the disk, and what was not is there wholly or not at all."""
    log.warning("stopped; what was still running was cut off")
    os._exit(0)


async def _run(
    configured: settings.Settings,
    ledger: Ledger,
    known: tokens.Tokens,
    own_document: bytes | None,
    listener: socket.socket,
    worker: workers.Worker | None,
) -> None:
    measures = metrics.Metrics(ledger.follower)
    made = openapi.Lazy(ledger.kinds, writable=configured.crud)
    document = made if own_document is None else lambda: own_document
    followed = feed.Feed(ledger.follower, measures, known)
    table = app.routes(ledger.kinds, ledger, measures, document, configured.crud, configured.openapi_public, followed)
    gate = app.Gate(table, known, measures, configured.crud, ledger.follower)
    # at debug every request is logged, which the ordinary route does
    fast = None if log.isEnabledFor(logging.DEBUG) else poll.Fast(ledger.follower, known, measures)
    slow = unread.Unread()
    server = _Server(
        uvicorn.Config(
            gate,
            http=ordinary.protocol_class(slow, fast),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=int(ordinary.IDLE_SECONDS),
            timeout_graceful_shutdown=DRAIN_SECONDS,
        ),
        fast,
        slow,
        followed,
        ledger,
        is_worker=worker is not None,
    )
    siblings = None if worker is None else _join(worker, measures, ledger)
    address = ":".join(map(str, listener.getsockname()[:2]))
    mode = "crud" if configured.crud else "read-only"
    log.info("listening", extra={"address": address, "mode": mode, "revision": ledger.fleet.revision})
    sweeping = asyncio.ensure_future(_sweep(server))
    async with starting.beside(configured, ledger):
        await server.serve(sockets=[listener])
    sweeping.cancel()
    if siblings is not None:
        siblings.note()


def _join(worker: workers.Worker, measures: metrics.Metrics, ledger: Ledger) -> workers.Siblings:
    """From here on this worker takes its share of the connections, and counts in what all of them tell."""
    siblings = workers.Siblings(worker, measures, ledger.follower)
    siblings.attend()
    try:
        worker.listener.listen(BACKLOG)
    except OSError as exc:
        raise errors.StartupError(f"LISTEN_ADDR cannot be used by worker {worker.number}: {exc.strerror or exc}") from exc
    worker.tell_up()
    return siblings


async def _sweep(server: listening.Server) -> None:
    while True:
        await asyncio.sleep(ordinary.IDLE_SECONDS / 2)
        server.sweep()
