"""What a live server answers, held against the document that it serves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml

import live
from flux_resourceset import transfer
from openapi.documents import DATABASES, Json, mistakes, operations, resolved

pytestmark = pytest.mark.long

JSON = "application/json"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with an extra kind that holds nothing but what the examples ask for."""
    directory = tmp_path_factory.mktemp("answers")
    (directory / "kinds").mkdir()
    (directory / "kinds" / "databases.yaml").write_text(DATABASES)
    with live.serving(directory, RESOURCES_DIR=str(directory / "kinds")) as server, server.client() as client:
        yield client


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> Json:
    answer = client.get("/openapi.yaml", headers={"Authorization": ""})
    assert answer.headers["content-type"] == "application/yaml"
    found: Json = yaml.safe_load(answer.text)
    return found


@pytest.fixture(scope="module")
def created(client: httpx.Client, document: Json) -> dict[str, httpx.Response]:
    """The example of every kind, sent as it stands; clusters last, for they refer to the others."""
    creating = {path: item["post"] for path, item in document["paths"].items() if "post" in item}
    posts = {path: operation for path, operation in creating.items() if "201" in operation["responses"]}
    podinfo = example(posts["/platform_components"])
    needed = [{**podinfo, "id": name, "depends_on": []} for name in podinfo["depends_on"]]
    for item in needed:
        assert client.post("/platform_components", json=item).status_code == 201
    order = sorted(posts, key=lambda path: path == "/clusters")
    return {path: client.post(path, json=example(posts[path])) for path in order}


def example(operation: Json) -> Any:
    return operation["requestBody"]["content"][JSON]["example"]


def filled(path: str, operation: Json) -> str:
    """With the examples of what has to be said."""
    said = [part for part in operation["parameters"] if part.get("required")]
    query = "&".join(f"{part['name']}={part['example']}" for part in said if part["in"] == "query")
    return path.format(**{part["name"]: part["example"] for part in said if part["in"] == "path"}) + (query and f"?{query}")


def assert_as_documented(document: Json, operation: Json, answer: httpx.Response) -> None:
    """Status, media type, headers and body are those of the document."""
    status = str(answer.status_code)
    assert status in operation["responses"], answer.text
    response = resolved(document, operation["responses"][status])
    for name, header in response.get("headers", {}).items():
        assert name in answer.headers or not resolved(document, header).get("required"), f"{answer.url}: {name} is missing"
    if "content" in response:
        media = response["content"][answer.headers["content-type"].partition(";")[0]]
        body = answer.json() if "json" in answer.headers["content-type"] else answer.text
        assert mistakes(document, media["schema"], body) == []


def test_examples_of_documents_are_stored_and_answered_as_shown(document: Json, created: dict[str, httpx.Response]) -> None:
    assert created.keys() >= {"/clusters", "/databases"}
    for path, answer in created.items():
        operation = document["paths"][path]["post"]
        assert answer.status_code == 201, answer.text
        assert answer.json() == operation["responses"]["201"]["content"][JSON]["example"]
        assert_as_documented(document, operation, answer)


@pytest.mark.usefixtures("created")
def test_examples_of_flux_answers_are_what_flux_gets(client: httpx.Client, document: Json) -> None:
    views = [(path, get) for path, method, get in operations(document) if method == "get" and "{cluster_dns}" in path]
    assert len(views) == 8  # four, and single inputs of each
    for path, operation in views:
        answer = client.get(filled(path, operation))
        assert_as_documented(document, operation, answer)
        (shown,) = operation["responses"]["200"]["content"][JSON]["example"]["inputs"]
        (got,) = answer.json()["inputs"]
        assert {**got, "digest": shown["digest"]} == shown


@pytest.mark.usefixtures("created")
def test_every_read_answers_as_documented_and_head_like_get(client: httpx.Client, document: Json) -> None:
    reads = {(path, method): operation for path, method, operation in operations(document) if method in ("get", "head")}
    for path in {path for path, _ in reads}:
        get, head = reads[path, "get"], reads[path, "head"]
        address = filled(path, get).replace("/changes/12", "/changes/1")
        answer, bare = client.get(address), client.head(address)
        assert answer.status_code == 200
        assert_as_documented(document, get, answer)
        assert_as_documented(document, head, bare)
        assert (bare.status_code, bare.content) == (200, b"")
        assert bare.headers["content-type"] == answer.headers["content-type"]


@pytest.mark.usefixtures("created")
def test_refusals_are_as_documented(client: httpx.Client, document: Json) -> None:
    tried = {
        "clusters.get": client.get("/clusters/none"),
        "clusters.list": client.get("/clusters?environment=moon"),
        "clusters.create": client.post("/clusters", json={}),
        "changes.list": client.get("/changes?since=yesterday"),
        "namespaces.delete": client.delete("/namespaces/team-sandbox"),
        "namespaces.patch": client.patch("/namespaces/team-sandbox", json={}, headers={"If-Match": '"999"'}),
        "namespaces.create": client.post("/namespaces", content="id: a", headers={"Content-Type": "application/yaml"}),
        "api.flux.namespaces": client.get("/api/v2/flux/clusters/none.example.com/namespaces"),
        "api.flux.namespaces.input": client.get("/api/v2/flux/clusters/none.example.com/namespaces/a"),
        "metrics.get": client.get("/metrics", headers={"Authorization": "Bearer wrong"}),
        "rolebindings.delete": client.delete("/rolebindings/a", headers={"Authorization": f"Bearer {live.READ}"}),
        "databases.create": client.post("/databases", content=b"x" * 2**21, headers={"Content-Type": JSON}),
    }
    by_id = {operation["operationId"]: operation for _, _, operation in operations(document)}
    assert {name: answer.status_code for name, answer in tried.items()} == dict(
        zip(tried, (404, 422, 422, 400, 409, 412, 415, 404, 404, 401, 403, 413), strict=True)
    )
    for name, answer in tried.items():
        assert_as_documented(document, by_id[name], answer)


@pytest.mark.usefixtures("created")
def test_writes_of_the_examples_succeed_as_documented(client: httpx.Client, document: Json) -> None:
    """PUT and PATCH at every level, a batch, and what they give back."""
    written = itertools.groupby(
        ((path, method, operation) for path, method, operation in operations(document) if method in ("put", "patch")),
        key=lambda found: found[0],
    )
    count = 0
    for path, found in written:
        for _, method, operation in found:
            for media_type, media in operation["requestBody"]["content"].items():
                answer = client.request(
                    method, filled(path, operation), json=media["example"], headers={"Content-Type": media_type, "If-Match": "*"}
                )
                assert answer.status_code == 200, f"{method} {path}: {answer.text}"
                assert_as_documented(document, operation, answer)
                count += 1
    assert count >= 24


@pytest.mark.usefixtures("created")
def test_batches_exports_and_imports_answer_as_documented(client: httpx.Client, document: Json) -> None:
    paths = document["paths"]
    operation = {"op": "create", "kind": "namespaces", "id": "rehearsed", "document": {}}
    dry = client.post("/batch?dry_run=true", json={"operations": [operation]})
    assert (dry.status_code, dry.json()["results"][0]["change"]) == (200, "create")
    assert_as_documented(document, paths["/batch"]["post"], dry)
    export = client.get("/export?history=true")
    assert_as_documented(document, paths["/export"]["get"], export)
    loaded = client.post("/import?merge=true", json=export.json())
    assert loaded.status_code == 200
    assert_as_documented(document, paths["/import"]["post"], loaded)


@pytest.mark.usefixtures("created")
def test_unassigning_answers_as_documented_and_says_what_went_along(client: httpx.Client, document: Json) -> None:
    path = "/clusters/{id}/platform_components/{part}"
    cluster = client.get("/clusters/demo-cluster-01").json()
    answer = client.delete(path.format(id=cluster["id"], part="podinfo"))
    assert answer.headers["X-Patches-Removed"] == str(len(cluster["patches"]["podinfo"]))
    assert_as_documented(document, document["paths"][path]["delete"], answer)
    assert client.put(f"/clusters/{cluster['id']}", json=cluster).status_code == 200


@pytest.mark.usefixtures("created")
def test_reverts_answer_as_documented(client: httpx.Client, document: Json) -> None:
    client.patch("/namespaces/team-sandbox", json={"labels": {"reverted": "yes"}})
    revision = int(client.get("/namespaces?limit=1").headers["x-revision"])
    tried = {
        "/namespaces/{id}/revert": client.post("/namespaces/team-sandbox/revert", json={"to": revision - 1}),
        "/changes/{revision}/revert": client.post(f"/changes/{revision + 1}/revert"),
        "/revert": client.post("/revert", json={"to": revision - 1}),
    }
    assert [answer.status_code for answer in tried.values()] == [200, 200, 200]
    for path, answer in tried.items():
        assert_as_documented(document, document["paths"][path]["post"], answer)
    conflict = client.post(f"/changes/{revision + 1}/revert")
    assert_as_documented(document, document["paths"]["/changes/{revision}/revert"]["post"], conflict)


OPERATION = {"op": "assign", "kind": "namespaces", "id": "team-sandbox", "clusters": []}


@pytest.mark.parametrize(
    ("field", "operation"),
    [
        ("selector", {**OPERATION, "clusters": None, "selector": "a=b,"}),
        ("document", {**OPERATION, "document": []}),
        ("values", {**OPERATION, "values": {"replicas": 2}}),
        ("force", {**OPERATION, "force": True}),
        ("document", {**OPERATION, "op": "unassign", "document": {}}),
        ("document", {"op": "delete", "kind": "namespaces", "id": "team-sandbox", "document": {}}),
    ],
)
def test_a_batch_refuses_what_an_operation_cannot_use(client: httpx.Client, field: str, operation: Json) -> None:
    answer = client.post("/batch?dry_run=true", json={"operations": [OPERATION, operation]})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/operations/1/{field}"]


def test_an_import_with_a_senseless_history_or_tombstone_is_refused(client: httpx.Client) -> None:
    change: Json = {"kind": "clusters", "id": "a", "operation": "create", "before": None, "after": {}}
    entry = {"revision": 1, "time": "", "actor": "a", "on_behalf_of": None, "request_id": None, "reason": None, "forced": False}
    tombstone = {"dns": "No Name", "id": "a", "revision": 1}
    for part in ({"history": [{**entry, "changes": [change]}], "tombstones": []}, {"tombstones": [tombstone]}):
        export: Json = {"format": "flux-resourceset/v1", "revision": 1, "documents": {}, **part}
        answer = client.post("/import?merge=true", json={**export, "checksum": transfer.checksum(export)})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-document")
