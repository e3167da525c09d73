"""The kinds of examples/kinds in a real cluster: their objects appear, follow changes, and go."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import live

from . import expectations, faults
from .charts import Charts
from .home import INTERVAL, Home, cli
from .kube import NAMESPACE, Kube, Object

EXAMPLES = live.ROOT / "examples" / "kinds"
KINDS = ("network_policies", "resource_quotas", "external_secrets", "ingress_routes")
CLUSTER, DNS = "extended", "extended.example.com"
IDENTITY = "cluster-identity"
METADATA = {"metadata": {"name": IDENTITY, "namespace": NAMESPACE}}


@pytest.fixture(scope="module")
def extended(kube: Kube, charts: Charts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A server of its own with the further kinds; the control plane polls it for these, and for nothing else."""
    directory = tmp_path_factory.mktemp("extended")
    environment = live.environment(directory, RESOURCES_DIR=str(EXAMPLES))
    server = live.Server(directory, environment)
    try:
        server.wait("/ready")
        with faults.proxying(server.address) as proxy:
            home = Home(server, proxy, kube, charts, directory, environment)
            home.call("POST", "/clusters", {"id": CLUSTER, "cluster_name": CLUSTER, "cluster_dns": DNS, "environment": "prod"})
            before = kube.get("configmap", IDENTITY, NAMESPACE)
            kube.delete("configmap", IDENTITY, NAMESPACE)
            kube.apply(bundle(home))
            yield home
            for kind in KINDS:
                kube.delete("resourceset", view(kind), NAMESPACE)
                kube.delete("resourcesetinputprovider", view(kind), NAMESPACE)
            kube.delete("configmap", IDENTITY, NAMESPACE)
            if before:
                kube.apply([{name: before[name] for name in ("apiVersion", "kind", "immutable", "data")} | METADATA])
    finally:
        server.stop()


def view(kind: str) -> str:
    return kind.replace("_", "-")


def bundle(home: Home) -> list[Object]:
    """Of what bootstrap prints, what only this cluster has and the further kinds: for other tests it is another cluster."""
    token = home.directory / "token"
    token.write_text(live.READ)
    arguments = ("--api-url", home.proxy.url, "--interval", INTERVAL, "--token-file", str(token))
    printed = list(yaml.safe_load_all(cli("bootstrap", CLUSTER, *arguments, url=home.server.url)))
    views = {view(kind) for kind in KINDS}
    chosen = [each for each in printed if each["metadata"]["name"] in views or each["kind"] in ("Secret", "ConfigMap")]
    assert len(chosen) == 2 + 2 * len(KINDS)
    return chosen


def document(kind: str) -> Object:
    found: Object = json.loads((EXAMPLES / f"{kind}.document.json").read_text())
    return found


def holds(found: Any, expected: Any) -> bool:
    """Everything that is expected is there; the API server may have added defaults."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(name in found and holds(found[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(holds, found, expected))
    return bool(found == expected)


def objects(home: Home, kind: str) -> list[Object]:
    """What the present answer must have become."""
    inputs = json.loads(home.answer(DNS, view(kind)))["inputs"]
    return [each for item in inputs for each in expectations.BY_KIND[kind](item)]


def arrived(home: Home, kind: str) -> list[Object]:
    wanted = objects(home, kind)
    for each in wanted:
        metadata = each["metadata"]
        as_wanted = functools.partial(holds, expected=each)
        home.kube.wait_for_object(each["kind"], metadata["name"], metadata["namespace"], where=as_wanted)
    return wanted


def assigned(home: Home, kind: str) -> Object:
    """The example's document, in a namespace that is there, and what it became."""
    given = document(kind)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": given["target_namespace"]}}
    home.kube.apply([namespace])
    home.call("POST", f"/{kind}", given)
    home.call("PUT", f"/clusters/{CLUSTER}/{kind}/{given['id']}", {})
    assert arrived(home, kind)
    return given


def removed(home: Home, kind: str) -> None:
    """Unassigned from the cluster, its objects go."""
    gone = objects(home, kind)
    assert gone
    home.call("DELETE", f"/clusters/{CLUSTER}/{kind}/{document(kind)['id']}")
    for each in gone:
        home.kube.wait_gone(each["kind"], each["metadata"]["name"], each["metadata"]["namespace"])


def test_network_policies(extended: Home, kube: Kube) -> None:
    given = assigned(extended, "network_policies")
    rules = [{"from_namespace": "prometheus", "port": 9090}, {"from_namespace": "grafana", "port": 3000}]
    extended.call("PATCH", f"/network_policies/{given['id']}", {"ingress_rules": rules})
    arrived(extended, "network_policies")
    extended.call("PATCH", f"/network_policies/{given['id']}", {"ingress_rules": []})
    closed = kube.wait_for_object(
        "networkpolicy", given["id"], given["target_namespace"], where=lambda found: not found["spec"].get("ingress")
    )
    assert closed["spec"]["policyTypes"] == ["Ingress"]  # and so nobody is let in
    removed(extended, "network_policies")


def test_resource_quotas_with_their_limit_ranges(extended: Home, kube: Kube) -> None:
    given = assigned(extended, "resource_quotas")
    assert kube.get("limitrange", given["id"], given["target_namespace"])
    nothing = {"cpu": None, "memory": None}
    change = {"hard": {"pods": "10"}, "container_defaults": nothing, "container_requests": nothing}
    extended.call("PATCH", f"/resource_quotas/{given['id']}", change)
    (quota,) = arrived(extended, "resource_quotas")
    assert quota["spec"]["hard"]["pods"] == "10"
    kube.wait_gone("limitrange", given["id"], given["target_namespace"])
    removed(extended, "resource_quotas")


def test_external_secrets_with_the_store_of_the_cluster(extended: Home) -> None:
    given = assigned(extended, "external_secrets")
    extended.call("PATCH", f"/clusters/{CLUSTER}/external_secrets/{given['id']}", {"store": "edge-vault"})
    (secret,) = arrived(extended, "external_secrets")
    assert secret["spec"]["secretStoreRef"] == {"kind": "ClusterSecretStore", "name": "edge-vault"}
    extended.call("PATCH", f"/external_secrets/{given['id']}", {"refresh_interval": "5m"})
    arrived(extended, "external_secrets")
    removed(extended, "external_secrets")


def test_ingress_routes_with_the_host_of_the_cluster(extended: Home) -> None:
    given = assigned(extended, "ingress_routes")
    host = "podinfo.extended.example.com"
    extended.call("PATCH", f"/clusters/{CLUSTER}/ingress_routes/{given['id']}", {"host": host})
    (ingress,) = arrived(extended, "ingress_routes")
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == [host]
    paths = [{"path": "/", "service": "podinfo", "port": 9898}, {"path": "/api", "service": "backend", "port": 80}]
    extended.call("PATCH", f"/ingress_routes/{given['id']}", {"paths": paths, "cluster_issuer": ""})
    arrived(extended, "ingress_routes")
    removed(extended, "ingress_routes")
