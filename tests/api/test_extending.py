"""Kinds that operators add: a file in RESOURCES_DIR, and no Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

import live
from api.fleets import assert_problem, cluster, inputs, make, pointers

NETWORK_POLICIES = """\
kind: network_policies
apiVersion: v1
schema:
  type: array
  key:
    name: id
    schema:
      type: string
  items:
    type: object
    required: [id, target_namespace, ingress_rules]
    properties:
      id:
        type: string
        example: allow-monitoring
      target_namespace:
        type: string
        example: monitoring
      ingress_rules:
        type: array
        items:
          type: object
          properties:
            from_namespace:
              type: string
            port:
              type: integer
"""

DATABASES = """\
kind: databases
apiVersion: v1beta1
metadata:
  description: A managed database.
  x-flux:
    singular: database
    endpoint: managed-dbs
    cluster_field: dbs
    reference:
      size: {type: [string, "null"]}
      tier: {type: string, default: standard}
      note: {type: string}
    overrides: [size]
    nest:
      engine: [engine_name, engine_version]
    patches: true
schema:
  type: array
  key:
    name: id
    schema: {type: string}
  query_params:
    - name: engine_version
  items:
    type: object
    required: [id, engine_name]
    properties:
      id: {type: string}
      engine_name: {type: string, enum: [pg, my]}
      engine_version: {type: integer, default: 16}
      size: {type: string, default: small}
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    directory = tmp_path_factory.mktemp("extending")
    kinds = directory / "kinds"
    kinds.mkdir()
    (kinds / "network_policies.yaml").write_text(NETWORK_POLICIES)
    (kinds / "databases.yml").write_text(DATABASES)
    (kinds / "network_policies.resourceset.yaml").write_text("a template, not a kind")
    (kinds / "README.md").write_text("not YAML")
    with live.serving(directory, RESOURCES_DIR=str(kinds)) as server, server.client() as client:
        yield client


@pytest.mark.long
def test_the_network_policies_of_the_book_give_the_printed_answer(api: httpx.Client) -> None:
    rule = {"from_namespace": "prometheus", "port": 9090}
    policy = {"id": "allow-monitoring", "target_namespace": "monitoring", "ingress_rules": [rule]}
    response = api.post("/network_policies", json=policy)
    assert (response.status_code, response.headers["location"]) == (201, "/network_policies/allow-monitoring")
    made = cluster(
        "us-east-prod-01",
        cluster_dns="us-east-prod-01.k8s.example.com",
        environment="prod",
        network_policies=[{"id": "allow-monitoring"}],
    )
    assert api.post("/clusters", json=made).status_code == 201
    block = {"name": "us-east-prod-01", "dns": "us-east-prod-01.k8s.example.com", "environment": "prod"}
    (found,) = inputs(api, "us-east-prod-01.k8s.example.com", "network-policies")
    assert found == {**found, **policy, "cluster": block}
    assert set(found) - {"digest"} == {*policy, "cluster"}


def test_an_added_kind_is_validated_listed_and_kept_while_it_is_used(api: httpx.Client) -> None:
    wrong = {"id": "Wrong", "ingress_rules": [{"port": "http", "to": 1}], "extra": 1}
    assert pointers(api.post("/network_policies", json=wrong)) == {
        "/id", "/target_namespace", "/ingress_rules/0/port", "/ingress_rules/0/to", "/extra",
    }  # fmt: skip
    policy = {"id": "used", "target_namespace": "a", "ingress_rules": []}
    api.post("/network_policies", json=policy)
    assert policy in api.get("/network_policies").json()
    made = make(api, "clusters")
    path = f"/clusters/{made['id']}/network_policies/used"
    assert api.put(path, json={}).json()["network_policies"] == [{"id": "used"}]
    assert_problem(api.delete("/network_policies/used"), 409, "in-use")
    assert api.delete(path).status_code == 200
    assert api.delete("/network_policies/used").json() == policy
    assert api.get("/changes", params={"kind": "network_policies", "id": "used"}).json()[0]["changes"][0]["before"] == policy
    unknown = cluster("x", network_policies=[{"id": "ghost"}])
    assert pointers(api.post("/clusters", json=unknown)) == {"/network_policies/0/id"}


@pytest.mark.usefixtures("both_ways")
def test_a_cluster_that_says_nothing_of_an_added_kind_has_an_empty_list(api: httpx.Client) -> None:
    made = make(api, "clusters")
    assert (made["network_policies"], made["dbs"]) == ([], [])
    assert inputs(api, made["cluster_dns"], "network-policies") == []
    assert_problem(api.get(f"/api/v2/flux/clusters/{made['cluster_dns']}/databases"), 404)


@pytest.mark.long
@pytest.mark.usefixtures("both_ways")
def test_overrides_nesting_and_patches_come_without_code(api: httpx.Client) -> None:
    api.post("/databases", json={"id": "orders", "engine_name": "pg"})
    api.post("/databases", json={"id": "users", "engine_name": "my", "engine_version": 8, "size": "large"})
    references = [{"id": "users", "size": None, "note": "kept"}, {"id": "orders", "size": "huge", "tier": "gold"}]
    made = make(api, "clusters", dbs=references, patches={"orders": {"max.connections": 100}})
    users, orders = inputs(api, made["cluster_dns"], "managed-dbs")
    block = {"name": made["id"], "dns": made["cluster_dns"], "environment": "dev"}
    for found in (users, orders):
        found.pop("digest", None)
    assert users == {
        "id": "users", "size": "large", "tier": "standard", "note": "kept", "patches": {},
        "engine": {"engine_name": "my", "engine_version": 8}, "cluster": block,
    }  # fmt: skip
    assert orders == {
        "id": "orders", "size": "huge", "tier": "gold", "patches": {"max.connections": 100},
        "engine": {"engine_name": "pg", "engine_version": 16}, "cluster": block,
    }  # fmt: skip
    response = api.delete(f"/clusters/{made['id']}/dbs/orders")
    assert (response.headers["x-patches-removed"], response.json()["patches"]) == ("1", {})
    assert api.get("/databases?engine_version=8").json()[0]["id"] == "users"
    assert api.get("/databases?engine_version=eight").status_code == 422


def test_patches_cannot_tell_two_kinds_with_one_id_apart(api: httpx.Client) -> None:
    api.post("/databases", json={"id": "twin", "engine_name": "pg"})
    make(api, "platform_components", "twin")
    both = cluster("both", platform_components=[{"id": "twin"}], dbs=[{"id": "twin"}])
    assert pointers(api.post("/clusters", json=both)) == {"/dbs/0/id"}
    alone = cluster("alone", dbs=[{"id": "twin"}], patches={"twin": {"a": "1"}})
    assert api.post("/clusters", json=alone).status_code == 201
    assert api.get("/clusters/alone/patches/twin").json() == {"a": "1"}


@pytest.mark.long
def test_added_kinds_stand_in_the_openapi_document(api: httpx.Client) -> None:
    paths = yaml.load(api.get("/openapi.yaml").text, Loader=yaml.CSafeLoader)["paths"]
    assert "/network_policies/{id}" in paths
    assert "/api/v2/flux/clusters/{cluster_dns}/managed-dbs" in paths
    assert any(path.startswith("/clusters/{") and "/dbs/{" in path for path in paths)


@pytest.mark.long
@pytest.mark.usefixtures("both_ways")
def test_documents_of_a_kind_whose_file_is_gone_stay_in_the_store(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "databases.yaml").write_text(DATABASES)
    with live.serving(tmp_path, RESOURCES_DIR=str(kinds)) as server, server.client() as client:
        client.post("/databases", json={"id": "orders", "engine_name": "pg"})
        before = make(client, "clusters", "holder", dbs=[{"id": "orders"}])
    with live.serving(tmp_path) as server, server.client() as client:
        assert_problem(client.get("/databases"), 404)
        make(client, "namespaces")
    with live.serving(tmp_path, RESOURCES_DIR=str(kinds)) as server, server.client() as client:
        assert client.get("/clusters/holder").json() == before
        assert [item["id"] for item in inputs(client, before["cluster_dns"], "managed-dbs")] == ["orders"]


@pytest.mark.long
@pytest.mark.usefixtures("both_ways")
def test_clusters_can_be_edited_while_a_kind_is_away_and_it_finds_its_references_again(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "databases.yaml").write_text(DATABASES)
    database = {"id": "orders", "engine_name": "pg"}
    held = cluster("c1", dbs=[{"id": "orders"}], patches={"orders": {"a": "1"}}, cluster_dns="c1.example.com")
    with live.serving(tmp_path, RESOURCES_DIR=str(kinds)) as server, server.client() as api:
        api.post("/databases", json=database).raise_for_status()
        make(api, "clusters", **held)
        (before,) = inputs(api, "c1.example.com", "managed-dbs")
    with live.serving(tmp_path) as server, server.client() as api:
        assert "databases" in server.log.read_text()
        assert api.patch("/clusters/c1", json={"labels": {"a": "b"}}).status_code == 200
        make(api, "namespaces", "n1")
        assert api.put("/clusters/c1/namespaces/n1", json={}).status_code == 200
        whole = {**cluster("c1", cluster_dns="c1.example.com"), "namespaces": [], "patches": {"orders": {"a": "2"}}}
        assert api.put("/clusters/c1", json=whole).status_code == 200
        assert pointers(api.patch("/clusters/c1", json={"dbs": [{"id": "other"}]})) >= {"/dbs"}
    with live.serving(tmp_path, RESOURCES_DIR=str(kinds)) as server, server.client() as api:
        (after,) = inputs(api, "c1.example.com", "managed-dbs")
        assert after["patches"] == {"a": "2"}
        assert {**after, "digest": "", "patches": {}} == {**before, "digest": "", "patches": {}}


READ_ONLY_KIND = """\
kind: gauges
apiVersion: v1
methods: {resource: [get, post], instance: [get]}
schema:
  type: array
  key: {name: id, schema: {type: string}}
  query_params: [{name: size}, {name: active}]
  items:
    type: object
    required: [id]
    properties:
      id: {type: string}
      size: {type: integer, default: 1}
      active: {type: boolean, default: true}
      labels: {type: array, default: [], items: {type: string}}
"""


@pytest.mark.long
def test_a_level_without_methods_has_no_path(tmp_path: Path) -> None:
    (tmp_path / "gauges.yaml").write_text(READ_ONLY_KIND.replace("instance: [get]", "instance: []"))
    with live.serving(tmp_path, RESOURCES_DIR=str(tmp_path)) as server, server.client() as api:
        api.post("/gauges", json={"id": "g1"}).raise_for_status()
        assert_problem(api.get("/gauges/g1"), 404)
        paths = yaml.safe_load(api.get("/openapi.yaml").text)["paths"]
        assert ("/gauges" in paths, "/gauges/{id}" in paths) == (True, False)


def test_a_kind_decides_over_methods_filters_and_selectors(tmp_path: Path) -> None:
    (tmp_path / "gauges.yaml").write_text(READ_ONLY_KIND)
    with live.serving(tmp_path, RESOURCES_DIR=str(tmp_path)) as server, server.client() as api:
        api.post("/gauges", json={"id": "g1"}).raise_for_status()
        assert_problem(api.delete("/gauges/g1"), 405)
        removal = {"operations": [{"op": "delete", "kind": "gauges", "id": "g1"}]}
        assert pointers(api.post("/batch", json=removal)) == {"/operations/0/op"}
        assert [api.get("/gauges", params=params).status_code for params in ({"size": "1"}, {"active": "true"})] == [200, 200]
        assert_problem(api.get("/gauges?size=true"), 422, "bad-filter")
        assert_problem(api.get("/gauges?active=1"), 422, "bad-filter")
        assert_problem(api.get("/gauges?selector=a=b"), 400, "bad-query")  # its labels are no map


EXTENSION = """\
extends: platform_components
metadata:
  x-flux:
    reference:
      type: object
      properties:
        target_namespace: {type: [string, "null"], format: dns-label}
        priority: {type: integer, default: 3}
schema:
  items:
    properties:
      target_namespace: {type: string, format: dns-label}
      tier: {type: string, enum: [gold, tin], default: tin}
"""


@pytest.mark.long
def test_a_built_in_kind_gains_fields_also_for_what_was_there_before(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    with live.serving(tmp_path) as server, server.client() as api:
        make(api, "platform_components", "old")
        make(api, "clusters", "c1", platform_components=[{"id": "old"}])
    (kinds / "more.yaml").write_text(EXTENSION)
    with live.serving(tmp_path, RESOURCES_DIR=str(kinds)) as server, server.client() as api:
        assert api.get("/platform_components/old").json()["tier"] == "tin"
        (found,) = inputs(api, "c1.example.com")
        assert (found["tier"], found["priority"]) == ("tin", 3)
        assert pointers(api.patch("/platform_components/old", json={"tier": "iron", "target_namespace": "No"})) == {
            "/tier", "/target_namespace"
        }  # fmt: skip
        assert api.patch("/platform_components/old", json={"target_namespace": "apps"}).status_code == 200
        assert api.patch("/clusters/c1/platform_components/old", json={"target_namespace": "here"}).status_code == 200
        (found,) = inputs(api, "c1.example.com")
        assert found["target_namespace"] == "here"
        (row,) = api.get("/usage/platform_components/old").json()
        assert (row["target_namespace"], row["overridden"]) == ("here", ["target_namespace"])
        schemas = api.get("/openapi.json").json()["components"]["schemas"]
        assert "tier" in schemas["component"]["properties"]
        assert "priority" in schemas["component-reference"]["properties"]
        assert {"tier", "priority", "target_namespace"} <= schemas["component-input"]["properties"].keys()
        described = {kind["kind"]: kind for kind in api.get("/kinds").json()}
        assert described["platform_components"]["overrides"][-1] == "target_namespace"
        assert described["namespaces"]["short"] == "ns"
    (kinds / "clash.yaml").write_text("extends: platform_components\nschema: {items: {properties: {tier: {type: string}}}}\n")
    done = subprocess.run(
        [sys.executable, "-m", "flux_resourceset.server"], env=live.environment(tmp_path, RESOURCES_DIR=str(kinds)),
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "more.yaml:" in done.stderr
    assert "clashes with 'tier'" in done.stderr
