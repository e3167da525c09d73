"""A change taken back on top of what came since."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import differences, undoing
from flux_resourceset.differences import ABSENT


def undone(before: Any, after: Any, today: Any) -> tuple[Any, list[str]]:
    found = undoing.undone(before, after, today, {"refs"})
    return found.document, [differences.Difference(steps, None, None).pointer for steps in found.conflicts]


def refs(*ids: str, **tags: str) -> list[dict[str, str]]:
    return [{"id": id, **({"tag": tags[id]} if id in tags else {})} for id in ids]


ABC = refs("a", "b", "c")


@pytest.mark.parametrize(
    ("before", "after", "today", "expected"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 1}),
        ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 1}),  # it has its old value already
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 2, "b": 9}, {"a": 1, "b": 9}),  # what others changed stays
        ({}, {"a": 1}, {"a": 1, "b": 1}, {"b": 1}),
        ({"a": 1}, {}, {"b": 1}, {"b": 1, "a": 1}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2], "b": 1}, {"a": [1], "b": 1}),  # arrays as wholes
        ({"p": {}}, {"p": {"x": {"k": 1}}}, {"p": {"x": {"k": 1, "l": 2}}}, {"p": {"x": {"l": 2}}}),  # maps by key
        ({"p": {}}, {"p": {"x": {"k": 1}}}, {"p": {"x": {"k": 1}, "y": {}}}, {"p": {"y": {}}}),
        ({"p": {"x": {"k": 1}}}, {"p": {}}, {"p": {"x": {"l": 2}}}, {"p": {"x": {"l": 2, "k": 1}}}),
        ({"refs": refs("a")}, {"refs": refs("a", "b")}, {"refs": refs("a", "b", "c")}, {"refs": refs("a", "c")}),
        ({"refs": refs("a", "b", "c")}, {"refs": refs("a", "c")}, {"refs": refs("c", "d")}, {"refs": refs("b", "c", "d")}),
        ({"refs": refs("a", "b", "c")}, {"refs": refs("c")}, {"refs": refs("x", "c")}, {"refs": refs("x", "a", "b", "c")}),
        ({"refs": refs("a", "b")}, {"refs": refs("a")}, {"refs": refs("a", "c")}, {"refs": refs("a", "c", "b")}),
        ({"refs": refs("a", "b")}, {"refs": refs("b", "a")}, {"refs": refs("x", "b", "a")}, {"refs": refs("x", "a", "b")}),
        ({"refs": refs("a", "b")}, {"refs": refs("b", "a")}, {"refs": refs("a", "b", "x")}, {"refs": refs("a", "b", "x")}),
        ({}, {"refs": refs("a")}, {"refs": refs("a", "b")}, {"refs": refs("b")}),
        (
            {"refs": refs("a", a="1")},
            {"refs": refs("a", a="2")},
            {"refs": [{"id": "a", "tag": "2", "on": "yes"}]},
            {"refs": [{"id": "a", "tag": "1", "on": "yes"}]},
        ),
        (ABSENT, {"a": 1}, {"a": 1}, ABSENT),
        (ABSENT, {"a": 1}, ABSENT, ABSENT),
        ({"a": 1}, ABSENT, ABSENT, {"a": 1}),
        ({"a": 1}, ABSENT, {"a": 1}, {"a": 1}),
    ],
)  # fmt: skip
def test_what_others_changed_stays(before: Any, after: Any, today: Any, expected: Any) -> None:
    assert undone(before, after, today) == (expected, [])


@pytest.mark.parametrize(
    ("before", "after", "today", "expected", "conflicts"),
    [
        ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 1}, ["/a"]),
        ({"a": 1}, {"a": 2}, {}, {"a": 1}, ["/a"]),
        ({"p": {"x": {"k": 1}}}, {"p": {"x": {"k": 2}}}, {"p": {}}, {"p": {"x": {"k": 1}}}, ["/p/x/k"]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": 5}, {"a": {"b": 1}}, ["/a"]),
        (ABSENT, {"a": 1, "b": 1}, {"a": 2, "b": 1}, ABSENT, ["/a"]),  # created, and changed since
        ({"a": 1}, ABSENT, {"a": 2}, {"a": 1}, [""]),  # deleted, and created again since
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, ABSENT, {"a": 1, "b": 1}, ["/a"]),  # changed, and deleted since
        ({"refs": []}, {"refs": refs("a")}, {"refs": refs("a", a="9")}, {"refs": []}, ["/refs/a/tag"]),
        ({"refs": refs("a")}, {"refs": []}, {"refs": refs("a", a="9")}, {"refs": refs("a")}, ["/refs/a"]),
        ({"refs": refs("a", a="1")}, {"refs": refs("a", a="2")}, {"refs": []}, {"refs": refs("a", a="1")}, ["/refs/a/tag"]),
        ({"refs": ABC}, {"refs": ABC[::-1]}, {"refs": refs("b", "c", "a")}, {"refs": ABC}, ["/refs"]),
    ],
)  # fmt: skip
def test_what_was_changed_again_is_named_and_taken_back_all_the_same(
    before: Any, after: Any, today: Any, expected: Any, conflicts: list[str]
) -> None:
    assert undone(before, after, today) == (expected, conflicts)
