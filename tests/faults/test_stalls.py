"""No request, whoever sends it, holds up the polls: seen by what is answered first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from api.fleets import assert_problem
from faults import crowds
from faults.crowds import DRY_RUN, Polls, Sent
from flux_resourceset import errors, strict_json, transfer

TERMS = ",".join(f"!a{number}" for number in range(64))
TRIES = 5
POLLS = 3  # the first may be answered in the very turn in which the request arrives


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    with crowds.serving(tmp_path_factory.mktemp("crowd")) as running:
        yield running


def assert_outrun(server: live.Server, *request: Any, statuses: tuple[int, ...]) -> None:
    """Polls that came later are answered earlier: not always, where a machine is busy; never, where the loop stands still."""
    polls = Polls(server)
    polls.poll()
    for _ in range(TRIES):
        with Sent(server, *request) as long:
            polls.poll(POLLS)
            outrun = not long.answered
            assert long.status() in statuses
        if outrun:
            return
    raise AssertionError(f"in {TRIES} tries, no poll was answered before {request[:2]}")


@pytest.mark.parametrize(
    "path",
    [
        "/clusters",
        f"/clusters?selector={TERMS}",
        f"/api/v2/flux/clusters?selector={TERMS}",
        "/export",
        "/export?history=true",
        "/changes",
        "/changes/1",
    ],
)
def test_polls_are_answered_while_a_long_answer_is_made(server: live.Server, path: str) -> None:
    assert_outrun(server, "GET", path, statuses=(200, 422))  # 422: more clusters than Flux takes in one list


@pytest.mark.parametrize(
    "body",
    [
        crowds.on_every_cluster(),
        {"operations": [{"op": "create", "kind": "namespaces", "id": "x", "document": {}, "clusters": ["x"] * 9}] * 9_999},
        b'{"operations":[' + b"[]," * 300_000 + b"[]]}",
        b"[" * 60 + b"[]," * 300_000,
    ],
    ids=["every cluster", "many mistakes", "many arrays", "never closed"],
)
def test_polls_are_answered_while_a_body_is_read_and_rehearsed(server: live.Server, body: object) -> None:
    assert_outrun(server, "POST", DRY_RUN, body, live.WRITE, statuses=(200, 400, 422))


def test_another_process_answers_what_is_true_before_it_has_read_all_of_a_large_write(tmp_path: Path) -> None:
    with crowds.serving(tmp_path) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        for attempt in range(TRIES):
            with writer.client() as api, reader.client(live.READ) as follower:
                written = api.post("/batch", json=crowds.on_every_cluster(values={"n": f"{attempt}"})).json()
                for number in range(POLLS):
                    polled = follower.get(f"/api/v2/flux/clusters/{crowds.dns(number)}/platform-components").json()
                    assert polled["inputs"][0]["patches"] == {"n": f"{attempt}"}
                metrics = follower.get("/metrics").text
            if int(metrics.partition("\nflux_resourceset_revision ")[2].split()[0].partition(".")[0]) < written["revision"]:
                return
    raise AssertionError(f"in {TRIES} tries, no poll was answered before all of the log was read")


def test_the_list_of_a_fleet_is_whole_though_it_is_sent_in_pieces(server: live.Server) -> None:
    with server.client(live.READ) as reader:
        clusters = reader.get("/clusters")
        assert clusters.headers["x-total-count"] == str(crowds.CLUSTERS)
        assert len(clusters.json()) == crowds.CLUSTERS
        (entry,) = reader.get("/changes").json()
        assert len(entry["changes"]) == crowds.CLUSTERS + 1
        assert entry == reader.get("/changes/1").json()


@pytest.mark.parametrize("path", ["/clusters", "/api/v2/flux/clusters"])
@pytest.mark.parametrize("selector", [TERMS + ",b", ",".join(["!a"] * 5000), "a in (" + "x," * 9000 + "x)"])
def test_a_selector_without_bounds_is_refused(server: live.Server, path: str, selector: str) -> None:
    with server.client(live.READ) as reader:
        assert_problem(reader.get(path, params={"selector": selector}), 400, "bad-query")


def test_a_selector_of_64_terms_is_not(server: live.Server) -> None:
    with server.client(live.READ) as reader:
        assert len(reader.get("/clusters", params={"selector": TERMS, "limit": 1}).json()) == 1


def test_within_a_batch_a_selector_without_bounds_is_a_violation(server: live.Server) -> None:
    with server.client(live.READ) as reader:
        problem = assert_problem(reader.post(DRY_RUN, json=crowds.on_every_cluster(selector=TERMS + ",b")), 422)
        assert [error["pointer"] for error in problem["errors"]] == ["/operations/0/selector"]


@pytest.mark.parametrize("path", [DRY_RUN, "/import", "/clusters"])
def test_a_body_of_more_values_than_a_fleet_has_is_refused_before_it_is_read(server: live.Server, path: str) -> None:
    before = crowds.resident(server)
    with server.client() as api:
        assert_problem(api.post(path, content=b"[" + b"[]," * 20_000_000 + b"[]]", headers=_JSON), 413, "body-too-large")
    assert crowds.resident(server) - before < 200 * 2**20  # the body itself, and no more


_JSON = {"Content-Type": "application/json"}


def test_a_large_body_is_read_as_a_small_one_is() -> None:
    value = {"long": ["x" * 100_000, {"deep": [[1.5e3, -2, None, True, 'q"\\\n', {"": []}]] * 5000}], "n": [0] * 70_000}
    for text in (json.dumps(value), json.dumps(value, indent=3)):
        assert strict_json.decoded(text.encode()) == value


@pytest.mark.parametrize("size", [65_530, 65_535, 65_536, 65_537, 131_071, 200_000])
@pytest.mark.parametrize("sign", ["ü", "€", "😀"])
def test_signs_beyond_ascii_are_read_wherever_a_body_is_cut(size: int, sign: str) -> None:
    value = ["x" * size, sign * 70_000, {sign: "x" * size + sign}]
    raw = json.dumps(value, ensure_ascii=False).encode()
    assert strict_json.decoded(raw) == value
    for damaged in (raw[: size + 4] + b"\xff" + raw[size + 4 :], raw[: raw.rindex(sign.encode()) + 1]):
        with pytest.raises(UnicodeDecodeError) as known:
            damaged.decode()
        with pytest.raises(errors.MalformedBody, match=f"at byte {known.value.start}$"):
            strict_json.decoded(damaged)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1, "b": [%b], "a": 2}' % (b"1," * 50_000 + b"1"),
        b"[%b] 1" % (b"1," * 50_000 + b"1"),
        b"[%b]" % (b"1," * 50_000),
        b"[%b" % (b"1," * 50_000),
        b'["%b]' % (b"x" * 100_000),
        b"[%b NaN]" % (b"1," * 50_000),
        b"[%b 1e999]" % (b"1," * 50_000),
        b"[" * 65 + b"1," * 50_000 + b"1" + b"]" * 65,
        b'["%b"]' % (b"x" * 1_100_000),
        b"{%b}" % b",".join(b'"%d":1' % n for n in range(100_001)),
    ],
)
def test_what_is_wrong_with_a_large_body_is_refused(server: live.Server, raw: bytes) -> None:
    with server.client() as api:
        assert_problem(api.post("/import", content=raw, headers=_JSON), 400, "malformed-body")


def test_a_refusal_does_not_grow_with_what_was_sent(server: live.Server) -> None:
    names = {f"{number}{'n' * 80}": 0 for number in range(90_000)}
    fewer = dict(list(names.items())[:10_000])
    with server.client() as api:
        answers = [
            api.post(DRY_RUN, json={"operations": [], **names}),
            api.post(DRY_RUN, json={"operations": [{"op": "create", "kind": "clusters", "id": "x", "document": fewer}]}),
            api.post(DRY_RUN, json={"operations": [{"op": "x" * 5000, "kind": "k" * 5000, "id": "x"}] * 5000}),
            api.post(DRY_RUN, json={"operations": [], "n" * 900_000: 0}),
            api.post("/clusters", json={"n" * 90_000: 0, "id": "i" * 90_000}),
            api.post("/namespaces", json={"id": "a", "labels": {f"l{number}!": "x" * 200 for number in range(3_000)}}),
        ]
    for answer in answers:
        problem = assert_problem(answer, 422)
        assert len(problem["errors"]) <= 100
        assert len(answer.content) < 300_000
    assert [len(answer.json()["errors"]) for answer in (answers[0], answers[2])] == [100, 100]
    assert [answer.json()["errors_total"] for answer in (answers[0], answers[2])] == [1000, 1000]
    assert "errors_total" not in answers[3].json()


def test_a_document_of_more_values_than_flux_could_take_is_refused(server: live.Server) -> None:
    document = {"id": "large", "labels": {str(number): "x" for number in range(99_000)}, "annotations": [[]] * 5_000}
    with server.client() as api:
        answer: httpx.Response = api.post(
            "/batch", json={"operations": [{"op": "create", "kind": "namespaces", "id": "large", "document": document}]}
        )
        assert "no answer to Flux has room" in assert_problem(answer, 422)["detail"]


def test_an_operation_names_no_more_clusters_than_a_batch_may_change(server: live.Server) -> None:
    names = [f"c{number}" for number in range(crowds.CLUSTERS + 1)]
    with server.client() as api:
        operation = {"op": "unassign", "kind": "namespaces", "id": "x", "clusters": names}
        problem = assert_problem(api.post(DRY_RUN, json={"operations": [operation]}), 422, "invalid-document")
        assert "names more than 10000 clusters" in problem["errors"][0]["message"]
        operation["clusters"] = names[:-1]
        assert api.post(DRY_RUN, json={"operations": [operation]}).status_code == 200


def test_an_import_of_more_than_fits_between_two_polls_is_refused(server: live.Server) -> None:
    buried = [{"dns": f"t{n}.example.com", "id": f"t{n}", "revision": 1, "time": "2026-01-31T12:00:00Z"} for n in range(50_001)]
    export = {"format": transfer.FORMAT, "revision": 1, "documents": {"namespaces": []}, "tombstones": buried}
    with server.client() as api:
        answer = api.post("/import?merge=true", json={**export, "checksum": transfer.checksum(export)})
        assert "flux-resourceset import" in assert_problem(answer, 413, "body-too-large")["detail"]


def test_what_is_wrong_in_thousands_of_places_is_told_without_a_stall(server: live.Server) -> None:
    """The validator would write the whole document into each of its errors, for a minute, and nobody else could run."""
    labels = {f"l{number}!": "x" * 200 for number in range(3_000)}
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "a", "document": {"labels": labels}}]}
    polls = Polls(server)
    with Sent(server, "POST", DRY_RUN, body) as long:
        polls.poll(POLLS)
        assert long.problem()["code"] == "invalid-document"
