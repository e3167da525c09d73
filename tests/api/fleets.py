"""Documents for tests, and the few questions that every test asks."""

from __future__ import annotations

import itertools
from typing import Any

import httpx

import live

Document = dict[str, Any]

SEED = live.ROOT / "data" / "seed.json"
DEMO = "demo-cluster-01"
DEMO_DNS = "demo-cluster-01.k8s.example.com"
VIEWS = ("platform-components", "namespaces", "rolebindings")
KINDS = ("clusters", "platform_components", "namespaces", "rolebindings")

_numbers = itertools.count(1)


def fresh(prefix: str) -> str:
    """An id that no other test uses."""
    return f"{prefix}-{next(_numbers)}"


def cluster(id: str, **fields: Any) -> Document:
    return {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "dev", **fields}


def component(id: str, **fields: Any) -> Document:
    return {"id": id, "component_path": id, "oci_url": "https://charts.example.com", "oci_tag": "1.0.0", **fields}


def namespace(id: str, **fields: Any) -> Document:
    return {"id": id, **fields}


def rolebinding(id: str, **fields: Any) -> Document:
    return {"id": id, "role": "view", "subjects": [{"kind": "Group", "name": "developers"}], **fields}


MAKERS = {
    "clusters": cluster,
    "platform_components": component,
    "namespaces": namespace,
    "rolebindings": rolebinding,
}


def make(api: httpx.Client, kind: str, id: str | None = None, **fields: Any) -> Document:
    """Create a document and return it as the server completed it."""
    response = api.post(f"/{kind}", json=MAKERS[kind](id or fresh(kind[:4].rstrip("_")), **fields))
    assert response.status_code == 201, response.text
    document: Document = response.json()
    return document


def view(dns: str, name: str) -> str:
    return f"/api/v2/flux/clusters/{dns}/{name}"


def inputs(api: httpx.Client, dns: str, name: str = "platform-components") -> list[Document]:
    response = api.get(view(dns, name))
    assert response.status_code == 200, response.text
    found: list[Document] = response.json()["inputs"]
    return found


def assert_problem(response: httpx.Response, status: int, code: str | None = None) -> Document:
    """Assert the one shape that every error has."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: Document = response.json()
    assert {"type", "title", "status", "detail", "code", "request_id"} <= set(problem)
    assert all(isinstance(problem[name], str) and problem[name] for name in problem.keys() & _TEXTS)
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]
    assert code is None or problem["code"] == code
    for error in problem.get("errors", []):
        assert set(error) == {"pointer", "message"}
    return problem


_TEXTS = {"type", "title", "detail", "code", "request_id"}


def pointers(response: httpx.Response) -> set[str]:
    """Where an invalid document is invalid."""
    return {error["pointer"] for error in assert_problem(response, 422)["errors"]}
