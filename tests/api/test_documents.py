"""Whole documents over HTTP: create, read, replace, patch, delete, with their statuses and preconditions."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api import fleets
from api.fleets import DEMO, KINDS, MAKERS, assert_problem, fresh, inputs, make, pointers

ANYTHING: dict[str, dict[str, Any]] = {
    "clusters": {"cluster_name": "renamed"},
    "platform_components": {"oci_tag": "2.0.0"},
    "namespaces": {"labels": {"team": "a"}},
    "rolebindings": {"role": "edit"},
}

COMPLETE: dict[str, dict[str, Any]] = {
    "clusters": {"labels": {}, "platform_components": [], "namespaces": [], "rolebindings": [], "patches": {}},
    "platform_components": {
        "type": "helm", "component_version": "latest", "cluster_env_enabled": False, "depends_on": [],
    },
    "namespaces": {"labels": {}, "annotations": {}, "allow_prune": False},
    "rolebindings": {
        "subjects": [{"kind": "Group", "name": "developers", "apiGroup": "rbac.authorization.k8s.io"}],
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_created_document_is_complete_and_has_a_place_and_a_tag(api: httpx.Client, kind: str) -> None:
    document = MAKERS[kind](fresh("new"))
    response = api.post(f"/{kind}", json=document)
    assert response.status_code == 201
    assert response.headers["location"] == f"/{kind}/{document['id']}"
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {**document, **COMPLETE[kind]}
    again = api.get(response.headers["location"])
    assert (again.json(), again.headers["etag"]) == (response.json(), response.headers["etag"])
    assert again.json() in api.get(f"/{kind}").json()


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_document_with_the_same_id_is_a_conflict(api: httpx.Client, kind: str) -> None:
    document = make(api, kind)
    assert_problem(api.post(f"/{kind}", json=document), 409, "already-exists")


def test_a_second_cluster_with_the_same_dns_is_a_conflict(api: httpx.Client) -> None:
    dns = make(api, "clusters")["cluster_dns"]
    problem = assert_problem(api.post("/clusters", json=fleets.cluster(fresh("twin"), cluster_dns=dns)), 409)
    assert dns in problem["detail"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_an_unknown_id_is_not_found(api: httpx.Client, kind: str, method: str) -> None:
    body = None if method in ("GET", "HEAD", "DELETE") else MAKERS[kind]("nobody")
    response = api.request(method, f"/{kind}/nobody", json=body)
    assert response.status_code == 404
    if method != "HEAD":
        assert_problem(response, 404, "not-found")


@pytest.mark.parametrize("kind", KINDS)
def test_put_replaces_and_forgets_what_it_does_not_name(api: httpx.Client, kind: str) -> None:
    document = make(api, kind, None, **ANYTHING[kind])
    plain = MAKERS[kind](document["id"])
    response = api.put(f"/{kind}/{document['id']}", json=plain)
    assert (response.status_code, response.json()) == (200, {**plain, **COMPLETE[kind]})
    assert api.get(f"/{kind}/{document['id']}").json() == response.json()


@pytest.mark.parametrize("kind", KINDS)
def test_the_id_in_the_body_of_a_put_may_be_left_out_but_not_differ(api: httpx.Client, kind: str) -> None:
    document = make(api, kind)
    path = f"/{kind}/{document['id']}"
    assert api.put(path, json={k: v for k, v in document.items() if k != "id"}).status_code == 200
    assert "/id" in pointers(api.put(path, json={**document, "id": "other"}))


@pytest.mark.parametrize("kind", KINDS)
def test_put_creates_only_when_asked_to(api: httpx.Client, kind: str) -> None:
    id = fresh("put")
    document = MAKERS[kind](id)
    assert_problem(api.put(f"/{kind}/{id}", json=document), 404)
    response = api.put(f"/{kind}/{id}", json=document, headers={"If-None-Match": "*"})
    assert (response.status_code, response.headers["location"]) == (201, f"/{kind}/{id}")
    assert_problem(api.put(f"/{kind}/{id}", json=document, headers={"If-None-Match": "*"}), 412, "precondition-failed")


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("clusters", "environment"), ("platform_components", "oci_url"), ("rolebindings", "subjects")],
)
def test_a_put_without_a_required_field_points_to_it(api: httpx.Client, kind: str, missing: str) -> None:
    document = make(api, kind)
    del document[missing]
    assert pointers(api.put(f"/{kind}/{document['id']}", json=document)) == {f"/{missing}"}


def test_a_put_that_forgets_a_list_that_is_not_empty_is_refused(api: httpx.Client) -> None:
    component, name = make(api, "platform_components")["id"], make(api, "namespaces")["id"]
    full = make(
        api, "clusters", platform_components=[{"id": component}], namespaces=[{"id": name}], patches={component: {"a": "1"}}
    )
    path = f"/clusters/{full['id']}"
    bare = fleets.cluster(full["id"])
    assert pointers(api.put(path, json=bare)) == {"/platform_components", "/namespaces", "/patches"}
    emptied = api.put(path, json={**bare, "platform_components": [], "namespaces": [], "patches": {}})
    assert (emptied.status_code, emptied.json()["namespaces"]) == (200, [])


@pytest.mark.parametrize("media_type", ["application/merge-patch+json", "application/json", "application/json; charset=utf-8"])
def test_patch_changes_only_what_it_names(api: httpx.Client, media_type: str) -> None:
    before = make(api, "clusters", labels={"a": "1", "b": "2"}, node_count=3)
    content = b'{"labels": {"a": null, "c": "3"}, "node_count": null}'
    response = api.patch(f"/clusters/{before['id']}", content=content, headers={"Content-Type": media_type})
    del before["node_count"]
    assert (response.status_code, response.json()) == (200, {**before, "labels": {"b": "2", "c": "3"}})


@pytest.mark.parametrize("field", ["id", "cluster_dns"])
def test_the_identity_of_a_cluster_never_changes(api: httpx.Client, field: str) -> None:
    document = make(api, "clusters")
    path = f"/clusters/{document['id']}"
    assert pointers(api.patch(path, json={field: "changed"})) == {f"/{field}"}
    assert pointers(api.put(path, json={**document, field: "changed"})) == {f"/{field}"}
    assert api.get(path).json() == document


@pytest.mark.parametrize("kind", KINDS)
def test_delete_answers_with_what_was_deleted(api: httpx.Client, kind: str) -> None:
    document = make(api, kind)
    response = api.delete(f"/{kind}/{document['id']}")
    assert (response.status_code, response.json()) == (200, document)
    assert_problem(api.delete(f"/{kind}/{document['id']}"), 404)


# Preconditions


@pytest.mark.parametrize("kind", KINDS)
def test_a_stale_tag_stops_every_writing_method(api: httpx.Client, kind: str) -> None:
    document = make(api, kind)
    path = f"/{kind}/{document['id']}"
    stale = {"If-Match": api.get(path).headers["etag"]}
    current = api.patch(path, json=ANYTHING[kind]).headers["etag"]
    assert current != stale["If-Match"]
    for method, body in (("PUT", document), ("PATCH", {}), ("DELETE", None), ("POST", None)):
        response = api.request(method, path, json=body, headers=stale)
        assert response.status_code == (405 if method == "POST" else 412), method
    assert api.get(path).json() == {**document, **ANYTHING[kind]}
    for weak in (f"W/{current}", '"999999"'):
        assert_problem(api.patch(path, json={}, headers={"If-Match": weak}), 412, "precondition-failed")
    assert api.delete(path, headers={"If-Match": f'"0", {current}'}).status_code == 200


def test_a_tag_on_a_creating_post_cannot_match(api: httpx.Client) -> None:
    document = fleets.namespace(fresh("tag"))
    assert_problem(api.post("/namespaces", json=document, headers={"If-Match": "*"}), 412)
    assert api.post("/namespaces", json=document, headers={"If-None-Match": "*"}).status_code == 201


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_a_tag_without_quotes_is_a_bad_request(api: httpx.Client, header: str) -> None:
    assert_problem(api.patch(f"/clusters/{DEMO}", json={}, headers={header: "12"}), 400)


def test_a_known_tag_makes_a_get_not_modified(api: httpx.Client) -> None:
    path = f"/namespaces/{make(api, 'namespaces')['id']}"
    tag = api.get(path).headers["etag"]
    for known in (tag, f"W/{tag}", "*", f'"0", {tag}'):
        response = api.get(path, headers={"If-None-Match": known})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", tag)
    assert api.head(path, headers={"If-None-Match": tag}).status_code == 304
    assert api.get(path, headers={"If-None-Match": '"0"'}).status_code == 200


@pytest.mark.long
def test_the_tag_is_the_revision_of_the_last_change_and_a_write_of_the_same_makes_none(api: httpx.Client) -> None:
    document = make(api, "namespaces")
    path = f"/namespaces/{document['id']}"
    tag = api.get(path).headers["etag"]
    assert tag == f'"{api.get("/changes", params={"id": document["id"]}).json()[0]["revision"]}"'
    for response in (api.put(path, json=document), api.patch(path, json={}), api.patch(path, json={"labels": {}})):
        assert (response.status_code, response.headers["etag"]) == (200, tag)


# References


@pytest.mark.parametrize(
    ("kind", "field"),
    [("platform_components", "platform_components"), ("namespaces", "namespaces"), ("rolebindings", "rolebindings")],
)
def test_a_dangling_reference_is_refused_and_a_used_definition_stays(api: httpx.Client, kind: str, field: str) -> None:
    document = fleets.cluster(fresh("ref"), **{field: [{"id": "ghost"}]})
    assert pointers(api.post("/clusters", json=document)) == {f"/{field}/0/id"}
    id = make(api, kind)["id"]
    users = sorted(make(api, "clusters", None, **{field: [{"id": id}]})["id"] for _ in range(2))
    problem = assert_problem(api.delete(f"/{kind}/{id}"), 409, "in-use")
    assert (problem["users"], problem["count"]) == (users, 2)
    assert api.get(f"/{kind}/{id}").status_code == 200


@pytest.mark.long
def test_a_refused_deletion_names_at_most_twenty_users(api: httpx.Client) -> None:
    id = make(api, "namespaces")["id"]
    for _ in range(21):
        make(api, "clusters", namespaces=[{"id": id}])
    problem = assert_problem(api.delete(f"/namespaces/{id}"), 409)
    assert (len(problem["users"]), problem["count"]) == (20, 21)


@pytest.mark.usefixtures("both_ways")
def test_force_deletes_what_is_used_and_the_cluster_can_still_be_edited(api: httpx.Client) -> None:
    kept, lost = make(api, "namespaces")["id"], make(api, "namespaces")["id"]
    document = make(api, "clusters", namespaces=[{"id": lost}, {"id": kept}])
    assert_problem(api.delete(f"/namespaces/{lost}?force=false"), 409)
    assert_problem(api.delete(f"/namespaces/{lost}?force=yes"), 400, "bad-query")
    assert api.delete(f"/namespaces/{lost}?force=true").status_code == 200
    assert api.get("/changes?limit=1").json()[0]["forced"] is True
    assert [item["id"] for item in inputs(api, document["cluster_dns"], "namespaces")] == [kept]
    response = api.put(f"/clusters/{document['id']}", json={**document, "cluster_name": "edited"})
    assert (response.status_code, response.json()["namespaces"]) == (200, [{"id": lost}, {"id": kept}])
    other = fleets.cluster(fresh("other"), namespaces=[{"id": lost}])
    assert pointers(api.post("/clusters", json=other)) == {"/namespaces/0/id"}


def test_a_component_that_others_depend_on_stays_even_by_force(api: httpx.Client) -> None:
    needed = make(api, "platform_components")["id"]
    dependent = make(api, "platform_components", depends_on=[needed])["id"]
    problem = assert_problem(api.delete(f"/platform_components/{needed}?force=true"), 409, "in-use")
    assert dependent in problem["detail"]


@pytest.mark.usefixtures("both_ways")
def test_one_change_of_the_catalog_reaches_every_cluster_but_the_pinned(api: httpx.Client) -> None:
    id = make(api, "platform_components")["id"]
    plain = [make(api, "clusters", platform_components=[{"id": id}]) for _ in range(3)]
    pinned = make(api, "clusters", platform_components=[{"id": id, "oci_tag": "0.9", "component_path": "own"}])
    api.patch(f"/platform_components/{id}", json={"oci_tag": "7", "component_path": "new", "component_version": "8"})
    for found in plain:
        (item,) = inputs(api, found["cluster_dns"])
        assert (item["source"]["oci_tag"], item["component_path"], item["component_version"]) == ("7", "new", "8")
    (item,) = inputs(api, pinned["cluster_dns"])
    assert (item["source"]["oci_tag"], item["component_path"], item["component_version"]) == ("0.9", "own", "8")


@pytest.mark.parametrize("field", ["namespaces", "platform_components", "rolebindings", "patches"])
def test_null_empties_no_references_in_a_patch_a_batch_or_a_put(api: httpx.Client, field: str) -> None:
    id = make(api, "clusters")["id"]
    operation = {"op": "patch", "kind": "clusters", "id": id, "document": {field: None}}
    for answer in (
        api.patch(f"/clusters/{id}", json={field: None}),
        api.post("/batch", json={"operations": [operation]}),
        api.put(f"/clusters/{id}", json={**api.get(f"/clusters/{id}").json(), field: None}),
    ):
        problem = assert_problem(answer, 422, "invalid-document")
        assert [error["pointer"] for error in problem["errors"]] == [f"/{field}"]
