"""The laws of the merge, for any cluster and any definitions."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import answers, documents, merge
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Referenced
from unit import samples

KNOWN = kind_files.load(samples.KINDS_DIR)
IDS = ("a", "b", "c", "d")
texts = st.sampled_from(["x", "null", 'say "null"', "ü"])


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Each field or not."""
    return st.fixed_dictionaries({}, optional=fields)


EXTRA = nullable(some(hint=nullable(texts), words=st.lists(nullable(texts), max_size=3)))
REFERENCES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "workloads": some(enabled=st.booleans(), image=nullable(texts), cpu=nullable(st.integers(0, 9)), note=nullable(texts)),
    "platform_components": some(enabled=st.booleans(), oci_tag=nullable(texts), component_path=nullable(texts)),
    "namespaces": some(),
}
DEFINITIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "workloads": st.builds(
        lambda image, rest: {"image": image, **rest},
        texts,
        some(cpu=st.integers(0, 9), memory=nullable(st.integers(0, 9)), extra=EXTRA),
    ),
    "platform_components": st.builds(
        lambda tag, rest: {"component_path": "p", "oci_url": "oci://x", "oci_tag": tag, **rest},
        texts,
        some(depends_on=st.lists(st.sampled_from(IDS), unique=True), component_version=texts),
    ),
    "namespaces": some(annotations=st.dictionaries(st.sampled_from(IDS), texts)),
}


@st.composite
def cases(draw: st.DrawFn, name: str) -> tuple[Referenced, dict[str, Any], dict[str, Any]]:
    """A kind, a completed cluster and completed definitions; some references have none."""
    kind = KNOWN.referenced_by_name[name]
    ids = draw(st.lists(st.sampled_from(IDS), unique=True))
    fields: dict[str, Any] = {kind.cluster_field: [{"id": id, **draw(REFERENCES[name])} for id in ids]}
    if kind.patches:
        fields["patches"] = {id: {"k": draw(st.integers(0, 3))} for id in draw(st.lists(st.sampled_from(IDS), unique=True))}
    fields |= {"cluster_name": draw(texts), "environment": draw(st.sampled_from(KNOWN.environments))}
    cluster = documents.completed(KNOWN.clusters, samples.cluster("c1", **fields))
    existing = draw(st.lists(st.sampled_from(IDS), unique=True))
    definitions = {id: documents.completed(kind, {"id": id, **draw(DEFINITIONS[name])}) for id in existing}
    return kind, cluster, definitions


every_kind = st.sampled_from(sorted(REFERENCES)).flatmap(cases)


def nulls(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(nulls, value.values()))
    if isinstance(value, list):
        return sum(map(nulls, value))
    return value is None


@given(every_kind)
def test_one_input_per_reference_that_resolves_in_the_clusters_order(case: Any) -> None:
    kind, cluster, definitions = case
    wanted = [reference["id"] for reference in cluster[kind.cluster_field] if reference["id"] in definitions]
    assert [item["id"] for item in samples.inputs(kind, cluster, definitions)] == wanted


@given(every_kind)
def test_overrides_win_exactly_when_they_are_not_null(case: Any) -> None:
    kind, cluster, definitions = case
    references = {reference["id"]: reference for reference in cluster[kind.cluster_field]}
    for item in samples.inputs(kind, cluster, definitions):
        flat = {**item, **{name: value for group in kind.nest for name, value in item[group].items()}}
        for name in kind.overrides:
            given_value = references[item["id"]].get(name)
            wanted = definitions[item["id"]].get(name) if given_value is None else given_value
            assert flat.get(name) == without_nulls(wanted)


@given(every_kind)
def test_other_fields_are_passed_through_and_nested_ones_are_moved(case: Any) -> None:
    kind, cluster, definitions = case
    references = {reference["id"]: reference for reference in cluster[kind.cluster_field]}
    nested = {name: group for group, names in kind.nest.items() for name in names}
    for item in samples.inputs(kind, cluster, definitions):
        both = {**definitions[item["id"]], **{n: v for n, v in references[item["id"]].items() if n not in kind.overrides}}
        for name, value in both.items():
            if name not in kind.overrides and value is not None:
                assert (item[nested[name]] if name in nested else item)[name] == without_nulls(value)
        assert all(isinstance(item[group], dict) and set(item[group]) <= {*names} for group, names in kind.nest.items())
        assert not set(nested) & set(item)


@given(every_kind)
def test_patches_are_those_of_the_cluster_or_empty(case: Any) -> None:
    kind, cluster, definitions = case
    for item in samples.inputs(kind, cluster, definitions):
        if kind.patches:
            assert item["patches"] == cluster["patches"].get(item["id"], {})
        else:
            assert "patches" not in item


@given(cases("platform_components"))
def test_a_component_waits_for_what_runs_on_its_cluster(case: Any) -> None:
    kind, cluster, definitions = case
    running = {ref["id"] for ref in cluster["platform_components"] if ref["enabled"] and ref["id"] in definitions}
    for item in samples.inputs(kind, cluster, definitions):
        assert item["depends_on"] == definitions[item["id"]]["depends_on"]
        assert item["wait_for"] == [id for id in item["depends_on"] if id in running]


@given(every_kind)
def test_every_input_says_whose_it_is(case: Any) -> None:
    kind, cluster, definitions = case
    block = {"name": cluster["cluster_name"], "dns": cluster["cluster_dns"], "environment": cluster["environment"]}
    assert all(item["cluster"] == block for item in samples.inputs(kind, cluster, definitions))


@given(every_kind)
def test_no_null_is_ever_sent(case: Any) -> None:
    assert nulls(samples.inputs(*case)) == 0


@given(every_kind)
def test_the_merge_changes_nothing_and_says_the_same_twice(case: Any) -> None:
    kept = copy.deepcopy(case[1:])
    first = merge.inputs(*case)
    assert case[1:] == kept
    assert merge.inputs(*case) == first


@given(every_kind)
def test_an_answer_says_what_the_merge_says_and_names_it_by_digest(case: Any) -> None:
    body, count = answers.Encoder().answer(*case)
    said = msgspec.json.decode(body)["inputs"]
    assert said == samples.inputs(*case)
    assert len(said) == count


@given(st.sampled_from(sorted(REFERENCES)).flatmap(lambda name: st.lists(cases(name), min_size=2, max_size=4)))
def test_what_is_remembered_of_others_changes_nothing(many: list[Any]) -> None:
    encoder = answers.Encoder()
    for case in [*many, *many]:
        assert encoder.answer(*case) == answers.Encoder().answer(*case)


def backwards(value: Any) -> Any:
    """The same content, with the members of objects in another order."""
    if isinstance(value, dict):
        return {name: backwards(item) for name, item in reversed(value.items())}
    return [backwards(item) for item in value] if isinstance(value, list) else value


@given(every_kind)
def test_the_digest_names_the_content_and_not_its_order(case: Any) -> None:
    kind, cluster, definitions = case
    digests = [item["digest"] for item in samples.inputs(kind, cluster, definitions)]
    assert [item["digest"] for item in samples.inputs(kind, backwards(cluster), backwards(definitions))] == digests
    renamed = samples.inputs(kind, {**cluster, "cluster_name": cluster["cluster_name"] + "x"}, definitions)
    assert not {item["digest"] for item in renamed} & {*digests}


@pytest.mark.parametrize("name", ["workloads", "namespaces"])
@given(data=st.data())
def test_a_reference_is_merged_without_regard_to_the_others(name: str, data: st.DataObject) -> None:
    kind, cluster, definitions = data.draw(cases(name))
    whole = samples.inputs(kind, cluster, definitions)
    alone = [
        item
        for reference in cluster[kind.cluster_field]
        for item in samples.inputs(kind, {**cluster, kind.cluster_field: [reference]}, definitions)
    ]
    assert whole == alone
