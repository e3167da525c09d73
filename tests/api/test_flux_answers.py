"""What Flux gets: the documented answers, their order, and when they are empty, missing or refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import httpx
import pytest

import live
from api import fleets
from api.fleets import DEMO, DEMO_DNS, VIEWS, assert_problem, inputs, make, view

pytestmark = pytest.mark.usefixtures("both_ways")

BLOCK = {"name": DEMO, "dns": DEMO_DNS, "environment": "dev"}


def test_the_documented_component_comes_out_of_the_demo_data(reader: httpx.Client) -> None:
    first = inputs(reader, DEMO_DNS)[0]
    documented = {
        "id": "cert-manager",
        "component_path": "cert-manager",
        "component_version": "latest",
        "cluster_env_enabled": False,
        "depends_on": [],
        "enabled": True,
        "patches": {},
        "cluster": BLOCK,
        "source": {"oci_url": "https://charts.jetstack.io", "oci_tag": "latest"},
    }
    assert first == {**first, **documented}  # further fields are allowed
    assert first["type"] == "helm"


def test_the_documented_namespace_comes_out_of_the_demo_data(reader: httpx.Client) -> None:
    first = inputs(reader, DEMO_DNS, "namespaces")[0]
    documented = {"id": "cert-manager", "labels": {"app": "cert-manager"}, "annotations": {}, "cluster": BLOCK}
    assert first == {**first, **documented}
    assert first["allow_prune"] is False


def test_the_documented_rolebinding_comes_out_of_the_demo_data(reader: httpx.Client) -> None:
    first = inputs(reader, DEMO_DNS, "rolebindings")[0]
    subject = {"kind": "Group", "name": "platform-team", "apiGroup": "rbac.authorization.k8s.io"}
    documented = {"id": "platform-admins", "role": "cluster-admin", "subjects": [subject], "cluster": BLOCK}
    assert first == {**first, **documented}


def test_the_documented_fleet_list_comes_out_of_the_demo_data(reader: httpx.Client) -> None:
    found = reader.get("/api/v2/flux/clusters").json()["inputs"]
    assert {"id": DEMO, "cluster_name": DEMO, "cluster_dns": DEMO_DNS, "environment": "dev"} in found


def test_the_documented_merge_of_us_east_prod_comes_out(tmp_path: Path) -> None:
    """The book's example, with the `_id` of its catalog and the nulls of its references."""
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps(BOOK))
    with live.serving(tmp_path, SEED_FILE=str(seed), STORE_BACKEND="memory") as server, server.client() as api:
        manager, grafana = inputs(api, "us-east-prod-01.k8s.example.com")
    block = {"name": "us-east-prod-01", "dns": "us-east-prod-01.k8s.example.com", "environment": "prod"}
    assert manager["component_path"] == "core/cert-manager/1.14.0"
    assert manager["source"] == {"oci_url": "oci://registry/repo", "oci_tag": "v1.0.0"}
    assert (manager["patches"], manager["cluster"], manager["depends_on"]) == ({}, block, [])
    assert grafana["component_path"] == "observability/grafana/17.1.0"
    assert grafana["source"] == {"oci_url": "oci://registry/repo", "oci_tag": "v1.0.0-1"}
    assert (grafana["patches"], grafana["cluster"]) == ({"GRAFANA_REPLICAS": "3"}, block)
    assert (grafana["depends_on"], grafana["enabled"]) == (["cert-manager"], True)


BOOK = {
    "clusters": [
        {
            "id": "us-east-prod-01",
            "cluster_name": "us-east-prod-01",
            "cluster_dns": "us-east-prod-01.k8s.example.com",
            "environment": "prod",
            "platform_components": [
                {"id": "cert-manager", "enabled": True, "oci_tag": None, "component_path": None},
                {
                    "id": "grafana",
                    "enabled": True,
                    "oci_tag": "v1.0.0-1",
                    "component_path": "observability/grafana/17.1.0",
                },
            ],
            "patches": {"grafana": {"GRAFANA_REPLICAS": "3"}},
        }
    ],
    "platform_components": [
        {
            "_id": "cert-manager",
            "component_path": "core/cert-manager/1.14.0",
            "oci_url": "oci://registry/repo",
            "oci_tag": "v1.0.0",
            "depends_on": [],
        },
        {
            "_id": "grafana",
            "component_path": "observability/grafana/17.0.0",
            "oci_url": "oci://registry/repo",
            "oci_tag": "v1.0.0",
            "depends_on": ["cert-manager"],
        },
    ],
}


def test_inputs_keep_the_order_of_the_cluster_document(api: httpx.Client) -> None:
    names = [make(api, "namespaces", fleets.fresh(letter))["id"] for letter in "zam"]
    found = make(api, "clusters", namespaces=[{"id": name} for name in names])
    assert [item["id"] for item in inputs(api, found["cluster_dns"], "namespaces")] == names
    api.patch(f"/clusters/{found['id']}", json={"namespaces": [{"id": name} for name in reversed(names)]})
    assert [item["id"] for item in inputs(api, found["cluster_dns"], "namespaces")] == names[::-1]


def test_patch_values_keep_their_json_types(api: httpx.Client) -> None:
    id = make(api, "platform_components")["id"]
    values = {"text": "1", "number": 1, "ratio": 0.5, "flag": True, "off": False}
    found = make(api, "clusters", platform_components=[{"id": id}], patches={id: values})
    assert inputs(api, found["cluster_dns"])[0]["patches"] == values
    assert b'"number":1,' in api.get(view(found["cluster_dns"], "platform-components")).content


def test_a_service_account_has_an_empty_api_group_and_its_namespace(api: httpx.Client) -> None:
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": "ci"}
    id = make(api, "rolebindings", subjects=[subject])["id"]
    found = make(api, "clusters", rolebindings=[{"id": id}])
    assert inputs(api, found["cluster_dns"], "rolebindings")[0]["subjects"] == [{**subject, "apiGroup": ""}]


def test_a_disabled_component_is_still_listed(api: httpx.Client) -> None:
    id = make(api, "platform_components")["id"]
    found = make(api, "clusters", platform_components=[{"id": id, "enabled": False}])
    assert [item["enabled"] for item in inputs(api, found["cluster_dns"])] == [False]


# Empty, missing, unknown


@pytest.mark.parametrize("name", VIEWS)
def test_a_cluster_without_references_gets_an_empty_list(api: httpx.Client, name: str) -> None:
    found = make(api, "clusters")
    assert api.get(view(found["cluster_dns"], name)).content == b'{"inputs":[]}'


@pytest.mark.parametrize("name", VIEWS)
def test_a_dns_that_never_existed_is_not_found(reader: httpx.Client, name: str) -> None:
    assert_problem(reader.get(view("never.example.com", name)), 404, "not-found")


@pytest.mark.parametrize(
    "path",
    [
        view(DEMO, "namespaces"),  # the id is not the DNS name
        view(DEMO_DNS.upper(), "namespaces"),
        view(DEMO_DNS + ".", "namespaces"),
        view(DEMO_DNS, "platform_components"),
        view(DEMO_DNS, "namespaces/"),
        view(DEMO_DNS, "namespaces%0A"),
        view(DEMO_DNS, ""),
        "/api/v2/flux/clusters/",
        "/api/v2/flux",
        f"/clusters/{DEMO_DNS}/platform-components",
    ],
)
def test_paths_that_almost_fit_are_not_found_and_never_redirected(reader: httpx.Client, path: str) -> None:
    assert_problem(reader.get(path), 404, "not-found")


@pytest.mark.parametrize("name", VIEWS)
def test_a_decommissioned_cluster_gets_an_empty_list_and_is_gone_for_operators(api: httpx.Client, name: str) -> None:
    id = make(api, "namespaces")["id"]
    found = make(api, "clusters", namespaces=[{"id": id}])
    assert api.delete(f"/clusters/{found['id']}").status_code == 200
    assert api.get(view(found["cluster_dns"], name)).content == b'{"inputs":[]}'
    assert_problem(api.get(f"/clusters/{found['id']}"), 404)
    assert found["id"] not in api.get("/api/v2/flux/clusters").text


def test_a_cluster_revived_with_another_dns_leaves_the_old_dns_empty(api: httpx.Client) -> None:
    name = make(api, "namespaces")["id"]
    old = make(api, "clusters", namespaces=[{"id": name}])
    api.delete(f"/clusters/{old['id']}")
    new = make(api, "clusters", old["id"], cluster_dns=f"new-{old['cluster_dns']}", namespaces=[{"id": name}])
    assert inputs(api, old["cluster_dns"], "namespaces") == []
    assert [item["id"] for item in inputs(api, new["cluster_dns"], "namespaces")] == [name]


def test_a_dns_is_revived_by_another_cluster(api: httpx.Client) -> None:
    name = make(api, "namespaces")["id"]
    old = make(api, "clusters")
    api.delete(f"/clusters/{old['id']}")
    assert inputs(api, old["cluster_dns"], "namespaces") == []
    make(api, "clusters", cluster_dns=old["cluster_dns"], namespaces=[{"id": name}])
    assert [item["id"] for item in inputs(api, old["cluster_dns"], "namespaces")] == [name]


# On the wire


def test_an_unchanged_answer_has_the_same_bytes_and_a_change_elsewhere_leaves_them(api: httpx.Client) -> None:
    name = make(api, "namespaces")["id"]
    found = make(api, "clusters", namespaces=[{"id": name}])
    before = {other: api.get(view(found["cluster_dns"], other)).content for other in VIEWS}
    api.patch(f"/namespaces/{name}", json={"labels": {"team": "a"}})
    after = {other: api.get(view(found["cluster_dns"], other)).content for other in VIEWS}
    assert [other for other in VIEWS if after[other] != before[other]] == ["namespaces"]
    api.patch(f"/namespaces/{name}", json={"labels": {"team": None}})
    assert {other: api.get(view(found["cluster_dns"], other)).content for other in VIEWS} == before


def test_gzip_is_sent_when_asked_for_and_not_otherwise(reader: httpx.Client) -> None:
    path = view(DEMO_DNS, "platform-components")
    plain = reader.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with reader.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == plain.content
    assert {plain.headers["vary"], packed.headers["vary"]} == {"accept-encoding"}


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("*", True),
        ("*;q=0, gzip", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("gzip;\tq=0", False),
        ("deflate, br", False),
        ("", False),
    ],
)
def test_weights_of_accept_encoding_are_respected(reader: httpx.Client, accepted: str, packed: bool) -> None:
    response = reader.get(view(DEMO_DNS, "namespaces"), headers={"Accept-Encoding": accepted})
    assert (response.headers.get("content-encoding") == "gzip") is packed


@pytest.mark.parametrize("path", [*(view(DEMO_DNS, name) for name in VIEWS), "/api/v2/flux/clusters"])
def test_head_has_the_headers_of_get_and_no_body(reader: httpx.Client, path: str) -> None:
    head, get = reader.head(path), reader.get(path)
    drop = {"date"}
    assert head.content == b""
    assert {k: v for k, v in head.headers.items() if k not in drop} == {k: v for k, v in get.headers.items() if k not in drop}


@pytest.mark.parametrize("path", [view(DEMO_DNS, "namespaces"), "/api/v2/flux/clusters"])
def test_conditional_requests_never_get_304(reader: httpx.Client, path: str) -> None:
    for headers in ({"If-None-Match": "*"}, {"If-None-Match": '"1"'}, {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}):
        response = reader.get(path, headers=headers)
        assert (response.status_code, "etag" in response.headers) == (200, False)


def test_a_flux_answer_echoes_a_request_id_and_makes_none_up(reader: httpx.Client) -> None:
    path = view(DEMO_DNS, "namespaces")
    assert reader.get(path, headers={"X-Request-Id": "poll-7"}).headers["x-request-id"] == "poll-7"
    assert "x-request-id" not in reader.get(path).headers
    assert "x-request-id" not in reader.get("/api/v2/flux/clusters").headers
    assert reader.get(path, headers={"X-Request-Id": "not usable"}).headers["x-request-id"] != "not usable"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_flux_paths_take_only_get_and_head(api: httpx.Client, method: str) -> None:
    response = api.request(method, view(DEMO_DNS, "namespaces"))
    assert_problem(response, 405, "method-not-allowed")
    assert response.headers["allow"] == "GET, HEAD"


def test_unknown_query_parameters_are_ignored_on_flux_paths(reader: httpx.Client) -> None:
    path = view(DEMO_DNS, "namespaces")
    assert reader.get(path + "?page=2").content == reader.get(path).content
    assert reader.get("/api/v2/flux/clusters?page=2").status_code == 200


def test_a_write_that_would_make_an_answer_too_large_for_flux_is_refused(api: httpx.Client) -> None:
    names = [make(api, "namespaces", annotations={"note": "x" * 100_000})["id"] for _ in range(10)]
    references = [{"id": name} for name in names]
    found = make(api, "clusters", namespaces=references[:9])
    before = api.get(view(found["cluster_dns"], "namespaces")).content
    assert 900_000 < len(before) < 921_600
    response = api.put(f"/clusters/{found['id']}/namespaces/{names[9]}", json={})
    assert_problem(response, 422, "answer-too-large")
    response = api.patch(f"/namespaces/{names[0]}", json={"annotations": {"note": "x" * 130_000}})
    assert_problem(response, 422, "answer-too-large")
    assert api.get(view(found["cluster_dns"], "namespaces")).content == before
