"""The places in which two values differ, each with what stood there before and what stands there after. Pure.

Objects are always compared member by member. Arrays are compared in one of three ways:

- of documents: the arrays of references, which are fields of the document that the caller names, are compared by id, and every
  other array is one value. Where what stays has another order, or what is new does not stand behind it, ids cannot say where
  everything belongs, and the whole array of references is the difference.
- of inputs: every array is one value, for that is how a template reads it.
- of manifests: item by item, where what stayed is recognised although something came before it. This one is for reading only:
  a position is that of the item before when it is gone, and the one after otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
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


def of_documents(before: Any, after: Any, references: Collection[str]) -> list[Difference]:
    """`references` are the fields that hold arrays of references."""

    def arrays(old: list[Any], new: list[Any], steps: Steps) -> Iterator[Difference]:
        return (_by_id if _holds_references(steps, references) else _as_one)(old, new, steps)

    return list(_differences(before, after, (), arrays))


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


def applied(before: Any, fields: Iterable[dict[str, Any]]) -> Any:
    """What the fields of documents, or of inputs, make of what was before: the way back from fields()."""
    result: Any = before
    for field in fields:
        result = _with(result, json_pointers.steps(field["path"]), field.get("after", ABSENT))
    return result


def _with(holder: Any, steps: list[str], value: Any) -> Any:
    """A copy in which something else stands at a place; what is new in an array stands at its end."""
    if not steps:
        return value
    if isinstance(holder, list):
        by_id = _with(members(holder) or {}, steps, value)
        return list(by_id.values())
    inner = _with(holder.get(steps[0], ABSENT), steps[1:], value)
    others = {name: item for name, item in holder.items() if name != steps[0] or inner is not ABSENT}
    return others if inner is ABSENT else {**others, steps[0]: inner}


def without(document: Any, steps: Iterable[json_pointers.Step]) -> Any:
    """A copy in which nothing stands at a place."""
    return _with(document, [str(step) for step in steps], ABSENT)


def at(document: Any, steps: Iterable[json_pointers.Step]) -> Any:
    """What stands at a place of a document, where references are named by their ids; or ABSENT."""
    for step in steps:
        inside = members(document) if isinstance(document, list) else document
        if not isinstance(inside, dict) or str(step) not in inside:
            return ABSENT
        document = inside[str(step)]
    return document


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
    old, new = members(before), members(after)
    if old is None or new is None or [*(id for id in old if id in new), *(id for id in new if id not in old)] != [*new]:
        yield from _as_one(before, after, steps)
    else:
        yield from _differences(old, new, steps, _as_one)


def _holds_references(steps: Steps, references: Collection[str]) -> bool:
    return len(steps) == 1 and steps[0] in references


def members(items: list[Any]) -> dict[str, Any] | None:
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
