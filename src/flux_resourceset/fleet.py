"""The read model: every document, its indexes, and the encoded answers that Flux gets.

Fed by snapshots and the change log only, so the writer, a second process and a replica hold the same thing.
"""

from __future__ import annotations

import collections
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from flux_resourceset import answers, changes, documents, errors, flux_limits, views
from flux_resourceset.changes import Document, Stored
from flux_resourceset.kinds.model import CLUSTERS, Kind, Kinds, Referenced

Key = tuple[str, str]  # kind and id
K = TypeVar("K")
T = TypeVar("T")


class Step:
    """What an entry does to a fleet, worked out beside it, so that taking it takes no time."""

    def __init__(self, before: changes.Head, entry: changes.Entry, hash: str) -> None:
        self.before = before
        self.entry = entry
        self.after = changes.Head(before.epoch, entry.revision, hash)
        self.documents: dict[Key, Stored | None] = {}  # None: gone
        self.originals: dict[Key, Stored | None] = {}  # None: it is served as it is stored, or is gone
        self.tombstones: dict[str, changes.Tombstone | None] = {}  # that come, and that go
        self.forgone: dict[Key, bool] = {}  # the same
        self.users: dict[Key, frozenset[str]] = {}
        self.cluster_ids: dict[str, str | None] = {}
        self.answers: list[bytes] = []  # that are not true any more


class Fleet:
    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._defaults = {kind.name: [name for name, schema in kind.properties.items() if "default" in schema] for kind in kinds}
        self._reference_defaults = [
            (kind.cluster_field, names)
            for kind in kinds.referenced
            if (names := [name for name, schema in kind.reference.items() if "default" in schema])
        ]
        self.epoch = ""
        self.revision = 0
        self.hash = ""
        self.documents: dict[str, dict[str, Stored]] = {kind.name: {} for kind in self.kinds}
        self.tombstones: dict[str, changes.Tombstone] = {}
        self.forgone: set[Key] = set()  # definitions that the log says were deleted by force: references may do without them
        self.cluster_ids: dict[str, str] = {}  # by DNS name
        self.users: dict[Key, frozenset[str]] = {}  # (kind, id) → the clusters that refer to it
        self.originals: dict[Key, Stored] = {}  # as the store has them, where these are not served so: completed, or not known
        self.unknown: list[str] = []
        self.doubts: dict[str, str] = {}  # endpoint → why its answers cannot be trusted, though the store can
        self._encoder = answers.Encoder()
        self.answers: dict[bytes, bytes] = {}  # b"<dns>/<endpoint>" → body
        self.packed: dict[bytes, bytes] = {}  # the same, gzipped
        self._cuts = answers.Cuts()  # the same, where inputs were asked for one by one

    @property
    def head(self) -> changes.Head:
        return changes.Head(self.epoch, self.revision, self.hash)

    def copied(self) -> Fleet:
        """The documents as they are now, for a thread to work on while the fleet goes on. Grows a little with documents."""
        copied = copy.copy(self)
        copied.documents = {kind: dict(of_kind) for kind, of_kind in self.documents.items()}
        copied.tombstones, copied.forgone = dict(self.tombstones), set(self.forgone)
        copied.cluster_ids, copied.users, copied.originals = dict(self.cluster_ids), dict(self.users), dict(self.originals)
        copied._encoder, copied.answers, copied.packed, copied._cuts = answers.Encoder(), {}, {}, answers.Cuts()
        return copied

    # Feeding

    def load(self, snapshot: changes.Snapshot) -> None:
        """Start from a snapshot; once. Grows with documents."""
        self.epoch, self.revision, self.hash = snapshot.epoch, snapshot.revision, snapshot.hash
        # documents of a kind that is not configured any more stay in the store and are not served
        self.unknown = sorted(kind for kind in snapshot.documents if kind not in self.documents)
        for kind, stored_documents in snapshot.documents.items():
            served = self.documents.get(kind, {})
            if kind in self.documents:
                served |= {id: self.current(kind, stored) for id, stored in stored_documents.items()}
            self.originals |= {(kind, id): stored for id, stored in stored_documents.items() if served.get(id) is not stored}
        users: dict[Key, set[str]] = {}
        for id, cluster in self.documents[CLUSTERS].items():
            self.cluster_ids[cluster.body["cluster_dns"]] = id
            for kind_referred_to in self.kinds.referenced:
                for reference in _references(kind_referred_to, cluster.body):
                    users.setdefault((kind_referred_to.name, reference), set()).add(id)
        self.users = {key: frozenset(clusters) for key, clusters in users.items()}
        self.tombstones = {tombstone.dns: tombstone for tombstone in snapshot.tombstones}
        self.forgone = set(snapshot.forgone)
        self.compare_views(snapshot.views)

    def compare_views(self, remembered: Iterable[changes.View]) -> None:
        """Hold what the documents were written for against the kinds of today. Grows with clusters if these are others."""
        clusters = self.documents[CLUSTERS].values()
        self.doubts = views.losses(remembered, self.kinds, lambda field: sum(bool(stored.body.get(field)) for stored in clusters))
        if self.doubts:
            self.answers.clear()
            self.packed.clear()
            self._cuts.by_key.clear()

    def apply(self, entries: Iterable[changes.Entry], hash: str = "") -> list[bytes]:
        """Follow the log up to the entry with this hash; the answers that are not true any more.

        Grows with the changes and the clusters they touch.
        """
        untrue: list[bytes] = []
        for entry in entries:
            if entry.revision > self.revision:
                step = self.step(self._whole(entry), hash)
                self.take(step)
                untrue += step.answers
        return untrue

    def inherit(self, before: Fleet, untrue: Iterable[bytes]) -> None:
        """Take over the answers of the fleet in whose place this one comes, but for those that are not true any more."""
        self._encoder, self.answers, self.packed, self._cuts = before._encoder, before.answers, before.packed, before._cuts
        before.answers, before.packed, before._cuts = {}, {}, answers.Cuts()
        if self.doubts:
            self.answers, self.packed, self._cuts = {}, {}, answers.Cuts()
        self._forget(untrue)

    def _forget(self, untrue: Iterable[bytes]) -> None:
        keys, missing = list(untrue), itertools.repeat(None)
        for prepared in (self.answers, self.packed, self._cuts.by_key):  # nobody is answered meanwhile,
            collections.deque(map(prepared.pop, keys, missing), maxlen=0)  # hence no step in Python for each

    def _whole(self, entry: changes.Entry) -> changes.Entry:
        """With what documents were before, which the log need not tell to those who follow it."""
        made = []
        for change in entry.changes:
            stored = self.documents.get(change.kind, {}).get(change.id)
            made.append(changes.Change(change.kind, change.id, change.operation, stored.body if stored else None, change.after))
        return msgspec.structs.replace(entry, changes=tuple(made))

    def step(self, entry: changes.Entry, hash: str) -> Step:
        """What taking an entry will mean; may be worked out in any thread while the fleet stands still."""
        if entry.revision != self.revision + 1:
            raise errors.Doubt(
                f"the change log jumps from revision {self.revision} to {entry.revision}; "
                "restore the store from a backup or an export"
            )
        step = Step(self.head, entry, hash)
        moved: dict[Key, tuple[set[str], set[str]]] = {}  # clusters that came and went, by what they refer to
        for change in entry.changes:
            of_kind = self.documents.get(change.kind)
            stored = None if change.after is None else Stored(change.after, entry.revision)
            if of_kind is None:
                step.originals[change.kind, change.id] = stored
                continue
            after = None if stored is None else self.current(change.kind, stored)
            if after is not stored or (change.kind, change.id) in self.originals:
                step.originals[change.kind, change.id] = stored if after is not stored else None
            step.documents[change.kind, change.id] = after
            if change.kind == CLUSTERS:
                before = of_kind.get(change.id)
                self._step_cluster(step, moved, change.id, before.body if before else None, after.body if after else None)
        for key, (came, went) in moved.items():
            step.users[key] = self.users.get(key, frozenset()) - went | came
        for kind, id in step.documents:
            if kind != CLUSTERS:
                self._step_definition(step, self.kinds.by_name[kind], id)
        for dns, tombstone in changes.tombstone_changes(entry):
            if tombstone is not None or dns in self.tombstones or dns in step.tombstones:
                step.tombstones[dns] = tombstone
        step.forgone = dict(changes.forgoings(entry))
        return step

    def _step_cluster(
        self, step: Step, moved: dict[Key, tuple[set[str], set[str]]], id: str, before: Document | None, after: Document | None
    ) -> None:
        for kind in self.kinds.referenced:
            if before and after and before.get(kind.cluster_field) == after.get(kind.cluster_field):
                continue
            old, new = _references(kind, before), _references(kind, after)
            for gone in old - new:
                moved.setdefault((kind.name, gone), (set(), set()))[1].add(id)
            for added in new - old:
                moved.setdefault((kind.name, added), (set(), set()))[0].add(id)
        # a name may go from one cluster to another in one entry, in either order
        if before is not None:
            step.cluster_ids.setdefault(before["cluster_dns"], None)
        if after is not None:
            step.cluster_ids[after["cluster_dns"]] = id
        for dns in {document["cluster_dns"] for document in (before, after) if document is not None}:
            step.answers += [_key(dns, kind) for kind in self.kinds.referenced]

    def _step_definition(self, step: Step, kind: Kind, id: str) -> None:
        if not isinstance(kind, Referenced):
            return
        for user in step.users.get((kind.name, id), self.users.get((kind.name, id), frozenset())):
            cluster = step.documents.get((CLUSTERS, user)) or self.documents[CLUSTERS].get(user)
            if cluster is not None:
                step.answers.append(_key(cluster.body["cluster_dns"], kind))

    def take(self, step: Step) -> None:
        """Become what the step says, between two answers."""
        for (kind, id), stored in step.documents.items():
            if stored is None:
                self.documents[kind].pop(id, None)
            else:
                self.documents[kind][id] = stored
        _take_over(self.originals, step.originals)
        self.users.update(step.users)
        _take_over(self.cluster_ids, step.cluster_ids)
        self._forget(step.answers)
        _take_over(self.tombstones, step.tombstones)
        for key, may in step.forgone.items():
            (self.forgone.add if may else self.forgone.discard)(key)
        self.revision, self.hash = step.after.revision, step.after.hash

    def current(self, kind: str, stored: Stored) -> Stored:
        """A document stored before its kind gained a field, or before a kind came that clusters refer to."""
        if all(name in stored.body for name in self._defaults[kind]) and not (kind == CLUSTERS and self._lacks(stored.body)):
            return stored
        return Stored(documents.completed(self.kinds.by_name[kind], stored.body), stored.revision)

    def _lacks(self, cluster: Document) -> bool:
        """Whether a reference was stored before references of its kind gained a field."""
        return any(
            name not in reference
            for field, names in self._reference_defaults
            for reference in cluster.get(field, ())
            for name in names
        )

    def stored(self) -> Iterator[tuple[Key, Stored]]:
        """Every document exactly as the store has it, of whatever kind."""
        for kind, of_kind in self.documents.items():
            for id, served in of_kind.items():
                yield (kind, id), self.originals.get((kind, id), served)
        yield from ((key, stored) for key, stored in self.originals.items() if key[0] not in self.documents)

    def get(self, kind: str, id: str) -> Stored | None:
        return self.documents[kind].get(id)

    def answer(self, key: bytes, packed: bool = False) -> bytes:
        """The body for b"<dns>/<endpoint>": prepared when first asked for, kept until something it was made from changes.

        For b"<dns>/<endpoint>/<id>" one input of it.
        """
        prepared = self.packed if packed else self.answers
        body = prepared.get(key) or self._cuts.input(key, packed)
        if body is None and key.count(b"/") > 1:
            body = self._input(key, packed)
        elif body is None:
            body = self._prepare(key)
            if packed:
                body = answers.compressed(body)
            prepared[key] = body
        return body

    def _prepare(self, key: bytes) -> bytes:
        dns, _, endpoint = key.decode().rpartition("/")
        kind = self.kinds.by_endpoint.get(endpoint)
        id = self.cluster_ids.get(dns)
        if kind is None or (id is None and dns not in self.tombstones):
            raise errors.NotFound(
                f"cluster not found: none has the DNS name {dns!r}; paths take the exact cluster_dns"
                if kind
                else f"view {endpoint!r} not found; there are {', '.join(self.kinds.by_endpoint)}"
            )
        if endpoint in self.doubts:
            raise errors.Doubt(self.doubts[endpoint])
        if id is None:
            return answers.EMPTY  # decommissioned: Flux is to collect everything
        cluster = self.documents[CLUSTERS][id].body
        return self.merged(kind, cluster, self._definitions(kind, cluster))

    def _input(self, key: bytes, packed: bool) -> bytes:
        view = key.rpartition(b"/")[0]
        body = self.answer(view)  # or what is wrong with it
        dns, endpoint, id = key.decode().split("/")
        if dns not in self.cluster_ids:
            return self.answer(view, packed)  # decommissioned: whatever is asked for, Flux is to collect it
        self._cuts.add(view, body)
        found = self._cuts.input(key, packed)
        if found is None:
            cluster = self.documents[CLUSTERS][self.cluster_ids[dns]].body
            raise unassigned(self.kinds.by_endpoint[endpoint], cluster, id)
        return found

    def merged(self, kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> bytes:
        """What Flux gets for a cluster and what it refers to."""
        body, count = self._encoder.answer(kind, cluster, definitions)
        if flux_limits.exceeds(body, count):
            raise errors.Doubt(
                f"the answer has {count} inputs and {len(body)} bytes; Flux takes up to {flux_limits.MAX_INPUTS} inputs "
                f"and less than {flux_limits.MAX_BODY_BYTES} bytes, so unassign something"
            )
        return body

    def _definitions(self, kind: Referenced, cluster: Document) -> dict[str, Document]:
        """What a cluster refers to; without a definition only if the log says that it was deleted by force."""
        stored = self.documents[kind.name]
        named = [ref["id"] for ref in cluster.get(kind.cluster_field, ())]
        for id in named:
            if id not in stored and (kind.name, id) not in self.forgone:
                raise errors.Doubt(
                    f'cluster "{cluster["id"]}" refers to {kind.singular} "{id}", which is missing, and the log does not say '
                    "that it was deleted by force; restore a backup, or create it again"
                )
        return {id: stored[id].body for id in named if id in stored}

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
        wanted = [clusters[id].body for id in sorted(clusters) if matches(clusters[id].body)]
        body, count = answers.fleet_list(wanted)
        if flux_limits.exceeds(body, count):
            raise errors.AnswerTooLarge(
                f"{count} clusters make {len(body)} bytes; Flux takes up to {flux_limits.MAX_INPUTS} inputs and less than "
                f"{flux_limits.MAX_BODY_BYTES} bytes, so narrow the list with {' or '.join(filters)}"
            )
        return body


def unassigned(kind: Referenced, cluster: Document, id: str) -> errors.NotFound:
    """Never an empty list, which would have Flux delete what a slip of somebody's has taken away here."""
    shown = errors.shortened(id, 100)
    if id in _references(kind, cluster):
        why = f"refers to {kind.singular} {shown!r}, which was deleted by force; create it again"
    else:
        why = f"has no {kind.singular} {shown!r}; assign it to the cluster"
    return errors.NotFound(f'cluster "{cluster["id"]}" {why}, or delete the provider that asks for it. Flux keeps what it has')


def _take_over(known: dict[K, T], news: Mapping[K, T | None]) -> None:
    """What is new; None: it is gone."""
    for key, value in news.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value


def _key(dns: str, kind: Referenced) -> bytes:
    return f"{dns}/{kind.endpoint}".encode()


def _references(kind: Referenced, cluster: Document | None) -> set[str]:
    return set() if cluster is None else {ref["id"] for ref in cluster.get(kind.cluster_field, ())}
