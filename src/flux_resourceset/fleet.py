"""The read model: every document, its indexes, and the encoded answers that Flux gets.

Fed by snapshots and the change log only, so the writer, a second process and a replica hold the same thing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

import msgspec

from flux_resourceset import changes, documents, errors, merge
from flux_resourceset.changes import Document, Stored
from flux_resourceset.kinds import CLUSTERS, Kind, Kinds

MAX_BODY_BYTES = 900 * 1024  # Flux Operator refuses a body that is longer; we stay below it
MAX_INPUTS = 10_000  # the largest spec.filter.limit; Flux cuts the rest in silence, and deletes it

_encode = msgspec.json.Encoder().encode
_EMPTY = b'{"inputs":[]}'


def compressed(body: bytes) -> bytes:
    """In gzip's form, without a time: equal bodies give equal bytes."""
    # Level 1 and a window of 8 KiB (13 bits; 16 more say gzip): answers repeat themselves so much, and so near, that more
    # gains next to nothing, and clearing zlib's usual 256 KiB takes five times as long as packing a usual answer.
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + 13, 7)
    return packer.compress(body) + packer.flush()


def exceeds(body: bytes, inputs: int) -> bool:
    return len(body) >= MAX_BODY_BYTES or inputs > MAX_INPUTS


class Fleet:
    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._defaults = {kind.name: [name for name, schema in kind.properties.items() if "default" in schema] for kind in kinds}
        self._clear()

    def _clear(self) -> None:
        self.epoch = ""
        self.revision = 0
        self.documents: dict[str, dict[str, Stored]] = {kind.name: {} for kind in self.kinds}
        self.tombstones: dict[str, changes.Tombstone] = {}
        self.cluster_ids: dict[str, str] = {}  # by DNS name
        self.users: dict[tuple[str, str], set[str]] = {}  # (kind, id) → the clusters that refer to it
        self.answers: dict[bytes, bytes] = {}  # b"<dns>/<endpoint>" → body
        self._parts: merge.Parts = {}
        self.unknown: list[str] = []
        self.packed: dict[bytes, bytes] = {}  # the same, gzipped

    # Feeding

    def load(self, snapshot: changes.Snapshot) -> None:
        """Start anew from a snapshot. Grows with documents."""
        self._clear()
        self.epoch, self.revision = snapshot.epoch, snapshot.revision
        # documents of a kind that is not configured any more stay in the store and are not served
        self.unknown = sorted(kind for kind in snapshot.documents if kind not in self.documents)
        for kind, stored_documents in snapshot.documents.items():
            if kind in self.documents:
                self.documents[kind] = {id: self._current(kind, stored) for id, stored in stored_documents.items()}
        for id, cluster in self.documents[CLUSTERS].items():
            self._index(id, None, cluster.body)
        self.tombstones = {tombstone.dns: tombstone for tombstone in snapshot.tombstones}

    def apply(self, entries: Iterable[changes.Entry]) -> None:
        """Follow the log. Grows with the changes and the clusters they touch."""
        for entry in entries:
            if entry.revision <= self.revision:
                continue
            if entry.revision != self.revision + 1:
                raise errors.Unavailable(
                    f"the change log jumps from revision {self.revision} to {entry.revision}; "
                    "restore the store from a backup or an export"
                )
            for change in entry.changes:
                self._apply(change, entry.revision)
            changes.bury(self.tombstones, entry)
            self.revision = entry.revision

    def _apply(self, change: changes.Change, revision: int) -> None:
        of_kind = self.documents.get(change.kind)
        if of_kind is None:
            return
        before = of_kind.get(change.id)
        if change.after is None:
            of_kind.pop(change.id, None)
        else:
            of_kind[change.id] = self._current(change.kind, Stored(change.after, revision))
        if change.kind == CLUSTERS:
            after = of_kind.get(change.id)
            self._index(change.id, before.body if before else None, after.body if after else None)
        else:
            kind = self.kinds.by_name[change.kind]
            for id in self.users.get((change.kind, change.id), ()):
                self._drop(self.documents[CLUSTERS][id].body["cluster_dns"], kind)

    def _current(self, kind: str, stored: Stored) -> Stored:
        """A document stored before its kind gained a field, or before a kind came that clusters refer to."""
        if all(name in stored.body for name in self._defaults[kind]):
            return stored
        return Stored(documents.completed(self.kinds.by_name[kind], stored.body), stored.revision)

    def _index(self, id: str, before: Document | None, after: Document | None) -> None:
        for kind in self.kinds.referenced:
            old = _references(kind, before)
            new = _references(kind, after)
            for gone in old - new:
                self.users[kind.name, gone].discard(id)
            for added in new - old:
                self.users.setdefault((kind.name, added), set()).add(id)
        # the name may have gone to another cluster in the same entry
        if before is not None and self.cluster_ids.get(before["cluster_dns"]) == id:
            del self.cluster_ids[before["cluster_dns"]]
        if after is not None:
            self.cluster_ids[after["cluster_dns"]] = id
        for dns in {document["cluster_dns"] for document in (before, after) if document is not None}:
            for kind in self.kinds.referenced:
                self._drop(dns, kind)

    def _drop(self, dns: str, kind: Kind) -> None:
        key = f"{dns}/{kind.endpoint}".encode()
        self.answers.pop(key, None)
        self.packed.pop(key, None)

    def still(self) -> Fleet:
        """The fleet as it is now, for whoever works on it in a thread while this one goes on; without prepared answers."""
        found = Fleet(self.kinds)
        found.epoch, found.revision, found.unknown = self.epoch, self.revision, self.unknown
        found.documents = {kind: dict(stored) for kind, stored in self.documents.items()}
        found.tombstones, found.cluster_ids = dict(self.tombstones), dict(self.cluster_ids)
        found.users = {key: set(users) for key, users in self.users.items()}
        return found

    # Asking

    def get(self, kind: str, id: str) -> Stored | None:
        return self.documents[kind].get(id)

    def answer(self, key: bytes, packed: bool = False) -> bytes:
        """The body for b"<dns>/<endpoint>": prepared when first asked for, kept until something it was made from changes."""
        prepared = self.packed if packed else self.answers
        body = prepared.get(key)
        if body is None:
            body = self._prepare(key)
            if packed:
                body = compressed(body)
            prepared[key] = body
        return body

    def _prepare(self, key: bytes) -> bytes:
        dns, _, endpoint = key.decode().rpartition("/")
        kind = self.kinds.by_endpoint.get(endpoint)
        id = self.cluster_ids.get(dns)
        if kind is None or (id is None and dns not in self.tombstones):
            raise errors.NotFound(
                f"no cluster has the DNS name {dns!r}; paths take the exact cluster_dns"
                if kind
                else f"there is no view {endpoint!r}; there are {', '.join(self.kinds.by_endpoint)}"
            )
        if id is None:
            return _EMPTY  # decommissioned: Flux is to collect everything
        cluster = self.documents[CLUSTERS][id].body
        stored = self.documents[kind.name]
        named = (ref["id"] for ref in cluster.get(kind.cluster_field or "", ()))
        body, count = merge.answer(kind, cluster, {id: stored[id].body for id in named if id in stored}, self._parts)
        if exceeds(body, count):
            raise errors.Unavailable(
                f"the answer has {count} inputs and {len(body)} bytes; Flux takes up to {MAX_INPUTS} inputs "
                f"and less than {MAX_BODY_BYTES} bytes, so unassign something"
            )
        return body

    def dangling(self) -> list[tuple[str, str, str]]:
        """(cluster, kind, id) of every reference whose definition is missing; Flux is not told of them."""
        return [
            (cluster, kind, id)
            for (kind, id), clusters in self.users.items()
            if id not in self.documents[kind]
            for cluster in sorted(clusters)
        ]

    def list_answer(self, matches: Callable[[Document], bool], filters: Iterable[str]) -> bytes:
        """The fleet list for provisioners, by id. Grows with clusters."""
        clusters = self.documents[CLUSTERS]
        inputs = [merge.fleet_input(clusters[id].body) for id in sorted(clusters) if matches(clusters[id].body)]
        body = _encode({"inputs": inputs})
        if exceeds(body, len(inputs)):
            raise errors.AnswerTooLarge(
                f"{len(inputs)} clusters make {len(body)} bytes; Flux takes up to {MAX_INPUTS} inputs and less than "
                f"{MAX_BODY_BYTES} bytes, so narrow the list with {' or '.join(filters)}"
            )
        return body


def _references(kind: Kind, cluster: Document | None) -> set[str]:
    return set() if cluster is None else {ref["id"] for ref in cluster.get(kind.cluster_field or "", ())}
