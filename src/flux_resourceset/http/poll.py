"""The poll: what a Flux answer looks like on the wire, and the fast path that writes prepared bytes.

Flux opens a new connection for every poll, so what a connection costs counts most. PollProtocol stands in front of
uvicorn's protocol. It recognises one whole, plain poll and answers it; at the first byte that is anything else it
hands the connection over for good, and the ordinary route gives the identical answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from email.utils import formatdate
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from flux_resourceset import errors
from flux_resourceset.ahead import Late
from flux_resourceset.follower import Follower
from flux_resourceset.http import auth
from flux_resourceset.http.metrics import Metrics
from flux_resourceset.http.ordinary import MAX_HEAD_BYTES, OrdinaryProtocol
from flux_resourceset.http.unread import Unread
from flux_resourceset.tokens import Right, Tokens

log = logging.getLogger(__name__)

PREFIX = "/api/v2/flux/clusters/"
_START = b"GET " + PREFIX.encode()
_END = b" HTTP/1.1\r\n"

_MAX_KEPT_BYTES = 4096  # of a header block that is remembered: a longer one is no poll of Flux
_MAX_MEMORY_BYTES = 16 * 1024 * 1024  # of all of them: 20,000 clusters with a token of their own; each is a block of its own
_ENTRY_BYTES = 512  # what remembering takes beside the block, about: dictionary, tuple, DNS name

_PLAIN_BYTES = bytes([9, *range(32, 127)])

# Header names whose presence cannot change the answer, or changes it in a way that is looked at below.
_PLAIN = frozenset({b"host", b"user-agent", b"accept", b"accept-encoding", b"authorization"})


def headers(body: bytes, packed: bool) -> list[tuple[bytes, bytes]]:
    """The headers of a Flux answer; the same on both paths."""
    always = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"vary", b"accept-encoding"),
    ]
    return [*always, (b"content-encoding", b"gzip")] if packed else always


def accepts_gzip(values: list[bytes]) -> bool:
    """Whether Accept-Encoding takes gzip: what it says of gzip itself beats what it says of everything."""
    wanted: dict[bytes, bool] = {}
    for part in b",".join(values).lower().split(b","):
        coding, _, weight = part.partition(b";")
        wanted[coding.strip()] = weight.translate(None, b" \t").rstrip(b"0.") != b"q="
    return next((wanted[coding] for coding in (b"gzip", b"x-gzip", b"*") if coding in wanted), False)


# What a header block says, once its token was found good: whether it wants gzip, and the DNS names whose views it may read
# (None: those of every cluster). A plain tuple, because the interpreter takes those apart fastest, at every poll.
Known = tuple[bool, frozenset[bytes] | None]


class Fast:
    """What all connections share: known header blocks, the date line, idle connections."""

    def __init__(self, follower: Follower, tokens: Tokens, metrics: Metrics) -> None:
        self.follower = follower
        self.tokens = tokens
        self.heads: OrderedDict[bytes, Known] = OrderedDict()  # header blocks with a good token, the oldest first
        self._heads_bytes = 0
        self._generation = tokens.generation
        self._second = 0
        self._status = b""
        self.active: set[PollProtocol] = set()  # connections that were made or polled since the last sweep
        self.idle: set[PollProtocol] = set()
        self.unread = Unread()
        routes = {kind.endpoint.encode(): PREFIX + "{cluster_dns}/" + kind.endpoint for kind in follower.kinds.referenced}
        self._latency = {endpoint: metrics.latency[route] for endpoint, route in routes.items()}
        self._counted = {endpoint: (route, "GET", 200) for endpoint, route in routes.items()}
        self._requests = metrics.requests

    def answer(self, data: bytes) -> bytes | None:
        """The whole response to a plain poll, or None: then let the ordinary route look at it."""
        if not (data.startswith(_START) and data.endswith(b"\r\n\r\n")) or len(data) > MAX_HEAD_BYTES:
            return None
        end = data.find(_END, len(_START))
        if end < 0:
            return None
        started = time.perf_counter()
        self.tokens.reload()
        if self.tokens.generation != self._generation:
            self._forget_heads()
            self._generation = self.tokens.generation
        head = data[end + len(_END) : -2]
        # Only blocks whose token was verified in constant time are keys here, and a hash table compares bytes
        # only after their keyed hashes are equal, so a look-up tells nothing about them.
        known = self.heads.get(head) or self._plain(head)
        if known is None:
            return None
        packed, clusters = known
        key = data[len(_START) : end]
        if clusters is not None and key[: key.rfind(b"/")] not in clusters:
            return None  # the ordinary route refuses it
        try:
            body = self.follower.answer_read(key, packed)
        except (errors.Refusal, Late, UnicodeDecodeError):
            return None  # the ordinary route says what is wrong, or waits
        endpoint = key[key.rfind(b"/") + 1 :]
        self._requests[self._counted[endpoint]] += 1
        self._latency[endpoint].observe(time.perf_counter() - started)
        size = b"%d" % len(body)
        if packed:
            return b"%b%b\r\nvary: accept-encoding\r\ncontent-encoding: gzip\r\n\r\n%b" % (self._begin(), size, body)
        return b"%b%b\r\nvary: accept-encoding\r\n\r\n%b" % (self._begin(), size, body)

    def _begin(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            date = formatdate(second, usegmt=True).encode()
            self._status = b"HTTP/1.1 200 OK\r\ndate: %b\r\ncontent-type: application/json\r\ncontent-length: " % date
        return self._status

    def _plain(self, head: bytes) -> Known | None:
        """What this header block says; None if it is not plain or its token is not good."""
        authorization, encodings, hosts = [], [], 0
        for line in head.split(b"\r\n")[:-1]:
            name, colon, value = line.partition(b":")
            name = name.lower()
            if not colon or name not in _PLAIN or not _is_plain(value):
                return None
            if name == b"authorization":
                authorization.append(value.strip(b" \t"))
            elif name == b"accept-encoding":
                encodings.append(value)
            elif name == b"host":
                hosts += 1
        if hosts != 1:
            return None
        try:
            principal = auth.authenticate(self.tokens, authorization)
        except errors.Unauthorized:
            return None
        if Right.VIEWS not in principal.rights:
            return None
        bound = principal.clusters
        known = accepts_gzip(encodings), None if bound is None else frozenset(dns.encode() for dns in bound)
        self._remember(head, known)
        return known

    def _remember(self, head: bytes, known: Known) -> None:
        """In the place of the oldest ones: to forget all at once would be to check everybody anew."""
        if len(head) > _MAX_KEPT_BYTES:
            return
        self.heads[head] = known
        self._heads_bytes += len(head) + _ENTRY_BYTES
        while self._heads_bytes > _MAX_MEMORY_BYTES:
            oldest, _ = self.heads.popitem(last=False)
            self._heads_bytes -= len(oldest) + _ENTRY_BYTES

    def _forget_heads(self) -> None:
        self.heads.clear()
        self._heads_bytes = 0

    def close(self) -> None:
        for protocol in [*self.active, *self.idle]:
            protocol.shutdown()

    def sweep(self) -> None:
        """Close what has been idle for a whole period, and what is not read; called once a period."""
        for protocol in list(self.idle):
            protocol.shutdown()
        self.idle, self.active = self.active, set()
        self.unread.sweep(time.monotonic())


def _is_plain(value: bytes) -> bool:
    return not value.translate(None, _PLAIN_BYTES)


class PollProtocol(asyncio.Protocol):
    """A connection that has sent nothing but plain polls so far."""

    __slots__ = ("_fast", "_make", "_transport")

    def __init__(self, fast: Fast, make: Any) -> None:
        self._fast = fast
        self._make = make

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # TCP transports are Transports
        self._fast.active.add(self)
        self._fast.unread.connections.add(self._transport)

    def data_received(self, data: bytes) -> None:
        response = self._fast.answer(data)
        if response is None:
            self._hand_over(data)
            return
        self._transport.write(response)
        if self in self._fast.idle:
            self._fast.idle.discard(self)
            self._fast.active.add(self)

    def _hand_over(self, data: bytes) -> None:
        self._forget()
        protocol: OrdinaryProtocol = self._make()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)

    def pause_writing(self) -> None:
        self._transport.pause_reading()  # the client does not read its answers: take no more requests from it

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def eof_received(self) -> None:
        pass

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._fast.unread.connections.discard(self._transport)

    def shutdown(self) -> None:
        self._forget()
        self._transport.close()

    def _forget(self) -> None:
        self._fast.active.discard(self)
        self._fast.idle.discard(self)


def protocol_class(fast: Fast) -> Any:
    """What uvicorn calls for every connection."""

    def connect(config: Config, server_state: ServerState, app_state: dict[str, Any], **kwargs: Any) -> asyncio.Protocol:
        if log.isEnabledFor(logging.DEBUG):  # the ordinary route logs every request
            return OrdinaryProtocol(fast.unread, config, server_state, app_state)
        return PollProtocol(fast, lambda: OrdinaryProtocol(fast.unread, config, server_state, app_state))

    return connect
