"""Why an input is as it is: for each of its values the document that says so, and the change that last set it there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from flux_resourceset import answers, differences, documents, errors, history, json_pointers, merge
from flux_resourceset.changes import Document, Entry
from flux_resourceset.differences import ABSENT, Steps
from flux_resourceset.fleet import Key
from flux_resourceset.history import Assigned, Past
from flux_resourceset.kinds.model import CLUSTERS, Kinds

DEFINITION, REFERENCE, PATCH, CLUSTER, DEFAULT, COMPUTED = "definition", "reference", "patch", "cluster", "default", "computed"

_COMPUTED = ("digest", "wait_for")
_IDENTITY = {"name": "cluster_name", "dns": "cluster_dns", "environment": "environment"}  # as merge.identity() has it


class Leaf(NamedTuple):
    """A scalar of an input, an array or an empty object, and where it comes from."""

    steps: Steps
    value: Any
    source: str
    document: Key | None = None  # that says so
    field: Steps = ()  # where in it

    @property
    def whole(self) -> Steps:
        """What the value came into the document with: a reference, or the document itself."""
        return self.field[:2] if self.source == REFERENCE else ()


def of(past: Past, cluster: str, view: str, input: str, revision: int) -> list[Document]:
    """Grows with the changes of the cluster and of the definition, up to those that set the values."""
    assigned = past.assigned(cluster, view, revision)
    found = leaves(assigned, input)
    setters = {
        document: _setters(past, document, [leaf for leaf in found if leaf.document == document], revision)
        for document in dict.fromkeys(leaf.document for leaf in found)
        if document is not None
    }
    return [_told(past.kinds, assigned, leaf, setters.get(leaf.document or ("", ""), {}).get(leaf.field)) for leaf in found]


# Where values come from


def leaves(assigned: Assigned, input: str) -> list[Leaf]:
    kind, cluster, definitions = assigned
    items = merge.assignments(kind, cluster, definitions)
    item = next((item for item in items if item.reference["id"] == input), None)
    if item is None:
        raise errors.NotFound(f'cluster "{cluster["id"]}" has no input "{input}" in {kind.endpoint}')
    digest = answers.Encoder().digests(kind, cluster, definitions)[input]
    content = {**merge.part(kind, item), "cluster": merge.identity(cluster), "digest": digest}
    origins = _Origins(assigned, item)
    return [origins.leaf(steps, value) for steps, value in _walked(content, ())]


def _walked(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if isinstance(value, dict) and (value or not steps):
        for name, inner in value.items():
            yield from _walked(inner, (*steps, name))
    else:
        yield steps, value


class _Origins:
    def __init__(self, assigned: Assigned, item: merge.Assignment) -> None:
        self._kind, cluster, _ = assigned
        self._item = item
        self._id: str = item.reference["id"]
        self._cluster = (CLUSTERS, cluster["id"])
        self._patched = assigned.kind.patches and self._id in cluster["patches"]

    def leaf(self, steps: Steps, value: Any) -> Leaf:
        first, *rest = steps
        if first in _COMPUTED or (steps == (first,) and first in self._kind.nest):
            return Leaf(steps, value, COMPUTED)
        if first == "cluster":
            return Leaf(steps, value, CLUSTER, self._cluster, (_IDENTITY[str(rest[0])],))
        if first == "patches":
            if not self._patched:
                return Leaf(steps, value, DEFAULT)
            return Leaf(steps, value, PATCH, self._cluster, ("patches", self._id, *rest))
        field = tuple(rest) if first in self._kind.nest else steps
        if self._item.reference.get(str(field[0])) is not None:
            return Leaf(steps, value, REFERENCE, self._cluster, (self._kind.cluster_field, self._id, *field))
        return Leaf(steps, value, DEFINITION, (self._kind.name, self._id), field)


# Who set them


class _Setter(NamedTuple):
    entry: Entry
    came_along: bool  # with the document or the reference, when that came


def _setters(past: Past, document: Key, leaves: list[Leaf], revision: int) -> dict[Steps, _Setter]:
    """By field, the change that last set it; what was folded away is not there."""
    waiting = {leaf.field: leaf for leaf in leaves}
    found: dict[Steps, _Setter] = {}
    for page in past.touches(*document, revision + 1):
        for entry in page:
            change = entry.changes[0]
            for field, leaf in list(waiting.items()):
                if not differences.same(history.place(change.before, field), history.place(change.after, field)):
                    came = history.place(change.before, leaf.whole) is ABSENT
                    found[field] = _Setter(entry, came)
                    del waiting[field]
            if not waiting:
                return found
    return found


def _told(kinds: Kinds, assigned: Assigned, leaf: Leaf, setter: _Setter | None) -> Document:
    told: Document = {"path": json_pointers.pointer(leaf.steps), "value": leaf.value, "source": leaf.source}
    if leaf.document is None:
        return told
    if (setter is None or setter.came_along) and _is_default(kinds, assigned, leaf):
        return {**told, "source": DEFAULT}
    kind, id = leaf.document
    about = {"kind": kind, "id": id, "field": json_pointers.pointer(leaf.field)}
    return {**told, **about, **history.signature(setter.entry if setter else None)}


def _is_default(kinds: Kinds, assigned: Assigned, leaf: Leaf) -> bool:
    """Whether the document would say the same if nobody had said it."""
    if leaf.document is None or leaf.source == PATCH:
        return False
    kind, id = leaf.document
    document = assigned.cluster if kind == CLUSTERS else assigned.definitions[id]
    value = differences.at(document, leaf.field)
    silent = differences.without(document, leaf.field)
    return differences.same(differences.at(documents.completed(kinds.by_name[kind], silent), leaf.field), value)
