"""Batches: all or nothing whatever fails, and safe to repeat, also when the server goes away in between."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import live
from cli.command import Cli

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
    assert [result["operation"] for result in answer["results"]] == ["unchanged"]


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


def test_the_revision_is_the_one_that_counts_then_also_in_a_rehearsal_and_when_nothing_changes(own: httpx.Client) -> None:
    at = own.get("/changes?limit=1").json()[0]["revision"]
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "counted", "document": {}}]}
    rehearsed, done = own.post("/batch?dry_run=true", json=body).json(), own.post("/batch", json=body).json()
    assert rehearsed["revision"] == done["revision"] == at + 1
    assert rehearsed["results"] == done["results"]
    same = {"operations": [{"op": "patch", "kind": "namespaces", "id": "counted", "document": {}}]}
    assert own.post("/batch", json=same).json()["revision"] == at + 1


def test_many_warnings_are_counted_after_the_first_ten(own: httpx.Client) -> None:
    loose = [{"id": "podinfo", "oci_tag": "6.x"}]
    operations = [creation(f"loose{number}", platform_components=loose) for number in range(12)]
    told = own.post("/batch?dry_run=true", json={"operations": operations}).json()["warnings"]
    assert len(told) == 11
    assert told[-1] == "and 2 more warnings"


@pytest.mark.thorough  # a hundred thousand changes
def test_a_batch_cannot_change_the_same_clusters_without_end(own: httpx.Client) -> None:
    clusters = [creation(f"end{number}") for number in range(40)]
    relabel = {"op": "assign", "kind": "namespaces", "id": "podinfo", "clusters": [f"end{number}" for number in range(40)]}
    answer = own.post("/batch?dry_run=true", json={"operations": [*clusters, *[relabel] * 2500]})
    assert answer.status_code == 422
    assert "at most 100000 changes" in answer.json()["detail"]


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


class Cutter:
    """A proxy that carries out the first request of a method and path, and cuts the connection before its answer."""

    def __init__(self, behind: tuple[str, int], request: bytes) -> None:
        self._behind = behind
        self._request = request
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self._asked = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._carry(connection)

    def _carry(self, connection: socket.socket) -> None:
        with connection, socket.create_connection(self._behind) as server:
            while True:
                ready, _, _ = select.select([connection, server], [], [])
                for side in ready:
                    data = side.recv(1 << 20)
                    if not data or (side is server and self._asked and not self.cuts):
                        self.cuts += 1 if data else 0
                        return
                    self._asked = self._asked or data.startswith(self._request)
                    (server if side is connection else connection).sendall(data)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_a_command_whose_answer_was_lost_is_repeated_and_done_once(cli: Cli, server: live.Server, api: httpx.Client) -> None:
    cutter = Cutter(server.address, b"POST /batch ")
    try:
        done = cli.but(FLUX_API_URL=cutter.url).ok("namespace", "create", "lost-answer", "--cluster", "demo-cluster-01")
    finally:
        cutter.close()
    assert cutter.cuts == 1
    assert "1 created, 1 updated" in done.err  # the first answer, not one about something that exists already
    assert len(api.get("/changes?id=lost-answer").json()) == 1
    cli.ok("namespace", "unassign", "lost-answer", "--cluster", "demo-cluster-01")


def test_a_write_that_nothing_makes_safe_to_repeat_is_sent_once(
    cli: Cli, server: live.Server, api: httpx.Client, tmp_path: Path
) -> None:
    cli.ok("namespace", "create", "sent-once", "--label", "a=old")
    cutter = Cutter(server.address, b"PUT /namespaces/sent-once ")
    try:
        cut = cli.but(FLUX_API_URL=cutter.url, EDITOR="sed -i s/old/new/", TMPDIR=str(tmp_path))
        broken, kept = cut.refused(5, "namespace", "edit", "sent-once")
    finally:
        cutter.close()
    assert cutter.cuts == 1
    assert "may have happened" in broken
    assert str(next(tmp_path.glob("namespace-sent-once-*.yaml"))) in kept
    assert api.get("/namespaces/sent-once").json()["labels"] == {"a": "new"}
