"""POST /batch: all or nothing whatever fails, results by document, and safe to repeat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import live
from api.fleets import assert_problem

CLUSTER = {"cluster_name": "n", "environment": "dev", "cluster_dns": "demo-cluster-01.k8s.example.com"}  # a name that is taken

# an operation that is good at any time, and ones that fail for reasons found early, late, and only at the end
GOOD = [
    {"op": "create", "kind": "namespaces", "id": "whole-new", "document": {}},
    {"op": "patch", "kind": "namespaces", "id": "podinfo", "document": {"labels": {"touched": "yes"}}},
    {"op": "assign", "kind": "rolebindings", "id": "dev-readers", "document": {}, "selector": ""},
    {
        "op": "patch-values",
        "kind": "platform_components",
        "id": "podinfo",
        "values": {"touched": "yes"},
        "clusters": ["demo-cluster-01"],
    },
]
BAD = [
    ({"op": "create", "kind": "namespaces", "id": "Bad", "document": {}}, 422),
    ({"op": "create", "kind": "namespaces", "id": "podinfo", "document": {}}, 409),
    ({"op": "replace", "kind": "namespaces", "id": "nowhere", "document": {}}, 404),
    ({"op": "delete", "kind": "rolebindings", "id": "platform-admins"}, 409),
    ({"op": "assign", "kind": "namespaces", "id": "nowhere", "clusters": ["demo-cluster-01"]}, 422),
    ({"op": "assign", "kind": "namespaces", "id": "podinfo", "clusters": ["demo-cluster-01", "nowhere"]}, 404),
    ({"op": "assign", "kind": "namespaces", "id": "whole-new", "only_assigned": True, "clusters": ["demo-cluster-01"]}, 404),
    ({"op": "unassign", "kind": "namespaces", "id": "podinfo", "only_assigned": True, "clusters": ["demo-cluster-01"]}, 422),
    ({"op": "patch-values", "kind": "platform_components", "id": "nowhere", "values": {}, "selector": ""}, 404),
    ({"op": "create", "kind": "clusters", "id": "late", "document": CLUSTER}, 409),
]  # fmt: skip


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server for these tests alone, so that nothing else makes revisions."""
    with (
        live.serving(tmp_path_factory.mktemp("own"), SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server,
        server.client() as api,
    ):
        yield api


def everything(api: httpx.Client) -> Any:
    return api.get("/export").json()


@pytest.mark.long
@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(st.sampled_from(GOOD), unique_by=id, max_size=4), st.sampled_from(BAD), st.data())
def test_one_failing_operation_anywhere_leaves_everything_as_it_was(
    own: httpx.Client, good: list[Any], bad: tuple[Any, int], data: st.DataObject
) -> None:
    operation, status = bad
    place = data.draw(st.integers(0, len(good)))
    before = everything(own)
    for query in ("", "?dry_run=true"):
        answer = own.post(f"/batch{query}", json={"operations": [*good[:place], operation, *good[place:]]})
        assert answer.status_code == status, answer.text
        assert answer.json()["index"] == place
    assert everything(own) == before


def test_a_selector_sees_the_clusters_that_the_batch_made_before(own: httpx.Client) -> None:
    made = {"cluster_name": "n", "environment": "dev", "cluster_dns": "made.example.com", "labels": {"made": "here"}}
    create = {"op": "create", "kind": "clusters", "id": "made-here", "document": made}
    assign = {"op": "assign", "kind": "namespaces", "id": "podinfo", "selector": "made=here"}
    remove = {"op": "delete", "kind": "clusters", "id": "made-here"}
    answer = own.post("/batch?dry_run=true", json={"operations": [create, assign]}).json()
    assert [result["after"]["namespaces"] for result in answer["results"]] == [[{"id": "podinfo"}]]
    answer = own.post("/batch?dry_run=true", json={"operations": [create, remove, assign]}).json()
    assert [result["change"] for result in answer["results"]] == ["unchanged"]


def test_a_cluster_that_does_not_have_it_is_named(own: httpx.Client) -> None:
    operation = {"op": "assign", "kind": "namespaces", "id": "cert-manager", "only_assigned": True, "environment": "dev"}
    own.post("/namespaces", json={"id": "cert-manager"})
    own.delete("/clusters/demo-cluster-01/namespaces/cert-manager")
    answer = own.post("/batch", json={"operations": [operation]})
    assert answer.status_code == 404
    assert (answer.json()["kind"], answer.json()["id"], answer.json()["index"]) == ("clusters", "demo-cluster-01", 0)


def creation(id: str, **fields: Any) -> dict[str, Any]:
    cluster = {"cluster_name": id, "environment": "dev", "cluster_dns": f"{id}.example.com", **fields}
    return {"op": "create", "kind": "clusters", "id": id, "document": cluster}


def removal(id: str) -> dict[str, Any]:
    return {"op": "delete", "kind": "clusters", "id": id}


def test_the_operation_that_said_it_is_named_not_the_last_that_touched_the_document(own: httpx.Client) -> None:
    ghost = {"namespaces": [{"id": "ghost"}]}
    relabel = {"op": "patch", "kind": "clusters", "id": "n1", "document": {"labels": {"a": "b"}}}
    refer = {"op": "patch", "kind": "clusters", "id": "n1", "document": ghost}
    for operations, culprit in (
        ([creation("n1", **ghost), creation("n2"), relabel], 0),
        ([creation("n1"), relabel, refer, relabel], 2),
        ([creation("n1"), creation("n2"), creation("n3", cluster_dns="n1.example.com")], 2),
    ):
        answer = own.post("/batch", json={"operations": operations}).json()
        assert answer["index"] == culprit, answer


def test_a_new_component_that_depends_on_one_of_another_type_is_named_itself(own: httpx.Client) -> None:
    basic = {"component_path": "x", "oci_url": "oci://registry.example.com/x", "oci_tag": "1.0.0"}
    first = {"op": "create", "kind": "platform_components", "id": "p1", "document": basic}
    other = {**basic, "type": "kustomize", "depends_on": ["p1"]}
    second = {"op": "create", "kind": "platform_components", "id": "p2", "document": other}
    answer = own.post("/batch", json={"operations": [first, second]}).json()
    assert (answer["index"], answer["errors"][0]["pointer"]) == (1, "/depends_on/0")


def test_a_name_that_is_given_up_in_the_batch_is_free_in_it(own: httpx.Client) -> None:
    own.post("/batch", json={"operations": [creation("o1"), creation("o2")]}).raise_for_status()
    swapped = [
        removal("o1"), removal("o2"),
        creation("o1", cluster_dns="o2.example.com"), creation("o2", cluster_dns="o1.example.com"),
    ]  # fmt: skip
    own.post("/batch", json={"operations": swapped}).raise_for_status()
    assert own.get("/clusters/o1").json()["cluster_dns"] == "o2.example.com"
    own.post("/batch", json={"operations": [removal("o1"), removal("o2")]}).raise_for_status()


def test_the_revision_is_the_one_that_counts_then_also_in_a_dry_run_and_when_nothing_changes(own: httpx.Client) -> None:
    at = own.get("/changes?limit=1").json()[0]["revision"]
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "counted", "document": {}}]}
    planned, done = own.post("/batch?dry_run=true", json=body).json(), own.post("/batch", json=body).json()
    assert planned["revision"] == done["revision"] == at + 1
    assert planned["results"] == done["results"]
    same = {"operations": [{"op": "patch", "kind": "namespaces", "id": "counted", "document": {}}]}
    assert own.post("/batch", json=same).json()["revision"] == at + 1


def test_many_warnings_are_counted_after_the_first_ten(own: httpx.Client) -> None:
    loose = [{"id": "podinfo", "oci_tag": "6.x"}]
    operations = [creation(f"loose{number}", platform_components=loose) for number in range(12)]
    told = own.post("/batch?dry_run=true", json={"operations": operations}).json()["warnings"]
    assert len(told) == 11
    assert told[-1] == "and 2 more warnings"


@pytest.mark.long
def test_a_batch_repeated_after_a_restart_gives_the_first_answer_and_changes_nothing(tmp_path: Path) -> None:
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "once", "document": {}}]}
    key = {"Idempotency-Key": "the-same"}
    with live.serving(tmp_path, SEED_FILE="") as server, server.client() as api:
        first = api.post("/batch", json=body, headers=key)
        assert first.status_code == 200
        assert api.post("/batch", json=body, headers=key).content == first.content
        server.kill()
    with live.serving(tmp_path, SEED_FILE="") as server, server.client() as api:
        assert api.post("/batch", json=body, headers=key).content == first.content
        assert api.post("/batch", json={"operations": []}, headers=key).status_code == 422
        assert [entry["revision"] for entry in api.get("/changes").json()] == [1]


# The shape of requests and results


def test_a_result_says_what_was_asked_and_what_became_of_the_document(own: httpx.Client) -> None:
    name = "told-apart"
    operations = [
        {"op": "create", "kind": "namespaces", "id": name, "document": {"labels": {"a": "1"}}},
        {"op": "assign", "kind": "namespaces", "id": name, "clusters": ["demo-cluster-01"]},
    ]
    answer = own.post("/batch", json={"operations": operations}).json()
    created, assigned = answer["results"]
    assert (created["index"], created["op"], created["change"], created["kind"], created["id"]) == (
        0, "create", "create", "namespaces", name,
    )  # fmt: skip
    assert (assigned["index"], assigned["op"], assigned["change"], assigned["kind"], assigned["id"]) == (
        1, "assign", "update", "clusters", "demo-cluster-01",
    )  # fmt: skip
    assert created["before"] is None
    assert {"id": name} in assigned["after"]["namespaces"]
    assert not any("operation" in result for result in answer["results"])
    again = own.post("/batch", json={"operations": operations[1:]}).json()
    assert [(result["op"], result["change"]) for result in again["results"]] == [("assign", "unchanged")]
    removed = own.post(
        "/batch",
        json={
            "operations": [
                {"op": "unassign", "kind": "namespaces", "id": name, "clusters": ["demo-cluster-01"]},
                {"op": "delete", "kind": "namespaces", "id": name},
            ]
        },
    ).json()
    assert [(result["op"], result["change"], result["after"] is None) for result in removed["results"]] == [
        ("unassign", "update", False),
        ("delete", "delete", True),
    ]


@pytest.mark.long
def test_a_document_that_several_operations_touch_has_one_result_of_the_last(own: httpx.Client) -> None:
    create = {"op": "create", "kind": "namespaces", "id": "twice", "document": {}}
    patch = {"op": "patch", "kind": "namespaces", "id": "twice", "document": {"labels": {"a": "1"}}}
    (result,) = own.post("/batch?dry_run=true", json={"operations": [create, patch]}).json()["results"]
    assert (result["index"], result["op"], result["change"]) == (1, "patch", "create")
    assert result["after"]["labels"] == {"a": "1"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], "/operations"),
        ({}, "/operations"),
        ({"operations": {}}, "/operations"),
        ({"operations": [], "more": 1}, "/more"),
        ({"operations": [5]}, "/operations/0"),
        ({"operations": [{"op": "create", "kind": "namespaces"}]}, "/operations/0"),
        ({"operations": [{"op": "grow", "kind": "namespaces", "id": "a"}]}, "/operations/0/op"),
        ({"operations": [{"op": "create", "kind": "widgets", "id": "a", "document": {}}]}, "/operations/0/kind"),
        ({"operations": [{"op": "create", "kind": "namespaces", "id": "a"}]}, "/operations/0/document"),
        ({"operations": [{"op": "create", "kind": "namespaces", "id": "a", "document": []}]}, "/operations/0/document"),
        ({"operations": [{"op": "assign", "kind": "namespaces", "id": "podinfo"}]}, "/operations/0/clusters"),
        (
            {"operations": [{"op": "assign", "kind": "namespaces", "id": "podinfo", "clusters": [], "selector": ""}]},
            "/operations/0/clusters",
        ),
        ({"operations": [{"op": "assign", "kind": "clusters", "id": "a", "selector": ""}]}, "/operations/0/kind"),
        (
            {"operations": [{"op": "patch-values", "kind": "namespaces", "id": "podinfo", "values": {}, "selector": ""}]},
            "/operations/0/kind",
        ),
        (
            {"operations": [{"op": "delete", "kind": "namespaces", "id": "a", "values": {}}]},
            "/operations/0/values",
        ),
        (
            {"operations": [{"op": "assign", "kind": "namespaces", "id": "podinfo", "environment": "moon"}]},
            "/operations/0/environment",
        ),
        (
            {"operations": [{"op": "assign", "kind": "namespaces", "id": "podinfo", "selector": "a=="}]},
            None,
        ),
        (
            {"operations": [{"op": "assign", "kind": "namespaces", "id": "podinfo", "selector": "a in b"}]},
            "/operations/0/selector",
        ),
    ],
)
def test_what_is_wrong_with_a_batch_is_named_by_its_place(own: httpx.Client, body: Any, pointer: str | None) -> None:
    answer = own.post("/batch?dry_run=true", json=body)
    if pointer is None:  # an empty value is a value of a label
        assert answer.status_code == 200, answer.text
        return
    problem = assert_problem(answer, 422, "invalid-document")
    assert pointer in {error["pointer"] for error in problem["errors"]}


def test_every_wrong_operation_is_named_and_the_first_is_the_index(own: httpx.Client) -> None:
    good = {"op": "delete", "kind": "namespaces", "id": "a"}
    wrong = {"op": "grow", "kind": "namespaces", "id": "a"}
    problem = assert_problem(own.post("/batch", json={"operations": [good, wrong, good, wrong]}), 422)
    assert [error["pointer"] for error in problem["errors"]] == ["/operations/1/op", "/operations/3/op"]
    assert problem["index"] == 1


def test_the_index_of_a_refusal_is_data_and_no_part_of_its_sentence(own: httpx.Client) -> None:
    operation = {"op": "replace", "kind": "namespaces", "id": "nowhere", "document": {}}
    problem = assert_problem(own.post("/batch", json={"operations": [operation]}), 404, "not-found")
    assert (problem["index"], problem["detail"]) == (0, 'namespaces "nowhere" not found')


@pytest.mark.parametrize("key", ["", "with space", "ü", "x" * 201])
def test_an_idempotency_key_is_visible_ascii(own: httpx.Client, key: str) -> None:
    answer = own.post("/batch", json={"operations": []}, headers={b"Idempotency-Key": key.encode()})
    assert_problem(answer, 400, "bad-request")


def test_a_key_belongs_to_its_request_and_its_token(own: httpx.Client) -> None:
    key = {"Idempotency-Key": "mine"}
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "keyed", "document": {}}]}
    first = own.post("/batch", json=body, headers=key)
    assert first.status_code == 200
    assert own.post("/batch", json=body, headers=key).content == first.content
    other = {"operations": [{"op": "delete", "kind": "namespaces", "id": "keyed"}]}
    assert_problem(own.post("/batch", json=other, headers=key), 422, "idempotency-key-reused")
    assert own.get("/namespaces/keyed").status_code == 200


def test_a_dry_run_neither_uses_nor_leaves_an_answer_under_a_key(own: httpx.Client) -> None:
    key = {"Idempotency-Key": "dry"}
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "dried", "document": {}}]}
    assert own.post("/batch?dry_run=true", json=body, headers=key).json()["dry_run"] is True
    done = own.post("/batch", json=body, headers=key).json()
    assert (done["dry_run"], done["results"][0]["change"]) == (False, "create")


def test_a_batch_can_do_what_the_routes_of_a_kind_can_and_no_more(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "rings.yaml").write_text(
        "kind: rings\napiVersion: v1\nmethods: {resource: [get], instance: [get]}\n"
        "schema:\n  type: array\n  key: {name: id, schema: {type: string}}\n"
        "  items: {type: object, required: [id], properties: {id: {type: string}}}\n"
    )
    with live.serving(tmp_path, SEED_FILE="", RESOURCES_DIR=str(kinds)) as server, server.client() as api:
        for op in ("create", "replace", "patch", "delete"):
            given: dict[str, Any] = {} if op == "delete" else {"document": {}}
            body = {"operations": [{"op": op, "kind": "rings", "id": "a", **given}]}
            problem = assert_problem(api.post("/batch", json=body), 422)
            assert problem["errors"][0]["pointer"] == "/operations/0/op"
