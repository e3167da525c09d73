"""Entries of the log as events of a stream (text/event-stream): in chunks, and knowing what they are about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from flux_resourceset import json_pieces
from flux_resourceset.changes import Entry

CHUNK_BYTES = 32 * 1024  # of an event that goes out in one piece: what is in the buffers of a connection is a copy of its own


class Filter(NamedTuple):
    """Which entries somebody wants to see, as in changes.Query."""

    kind: str | None = None
    id: str | None = None
    actor: str | None = None


EVERYTHING = Filter()


class Event(NamedTuple):
    """An entry that was encoded. Five hundred streams may ask what it is about, so they look it up, and search nothing."""

    revision: int
    chunks: tuple[bytes, ...]
    size: int
    actor: str
    kinds: frozenset[str]
    ids: frozenset[str]
    keys: frozenset[tuple[str, str]]

    def passes(self, wanted: Filter) -> bool:
        kind, id, actor = wanted
        if actor is not None and actor != self.actor:
            return False
        if kind is not None and id is not None:
            return (kind, id) in self.keys
        return (kind is None or kind in self.kinds) and (id is None or id in self.ids)


def event(epoch: str, entry: Entry) -> Event:
    chunks = tuple(_chunks(_text(epoch, entry)))
    keys = frozenset((change.kind, change.id) for change in entry.changes)
    return Event(
        entry.revision,
        chunks,
        sum(map(len, chunks)),
        entry.actor,
        frozenset(kind for kind, _ in keys),
        frozenset(id for _, id in keys),
        keys,
    )


def place(epoch: str, revision: int) -> bytes:
    """A comment and an id without an event: whoever loses the connection asks for what came after it."""
    return b":\nid: %b-%d\n\n" % (epoch.encode(), revision)


def reset(epoch: str, revision: int) -> bytes:
    """The log does not go on from where somebody was; the stream does, from here."""
    return b'id: %b-%d\nevent: reset\ndata: {"revision":%d}\n\n' % (epoch.encode(), revision, revision)


def _text(epoch: str, entry: Entry) -> Iterator[bytes]:
    """JSON has no line ends in it, so the data are one line, however long."""
    yield b"id: %b-%d\nevent: change\ndata: " % (epoch.encode(), entry.revision)
    yield from json_pieces.pieces(entry, 2)
    yield b"\n\n"


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        while len(waiting) >= CHUNK_BYTES:
            yield bytes(waiting[:CHUNK_BYTES])
            del waiting[:CHUNK_BYTES]
    if waiting:
        yield bytes(waiting)
