"""Answers to Flux as bytes: inputs encoded, each with its digest, and what clusters share encoded once."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import merge
from flux_resourceset.kinds.model import Referenced
from flux_resourceset.merge import Assignment, Document

MAX_PARTS = 4096  # to remember: a fleet has hundreds, and a kilobyte each is little

EMPTY = b'{"inputs":[]}'

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="deterministic").encode


class Answer(NamedTuple):
    body: bytes
    inputs: int  # how many


class _Part(NamedTuple):
    """An input but for its cluster, encoded."""

    definition: Document
    body: bytes  # JSON without its last brace
    hash: Any  # of its content, whatever the order


class Encoder:
    """Makes answers, and remembers the parts that clusters have in common."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bytes, tuple[str, ...]], _Part] = {}

    def answer(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> Answer:
        """What Flux gets for a cluster and a kind."""
        block = _block(cluster)
        inputs = [
            b'%b%b,"digest":"%b"}' % (part.body, block, _digest(part, block).encode())
            for _, part in self._parts_of(kind, cluster, definitions)
        ]
        return Answer(b'{"inputs":[%b]}' % b",".join(inputs), len(inputs))

    def digests(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> dict[str, str]:
        """The digests of the same inputs, by id."""
        block = _block(cluster)
        return {id: _digest(part, block) for id, part in self._parts_of(kind, cluster, definitions)}

    def _parts_of(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> Iterator[tuple[str, _Part]]:
        for item in merge.assignments(kind, cluster, definitions):
            yield item.reference["id"], self._part(kind, item)

    def _part(self, kind: Referenced, item: Assignment) -> _Part:
        if item.patches:
            return _encoded(kind, item)  # hardly any other cluster has the same
        key = kind.name, _encode(item.reference), item.wait_for
        part = self._parts.get(key)
        if part is None or part.definition is not item.definition:
            if len(self._parts) >= MAX_PARTS:
                self._parts.clear()
            part = self._parts[key] = _encoded(kind, item)
        return part


def _encoded(kind: Referenced, item: Assignment) -> _Part:
    content = merge.part(kind, item)
    return _Part(item.definition, _encode(content)[:-1], hashlib.sha256(_canonical(content)))


def _block(cluster: Document) -> bytes:
    return b',"cluster":' + _encode(merge.identity(cluster))


def _digest(part: _Part, block: bytes) -> str:
    """Names the content, so that a cluster can tell what it applied; 128 bits are plenty for that."""
    digest = part.hash.copy()
    digest.update(block)
    return str(digest.hexdigest()[:32])


def fleet_list(clusters: Sequence[Document]) -> Answer:
    """The fleet list for provisioners."""
    return Answer(_encode({"inputs": [merge.fleet_input(cluster) for cluster in clusters]}), len(clusters))


def compressed(body: bytes) -> bytes:
    """In gzip's form, without a time: equal bodies give equal bytes."""
    # Level 1 and a window of 8 KiB (13 bits; 16 more say gzip): answers repeat themselves so much, and so near, that more
    # gains next to nothing, and clearing zlib's usual 256 KiB takes five times as long as packing a usual answer.
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + 13, 7)
    return packer.compress(body) + packer.flush()
