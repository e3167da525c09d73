"""Null where a list or the patches of a cluster belong: nothing is emptied by leaving the word out, on any way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import live
from api.fleets import fresh, inputs, make

pytestmark = pytest.mark.quick

REMEDIES = {
    "namespaces": "send [] to empty it",
    "platform_components": "send [] to empty it",
    "rolebindings": "send [] to empty it",
    "patches": 'send {"<component>": null} for each one to remove',
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with live.serving(tmp_path_factory.mktemp("nulls")) as server, server.client() as client:
        yield client


@pytest.fixture
def cluster(api: httpx.Client) -> dict[str, Any]:
    """One that has something of everything."""
    ids = {kind: make(api, kind)["id"] for kind in ("namespaces", "platform_components", "rolebindings")}
    references: dict[str, Any] = {kind: [{"id": id}] for kind, id in ids.items()}
    return make(api, "clusters", **references, patches={ids["platform_components"]: {"color": "red"}})


def by_patch(api: httpx.Client, id: str, document: Any) -> httpx.Response:
    return api.patch(f"/clusters/{id}", json=document)


def by_merge_patch(api: httpx.Client, id: str, document: Any) -> httpx.Response:
    return api.patch(f"/clusters/{id}", json=document, headers={"Content-Type": "application/merge-patch+json"})


def by_batch(api: httpx.Client, id: str, document: Any) -> httpx.Response:
    operation = {"op": "patch", "kind": "clusters", "id": id, "document": document}
    return api.post("/batch", json={"operations": [operation]})


def by_rehearsal(api: httpx.Client, id: str, document: Any) -> httpx.Response:
    operation = {"op": "patch", "kind": "clusters", "id": id, "document": document}
    return api.post("/batch?dry_run=true", json={"operations": [operation]})


@pytest.mark.parametrize("way", [by_patch, by_merge_patch, by_batch, by_rehearsal])
@pytest.mark.parametrize("field", REMEDIES)
def test_null_is_refused_with_the_remedy_and_nothing_is_emptied(
    field: str, way: Callable[[httpx.Client, str, Any], httpx.Response], api: httpx.Client, cluster: dict[str, Any]
) -> None:
    views = {view: inputs(api, cluster["cluster_dns"], view) for view in ("namespaces", "platform-components", "rolebindings")}
    response = way(api, cluster["id"], {field: None, "labels": {"tier": "edge"}})
    assert response.status_code == 422, response.text
    messages = {error["pointer"].rpartition("/")[2]: error["message"] for error in response.json()["errors"]}
    assert messages[field] == f"must not be null; {REMEDIES[field]}"
    assert api.get(f"/clusters/{cluster['id']}").json() == cluster
    assert {view: inputs(api, cluster["cluster_dns"], view) for view in views} == views


@pytest.mark.parametrize("field", REMEDIES)
def test_no_whole_document_takes_null_either(field: str, api: httpx.Client, cluster: dict[str, Any]) -> None:
    assert api.put(f"/clusters/{cluster['id']}", json={**cluster, field: None}).status_code == 422
    new = {"id": fresh("c"), "cluster_dns": f"{fresh('c')}.example.com"}
    assert api.post("/clusters", json={**cluster, **new, field: None}).status_code == 422
    assert api.get(f"/clusters/{cluster['id']}").json() == cluster


def test_the_remedies_work(api: httpx.Client, cluster: dict[str, Any]) -> None:
    (component,) = cluster["patches"]
    lists = ("namespaces", "rolebindings", "platform_components")
    remedies: list[Any] = [{"patches": {component: None}}, *({field: []} for field in lists)]
    for document in remedies:
        assert by_patch(api, cluster["id"], document).status_code == 200
    emptied = api.get(f"/clusters/{cluster['id']}").json()
    assert [emptied[field] for field in ("patches", *lists)] == [{}, [], [], []]
