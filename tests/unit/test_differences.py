"""The places in which two values differ, read as documents, as inputs and as manifests."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import differences, json_pointers

Field = dict[str, Any]


def of_documents(before: Any, after: Any) -> list[Field]:
    return differences.fields(differences.of_documents(before, after, {"x"}))


def of_inputs(before: Any, after: Any) -> list[Field]:
    return differences.fields(differences.of_inputs(before, after))


@pytest.mark.parametrize("compared", [of_documents, of_inputs])
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [{"path": "/a", "before": 1, "after": 2}]),
        ({"a": 1}, {}, [{"path": "/a", "before": 1}]),
        ({}, {"a": None}, [{"path": "/a", "after": None}]),
        ({"a": None}, {"a": 0}, [{"path": "/a", "before": None, "after": 0}]),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1, "d": 3}}}, [{"path": "/a/b/d", "before": 2, "after": 3}]),
        ({"a": {"b": 1}}, {"a": 1}, [{"path": "/a", "before": {"b": 1}, "after": 1}]),
        ({"a/b": {"c~d": 1}}, {"a/b": {"c~d": 2}}, [{"path": "/a~1b/c~0d", "before": 1, "after": 2}]),
        ({"a": ["x"]}, {"a": ["x", "y"]}, [{"path": "/a", "before": ["x"], "after": ["x", "y"]}]),
        ("a", "b", [{"path": "", "before": "a", "after": "b"}]),
    ],
)
def test_objects_differ_member_by_member(compared: Any, before: Any, after: Any, expected: list[Field]) -> None:
    assert compared(before, after) == expected


@pytest.mark.parametrize("compared", [of_documents, of_inputs])
@pytest.mark.parametrize(("one", "other"), [(True, 1), (False, 0), (1, 1.0), ([True], [1]), ([{"x": 0}], [{"x": False}])])
def test_true_is_not_1(compared: Any, one: Any, other: Any) -> None:
    (found,) = compared({"a": one}, {"a": other})
    assert (found["path"], repr(found["before"]), repr(found["after"])) == ("/a", repr(one), repr(other))


PODINFO = {"id": "podinfo", "oci_tag": "6.0.0", "enabled": True}
GRAFANA = {"id": "grafana"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([PODINFO], [{**PODINFO, "oci_tag": "6.1.0"}], [{"path": "/x/podinfo/oci_tag", "before": "6.0.0", "after": "6.1.0"}]),
        ([], [PODINFO], [{"path": "/x/podinfo", "after": PODINFO}]),
        ([PODINFO, GRAFANA], [GRAFANA], [{"path": "/x/podinfo", "before": PODINFO}]),
        ([PODINFO], [PODINFO, GRAFANA], [{"path": "/x/grafana", "after": GRAFANA}]),
        ([PODINFO], [GRAFANA], [{"path": "/x/podinfo", "before": PODINFO}, {"path": "/x/grafana", "after": GRAFANA}]),
    ],
)
def test_references_of_documents_differ_by_id(before: Any, after: Any, expected: list[Field]) -> None:
    assert of_documents({"x": before}, {"x": after}) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([PODINFO, GRAFANA], [GRAFANA, PODINFO]),  # another order
        ([PODINFO], [GRAFANA, PODINFO]),  # ids do not say that the new one comes first
        ([PODINFO], [PODINFO, PODINFO]),  # one id, two items
        ([PODINFO], [PODINFO, {"name": "grafana"}]),
        ([PODINFO], [PODINFO, {"id": 1}]),
        ([PODINFO], [PODINFO, "grafana"]),
    ],
)
def test_what_ids_cannot_tell_apart_is_a_difference_as_a_whole(before: Any, after: Any) -> None:
    assert of_documents({"x": before}, {"x": after}) == [{"path": "/x", "before": before, "after": after}]


def test_only_arrays_of_references_differ_by_id() -> None:
    before, after = [PODINFO], [PODINFO, GRAFANA]
    assert of_documents({"y": before}, {"y": after}) == [{"path": "/y", "before": before, "after": after}]
    inner = of_documents({"y": {"x": before}}, {"y": {"x": after}})
    assert inner == [{"path": "/y/x", "before": before, "after": after}]
    nested = of_documents({"x": [{"id": "a", "x": before}]}, {"x": [{"id": "a", "x": after}]})
    assert nested == [{"path": "/x/a/x", "before": before, "after": after}]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (["x", "podinfo", "oci_tag"], "6.0.0"),
        (["x", "nobody"], differences.ABSENT),
        (["x", "podinfo", "oci_tag", "deeper"], differences.ABSENT),
        (["patches", "podinfo", "ui.color"], "red"),
        ([], {"x": [PODINFO], "patches": {"podinfo": {"ui.color": "red"}}}),
    ],
)
def test_places_lead_through_references_by_their_ids(steps: list[str], expected: Any) -> None:
    assert differences.at({"x": [PODINFO], "patches": {"podinfo": {"ui.color": "red"}}}, steps) == expected


def test_patches_differ_by_key() -> None:
    before, after = ({"patches": {"podinfo": {"ui.color": color, "a": 1}}} for color in ("red", "blue"))
    assert of_documents(before, after) == [{"path": "/patches/podinfo/ui.color", "before": "red", "after": "blue"}]


def test_arrays_of_inputs_differ_as_wholes() -> None:
    before, after = [PODINFO], [PODINFO, GRAFANA]
    assert of_inputs({"x": before}, {"x": after}) == [{"path": "/x", "before": before, "after": after}]


def test_items_of_manifests_are_recognised_where_they_moved() -> None:
    before = {"args": ["a", "b", {"name": "x", "value": 1}]}
    after = {"args": ["new", "a", "b", {"name": "x", "value": 2}, "last"]}
    found = differences.of_manifests(before, after)
    assert found == [
        (("args", 0), differences.ABSENT, "new"),
        (("args", 3, "value"), 1, 2),
        (("args", 4), differences.ABSENT, "last"),
    ]
    assert [item.pointer for item in found] == ["/args/0", "/args/3/value", "/args/4"]


@pytest.mark.parametrize(
    ("one", "other", "equal"), [({"a": [1]}, {"a": [1]}, True), ({"a": [1]}, {"a": [True]}, False), (1, 2, False)]
)
def test_values_are_the_same_when_json_says_so(one: Any, other: Any, equal: bool) -> None:
    assert differences.same(one, other) is equal


@pytest.mark.parametrize("steps", [[], ["a"], ["a/b", "c~d", "~1", ""]])
def test_a_pointer_leads_back_to_its_steps(steps: list[str]) -> None:
    assert json_pointers.steps(json_pointers.pointer(steps)) == steps


def test_items_of_manifests_that_went_are_told_one_by_one() -> None:
    before, after = {"a": [1, 2, 3, 4]}, {"a": [1, 4]}
    assert differences.fields(differences.of_manifests(before, after)) == [
        {"path": "/a/1", "before": 2},
        {"path": "/a/2", "before": 3},
    ]
