"""The fleet list for provisioners: sorted, filtered, and refused rather than cut."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

import live
from api.fleets import assert_problem, cluster, make

PATH = "/api/v2/flux/clusters"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One cluster more than Flux takes; each tier alone is few enough."""
    directory = tmp_path_factory.mktemp("large")
    seed = directory / "seed.json"
    documents = [
        {
            "id": f"c{n}",
            "cluster_name": "c",
            "cluster_dns": f"c{n}",
            "environment": "qa" if n else "prod",
            "labels": {"n": str(n)},
        }
        for n in range(10_001)
    ]
    seed.write_text(json.dumps({"clusters": documents}))
    with live.serving(directory, SEED_FILE=str(seed), STORE_BACKEND="memory") as server, server.client(live.READ) as client:
        yield client


def test_more_inputs_than_flux_takes_are_refused_and_the_filters_named(large: httpx.Client) -> None:
    problem = assert_problem(large.get(PATH), 422, "answer-too-large")
    assert "environment" in problem["detail"]
    assert "selector" in problem["detail"]


def test_exactly_as_many_inputs_as_flux_takes_are_answered(large: httpx.Client) -> None:
    response = large.get(PATH, params={"environment": "qa"})
    assert response.status_code == 200
    assert len(response.content) < 921_600
    assert len(response.json()["inputs"]) == 10_000
    assert large.get(PATH, params={"selector": "n"}).status_code == 422


@pytest.mark.long
def test_a_list_with_too_many_bytes_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("wide")
    seed = directory / "seed.json"
    wide = "x" * 60
    documents = [
        cluster(f"c{n}", cluster_name="n" * 250, cluster_dns=f"c{n}.{wide}.{wide}.{wide}", environment="qa") for n in range(1900)
    ]
    seed.write_text(json.dumps({"clusters": documents}))
    with live.serving(directory, SEED_FILE=str(seed), STORE_BACKEND="memory") as server, server.client() as client:
        assert_problem(client.get(PATH), 422, "answer-too-large")


def test_the_list_is_sorted_by_id_whatever_the_order_of_creation(api: httpx.Client) -> None:
    for letter in "cab":
        make(api, "clusters", f"{letter}-sorted", labels={"test": "sorted"})
    found = api.get(PATH, params={"selector": "test=sorted"}).json()["inputs"]
    assert [item["id"] for item in found] == ["a-sorted", "b-sorted", "c-sorted"]
    everything = [item["id"] for item in api.get(PATH).json()["inputs"]]
    assert everything == sorted(everything)


def test_the_environment_filters_the_list(api: httpx.Client) -> None:
    make(api, "clusters", environment="uat")
    found = api.get(PATH, params={"environment": "uat"}).json()["inputs"]
    assert {item["environment"] for item in found} == {"uat"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("sel=1,tier=edge", "ab"),
        ("sel=1,tier!=edge", "c"),
        ("sel=1,zone in (a,b)", "bc"),
        ("sel=1,zone notin (a)", "ac"),
        ("sel=1,!zone", "a"),
        ("sel=1,zone", "bc"),
        ("sel==1", "abc"),
        ("sel=1,tier=edge,team!=x,zone in (a,b),!beta", "b"),
        ("sel=2", ""),
    ],
)
def test_selectors_follow_the_grammar_of_kubernetes(api: httpx.Client, selector: str, expected: str) -> None:
    if api.get("/clusters/a-sel").status_code == 404:
        make(api, "clusters", "a-sel", labels={"sel": "1", "tier": "edge", "team": "x"})
        make(api, "clusters", "b-sel", labels={"sel": "1", "tier": "edge", "zone": "a"})
        make(api, "clusters", "c-sel", labels={"sel": "1", "zone": "b", "beta": ""})
    for path, pick in ((PATH, "inputs"), ("/clusters", None)):
        found = api.get(path, params={"selector": selector}).json()
        assert [item["id"][0] for item in (found[pick] if pick else found)] == list(expected)


@pytest.mark.parametrize("selector", ["a=b=c", "a in b", "a in (", ",", "a=b,", "=x", "a b", "-a=b", "a=-b-"])
def test_a_bad_selector_is_a_bad_request(api: httpx.Client, selector: str) -> None:
    for path in (PATH, "/clusters"):
        assert_problem(api.get(path, params={"selector": selector}), 400, "bad-query")


def test_an_environment_that_cannot_be_is_refused_on_both_lists(api: httpx.Client) -> None:
    for path in (PATH, "/clusters"):
        for wrong in ("prd", "DEV", ""):
            assert_problem(api.get(path, params={"environment": wrong}), 422, "bad-filter")


def test_an_empty_fleet_is_an_empty_list(tmp_path_factory: pytest.TempPathFactory) -> None:
    with live.serving(tmp_path_factory.mktemp("empty"), STORE_BACKEND="memory") as server, server.client() as client:
        assert client.get(PATH).content == b'{"inputs":[]}'
        assert client.get(PATH, params={"environment": "qa"}).content == b'{"inputs":[]}'
