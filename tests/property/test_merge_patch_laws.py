"""JSON Merge Patch: the examples of RFC 7396's appendix, and what follows from its text."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset.documents import merge_patch

# Appendix A: original, patch, result.
APPENDIX: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

names = st.sampled_from("abcd")
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("xy", max_size=2)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(names, values, max_size=4)


def without_nulls(value: Any) -> Any:
    """Objects cannot hold null after a merge; arrays can."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


def difference(before: Any, after: Any) -> Any:
    """A patch that leads from one object to another."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch = {name: None for name in before if name not in after}
    return patch | {n: difference(before.get(n), v) for n, v in after.items() if n not in before or before[n] != v}


@pytest.mark.parametrize(("original", "patch", "result"), APPENDIX)
def test_the_example_of_the_appendix(original: Any, patch: Any, result: Any) -> None:
    assert merge_patch(original, patch) == result


@given(values, values)
def test_nothing_that_is_given_is_changed(target: Any, patch: Any) -> None:
    kept = copy.deepcopy((target, patch))
    merge_patch(target, patch)
    assert (target, patch) == kept


@given(values, values)
def test_merging_twice_is_merging_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(values, values.filter(lambda value: not isinstance(value, dict)))
def test_a_patch_that_is_no_object_replaces_everything(target: Any, patch: Any) -> None:
    assert merge_patch(target, patch) == patch


@given(objects)
def test_an_empty_patch_changes_nothing(target: dict[str, Any]) -> None:
    assert merge_patch(target, {}) == target


@given(objects, objects)
def test_members_that_are_not_named_stay_and_nulls_go(target: dict[str, Any], patch: dict[str, Any]) -> None:
    result = merge_patch(target, patch)
    assert {name: result[name] for name in target if name not in patch} == {n: v for n, v in target.items() if n not in patch}
    assert all(name not in result for name, value in patch.items() if value is None)
    assert set(result) == (set(target) | set(patch)) - {name for name, value in patch.items() if value is None}


@given(objects.map(without_nulls), objects.map(without_nulls))
def test_there_is_a_patch_from_every_object_to_every_other(before: Any, after: Any) -> None:
    assert merge_patch(before, difference(before, after)) == after
