"""The poll: what a Flux answer looks like on the wire, and the fast path, which recognises polls and has their bytes prepared.

It takes whatever cannot change the answer, as proxies add it, and nothing else: a request that it does not take goes to the
ordinary route, which gives the identical answer. Nothing is remembered by whole requests, for no two of them are alike.
"""

from __future__ import annotations

import functools
import re
import time
from email.utils import formatdate

from flux_resourceset import errors
from flux_resourceset.ahead import Late
from flux_resourceset.follower import Follower
from flux_resourceset.http import auth
from flux_resourceset.http.metrics import Metrics
from flux_resourceset.kinds.model import Referenced
from flux_resourceset.tokens import Right, Tokens

PREFIX = "/api/v2/flux/clusters/"
USABLE_ID = r"[A-Za-z0-9._:/+=@-]{1,128}"  # of a request; any other gets one of ours

MAX_ASKED_BYTES = 16 * 1024  # that are looked at here: many polls in one go, or one with more headers than proxies add
_MAX_ANSWERED_BYTES = 256 * 1024  # of several answers in one go; one by one they would wait until the client has read the last
_MAX_HEADERS = 100  # of a request; thousands would take milliseconds here
_MAX_KEPT_BYTES = 512  # of an Authorization header that is remembered; a longer one is verified every time
_SPELLINGS = 4  # of a token that are remembered: Bearer, Basic, and either in other words
_ENCODINGS = 256  # ways to say Accept-Encoding that are remembered; clients of one kind say it alike

# Headers that only the ordinary route understands, and that can change its answer or where a request ends.
_FOREIGN = ("content-length", "transfer-encoding", "expect", "upgrade", "proxy-connection", "x-min-revision")
_UNDERSTOOD = ("host", "authorization", "accept-encoding", "connection", "x-request-id")


def _name(name: str) -> bytes:
    """In upper and lower case: for the whole pattern to disregard it would take twice as long."""
    return "".join(f"[{sign.upper()}{sign}]" if sign.isalpha() else sign for sign in name).encode()


def _header(name: str, group: int, value: bytes) -> bytes:
    """One that may stand there once, and whose value is this group, so that there is none yet."""
    return rb"%b:(?(%d)(?!)) *+%b\r\n" % (_name(name), group, value)


_VALUE = rb"[ -~]*+"
_PLAIN = rb"[0-9A-Za-z._~-]"  # of an id: what is the same with and without percent signs, as no other sign of a path is
_OTHERS = b"|".join(map(_name, (*_UNDERSTOOD, *_FOREIGN)))
_POLL = re.compile(
    # the third group ends with a slash if an id follows
    rb"GET %b(([!-.0-~]++)/([!-.0-~]++(?:/(?=%b))?+)%b*+) HTTP/1\.([01])\r\n(?:" % (PREFIX.encode(), _PLAIN, _PLAIN)
    + b"|".join([
        _header("host", 5, b"()" + _VALUE),
        _header("authorization", 6, b"(" + _VALUE + b")"),
        _header("accept-encoding", 7, b"(" + _VALUE + b")"),
        _header("connection", 8, b"(" + _name("keep-alive") + b"|" + _name("close") + b") *+"),
        _header("x-request-id", 9, b"(" + USABLE_ID.encode() + b"+)"),
        rb"(?!(?:" + _OTHERS + rb"):)[!#$%&'*+\-.^_`|~0-9A-Za-z]++:" + _VALUE + rb"\r\n",
    ])
    + rb"){0,%d}\r\n" % _MAX_HEADERS
)  # fmt: skip


def view_route(kind: Referenced) -> str:
    return PREFIX + "{cluster_dns}/" + kind.endpoint


def input_route(kind: Referenced) -> str:
    return view_route(kind) + "/{id}"


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


@functools.lru_cache(_ENCODINGS)
def _accepts_gzip(value: bytes) -> bool:
    return accepts_gzip([value])


# One request: b"<dns>/<endpoint>" or b"<dns>/<endpoint>/<id>", its endpoint (of one input with a slash), whether it wants gzip,
# the last lines of the answer's head, and whether the connection ends with it. A plain tuple, because the interpreter makes and
# takes apart those fastest, at every poll.
Poll = tuple[bytes, bytes, bool, bytes, bool]

Clusters = frozenset[bytes] | None  # DNS names whose views somebody may read; None: those of every cluster
_NOTHING: Clusters = frozenset()


class Fast:
    """What all connections share: verified tokens, the date line, counters."""

    def __init__(self, follower: Follower, tokens: Tokens, metrics: Metrics) -> None:
        self.follower = follower
        self.tokens = tokens
        self.verified: dict[bytes, Clusters] = {}  # by Authorization header
        self._generation = tokens.generation
        self._second = 0
        self._status = b""
        self._latency = {}
        for kind in follower.kinds.referenced:
            self._latency[kind.endpoint.encode()] = metrics.fast[view_route(kind)]
            self._latency[kind.endpoint.encode() + b"/"] = metrics.fast[input_route(kind)]

    def answer(self, data: bytes) -> tuple[bytes, bool] | None:
        """The responses to what a connection brought, and whether it ends with them; None: let the ordinary route look at it."""
        started = time.perf_counter()
        self.reload()
        polls = self.polls(data)
        if polls is None:
            return None
        try:
            self.follower.look()
        except (errors.Refusal, Late):
            return None
        responses = self.responses(polls, started)
        return None if responses is None else (responses, polls[-1][-1])

    # Asked

    def reload(self) -> None:
        """Take the tokens as they are now; before polls(), and once for all that was read before."""
        self.tokens.reload()
        if self.tokens.generation != self._generation:
            self.verified.clear()
            self._generation = self.tokens.generation

    def polls(self, data: bytes) -> list[Poll] | None:
        """What is asked, if it is nothing but whole, plain polls of those who may; else None."""
        if len(data) > MAX_ASKED_BYTES:
            return None
        found: list[Poll] = []
        begin, closes = 0, False
        while begin < len(data):
            match = _POLL.match(data, begin)
            if match is None or closes:
                return None
            key, dns, endpoint, minor, host, authorization, encoding, connection, id = match.groups()
            if host is None or authorization is None:
                return None
            # Only headers whose token was verified in constant time are keys here, and a hash table compares bytes only after
            # their keyed hashes are equal, so a look-up tells nothing about them.
            clusters = self.verified.get(authorization, _NOTHING)
            if clusters is _NOTHING:
                clusters = self._verified(authorization)
            if clusters is not None and dns not in clusters:
                return None  # the ordinary route refuses it
            packed = encoding is not None and _accepts_gzip(encoding)
            # uvicorn does not keep connections of HTTP/1.0, whatever they ask for
            closes = minor == b"0" or (connection is not None and connection.lower() == b"close")
            lines = b"content-encoding: gzip\r\n" if packed else b""
            if id is not None:
                lines += b"x-request-id: %b\r\n" % id
            if closes:
                lines += b"connection: close\r\n"
            found.append((key, endpoint, packed, lines, closes))
            begin = match.end()
        return found

    def _verified(self, authorization: bytes) -> Clusters:
        try:
            principal = auth.authenticate(self.tokens, [authorization.rstrip(b" ")])
        except errors.Unauthorized:
            return _NOTHING
        if Right.VIEWS not in principal.rights:
            return _NOTHING
        bound = principal.clusters
        clusters = None if bound is None else frozenset(dns.encode() for dns in bound)
        if len(authorization) <= _MAX_KEPT_BYTES:
            if len(self.verified) >= _SPELLINGS * len(self.tokens):  # somebody who may ask asks in ever new words
                self.verified.clear()
            self.verified[authorization] = clusters
        return clusters

    # Answered

    def responses(self, polls: list[Poll], started: float) -> bytes | None:
        """All of them, from a fleet that was looked at since they came; None: the ordinary route says what is wrong, or waits."""
        begin = self._begin()
        made: list[bytes] = []
        size = 0
        try:
            for key, _, packed, lines, _ in polls:
                body = self.follower.answer_looked(key, packed)
                made.append(b"%b%d\r\nvary: accept-encoding\r\n%b\r\n%b" % (begin, len(body), lines, body))
                size += len(body)
                if size > _MAX_ANSWERED_BYTES and len(polls) > 1:
                    return None
        except Exception:  # also one that is a defect: it is logged there
            return None
        seconds = time.perf_counter() - started
        for _, endpoint, _, _, _ in polls:
            self._latency[endpoint].observe(seconds)
        return b"".join(made)

    def _begin(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            date = formatdate(second, usegmt=True).encode()
            self._status = b"HTTP/1.1 200 OK\r\ndate: %b\r\ncontent-type: application/json\r\ncontent-length: " % date
        return self._status
