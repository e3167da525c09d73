"""GET /export and POST /import: whole fleets out of a server and into one, by every rule of a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from api.fleets import DEMO, DEMO_DNS, assert_problem, cluster, component, namespace, view
from flux_resourceset import transfer

Export = dict[str, Any]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with the demo fleet."""
    folder = tmp_path_factory.mktemp("demo")
    with live.serving(folder, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as api:
        yield api


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[httpx.Client]:
    """A server without documents."""
    with live.serving(tmp_path, SEED_FILE="") as server, server.client() as api:
        yield api


def export_of(api: httpx.Client, query: str = "") -> Export:
    answer = api.get(f"/export{query}")
    assert answer.status_code == 200, answer.text
    found: Export = answer.json()
    return found


def signed(export: Export) -> Export:
    """With the checksum that fits its content."""
    return {**export, "checksum": transfer.checksum(export)}


def without_origin(export: Export) -> Export:
    """What a fleet is, but for where it comes from."""
    return {name: export[name] for name in ("documents", "tombstones", "deleted_by_force")}


def test_a_fleet_moves_from_one_server_to_another(demo: httpx.Client, empty: httpx.Client) -> None:
    export = export_of(demo)
    answer = empty.post("/import", json=export)
    assert answer.status_code == 200, answer.text
    count = sum(map(len, export["documents"].values()))
    assert answer.json() == {"revision": 1, "documents": count, "warnings": []}
    assert without_origin(export_of(empty)) == without_origin(export)
    for name in ("platform-components", "namespaces", "rolebindings"):
        assert empty.get(view(DEMO_DNS, name)).content == demo.get(view(DEMO_DNS, name)).content


def test_an_import_is_one_entry_of_the_log_with_its_reason(demo: httpx.Client, empty: httpx.Client) -> None:
    empty.post("/import", json=export_of(demo), headers={"X-Reason": "moved", "X-Actor": "alice"}).raise_for_status()
    (entry,) = empty.get("/changes").json()
    assert (entry["actor"], entry["on_behalf_of"], entry["reason"]) == ("write", "alice", "moved")
    assert {change["operation"] for change in entry["changes"]} == {"create"}


def test_the_history_of_an_export_stays_out_of_an_import_over_http(demo: httpx.Client, empty: httpx.Client) -> None:
    with_history = export_of(demo, "?history=true")
    assert with_history["history"]
    empty.post("/import", json=with_history).raise_for_status()
    assert len(empty.get("/changes").json()) == 1


def test_what_managers_applied_comes_along_with_the_documents(demo: httpx.Client, empty: httpx.Client) -> None:
    def applied(client: httpx.Client, labels: dict[str, str]) -> httpx.Response:
        named = {"op": "apply", "kind": "namespaces", "id": "podinfo", "manager": "ci", "document": {"labels": labels}}
        return client.post("/batch", json={"operations": [named]})

    applied(demo, {"one": "1", "two": "1"}).raise_for_status()
    demo.patch("/namespaces/podinfo", json={"labels": {"two": "hotfix"}}).raise_for_status()
    with_history = demo.get("/export", params={"history": "true"}).json()
    for query in ("", "?merge=true"):
        empty.post(f"/import{query}", json=with_history).raise_for_status()
        (result,) = applied(empty, {"two": "1"}).json()["results"]
        assert "one" not in result["after"]["labels"]
        assert [each["path"] for each in result["kept"]] == ["/labels/two"]


def test_what_was_applied_to_nothing_is_no_part_of_an_export(demo: httpx.Client, empty: httpx.Client) -> None:
    stray = {"kind": "namespaces", "id": "nobody", "manager": "ci", "document": {}}
    problem = assert_problem(empty.post("/import", json=signed({**export_of(demo), "applied": [stray]})), 422)
    assert "'nobody'" in problem["detail"]


def test_a_store_that_is_not_empty_needs_merge(demo: httpx.Client) -> None:
    export = export_of(demo)
    problem = assert_problem(demo.post("/import", json=export), 409, "conflict")
    assert "merge=true" in problem["detail"]
    same = demo.post("/import?merge=true", json=export)
    assert same.status_code == 200
    assert same.json()["revision"] == export["revision"]  # nothing changed, so there is no new one


def test_a_merge_adds_and_replaces_and_leaves_the_rest(demo: httpx.Client) -> None:
    export = export_of(demo)
    namespaces = [namespace("merged-in"), *export["documents"]["namespaces"]]
    part = {**export, "documents": {"namespaces": namespaces}, "tombstones": []}
    done = demo.post("/import?merge=true", json=signed(part))
    assert done.json()["documents"] == len(namespaces)
    assert demo.get("/namespaces/merged-in").status_code == 200
    assert demo.get(f"/clusters/{DEMO}").status_code == 200


def test_an_import_answers_its_warnings_and_the_log_of_the_server_has_them(empty: httpx.Client) -> None:
    export = {
        "format": "flux-resourceset/v1",
        "revision": 7,
        "documents": {
            "platform_components": [component("app", oci_tag="1.x")],
            "clusters": [cluster("c1", platform_components=[{"id": "app"}, {"id": "lost"}])],
        },
        "tombstones": [{"dns": "gone.example.com", "id": "gone", "revision": 3}],
        "deleted_by_force": [{"kind": "platform_components", "id": "lost"}],
    }
    answer = empty.post("/import", json=signed(export))
    assert answer.status_code == 200, answer.text
    warnings = answer.json()["warnings"]
    assert any('"lost" was deleted by force' in text for text in warnings)
    assert any("1.x leaves Helm a choice" in text for text in warnings)
    assert any("gone.example.com" in text for text in warnings)
    assert set(warnings) <= set(answer.headers.get_list("x-warning"))
    assert [item["id"] for item in empty.get(view("c1.example.com", "platform-components")).json()["inputs"]] == ["app"]
    assert empty.get(view("gone.example.com", "namespaces")).json() == {"inputs": []}


def test_warnings_of_an_import_have_a_bound(empty: httpx.Client) -> None:
    loose = [component(f"app-{number}", oci_tag="1.x") for number in range(150)]
    export = {
        "format": "flux-resourceset/v1", "revision": 1, "documents": {"platform_components": loose}, "tombstones": [],
        "deleted_by_force": [],
    }  # fmt: skip
    warnings = empty.post("/import", json=signed(export)).json()["warnings"]
    assert (len(warnings), warnings[-1]) == (101, "and 50 more warnings")


def unknown_kind(export: Export) -> Export:
    return signed({**export, "documents": {**export["documents"], "widgets": []}})


def broken_document(export: Export) -> Export:
    return signed({**export, "documents": {"namespaces": [{"id": "Bad Name"}]}, "tombstones": []})


def repeated_id(export: Export) -> Export:
    return signed({**export, "documents": {"namespaces": [namespace("a"), namespace("a")]}, "tombstones": []})


def dangling_reference(export: Export) -> Export:
    clusters = [cluster("c9", namespaces=[{"id": "nowhere"}])]
    return signed({**export, "documents": {"clusters": clusters}, "tombstones": [], "deleted_by_force": []})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda export: {**export, "revision": 99}, "checksum"),
        (lambda export: {**export, "format": "flux-resourceset/v0"}, "format must be flux-resourceset/v1"),
        (lambda export: [export], "is no export"),
        (lambda export: signed({name: value for name, value in export.items() if name != "documents"}), "documents"),
        (unknown_kind, "'widgets' is no kind here"),
        (broken_document, "Bad Name"),
        (repeated_id, 'duplicate id "a"'),
        (dangling_reference, '"nowhere" not found'),
    ],
)
def test_a_wrong_file_is_refused_and_nothing_is_written(
    demo: httpx.Client, empty: httpx.Client, change: Callable[[Export], Any], said: str
) -> None:
    for query in ("", "?merge=true"):
        problem = assert_problem(empty.post(f"/import{query}", json=change(export_of(demo))), 422)
        assert said in problem["detail"] + str(problem.get("errors"))
    assert empty.get("/changes").json() == []
    assert export_of(empty)["revision"] == 0


def test_a_read_token_exports_and_does_not_import(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE="") as server, server.client(live.READ) as reader:
        export = export_of(reader)
        assert_problem(reader.post("/import", json=export), 403, "forbidden")


@pytest.mark.parametrize("query", ["?merge=yes", "?force=true", "?merge=true&merge=true"])
def test_a_wrong_query_is_refused(demo: httpx.Client, query: str) -> None:
    assert_problem(demo.post(f"/import{query}", json=export_of(demo)), 400, "bad-query")
