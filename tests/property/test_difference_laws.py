"""Differences are complete: whoever has what was before, and the differences, has what is after."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import differences

names = st.sampled_from(["a", "b/c", "d~e", "id"])
scalars = st.none() | st.booleans() | st.integers(0, 2) | st.floats(0, 1, width=16) | st.text("xy", max_size=2)
references = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from(["p", "q", "r/s", "t"])}, optional={"a": scalars, "b": scalars}), max_size=4
)
values = st.recursive(
    scalars | references,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, values, max_size=4)


REFERENCES = frozenset({"a", "x"})


@given(before=values, after=values)
def test_differences_of_documents_lead_from_one_to_the_other(before: Any, after: Any) -> None:
    fields = differences.fields(differences.of_documents(before, after, REFERENCES))
    assert differences.same(differences.applied(before, fields), after)
    assert (fields == []) == differences.same(before, after)


@given(before=st.fixed_dictionaries({"x": references}), after=st.fixed_dictionaries({"x": references}))
def test_differences_of_references_lead_from_one_to_the_other(before: Any, after: Any) -> None:
    fields = differences.fields(differences.of_documents(before, after, REFERENCES))
    assert differences.same(differences.applied(before, fields), after)


@given(
    held=st.lists(st.sampled_from("pqrst"), unique=True, min_size=2),
    gone=st.integers(0, 4),
    added=st.lists(st.sampled_from("uvw"), unique=True),
)
def test_a_reference_that_comes_back_to_its_place_is_told_completely(held: list[str], gone: int, added: list[str]) -> None:
    whole = {"x": [{"id": id} for id in [*held, *added]]}
    without = {"x": [{"id": id} for id in [*held, *added] if id != held[gone % len(held)]]}
    for before, after in ((without, whole), (whole, without)):
        fields = differences.fields(differences.of_documents(before, after, REFERENCES))
        assert differences.applied(before, fields) == after


@given(before=documents, after=documents)
def test_differences_of_inputs_lead_from_one_to_the_other(before: Any, after: Any) -> None:
    fields = differences.fields(differences.of_inputs(before, after))
    assert differences.same(differences.applied(before, fields), after)
    assert (fields == []) == differences.same(before, after)


@given(before=values, after=values)
def test_every_difference_says_what_stood_there(before: Any, after: Any) -> None:
    forth = differences.fields(differences.of_documents(before, after, REFERENCES))
    assert all("before" in field or "after" in field for field in forth)
    assert not any(differences.same(field.get("before", ...), field.get("after", ...)) for field in forth)


@given(before=values, after=values)
def test_manifests_are_without_a_difference_only_when_they_are_the_same(before: Any, after: Any) -> None:
    assert (differences.of_manifests(before, after) == []) == differences.same(before, after)
