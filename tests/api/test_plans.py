"""Plans: what a write would do to which cluster, by every way of asking, and that nothing else is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import live
from api.fleets import SEED, assert_problem, cluster, component, inputs, namespace

Document = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    """One with a fleet of thirty clusters in two environments; no test here writes but those that say so."""
    with live.serving(tmp_path_factory.mktemp("plans"), SEED_FILE=str(SEED)) as server:
        with server.client() as api:
            documents = {
                "platform_components": [component("app"), component("base"), component("top", depends_on=["base"])],
                "namespaces": [namespace("team")],
                "clusters": [
                    cluster(
                        f"c{number:02}",
                        environment="prod" if number % 3 == 0 else "dev",
                        labels={"zone": "edge" if number < 10 else "core"},
                        platform_components=[{"id": "app", **({"oci_tag": "0.9.0"} if number == 7 else {})}],
                        patches={"app": {"replicas": number % 2}},
                    )
                    for number in range(30)
                ],
            }
            operations = [
                {"op": "create", "kind": kind, "id": document["id"], "document": document}
                for kind, of_kind in documents.items()
                for document in of_kind
            ]
            assert api.post("/batch", json={"operations": operations}).status_code == 200
        yield server


@pytest.fixture
def api(server: live.Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def reader(server: live.Server) -> Iterator[httpx.Client]:
    with server.client(live.READ) as client:
        yield client


def revision(api: httpx.Client) -> int:
    found: int = api.get("/changes?limit=1").json()[0]["revision"]
    return found


def planned(response: httpx.Response) -> Document:
    assert response.status_code == 200, response.text
    plan: Document = response.json()
    assert set(plan) == {
        "plan", "base_revision", "revision", "dry_run", "summary", "groups", "groups_total", "guards", "warnings", "results",
    }  # fmt: skip
    assert plan["dry_run"] is True
    assert set(plan["summary"]) == {"documents", "clusters", "added", "removed", "changed"}
    return plan


TAG = {"op": "patch", "kind": "platform_components", "id": "app", "document": {"oci_tag": "2.0.0"}}


def test_a_plan_names_clusters_inputs_and_fields_in_groups(reader: httpx.Client) -> None:
    before = revision(reader)
    plan = planned(reader.post("/plan", json={"operations": [TAG]}))
    assert plan["summary"] == {
        "documents": 1,
        "clusters": 29,
        "added": 0,
        "removed": 0,
        "changed": 29,
    }  # c07 has a tag of its own
    (group,) = plan["groups"]
    assert (group["count"], plan["groups_total"]) == (29, 1)
    assert group["clusters"] == [f"c{number:02}" for number in range(21) if number != 7]
    assert group["environments"] == {"dev": 19, "prod": 10}
    assert group["changes"] == [
        {
            "view": "platform-components",
            "input": "app",
            "change": "changed",
            "fields": [{"path": "/source/oci_tag", "before": "1.0.0", "after": "2.0.0"}],
        }
    ]
    assert (plan["base_revision"], plan["revision"]) == (before, before + 1)
    assert [result["op"] for result in plan["results"]] == ["patch"]
    assert revision(reader) == before


def test_full_and_cluster_decide_what_is_shown_and_not_what_the_plan_is(reader: httpx.Client) -> None:
    short = planned(reader.post("/plan", json={"operations": [TAG]}))
    full = planned(reader.post("/plan?full=true", json={"operations": [TAG]}))
    one = planned(reader.post("/plan?cluster=c05", json={"operations": [TAG]}))
    none = planned(reader.post("/plan?cluster=c07", json={"operations": [TAG]}))
    assert len(full["groups"][0]["clusters"]) == 29
    assert [(group["count"], group["clusters"], group["environments"]) for group in one["groups"]] == [(1, ["c05"], {"dev": 1})]
    assert none["groups"] == []
    assert {each["plan"] for each in (short, full, one, none)} == {short["plan"]}
    assert all(each["summary"] == short["summary"] and each["groups_total"] == 1 for each in (full, one, none))


def test_clusters_that_change_in_different_ways_are_in_different_groups_the_largest_first(reader: httpx.Client) -> None:
    values = {"op": "patch-values", "kind": "platform_components", "id": "app", "values": {"replicas": 1, "x": "y"}}
    operations = [{**values, "selector": "zone"}, {"op": "delete", "kind": "clusters", "id": "c01"}]
    plan = planned(reader.post("/plan", json={"operations": operations}))
    assert [group["count"] for group in plan["groups"]] == [15, 14, 1]
    *others, gone = plan["groups"]
    assert (gone["clusters"], gone["environments"]) == (["c01"], {"dev": 1})
    assert gone["changes"] == [{"view": "platform-components", "input": "app", "change": "removed"}]
    assert plan["summary"]["removed"] == 1
    fields = [{field["path"]: field for field in group["changes"][0]["fields"]} for group in others]
    assert [set(each) for each in fields] == [{"/patches/replicas", "/patches/x"}, {"/patches/x"}]
    assert [each["/patches/x"] for each in fields] == [{"path": "/patches/x", "after": "y"}] * 2


@pytest.mark.parametrize("enabled", [True, False])
def test_switching_off_is_a_removal_and_switching_on_an_addition(api: httpx.Client, enabled: bool) -> None:
    name = f"switch-{enabled}".lower()
    created = cluster(name, platform_components=[{"id": "app", "enabled": not enabled}])
    assert api.post("/clusters", json=created).status_code == 201
    body = {"enabled": enabled, "oci_tag": "3.0.0"}
    plan = planned(api.patch(f"/clusters/{name}/platform_components/app?dry_run=true", json=body))
    change = "added" if enabled else "removed"
    assert plan["groups"][0]["changes"] == [{"view": "platform-components", "input": "app", "change": change}]
    counts = {"documents": 1, "clusters": 1, "added": int(enabled), "removed": int(not enabled), "changed": 0}
    assert plan["summary"] == counts
    assert api.delete(f"/clusters/{name}").status_code == 200


def test_every_mutation_can_be_planned_with_a_read_token_and_writes_nothing(reader: httpx.Client) -> None:
    before = revision(reader)
    merge = {"Content-Type": "application/merge-patch+json"}
    export = reader.get("/export").json()
    asked: list[tuple[str, httpx.Response, str, int]] = [
        ("create", reader.post("/namespaces?dry_run=true", json=namespace("new")), "create", 0),
        ("replace", reader.put("/namespaces/team?dry_run=true", json={"labels": {"a": "b"}}), "update", 0),
        ("create", reader.put("/namespaces/n?dry_run=true", json={}, headers={"If-None-Match": "*"}), "create", 0),
        ("patch", reader.patch("/clusters/c01?dry_run=true", json={"labels": {"x": "y"}}, headers=merge), "update", 0),
        ("delete", reader.delete("/clusters/c01?dry_run=true"), "delete", 1),
        ("delete", reader.delete("/platform_components/app?dry_run=true&force=true"), "delete", 30),
        ("assign", reader.put("/clusters/c01/namespaces/team?dry_run=true", json={}), "update", 1),
        ("assign", reader.patch("/clusters/c01/platform_components/app?dry_run=true", json={"oci_tag": "9"}), "update", 1),
        ("unassign", reader.delete("/clusters/c01/platform_components/app?dry_run=true"), "update", 1),
        ("patch-values", reader.put("/clusters/c01/patches/app?dry_run=true", json={"a": 1}), "update", 1),
        ("patch-values", reader.patch("/clusters/c01/patches/app?dry_run=true", json={"a": 1}), "update", 1),
        ("patch-values", reader.delete("/clusters/c02/patches/app?dry_run=true"), "update", 1),
        ("patch", reader.post("/batch?dry_run=true", json={"operations": [TAG]}), "update", 29),
    ]  # fmt: skip
    for op, response, change, clusters in asked:
        plan = planned(response)
        assert [(result["index"], result["op"], result["change"]) for result in plan["results"]] == [(0, op, change)], op
        assert plan["summary"]["clusters"] == clusters, op
        assert plan["revision"] == before + 1
    assert planned(reader.post("/import?dry_run=true&merge=true", json=export))["summary"]["documents"] == 0
    assert revision(reader) == before


def test_a_dry_run_is_refused_by_what_would_refuse_the_write_before_guards(reader: httpx.Client) -> None:
    assert_problem(reader.post("/namespaces?dry_run=true", json=namespace("team")), 409, "already-exists")
    assert_problem(reader.post("/namespaces?dry_run=true", json=namespace("Bad")), 422)
    assert_problem(reader.delete("/clusters/c01?dry_run=true", headers={"If-Match": '"1"'}), 412, "precondition-failed")
    assert_problem(reader.delete("/platform_components/app?dry_run=true"), 409, "in-use")
    assert_problem(reader.delete("/clusters/c01?dry_run=true", headers={"If-Plan": f'"{"0" * 32}"'}), 412, "plan-changed")
    assert_problem(reader.delete("/clusters/c01?dry_run=yes"), 403)
    assert_problem(reader.post("/plan?dry_run=true", json={"operations": []}), 400, "bad-query")


@pytest.mark.parametrize("query", ["full=true", "cluster=c01", "dry_run=false&full=true", "dry_run=1"])
def test_what_is_about_plans_only_is_refused_elsewhere(api: httpx.Client, query: str) -> None:
    assert_problem(api.post(f"/namespaces?{query}", json=namespace("never")), 400, "bad-query")
    assert api.get("/namespaces/never").status_code == 404


def test_what_changes_nothing_has_an_empty_plan(reader: httpx.Client) -> None:
    plan = planned(reader.patch("/namespaces/team?dry_run=true", json={}))
    assert (plan["revision"], plan["groups"], plan["groups_total"]) == (plan["base_revision"], [], 0)
    assert plan["summary"] == {"documents": 0, "clusters": 0, "added": 0, "removed": 0, "changed": 0}
    assert [result["change"] for result in plan["results"]] == ["unchanged"]
    assert [guard["tripped"] for guard in plan["guards"]] == [False, False]


def test_the_way_of_asking_makes_no_other_plan(reader: httpx.Client) -> None:
    batch = planned(reader.post("/plan", json={"operations": [TAG]}))
    single = planned(reader.patch("/platform_components/app?dry_run=true", json={"oci_tag": "2.0.0"}))
    whole = reader.get("/platform_components/app").json() | {"oci_tag": "2.0.0"}
    assert batch["plan"] == single["plan"]
    assert planned(reader.put("/platform_components/app?dry_run=true", json=whole))["plan"] == batch["plan"]
    other = planned(reader.patch("/platform_components/app?dry_run=true", json={"oci_tag": "2.0.1"}))
    assert other["plan"] != batch["plan"]


def test_what_was_agreed_to_is_done_and_nothing_else(api: httpx.Client) -> None:
    api.post("/clusters", json=cluster("agreed"))
    change = {"platform_components": [{"id": "app"}]}
    plan = planned(api.patch("/clusters/agreed?dry_run=true", json=change))
    api.patch("/namespaces/team", json={"labels": {"unrelated": "yes"}})  # somebody else, elsewhere
    api.patch("/platform_components/app", json={"oci_tag": "1.5.0"})  # and here: another input would come
    headers = {"If-Plan": f'"{plan["plan"]}"'}
    problem = assert_problem(api.patch("/clusters/agreed", json=change, headers=headers), 412, "plan-changed")
    assert inputs(api, "agreed.example.com") == []
    assert problem["summary"] == plan["summary"]
    again = api.patch("/clusters/agreed", json=change, headers={"If-Plan": f'"{problem["plan"]}"'})
    assert again.status_code == 200
    assert [item["source"]["oci_tag"] for item in inputs(api, "agreed.example.com")] == ["1.5.0"]
    api.patch("/platform_components/app", json={"oci_tag": "1.0.0"})
    api.delete("/clusters/agreed")


def test_a_plan_goes_with_an_idempotency_key_and_its_refusal_is_not_remembered(api: httpx.Client) -> None:
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "keyed", "document": {}}]}
    key = {"Idempotency-Key": "plan-key"}
    plan = planned(api.post("/batch?dry_run=true", json=body, headers=key))
    assert_problem(api.post("/batch", json=body, headers={**key, "If-Plan": f'"{"f" * 32}"'}), 412, "plan-changed")
    first = api.post("/batch", json=body, headers={**key, "If-Plan": f'"{plan["plan"]}"'})
    assert first.status_code == 200
    assert first.json()["dry_run"] is False
    assert api.post("/batch", json=body, headers=key).content == first.content


@pytest.mark.parametrize("value", ["", "nonsense", '"0123"', f'W/"{"0" * 32}"'])
def test_a_malformed_plan_id_is_refused(api: httpx.Client, value: str) -> None:
    assert_problem(api.delete("/clusters/c01", headers={"If-Plan": value}), 400, "bad-request")


def test_an_id_that_gets_another_name_loses_its_old_answers_and_gains_new_ones(reader: httpx.Client) -> None:
    renamed = cluster("c01", cluster_dns="other.example.com", platform_components=[{"id": "app"}])
    operations = [
        {"op": "delete", "kind": "clusters", "id": "c01"},
        {"op": "create", "kind": "clusters", "id": "c01", "document": renamed},
    ]
    plan = planned(reader.post("/plan", json={"operations": operations}))
    assert plan["summary"] == {"documents": 1, "clusters": 1, "added": 1, "removed": 1, "changed": 0}


def test_another_order_is_no_effect(reader: httpx.Client) -> None:
    cluster_now = reader.get("/clusters/demo-cluster-01").json()
    turned = {"platform_components": cluster_now["platform_components"][::-1]}
    plan = planned(reader.patch("/clusters/demo-cluster-01?dry_run=true", json=turned))
    assert (plan["summary"]["documents"], plan["summary"]["clusters"]) == (1, 0)


def test_something_without_what_it_depends_on_is_warned_of(reader: httpx.Client) -> None:
    plan = planned(reader.put("/clusters/c01/platform_components/top?dry_run=true", json={}))
    assert ['"top"' in text and '"base"' in text for text in plan["warnings"]] == [True]
    both = [{"op": "assign", "kind": "platform_components", "id": id, "clusters": ["c01"]} for id in ("top", "base")]
    assert planned(reader.post("/plan", json={"operations": both}))["warnings"] == []
    needs = planned(reader.patch("/platform_components/app?dry_run=true", json={"depends_on": ["base"]}))
    assert ["30 cluster(s)" in text for text in needs["warnings"]] == [True]
