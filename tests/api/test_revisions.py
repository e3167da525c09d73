"""Revisions in headers: which state an answer tells of, and what a request wants it not to be older than."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import DEMO_DNS, SEED, assert_problem, fresh, namespace, view

FLUX = (view(DEMO_DNS, "namespaces"), "/api/v2/flux/clusters")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    with live.serving(tmp_path_factory.mktemp("revisions"), SEED_FILE=str(SEED)) as running:
        yield running


@pytest.fixture(scope="module")
def api(server: live.Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def revision(response: httpx.Response) -> int:
    return int(response.headers["x-revision"])


def now(api: httpx.Client) -> int:
    return revision(api.get("/namespaces?limit=1"))


@pytest.mark.parametrize(
    "path",
    [
        "/whoami", "/metrics", "/kinds", "/changes", "/changes/1", "/tombstones", "/usage/namespaces", "/export", "/clusters",
        "/clusters/demo-cluster-01", "/clusters/demo-cluster-01/namespaces/podinfo", "/clusters/demo-cluster-01/history",
        "/clusters/demo-cluster-01/inputs/namespaces", "/diff?from=1",
    ],
)  # fmt: skip
def test_every_answer_to_operators_tells_its_revision(api: httpx.Client, path: str) -> None:
    response = api.get(path)
    assert response.status_code == 200
    assert revision(response) == now(api)
    assert revision(api.head(path)) == now(api)


def test_so_do_refusals_but_not_those_of_strangers(server: live.Server, api: httpx.Client) -> None:
    for response in (
        api.get("/no/such/path"),
        api.get("/namespaces/none"),
        api.get("/namespaces?wrong=1"),
        api.post("/namespaces", json={}),
        api.post("/namespaces", content=b"{"),
        api.delete("/kinds"),
    ):
        assert response.status_code >= 400
        assert revision(response) == now(api)
    with server.client(live.READ) as reader:
        assert revision(reader.post("/namespaces", json=namespace("x"))) == now(api)
    with server.client("wrong") as stranger:
        assert "x-revision" not in stranger.get("/namespaces").headers


def test_flux_and_probes_are_answered_without(api: httpx.Client) -> None:
    for path in (*FLUX, view("none.example.com", "namespaces"), "/health", "/ready", "/openapi.json"):
        assert "x-revision" not in api.get(path).headers


def test_a_write_tells_the_revision_that_it_made(api: httpx.Client) -> None:
    id, before = fresh("made"), now(api)
    made = api.post("/namespaces", json=namespace(id))
    assert revision(made) == before + 1
    assert revision(api.patch(f"/namespaces/{id}", json={"labels": {"a": "b"}})) == before + 2
    assert revision(api.patch(f"/namespaces/{id}", json={"labels": {"a": "b"}})) == before + 2  # nothing changed
    assert revision(api.delete(f"/namespaces/{id}?dry_run=true")) == before + 2
    assert revision(api.delete(f"/namespaces/{id}")) == before + 3
    batch = {"operations": [{"op": "create", "kind": "namespaces", "id": id, "document": {}}]}
    once = [api.post("/batch", json=batch, headers={"Idempotency-Key": id}) for _ in range(2)]
    assert [revision(response) for response in once] == [before + 4, before + 4]
    assert revision(api.post(f"/changes/{before + 4}/revert")) == before + 5
    assert revision(api.post("/batch", json=batch)) == before + 6
    again = api.post("/batch", json=batch, headers={"Idempotency-Key": id})  # though others have written since
    assert revision(again) == before + 4
    assert revision(api.get(f"/namespaces/{id}?at={before + 1}")) == before + 1


@pytest.mark.parametrize("path", [*FLUX, "/clusters", "/whoami", "/metrics"])
def test_a_read_that_wants_what_is_there_is_answered(api: httpx.Client, path: str) -> None:
    for wanted in (0, 1, now(api)):
        assert api.get(path, headers={"X-Min-Revision": str(wanted)}).status_code == 200
        assert api.head(path, headers={"X-Min-Revision": str(wanted)}).status_code == 200


@pytest.mark.parametrize("path", [*FLUX, "/clusters", "/whoami"])
@pytest.mark.parametrize("wrong", ["", "x", "-1", "1.5", "1" * 16, "1, 2", "²"])
def test_what_is_no_revision_is_refused(api: httpx.Client, path: str, wrong: str) -> None:
    response = api.get(path, headers={b"X-Min-Revision": wrong.encode()})
    assert "X-Min-Revision" in assert_problem(response, 400, "bad-request")["detail"]


def test_writes_and_what_is_public_do_not_wait(api: httpx.Client) -> None:
    wanted = {"X-Min-Revision": "999999"}
    for path in ("/health", "/ready", "/openapi.json"):
        assert api.get(path, headers=wanted).status_code == 200
    assert api.post("/namespaces", json=namespace(fresh("no-wait")), headers=wanted).status_code == 201


def test_strangers_are_told_so_first(server: live.Server) -> None:
    with server.client(None) as stranger:
        for value in ("x", "999999"):
            assert stranger.get("/clusters", headers={"X-Min-Revision": value}).status_code == 401


@pytest.mark.long
@pytest.mark.parametrize("path", [*FLUX, "/namespaces"])
def test_what_does_not_come_in_time_is_behind(api: httpx.Client, path: str) -> None:
    response = api.get(path, headers={"X-Min-Revision": str(now(api) + 1)})
    assert f"revision {now(api) + 1}" in assert_problem(response, 503, "behind")["detail"]


def test_whoever_waits_is_answered_once_it_is_there(tmp_path: Path) -> None:
    """Also when another process writes it."""
    with live.serving(tmp_path) as first, live.serving(tmp_path) as second, first.client() as api:
        got: list[httpx.Response] = []

        def ask() -> None:
            with second.client() as other:
                got.append(other.get("/namespaces", headers={"X-Min-Revision": "1"}))

        waiting = threading.Thread(target=ask)
        waiting.start()
        assert revision(api.post("/namespaces", json=namespace("late"))) == 1
        waiting.join(30)
        assert (got[0].status_code, revision(got[0])) == (200, 1)
        assert [document["id"] for document in json.loads(got[0].content)] == ["late"]
