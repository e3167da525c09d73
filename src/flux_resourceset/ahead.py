"""Answers from a fleet while its log is ahead of it: whatever was not changed at once, and the rest document by document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flux_resourceset.answers import Cuts, compressed
from flux_resourceset.changes import Document
from flux_resourceset.fleet import Fleet, Key, unassigned
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.store import Outline, Store

Read = Mapping[Key, Document | None]  # documents as they are now; None: it is gone, or the log went on again


class Late(Exception):
    """This answer cannot be given before more of the store was read."""


class Unread(Late):
    """Just these documents are missing."""

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys


class Ahead:
    """A log that went on by more than can be read between two answers. What is asked for meanwhile grows with itself only."""

    def __init__(self, fleet: Fleet, outline: Outline, store: Store, *, has_other_views: bool) -> None:
        self._fleet = fleet
        self.outline = outline
        self._store = store
        self._has_other_views = has_other_views
        self._definitions: dict[Key, Document | None] = {}  # read before: many clusters have them in common

    def answer(self, key: bytes, packed: bool, read: Read) -> bytes:
        """As of the fleet, but true to the end of the log; with documents that were read for it. Raises Unread, or Late."""
        dns, endpoint, *of_one = key.decode().split("/")
        kind = self._fleet.kinds.by_endpoint.get(endpoint)
        if kind is None:
            return self._fleet.answer(key, packed)  # says so
        id = self._fleet.cluster_ids.get(dns)
        if id is None or endpoint in self._fleet.doubts or self._has_other_views:
            raise Late
        cluster = self._newest([(CLUSTERS, id)], read)[CLUSTERS, id]
        if cluster["cluster_dns"] != dns:
            raise Late
        named: list[Key] = [(kind.name, reference["id"]) for reference in cluster.get(kind.cluster_field, ())]
        if self.outline.changed.isdisjoint([(CLUSTERS, id), *named]):
            return self._fleet.answer(key, packed)
        definitions = self._newest([key for key in named if not self._is_forgone(key)], read)
        body = self._fleet.merged(kind, cluster, {key[1]: body for key, body in definitions.items()})
        if of_one:
            cuts = Cuts()
            cuts.add(f"{dns}/{endpoint}".encode(), body)
            single = cuts.input(key, packed)
            if single is None:
                raise unassigned(kind, cluster, of_one[0])
            return single
        return compressed(body) if packed else body

    def read(self, keys: Iterable[Key]) -> Read:
        """Documents that were changed, as they are now; in a thread."""
        stored = self._store.stored(keys, self.outline.head) or {}
        bodies = {key: self._fleet.current(key[0], stored[key]).body if key in stored else None for key in keys}
        self._definitions.update({key: body for key, body in bodies.items() if key[0] != CLUSTERS})
        return bodies

    def _is_forgone(self, key: Key) -> bool:
        return key in self._fleet.forgone and key not in self.outline.changed

    def _newest(self, keys: list[Key], read: Read) -> dict[Key, Document]:
        changed = self.outline.changed
        unread = [key for key in keys if key in changed and key not in read and key not in self._definitions]
        if unread:
            raise Unread(unread)
        bodies = {key: self._body(key, read) for key in keys}
        if None in bodies.values():  # gone, or the log went on again: both are for those who read all of it
            raise Late
        return bodies  # type: ignore[return-value]  # without None

    def _body(self, key: Key, read: Read) -> Document | None:
        if key in self.outline.changed:
            return read[key] if key in read else self._definitions[key]
        stored = self._fleet.get(*key)
        return self._fleet.current(key[0], stored).body if stored else None
