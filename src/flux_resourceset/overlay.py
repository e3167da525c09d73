"""The fleet as a draft would leave it: documents that changed, on top of those that did not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Change, Document
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds.model import CLUSTERS, Kind

Key = tuple[str, str]  # kind and id

_BYTES_PER_STEP = 64  # of changed documents, so that one large value cannot be put into thousands of clusters

_encode = msgspec.json.Encoder(order="deterministic").encode


class Overlay:
    def __init__(self, base: Fleet, budget: Budget) -> None:
        self.base = base
        self.budget = budget
        self.kinds = base.kinds
        self.after: dict[Key, Document | None] = {}  # in the order of the first touch; None is deleted
        self.touched: set[str] = set()  # the kinds of these
        self._dependents: dict[str, dict[str, list[str]]] = {}  # by kind, made when first asked for
        self._cyclic: dict[str, set[str]] = {}  # the same
        self._new_users: dict[Key, set[str]] | None = None

    def put(self, kind: Kind, id: str, document: Document | None) -> None:
        self.after[kind.name, id] = document
        self.touched.add(kind.name)
        self._dependents.pop(kind.name, None)
        self._cyclic.pop(kind.name, None)
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

    def documents(self, kind: str) -> dict[str, Document]:
        """All that are there, by id."""
        documents = {id: stored.body for id, stored in self.base.documents[kind].items()}
        for (of, id), document in self.after.items():
            if of == kind and document is not None:
                documents[id] = document
            elif of == kind:
                documents.pop(id, None)
        return documents

    def users(self, kind: Kind, id: str) -> set[str]:
        """The clusters that refer to a definition."""
        if self._new_users is None:
            self._new_users = self._referring()
        unchanged = {user for user in self.base.users.get((kind.name, id), ()) if (CLUSTERS, user) not in self.after}
        return unchanged | self._new_users.get((kind.name, id), set())

    def _referring(self) -> dict[Key, set[str]]:
        """What the changed clusters refer to."""
        users: dict[Key, set[str]] = {}
        for (name, id), document in self.after.items():
            if name == CLUSTERS and document is not None:
                for kind in self.kinds.referenced:
                    for reference in document[kind.cluster_field]:
                        users.setdefault((kind.name, reference["id"]), set()).add(id)
        return users

    def dependents(self, kind: Kind, id: str) -> list[str]:
        """The documents of the same kind that depend on one."""
        assert kind.dependencies
        if kind.name not in self._dependents:
            reverse = self._dependents[kind.name] = {}
            for name in self.ids(kind.name):
                for other in self.needed(kind, name):
                    reverse.setdefault(other, []).append(name)
        return self._dependents[kind.name].get(id, [])

    def needed(self, kind: Kind, id: str) -> list[str]:
        """What a document depends on."""
        assert kind.dependencies
        names: list[str] = (self.get(kind.name, id) or {}).get(kind.dependencies.field, [])
        self.budget.spend(1 + len(names))
        return names

    def cyclic(self, kind: Kind) -> set[str]:
        """The documents that depend on themselves, over whatever others. One pass over all dependencies of the kind."""
        if kind.name not in self._cyclic:
            self._cyclic[kind.name] = _cyclic(lambda id: self.needed(kind, id), self.ids(kind.name))
        return self._cyclic[kind.name]


def changes(before: Overlay, after: Overlay) -> Iterator[Change]:
    """What differs, in the order in which it was touched."""
    for (kind, id), new in after.after.items():
        after.budget.spend()
        old = before.get(kind, id)
        if old is None and new is not None:
            yield Change(kind, id, "create", None, new)
        elif old is not None and new is None:
            yield Change(kind, id, "delete", old, None)
        elif old is not None and new is not None and _differ(after.budget, old, new):
            yield Change(kind, id, "update", old, new)


def _differ(budget: Budget, before: Document, after: Document) -> bool:
    """What is the very same object in both is not looked at: most of a document stays."""
    if before.keys() != after.keys():
        return True
    touched = [name for name, value in after.items() if before[name] is not value]
    old, new = _encode([before[name] for name in touched]), _encode([after[name] for name in touched])
    budget.spend((len(old) + len(new)) // _BYTES_PER_STEP)
    return old != new


def _cyclic(needed: Callable[[str], list[str]], ids: Iterable[str]) -> set[str]:
    """The members of cycles: strongly connected components of more than one, and loops (Tarjan, without recursion)."""
    cyclic: set[str] = set()
    number: dict[str, int] = {}  # in the order of the first sight
    lowest: dict[str, int] = {}  # the first that can be reached from here and is still open
    open_: dict[str, None] = {}  # in order
    for start in ids:
        walk = [] if start in number else [(start, iter(needed(start)))]
        if walk:
            number[start] = lowest[start] = len(number)
            open_[start] = None
        while walk:
            id, rest = walk[-1]
            for other in rest:
                if other == id:
                    cyclic.add(id)
                elif other not in number:
                    number[other] = lowest[other] = len(number)
                    open_[other] = None
                    walk.append((other, iter(needed(other))))
                    break
                elif other in open_:
                    lowest[id] = min(lowest[id], number[other])
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    lowest[above] = min(lowest[above], lowest[id])
                if lowest[id] == number[id]:
                    together = _taken_from(open_, id)
                    cyclic.update(together if len(together) > 1 else ())
    return cyclic


def _taken_from(open_: dict[str, None], id: str) -> list[str]:
    together = []
    while id in open_:
        together.append(open_.popitem()[0])
    return together
