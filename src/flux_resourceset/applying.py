"""What a manager applies, merged into what is there: field by field, and what others changed meanwhile stays. Pure.

Three documents take part: what the manager named last, what it names now, and what is there. A document names its leaves:
scalar fields, whole arrays, keys of maps, and of an array of references each reference by its id, and each field of it. An
empty object and an empty array name nothing. Where both sides changed the same leaf, that is a conflict; the merged document
has the manager's side of it, as if it were forced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from flux_resourceset import differences
from flux_resourceset.differences import ABSENT, Steps, same

Document = dict[str, Any]
Names = dict[Steps, Any]
Completed = Callable[[Document], Document]  # with every default of the kind filled in

REFERENCE: Final[Any] = object()  # the value of a leaf that stands for a reference as such
PATCHES = "patches"  # the field of a cluster with values for what it refers to, by id


class Conflict(NamedTuple):
    steps: Steps
    yours: Any  # ABSENT: no longer named
    theirs: Any


class Merged(NamedTuple):
    document: Document
    conflicts: tuple[Conflict, ...]
    kept: tuple[Steps, ...]  # what others changed, and the manager names as before


class Fields(NamedTuple):
    """What is to be known of a kind's fields."""

    references: Collection[str] = ()  # those that hold arrays of references
    patched: Collection[str] = ()  # those of them whose references have patches


def names(document: Document, fields: Fields, full: Document | None = None) -> Names:
    """What a document names, in its order, with the values of its `full` form if that is given."""
    found: Names = {}
    for name, value in document.items():
        whole = value if full is None else full[name]
        by_id = _by_id(value) if name in fields.references else None
        if by_id is not None:
            members = _by_id(whole) or by_id
            for id, reference in by_id.items():
                found[name, id] = REFERENCE
                found.update(_leaves(_without_id(reference), members[id], (name, id)))
        elif name != "id":
            found.update(_leaves(value, whole, (name,)))
    return found


def _leaves(value: Any, full: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, full[name], (*steps, name))
    elif value != []:
        yield steps, full


def _by_id(value: Any) -> dict[str, Any] | None:
    return differences.members(value) if isinstance(value, list) else None


def _without_id(reference: Document) -> Document:
    return {name: value for name, value in reference.items() if name != "id"}


def merged(
    last: Document | None, new: Document, live: Document, others: Iterable[Document], completed: Completed, fields: Fields
) -> Merged:
    """`last` is what the manager named last, None if nothing yet, `others` what other managers name; all as they were sent."""
    merging = _Merging(last or {}, new, live, others, completed, fields)
    merging.drop()
    merging.take()
    return Merged(merging.document(), tuple(merging.conflicts), tuple(merging.kept))


class _Merging:
    def __init__(
        self, last: Document, new: Document, live: Document, others: Iterable[Document], completed: Completed, fields: Fields
    ) -> None:
        self._fields = fields
        self._completed = completed
        self._new = names(new, fields, completed(new))
        self._last = self._new if same(last, new) else names(last, fields, completed(last))  # mostly it is the same again
        self._last_sent, self._new_sent = self._indexed(last), self._indexed(new)
        self._stored, self._live = live, self._indexed(live)
        self._result = _copied(self._live)
        self._others = {steps for other in others for steps in names(other, fields)}
        self.conflicts: list[Conflict] = []
        self.kept: list[Steps] = []

    def _indexed(self, document: Document) -> Document:
        """With references by their ids, so that places of them are found at once."""
        by_ids = {name: _by_id(document.get(name)) for name in self._fields.references}
        return {**document, **{name: by_id for name, by_id in by_ids.items() if by_id is not None}}

    def document(self) -> Document:
        arrays = {
            name: list(self._result[name].values())
            for name in self._fields.references
            if isinstance(self._result.get(name), dict)
        }
        return {**self._result, **arrays}

    # What is no longer named

    def drop(self) -> None:
        for steps, value in self._last.items():
            if steps in self._new:
                continue
            if value is REFERENCE:
                self._drop_reference(steps)
            elif not self._goes_with_its_reference(steps):
                self._drop_leaf(steps, value)

    def _drop_leaf(self, steps: Steps, value: Any) -> None:
        theirs = _at(self._live, steps)
        default = ABSENT if theirs is ABSENT else self._default(steps)
        if not same(theirs, value):
            if same(theirs, default):
                return  # others have reset it already
            self.conflicts.append(Conflict(steps, ABSENT, theirs))
        if steps not in self._others:
            self._remove(steps)
            if default is not ABSENT and len(steps) > 1:  # a field of its own is completed in view of the others
                self._set(steps, default)

    def _drop_reference(self, steps: Steps) -> None:
        reference = _at(self._live, steps)
        if reference is ABSENT or steps in self._others:
            return
        for place, theirs in _leaves(_without_id(reference), reference, steps):
            if not same(theirs, self._last.get(place, ABSENT)) and not same(theirs, self._default(place)):
                self.conflicts.append(Conflict(place, ABSENT, theirs))
        for place, theirs in self._patches_of(steps):
            if place in self._new:
                continue  # it contradicts itself, and the rules of the kind say so
            if place in self._others or not same(theirs, self._last.get(place, ABSENT)):
                self.conflicts.append(Conflict(place, ABSENT, theirs))
            self._remove(place)
        if steps[0] in self._fields.patched and _at(self._result, (PATCHES, steps[1])) == {}:
            self._result[PATCHES].pop(steps[1])  # it has nothing to patch, also where it was sent as empty
        self._remove(steps)

    def _patches_of(self, steps: Steps) -> list[tuple[Steps, Any]]:
        """Of a reference that is there."""
        if steps[0] not in self._fields.patched:
            return []
        values = _at(self._live, (PATCHES, steps[1]))
        return [] if values is ABSENT else list(_leaves(values, values, (PATCHES, steps[1])))

    def _goes_with_its_reference(self, steps: Steps) -> bool:
        whose = self._reference_of(steps, self._last)
        return whose is not None and whose not in self._new and whose not in self._others

    def _reference_of(self, steps: Steps, named: Names) -> Steps | None:
        """The reference that a leaf is a part of, or whose patches it is among, if that is named."""
        fields = self._fields.patched if steps[0] == PATCHES else [steps[0]]
        owners = ((name, steps[1]) for name in fields if len(steps) > 2)
        return next((owner for owner in owners if named.get(owner) is REFERENCE), None)

    # What is named

    def take(self) -> None:
        removed: dict[Steps, Names] = {steps: {} for steps in self._new if self._was_removed(steps)}
        for steps, value in self._new.items():
            whose = self._reference_of(steps, self._new)
            if whose is not None and whose in removed:
                removed[whose][steps] = value
            elif value is not REFERENCE:
                self._take_leaf(steps, value)
            elif steps not in removed and _at(self._result, steps) is ABSENT:
                self._set(steps, {"id": steps[1]})
        for whose, parts in removed.items():
            self._take_removed(whose, parts)

    def _was_removed(self, steps: Steps) -> bool:
        return self._new[steps] is self._last.get(steps) is REFERENCE and _at(self._live, steps) is ABSENT

    def _take_removed(self, steps: Steps, parts: Names) -> None:
        """A reference that others removed: it stays away, unless something about it is new; then it is wanted back whole."""
        changed = {place: value for place, value in parts.items() if not same(value, self._last.get(place, ABSENT))}
        if not changed:
            self.kept += [steps, *(place for place in parts if place[0] == PATCHES)]
            return
        self.conflicts += [Conflict(place, value, ABSENT) for place, value in changed.items()]
        self._set(steps, {"id": steps[1]})
        for place, value in parts.items():
            self._set(place, value)

    def _take_leaf(self, steps: Steps, value: Any) -> None:
        place, theirs = self._there(steps)
        again = steps in self._last
        if again and same(value, self._last[steps]):
            if not same(theirs, value):
                self.kept.append(steps)
            return
        was = self._last.get(place, _at(self._last_sent, place))
        free = (place == steps and same(theirs, value)) or (theirs is not ABSENT and same(theirs, was))
        if not free and (again or not (theirs is ABSENT or same(theirs, self._default(place)))):
            self.conflicts.append(Conflict(steps, value, theirs))
        self._set(steps, value)

    def _there(self, steps: Steps) -> tuple[Steps, Any]:
        """What stands at a place, or above it in its way; with where that is."""
        holder: Any = self._live
        for depth, step in enumerate(steps):
            if not isinstance(holder, dict):
                return steps[:depth], holder
            if step not in holder:
                return steps, ABSENT
            holder = holder[step]
        return steps, self._stored[str(steps[0])] if len(steps) == 1 else holder

    def _default(self, steps: Steps) -> Any:
        """What the document would say at a place where something is, if nobody had said it, or anything around it."""
        document, least = self._stored, 1
        if len(steps) > 1:  # nothing beside it matters
            name, part = str(steps[0]), _at(self._live, steps[:1])
            if name in self._fields.references:
                part, least = [part[steps[1]]], 3
            document = {name: {steps[1]: part[steps[1]]} if name == PATCHES else part}
        for depth in range(len(steps), least - 1, -1):
            found = differences.at(self._completed(differences.without(document, steps[:depth])), steps)
            if found is not ABSENT:
                return found
        return ABSENT

    # The result

    def _set(self, steps: Steps, value: Any) -> None:
        holder = self._result
        for step in steps[:-1]:
            if not isinstance(holder.get(step), dict):
                holder[step] = {}
            holder = holder[step]
        holder[steps[-1]] = value

    def _remove(self, steps: Steps) -> None:
        """With what holds nothing any more, unless it was sent as empty, or is an array of references."""
        holder = _at(self._result, steps[:-1])
        if not isinstance(holder, dict):
            return
        holder.pop(steps[-1], None)
        above = steps[:-1]
        if above and not holder and above[0] not in self._fields.references and _at(self._new_sent, above) != {}:
            self._remove(above)


def _at(document: Any, steps: Steps) -> Any:
    for step in steps:
        if not isinstance(document, dict) or step not in document:
            return ABSENT
        document = document[step]
    return document


def _copied(value: Any) -> Any:
    """With objects of its own; arrays are never changed."""
    return {name: _copied(item) for name, item in value.items()} if isinstance(value, dict) else value
