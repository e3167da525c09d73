"""One input of a view by its id: the bytes of the view, 404 for whatever is not assigned, and `[]` only when decommissioned."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import threading
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import DEMO, DEMO_DNS, SEED, VIEWS, assert_problem, fresh, inputs, make, view
from api.test_service_paths import samples, value

pytestmark = pytest.mark.usefixtures("both_ways")

EMPTY = b'{"inputs":[]}'
ODD_IDS = ("x", "~", "A.b_c", "a%20b", "%C3%A9", "%FF", "a;b=c", "a%0Ab", "x" * 2000)  # as they stand in a path


def one(dns: str, name: str, id: str) -> str:
    return f"{view(dns, name)}/{id}"


def alone(response: httpx.Response) -> bytes:
    """The bytes of the one input of an answer."""
    assert response.status_code == 200, response.text
    assert response.content.startswith(b'{"inputs":[{')
    return response.content.removeprefix(b'{"inputs":[').removesuffix(b"]}")


def namespaced(api: httpx.Client, *names: str) -> str:
    """The DNS name of a new cluster that has these namespaces, which are new as well."""
    for name in names:
        make(api, "namespaces", name, labels={"team": name})
    found: str = make(api, "clusters", namespaces=[{"id": name} for name in names])["cluster_dns"]
    return found


# What it is


@pytest.mark.parametrize("name", VIEWS)
def test_all_inputs_one_by_one_are_the_view_byte_for_byte(reader: httpx.Client, name: str) -> None:
    ids = [item["id"] for item in inputs(reader, DEMO_DNS, name)]
    assert ids
    for encoding in ("identity", "gzip"):
        sent = {"Accept-Encoding": encoding}
        single = [alone(reader.get(one(DEMO_DNS, name, id), headers=sent)) for id in ids]
        assert b'{"inputs":[' + b",".join(single) + b"]}" == reader.get(view(DEMO_DNS, name), headers=sent).content


def test_patches_overrides_and_digest_are_those_of_the_view(api: httpx.Client) -> None:
    first, second = (make(api, "platform_components", fresh("one"))["id"] for _ in range(2))
    references = [{"id": first}, {"id": second, "oci_tag": "2.0.0", "enabled": False}]
    patches = {second: {"text": '"},{"id":"x', "number": 1, "list": ["{", first]}}
    dns = make(api, "clusters", platform_components=references, patches=patches)["cluster_dns"]
    whole = inputs(api, dns)
    assert [item["enabled"] for item in whole] == [True, False]  # one that is disabled is an input like any other
    for id, expected in zip((first, second), whole, strict=True):
        assert api.get(one(dns, "platform-components", id)).json() == {"inputs": [expected]}


def test_a_change_arrives_at_once_and_the_others_keep_their_bytes(api: httpx.Client) -> None:
    changed, other = fresh("one"), fresh("one")
    dns = namespaced(api, changed, other)
    before = {id: api.get(one(dns, "namespaces", id)).content for id in (changed, other)}
    api.patch(f"/namespaces/{changed}", json={"labels": {"team": "new"}})
    after = {id: api.get(one(dns, "namespaces", id)).content for id in (changed, other)}
    assert after[other] == before[other]
    assert b'"team":"new"' in after[changed]
    assert before[changed] != after[changed] == b'{"inputs":[%b]}' % alone(api.get(one(dns, "namespaces", changed)))
    api.patch(f"/namespaces/{changed}", json={"labels": {"team": changed}})
    assert api.get(one(dns, "namespaces", changed)).content == before[changed]


# What is not there


def test_what_is_not_assigned_is_not_found_and_the_answer_says_what_to_do(api: httpx.Client) -> None:
    mine, unassigned = fresh("one"), make(api, "namespaces", fresh("one"))["id"]
    dns = namespaced(api, mine)
    for id in (unassigned, "nobody", mine.upper(), mine[:-1]):
        problem = assert_problem(api.get(one(dns, "namespaces", id)), 404, "not-found")
        assert f"has no namespace '{id}'; assign it to the cluster" in problem["detail"]
    assert_problem(api.get(one(dns, "rolebindings", mine)), 404, "not-found")  # which is one of another view


@pytest.mark.parametrize("name", VIEWS)
def test_a_cluster_whose_list_is_empty_has_no_inputs_and_none_is_deleted(api: httpx.Client, name: str) -> None:
    dns = make(api, "clusters")["cluster_dns"]
    for encoding in ("identity", "gzip"):
        sent = {"Accept-Encoding": encoding}
        assert api.get(view(dns, name), headers=sent).content == EMPTY
        assert_problem(api.get(one(dns, name, "x"), headers=sent), 404, "not-found")


def test_a_slip_is_404_and_never_an_empty_list(api: httpx.Client) -> None:
    id = fresh("one")
    dns = namespaced(api, id)
    good = api.get(one(dns, "namespaces", id)).content
    cluster = dns.removesuffix(".example.com")
    assert api.delete(f"/clusters/{cluster}/namespaces/{id}").status_code == 200
    assert_problem(api.get(one(dns, "namespaces", id)), 404, "not-found")
    assert api.put(f"/clusters/{cluster}/namespaces/{id}", json={}).status_code == 200
    assert api.get(one(dns, "namespaces", id)).content == good


def test_a_definition_deleted_by_force_is_404_until_it_is_back(api: httpx.Client) -> None:
    gone, kept = fresh("one"), fresh("one")
    dns = namespaced(api, gone, kept)
    before = {id: api.get(one(dns, "namespaces", id)).content for id in (gone, kept)}
    assert api.delete(f"/namespaces/{gone}?force=true").status_code == 200
    problem = assert_problem(api.get(one(dns, "namespaces", gone)), 404, "not-found")
    assert "was deleted by force; create it again" in problem["detail"]
    assert api.get(one(dns, "namespaces", kept)).content == before[kept]
    make(api, "namespaces", gone, labels={"team": gone})
    assert api.get(one(dns, "namespaces", gone)).content == before[gone]


@pytest.mark.parametrize(
    "path",
    [
        one("never.example.com", "namespaces", "podinfo"),
        one(DEMO, "namespaces", "podinfo"),  # the id is not the DNS name
        one(DEMO_DNS.upper(), "namespaces", "podinfo"),
        one(DEMO_DNS, "nonsense", "podinfo"),
        one(DEMO_DNS, "platform_components", "podinfo"),
        one(DEMO_DNS, "namespaces", ""),
        one(DEMO_DNS, "namespaces", "podinfo/"),
        one(DEMO_DNS, "namespaces", "podinfo/digest"),
        one(DEMO_DNS, "namespaces", "podinfo%0A"),
        *(one(DEMO_DNS, "namespaces", id) for id in ODD_IDS),
    ],
)
def test_paths_that_almost_fit_are_not_found_and_never_redirected(reader: httpx.Client, path: str) -> None:
    problem = assert_problem(reader.get(path), 404, "not-found")
    assert len(problem["detail"]) < 2500  # with the path of one that has no route
    assert_problem(reader.get(path, headers={"Accept-Encoding": "identity"}), 404, "not-found")


def test_an_id_may_be_percent_encoded(reader: httpx.Client) -> None:
    good = reader.get(one(DEMO_DNS, "namespaces", "podinfo")).content
    for path in (one(DEMO_DNS, "namespaces", "%70odinfo"), view(DEMO_DNS, "namespaces%2Fpodinfo")):
        assert reader.get(path).content == good


# Decommissioned


@pytest.mark.parametrize("name", VIEWS)
def test_a_decommissioned_cluster_gets_an_empty_list_whatever_the_id(api: httpx.Client, name: str) -> None:
    found = make(api, "clusters")
    assert_problem(api.get(one(found["cluster_dns"], name, "x")), 404)
    assert api.delete(f"/clusters/{found['id']}").status_code == 200
    for id in ODD_IDS:
        with api.stream("GET", one(found["cluster_dns"], name, id)) as packed:
            raw = b"".join(packed.iter_raw())
        assert (packed.status_code, gzip.decompress(raw)) == (200, EMPTY)
        assert api.get(one(found["cluster_dns"], name, id), headers={"Accept-Encoding": "identity"}).content == EMPTY
    assert_problem(api.get(one(found["cluster_dns"], "nonsense", "x")), 404)


def test_a_cluster_that_is_back_is_not_empty_any_more(api: httpx.Client) -> None:
    id = fresh("one")
    dns = namespaced(api, id)
    path, good = one(dns, "namespaces", id), api.get(one(dns, "namespaces", id)).content
    api.delete(f"/clusters/{dns.removesuffix('.example.com')}")
    assert api.get(path).content == EMPTY
    make(api, "clusters", dns.removesuffix(".example.com"), namespaces=[])
    assert_problem(api.get(path), 404, "not-found")
    api.put(f"/clusters/{dns.removesuffix('.example.com')}/namespaces/{id}", json={})
    assert api.get(path).content == good


# On the wire


def test_gzip_head_and_request_ids_are_those_of_the_view(reader: httpx.Client) -> None:
    path = one(DEMO_DNS, "namespaces", "podinfo")
    plain = reader.get(path, headers={"Accept-Encoding": "identity"})
    with reader.stream("GET", path) as packed:
        raw = b"".join(packed.iter_raw())
    assert (packed.headers["content-encoding"], gzip.decompress(raw)) == ("gzip", plain.content)
    headers = reader.get(view(DEMO_DNS, "namespaces")).headers.keys()
    assert packed.headers.keys() == headers
    head = reader.head(path)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(raw)))
    assert head.headers.keys() == headers
    assert reader.get(path, headers={"X-Request-Id": "poll-7"}).headers["x-request-id"] == "poll-7"
    assert reader.get(path, headers={"If-None-Match": "*"}).status_code == 200
    assert reader.get(path + "?page=2").content == plain.content


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_it_takes_only_get_and_head(api: httpx.Client, method: str) -> None:
    response = api.request(method, one(DEMO_DNS, "namespaces", "podinfo"))
    assert_problem(response, 405, "method-not-allowed")
    assert response.headers["allow"] == "GET, HEAD"


def test_strangers_learn_nothing(stranger: httpx.Client) -> None:
    for path in (one(DEMO_DNS, "namespaces", "podinfo"), one(DEMO_DNS, "namespaces", "nobody"), one("never", "x", "y")):
        assert_problem(stranger.get(path), 401, "unauthorized")


def test_a_revision_is_waited_for_and_none_is_shown(server: live.Server, reader: httpx.Client) -> None:
    id, path = fresh("one"), one(DEMO_DNS, "namespaces", "podinfo")
    with server.client() as api:
        dns = namespaced(api, id)
        current = int(api.get("/namespaces?limit=1").headers["x-revision"])
        threading.Timer(0.1, lambda: api.patch(f"/namespaces/{id}", json={"labels": {"team": "late"}})).start()
        answer = reader.get(one(dns, "namespaces", id), headers={"X-Min-Revision": str(current + 1)})
    assert b'"team":"late"' in alone(answer)
    for response in (answer, reader.get(path), reader.get(path + "x")):
        assert "x-revision" not in response.headers
    assert_problem(reader.get(path, headers={"X-Min-Revision": "x"}), 400, "bad-request")


# Servers


def test_metrics_name_the_view_and_never_the_id(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api:
        route, path = "/api/v2/flux/clusters/{cluster_dns}/namespaces/{id}", one(DEMO_DNS, "namespaces", "podinfo")
        for _ in range(3):
            api.get(path)
        api.head(path)
        for number in range(3):
            api.get(f"{path}-{number}")
        assert value(api, "requests_total", route=route, method="GET", status="200") == 3
        assert value(api, "requests_total", route=route, method="GET", status="404") == 3
        assert value(api, "request_seconds_count", route=route) == 7
        assert value(api, "polls_ordinary_total" if live.ordinary else "polls_fast_total") == 3
        routes = {dict(labels)["route"] for name, labels in samples(api) if name == "flux_resourceset_request_seconds_count"}
        assert {found for found in routes if "podinfo" in found} == set()


@pytest.mark.sqlite
def test_a_reader_answers_like_its_writer_and_a_lost_file_is_503(tmp_path: Path) -> None:
    path, nobody = one(DEMO_DNS, "namespaces", "podinfo"), one(DEMO_DNS, "namespaces", "nobody")
    with (
        live.serving(tmp_path, SEED_FILE=str(SEED)) as writer,
        live.serving(tmp_path, API_MODE="read-only") as reader,
        writer.client() as api,
        reader.client(live.READ) as flux,
    ):
        assert alone(flux.get(path)) == alone(api.get(path))
        api.patch("/namespaces/podinfo", json={"labels": {"seen": "by-both"}})
        assert b"by-both" in alone(flux.get(path))
        assert alone(flux.get(path)) == alone(api.get(path))
        (tmp_path / "aside").mkdir()
        for file in tmp_path.glob("fleet.db*"):
            os.replace(file, tmp_path / "aside" / file.name)
        for client in (api, flux):
            for asked in (path, nobody, one("never.example.com", "namespaces", "podinfo")):
                assert_problem(client.get(asked), 503, "unavailable")


@pytest.mark.sqlite
def test_a_reader_without_a_store_is_in_doubt(tmp_path: Path) -> None:
    with live.serving(tmp_path, "/health", API_MODE="read-only") as reader, reader.client(live.READ) as flux:
        assert_problem(flux.get(one(DEMO_DNS, "namespaces", "podinfo")), 503, "unavailable")


def test_a_view_in_doubt_is_in_doubt_input_by_input(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)):
        pass
    with contextlib.closing(live.opened_store(tmp_path)) as store:
        document = {**store.snapshot().documents["namespaces"]["traefik"].body, "annotations": {"note": "x" * 930_000}}
    large = "UPDATE documents SET body = ? WHERE kind = 'namespaces' AND id = 'traefik'"
    live.alter(tmp_path, large, values=[json.dumps(document).encode()])
    with live.serving(tmp_path, API_MODE="read-only") as server, server.client(live.READ) as flux:
        for id in ("podinfo", "traefik", "nobody"):
            assert "unassign" in assert_problem(flux.get(one(DEMO_DNS, "namespaces", id)), 503, "unavailable")["detail"]
        assert alone(flux.get(one(DEMO_DNS, "rolebindings", "platform-admins")))
