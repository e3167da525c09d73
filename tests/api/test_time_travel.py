"""What was: the history of documents, and documents, lists, answers and exports of any day."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live
from api import fleets
from api.fleets import assert_problem, fresh, make

FUTURE, BEFORE_ALL = "2999-01-01T00:00:00Z", "1999-01-01T00:00:00+02:00"


def revision(api: httpx.Client) -> int:
    return int(api.get("/clusters?limit=1").headers["x-revision"])


def test_the_history_of_a_document_is_told_newest_first_with_its_fields(api: httpx.Client) -> None:
    component, id = make(api, "platform_components")["id"], fresh("clus")
    make(api, "clusters", id, platform_components=[{"id": component}])
    said = {"X-Reason": "ticket 42", "X-Actor": "alice"}
    api.patch(f"/clusters/{id}/patches/{component}", json={"ui.color": "red"}, headers=said)
    api.patch(f"/clusters/{id}/patches/{component}", json={"ui.color": "blue"})
    api.patch(f"/clusters/{id}/platform_components/{component}", json={"oci_tag": "2.0.0"})
    api.delete(f"/clusters/{id}")
    told = api.get(f"/clusters/{id}/history").json()
    assert [item["operation"] for item in told] == ["delete", "update", "update", "update", "create"]
    assert [item["fields"] for item in told[1:4]] == [
        [{"path": f"/platform_components/{component}/oci_tag", "after": "2.0.0"}],
        [{"path": f"/patches/{component}/ui.color", "before": "red", "after": "blue"}],
        [{"path": f"/patches/{component}", "after": {"ui.color": "red"}}],
    ]
    assert {"path": "/environment", "after": "dev"} in told[4]["fields"]
    assert {"path": "/environment", "before": "dev"} in told[0]["fields"]
    assert (told[3]["actor"], told[3]["on_behalf_of"], told[3]["reason"]) == ("write", "alice", "ticket 42")
    assert set(told[0]) == {"revision", "time", "actor", "on_behalf_of", "reason", "operation", "fields"}
    assert [item["revision"] for item in told] == sorted((item["revision"] for item in told), reverse=True)


@pytest.mark.long
def test_a_history_is_read_page_by_page(api: httpx.Client) -> None:
    id = make(api, "namespaces")["id"]
    for number in range(120):
        assert api.patch(f"/namespaces/{id}", json={"labels": {"number": str(number)}}).status_code == 200
    whole = api.get(f"/namespaces/{id}/history?limit=1000").json()
    assert len(whole) == 121
    assert api.get(f"/namespaces/{id}/history").json() == whole[:100]
    assert api.get(f"/namespaces/{id}/history?limit=3&before={whole[99]['revision']}").json() == whole[100:103]
    assert api.get(f"/namespaces/{id}/history?before={whole[-1]['revision']}").json() == []


def test_only_what_never_was_has_no_history(api: httpx.Client) -> None:
    assert_problem(api.get("/namespaces/nobody/history"), 404, "not-found")
    assert_problem(api.get("/namespaces/nobody/history?before=3"), 404, "not-found")
    for wrong in ("limit=0", "limit=1001", "before=x", "limit=", "at=1"):
        assert_problem(api.get(f"/namespaces/podinfo/history?{wrong}"), 400, "bad-query")


def test_documents_are_read_as_they_were(api: httpx.Client) -> None:
    id = make(api, "namespaces", labels={"a": "1"})["id"]
    first = revision(api)
    then = datetime.datetime.now(datetime.UTC).isoformat()
    assert api.patch(f"/namespaces/{id}", json={"labels": {"a": "2"}}).status_code == 200
    second = revision(api)
    api.delete(f"/namespaces/{id}")
    for at in (first, then.replace("+00:00", "Z"), then.replace("+", "%2B")):
        response = api.get(f"/namespaces/{id}?at={at}")
        assert (response.status_code, response.json()["labels"]) == (200, {"a": "1"})
        assert response.headers["x-revision"] == str(first)
        assert response.headers["etag"] == f'"{first}"'
    assert api.get(f"/namespaces/{id}?at={second}").json()["labels"] == {"a": "2"}
    known = api.get(f"/namespaces/{id}?at={second}", headers={"If-None-Match": f'"{second}"'})
    assert (known.status_code, known.headers["x-revision"]) == (304, str(second))
    assert_problem(api.get(f"/namespaces/{id}?at={first - 1}"), 404, "not-found")
    assert_problem(api.get(f"/namespaces/{id}?at={second + 1}"), 404, "not-found")
    assert_problem(api.get(f"/namespaces/{id}?at={FUTURE}"), 404, "not-found")


def test_lists_are_read_as_they_were_with_all_their_filters(api: httpx.Client) -> None:
    label = fresh("label")
    one, other = (make(api, "clusters", environment="qa", labels={"of": label})["id"] for _ in range(2))
    at = revision(api)
    api.delete(f"/clusters/{one}")
    api.patch(f"/clusters/{other}", json={"environment": "prod", "labels": {"of": None}})
    make(api, "clusters", environment="qa", labels={"of": label})
    listed = api.get(f"/clusters?at={at}&selector=of={label}&environment=qa&limit=1&offset=1")
    assert [cluster["id"] for cluster in listed.json()] == sorted([one, other])[1:]
    assert (listed.headers["x-total-count"], listed.headers["x-revision"]) == ("2", str(at))
    assert api.get("/clusters?at=0").json() == []
    early = api.get(f"/clusters?at={BEFORE_ALL.replace('+', '%2B')}")
    assert (early.json(), early.headers["x-revision"]) == ([], "0")
    assert api.get(f"/clusters?at={FUTURE}").headers["x-revision"] == str(revision(api))


@pytest.mark.parametrize(
    "path", ["/clusters", f"/clusters/{fleets.DEMO}", "/export", f"/clusters/{fleets.DEMO}/inputs/namespaces"]
)
@pytest.mark.parametrize(
    ("at", "status"),
    [
        *((text, 400) for text in ("", "x", "-1", "2026-01-31", "1.5", "9" * 16, "2026-13-01T00:00:00Z")),
        ("9" * 15, 422),
    ],
)
def test_a_point_that_is_none_is_refused(api: httpx.Client, path: str, at: str, status: int) -> None:
    assert_problem(api.get(path, params={"at": at}), status, "bad-query")


@pytest.mark.long
def test_the_whole_fleet_is_exported_as_it_was(api: httpx.Client, tmp_path: Path) -> None:
    id = make(api, "clusters", namespaces=[{"id": "podinfo"}])["id"]
    at = revision(api)
    before = api.get("/export").json()
    api.delete(f"/clusters/{id}")
    response = api.get(f"/export?at={at}")
    assert response.json() == before
    assert response.headers["x-revision"] == str(at)
    assert_problem(api.get(f"/export?at={at}&history=true"), 400, "bad-query")
    with live.serving(tmp_path) as other, other.client() as elsewhere:
        assert elsewhere.post("/import", json=response.json()).status_code == 200
        assert elsewhere.get(f"/clusters/{id}").json()["namespaces"] == [{"id": "podinfo"}]


@pytest.mark.usefixtures("both_ways")
def test_an_answer_of_any_day_is_byte_for_byte_what_flux_got(api: httpx.Client, reader: httpx.Client) -> None:
    component = make(api, "platform_components")["id"]
    id = make(api, "clusters", platform_components=[{"id": component}])["id"]
    view = fleets.view(f"{id}.example.com", "platform-components")
    got: dict[int, bytes] = {}

    def look() -> None:
        got[revision(api)] = reader.get(view).content

    look()
    api.patch(f"/clusters/{id}/patches/{component}", json={"z": "1", "a": "ö"})
    look()
    api.patch(f"/platform_components/{component}", json={"oci_tag": "9.9.9"})
    look()
    api.patch(f"/clusters/{id}", json={"environment": "prod"})
    look()
    now = api.get(f"/clusters/{id}/inputs/platform-components")
    assert (now.content, now.headers["x-revision"]) == (got[revision(api)], str(revision(api)))
    assert now.headers["content-type"] == "application/json"
    api.delete(f"/clusters/{id}")
    assert len(set(got.values())) == 4
    for at, answer in got.items():
        response = api.get(f"/clusters/{id}/inputs/platform-components?at={at}")
        assert (response.content, response.headers["x-revision"]) == (answer, str(at))
    assert_problem(api.get(f"/clusters/{id}/inputs/platform-components"), 404, "not-found")
    assert_problem(api.get(f"/clusters/{id}/inputs/platform-components?at={revision(api)}"), 404, "not-found")
    assert_problem(api.get(f"/clusters/{id}/inputs/platform-components?at={min(got) - 1}"), 404, "not-found")
    assert reader.get(view).json() == {"inputs": []}  # Flux's own path goes on


def test_a_view_or_a_cluster_that_is_not_there_is_not_found(api: httpx.Client) -> None:
    for path in ("/clusters/nobody/inputs/namespaces", f"/clusters/{fleets.DEMO}/inputs/nothing"):
        for query in ("", f"?at={revision(api)}"):
            assert_problem(api.get(path + query), 404, "not-found")


def test_a_definition_that_was_deleted_by_force_was_left_out_then_as_well(api: httpx.Client) -> None:
    one, other = (make(api, "namespaces")["id"] for _ in range(2))
    id = make(api, "clusters", namespaces=[{"id": one}, {"id": other}])["id"]
    api.delete(f"/namespaces/{one}?force=true")
    at = revision(api)
    answer = api.get(f"/clusters/{id}/inputs/namespaces").content
    api.post("/namespaces", json={"id": one, "labels": {"new": "yes"}})
    assert api.get(f"/clusters/{id}/inputs/namespaces?at={at}").content == answer
    assert len(api.get(f"/clusters/{id}/inputs/namespaces?at={at - 1}").json()["inputs"]) == 2


def test_a_reader_that_is_read_only_has_none_of_it(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, server.client() as api:
        make(api, "namespaces", "n")
        with live.serving(tmp_path, API_MODE="read-only") as mirror, mirror.client(live.READ) as asking:
            for path in ("/namespaces/n/history", "/clusters/c/inputs/namespaces", "/diff?from=0"):
                assert_problem(asking.get(path), 404)


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server whose log begins with revision 4."""
    directory = tmp_path_factory.mktemp("compacted")
    with live.serving(directory) as server, server.client() as api:
        make(api, "namespaces", "gone")
        make(api, "namespaces", "n", labels={"a": "1"})
        api.delete("/namespaces/gone")
        api.patch("/namespaces/n", json={"labels": {"a": "2"}})
        make(api, "clusters", "c", namespaces=[{"id": "n"}])
        store = live.opened_store(directory)
        store.begin().fold(4)
        store.close()
        yield api


def test_what_was_folded_away_is_gone(compacted: httpx.Client) -> None:
    for path in ("/namespaces?at=2", "/namespaces/n?at=2", "/export?at=1", "/diff?from=2", "/changes/3", "/namespaces/n?at=0"):
        problem = assert_problem(compacted.get(path), 410, "compacted")
        assert "revision 3" in problem["detail"]
    assert_problem(compacted.post("/changes/3/revert"), 410, "compacted")
    assert_problem(compacted.post("/revert", json={"to": 1}), 410, "compacted")
    assert_problem(compacted.post("/namespaces/n/revert", json={"to": 1}), 410, "compacted")
    assert_problem(compacted.get(f"/namespaces?at={BEFORE_ALL.replace('+', '%2B')}"), 410, "compacted")


def test_what_was_not_folded_away_can_be_read(compacted: httpx.Client) -> None:
    assert compacted.get("/namespaces/n?at=3").json()["labels"] == {"a": "1"}
    assert [item["revision"] for item in compacted.get("/namespaces/n/history").json()] == [4]
    assert compacted.get("/namespaces/n/history?before=4").json() == []
    assert compacted.get("/namespaces/n/history?before=2").json() == []
    assert [item["id"] for item in compacted.get("/diff?from=3").json()["documents"]] == ["c", "n"]
    told = {item["path"]: item for item in compacted.get("/clusters/c/inputs/namespaces/n/provenance").json()}
    assert (told["/labels/a"]["revision"], told["/labels/a"]["actor"]) == (4, "write")
