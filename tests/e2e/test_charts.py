"""The chart and artifact sources: each way in which Flux fetches ends in an object with the given values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .charts import PODINFO, SHOWN, Charts
from .kube import Kube, Object

NAMESPACE = "chart-sources"
INTERVAL = "2s"


@pytest.fixture(autouse=True)
def namespace(kube: Kube) -> Iterator[None]:
    kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    yield
    for kind in ("helmrelease", "kustomization", "helmrepository", "ocirepository"):
        kube.run("delete", kind, "--all", "--namespace", NAMESPACE)


def flux(group: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    api = {"source": "v1", "kustomize": "v1", "helm": "v2"}[group]
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {"interval": INTERVAL, **spec}
    return {
        "apiVersion": f"{group}.toolkit.fluxcd.io/{api}",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def release(name: str, source: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    return flux("helm", "HelmRelease", name, releaseName=name, values=values, **source)


def chart_of(name: str, version: str, repository: str) -> dict[str, Any]:
    source = {"kind": "HelmRepository", "name": repository}
    spec = {"chart": name, "version": version, "interval": INTERVAL, "sourceRef": source}
    return {"chart": {"spec": spec}}


def assert_shown(kube: Kube, name: str, version: str, values: dict[str, Any]) -> Object:
    def as_given(found: Object) -> bool:
        data = found["data"]
        fetched = data["version"].partition("+")[0]  # Flux adds +<digest> to one that came by chartRef
        return bool(fetched == version and json.loads(data["values"]) == values)

    return kube.wait_for_object("configmap", f"{name}-values", NAMESPACE, where=as_given)


def deployment_with(kube: Kube, *, replicas: int) -> Object:
    def as_given(found: Object) -> bool:
        return bool(found["spec"]["replicas"] == replicas)

    return kube.wait_for_object("deployment", PODINFO, NAMESPACE, where=as_given)


def test_a_release_from_the_http_repository_shows_its_values_and_version(kube: Kube, charts: Charts) -> None:
    repository = flux("source", "HelmRepository", "http", url=charts.http_url)
    values = {"number": 3, "text": "3", "hostile": 'a: {{ b }} "c", # ü'}
    kube.apply([repository, release("http", chart_of(SHOWN, "1.0.0", "http"), values)])
    assert_shown(kube, "http", "1.0.0", values)
    kube.apply([release("http", chart_of(SHOWN, "2.0.0", "http"), values)])
    assert_shown(kube, "http", "2.0.0", values)


def test_a_release_from_the_oci_repository_shows_its_values(kube: Kube, charts: Charts) -> None:
    # Unlike an OCIRepository, a HelmRepository must be told to speak plain HTTP to a loopback registry.
    repository = flux("source", "HelmRepository", "oci", type="oci", url=charts.oci_url, insecure=True)
    kube.apply([repository, release("oci", chart_of(SHOWN, "1.1.0", "oci"), {"a": 1})])
    assert_shown(kube, "oci", "1.1.0", {"a": 1})


def test_a_release_from_a_chart_reference_shows_its_values(kube: Kube, charts: Charts) -> None:
    url = f"{charts.oci_url}/{SHOWN}"
    source = flux("source", "OCIRepository", "reference", url=url, ref={"tag": "1.0.0"})
    chart_layer = {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"}
    source["spec"]["layerSelector"] = chart_layer
    reference = {"chartRef": {"kind": "OCIRepository", "name": "reference"}}
    kube.apply([source, release("reference", reference, {"a": 1})])
    assert_shown(kube, "reference", "1.0.0", {"a": 1})


def test_a_release_with_a_deployment_becomes_ready_and_follows_its_values(kube: Kube, charts: Charts) -> None:
    repository = flux("source", "HelmRepository", "http", url=charts.http_url)
    chart = chart_of(PODINFO, "1.0.0", "http")
    kube.apply([repository, release("podinfo", chart, {"replicaCount": 2})])
    kube.wait_ready("helmrelease", "podinfo", NAMESPACE)
    deployment_with(kube, replicas=2)

    kube.apply([release("podinfo", chart, {"replicaCount": 3, "ui": {"color": "#ff0000", "message": "hi"}})])
    changed = deployment_with(kube, replicas=3)
    environment = changed["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {each["name"]: each["value"] for each in environment} == {
        "PODINFO_UI_COLOR": "#ff0000",
        "PODINFO_UI_MESSAGE": "hi",
    }
    kube.wait_ready("helmrelease", "podinfo", NAMESPACE)


def test_a_kustomization_from_an_artifact_follows_its_moved_tag(kube: Kube, charts: Charts) -> None:
    def directories(text: str) -> dict[str, dict[str, str]]:
        data = {"greeting": text}
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "from-artifact"},
            "data": data,
        }
        return {"deploy/prod": {"config.yaml": json.dumps(config)}}

    def greeting(found: Object) -> str:
        return str(found["data"]["greeting"])

    url = charts.push_kustomization("apps/demo", "stable", directories("first"))
    source = flux("source", "OCIRepository", "demo", url=url, ref={"tag": "stable"})
    origin = {"kind": "OCIRepository", "name": "demo"}
    settings = {"path": "./deploy/prod", "prune": True, "wait": True, "targetNamespace": NAMESPACE}
    kube.apply([source, flux("kustomize", "Kustomization", "demo", sourceRef=origin, **settings)])
    kube.wait_for_object("configmap", "from-artifact", NAMESPACE, where=lambda o: greeting(o) == "first")

    charts.push_kustomization("apps/demo", "stable", directories("second"))
    kube.wait_for_object("configmap", "from-artifact", NAMESPACE, where=lambda o: greeting(o) == "second")
    kube.delete("kustomization", "demo", NAMESPACE)
    kube.wait_gone("configmap", "from-artifact", NAMESPACE)
