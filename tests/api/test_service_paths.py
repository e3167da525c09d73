"""Health, readiness, metrics and the OpenAPI document of a running server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import live
from api.fleets import DEMO, DEMO_DNS, SEED, assert_problem, make, view


def samples(api: httpx.Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    response = api.get("/metrics")
    assert response.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def value(api: httpx.Client, name: str, **labels: str) -> float:
    return samples(api)[f"flux_resourceset_{name}", frozenset(labels.items())]


@pytest.mark.parametrize("path", ["/health", pytest.param("/ready", marks=pytest.mark.sqlite)])
def test_probes_answer_with_exactly_this(stranger: httpx.Client, path: str) -> None:
    response = stranger.get(path)
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert response.headers["content-type"] == "application/json"
    assert stranger.head(path).status_code == 200


def test_metrics_tell_of_requests_documents_and_the_store(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api:
        route = "/api/v2/flux/clusters/{cluster_dns}/namespaces"
        for _ in range(3):
            api.get(view(DEMO_DNS, "namespaces"))  # the fast path
        api.get(view(DEMO_DNS, "namespaces"), headers={"Connection": live.ORDINARY})
        api.get(view("never.example.com", "namespaces"))
        api.get("/no/such/path")
        api.head(view(DEMO_DNS, "namespaces"))
        api.get("/api/v2/flux/clusters")
        assert value(api, "requests_total", route=route, method="GET", status="200") == 4
        assert (value(api, "polls_fast_total"), value(api, "polls_ordinary_total")) == (3, 1)
        assert value(api, "requests_total", route=route, method="GET", status="404") == 1
        assert value(api, "requests_total", route="none", method="GET", status="404") == 1
        assert value(api, "request_seconds_count", route=route) == 6
        assert value(api, "request_seconds_bucket", route=route, le="+Inf") == 6
        assert (value(api, "revision"), value(api, "documents", kind="clusters")) == (1, 1)
        assert value(api, "prepared_answers") == 1
        assert 0 <= value(api, "store_seen_seconds") < 60
        assert value(api, "skipped_references") == 0
        api.delete("/namespaces/podinfo?force=true")
        assert (value(api, "skipped_references"), value(api, "revision")) == (1, 2)
        assert value(api, "documents", kind="namespaces") == 2


def test_metrics_name_no_document_and_no_token(api: httpx.Client) -> None:
    make(api, "clusters")
    text = api.get("/metrics").text
    assert not any(word in text for word in (DEMO, live.READ, live.WRITE))


@pytest.mark.long
def test_the_openapi_document_is_yaml_and_can_be_given_by_a_file(stranger: httpx.Client, tmp_path: Path) -> None:
    response = stranger.get("/openapi.yaml")
    assert response.status_code == 200
    assert "yaml" in response.headers["content-type"]
    assert "openapi: 3.0.3" in response.text
    same = stranger.get("/openapi.json")
    assert same.headers["content-type"] == "application/json"
    assert same.json() == yaml.load(response.text, Loader=yaml.CSafeLoader)
    own = tmp_path / "own.yaml"
    own.write_bytes(b"openapi: 3.0.3\ninfo: {title: mine}\n")
    with live.serving(tmp_path, OPENAPI_FILE=str(own), OPENAPI_PUBLIC="false", STORE_BACKEND="memory") as server:
        assert_problem(httpx.get(server.url + "/openapi.yaml"), 401)
        assert_problem(httpx.get(server.url + "/openapi.json"), 401)
        with server.client(live.READ) as client:
            assert client.get("/openapi.yaml").content == own.read_bytes()
            assert client.get("/openapi.json").json() == {"openapi": "3.0.3", "info": {"title": "mine"}}
