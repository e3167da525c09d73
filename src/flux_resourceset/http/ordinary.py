"""Connections of all kinds: uvicorn's protocol with bounds on heads and on patience, and with the fast path between requests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from flux_resourceset import errors
from flux_resourceset.http import problems
from flux_resourceset.http.poll import Fast
from flux_resourceset.http.unread import Unread

IDLE_SECONDS = 5.0  # Flux leaves its connections idle for 90 s and never uses them again
MAX_HEAD_BYTES = 64 * 1024  # of a request line and headers, from whomever: they are kept until they are complete
SLICE_BYTES = 8 * 1024  # to parse in one turn of the loop: hundreds of the smallest requests, a thousand of the smallest chunks
PATIENCE_SECONDS = 30.0  # for the rest of a head, and for each next piece of a body
# For an answer to begin, once a client has ended its side: it may be listening, or gone for good, which looks the same,
# and long work is not to be done for nobody.
HALF_CLOSED_SECONDS = 1.0
TRANSPORT = "flux_resourceset.transport"  # under this name a request finds its own, among the extensions of its scope


class Intake:
    """What has arrived, handed on in slices, one in each turn of the loop; nothing more is read before all of it is."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, hand_on: Callable[[bytes], None]) -> None:
        self._transport = transport
        self._loop = loop
        self._hand_on = hand_on
        self._arrived = bytearray()
        self._held = False
        self._turn: asyncio.Handle | None = None

    def add(self, data: bytes) -> None:
        self._arrived += data
        if self._turn is None:
            self._next()

    def pause_reading(self) -> None:
        """Hand on no more: uvicorn asks for this when it has enough to do."""
        self._held = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._held = False
        self._go_on()

    @property
    def is_empty(self) -> bool:
        return not self._arrived and not self._held and self._turn is None

    def settle(self) -> None:
        """Read on, or not, as it should be: a loop begins to read whatever was said when the connection was made."""
        self._go_on()

    def drop(self) -> None:
        self._arrived.clear()
        if self._turn is not None:
            self._turn.cancel()

    def close(self) -> None:
        """Hand on nothing more, and refer to the protocol no longer: the two would keep each other from being freed."""
        self.drop()
        self._hand_on = _discard

    def _next(self) -> None:
        self._turn = None
        if not self._held:
            data = bytes(self._arrived[:SLICE_BYTES])
            del self._arrived[:SLICE_BYTES]
            self._hand_on(data)
        self._go_on()

    def _go_on(self) -> None:
        if self._transport.is_closing():
            self.drop()
        elif not self._arrived and not self._held:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
            if not self._held and self._turn is None:
                self._turn = self._loop.call_soon(self._next)


def _discard(data: bytes) -> None:
    """Of a connection that is gone."""


def _nothing() -> None:
    """What an answer that will not be given calls at its end."""


class Brought(NamedTuple):
    """What a connection has already when it comes here."""

    data: bytes = b""  # that was read from it
    unsent: bytes = b""  # of its last answer
    closes: bool = False  # once that is sent


class OrdinaryProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds on heads and on patience; what it refuses before any route sees it is a problem too.

    Between two requests a poll takes the fast path here as well, so that nobody is lost to it for having asked something else.
    """

    _waiting = 0  # bytes of a head that is not complete
    _patience: asyncio.TimerHandle | None = None  # runs while a request is not complete
    _progress = 0.0  # when its last piece came
    _running: RequestResponseCycle | None = None  # the oldest request; uvicorn remembers the newest of a pipeline only
    _complete = False  # the request whose head came last
    _is_between = True  # two requests: of the next one nothing has come
    _answered: asyncio.TimerHandle | None = None  # runs when that was answered before it was complete
    _listening: asyncio.TimerHandle | None = None  # runs once the client has ended its side

    def __init__(self, unread: Unread, fast: Fast | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._unread = unread
        self._fast = fast
        self._brought = Brought()

    def bring(self, brought: Brought) -> None:
        """Before the connection is made."""
        self._brought = brought

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._unread.connections.add(transport)
        super().connection_made(transport)
        self._intake = Intake(transport, self.loop, self._parse)
        self.flow = FlowControl(self._intake)  # type: ignore[arg-type]  # it only pauses and resumes
        self._wait_for_next()
        brought, self._brought = self._brought, Brought()
        if brought.unsent:
            transport.write(brought.unsent)
        if brought.closes:
            transport.close()
        elif brought.data:
            self._intake.add(brought.data)
            self.loop.call_soon(self._intake.settle)

    def data_received(self, data: bytes) -> None:
        if self._fast is None or not self._is_at_rest() or not self._answer_fast(self._fast, data):
            self._intake.add(data)

    def _is_at_rest(self) -> bool:
        """Whether everything that came was answered, so that a poll may be taken as if it were the first."""
        return (
            (self.cycle is None or self.cycle.response_complete)
            and self._is_between
            and not self._waiting
            and not self.flow.write_paused
            and self._listening is None
            and self._intake.is_empty
            and not self.transport.is_closing()
        )

    def _answer_fast(self, fast: Fast, data: bytes) -> bool:
        answer = fast.answer(data)
        if answer is None:
            return False
        responses, closes = answer
        self.transport.write(responses)
        if closes:
            self.transport.close()
        else:
            self._wait_for_next()
        return True

    def _wait_for_next(self) -> None:
        """As uvicorn does after each of its answers."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _parse(self, data: bytes) -> None:
        self._waiting += len(data)
        if self._patience is None:
            self._be_patient()
        super().data_received(data)
        if self._waiting > 2 * MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")  # no end in sight

    def on_message_begin(self) -> None:
        self._is_between = False
        self._be_patient()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            raise ValueError("the head is too large")  # which the parser makes a refusal
        self._complete = False
        super().on_headers_complete()
        self._waiting = 0

    def on_body(self, body: bytes) -> None:
        self._waiting = 0
        self._be_patient()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._waiting = 0
        self._complete = self._is_between = True
        self._be_done()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        # Refused by its head, as without a good token. Who reads before the end of sending must have the time to see it, and
        # a reset would take the answer away; but a body that trickles on keeps nothing.
        if self.cycle.response_complete and not self._complete:
            self._answered = self.loop.call_later(IDLE_SECONDS, self.transport.close)
        more = bool(self.pipeline)
        super().on_response_complete()
        if self._listening is not None:
            if more:
                self._keep_listening()
            else:
                self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        # for whoever looks after what is not read; an answer without an end says so, and ends with its client
        cycle.scope["extensions"] = {TRANSPORT: {"transport": self.transport, "is_endless": False}}
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        self._be_done()
        if self._listening is not None:
            self._listening.cancel()
        self._unread.connections.discard(self.transport)
        self._intake.close()
        for cycle, _ in self.pipeline:
            cycle.on_response = _nothing  # as uvicorn does for a request that was begun: it refers to the protocol
        self.pipeline.clear()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves it running after a reset, and with it the connection's memory
        if self._running is not None and not self._running.response_complete:  # uvicorn tells only the request that came last
            self._running.disconnected = True
            self._running.message_event.set()

    # A client that has ended its side

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's closes always
        """Whether the connection stays: whoever has said everything may still listen, so whole requests are answered first."""
        if self.pipeline and self.pipeline[0][0].more_body:
            self.pipeline.popleft()[0].on_response = _nothing  # the newest was cut off
        if self._running is None or self._running.response_complete or self._running.more_body:
            return False
        if self._running.scope["extensions"][TRANSPORT]["is_endless"]:
            return False
        self._stop_waiting()
        self._keep_listening()
        return True

    def _keep_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._listening = self.loop.call_later(HALF_CLOSED_SECONDS, self._stop_listening)

    def _stop_listening(self) -> None:
        if self._running is not None and self._running.response_started:
            self._keep_listening()
        else:
            self.transport.close()

    # A client that is wrong, or slow

    def send_400_response(self, msg: str) -> None:
        self._refuse(
            errors.BadRequest(f"this is not a well-formed HTTP/1.1 request with a head of at most {MAX_HEAD_BYTES} bytes")
        )

    def _be_patient(self) -> None:
        """Called for every piece, however small, so the timer goes on and only the time is taken."""
        self._progress = self.loop.time()
        if self._patience is None:
            self._patience = self.loop.call_later(PATIENCE_SECONDS, self._lose_patience)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _be_done(self) -> None:
        self._stop_waiting()
        if self._answered is not None:
            self._answered.cancel()
            self._answered = None

    def _lose_patience(self) -> None:
        left = self._progress + PATIENCE_SECONDS - self.loop.time()
        if self.flow.read_paused or left > 0:  # if paused, it is we who are slow
            self._patience = self.loop.call_later(left if left > 0 else PATIENCE_SECONDS, self._lose_patience)
        elif self.cycle is not None and self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(errors.RequestTimeout(f"the rest of the request did not come within {PATIENCE_SECONDS:g} seconds"))

    def _refuse(self, refusal: errors.Refusal) -> None:
        response = problems.response(refusal, uuid.uuid4().hex)
        headers = [*self.server_state.default_headers, *response.raw_headers, (b"connection", b"close")]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        status = STATUS_LINE[refusal.status]
        self.transport.write(b"%b%b\r\n%b" % (status, lines, bytes(response.body)))
        self.transport.close()


def protocol_class(unread: Unread, fast: Fast | None) -> Any:
    """What uvicorn calls for every connection."""

    def connect(config: Config, server_state: ServerState, app_state: dict[str, Any], **kwargs: Any) -> OrdinaryProtocol:
        return OrdinaryProtocol(unread, fast, config, server_state, app_state)

    return connect
