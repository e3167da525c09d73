"""Events of a server (text/event-stream): those of one connection, and over connections that end and come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from flux_resourceset import client

MEDIA_TYPE = "text/event-stream"
QUIET_SECONDS = 45.0  # the server says something every 15
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before the next attempt; twice as long each time
_MAX_EVENT = 512 * 1024 * 1024  # bytes; a change of ten thousand clusters has some forty million


class Event(NamedTuple):
    """Without a name and data it only says where in the stream we are."""

    id: str
    name: str
    data: str


def revision(event: Event) -> int:
    """Of an event of the change log."""
    number = event.id.rpartition("-")[2]
    if not number.isascii() or not number.isdigit():
        raise client.not_understood(f"{event.id[:100]!r} is no id of a change")
    return int(number)


class NoStream(Exception):
    """The server answers, but not with a stream: it may be an older one."""


def parsed(pieces: Iterator[bytes]) -> Iterator[Event]:
    """What is not complete at the end is no event."""
    id, name, data = "", "", list[str]()
    for line in _lines(pieces):
        if line:
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            id = value if field == "id" else id
            name = value if field == "event" else name
            data += [value] if field == "data" else []
        elif id or data:
            yield Event(id, name if data else "", "\n".join(data))
            name, data = "", []


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """A line may come in a thousand pieces, so each is looked at once."""
    begun: list[bytes] = []
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > _MAX_EVENT:
            raise client.Unreachable("the server sent an event that has no end")
        for other in others:
            yield b"".join(begun).rstrip(b"\r").decode("utf-8", "replace")
            begun, size = [other], len(other)


def of_connection(server: client.Client, path: str, query: Mapping[str, str], last: str = "") -> Iterator[Event]:
    """After the event with the id `last`, or from now on, until the connection ends."""
    headers = {"Accept": MEDIA_TYPE} | ({"Last-Event-ID": last} if last else {})
    answers = server.stream(path, query, headers, QUIET_SECONDS)
    if not next(answers).headers.get("content-type", "").lower().startswith(MEDIA_TYPE):
        raise NoStream
    yield from parsed(answer.body for answer in answers)


def following(
    server: client.Client,
    path: str,
    query: Mapping[str, str],
    trouble: Callable[[Exception], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """From now on, without an end; what a connection loses the next one brings.

    What goes wrong at first is raised, and a refusal that will not change. `trouble` is told of anything else, once until
    events come again.
    """
    last, pause, told = "", FIRST_PAUSE, False
    while True:
        try:
            for event in of_connection(server, path, query, last):
                last, pause, told = event.id or last, FIRST_PAUSE, False
                yield event
        except (client.Unreachable, client.Problem) as exc:
            if not last or (isinstance(exc, client.Problem) and exc.status < 500):
                raise
            if not told:
                trouble(exc)
            told = True
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
