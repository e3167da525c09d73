"""A change of a document taken back on top of what came since: field by field, and what others changed stays. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from flux_resourceset import differences
from flux_resourceset.differences import ABSENT, Steps, same


class Undone(NamedTuple):
    document: Any  # as it is without the change; ABSENT: it is not there
    conflicts: tuple[Steps, ...]  # what was changed again since, and is taken back in the document all the same


def undone(before: Any, after: Any, today: Any, references: Collection[str]) -> Undone:
    """`before` and `after` are the sides of the change, `references` the fields that hold arrays of references."""
    undoing = _Undoing(references)
    document = undoing.value(before, after, today, ())
    return Undone(document, tuple(undoing.conflicts))


class _Undoing:
    def __init__(self, references: Collection[str]) -> None:
        self._references = references
        self.conflicts: list[Steps] = []

    def value(self, before: Any, after: Any, today: Any, steps: Steps) -> Any:
        if same(before, after) or same(today, before):
            return today  # the change did nothing here, or nothing is left of it
        if same(today, after):
            return before
        sides = [side for side in (before, after, today) if side is not ABSENT]
        if self._is_whole(steps) and len(sides) < 3:
            self.conflicts += self._parts(before, after, today, steps)
        elif all(isinstance(side, dict) for side in sides):
            return self._members(before, after, today, steps)
        elif self._holds_references(steps) and all(_by_id(side) is not None for side in sides):
            return self._items(_by_id(before) or {}, _by_id(after) or {}, _by_id(today) or {}, steps)
        else:
            self.conflicts.append(steps)
        return before

    def _is_whole(self, steps: Steps) -> bool:
        """Whether something comes and goes as a whole: the document, a reference. Of anything else members may come and go."""
        return not steps or (len(steps) == 2 and steps[0] in self._references)

    def _holds_references(self, steps: Steps) -> bool:
        return len(steps) == 1 and steps[0] in self._references

    def _parts(self, before: Any, after: Any, today: Any, steps: Steps) -> list[Steps]:
        """Where something that came or went as a whole is not as the change left it."""
        if after is ABSENT:  # it went, and is there again
            return [steps]
        sides = (after, today) if before is ABSENT else (before, after)
        references = self._references if not steps else ()
        return [(*steps, *item.steps) for item in differences.of_documents(*sides, references)]

    def _members(self, before: Any, after: Any, today: Any, steps: Steps) -> Any:
        old, new, now = ({} if side is ABSENT else side for side in (before, after, today))
        found = {}
        for name in dict.fromkeys([*now, *old]):
            found[name] = self.value(old.get(name, ABSENT), new.get(name, ABSENT), now.get(name, ABSENT), (*steps, name))
        left = {name: value for name, value in found.items() if value is not ABSENT}
        return ABSENT if before is ABSENT and not left else left

    def _items(self, old: dict[str, Any], new: dict[str, Any], now: dict[str, Any], steps: Steps) -> list[Any]:
        found = {}
        for id in dict.fromkeys([*now, *old]):
            found[id] = self.value(old.get(id, ABSENT), new.get(id, ABSENT), now.get(id, ABSENT), (*steps, id))
        there = [id for id in now if found[id] is not ABSENT]
        return [found[id] for id in _with_revived(self._ordered(there, old, new, steps), old, found)]

    def _ordered(self, there: list[str], old: dict[str, Any], new: dict[str, Any], steps: Steps) -> list[str]:
        """As they stand today, but for those that the change moved."""
        moved = set(there) & old.keys() & new.keys()
        before, after, today = ([id for id in side if id in moved] for side in (old, new, there))
        if before == after or today == before:
            return there
        if today != after:
            self.conflicts.append(steps)
        in_order = iter(before)
        return [next(in_order) if id in moved else id for id in there]


def _with_revived(there: list[str], old: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Each one that comes back stands before the first of its former followers that is there, or else at the end."""
    still = set(there)
    ahead_of: dict[str, list[str]] = {}
    behind: list[str] = []
    group = behind
    for id in reversed(old):
        if id in still:
            group = ahead_of.setdefault(id, [])
        elif found[id] is not ABSENT:
            group.append(id)
    return [one for id in there for one in (*reversed(ahead_of.get(id, [])), id)] + behind[::-1]


def _by_id(side: Any) -> dict[str, Any] | None:
    if side is ABSENT:
        return {}
    return differences.members(side) if isinstance(side, list) else None
