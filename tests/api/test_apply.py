"""Apply and prune over HTTP: yesterday's files undo nobody's work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from api.fleets import SEED, assert_problem, cluster, component, fresh, make, namespace


def apply(kind: str, document: dict[str, Any], manager: str = "ci", **more: Any) -> dict[str, Any]:
    return {"op": "apply", "kind": kind, "id": document["id"], "manager": manager, "document": document, **more}


def send(api: httpx.Client, *given: Any, path: str = "/batch", **headers: str) -> httpx.Response:
    return api.post(path, json={"operations": list(given)}, headers={name.replace("_", "-"): v for name, v in headers.items()})


def sent(api: httpx.Client, *given: Any, **headers: str) -> Any:
    answer = send(api, *given, **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def revision(api: httpx.Client) -> int:
    return int(api.get("/changes?limit=1").json()[0]["revision"])


def test_yesterdays_files_undo_neither_a_hotfix_nor_a_rollout_nor_a_decommission(api: httpx.Client) -> None:
    app = make(api, "platform_components")["id"]
    hot, gone = (fresh("apply") for _ in range(2))
    files = [cluster(id, platform_components=[{"id": app, "oci_tag": "1.0.0"}], node_count=3) for id in (hot, gone)]
    assert [each["change"] for each in sent(api, *(apply("clusters", each) for each in files))["results"]] == ["create"] * 2
    api.patch(f"/clusters/{hot}", json={"node_count": 5})  # the hotfix
    fixed = revision(api)
    roll = {"op": "assign", "kind": "platform_components", "id": app, "clusters": [hot, gone], "document": {"oci_tag": "2.0.0"}}
    rolled = sent(api, roll)["revision"]
    before = revision(api)
    answer = sent(api, *(apply("clusters", each) for each in files))
    assert (answer["revision"], {each["change"] for each in answer["results"]}) == (before, {"unchanged"})
    assert answer["results"][0]["kept"] == [
        {"path": f"/platform_components/{app}/oci_tag", "actor": "write", "revision": rolled},
        {"path": "/node_count", "actor": "write", "revision": fixed},
    ]
    api.delete(f"/clusters/{gone}")
    problem = assert_problem(send(api, *(apply("clusters", each) for each in files)), 409, "conflict")
    assert (problem["index"], problem["id"], "revive" in problem["detail"]) == (1, gone, True)
    assert sent(api, *(apply("clusters", each, revive=True) for each in files))["results"][1]["change"] == "create"


def test_a_conflict_is_one_problem_with_every_field(api: httpx.Client, reader: httpx.Client) -> None:
    id = make(api, "clusters", node_count=3, labels={"a": "1"})["id"]
    at = revision(api)
    wanted = apply("clusters", {"id": id, "node_count": 4, "labels": {"a": "2"}})
    told = []
    for client, path in ((api, "/batch"), (api, "/batch?dry_run=true"), (reader, "/plan")):
        problem = assert_problem(send(client, wanted, path=path), 409, "conflict")
        told.append({name: problem[name] for name in ("conflicts", "conflicts_total", "index", "detail")})
    assert told[0] == told[1] == told[2]
    assert told[0]["index"] == 0
    about = {"kind": "clusters", "id": id, "actor": "write", "revision": at}
    assert told[0]["conflicts"] == [
        {**about, "path": "/node_count", "yours": 4, "theirs": 3},
        {**about, "path": "/labels/a", "yours": "2", "theirs": "1"},
    ]
    assert revision(api) == at
    assert sent(api, {**wanted, "force": True})["results"][0]["after"]["node_count"] == 4


def test_a_dry_run_says_what_would_be_kept_and_its_plan_is_carried_out(api: httpx.Client) -> None:
    id = fresh("apply")
    sent(api, apply("namespaces", namespace(id, labels={"a": "1"})))
    api.patch(f"/namespaces/{id}", json={"labels": {"a": "2"}})
    wanted = apply("namespaces", namespace(id, labels={"a": "1", "b": "1"}))
    plan = send(api, wanted, path="/plan").json()
    assert [each["path"] for each in plan["results"][0]["kept"]] == ["/labels/a"]
    done = sent(api, wanted, If_Plan=plan["plan"])
    assert done["results"][0]["after"]["labels"] == {"a": "2", "b": "1"}
    assert_problem(send(api, wanted, If_Plan=plan["plan"]), 412, "plan-changed")


def test_a_repeated_request_gets_its_first_answer_and_leaves_its_record(api: httpx.Client) -> None:
    id = make(api, "namespaces", labels={"a": "1"})["id"]
    wanted, key = apply("namespaces", namespace(id, labels={"a": "1"})), fresh("key")
    first = sent(api, wanted, Idempotency_Key=key)
    assert first["results"][0]["change"] == "unchanged"
    api.patch(f"/namespaces/{id}", json={"labels": {"a": "2"}})
    assert sent(api, wanted, Idempotency_Key=key) == first
    assert [each["path"] for each in sent(api, wanted, Idempotency_Key=fresh("key"))["results"][0]["kept"]] == ["/labels/a"]


def test_only_an_apply_says_what_it_kept(api: httpx.Client) -> None:
    id = fresh("apply")
    (result,) = sent(api, {"op": "create", "kind": "namespaces", "id": id, "document": {}})["results"]
    assert "kept" not in result
    assert sent(api, apply("namespaces", namespace(id)))["results"][0]["kept"] == []


def test_a_manager_is_required_and_a_mistake_is_named(api: httpx.Client) -> None:
    wanted = apply("namespaces", namespace(fresh("apply")))
    del wanted["manager"]
    problem = assert_problem(send(api, wanted), 422, "invalid-document")
    assert problem["errors"][0]["pointer"] == "/operations/0/manager"


def test_prune_is_guarded_and_frozen_like_any_deletion(tmp_path: Path) -> None:
    with live.serving(tmp_path, PROTECTED_ENVIRONMENTS="prod") as server, server.client() as api:
        make(api, "namespaces", "n")
        held = cluster("c1", environment="prod", namespaces=[{"id": "n"}])
        sent(api, apply("clusters", held), apply("clusters", cluster("c2")))
        prune = {"op": "prune", "kind": "clusters", "manager": "ci", "keep": ["c2"]}
        problem = assert_problem(send(api, prune), 428, "confirmation-required")
        plan = send(api, prune, path="/plan").json()
        assert [(each["op"], each["id"], each["change"]) for each in plan["results"]] == [("prune", "c1", "delete")]
        api.post("/freezes", json={"id": "f", "environment": "prod", "reason": "x"})
        assert_problem(send(api, prune, **problem["confirm"]), 423, "frozen")
        api.delete("/freezes/f")
        answer = sent(api, prune, **problem["confirm"])
        assert [(each["id"], each["change"]) for each in answer["results"]] == [("c1", "delete")]
        assert [each["id"] for each in api.get("/clusters").json()] == ["c2"]


def test_a_definition_in_use_is_not_pruned_and_nothing_is_done(api: httpx.Client) -> None:
    who, app, id = fresh("mgr"), fresh("app"), fresh("apply")
    sent(api, apply("platform_components", component(app), who))
    make(api, "clusters", id, platform_components=[{"id": app}])
    new = apply("namespaces", namespace(fresh("apply")), who)
    prune = {"op": "prune", "kind": "platform_components", "manager": who, "keep": []}
    problem = assert_problem(send(api, new, prune), 409, "in-use")
    assert (problem["index"], problem["id"]) == (1, app)
    assert api.get(f"/namespaces/{new['id']}").status_code == 404


@pytest.mark.long
def test_records_survive_kill_and_export(tmp_path: Path) -> None:
    taken = apply("namespaces", namespace("podinfo", labels={"mine": "1"}))
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api:
        sent(api, taken)
        sent(api, apply("clusters", {"id": "demo-cluster-01", "environment": "dev"}))  # equal: no revision
        at = revision(api)
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api:
        assert revision(api) == at
        whole = api.get("/export?history=true").json()
        assert [(each["kind"], each["id"], each["manager"]) for each in whole["applied"]] == [
            ("clusters", "demo-cluster-01", "ci"), ("namespaces", "podinfo", "ci"),
        ]  # fmt: skip
        assert "applied" not in api.get("/export").json()
        sent(api, apply("namespaces", namespace("podinfo")))
        assert "mine" not in api.get("/namespaces/podinfo").json()["labels"]


@pytest.mark.sqlite
def test_a_second_process_on_the_file_sees_what_was_applied(tmp_path: Path) -> None:
    with (
        live.serving(tmp_path, SEED_FILE=str(SEED)) as first, first.client() as one,
        live.serving(tmp_path, SEED_FILE=str(SEED)) as second, second.client() as other,
    ):  # fmt: skip
        sent(one, apply("namespaces", namespace("podinfo", labels={"mine": "1"})))
        sent(other, apply("namespaces", namespace("podinfo", labels={"mine": "2"})))
        assert one.get("/namespaces/podinfo").json()["labels"]["mine"] == "2"
