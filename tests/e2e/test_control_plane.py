"""The control plane itself: ResourceSets are rendered and collected, and Kubernetes cleans up behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .kube import NAMESPACE, Kube, KubectlFailed, Object

OPERATOR_API = "fluxcd.controlplane.io/v1"


def provider(name: str, annotations: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    spec = {"type": "Static", "defaultValues": values}
    return {
        "apiVersion": OPERATOR_API,
        "kind": "ResourceSetInputProvider",
        "metadata": metadata,
        "spec": spec,
    }


def resource_set(name: str, annotations: dict[str, str], *resources: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    inputs = [{"kind": "ResourceSetInputProvider", "name": name}]
    spec = {"inputsFrom": inputs, "resources": list(resources)}
    return {"apiVersion": OPERATOR_API, "kind": "ResourceSet", "metadata": metadata, "spec": spec}


def config_map(name: str, data: dict[str, str], **metadata: Any) -> dict[str, Any]:
    full = {"namespace": NAMESPACE, "name": name, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": full, "data": data}


def test_a_static_resource_set_is_rendered_changed_and_collected(
    kube: Kube,
    poll_annotations: dict[str, str],
) -> None:
    def greets(text: str) -> Callable[[Object], bool]:
        return lambda found: bool(found["data"] == {"greeting": text})

    rendered = config_map("static", {"greeting": "<< inputs.greeting >>"})
    kube.apply(
        [
            provider("static", poll_annotations, {"greeting": "hello"}),
            resource_set("static", poll_annotations, rendered),
        ]
    )
    kube.wait_ready("resourceset", "static")
    kube.wait_for_object("configmap", "static", NAMESPACE, where=greets("hello"))

    kube.apply([provider("static", poll_annotations, {"greeting": "changed"})])
    kube.wait_for_object("configmap", "static", NAMESPACE, where=greets("changed"))

    kube.delete("resourceset", "static", NAMESPACE)
    kube.wait_gone("configmap", "static", NAMESPACE)
    kube.delete("resourcesetinputprovider", "static", NAMESPACE)


def test_a_deleted_namespace_goes_with_all_that_is_in_it(kube: Kube) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "passing"}}
    kube.apply([namespace, config_map("inside", {"a": "b"}, namespace="passing")])
    kube.wait_for_object("serviceaccount", "default", "passing")
    kube.delete("namespace", "passing", wait=False)
    kube.wait_gone("namespace", "passing")


def test_an_object_goes_with_its_owner(kube: Kube) -> None:
    kube.apply([config_map("owner", {})])
    owner = kube.get("configmap", "owner", NAMESPACE)
    assert owner
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    kube.apply([config_map("owned", {}, ownerReferences=[reference])])
    kube.delete("configmap", "owner", NAMESPACE)
    kube.wait_gone("configmap", "owned", NAMESPACE)


def test_an_invalid_object_is_refused_by_the_real_schema(kube: Kube) -> None:
    valid = provider("checked", {}, {"greeting": "hello"})
    kube.apply([valid], dry_run=True)
    assert kube.get("resourcesetinputprovider", "checked", NAMESPACE) is None
    with pytest.raises(KubectlFailed, match="10000"):
        kube.apply([{**valid, "spec": {"type": "Static", "filter": {"limit": 10001}}}], dry_run=True)
