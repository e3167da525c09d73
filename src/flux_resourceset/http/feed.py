"""The change log as a stream of events: who follows it from where, what each is sent, and when one is let go."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from flux_resourceset import errors
from flux_resourceset.changes import Head
from flux_resourceset.follower import Follower
from flux_resourceset.http import messages, revisions
from flux_resourceset.http.metrics import Metrics
from flux_resourceset.http.streams import Stream
from flux_resourceset.log_events import Filter
from flux_resourceset.tail import Tail
from flux_resourceset.tokens import Tokens

MEDIA_TYPE = "text/event-stream"
SINCE = "since_revision"  # the query parameter
MAX_STREAMS = 500  # of a process: an event for all of them takes it some 20 ms
RETRY_SECONDS = 5
LOOK_SECONDS = 0.1  # between two looks whether another process has written; what this one writes is told at once
SLICE = 20  # streams to wake in one turn of the loop: polls are answered between them
SHARE = 2  # times as long as it took to tell everybody, everybody else has before the next time: polls, above all
_MOST_REST = 0.2  # seconds of that

_HEADERS = {
    "Content-Type": MEDIA_TYPE,
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would keep events until it has some kilobytes of them
    "Connection": "close",
}
_FILTERS = frozenset({"kind", "id", "actor", SINCE})
_ID = re.compile(r"([!-~]{1,100})-([0-9]{1,15})")
_WEIGHT = re.compile(r"\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*")


class Place(NamedTuple):
    """Where in the log somebody was; without an epoch, in the log as it is."""

    epoch: str | None
    revision: int


def is_wanted(request: Request) -> bool:
    """Whether Accept names the stream, and JSON not with more weight."""
    weights: dict[str, float] = {}
    for part in ",".join(request.headers.getlist("accept")).lower().split(","):
        media_type, *parameters = part.split(";")
        found = [float(match[1]) for text in parameters if (match := _WEIGHT.fullmatch(text))]
        weights[media_type.strip()] = found[0] if found else 1.0
    return 0 < weights.get(MEDIA_TYPE, 0) >= weights.get("application/json", 0)


class Feed:
    def __init__(self, follower: Follower, measures: Metrics, tokens: Tokens | None = None) -> None:
        self._follower = follower
        self._metrics = measures
        self._tokens = tokens
        self._generation = 0  # of the tokens, by which those who follow were let in
        self._tail = Tail(follower)
        self._streams: dict[Stream, None] = {}  # in the order in which they came
        self._following: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._stopping = False

    # Whoever comes

    async def answer(self, request: Request) -> Response:
        place, wanted = _place(request), _filter(request)
        if request.scope["http_version"] == "1.0":  # knows no chunks
            raise errors.BadRequest("a stream needs HTTP/1.1")
        head = await self._meet(place)
        is_lost = place is not None and not await self._reaches(place, head)
        if request.method == "HEAD":
            return _head()
        self._check_room()
        if not self._streams:
            self._tail.begin(head)  # it stood still
        is_lost = is_lost or head.epoch != self._tail.epoch  # replaced just now, as somebody else has noticed
        revision = self._tail.revision if is_lost else head.revision if place is None else place.revision
        stream = Stream(self._tail, request.scope, wanted, revision, is_lost)
        self._admit(stream)
        return _Answer(self, stream)

    async def _meet(self, place: Place | None) -> Head:
        """Where the log ends; what another process has told of may not have come here yet."""
        head = await self._tail.meet()
        self._follower.check_reachable()
        if place is None or place.epoch not in (None, head.epoch) or place.revision <= head.revision:
            return head
        if await self._tail.is_written(place.revision):
            await revisions.reach(self._follower, place.revision, "ask again")
            return await self._tail.meet()
        return head

    async def _reaches(self, place: Place, head: Head) -> bool:
        """Whether the log goes on from there."""
        if place.epoch not in (None, head.epoch) or place.revision > head.revision:
            return False
        return place.revision == head.revision or await self._tail.reaches_back_to(place.revision)

    def _check_room(self) -> None:
        if self._stopping:
            raise errors.Unavailable("the server stops; ask again")
        if len(self._streams) >= MAX_STREAMS:
            raise errors.Unavailable(
                f"{MAX_STREAMS} streams are open, which is all there can be; try again, or ask for lists with after",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )

    def _admit(self, stream: Stream) -> None:
        self._streams[stream] = None
        self._metrics.streams = len(self._streams)
        self._follower.listeners.add(self._news.set)
        if self._following is None:
            self._generation = self._tokens.generation if self._tokens else 0
            self._following = asyncio.ensure_future(self._follow())

    def leave(self, stream: Stream) -> None:
        self._streams.pop(stream, None)
        self._metrics.streams = len(self._streams)

    def close(self) -> None:
        """The server stops: every stream ends at once, and those who follow come back to the next one."""
        self._stopping = True
        self._end_all()

    def _end_all(self) -> None:
        for stream in self._streams:
            stream.end()

    # Telling them

    async def _follow(self) -> None:
        """As long as there are streams. Doubt about the store ends them all; who comes back is told why."""
        try:
            told = self._tail.end
            while self._streams:
                self._news.clear()
                with contextlib.suppress(errors.Unreachable):  # nothing is lost: there is no more to tell until it is back
                    await self._tail.advance()
                is_new, told = told != self._tail.end, self._tail.end
                if is_new:
                    await self._tell()
                self._check_tokens()
                await self._look_after()
                if not is_new:
                    await self._pause()
        except errors.Refusal:
            pass
        finally:
            self._following = None
            self._follower.listeners.discard(self._news.set)
            self._tail.forget()
            self._end_all()

    def _check_tokens(self) -> None:
        """One that was taken away counts no longer, also for what it has begun; whoever may follow comes back."""
        if self._tokens is None:
            return
        self._tokens.reload()
        if self._generation != self._tokens.generation:
            self._generation = self._tokens.generation
            self._end_all()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._news.wait(), LOOK_SECONDS)
        except TimeoutError:
            pass

    async def _tell(self) -> None:
        """Wake everybody, a few at a time, and leave the loop to others for a while."""
        clock = asyncio.get_running_loop().time
        began = clock()
        for number, stream in enumerate(list(self._streams), start=1):
            stream.wake()
            if number % SLICE == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(min(SHARE * (clock() - began), _MOST_REST))

    async def _look_after(self) -> None:
        now = asyncio.get_running_loop().time()
        for number, stream in enumerate(list(self._streams), start=1):
            stream.look_after(now)
            if number % SLICE == 0:
                await asyncio.sleep(0)
        if self._tail.is_heavy and all(stream.position >= self._tail.revision for stream in self._streams):
            self._tail.forget()


def _head() -> Response:
    response = Response(headers=_HEADERS)
    del response.headers["content-length"]
    return response


class _Answer(Response):
    """A stream on its way: until its end, or until nobody is there any more."""

    def __init__(self, feed: Feed, stream: Stream) -> None:
        self._feed = feed
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listening = asyncio.ensure_future(self._listen(receive))
        scope["state"]["is_stream"] = True
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _head().raw_headers})
            await self._stream.run(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            listening.cancel()
            self._feed.leave(self._stream)

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.end()


# What a request says


def _place(request: Request) -> Place | None:
    """Last-Event-ID wins: whoever comes back sends the query of the first time along with it."""
    query = messages.query(request, _FILTERS)
    since = messages.whole_number(query, SINCE, 0)
    last = request.headers.get("last-event-id", "").strip()
    if last:
        match = _ID.fullmatch(last)
        if match is None:
            raise errors.BadRequest(
                f"Last-Event-ID is {errors.shortened(last, 100)!r}; it must be the id of an event, as it was sent, or left out"
            )
        return Place(match[1], int(match[2]))
    return None if since is None else Place(None, since)


def _filter(request: Request) -> Filter:
    query = messages.query(request, _FILTERS)
    return Filter(query.get("kind"), query.get("id"), query.get("actor"))
