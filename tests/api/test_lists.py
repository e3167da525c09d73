"""Lists of documents, and the change log: order, filters, paging, and what is refused."""

from __future__ import annotations

import datetime
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from api.fleets import KINDS, assert_problem, cluster, component, make, namespace
from openapi.documents import DATABASES


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_an_array_ordered_by_id_with_its_length_beside_it(api: httpx.Client, kind: str) -> None:
    for prefix in ("z", "a", "m"):
        make(api, kind, f"{prefix}-listed")
    response = api.get(f"/{kind}")
    ids = [document["id"] for document in response.json()]
    assert ids == sorted(ids)
    assert {"a-listed", "m-listed", "z-listed"} <= set(ids)
    assert response.headers["x-total-count"] == str(len(ids))
    assert api.head(f"/{kind}").headers["x-total-count"] == str(len(ids))


def test_limit_and_offset_cut_a_window_out_of_the_filtered_list(api: httpx.Client) -> None:
    ids = [make(api, "clusters", f"window-{n}", labels={"window": "1"})["id"] for n in range(5)]
    for query, expected in (
        ("limit=2", ids[:2]),
        ("limit=2&offset=3", ids[3:]),
        ("offset=4", ids[4:]),
        ("offset=5", []),
        ("limit=1000000", ids),
        ("offset=0", ids),
    ):
        response = api.get(f"/clusters?selector=window%3D1&{query}")
        assert [document["id"] for document in response.json()] == expected
        assert response.headers["x-total-count"] == "5"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=x", "limit=", "limit=1.0", "offset=-1", "offset=a", "limit=1&limit=2",
     "unknown=1", "Environment=dev", "environments=dev", "limit=99999999999999999999"],
)  # fmt: skip
def test_a_bad_or_unknown_parameter_is_a_bad_request(api: httpx.Client, kind: str, query: str) -> None:
    assert_problem(api.get(f"/{kind}?{query}"), 400, "bad-query")


def test_a_duplicate_parameter_is_called_so(api: httpx.Client) -> None:
    problem = assert_problem(api.get("/clusters?limit=1&limit=2"), 400, "bad-query")
    assert problem["detail"] == "duplicate query parameter 'limit'"


def test_filters_come_from_the_kind(api: httpx.Client) -> None:
    made = make(api, "clusters", environment="qa")
    assert api.get("/clusters", params={"cluster_dns": made["cluster_dns"]}).json() == [made]
    assert {document["environment"] for document in api.get("/clusters?environment=qa").json()} == {"qa"}
    assert api.get("/clusters", params={"cluster_dns": made["cluster_dns"], "environment": "dev"}).json() == []
    part = make(api, "platform_components", component_version="9.8.7")
    assert api.get("/platform_components?component_version=9.8.7").json() == [part]
    assert api.get("/platform_components?component_version=nope").json() == []


def test_selectors_work_where_there_are_labels_and_only_there(api: httpx.Client) -> None:
    made = make(api, "namespaces", labels={"only": "here"})
    assert api.get("/namespaces?selector=only").json() == [made]
    for kind in ("platform_components", "rolebindings"):
        assert_problem(api.get(f"/{kind}?selector=only"), 400, "bad-query")


@pytest.mark.parametrize("path", ["/clusters/demo-cluster-01", "/namespaces/podinfo", "/changes/1", "/metrics"])
def test_documents_take_no_query_parameters(api: httpx.Client, path: str) -> None:
    assert_problem(api.get(path + "?x=1"), 400, "bad-query")


# The change log, on a server of its own


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Six transactions by two names, one of them on two documents' behalf."""
    directory = tmp_path_factory.mktemp("log")
    tokens = directory / "tokens"
    tokens.write_text("alice write alices-token\n")
    tokens.chmod(0o600)
    with live.serving(directory, TOKENS_FILE=str(tokens)) as server, server.client() as api:
        alice = {"Authorization": "Bearer alices-token"}
        make(api, "namespaces", "one")
        make(api, "clusters", "first", namespaces=[{"id": "one"}])
        said = [(b"X-Actor", "Zoë".encode()), (b"X-Reason", b"ticket 7"), (b"Authorization", b"Bearer alices-token")]
        api.patch("/namespaces/one", json={"labels": {"a": "1"}}, headers=said)
        api.put("/clusters/first", json=cluster("first", namespaces=[]), headers={"X-Request-Id": "req-4"})
        api.delete("/namespaces/one", headers=alice)
        api.post("/platform_components", json=component("one"))
        yield api


def revisions(api: httpx.Client, **params: Any) -> list[int]:
    response = api.get("/changes", params=params)
    assert response.status_code == 200, response.text
    return [entry["revision"] for entry in response.json()]


def test_an_entry_tells_who_changed_what_when_and_why(logged: httpx.Client) -> None:
    entry = logged.get("/changes/3").json()
    assert datetime.datetime.fromisoformat(entry.pop("time")).tzinfo == datetime.UTC
    assert entry.pop("request_id")
    before = {**namespace("one"), "labels": {}, "annotations": {}, "allow_prune": False}
    change = {
        "kind": "namespaces",
        "id": "one",
        "operation": "update",
        "before": before,
        "after": {**before, "labels": {"a": "1"}},
    }
    wanted = {"revision": 3, "actor": "alice", "on_behalf_of": "Zoë", "reason": "ticket 7", "changes": [change]}
    assert entry == {**entry, **wanted}


def test_creations_and_deletions_have_one_side(logged: httpx.Client) -> None:
    created, deleted = (logged.get(f"/changes/{revision}").json()["changes"][0] for revision in (1, 5))
    assert (created["operation"], created["before"], deleted["operation"], deleted["after"]) == ("create", None, "delete", None)
    assert created["after"]["id"] == deleted["before"]["id"] == "one"


def test_the_log_is_newest_first_without_gaps(logged: httpx.Client) -> None:
    assert revisions(logged) == [6, 5, 4, 3, 2, 1]
    assert [logged.get(f"/changes/{revision}").json()["actor"] for revision in (1, 5)] == ["write", "alice"]
    assert logged.get("/changes/4").json()["request_id"] == "req-4"


def test_filters_keep_whole_transactions(logged: httpx.Client) -> None:
    assert revisions(logged, kind="namespaces") == [5, 3, 1]
    assert revisions(logged, id="one") == [6, 5, 3, 1]
    assert revisions(logged, kind="platform_components", id="one") == [6]
    assert revisions(logged, actor="alice") == [5, 3]
    assert revisions(logged, actor="Zoë") == []
    assert revisions(logged, actor="alice", limit=1) == [5]
    assert revisions(logged, limit=2) == [6, 5]
    assert revisions(logged, limit=2, before=5) == [4, 3]
    assert revisions(logged, before=1) == []
    assert revisions(logged, after=0) == [1, 2, 3, 4, 5, 6]
    assert revisions(logged, after=2, limit=2) == [3, 4]
    assert revisions(logged, after=1, actor="alice") == [3, 5]
    assert revisions(logged, after=1, before=5) == revisions(logged, before=5, after=1) == [2, 3, 4]
    assert revisions(logged, after=5, before=5) == revisions(logged, after=5, before=1) == []
    assert revisions(logged, after=6) == revisions(logged, after=10**15 - 1) == []
    assert revisions(logged, limit=1000) == [6, 5, 4, 3, 2, 1]


def test_since_and_until_are_inclusive_moments_in_any_zone(logged: httpx.Client) -> None:
    times = {entry["revision"]: entry["time"] for entry in logged.get("/changes").json()}
    assert revisions(logged, since=times[5]) == [6, 5]
    assert revisions(logged, until=times[2]) == [2, 1]
    assert revisions(logged, since=times[2], until=times[4]) == [4, 3, 2]
    east = datetime.datetime.fromisoformat(times[5]).astimezone(datetime.timezone(datetime.timedelta(hours=9)))
    assert revisions(logged, since=east.isoformat()) == [6, 5]
    assert revisions(logged, since="2000-01-01t00:00:00z", until="2000-01-02T00:00:00.5Z") == []


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "since=2026-01-01", "until=2026-13-01T00:00:00Z", "since=2026-01-01T00:00:00", "limit=0",
     "before=0", "before=x", "after=-1", "after=x", "limit=1001",
     "user=alice", "actor=a&actor=b", "since=", "offset=1"],
)  # fmt: skip
def test_a_bad_question_to_the_log_is_a_bad_request(logged: httpx.Client, query: str) -> None:
    assert_problem(logged.get(f"/changes?{query}"), 400, "bad-query")


@pytest.mark.parametrize("revision", ["0", "7", "-1", "x", "1.0", "99999999999999999999"])
def test_a_revision_that_is_not_there_is_not_found(logged: httpx.Client, revision: str) -> None:
    assert_problem(logged.get(f"/changes/{revision}"), 404)


def test_a_question_to_the_log_that_is_too_much_says_what_to_do(logged: httpx.Client) -> None:
    assert "at most 1000" in logged.get("/changes?limit=1001").json()["detail"]


@pytest.mark.long
def test_without_a_limit_the_log_shows_a_hundred_transactions(tmp_path: Any) -> None:
    with live.serving(tmp_path, STORE_BACKEND="memory") as server, server.client() as api:
        for number in range(103):
            make(api, "namespaces", f"n{number}")
        assert revisions(api) == list(range(103, 3, -1))
        assert revisions(api, limit=200) == list(range(103, 0, -1))
        assert revisions(api, after=1) == list(range(2, 102))
        assert revisions(api, after=1, limit=1000) == list(range(2, 104))


@pytest.mark.parametrize("header", ["X-Reason", "X-Actor"])
def test_a_reason_that_cannot_be_kept_is_refused_before_anything_is_written(api: httpx.Client, header: str) -> None:
    assert_problem(api.post("/namespaces", json={"id": "reasoned"}, headers={header: "x" * 501}), 400)
    assert api.get("/namespaces/reasoned").status_code == 404


def test_a_reason_in_an_old_encoding_is_kept_as_text(api: httpx.Client) -> None:
    made = api.post("/namespaces", json={"id": "latin"}, headers=[(b"X-Reason", "Zoë".encode("latin-1"))])
    assert made.status_code == 201
    assert api.get("/changes", params={"id": "latin"}).json()[0]["reason"] == "Zoë"


def test_a_filter_with_a_value_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "databases.yaml").write_text(DATABASES)
    with live.serving(tmp_path, STORE_BACKEND="memory", RESOURCES_DIR=str(tmp_path)) as server, server.client() as api:
        problem = assert_problem(api.get("/databases", params={"engine_name": "magic"}), 422, "bad-filter")
        assert problem["detail"] == "engine_name is 'magic'; it must be one of postgres, mysql"


@pytest.mark.long
def test_a_long_list_is_whole_for_a_client_that_knows_no_chunks(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, server.client() as api:
        for number in range(4):
            make(api, "namespaces", f"large-{number}", annotations={"note": "x" * 100_000})
        expected = api.get("/namespaces").content
        with socket.create_connection(server.address) as connection:
            connection.sendall(f"GET /namespaces HTTP/1.0\r\nAuthorization: Bearer {live.READ}\r\n\r\n".encode())
            head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    assert f"content-length: {len(expected)}".encode() in head
    assert body == expected
