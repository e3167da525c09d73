"""The fleet as a draft would leave it: documents that changed, on top of those that did not."""

from __future__ import annotations

from flux_resourceset.changes import Document
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds import CLUSTERS, Kind

Key = tuple[str, str]  # kind and id


class Overlay:
    def __init__(self, base: Fleet) -> None:
        self.base = base
        self.kinds = base.kinds
        self.after: dict[Key, Document | None] = {}  # in the order of the first touch; None is deleted
        self._dependents: dict[str, dict[str, list[str]]] = {}  # by kind, made when first asked for
        self._new_users: dict[Key, set[str]] | None = None

    def put(self, kind: Kind, id: str, document: Document | None) -> None:
        self.after[kind.name, id] = document
        self._dependents.pop(kind.name, None)
        self._new_users = None

    def get(self, kind: str, id: str) -> Document | None:
        if (kind, id) in self.after:
            return self.after[kind, id]
        stored = self.base.get(kind, id)
        return stored.body if stored else None

    def ids(self, kind: str) -> list[str]:
        """Of the documents that are there, sorted."""
        touched = {id for of, id in self.after if of == kind}
        return sorted({*self.base.documents[kind], *touched} - {id for id in touched if self.after[kind, id] is None})

    def users(self, kind: Kind, id: str) -> set[str]:
        """The clusters that refer to a definition."""
        if self._new_users is None:
            self._new_users = self._referring()
        unchanged = {user for user in self.base.users.get((kind.name, id), ()) if (CLUSTERS, user) not in self.after}
        return unchanged | self._new_users.get((kind.name, id), set())

    def _referring(self) -> dict[Key, set[str]]:
        """What the changed clusters refer to."""
        found: dict[Key, set[str]] = {}
        for (name, id), document in self.after.items():
            if name == CLUSTERS and document is not None:
                for kind in self.kinds.referenced:
                    for reference in document[kind.cluster_field or ""]:
                        found.setdefault((kind.name, reference["id"]), set()).add(id)
        return found

    def dependents(self, kind: Kind, id: str) -> list[str]:
        """The documents of the same kind that depend on one."""
        assert kind.dependencies
        if kind.name not in self._dependents:
            reverse = self._dependents[kind.name] = {}
            for name in self.ids(kind.name):
                for other in (self.get(kind.name, name) or {}).get(kind.dependencies.field, ()):
                    reverse.setdefault(other, []).append(name)
        return self._dependents[kind.name].get(id, [])
