"""Going back: a change undone, a document and a whole fleet as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from api import fleets
from api.fleets import assert_problem, fresh, make, pointers


def newest(api: httpx.Client) -> dict[str, Any]:
    (entry,) = api.get("/changes?limit=1").json()
    return dict(entry)


def undo(api: httpx.Client, revision: int, query: str = "") -> httpx.Response:
    return api.post(f"/changes/{revision}/revert{query}", headers={"X-Reason": "back"})


@pytest.fixture
def cluster(api: httpx.Client) -> str:
    """One with three namespaces and a component that is patched."""
    spaces = [make(api, "namespaces")["id"] for _ in range(3)]
    component = make(api, "platform_components")["id"]
    made = make(
        api,
        "clusters",
        namespaces=[{"id": id} for id in spaces],
        platform_components=[{"id": component}],
        patches={component: {"a": "1"}},
    )
    return str(made["id"])


def get(api: httpx.Client, cluster: str) -> dict[str, Any]:
    return dict(api.get(f"/clusters/{cluster}").json())


def test_a_change_is_undone_and_what_others_changed_since_stays(api: httpx.Client, cluster: str) -> None:
    component = get(api, cluster)["platform_components"][0]["id"]
    api.patch(f"/clusters/{cluster}/patches/{component}", json={"a": "2"})
    changed = newest(api)["revision"]
    api.patch(f"/clusters/{cluster}/patches/{component}", json={"b": "1"})
    api.patch(f"/clusters/{cluster}", json={"environment": "qa"})
    response = undo(api, changed)
    answer = response.json()
    assert response.status_code == 200, answer
    assert (answer["dry_run"], answer["warnings"]) == (False, [])
    (result,) = answer["results"]
    assert (result["op"], result["kind"], result["id"], result["change"]) == ("revert", "clusters", cluster, "update")
    assert result["after"]["patches"] == {component: {"a": "1", "b": "1"}}
    assert get(api, cluster)["environment"] == "qa"
    entry = newest(api)
    assert (entry["revision"], entry["reverts"], entry["forced"], entry["reason"]) == (answer["revision"], changed, False, "back")


def test_an_unassigned_reference_comes_back_to_its_place(api: httpx.Client, cluster: str) -> None:
    first, second, third = (reference["id"] for reference in get(api, cluster)["namespaces"])
    api.delete(f"/clusters/{cluster}/namespaces/{second}")
    unassigned = newest(api)["revision"]
    api.delete(f"/clusters/{cluster}/namespaces/{first}")
    other = make(api, "namespaces")["id"]
    api.put(f"/clusters/{cluster}/namespaces/{other}", json={})
    assert undo(api, unassigned).status_code == 200
    assert [reference["id"] for reference in get(api, cluster)["namespaces"]] == [second, third, other]
    assert undo(api, newest(api)["revision"]).status_code == 200
    assert [reference["id"] for reference in get(api, cluster)["namespaces"]] == [third, other]


def test_what_was_changed_again_since_is_a_conflict_until_it_is_forced(api: httpx.Client, cluster: str) -> None:
    component = get(api, cluster)["platform_components"][0]["id"]
    path = f"/patches/{component}/a"
    api.patch(f"/clusters/{cluster}/patches/{component}", json={"a": "2"})
    changed = newest(api)["revision"]
    api.patch(f"/clusters/{cluster}/patches/{component}", json={"a": "3"})
    again = newest(api)["revision"]
    api.patch(f"/clusters/{cluster}", json={"environment": "qa"})
    problem = assert_problem(undo(api, changed), 409, "conflict")
    assert problem["conflicts"] == [{"kind": "clusters", "id": cluster, "path": path, "revision": again}]
    assert newest(api)["revision"] == again + 1
    assert_problem(undo(api, changed, "?force=maybe"), 400, "bad-query")
    assert undo(api, changed, "?force=true").status_code == 200
    assert get(api, cluster)["patches"] == {component: {"a": "1"}}
    assert (newest(api)["forced"], newest(api)["reverts"]) == (True, changed)


def test_what_has_its_old_value_already_is_nothing_to_do(api: httpx.Client, cluster: str) -> None:
    api.patch(f"/clusters/{cluster}", json={"environment": "qa"})
    changed = newest(api)["revision"]
    api.patch(f"/clusters/{cluster}", json={"environment": "dev"})
    response = undo(api, changed)
    assert (response.status_code, response.json()["revision"], response.json()["results"]) == (200, changed + 1, [])
    assert newest(api)["revision"] == changed + 1


def test_a_created_document_goes_and_a_deleted_one_comes_back(api: httpx.Client) -> None:
    made = make(api, "namespaces", labels={"a": "b"})
    created = newest(api)["revision"]
    assert undo(api, created).status_code == 200
    assert api.get(f"/namespaces/{made['id']}").status_code == 404
    assert undo(api, newest(api)["revision"]).status_code == 200
    assert api.get(f"/namespaces/{made['id']}").json() == made
    api.patch(f"/namespaces/{made['id']}", json={"labels": {"a": "c"}})
    problem = assert_problem(undo(api, created), 409, "conflict")
    assert [item["path"] for item in problem["conflicts"]] == ["/labels/a"]


def test_a_deleted_document_that_was_created_again_is_a_conflict_unless_it_is_equal(api: httpx.Client) -> None:
    made = make(api, "namespaces", labels={"a": "b"})
    api.delete(f"/namespaces/{made['id']}")
    deleted = newest(api)["revision"]
    make(api, "namespaces", made["id"], labels={"a": "b"})
    assert undo(api, deleted).json()["results"] == []
    api.patch(f"/namespaces/{made['id']}", json={"labels": {"a": "c"}})
    problem = assert_problem(undo(api, deleted), 409, "conflict")
    assert [(item["path"], item["id"]) for item in problem["conflicts"]] == [("", made["id"])]
    assert undo(api, deleted, "?force=true").status_code == 200
    assert api.get(f"/namespaces/{made['id']}").json() == made


def test_a_definition_that_is_used_since_is_not_taken_away(api: httpx.Client) -> None:
    space = make(api, "namespaces")["id"]
    created = newest(api)["revision"]
    make(api, "clusters", namespaces=[{"id": space}])
    for query in ("", "?force=true"):
        assert_problem(undo(api, created, query), 409, "in-use")


@pytest.mark.usefixtures("both_ways")
def test_a_decommissioned_cluster_comes_back_under_its_name(api: httpx.Client, cluster: str) -> None:
    before = fleets.inputs(api, f"{cluster}.example.com", "namespaces")
    api.delete(f"/clusters/{cluster}")
    assert fleets.inputs(api, f"{cluster}.example.com", "namespaces") == []
    assert undo(api, newest(api)["revision"]).status_code == 200
    assert fleets.inputs(api, f"{cluster}.example.com", "namespaces") == before


def test_a_whole_batch_is_undone_in_one_transaction(api: httpx.Client, cluster: str) -> None:
    before, id = get(api, cluster), fresh("name")
    operations = [
        {"op": "create", "kind": "namespaces", "id": id, "document": {"id": id}},
        {"op": "assign", "kind": "namespaces", "id": id, "clusters": [cluster]},
        {"op": "patch", "kind": "clusters", "id": cluster, "document": {"labels": {"x": "y"}}},
    ]
    revision = api.post("/batch", json={"operations": operations}).json()["revision"]
    answer = undo(api, revision).json()
    assert {(item["id"], item["change"]) for item in answer["results"]} == {(id, "delete"), (cluster, "update")}
    assert get(api, cluster) == before


def test_a_revision_that_is_none_cannot_be_undone(api: httpx.Client) -> None:
    for revision in ("0", "999999", "x"):
        assert_problem(api.post(f"/changes/{revision}/revert"), 404, "not-found")
    assert pointers(api.post("/changes/1/revert", json={"to": 1})) == {""}


# One document


def test_a_document_becomes_what_it_was(api: httpx.Client) -> None:
    made = make(api, "namespaces", labels={"a": "1"})
    then = newest(api)["revision"]
    api.patch(f"/namespaces/{made['id']}", json={"labels": {"a": "2"}})
    api.patch(f"/namespaces/{made['id']}", json={"labels": {"b": "3"}})
    response = api.post(f"/namespaces/{made['id']}/revert", json={"to": then})
    assert (response.status_code, response.json()) == (200, made)
    assert response.headers["etag"] == f'"{newest(api)["revision"]}"'
    again = api.post(f"/namespaces/{made['id']}/revert", json={"to": then})
    assert (again.status_code, again.headers["etag"]) == (200, response.headers["etag"])
    api.delete(f"/namespaces/{made['id']}")
    back = api.post(f"/namespaces/{made['id']}/revert", json={"to": then})
    assert (back.status_code, back.json()) == (200, made)


def test_a_document_that_was_not_there_cannot_be_gone_back_to(api: httpx.Client) -> None:
    made = make(api, "namespaces")
    then = newest(api)["revision"]
    url = f"/namespaces/{made['id']}/revert"
    assert_problem(api.post(url, json={"to": then - 1}), 404, "not-found")
    assert_problem(api.post(url, json={"to": then + 99}), 422, "bad-query")
    assert_problem(api.post(url, json={"to": "yesterday"}), 400, "bad-query")
    wrong: list[Any] = [{}, {"to": None}, {"to": True}, {"to": -1}, {"to": 1.5}]
    assert [pointers(api.post(url, json=body)) for body in wrong] == [{"/to"}] * len(wrong)
    for body in (b"null", b"[]", b'"x"', b"1"):
        assert pointers(api.post(url, content=body, headers={"Content-Type": "application/json"})) == {""}
    assert pointers(api.post(url, json={"to": then, "too": 1})) == {"/too"}
    assert_problem(api.post(url, json={"to": then}, headers={"If-Match": '"1"'}), 412, "precondition-failed")


def test_a_cluster_comes_back_as_it_was_also_where_its_id_was_given_away(api: httpx.Client, cluster: str) -> None:
    before, then = get(api, cluster), newest(api)["revision"]
    api.delete(f"/clusters/{cluster}")
    make(api, "clusters", cluster, cluster_dns=f"other-{cluster}.example.com")
    assert api.post(f"/clusters/{cluster}/revert", json={"to": then}).json() == before
    assert len(fleets.inputs(api, f"{cluster}.example.com", "namespaces")) == 3
    assert fleets.inputs(api, f"other-{cluster}.example.com", "namespaces") == []


# The fleet


@pytest.fixture
def own(tmp_path: Path) -> Iterator[httpx.Client]:
    """A server of one's own, with a fleet of two clusters; revision 4."""
    with live.serving(tmp_path, GUARD_MAX_REMOVAL_CLUSTERS="0") as server, server.client() as api:
        make(api, "namespaces", "n", labels={"a": "1"})
        make(api, "namespaces", "m")
        make(api, "clusters", "c", namespaces=[{"id": "n"}, {"id": "m"}], environment="qa")
        make(api, "clusters", "d", namespaces=[{"id": "n"}], labels={"zone": "edge"})
        yield api


def change_everything(api: httpx.Client) -> None:
    api.patch("/namespaces/n", json={"labels": {"a": "2"}})
    api.delete("/clusters/c")
    api.delete("/namespaces/m")
    make(api, "namespaces", "k")
    make(api, "clusters", "e", namespaces=[{"id": "k"}], environment="qa", labels={"zone": "edge"})
    api.patch("/clusters/d", json={"labels": {"zone": None}, "environment": "prod"})


def documents(api: httpx.Client) -> dict[str, Any]:
    return dict(api.get("/export").json()["documents"])


def test_the_whole_fleet_becomes_what_it_was_in_one_transaction(own: httpx.Client) -> None:
    before, answer = documents(own), own.get(fleets.view("c.example.com", "namespaces")).content
    change_everything(own)
    after, moment = documents(own), newest(own)["time"]
    response = own.post("/revert", json={"to": 4})
    assert (response.status_code, response.json()["revision"]) == (200, 11)
    assert {(item["id"], item["change"]) for item in response.json()["results"]} == {
        ("n", "update"), ("c", "create"), ("m", "create"), ("k", "delete"), ("e", "delete"), ("d", "update"),
    }  # fmt: skip
    assert documents(own) == before
    assert own.get(fleets.view("c.example.com", "namespaces")).content == answer
    assert own.post("/revert", json={"to": moment}).status_code == 200
    assert documents(own) == after
    assert own.post("/revert", json={"to": "10"}).json()["revision"] == 12  # nothing is left to do
    assert undo(own, 12).status_code == 200
    assert documents(own) == before


def test_going_back_is_narrowed_to_a_kind_or_to_clusters(own: httpx.Client) -> None:
    change_everything(own)
    assert_problem(own.post("/revert", json={"to": 4, "kind": "namespaces"}), 409, "in-use")  # e uses k
    answer = own.post("/revert", json={"to": 4, "kind": "clusters", "selector": "zone=edge"}).json()
    assert {(item["id"], item["change"]) for item in answer["results"]} == {("d", "update"), ("e", "delete")}
    assert pointers(own.post("/revert", json={"to": 4, "environment": "qa"})) == {"/namespaces/1/id"}  # m is not there
    assert own.post("/revert", json={"to": 4, "kind": "namespaces"}).status_code == 200
    answer = own.post("/revert", json={"to": 4, "environment": "qa"}).json()
    assert [(item["id"], item["change"]) for item in answer["results"]] == [("c", "create")]


def test_what_to_go_back_to_must_be_said_and_be_there(own: httpx.Client) -> None:
    bodies: list[tuple[Any, set[str]]] = [
        ({}, {"/to"}),
        ({"to": 4, "kind": "nothing"}, {"/kind"}),
        ({"to": 4, "kind": "freezes"}, {"/kind"}),
        ({"to": 4, "kind": 3}, {"/kind"}),
        ({"to": 4, "kind": "namespaces", "environment": "qa", "selector": "a=b"}, {"/environment", "/selector"}),
        ({"to": 4, "environment": "nowhere"}, {"/environment"}),
        ({"to": 4, "selector": "=!"}, {"/selector"}),
        ({"to": 4, "x": 1}, {"/x"}),
        ([], {""}),
    ]
    for body, wrong in bodies:
        assert pointers(own.post("/revert", json=body)) == wrong
    assert_problem(own.post("/revert", json={"to": 99}), 422, "bad-query")
    assert_problem(own.post("/revert", json={"to": "soon"}), 400, "bad-query")


def test_a_revert_is_planned_guarded_and_frozen_like_any_write(own: httpx.Client) -> None:
    change_everything(own)
    plan = own.post("/revert?dry_run=true", json={"to": 4}).json()
    assert (plan["dry_run"], plan["base_revision"], plan["revision"]) == (True, 10, 11)
    assert (plan["summary"]["documents"], len(plan["results"])) == (6, 6)
    assert own.post("/changes/5/revert?dry_run=true").json()["dry_run"] is True
    assert own.post("/namespaces/n/revert?dry_run=true", json={"to": 4}).json()["dry_run"] is True
    assert newest(own)["revision"] == 10
    wrong = own.post("/revert", json={"to": 4}, headers={"If-Plan": f'"{32 * "0"}"'})
    assert assert_problem(wrong, 412, "plan-changed")["plan"] == plan["plan"]
    assert own.post("/freezes", json={"id": "f", "environment": "prod", "reason": "sale"}).status_code == 201
    assert_problem(own.post("/revert", json={"to": 4}), 423, "frozen")
    said = {"X-Override-Freeze": "f", "X-Reason": "it must be", "If-Plan": f'"{plan["plan"]}"'}
    assert own.post("/revert", json={"to": 4}, headers=said).status_code == 200
    assert own.get("/freezes/f").status_code == 200  # freezes stay as they are
    assert newest(own)["forced"] is True


def test_whoever_may_only_read_may_only_plan(reader: httpx.Client) -> None:
    assert_problem(reader.post("/revert", json={"to": 1}), 403)
    assert_problem(reader.post("/changes/1/revert"), 403)
    assert_problem(reader.post("/namespaces/podinfo/revert", json={"to": 1}), 403)
    assert reader.post("/namespaces/podinfo/revert?dry_run=true", json={"to": 1}).status_code == 200
