"""Answers from a fleet while its log is ahead of it: whatever was not changed at once, and the rest document by document."""

from __future__ import annotations

from flux_resourceset.answers import compressed
from flux_resourceset.changes import Document
from flux_resourceset.fleet import Fleet, Key
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.store import Outline, Store


class Late(Exception):
    """This answer cannot be given before the log was read to its end."""


class Ahead:
    """A log that went on by more than can be read between two answers. What is asked for meanwhile grows with itself only."""

    def __init__(self, fleet: Fleet, outline: Outline, store: Store, *, has_other_views: bool) -> None:
        self._fleet = fleet
        self.outline = outline
        self._store = store
        self._has_other_views = has_other_views
        self._definitions: dict[Key, Document] = {}  # read before: many clusters have them in common

    def answer(self, key: bytes, packed: bool) -> bytes:
        """As of the fleet, but true to the end of the log."""
        dns, _, endpoint = key.decode().rpartition("/")
        kind = self._fleet.kinds.by_endpoint.get(endpoint)
        if kind is None:
            return self._fleet.answer(key, packed)  # says so
        id = self._fleet.cluster_ids.get(dns)
        if id is None or endpoint in self._fleet.doubts or self._has_other_views:
            raise Late
        cluster = self._newest((CLUSTERS, id))
        if cluster["cluster_dns"] != dns:
            raise Late
        named: list[Key] = [(kind.name, reference["id"]) for reference in cluster.get(kind.cluster_field, ())]
        if self.outline.changed.isdisjoint([(CLUSTERS, id), *named]):
            return self._fleet.answer(key, packed)
        body = self._fleet.merged(kind, cluster, {key[1]: self._newest(key) for key in named if not self._is_forgone(key)})
        return compressed(body) if packed else body

    def _is_forgone(self, key: Key) -> bool:
        return key in self._fleet.forgone and key not in self.outline.changed

    def _newest(self, key: Key) -> Document:
        if key in self._definitions:
            return self._definitions[key]
        changed = key in self.outline.changed
        stored = self._store.document(*key, self.outline.head) if changed else self._fleet.get(*key)
        if stored is None:  # gone, or the log went on again: both are for those who read all of it
            raise Late
        body = self._fleet.current(key[0], stored).body
        if key[0] != CLUSTERS:
            self._definitions[key] = body
        return body
