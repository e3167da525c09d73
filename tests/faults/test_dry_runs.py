"""Dry runs: everybody who may poll may ask for one, so none holds a lock, and none goes on without end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import live
from api.fleets import assert_problem, component
from faults import crowds
from faults.crowds import DRY_RUN, Polls, Sent
from flux_resourceset import client, ledger


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    with crowds.serving(tmp_path_factory.mktemp("crowd")) as running:
        yield running


LONG = crowds.on_every_cluster(9)  # as much as a batch may change: longer than a dry run may take


def test_a_dry_run_holds_up_neither_writes_nor_polls(server: live.Server) -> None:
    with Sent(server, "POST", DRY_RUN, LONG) as long, server.client() as api:
        Polls(server).poll(3)
        assert api.post("/namespaces", json={"id": "meanwhile"}).status_code == 201
        assert api.post(DRY_RUN, json={"operations": []}).json()["dry_run"] is True
        assert not long.answered


def test_only_so_many_run_at_a_time_and_whoever_leaves_makes_room(server: live.Server) -> None:
    small = {"operations": [{"op": "create", "kind": "namespaces", "id": "small", "document": {}}]}
    running = [Sent(server, "POST", DRY_RUN, LONG) for _ in range(ledger.DRY_RUNS_AT_ONCE)]
    with server.client(live.READ) as reader:
        refused = reader.post(DRY_RUN, json=small)
        assert assert_problem(refused, 503, "unavailable")["title"] == "Service unavailable", "nothing is wrong with the data"
        assert int(refused.headers["retry-after"]) > 0
        assert not any(sent.answered for sent in running)
        for sent in running:
            sent.close()  # they would go on for longer than the next one waits
        assert reader.post(DRY_RUN, json=small).status_code == 200


# A megabyte, of which only the last operation is wrong: whoever has read such a body answers 422.
WRONG_AT_THE_END = {
    "operations": [
        *(
            {"op": "patch", "kind": "namespaces", "id": "x", "document": {"labels": {"a": str(number)}}}
            for number in range(9_000)
        ),
        {"op": "no such operation", "kind": "namespaces", "id": "x"},
    ]
}


def test_writes_and_the_fleet_list_do_not_queue_with_the_dry_runs_of_readers(server: live.Server) -> None:
    small = {"operations": [{"op": "create", "kind": "namespaces", "id": "not-queued", "document": {}}]}
    with contextlib.ExitStack() as sent:
        running = [sent.enter_context(Sent(server, "POST", DRY_RUN, LONG)) for _ in range(ledger.DRY_RUNS_AT_ONCE)]
        waiting = [sent.enter_context(Sent(server, "POST", DRY_RUN, WRONG_AT_THE_END, live.READ)) for _ in range(20)]
        with server.client() as writer, server.client(live.READ) as reader:
            assert writer.post("/batch", json=small).status_code == 200
            assert reader.get("/api/v2/flux/clusters?selector=none").json() == {"inputs": []}
        for surplus in waiting:
            head, _ = surplus.answer()
            assert head.startswith(b"HTTP/1.1 503 "), "nobody has read its body"
            assert b"\r\nretry-after: 2" in head.lower()
        assert not any(long.answered for long in running)


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "unassign", "kind": "namespaces", "id": "x", "selector": f"no{number}"} for number in range(9_000)],
        crowds.on_every_cluster(values={f"k{number}": "x" for number in range(1_000)})["operations"],
        crowds.on_every_cluster(values={"k": "x" * 100_000})["operations"],
    ],
    ids=["selectors that match nothing", "many values", "a large value"],
)
def test_more_work_than_one_may_make_is_refused(server: live.Server, operations: list[Any]) -> None:
    with server.client(live.READ) as reader:
        assert_problem(reader.post(DRY_RUN, json={"operations": operations}), 422, "too-expensive")
        assert reader.get("/ready").status_code == 200


def test_the_same_selection_costs_once(server: live.Server) -> None:
    operations = [{"op": "unassign", "kind": "namespaces", "id": "x", "selector": "tier=none"}] * 9_000
    with server.client(live.READ) as reader:
        answer = reader.post(DRY_RUN, json={"operations": operations})
        assert (answer.status_code, answer.json()["results"]) == (200, [])


def test_a_selection_sees_what_the_batch_has_done_to_clusters_before(server: live.Server) -> None:
    selected = {
        "op": "patch-values",
        "kind": "platform_components",
        "id": crowds.EVERYWHERE,
        "selector": "new",
        "values": {"a": "b"},
    }
    relabelled = {"op": "patch", "kind": "clusters", "id": "c7", "document": {"labels": {"new": "yes"}}}
    with server.client(live.READ) as reader:
        answer = reader.post(DRY_RUN, json={"operations": [selected, relabelled, selected]}).json()
    assert [(result["id"], result["index"]) for result in answer["results"]] == [("c7", 2)]
    assert answer["results"][0]["after"]["patches"] == {crowds.EVERYWHERE: {"a": "b"}}


def test_a_token_for_reading_sends_a_megabyte_and_one_for_writing_more(server: live.Server) -> None:
    body = {"operations": [{"op": "delete", "kind": "namespaces", "id": "x" * 200}] * 6_000}
    with server.client(live.READ) as reader, server.client() as writer:
        assert_problem(reader.post(DRY_RUN, json=body), 413, "body-too-large")
        assert_problem(writer.post(DRY_RUN, json=body), 404)


def test_the_command_line_sends_a_large_rehearsal_with_the_token_that_may(server: live.Server) -> None:
    body = {"operations": [{"op": "delete", "kind": "namespaces", "id": "x" * 200}] * 6_000}
    talking = client.Client(server.url, {"read": live.READ, "write": live.WRITE})
    with contextlib.closing(talking), pytest.raises(client.Problem) as refused:
        talking.send("POST", "/batch", body, {"dry_run": "true"}, role="read")
    assert refused.value.status == 404


def catalog(count: int, **closing: list[str]) -> dict[str, Any]:
    """Components that depend on the sixty before them."""
    return {
        "operations": [
            {
                "op": "create",
                "kind": "platform_components",
                "id": f"d{number}",
                "document": component(
                    f"d{number}", depends_on=closing.get(f"d{number}", [f"d{n}" for n in range(max(0, number - 60), number)])
                ),
            }
            for number in range(count)
        ]
    }


def test_a_dense_catalog_is_searched_for_cycles_in_one_pass(server: live.Server) -> None:
    with server.client() as writer:
        answer = writer.post(DRY_RUN, json=catalog(1_500))
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["results"]) == 1_500


def test_a_cycle_in_a_dense_catalog_is_named(server: live.Server) -> None:
    with server.client() as writer:
        problem = assert_problem(writer.post(DRY_RUN, json=catalog(1_500, d0=["d1499"])), 422, "invalid-document")
    assert problem["errors"][0]["pointer"] == "/depends_on/0"
    assert problem["errors"][0]["message"].startswith("makes a cycle: d0 → d1499 → ")
    assert problem["errors"][0]["message"].endswith(" → d0")
