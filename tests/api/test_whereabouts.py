"""What runs where, over HTTP: /usage and /tombstones with their filters, windows and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import assert_problem, cluster, fresh, make


@pytest.fixture(scope="module")
def tag(api: httpx.Client) -> str:
    """The label of three clusters with two components of that prefix."""
    tag = fresh("usage")
    a, b = (make(api, "platform_components", f"{tag}-{letter}", oci_tag="1.0.0")["id"] for letter in "ab")
    for number, environment in enumerate(("prod", "dev", "prod")):
        references = [{"id": b, "enabled": number != 1}, {"id": a, **({"oci_tag": "2.0.0"} if number == 2 else {})}]
        patches = {a: {"replicaCount": "2", "ui.color": "red"}} if number == 0 else {}
        labels = {"usage": tag, "n": str(number)}
        make(api, "clusters", f"{tag}-{number}", environment=environment, labels=labels, patches=patches,
             platform_components=references)  # fmt: skip
    return tag


def test_usage_of_a_definition_is_a_row_for_each_cluster(api: httpx.Client, tag: str) -> None:
    response = api.get(f"/usage/platform_components/{tag}-a")
    common = {"id": f"{tag}-a", "component_path": f"{tag}-a", "enabled": True}
    assert response.json() == [
        {**common, "cluster": f"{tag}-0", "environment": "prod", "oci_tag": "1.0.0", "overridden": [], "patches": 2},
        {**common, "cluster": f"{tag}-1", "environment": "dev", "oci_tag": "1.0.0", "overridden": [], "patches": 0},
        {**common, "cluster": f"{tag}-2", "environment": "prod", "oci_tag": "2.0.0", "overridden": ["oci_tag"], "patches": 0},
    ]
    assert response.headers["x-total-count"] == "3"
    assert int(response.headers["x-revision"]) > 0
    assert api.head(f"/usage/platform_components/{tag}-a").headers["x-total-count"] == "3"


def test_usage_of_a_kind_comes_by_id_and_cluster_and_can_be_narrowed_and_cut(reader: httpx.Client, tag: str) -> None:
    every = [(f"{tag}-{letter}", f"{tag}-{number}") for letter in "ab" for number in range(3)]
    for query, wanted in (
        ("", every),
        ("&limit=2", every[:2]),
        ("&limit=2&offset=3", every[3:5]),
        ("&offset=6", []),
        ("&environment=prod", [every[0], every[2], every[3], every[5]]),
        ("&environment=prod&limit=1&offset=1", [every[2]]),
        ("&environment=uat", []),
    ):
        response = reader.get(f"/usage/platform_components?selector=usage%3D{tag}{query}")
        assert [(row["id"], row["cluster"]) for row in response.json()] == wanted, query
        assert response.headers["x-total-count"] == ("4" if "prod" in query else "0" if "uat" in query else "6")
    found = reader.get(f"/usage/platform_components/{tag}-b?selector=n+in+(0,1)%2Cusage%3D{tag}").json()
    assert [(row["cluster"], row["enabled"]) for row in found] == [(f"{tag}-0", True), (f"{tag}-1", False)]


def test_usage_follows_every_write(api: httpx.Client) -> None:
    made = make(api, "namespaces")
    path = f"/usage/namespaces/{made['id']}"
    assert api.get(path).json() == []
    owner = make(api, "clusters", namespaces=[{"id": made["id"]}])
    assert [row["cluster"] for row in api.get(path).json()] == [owner["id"]]
    assert api.delete(f"/clusters/{owner['id']}").status_code == 200
    assert api.get(path).json() == []


def test_a_definition_deleted_by_force_has_no_usage_any_more(api: httpx.Client) -> None:
    made = make(api, "namespaces")
    make(api, "clusters", namespaces=[{"id": made["id"]}])
    assert api.delete(f"/namespaces/{made['id']}?force=true").status_code == 200
    assert_problem(api.get(f"/usage/namespaces/{made['id']}"), 404, "not-found")
    assert made["id"] not in {row["id"] for row in api.get("/usage/namespaces").json()}


@pytest.mark.parametrize("path", ["/usage/nothing", "/usage/clusters", "/usage/freezes", "/usage/clusters/demo-cluster-01"])
def test_a_kind_that_clusters_do_not_refer_to_has_no_usage(api: httpx.Client, path: str) -> None:
    problem = assert_problem(api.get(path), 404, "not-found")
    assert "platform_components, rolebindings" in problem["detail"].replace("namespaces, ", "")


def test_a_definition_that_there_is_not_has_no_usage(api: httpx.Client) -> None:
    assert "nobody" in assert_problem(api.get("/usage/namespaces/nobody"), 404, "not-found")["detail"]


@pytest.mark.parametrize("query", ["limit=0", "offset=-1", "at=1", "environment=dev&environment=dev", "selector=%3D%3D"])
def test_a_bad_parameter_is_a_bad_request(api: httpx.Client, query: str) -> None:
    assert_problem(api.get(f"/usage/namespaces?{query}"), 400, "bad-query")


def test_an_unknown_environment_is_no_empty_one(api: httpx.Client) -> None:
    assert "environment" in assert_problem(api.get("/usage/namespaces?environment=moon"), 422)["detail"]


# Tombstones


@pytest.fixture
def own(tmp_path: Path) -> Iterator[live.Server]:
    with live.serving(tmp_path) as server:
        yield server


def test_a_decommissioned_cluster_leaves_who_did_it_when_and_why(own: live.Server) -> None:
    with own.client() as api:
        for id in ("z", "a"):
            make(api, "clusters", id)
            api.delete(f"/clusters/{id}", headers={"X-Reason": f"no {id} any more", "X-Actor": "alice"})
        response = api.get("/tombstones")
        assert response.headers["x-total-count"] == "2"
        assert response.headers["x-revision"] == "4"
        a, z = response.json()
        entry = api.get("/changes/4").json()
        assert a == {
            "id": "a", "cluster_dns": "a.example.com", "revision": 4, "time": entry["time"], "actor": entry["actor"],
            "on_behalf_of": "alice", "reason": "no a any more",
        }  # fmt: skip
        assert (z["cluster_dns"], z["revision"], z["reason"]) == ("z.example.com", 2, "no z any more")
        assert api.get("/tombstones?limit=1&offset=1").json() == [z]
        assert api.get("/tombstones?limit=1").headers["x-total-count"] == "2"
        assert api.post("/clusters", json=cluster("a")).status_code == 201
        assert api.get("/tombstones").json() == [z]
        assert_problem(api.get("/tombstones?environment=dev"), 400, "bad-query")


def test_a_tombstone_of_an_import_tells_of_the_import(own: live.Server, tmp_path: Path) -> None:
    with own.client() as api:
        make(api, "clusters", "gone")
        api.delete("/clusters/gone", headers={"X-Reason": "moved"})
        export = api.get("/export").json()
    (tmp_path / "second").mkdir()
    with live.serving(tmp_path / "second") as second, second.client() as api:
        assert api.post("/import", json=export, headers={"X-Reason": "moving in"}).status_code == 200
        (row,) = api.get("/tombstones").json()
        assert (row["id"], row["revision"], row["reason"]) == ("gone", 1, "moving in")
        assert row["time"] is not None


def test_a_tombstone_whose_entry_was_folded_away_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, server.client() as api:
        make(api, "clusters", "gone")
        api.delete("/clusters/gone", headers={"X-Reason": "moved"})
        make(api, "clusters", "other")
    store = live.opened_store(tmp_path)
    with store.begin() as transaction:
        transaction.fold(3)
    store.close()
    with live.serving(tmp_path) as server, server.client() as api:
        unknown = dict.fromkeys(("time", "actor", "on_behalf_of", "reason"))
        assert api.get("/tombstones").json() == [{"id": "gone", "cluster_dns": "gone.example.com", "revision": 2, **unknown}]
