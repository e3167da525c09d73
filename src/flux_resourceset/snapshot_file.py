"""The last good state in a file: written and read as a stream, a line for each document, and its checksum at the end.

It names the store that it is of, so that nobody takes it for another one's.
"""

from __future__ import annotations

import datetime
import hashlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import atomic_files, changes, errors
from flux_resourceset.changes import Snapshot, Stored, Tombstone, View

log = logging.getLogger(__name__)

FORMAT = "flux-resourceset/snapshot/v1"
_PIECE_BYTES = 64 * 1024  # to write at a time

_END = b'{"sha256":'


class About(msgspec.Struct, frozen=True):
    """The first line: which store it is of, how that stood, and when it was last known to stand so."""

    format: str
    store: str
    seen: str
    epoch: str
    revision: int
    hash: str
    opened: str
    base: int
    replaced: tuple[str, ...]
    views: tuple[View, ...]


class _End(msgspec.Struct, frozen=True):
    sha256: str


class Read(NamedTuple):
    snapshot: Snapshot
    seen: datetime.datetime


class Parts(NamedTuple):
    """What stands below the first line."""

    documents: Iterable[tuple[tuple[str, str], Stored]]
    tombstones: Iterable[Tombstone]
    forgone: Iterable[tuple[str, str]]


def name(target: str) -> str:
    """Of a store, by where it is; the file may be where not everybody is to know that."""
    return hashlib.sha256(target.encode()).hexdigest()


# Writing


def write(file: Path, about: About, parts: Parts) -> None:
    """As a whole or not at all. Grows with documents; what it takes at a time does not."""
    atomic_files.replace(file, _pieces(about, parts))


def _pieces(about: About, parts: Parts) -> Iterator[bytes]:
    digest, piece = hashlib.sha256(), bytearray()
    for line in _lines(about, parts):
        piece += line
        piece += b"\n"
        if len(piece) >= _PIECE_BYTES:
            digest.update(piece)
            yield bytes(piece)
            piece.clear()
    digest.update(piece)
    yield bytes(piece) + msgspec.json.encode(_End(digest.hexdigest())) + b"\n"


def _lines(about: About, parts: Parts) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    yield encode(about)
    for tombstone in parts.tombstones:
        yield encode(("tombstone", tombstone.dns, tombstone.id, tombstone.revision))
    for kind, id in parts.forgone:
        yield encode(("forgone", kind, id))
    for (kind, id), stored in parts.documents:
        yield encode(("document", kind, id, stored.revision, stored.body))


# Reading


def read(file: Path, target: str) -> Read | None:
    """What a file holds, once all of it was found good; None: there is no file. A damaged one, or another store's, is Doubt."""
    try:
        with open(file, "rb") as stream:
            return _read(stream, name(target))
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise errors.Doubt(f"the snapshot file {file} cannot be read: {exc.strerror}") from exc
    except _Foreign as exc:
        raise errors.Doubt(
            f"the snapshot file {file} is of another store, not of the one that DATABASE_URL names; name another SNAPSHOT_FILE"
        ) from exc
    except (msgspec.MsgspecError, ValueError, TypeError) as exc:
        raise errors.Doubt(f"the snapshot file {file} is damaged ({exc}); remove it, and it is written anew") from exc


def about(file: Path) -> About | None:
    """Read which state a file holds, of any store; None if it cannot be read. Documents and checksum are not read."""
    try:
        with open(file, "rb") as stream:
            return _about(stream.readline())
    except (OSError, msgspec.MsgspecError, ValueError) as exc:
        log.warning("the snapshot file %s is not compared with the database: %s", file, exc)
        return None


class _Foreign(Exception):
    pass


def _about(line: bytes) -> About:
    about = msgspec.json.decode(line, type=About)
    if about.format != FORMAT:
        raise ValueError(f"its format is {errors.shortened(about.format, 100)}")
    return about


def _read(lines: Iterable[bytes], store: str) -> Read:
    remaining = iter(lines)
    first = next(remaining, b"")
    about = _about(first)
    if about.store != store:
        raise _Foreign
    seen = changes.moment(about.seen)
    if seen is None:
        raise ValueError("it does not say when it was written")
    digest = hashlib.sha256(first)
    parts = _Parts()
    for line in remaining:
        if line.startswith(_END):
            end = msgspec.json.decode(line, type=_End)
            if end.sha256 != digest.hexdigest() or next(remaining, b""):
                raise ValueError("its checksum does not fit")
            return Read(parts.snapshot(about), seen)
        digest.update(line)
        parts.add(msgspec.json.decode(line))
    raise ValueError("its end is missing")


class _Parts:
    def __init__(self) -> None:
        self._documents: dict[str, dict[str, Stored]] = {}
        self._tombstones: list[Tombstone] = []
        self._forgone: set[tuple[str, str]] = set()

    def add(self, line: Any) -> None:
        match line:
            case ["document", str(kind), str(id), int(revision), dict(body)]:
                self._documents.setdefault(kind, {})[id] = Stored(body, revision)
            case ["tombstone", str(dns), str(id), int(revision)]:
                self._tombstones.append(Tombstone(dns, id, revision))
            case ["forgone", str(kind), str(id)]:
                self._forgone.add((kind, id))
            case _:
                raise ValueError("it holds a line that means nothing")

    def snapshot(self, about: About) -> Snapshot:
        return Snapshot(
            about.epoch, about.revision, self._documents, tuple(self._tombstones), about.hash, frozenset(self._forgone),
            about.views, about.replaced, about.opened, about.base,
        )  # fmt: skip
