"""The difference between two revisions, in documents and in answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import live
from api.fleets import assert_problem, make


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a history of ten revisions."""
    with live.serving(tmp_path_factory.mktemp("diff")) as server, server.client() as api:
        make(api, "platform_components", "p")  # 1
        make(api, "namespaces", "n")  # 2
        for id in ("c", "d"):  # 3, 4
            make(api, "clusters", id, platform_components=[{"id": "p"}], namespaces=[{"id": "n"}])
        api.patch("/platform_components/p", json={"oci_tag": "2.0.0"})  # 5
        make(api, "namespaces", "m")  # 6
        api.put("/clusters/c/namespaces/m", json={})  # 7
        api.delete("/clusters/c/namespaces/n")  # 8
        api.delete("/clusters/d", headers={"X-Confirm-Removals": "2"})  # 9
        api.patch("/platform_components/p", json={"oci_tag": "3.0.0"})  # 10
        yield api


def diff(api: httpx.Client, query: str) -> dict[str, Any]:
    response = api.get(f"/diff?{query}")
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_documents_and_answers_that_differ_are_told(api: httpx.Client) -> None:
    found = diff(api, "from=4&to=5")
    tag = {"before": "1.0.0", "after": "2.0.0"}
    assert found == {
        "from": 4,
        "to": 5,
        "summary": {"documents": 1, "clusters": 2, "added": 0, "removed": 0, "changed": 2},
        "groups": [
            {
                "count": 2,
                "clusters": ["c", "d"],
                "environments": {"dev": 2},
                "changes": [
                    {
                        "view": "platform-components",
                        "input": "p",
                        "change": "changed",
                        "fields": [{"path": "/source/oci_tag", **tag}],
                    }
                ],
            }
        ],
        "groups_total": 1,
        "documents": [{"kind": "platform_components", "id": "p", "operation": "update", "fields": [{"path": "/oci_tag", **tag}]}],
    }


def test_it_ends_now_if_nothing_else_is_said(api: httpx.Client) -> None:
    found = diff(api, "from=4")
    assert (found["from"], found["to"]) == (4, 10)
    assert [(item["kind"], item["id"], item["operation"]) for item in found["documents"]] == [
        ("clusters", "c", "update"),
        ("clusters", "d", "delete"),
        ("namespaces", "m", "create"),
        ("platform_components", "p", "update"),
    ]
    assert found["summary"] == {"documents": 4, "clusters": 2, "added": 1, "removed": 3, "changed": 1}
    assert found["documents"][0]["fields"] == [
        {"path": "/namespaces/n", "before": {"id": "n"}},
        {"path": "/namespaces/m", "after": {"id": "m"}},
    ]
    assert diff(api, "from=1999-01-01T00:00:00Z&to=2999-01-01T00:00:00Z") == diff(api, "from=0&to=10")
    assert diff(api, "from=0&to=10")["summary"]["documents"] == 4  # d came and went
    assert diff(api, "from=10")["documents"] == diff(api, "from=3&to=3")["groups"] == []


def test_what_is_told_is_narrowed(api: httpx.Client) -> None:
    whole = diff(api, "from=4")
    by_kind = diff(api, "from=4&kind=clusters")
    assert [item["id"] for item in by_kind["documents"]] == ["c", "d"]
    by_cluster = diff(api, "from=4&cluster=d")
    assert [group["clusters"] for group in by_cluster["groups"]] == [["d"]]
    assert by_kind["summary"] == by_cluster["summary"] == whole["summary"]
    assert by_kind["groups"] == whole["groups"]
    assert by_cluster["documents"] == whole["documents"]


def test_it_says_of_every_stretch_what_a_plan_said(api: httpx.Client) -> None:
    operations = [{"op": "patch", "kind": "platform_components", "id": "p", "document": {"oci_tag": "4.0.0"}}]
    plan = api.post("/plan", json={"operations": operations}).json()
    revision = api.post("/batch", json={"operations": operations}).json()["revision"]
    found = diff(api, f"from={revision - 1}&to={revision}")
    assert {name: found[name] for name in ("summary", "groups", "groups_total")} == {
        name: plan[name] for name in ("summary", "groups", "groups_total")
    }
    api.post(f"/changes/{revision}/revert")


def test_what_is_no_stretch_is_refused(api: httpx.Client) -> None:
    for query in ("", "to=3", "from=x", "from=1&to=x", "from=5&to=4", "from=1&kind=nothing", "from=1&full=x", "from=1&x=1"):
        assert_problem(api.get(f"/diff?{query}"), 400, "bad-query")
    for query in ("from=99", "from=1&to=99"):
        assert_problem(api.get(f"/diff?{query}"), 422, "bad-query")
