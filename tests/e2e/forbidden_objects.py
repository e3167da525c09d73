"""What no cluster of a fleet takes: manifests, each with a twin that it takes, and blueprints that reach too far."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .kube import Object

DIGEST = f"sha256:{'ab' * 32}"
RBAC, FLUX = "rbac.authorization.k8s.io", "toolkit.fluxcd.io"


class Case(NamedTuple):
    name: str
    manifest: Object
    refused: bool


def cases(namespace: str) -> Iterator[Case]:
    """Manifests in the namespace of a tenant, or of the whole cluster, and whether they are refused."""
    yield from _images(namespace)
    yield from _releases(namespace)
    yield from _bindings(namespace)
    yield from _namespaces()
    yield from _accounts(namespace)


def manifest(version: str, kind: str, name: str, namespace: str | None = None, **content: object) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **place}, **content}


# Images


def _images(namespace: str) -> Iterator[Case]:
    for image, refused in (
        ("shop:latest", True), ("shop", True), ("registry.example.com:5000/shop", True), (f"shop:latest@{DIGEST}", True),
        ("shop:v1", False), ("registry.example.com:5000/shop:v1", False), (f"shop@{DIGEST}", False), ("shop:latest-1", False),
        ("latest:v1", False),
    ):  # fmt: skip
        yield Case(f"Deployment of {image}", _workload("apps/v1", "Deployment", namespace, image), refused)
    for version, kind in _WORKLOADS:
        for image, refused in (("shop:latest", True), ("shop:v1", False)):
            yield Case(f"{kind} of {image}", _workload(version, kind, namespace, image), refused)
    for image, refused in (("shop", True), ("shop:v1", False)):
        pod = _workload("v1", "Pod", namespace, "shop:v1")
        pod["spec"]["initContainers"] = [{"name": "first", "image": image}]
        yield Case(f"Pod that begins with {image}", pod, refused)
    yield Case("latest in the namespace of Flux", _workload("apps/v1", "Deployment", "flux-system", "shop:latest"), False)


_WORKLOADS = (
    ("v1", "Pod"), ("v1", "PodTemplate"), ("v1", "ReplicationController"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("batch/v1", "CronJob"),
)  # fmt: skip


def _workload(version: str, kind: str, namespace: str, image: str) -> Object:
    labels = {"app": "shop"}
    restart = "Never" if version == "batch/v1" else "Always"
    pod: Object = {"containers": [{"name": "shop", "image": image}], "restartPolicy": restart}
    template = {"metadata": {"labels": labels}, "spec": pod}
    if kind == "PodTemplate":
        return manifest(version, kind, "shop", namespace, template=template)
    spec: Object = {"template": template}
    if kind == "Pod":
        spec = pod
    elif kind == "CronJob":
        spec = {"schedule": "0 4 * * *", "jobTemplate": {"spec": spec}}
    elif version == "apps/v1":
        spec["selector"] = {"matchLabels": labels}
    return manifest(version, kind, "shop", namespace, spec=spec)


def _releases(namespace: str) -> Iterator[Case]:
    for image, refused in (("shop:latest", True), ("shop", True), ("shop:v1", False), (f"shop@{DIGEST}", False)):
        yield Case(f"HelmRelease of {image}", _release(namespace, {"image": image}), refused)
    yield Case("HelmRelease with the parts of an image", _release(namespace, {"image": {"tag": "latest"}}), False)
    yield Case("HelmRelease of Flux itself with latest", _release("flux-system", {"image": "shop:latest"}), True)
    yield Case("HelmRelease without image", _release(namespace, {}), False)


def _release(namespace: str, values: Object, account: str | None = "tenant") -> Object:
    chart = {"spec": {"chart": "shop", "sourceRef": {"kind": "HelmRepository", "name": "charts"}}}
    return _of_flux(f"helm.{FLUX}/v2", "HelmRelease", namespace, account, interval="10m", chart=chart, values=values)


# Bindings and namespaces


def _bindings(namespace: str) -> Iterator[Case]:
    for role, refused in (("cluster-admin", True), ("view", False)):
        yield Case(f"{role} everywhere", _binding("ClusterRoleBinding", "shop", role), refused)
        yield Case(f"{role} in a namespace", _binding("RoleBinding", "shop", role, namespace), refused)
    yield Case("the installer of Flux", _binding("ClusterRoleBinding", "flux-operator", "cluster-admin"), False)
    yield Case("its name in a namespace", _binding("RoleBinding", "flux-operator", "cluster-admin", namespace), True)


def _binding(kind: str, name: str, role: str, namespace: str | None = None) -> Object:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": "tenant", "namespace": "shop"}]
    return manifest(f"{RBAC}/v1", kind, name, namespace, roleRef=reference, subjects=subjects)


def _namespaces() -> Iterator[Case]:
    for labels, refused in (
        ({}, True), ({"tenant": "shop"}, True), ({"environment": "dev"}, True), ({"tenant": "shop", "environment": ""}, True),
        ({"tenant": "shop", "environment": "dev"}, False),
    ):  # fmt: skip
        made = manifest("v1", "Namespace", "shop")
        made["metadata"] |= {"labels": labels} if labels else {}
        yield Case(f"namespace with labels {labels}", made, refused)
    yield Case("namespace of Kubernetes", manifest("v1", "Namespace", "kube-shop"), False)


# Accounts


def _accounts(namespace: str) -> Iterator[Case]:
    source = {"kind": "GitRepository", "name": "platform-blueprints"}
    synced: Object = {"interval": "10m", "prune": True, "sourceRef": source}
    for account, refused in ((None, True), ("default", True), ("tenant", False)):
        named = f"as {account or 'nobody'}"
        yield Case(f"HelmRelease {named}", _release(namespace, {}, account), refused)
        yield Case(f"ResourceSet {named}", _set(namespace, account), refused)
        made = _of_flux(f"kustomize.{FLUX}/v1", "Kustomization", namespace, account, **synced)
        yield Case(f"Kustomization {named}", made, refused)
    yield Case("ResourceSet of Flux itself", _set("flux-system", None), False)


def _set(namespace: str, account: str | None) -> Object:
    resources = [manifest("v1", "ConfigMap", "shop", namespace)]
    return _of_flux("fluxcd.controlplane.io/v1", "ResourceSet", namespace, account, resources=resources)


def _of_flux(version: str, kind: str, namespace: str, account: str | None, **spec: object) -> Object:
    return manifest(version, kind, "shop", namespace, spec={**spec, **({"serviceAccountName": account} if account else {})})


# Blueprints


class Intruder(NamedTuple):
    """A blueprint that wants more than its namespace, and who says no to it."""

    name: str
    objects: tuple[Object, ...]  # that its ResourceSet makes
    refusal: str
    beside: tuple[Object, ...] = ()  # beside the ResourceSet
    account: bool = True  # whether the ResourceSet names one


_ROLE = manifest(f"{RBAC}/v1", "ClusterRole", "grasping", rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
INTRUDERS = (
    Intruder("elsewhere", (manifest("v1", "ConfigMap", "elsewhere", "default", data={}),), "forbidden"),
    Intruder("with-a-role", (_ROLE,), "forbidden"),
    Intruder("with-a-namespace", (manifest("v1", "Namespace", "grasping"),), "forbidden"),
    Intruder("with-a-binding", (_binding("RoleBinding", "grasping", "edit", "${namespace}"),), "forbidden"),
    Intruder("with-a-set", (_set("${namespace}", "tenant"),), "forbidden"),
    Intruder("as-nobody", (manifest("v1", "ConfigMap", "as-nobody", "${namespace}"),), "tenant-accounts", account=False),
    Intruder("release-as-nobody", (_release("${namespace}", {}, None),), "tenant-accounts"),
    Intruder("beside", (), "forbidden", (manifest("v1", "ConfigMap", "beside"),)),
)


def write_blueprint(apps: Path, intruder: Intruder) -> None:
    """As the sample's blueprint, but for what it makes."""
    sample, folder = apps / "standard-service", apps / intruder.name
    folder.mkdir()
    for name in ("inputs.schema.json", "example.json"):
        (folder / name).write_text((sample / name).read_text())
    head, found, _ = (sample / "resourceset.yaml").read_text().partition("  resourcesTemplate: |\n")
    assert found
    assert "  serviceAccountName: tenant" in head
    if not intruder.account:
        head = head.replace("  serviceAccountName: tenant", "  # serviceAccountName: tenant")
    made = copy.deepcopy(intruder.objects) or (manifest("v1", "ConfigMap", "own", "${namespace}"),)
    (folder / "resourceset.yaml").write_text(f"{head}  resources: {json.dumps(made)}\n")
    for number, each in enumerate(intruder.beside):
        (folder / f"{number}.yaml").write_text(json.dumps(each))
    listed = ["resourceset.yaml", *(f"{number}.yaml" for number in range(len(intruder.beside)))]
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": listed}
    (folder / "kustomization.yaml").write_text(json.dumps(kustomization))
