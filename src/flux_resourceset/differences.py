"""The places in which two values differ, each with what stood there before and what stands there after. Pure.

Objects are always compared member by member. Arrays are compared in one of three ways:

- of documents: arrays of objects that all have an id of their own are compared by id. Where what stays has another order, or
  what is new does not stand behind it, ids cannot say where everything belongs, and the whole array is the difference.
- of inputs: every array is one value, for that is how a template reads it.
- of manifests: item by item, where what stayed is recognised although something came before it. This one is for reading only:
  a position is that of the item before when it is gone, and the one after otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from flux_resourceset import json_pointers

ABSENT: Final[Any] = object()  # stands for no value; null is one

Steps = tuple[json_pointers.Step, ...]


class Difference(NamedTuple):
    steps: Steps
    before: Any
    after: Any

    @property
    def pointer(self) -> str:
        return json_pointers.pointer(self.steps)


def of_documents(before: Any, after: Any) -> list[Difference]:
    return list(_differences(before, after, (), _by_id))


def of_inputs(before: Any, after: Any) -> list[Difference]:
    return list(_differences(before, after, (), _as_one))


def of_manifests(before: Any, after: Any) -> list[Difference]:
    return list(_differences(before, after, (), _item_by_item))


def fields(differences: Iterable[Difference]) -> list[dict[str, Any]]:
    """Differences as JSON; a side on which there is nothing is left out."""
    return [
        {"path": item.pointer}
        | ({} if item.before is ABSENT else {"before": item.before})
        | ({} if item.after is ABSENT else {"after": item.after})
        for item in differences
    ]


def same(first: Any, second: Any) -> bool:
    """Equal as JSON: to Python, true is 1 and 1 is 1.0."""
    if type(first) is not type(second) or first != second:
        return False
    if isinstance(first, dict):
        return all(same(value, second[name]) for name, value in first.items())
    return not isinstance(first, list) or all(map(same, first, second))


_Arrays = Callable[[list[Any], list[Any], Steps], Iterator[Difference]]


def _differences(before: Any, after: Any, steps: Steps, arrays: _Arrays) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _differences(before.get(name, ABSENT), after.get(name, ABSENT), (*steps, name), arrays)
    elif isinstance(before, list) and isinstance(after, list):
        yield from arrays(before, after, steps)
    elif not same(before, after):
        yield Difference(steps, before, after)


def _as_one(before: list[Any], after: list[Any], steps: Steps) -> Iterator[Difference]:
    if not same(before, after):
        yield Difference(steps, before, after)


def _by_id(before: list[Any], after: list[Any], steps: Steps) -> Iterator[Difference]:
    old, new = _members(before), _members(after)
    if old is None or new is None or [*(id for id in old if id in new), *(id for id in new if id not in old)] != [*new]:
        yield from _as_one(before, after, steps)
    else:
        yield from _differences(old, new, steps, _by_id)


def _members(items: list[Any]) -> dict[str, Any] | None:
    """The items by their ids; None unless each has one of its own."""
    if not all(isinstance(item, dict) and isinstance(item.get("id"), str) for item in items):
        return None
    members = {item["id"]: item for item in items}
    return members if len(members) == len(items) else None


def _item_by_item(before: list[Any], after: list[Any], steps: Steps) -> Iterator[Difference]:
    import difflib  # not for commands that never compare manifests: it takes longer to import than they do to start
    import json

    olds, news = ([json.dumps(item, sort_keys=True) for item in items] for items in (before, after))
    for tag, old, old_end, new, new_end in difflib.SequenceMatcher(None, olds, news, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(old_end - old, new_end - new)
        for offset in range(both):
            yield from _differences(before[old + offset], after[new + offset], (*steps, new + offset), _item_by_item)
        for position in range(old + both, old_end):
            yield Difference((*steps, position), before[position], ABSENT)
        for position in range(new + both, new_end):
            yield Difference((*steps, position), ABSENT, after[position])
