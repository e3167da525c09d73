"""Parts of a cluster, each edited in one transaction, so that two operators do not lose each other's change."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.fleets import assert_problem, inputs, make, pointers


@pytest.fixture
def made(api: httpx.Client) -> dict[str, Any]:
    """A cluster with nothing, and one definition of each kind."""
    return {
        "cluster": make(api, "clusters"),
        "platform_components": make(api, "platform_components")["id"],
        "namespaces": make(api, "namespaces")["id"],
        "rolebindings": make(api, "rolebindings")["id"],
    }


FIELDS = ("platform_components", "namespaces", "rolebindings")


@pytest.mark.parametrize("field", FIELDS)
def test_put_assigns_delete_unassigns_and_repeating_changes_nothing(api: httpx.Client, made: dict[str, Any], field: str) -> None:
    cluster = f"/clusters/{made['cluster']['id']}"
    path = f"{cluster}/{field}/{made[field]}"
    first = api.put(path, json={})
    assert (first.status_code, [ref["id"] for ref in first.json()[field]]) == (200, [made[field]])
    assert first.json() == api.get(cluster).json()
    again = api.put(path, json={"id": made[field]})
    assert (again.status_code, again.headers["etag"]) == (200, first.headers["etag"])
    assert api.get(path).json()["id"] == made[field]
    assert len(inputs(api, made["cluster"]["cluster_dns"], field.replace("_", "-"))) == 1
    gone = api.delete(path)
    assert (gone.status_code, gone.json()) == (200, made["cluster"])
    assert "x-patches-removed" not in gone.headers
    repeated = api.delete(path)
    assert (repeated.status_code, repeated.headers["etag"]) == (200, gone.headers["etag"])
    assert_problem(api.get(path), 404)


def test_assigning_needs_no_body_at_all(api: httpx.Client, made: dict[str, Any]) -> None:
    response = api.put(f"/clusters/{made['cluster']['id']}/namespaces/{made['namespaces']}")
    assert (response.status_code, response.json()["namespaces"]) == (200, [{"id": made["namespaces"]}])


def test_put_replaces_a_reference_in_its_place_and_patch_changes_parts_of_it(api: httpx.Client) -> None:
    ids = [make(api, "platform_components")["id"] for _ in range(3)]
    cluster = make(api, "clusters", platform_components=[{"id": id, "oci_tag": "1"} for id in ids])
    path = f"/clusters/{cluster['id']}/platform_components/{ids[1]}"
    found = api.put(path, json={"component_path": "own"}).json()["platform_components"]
    assert [ref["id"] for ref in found] == ids
    assert found[1] == {"id": ids[1], "enabled": True, "component_path": "own"}
    found = api.patch(path, json={"enabled": False, "component_path": None, "oci_tag": "2"}).json()["platform_components"]
    assert found[1] == {"id": ids[1], "enabled": False, "oci_tag": "2"} == api.get(path).json()
    assert found[0] == {"id": ids[0], "enabled": True, "oci_tag": "1"}


@pytest.mark.parametrize("field", FIELDS)
def test_an_unknown_definition_cannot_be_assigned_nor_an_unassigned_one_patched(
    api: httpx.Client, made: dict[str, Any], field: str
) -> None:
    cluster = f"/clusters/{made['cluster']['id']}"
    assert pointers(api.put(f"{cluster}/{field}/ghost", json={})) == {"/id"}
    assert_problem(api.patch(f"{cluster}/{field}/{made[field]}", json={}), 404)
    assert_problem(api.get(f"{cluster}/{field}/ghost"), 404)
    assert api.delete(f"{cluster}/{field}/ghost").status_code == 200


@pytest.mark.parametrize("part", ["platform_components/podinfo", "namespaces/podinfo", "patches/podinfo"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_an_unknown_cluster_is_not_found(api: httpx.Client, part: str, method: str) -> None:
    assert_problem(api.request(method, f"/clusters/nobody/{part}", json={}), 404)


def test_a_wrong_reference_is_refused_where_it_is_wrong(api: httpx.Client, made: dict[str, Any]) -> None:
    path = f"/clusters/{made['cluster']['id']}/platform_components/{made['platform_components']}"
    assert pointers(api.put(path, json={"enabled": 1, "oci_url": "x"})) == {"/enabled", "/oci_url"}
    assert pointers(api.put(path, json={"id": "other"})) == {"/id"}
    assert api.get(f"/clusters/{made['cluster']['id']}").json() == made["cluster"]


def test_patches_are_set_merged_and_removed_by_key(api: httpx.Client, made: dict[str, Any]) -> None:
    cluster, id = f"/clusters/{made['cluster']['id']}", made["platform_components"]
    path = f"{cluster}/patches/{id}"
    for method, body in (("GET", None), ("PUT", {"a": "1"}), ("PATCH", {"a": "1"}), ("DELETE", None)):
        assert_problem(api.request(method, path, json=body), 404)
    api.put(f"{cluster}/platform_components/{id}", json={})
    assert api.get(path).json() == {}
    assert api.put(path, json={"a": "1", "b": 2}).json()["patches"] == {id: {"a": "1", "b": 2}}
    merged = api.patch(path, json={"a": None, "c": True})
    assert (merged.status_code, merged.json()["patches"]) == (200, {id: {"b": 2, "c": True}})
    assert api.get(path).json() == {"b": 2, "c": True}
    assert api.patch(path, json={"missing": None}).headers["etag"] == merged.headers["etag"]
    assert api.put(path, json={"d": 0.5}).json()["patches"] == {id: {"d": 0.5}}
    cleared = api.delete(path)
    assert (cleared.status_code, cleared.json()["patches"]) == (200, {})
    assert api.delete(path).headers["etag"] == cleared.headers["etag"]


def test_a_wrong_patch_is_refused_where_it_is_wrong(api: httpx.Client) -> None:
    id = make(api, "platform_components")["id"]
    cluster = make(api, "clusters", platform_components=[{"id": id}])
    path = f"/clusters/{cluster['id']}/patches/{id}"
    assert pointers(api.put(path, json={"a[": "x", "b[0]": [], "dbPassword": "x"})) == {"/a[", "/b[0]", "/dbPassword"}
    assert pointers(api.patch(path, json={"deep": {"er": 1}})) == {"/deep"}


def test_unassigning_a_component_takes_its_patches_and_says_how_many(api: httpx.Client) -> None:
    ids = [make(api, "platform_components")["id"] for _ in range(2)]
    patches = {ids[0]: {"a": "1", "b": "2"}, ids[1]: {"c": "3"}}
    cluster = make(api, "clusters", platform_components=[{"id": id} for id in ids], patches=patches)
    response = api.delete(f"/clusters/{cluster['id']}/platform_components/{ids[0]}")
    assert (response.headers["x-patches-removed"], response.json()["patches"]) == ("2", {ids[1]: {"c": "3"}})


def test_a_stale_tag_of_the_cluster_stops_every_writing_method(api: httpx.Client, made: dict[str, Any]) -> None:
    cluster, id = f"/clusters/{made['cluster']['id']}", made["platform_components"]
    stale = {"If-Match": api.get(cluster).headers["etag"]}
    api.put(f"{cluster}/platform_components/{id}", json={}, headers=stale)
    for part in ("platform_components", "patches"):
        for method, body in (("PUT", {}), ("PATCH", {}), ("DELETE", None)):
            response = api.request(method, f"{cluster}/{part}/{id}", json=body, headers=stale)
            assert_problem(response, 412, "precondition-failed")


def test_a_known_tag_makes_the_get_of_a_part_not_modified(api: httpx.Client, made: dict[str, Any]) -> None:
    cluster, id = f"/clusters/{made['cluster']['id']}", made["platform_components"]
    api.put(f"{cluster}/platform_components/{id}", json={})
    for path in (f"{cluster}/platform_components/{id}", f"{cluster}/patches/{id}"):
        tag = api.get(path).headers["etag"]
        assert api.get(path, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize("part", ["", "/platform_components", "/patches", "/labels/x", "/platform_components/a/b"])
def test_other_parts_do_not_exist(api: httpx.Client, made: dict[str, Any], part: str) -> None:
    path = f"/clusters/{made['cluster']['id']}{part}"
    if part:
        assert_problem(api.get(path), 404)
    assert_problem(api.post(path, json={}), 404 if part else 405)
