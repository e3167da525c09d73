"""What a manager applies, merged into what is there: each row of the table, and what has a shape of its own."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import applying
from flux_resourceset.differences import ABSENT
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds import kind_files

FIELDS = applying.Fields({"refs", "plain"}, {"refs"})


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """A kind in which `size` is 1 unless it is said, limits are there as a whole, references are on, and subjects are groups."""
    full = {"size": 1, "labels": {}, "limits": {"cpu": 1, "memory": 2}, **document}
    if isinstance(full.get("refs"), list):
        full["refs"] = [{"on": True, **item} if isinstance(item, dict) else item for item in full["refs"]]
    if isinstance(full.get("subjects"), list):
        full["subjects"] = [{"sort": "group", **item} for item in full["subjects"]]
    return full


def merged(
    last: dict[str, Any] | None, new: dict[str, Any], live: dict[str, Any], *others: dict[str, Any]
) -> tuple[dict[str, Any], list[tuple[Any, ...]], list[str]]:
    """The document with defaults left out, conflicts with None for nothing, and what was kept."""
    found = applying.merged(last, new, completed(live), others, completed, FIELDS)
    document = completed(found.document)
    defaults = completed({})
    bare = {name: value for name, value in document.items() if name not in defaults or value != defaults[name]}
    if "refs" in bare:
        bare["refs"] = [{k: v for k, v in item.items() if (k, v) != ("on", True)} for item in bare["refs"]]
    conflicts = [(pointer(each.steps), *(None if v is ABSENT else v for v in each[1:])) for each in found.conflicts]
    return bare, conflicts, [pointer(steps) for steps in found.kept]


def ref(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, **fields}


# What a document names


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"id": "x", "a": 1, "b": None, "c": [1, 2]}, {"/a": 1, "/b": None, "/c": [1, 2]}),
        ({"a": {}, "b": [], "c": {"d": {}, "e": []}}, {}),
        ({"labels": {"z": "1", "a": {"b": False}}}, {"/labels/z": "1", "/labels/a/b": False}),
        (
            {"refs": [ref("r", tag="1", deep={"k": 1}), ref("s")]},
            {"/refs/r": "", "/refs/r/tag": "1", "/refs/r/deep/k": 1, "/refs/s": ""},
        ),
        ({"refs": []}, {}),
        ({"refs": [ref("r"), ref("r")]}, {"/refs": [ref("r"), ref("r")]}),  # no references that can be told apart
        ({"refs": 5, "other": [ref("r")]}, {"/refs": 5, "/other": [ref("r")]}),
        ({"patches": {"r": {"a.b": 1}}}, {"/patches/r/a.b": 1}),
    ],
)  # fmt: skip
def test_a_document_names_its_leaves(document: dict[str, Any], named: dict[str, Any]) -> None:
    found = applying.names(document, FIELDS)
    told = {pointer(steps): "" if value is applying.REFERENCE else value for steps, value in found.items()}
    assert told == named
    assert list(told) == list(named)


# The table: last, new, live → document, conflicts, kept

FIRST: list[Any] = [
    (None, {"a": 1}, {}, {"a": 1}, [], []),  # absent
    (None, {"size": 5}, {}, {"size": 5}, [], []),  # default
    (None, {"a": 1}, {"a": 1}, {"a": 1}, [], []),  # equal
    (None, {"a": 1}, {"a": 2}, {"a": 1}, [("/a", 1, 2)], []),
    (None, {"size": 5}, {"size": 6}, {"size": 5}, [("/size", 5, 6)], []),
    (None, {"a": 1}, {"a": True}, {"a": 1}, [("/a", 1, True)], []),
    ({"b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 1}, [("/a", 1, 2)], []),
    (None, {"labels": {"x": "1"}}, {"labels": {"y": "2"}}, {"labels": {"y": "2", "x": "1"}}, [], []),
    (None, {"labels": {"x": "1"}}, {"labels": {"x": "2"}}, {"labels": {"x": "1"}}, [("/labels/x", "1", "2")], []),
    (None, {"a": [1]}, {"a": [2]}, {"a": [1]}, [("/a", [1], [2])], []),
]
AS_BEFORE: list[Any] = [
    ({"a": 1}, {"a": 1}, {"a": 1}, {"a": 1}, [], []),
    ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}, [], ["/a"]),
    ({"a": 1}, {"a": 1}, {}, {}, [], ["/a"]),
    ({"size": 5}, {"size": 5}, {}, {}, [], ["/size"]),
    ({"labels": {"x": "1"}}, {"labels": {"x": "1"}}, {"labels": {"x": "2"}}, {"labels": {"x": "2"}}, [], ["/labels/x"]),
]
CHANGED: list[Any] = [
    ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}, [], []),
    ({"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}, [], []),
    ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 2}, [("/a", 2, 3)], []),
    ({"a": 1}, {"a": 2}, {}, {"a": 2}, [("/a", 2, None)], []),
    ({"size": 5}, {"size": 6}, {}, {"size": 6}, [("/size", 6, 1)], []),  # others have reset it
    ({"a": [1]}, {"a": [1, 2]}, {"a": [1]}, {"a": [1, 2]}, [], []),
]
DROPPED: list[Any] = [
    ({"a": 1}, {}, {"a": 1}, {}, [], []),
    ({"size": 5}, {}, {"size": 5}, {}, [], []),
    ({"a": 1}, {}, {"a": 2}, {}, [("/a", None, 2)], []),
    ({"a": 1}, {}, {}, {}, [], []),  # agreement
    ({"size": 5}, {}, {}, {}, [], []),
    ({"a": [1]}, {"a": []}, {"a": [1]}, {}, [], []),  # [] names nothing
    ({"labels": {"x": "1"}}, {}, {"labels": {"x": "1", "y": "2"}}, {"labels": {"y": "2"}}, [], []),
    ({"labels": {"x": "1"}}, {"labels": {}}, {"labels": {"x": "1"}}, {}, [], []),
    ({"deep": {"m": {"x": 1}}}, {}, {"deep": {"m": {"x": 1}}}, {}, [], []),
    ({"deep": {"m": {"x": 1}}}, {"deep": {"m": {}}}, {"deep": {"m": {"x": 1}}}, {"deep": {"m": {}}}, [], []),
]


@pytest.mark.parametrize(("last", "new", "live", "document", "conflicts", "kept"), [*FIRST, *AS_BEFORE, *CHANGED, *DROPPED])
def test_every_row_of_the_table(last: Any, new: Any, live: Any, document: Any, conflicts: Any, kept: Any) -> None:
    assert merged(last, new, live) == (document, conflicts, kept)


def test_a_part_of_a_default_is_a_default_and_goes_back_to_it() -> None:
    mine = {"limits": {"cpu": 5}}
    assert merged(None, mine, {}) == ({"limits": {"cpu": 5, "memory": 2}}, [], [])
    assert merged(mine, {}, {"limits": {"cpu": 5, "memory": 2}}) == ({}, [], [])
    assert merged(mine, {}, {"limits": {"cpu": 5, "memory": 3}}) == ({"limits": {"cpu": 1, "memory": 3}}, [], [])
    assert merged(mine, {}, {"limits": {"cpu": 1, "memory": 3}}) == ({"limits": {"cpu": 1, "memory": 3}}, [], [])
    assert merged(mine, {}, {"limits": {"cpu": 7, "memory": 2}})[1] == [("/limits/cpu", None, 7)]
    assert merged(None, mine, {"limits": {"cpu": 1, "memory": 3}})[1] == []


def test_what_another_manager_names_too_stays() -> None:
    both = {"a": 1, "refs": [ref("r", tag="1")]}
    assert merged(both, {}, both, {"a": 9, "refs": [ref("r")]}) == ({"a": 1, "refs": [ref("r")]}, [], [])
    assert merged(both, {}, both, {"b": 9}) == ({"refs": []}, [], [])


def test_what_another_manager_names_too_and_somebody_changed_is_a_conflict_and_stays_all_the_same() -> None:
    assert merged({"a": 1}, {}, {"a": 2}, {"a": 2}) == ({"a": 2}, [("/a", None, 2)], [])


def test_arrays_are_compared_as_they_are_stored() -> None:
    """With the defaults of their items."""
    sent = {"subjects": [{"name": "jane"}]}
    assert merged(None, sent, sent)[1:] == ([], [])
    assert merged(sent, sent, sent)[1:] == ([], [])
    assert merged(sent, {}, sent) == ({}, [], [])


# References

R = ref("r", tag="1")
REFERENCES: list[Any] = [
    (None, {"refs": [ref("r")]}, {"refs": [ref("s")]}, {"refs": [ref("s"), ref("r")]}, [], []),  # new ones come behind
    (None, {"refs": [ref("b"), ref("a")]}, {"refs": [ref("a")]}, {"refs": [ref("a"), ref("b")]}, [], []),
    (None, {"refs": [R]}, {"refs": [ref("r")]}, {"refs": [R]}, [], []),
    (None, {"refs": [R]}, {"refs": [ref("r", tag="2")]}, {"refs": [R]}, [("/refs/r/tag", "1", "2")], []),
    (None, {"refs": [ref("r", on=False)]}, {"refs": [ref("r")]}, {"refs": [ref("r", on=False)]}, [], []),  # default
    ({"refs": [R]}, {"refs": [R]}, {"refs": [ref("r", tag="2")]}, {"refs": [ref("r", tag="2")]}, [], ["/refs/r/tag"]),
    ({"refs": [R]}, {"refs": [ref("r")]}, {"refs": [R]}, {"refs": [ref("r")]}, [], []),
    ({"refs": [R]}, {}, {"refs": [R, ref("s")]}, {"refs": [ref("s")]}, [], []),
    ({"refs": [R]}, {}, {"refs": []}, {"refs": []}, [], []),  # others removed it as well
    ({"refs": [R]}, {}, {"refs": [ref("r")]}, {"refs": []}, [], []),  # others have reset its field
    # removed by others
    ({"refs": [R]}, {"refs": [R]}, {"refs": []}, {"refs": []}, [], ["/refs/r"]),
    ({"refs": [R]}, {"refs": [ref("r")]}, {"refs": []}, {"refs": []}, [], ["/refs/r"]),
    ({"refs": [R]}, {"refs": [ref("r", tag="2")]}, {"refs": []}, {"refs": [ref("r", tag="2")]}, [("/refs/r/tag", "2", None)], []),
    (
        {"refs": [R]}, {"refs": [ref("r", tag="1", on=False)]}, {"refs": []},
        {"refs": [ref("r", tag="1", on=False)]}, [("/refs/r/on", False, None)], [],
    ),
    # dropped, and touched by others
    ({"refs": [R]}, {}, {"refs": [ref("r", tag="2")]}, {"refs": []}, [("/refs/r/tag", None, "2")], []),
    ({"refs": [R]}, {}, {"refs": [ref("r", tag="1", on=False)]}, {"refs": []}, [("/refs/r/on", None, False)], []),
    (
        {"plain": [ref("r")]}, {}, {"plain": [ref("r")], "patches": {"r": {"k": 1}}},
        {"plain": [], "patches": {"r": {"k": 1}}}, [], [],
    ),
    # of an array without patches, with the id of one that has some
    ({"plain": [R]}, {"plain": [R]}, {"plain": []}, {"plain": []}, [], ["/plain/r"]),
    ({"plain": [R], "refs": [R]}, {"plain": [R]}, {"plain": [R], "refs": [R]}, {"plain": [R], "refs": []}, [], []),
    (
        {"plain": [R]}, {"plain": [ref("r", tag="2")]}, {"plain": []},
        {"plain": [ref("r", tag="2")]}, [("/plain/r/tag", "2", None)], [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("last", "new", "live", "document", "conflicts", "kept"), REFERENCES)
def test_references_are_merged_by_id(last: Any, new: Any, live: Any, document: Any, conflicts: Any, kept: Any) -> None:
    assert merged(last, new, live) == (document, conflicts, kept)


def patched(**values: Any) -> dict[str, Any]:
    return {"refs": [ref("r")], "patches": {"r": values}}


PATCHED: list[Any] = [
    (patched(k=1), {"refs": [ref("r")]}, patched(k=1, l=2), patched(l=2), [], []),
    (patched(k=1), {"refs": [ref("r")]}, patched(k=1), {"refs": [ref("r")]}, [], []),
    (patched(k=1), {}, patched(k=1), {"refs": []}, [], []),  # a reference goes with its patches
    (patched(k=1), {}, patched(k=1, l=2), {"refs": []}, [("/patches/r/l", None, 2)], []),
    (patched(k=1), {}, patched(k=3), {"refs": []}, [("/patches/r/k", None, 3)], []),
    (patched(k=1), patched(k=1), {"refs": []}, {"refs": []}, [], ["/refs/r", "/patches/r/k"]),
    (patched(k=1), patched(k=2), {"refs": []}, patched(k=2), [("/patches/r/k", 2, None)], []),
    (patched(k=1), patched(k=1, l=2), {"refs": []}, patched(k=1, l=2), [("/patches/r/l", 2, None)], []),
    (patched(k=1), {"patches": {"r": {"k": 1}}}, patched(k=1), {"refs": [], "patches": {"r": {"k": 1}}}, [], []),
]


@pytest.mark.parametrize(("last", "new", "live", "document", "conflicts", "kept"), PATCHED)
def test_patches_are_merged_by_key(last: Any, new: Any, live: Any, document: Any, conflicts: Any, kept: Any) -> None:
    assert merged(last, new, live) == (document, conflicts, kept)


def test_a_dropped_reference_whose_patches_another_manager_names_is_a_conflict() -> None:
    found = merged(patched(k=1), {}, patched(k=1), {"patches": {"r": {"k": 1}}})
    assert found == ({"refs": []}, [("/patches/r/k", None, 1)], [])


def test_references_of_two_arrays_that_share_their_patches_go_together() -> None:
    mine = {"refs": [ref("r")], "plain": [ref("r")], "patches": {"r": {"k": 1}}}
    found = applying.merged(mine, {}, mine, (), lambda document: document, applying.Fields(["refs", "plain"], ["refs", "plain"]))
    assert (found.document, found.conflicts) == ({"refs": [], "plain": []}, ())


# Defaults


def test_a_field_goes_back_to_the_default_that_fits_what_is_applied() -> None:
    """Where the default of one field depends on another."""

    def dependent(document: dict[str, Any]) -> dict[str, Any]:
        return {"ring": "small" if document.get("size", 1) < 3 else "large", **document}

    mine = {"size": 5, "ring": "own"}
    found = applying.merged(mine, {"size": 1}, mine, (), dependent, FIELDS)
    assert (dependent(found.document), found.conflicts) == ({"size": 1, "ring": "small"}, ())


def test_fields_of_references_are_compared_as_they_are_stored() -> None:
    sent = {"refs": [ref("r", hosts=[{"name": "a"}])]}

    def full(document: dict[str, Any]) -> dict[str, Any]:
        refs = document.get("refs", [])
        return {**document, "refs": [{**each, "hosts": [{"port": 80, **host} for host in each["hosts"]]} for each in refs]}

    found = applying.merged(None, sent, full(sent), (), full, FIELDS)
    assert (found.document, found.conflicts) == (full(sent), ())
    assert applying.merged(sent, sent, full(sent), (), full, FIELDS).kept == ()


# What changes its shape


@pytest.mark.parametrize(
    ("last", "new", "live", "document", "conflicts"),
    [
        (None, {"a": {"b": 1}}, {"a": 7}, {"a": {"b": 1}}, [("/a/b", 1, 7)]),  # nothing is overwritten on the way
        ({"a": 5}, {"a": {"b": 1}}, {"a": 5}, {"a": {"b": 1}}, []),
        ({"a": 5}, {"a": {"b": 1}}, {"a": 7}, {"a": {"b": 1}}, [("/a", None, 7), ("/a/b", 1, 7)]),
        ({"a": {"b": 1}}, {"a": 5}, {"a": {"b": 1}}, {"a": 5}, []),
        ({"a": {"b": 1}}, {"a": 5}, {"a": {"b": 1, "c": 2}}, {"a": 5}, [("/a", 5, {"b": 1, "c": 2})]),
        (None, {"labels": "x"}, {}, {"labels": "x"}, []),
        (None, {"refs": "x"}, {"refs": [ref("r")]}, {"refs": "x"}, [("/refs", "x", [ref("r", on=True)])]),
        (None, {"refs": [ref("r")]}, {}, {"refs": [ref("r")]}, []),
    ],
)
def test_a_field_of_another_shape_is_no_way_around_others(last: Any, new: Any, live: Any, document: Any, conflicts: Any) -> None:
    if document.get("refs") == "x":
        found = applying.merged(last, new, completed(live), (), completed, FIELDS)
        assert (found.document["refs"], [(pointer(c.steps), c.yours, c.theirs) for c in found.conflicts]) == ("x", conflicts)
    else:
        assert merged(last, new, live)[:2] == (document, conflicts)


def test_nothing_that_was_given_is_changed() -> None:
    last, new, live = patched(k=1), patched(k=2), completed(patched(k=1, l=2))
    before = repr((last, new, live))
    applying.merged(last, new, live, [patched(l=2)], completed, FIELDS)
    assert repr((last, new, live)) == before


def test_the_field_of_patches_is_the_one_of_clusters() -> None:
    assert applying.PATCHES in kind_files.load().clusters.properties
