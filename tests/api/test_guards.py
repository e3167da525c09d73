"""Guards and freezes: what holds up a write that is allowed, on every way of writing, and how it passes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from api.fleets import assert_problem, cluster, component, fresh, inputs, namespace
from flux_resourceset import transfer

Document = dict[str, Any]
FAR = "2999-01-01T00:00:00Z"


def filled(api: httpx.Client) -> None:
    operations = [{"op": "create", "kind": "platform_components", "id": "app", "document": component("app")}]
    operations += [{"op": "create", "kind": "namespaces", "id": id, "document": namespace(id)} for id in ("one", "two")]
    for number in range(8):
        id = f"c{number}"
        document = cluster(
            id,
            environment="prod" if number == 7 else "dev",
            labels={"team": "a" if number < 4 else "b"},
            platform_components=[{"id": "app"}],
            namespaces=[{"id": "one"}, {"id": "two"}],
        )
        operations.append({"op": "create", "kind": "clusters", "id": id, "document": document})
    assert api.post("/batch", json={"operations": operations}).status_code == 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    limits = {"PROTECTED_ENVIRONMENTS": "prod", "GUARD_MAX_REMOVAL_CLUSTERS": "2", "GUARD_MAX_CLUSTERS": "6"}
    folder = tmp_path_factory.mktemp("guards")
    with live.serving(folder, SEED_FILE="", **limits) as server, server.client() as api:
        api.headers["X-Confirm-Clusters"] = "8"
        filled(api)
        yield server


@pytest.fixture
def api(server: live.Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def revision(api: httpx.Client) -> int:
    found: int = api.get("/changes?limit=1").json()[0]["revision"]
    return found


def unassign(clusters: list[str], id: str = "one") -> Document:
    return {"operations": [{"op": "unassign", "kind": "namespaces", "id": id, "clusters": clusters}]}


def test_many_removals_have_to_be_confirmed_by_their_exact_number(api: httpx.Client) -> None:
    before = revision(api)
    body = unassign(["c0", "c1", "c2"])
    problem = assert_problem(api.post("/batch", json=body), 428, "confirmation-required")
    assert (problem["removals"], problem["clusters"]) == (3, 3)
    assert problem["first"] == [{"cluster": f"c{n}", "view": "namespaces", "input": "one"} for n in range(3)]
    assert problem["confirm"] == {"X-Confirm-Removals": "3"}
    for wrong in ("2", "4", "0"):
        assert_problem(api.post("/batch", json=body, headers={"X-Confirm-Removals": wrong}), 428)
    assert revision(api) == before
    passed = api.post("/batch", json=body, headers=problem["confirm"])
    assert (passed.status_code, passed.json()["revision"]) == (200, before + 1)
    back = {"operations": [{"op": "assign", "kind": "namespaces", "id": "one", "clusters": ["c0", "c1", "c2"]}]}
    assert api.post("/batch", json=back).status_code == 200


def test_few_removals_pass(api: httpx.Client) -> None:
    name = fresh("few")
    api.post("/clusters", json=cluster(name, namespaces=[{"id": "one"}]))
    assert api.delete(f"/clusters/{name}").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "removed"),
    [
        ("DELETE", "/clusters/c7", None, 3),
        ("PATCH", "/clusters/c7", {"namespaces": [{"id": "one"}]}, 1),
        ("PATCH", "/clusters/c7", {"environment": "dev", "namespaces": []}, 2),
        ("DELETE", "/clusters/c7/platform_components/app", None, 1),
        ("PATCH", "/clusters/c7/platform_components/app", {"enabled": False}, 1),
        ("POST", "/batch", unassign(["c7"], "two"), 1),
        ("PATCH", "/clusters/c0", {"environment": "prod", "namespaces": [{"id": "one"}]}, 1),
    ],
)
def test_a_protected_environment_guards_every_removal_by_every_way(
    api: httpx.Client, method: str, path: str, body: Document | None, removed: int
) -> None:
    before = revision(api)
    problem = assert_problem(api.request(method, path, json=body), 428, "confirmation-required")
    assert (problem["removals"], problem["confirm"]) == (removed, {"X-Confirm-Removals": str(removed)})
    assert revision(api) == before
    plan = api.request(method, path, params={"dry_run": "true"}, json=body)
    guards = {guard["guard"]: guard for guard in plan.json()["guards"]}
    assert (guards["removals"]["tripped"], guards["removals"]["removals"]) == (True, removed)
    assert guards["removals"]["confirm"] == problem["confirm"]


def test_a_definition_that_is_deleted_by_force_is_guarded_too(api: httpx.Client) -> None:
    problem = assert_problem(api.delete("/namespaces/two?force=true"), 428)
    assert (problem["removals"], problem["clusters"]) == (8, 8)
    assert problem["confirm"] == {"X-Confirm-Removals": "8", "X-Confirm-Clusters": "8"}


def test_a_wide_change_has_to_be_confirmed_and_both_guards_are_one_refusal(api: httpx.Client) -> None:
    body = {"oci_tag": fresh("tag")}
    problem = assert_problem(api.patch("/platform_components/app", json=body), 428)
    assert (problem["clusters"], problem["removals"], problem["confirm"]) == (8, 0, {"X-Confirm-Clusters": "8"})
    assert_problem(api.patch("/platform_components/app", json=body, headers={"X-Confirm-Clusters": "7"}), 428)
    assert api.patch("/platform_components/app", json=body, headers=problem["confirm"]).status_code == 200
    everywhere = {"operations": [{"op": "unassign", "kind": "namespaces", "id": "one", "selector": ""}]}
    both = assert_problem(api.post("/batch", json=everywhere), 428)
    assert both["confirm"] == {"X-Confirm-Removals": "8", "X-Confirm-Clusters": "8"}
    one = {"X-Confirm-Removals": "8"}
    assert assert_problem(api.post("/batch", json=everywhere, headers=one), 428)["confirm"] == {"X-Confirm-Clusters": "8"}


def test_what_changes_no_answer_trips_nothing(api: httpx.Client) -> None:
    assert api.patch("/clusters/c7", json={"labels": {"team": "b", "x": "y"}}).status_code == 200
    name = fresh("nobody")
    assert api.post("/namespaces", json=namespace(name)).status_code == 201
    assert api.delete(f"/namespaces/{name}").status_code == 200


@pytest.mark.parametrize("header", ["X-Confirm-Removals", "X-Confirm-Clusters"])
@pytest.mark.parametrize("value", ["", "many", "-1", "1.0"])
def test_a_confirmation_that_is_no_number_is_refused(api: httpx.Client, header: str, value: str) -> None:
    assert_problem(api.delete("/clusters/c0", headers={header: value}), 400, "bad-request")


def test_a_refusal_is_not_remembered_under_an_idempotency_key(api: httpx.Client) -> None:
    body, key = unassign(["c7"]), {"Idempotency-Key": fresh("key")}
    assert_problem(api.post("/batch", json=body, headers=key), 428)
    assert api.post("/batch", json=body, headers={**key, "X-Confirm-Removals": "1"}).status_code == 200
    assert api.put("/clusters/c7/namespaces/one").status_code == 200


def test_an_unpinned_version_in_a_protected_environment_is_warned_of(api: httpx.Client) -> None:
    name = fresh("loose")
    api.post("/platform_components", json=component(name, oci_tag="latest"))
    (warning,) = api.put(f"/clusters/c7/platform_components/{name}?dry_run=true", json={}).json()["warnings"]
    assert name in warning
    assert "prod" in warning
    assert api.put(f"/clusters/c7/platform_components/{name}?dry_run=true", json={"oci_tag": "1.2.3"}).json()["warnings"] == []
    assert api.put(f"/clusters/c0/platform_components/{name}?dry_run=true", json={}).json()["warnings"] == []


# Freezes


@pytest.fixture
def freeze(api: httpx.Client) -> Iterator[Document]:
    """The clusters of team a in dev are frozen."""
    document = {"id": fresh("freeze"), "environment": "dev", "selector": "team=a", "reason": "closing", "until": FAR}
    assert api.post("/freezes", json=document).status_code == 201
    yield document
    assert api.delete(f"/freezes/{document['id']}").status_code in (200, 404)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/clusters/c0", None),
        ("PUT", "/clusters/c0/namespaces/one", None),
        ("DELETE", "/clusters/c0/namespaces/one", None),
        ("PATCH", "/clusters/c0", {"labels": {"team": "b"}}),
        ("PATCH", "/clusters/c0", {"environment": "qa"}),
        ("PATCH", "/namespaces/two", {"labels": {"x": "frozen"}}),
        ("POST", "/batch", {"operations": [{"op": "delete", "kind": "clusters", "id": "c0"}]}),
    ],
)
def test_what_is_frozen_does_not_change(
    api: httpx.Client, freeze: Document, method: str, path: str, body: Document | None
) -> None:
    if path.endswith("namespaces/one") and method == "PUT":
        path, body = "/clusters/c0/platform_components/app", {"oci_tag": "3.0.0"}
    before = revision(api)
    problem = assert_problem(api.request(method, path, json=body, headers={"X-Confirm-Clusters": "8"}), 423, "frozen")
    assert problem["freezes"] == [{"id": freeze["id"], "reason": "closing", "until": FAR}]
    assert problem["clusters"] == (["c0"] if path != "/namespaces/two" else ["c0", "c1", "c2", "c3"])
    assert problem["count"] == len(problem["clusters"])
    assert revision(api) == before
    plan = api.request(method, path, params={"dry_run": "true"}, json=body).json()
    (guard,) = [guard for guard in plan["guards"] if guard["guard"] == "freeze"]
    assert (guard["tripped"], guard["freeze"], guard["confirm"]) == (True, freeze["id"], {"X-Override-Freeze": freeze["id"]})


def test_what_a_freeze_does_not_match_goes_on(api: httpx.Client, freeze: Document) -> None:
    assert api.patch("/clusters/c4", json={"labels": {"team": "b", "more": "x"}}).status_code == 200
    assert api.patch("/clusters/c0", json={"labels": {"team": "a", "more": "x"}}).status_code == 200  # no answer changes
    name = fresh("new")
    assert api.post("/clusters", json=cluster(name, labels={"team": "a"}, namespaces=[{"id": "one"}])).status_code == 201
    assert [item["id"] for item in inputs(api, f"{name}.example.com", "namespaces")] == ["one"]
    assert_problem(api.delete(f"/clusters/{name}"), 423)
    api.delete(f"/freezes/{freeze['id']}")
    assert api.delete(f"/clusters/{name}").status_code == 200


def test_a_freeze_is_passed_by_its_name_and_a_reason_and_that_is_forced(api: httpx.Client, freeze: Document) -> None:
    change = {"platform_components": [{"id": "app", "oci_tag": fresh("hotfix")}]}
    override = {"X-Override-Freeze": freeze["id"]}
    assert_problem(api.patch("/clusters/c0", json=change, headers=override), 422)
    other = {"X-Override-Freeze": "another", "X-Reason": "hotfix"}
    assert_problem(api.patch("/clusters/c0", json=change, headers=other), 423)
    passed = api.patch("/clusters/c0", json=change, headers={**override, "X-Reason": "hotfix"})
    assert passed.status_code == 200
    entry = api.get("/changes?limit=1").json()[0]
    assert (entry["forced"], entry["reason"]) == (True, "hotfix")


def test_every_freeze_that_is_hit_must_be_named(api: httpx.Client, freeze: Document) -> None:
    second = {"id": fresh("freeze"), "selector": "team", "reason": "all teams"}
    assert api.post("/freezes", json=second).status_code == 201
    change = {"platform_components": [{"id": "app", "oci_tag": fresh("two")}]}
    one = {"X-Override-Freeze": freeze["id"], "X-Reason": "r"}
    problem = assert_problem(api.patch("/clusters/c0", json=change, headers=one), 423)
    assert [each["id"] for each in problem["freezes"]] == [second["id"]]
    both = {"X-Override-Freeze": f"{freeze['id']}, {second['id']}", "X-Reason": "r"}
    assert api.patch("/clusters/c0", json=change, headers=both).status_code == 200
    assert api.delete(f"/freezes/{second['id']}").status_code == 200


def test_a_freeze_counts_for_the_write_that_deletes_it_and_not_for_the_one_that_makes_it(
    api: httpx.Client, freeze: Document
) -> None:
    tag = {"op": "assign", "kind": "platform_components", "id": "app", "document": {"oci_tag": "8.8.8"}, "clusters": ["c0"]}
    deleted = {"op": "delete", "kind": "freezes", "id": freeze["id"]}
    assert_problem(api.post("/batch", json={"operations": [deleted, tag]}), 423)
    other = {"id": fresh("freeze"), "environment": "dev", "reason": "r"}
    create = {"op": "create", "kind": "freezes", "id": other["id"], "document": other}
    tag["clusters"] = ["c5"]
    assert api.post("/batch", json={"operations": [create, tag]}).status_code == 200
    assert api.delete(f"/freezes/{other['id']}").status_code == 200


def test_a_freeze_that_is_over_freezes_nothing(api: httpx.Client) -> None:
    document = {"id": fresh("over"), "environment": "dev", "reason": "was", "until": "2020-01-01T00:00:00+01:00"}
    assert api.post("/freezes", json=document).status_code == 201
    change = {"platform_components": [{"id": "app", "oci_tag": fresh("after")}]}
    assert api.patch("/clusters/c0", json=change).status_code == 200
    assert api.delete(f"/freezes/{document['id']}").status_code == 200


@pytest.mark.parametrize(
    "document",
    [
        {"reason": "r"},
        {"environment": "dev"},
        {"environment": "nowhere", "reason": "r"},
        {"selector": "a b c(", "reason": "r"},
        {"selector": " ", "reason": "r"},
        {"environment": "dev", "reason": ""},
        {"environment": "dev", "reason": "r", "until": "tomorrow"},
        {"environment": "dev", "reason": "r", "until": "2026-12-31T23:59:60Z"},
        {"environment": "dev", "reason": "r", "until": "2026-13-31T00:00:00Z"},
        {"environment": "dev", "reason": "r", "more": 1},
    ],
)
def test_a_wrong_freeze_is_refused(api: httpx.Client, document: Document) -> None:
    problem = assert_problem(api.post("/freezes", json={"id": "wrong", **document}), 422, "invalid-document")
    assert problem["errors"]


def test_freezes_are_in_no_answer_and_no_cluster(api: httpx.Client, freeze: Document) -> None:
    assert "freezes" not in api.get("/clusters/c0").json()
    assert api.get("/api/v2/flux/clusters/c0.example.com/freezes").status_code == 404
    assert_problem(api.patch("/clusters/c0", json={"freezes": []}), 422)


# Imports


def test_an_import_passes_the_same_guards(api: httpx.Client, tmp_path: Path, server: live.Server) -> None:
    export = api.get("/export").json()
    name = fresh("extra")
    assert api.put("/clusters/c7/platform_components/app", json={"oci_tag": name}).status_code == 200
    problem = assert_problem(api.post("/import?merge=true", json=_without_app(export)), 428)
    assert problem["removals"] == 1


def _without_app(export: Document) -> Document:
    for document in export["documents"]["clusters"]:
        if document["id"] == "c7":
            document["platform_components"] = []
    export["checksum"] = transfer.checksum(export)
    return export


def offline(folder: Path, *arguments: str, **limits: str) -> subprocess.CompletedProcess[str]:
    command = [*live.PROGRAM, "import", *arguments]
    environment = live.environment(folder, **limits)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_an_offline_import_passes_the_same_guards(tmp_path: Path) -> None:
    limits = {"PROTECTED_ENVIRONMENTS": "prod", "SEED_FILE": ""}
    with live.serving(tmp_path, **limits) as server, server.client() as api:
        filled(api)
        (tmp_path / "fleet.json").write_text(api.get("/export").text)
        assert api.put("/clusters/c7/rolebindings/r", json={}).status_code == 422
        api.post("/platform_components", json=component("later"))
        assert api.put("/clusters/c7/platform_components/later", json={}).status_code == 200
        assert api.post("/freezes", json={"id": "held", "environment": "prod", "reason": "closing"}).status_code == 201
    command = [str(tmp_path / "fleet.json"), "--replace", "--yes"]
    frozen = offline(tmp_path, *command, **limits)
    assert (frozen.returncode, "--override-freeze held" in frozen.stderr) == (6, True), frozen.stderr
    assert offline(tmp_path, *command, "--override-freeze", "held", **limits).returncode == 2
    override = ("--override-freeze", "held", "--reason", "restore")
    guarded = offline(tmp_path, *command, *override, **limits)
    assert (guarded.returncode, "--confirm-removals 1" in guarded.stderr) == (6, True), guarded.stderr
    assert offline(tmp_path, *command, *override, "--confirm-removals", "2", **limits).returncode == 6
    done = offline(tmp_path, *command, *override, "--confirm-removals", "1", **limits)
    assert done.returncode == 0, done.stderr
    with live.serving(tmp_path, **limits) as server, server.client() as api:
        assert [item["id"] for item in inputs(api, "c7.example.com")] == ["app"]
        assert api.get("/changes?limit=1").json()[0]["reason"] == "restore"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "value"),
    [("GUARD_MAX_REMOVAL_CLUSTERS", "many"), ("GUARD_MAX_CLUSTERS", "-1"), ("PROTECTED_ENVIRONMENTS", "production")],
)
def test_a_wrong_limit_ends_the_start(tmp_path: Path, name: str, value: str) -> None:
    done = subprocess.run(
        [*live.PROGRAM], env=live.environment(tmp_path, **{name: value}), capture_output=True, text=True, check=False
    )
    assert (done.returncode, name in done.stderr) == (2, True)
