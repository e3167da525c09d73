"""Answers to Flux as bytes: inputs encoded, each with its digest, and what clusters share encoded once."""

from __future__ import annotations

import array
import hashlib
import operator
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from flux_resourceset import merge
from flux_resourceset.kinds.model import Referenced
from flux_resourceset.merge import Assignment, Document

MAX_PARTS = 4096  # to remember: a fleet has hundreds, and a kilobyte each is little
MAX_INPUTS_OF_ROWS = 16_384  # to remember how parts stand together, as clusters of one sort have them
MAX_CUT_BYTES = 64 * 2**20  # to remember inputs by themselves: of a hundred thousand, as ten thousand clusters may ask for them

EMPTY = b'{"inputs":[]}'

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="deterministic").encode


class Answer(NamedTuple):
    body: bytes
    inputs: int  # how many


class _Part(NamedTuple):
    """An input but for its cluster, encoded; and but for its patches, if it has any: these stand between the halves."""

    definition: Document
    body: bytes  # JSON without its last brace
    hash: Any  # of its content, whatever the order
    rest: bytes = b""  # of the body
    rest_hashed: bytes = b""  # of the content that makes the hash


class _Row:
    """What a list of references becomes, the same for all clusters that have it; patches and the cluster itself come later."""

    def __init__(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> None:
        self._ids = [reference["id"] for reference in cluster.get(kind.cluster_field, ())]
        self._definitions = [definitions.get(id) for id in self._ids]
        self.items = list(merge.assignments(kind, {**cluster, "patches": {}}, definitions))
        self.plain: list[_Part | None] = [None] * len(self.items)
        self.patched: list[_Part | None] = [None] * len(self.items)

    def is_made_of(self, definitions: Mapping[str, Document]) -> bool:
        return all(map(operator.is_, map(definitions.get, self._ids), self._definitions))


class Encoder:
    """Makes answers, and remembers the parts that clusters have in common."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, bytes], _Row] = {}
        self._inputs_of_rows = 0
        self._parts: dict[tuple[str, bytes, tuple[str, ...], bool], _Part] = {}

    def answer(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> Answer:
        """What Flux gets for a cluster and a kind."""
        block = _block(cluster)
        inputs = [
            b'%b%b,"digest":"%b"}' % (body, block, digest.encode())
            for _, body, digest in self._inputs(kind, cluster, definitions, block)
        ]
        return Answer(b'{"inputs":[%b]}' % b",".join(inputs), len(inputs))

    def digests(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> dict[str, str]:
        """The digests of the same inputs, by id."""
        return {id: digest for id, _, digest in self._inputs(kind, cluster, definitions, _block(cluster))}

    def _inputs(
        self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document], block: bytes
    ) -> Iterator[tuple[str, bytes, str]]:
        """The id of each, its JSON up to the cluster, and its digest."""
        row = self._row(kind, cluster, definitions)
        patched = cluster["patches"] if kind.patches else {}
        for position, item in enumerate(row.items):
            id = item.reference["id"]
            patches = patched.get(id)
            parts = row.patched if patches else row.plain
            part = parts[position]
            if part is None:
                part = parts[position] = self._part(kind, item, bool(patches))
            body, digest = part.body, part.hash.copy()
            if patches:  # hardly any other cluster has the same
                written = merge.without_nulls(patches)
                body = b"".join((body, _encode(written), part.rest))
                digest.update(_canonical(written) + part.rest_hashed)
            digest.update(block)
            yield id, body, digest.hexdigest()[:32]  # names the content; 128 bits are plenty for that

    def _row(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> _Row:
        key = kind.name, _encode(cluster.get(kind.cluster_field))
        row = self._rows.get(key)
        if row is None or not row.is_made_of(definitions):
            row = _Row(kind, cluster, definitions)
            self._inputs_of_rows += len(row.items)
            if self._inputs_of_rows > MAX_INPUTS_OF_ROWS:
                self._rows.clear()
                self._inputs_of_rows = len(row.items)
            self._rows[key] = row
        return row

    def _part(self, kind: Referenced, item: Assignment, patched: bool) -> _Part:
        key = kind.name, _encode(item.reference), item.wait_for, patched
        part = self._parts.get(key)
        if part is None or part.definition is not item.definition:
            if len(self._parts) >= MAX_PARTS:
                self._parts.clear()
            part = self._parts[key] = _encoded(kind, item, patched)
        return part


# Stands for patches while an input is encoded: a character that no document may hold, so that it is found again for sure.
_PLACE = {"\0": 0}
_PLACE_ENCODED = _encode(_PLACE)


def _encoded(kind: Referenced, item: Assignment, patched: bool) -> _Part:
    content = merge.part(kind, item._replace(patches=_PLACE) if patched else item)
    body, hashed = _encode(content)[:-1], _canonical(content)
    if not patched:
        return _Part(item.definition, body, hashlib.sha256(hashed))
    (body, rest), (hashed, rest_hashed) = body.split(_PLACE_ENCODED), hashed.split(_PLACE_ENCODED)
    return _Part(item.definition, body, hashlib.sha256(hashed), rest, rest_hashed)


# Inputs by themselves


class _Listed(msgspec.Struct):
    inputs: list[msgspec.Raw]


class _Named(msgspec.Struct):
    id: str


_listed, _named = msgspec.json.Decoder(_Listed).decode, msgspec.json.Decoder(_Named).decode
_BYTES_BESIDE = 120  # what it takes to find an input: its id, its places, and what every object costs


class _Cut:
    """An answer, and where in it each input stands."""

    __slots__ = ("body", "packed", "places", "starts")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.places: dict[bytes, int] = {}
        self.starts = array.array("I", [EMPTY.index(b"]")])  # of each input, and of one that would come behind the last
        for raw in _listed(body).inputs:
            self.places[_named(raw).id.encode()] = len(self.places)
            self.starts.append(self.starts[-1] + len(memoryview(raw)) + 1)
        self.packed: list[bytes | None] = [None] * len(self.places)

    def alone(self, place: int) -> bytes:
        return b'{"inputs":[%b]}' % self.body[self.starts[place] : self.starts[place + 1] - 1]


class Cuts:
    """Single inputs of answers, byte for byte as they stand there. Bounded, for a fleet has many more inputs than answers."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, _Cut] = {}  # b"<dns>/<endpoint>" → answer
        self._bytes = 0  # taken since all was forgotten for the last time; some may be free again

    def add(self, key: bytes, body: bytes) -> None:
        """An answer, whose inputs can be had from now on."""
        if key not in self.by_key:
            cut = _Cut(body)
            self._make_room(_BYTES_BESIDE * (len(cut.places) + 1))
            self.by_key[key] = cut

    def input(self, key: bytes, packed: bool) -> bytes | None:
        """The answer for b"<dns>/<endpoint>/<id>"; None: there is no such input, or nothing was added that it could be in."""
        whole, _, id = key.rpartition(b"/")
        cut = self.by_key.get(whole)
        if cut is None:
            return None
        place = cut.places.get(id)
        if place is None:
            return None
        if not packed:
            return cut.alone(place)
        made = cut.packed[place]
        if made is None:
            made = cut.packed[place] = compressed(cut.alone(place))
            self._make_room(len(made))
        return made

    def _make_room(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MAX_CUT_BYTES:
            self.by_key.clear()
            self._bytes = size


def _block(cluster: Document) -> bytes:
    return b',"cluster":' + _encode(merge.identity(cluster))


def fleet_list(clusters: Sequence[Document]) -> Answer:
    """The fleet list for provisioners."""
    return Answer(_encode({"inputs": [merge.fleet_input(cluster) for cluster in clusters]}), len(clusters))


def compressed(body: bytes) -> bytes:
    """In gzip's form, without a time: equal bodies give equal bytes."""
    # Level 1 and a window of 8 KiB (13 bits; 16 more say gzip): answers repeat themselves so much, and so near, that more
    # gains next to nothing, and clearing zlib's usual 256 KiB takes five times as long as packing a usual answer.
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + 13, 7)
    return packer.compress(body) + packer.flush()
