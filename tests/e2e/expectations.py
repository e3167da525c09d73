"""What each view must become in the cluster, said in Python, without a look at the templates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from flux_resourceset.kinds import helm_paths

Input = dict[str, Any]
Object = dict[str, Any]

FLUX = "flux-system"
RBAC = "rbac.authorization.k8s.io"
OWNER = "resourceset.fluxcd.controlplane.io"
DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUES_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")  # of a ConfigMap, and of valuesFrom
_TYPED = re.compile(r"true|false|0|-?[1-9][0-9]{0,17}")  # the rule of deploy/cluster/README.md


def manifest(api: str, kind: str, name: str, namespace: str | None = None, **rest: Any) -> Object:
    scope = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **scope}, **rest}


def annotated(item: Input, found: Object, **annotations: str) -> Object:
    found["metadata"]["annotations"] = {**annotations, "event.toolkit.fluxcd.io/digest": item["digest"]}
    return found


def namespace(item: Input) -> list[Object]:
    found = annotated(item, manifest("v1", "Namespace", item["id"]), **item["annotations"])
    if not item["allow_prune"]:
        found["metadata"]["annotations"]["fluxcd.controlplane.io/prune"] = "disabled"
    if item["labels"]:
        found["metadata"]["labels"] = dict(item["labels"])
    return [found]


def rolebinding(item: Input) -> list[Object]:
    subjects = []
    for given in item["subjects"]:
        own = {"namespace": given["namespace"]} if given["kind"] == "ServiceAccount" else {"apiGroup": RBAC}
        subjects.append({"kind": given["kind"], "name": given["name"], **own})
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": item["role"]}
    found = manifest(f"{RBAC}/v1", "ClusterRoleBinding", item["id"], roleRef=role, subjects=subjects)
    return [annotated(item, found, **{"fluxcd.controlplane.io/force": "enabled"})]


# Components


def component(item: Input) -> list[Object]:
    """Without the ConfigMap of the patches and the ways they are taken from it: `patches` reads those."""
    if not item["enabled"]:
        return []
    return _helm(item) if item["type"] == "helm" else _kustomize(item)


def _path(item: Input) -> str:
    path: str = item["component_path"]
    return f"{path.removesuffix('/')}/{item['cluster']['environment']}" if item["cluster_env_enabled"] else path


def _waits(item: Input) -> Object:
    names = [{"name": f"platform-{id}"} for id in item["wait_for"]]
    return {"dependsOn": names} if names else {}


def _helm(item: Input) -> list[Object]:
    source = f"charts-{item['id']}"
    url = item["source"]["oci_url"]
    oci = {"type": "oci"} if url.startswith("oci://") else {}
    version = item["source"]["oci_tag"]
    if version == "latest":
        version = item["component_version"]
    chart = {
        "chart": _path(item), "interval": "10m", "sourceRef": {"kind": "HelmRepository", "name": source, "namespace": FLUX},
        **({} if version == "latest" else {"version": version}),
    }  # fmt: skip
    remediation = {"remediation": {"retries": 3}}
    spec = {
        "interval": "10m", "releaseName": item["id"], "targetNamespace": item["id"], "chart": {"spec": chart},
        "install": {"createNamespace": True, **remediation}, "upgrade": remediation, "driftDetection": {"mode": "enabled"},
        **_waits(item),
    }  # fmt: skip
    return [
        manifest("source.toolkit.fluxcd.io/v1", "HelmRepository", source, FLUX, spec={"interval": "30m", "url": url, **oci}),
        annotated(item, manifest("helm.toolkit.fluxcd.io/v2", "HelmRelease", f"platform-{item['id']}", FLUX, spec=spec)),
    ]


def _kustomize(item: Input) -> list[Object]:
    source, url, tag = f"charts-{item['id']}", item["source"]["oci_url"], item["source"]["oci_tag"]
    git = not url.startswith("oci://")
    kind = "GitRepository" if git else "OCIRepository"
    artifact = {"interval": "10m", "url": url, **({} if git and tag == "latest" else {"ref": {"tag": tag}})}
    spec = {
        "interval": "10m", "retryInterval": "1m", "timeout": "5m", "prune": True, "wait": True, "path": f"./{_path(item)}",
        "sourceRef": {"kind": kind, "name": source}, **_waits(item),
    }  # fmt: skip
    return [
        manifest("source.toolkit.fluxcd.io/v1", kind, source, FLUX, spec=artifact),
        annotated(item, manifest("kustomize.toolkit.fluxcd.io/v1", "Kustomization", f"platform-{item['id']}", FLUX, spec=spec)),
    ]


def as_helm_takes_it(value: Any) -> Any:
    """What a chart gets of a patch value."""
    if isinstance(value, str) and _TYPED.fullmatch(value):
        return json.loads(value)
    return value


def as_a_variable(value: Any) -> str:
    """What a kustomize component gets of a patch value."""
    return value if isinstance(value, str) else json.dumps(value)


def taken_by_helm(data: Object, entry: Object, key: str) -> Any:
    """How helm-controller reads an entry of valuesFrom."""
    text = data[entry["valuesKey"]]
    assert _VALUES_KEY.fullmatch(entry["valuesKey"]), entry
    if "targetPath" not in entry:
        value = json.loads(text)
        for step in helm_paths.steps(key):
            (value,) = (item for name, item in value.items() if name == step)
        return value
    assert entry["targetPath"] == key
    if entry.get("literal"):
        return text
    assert _TYPED.fullmatch(text), f"{text!r} would be read in the grammar of --set"
    return json.loads(text)


def owned(view: str, found: Object) -> Object:
    """As Flux Operator marks what it makes."""
    metadata = found["metadata"]
    marks = {f"{OWNER}/name": view, f"{OWNER}/namespace": FLUX}
    return {**found, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **marks}}}


def by_identity(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in objects}


def without_patches(view: str, objects: list[Object], inputs: list[Object]) -> list[Object]:
    """The objects without what patches made, after each patch was found to arrive as it was given."""
    found = by_identity(objects)
    for item in inputs:
        if item["enabled"] and item["patches"]:
            kind = "HelmRelease" if item["type"] == "helm" else "Kustomization"
            spec = found[kind, FLUX, f"platform-{item['id']}"]["spec"]
            name = (spec["valuesFrom"][0] if item["type"] == "helm" else spec["postBuild"]["substituteFrom"][0])["name"]
            config_map = found.pop(("ConfigMap", FLUX, name))
            _check_config_map(view, config_map, item)
            if item["type"] == "helm":
                _check_values(spec.pop("valuesFrom"), config_map, item["patches"])
            else:
                _check_variables(spec.pop("postBuild"), config_map, item["patches"])
    return list(found.values())


def _check_config_map(view: str, found: Object, item: Object) -> None:
    name = found["metadata"]["name"]
    assert DNS_NAME.fullmatch(name), name
    assert name.startswith(f"values-{item['id']}-")
    assert len(name) <= 253
    bare = {key: value for key, value in found.items() if key != "data"}
    expected = manifest("v1", "ConfigMap", name, FLUX)
    expected["metadata"]["labels"] = {"reconcile.fluxcd.io/watch": "Enabled"}
    assert bare == owned(view, expected)
    assert all(isinstance(text, str) for text in found["data"].values())


def _check_values(entries: list[Object], config_map: Object, patches: Object) -> None:
    assert {(entry["kind"], entry["name"]) for entry in entries} == {("ConfigMap", config_map["metadata"]["name"])}
    named = zip(sorted(patches), entries, strict=True)  # templates go through maps in the order of their keys
    taken = {key: taken_by_helm(config_map["data"], entry, key) for key, entry in named}
    wanted = {key: as_helm_takes_it(value) for key, value in patches.items()}
    assert taken == wanted
    assert {key: type(value) is bool for key, value in taken.items()} == {
        key: type(value) is bool for key, value in wanted.items()
    }
    assert len(entries) == len(patches) == len(config_map["data"])


def _check_variables(post_build: Object, config_map: Object, patches: Object) -> None:
    assert post_build == {"substituteFrom": [{"kind": "ConfigMap", "name": config_map["metadata"]["name"]}]}
    data = config_map["data"]
    assert data.keys() == patches.keys()
    for key, value in patches.items():
        if isinstance(value, float):
            assert float(data[key]) == value
        else:
            assert data[key] == as_a_variable(value)


# The kinds of examples/kinds


def network_policy(item: Input) -> list[Object]:
    rules = [
        {
            "from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": rule["from_namespace"]}}}],
            "ports": [{"port": rule["port"]}],
        }
        for rule in item["ingress_rules"]
    ]
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": rules}
    found = manifest("networking.k8s.io/v1", "NetworkPolicy", item["id"], item["target_namespace"], spec=spec)
    return [annotated(item, found)]


def resource_quota(item: Input) -> list[Object]:
    def made(kind: str, spec: Object) -> Object:
        return annotated(item, manifest("v1", kind, item["id"], item["target_namespace"], spec=spec))

    limits = {"default": item["container_defaults"], "defaultRequest": item["container_requests"]}
    given = {name: value for name, value in limits.items() if value}
    ranges = [made("LimitRange", {"limits": [{"type": "Container", **given}]})] if given else []
    return [made("ResourceQuota", {"hard": item["hard"]}), *ranges]


def external_secret(item: Input) -> list[Object]:
    data = [
        {"secretKey": entry["name"], "remoteRef": {"key": entry["remote_key"], **_property(entry)}} for entry in item["entries"]
    ]
    spec = {
        "refreshInterval": item["refresh_interval"], "secretStoreRef": {"kind": item["store_kind"], "name": item["store"]},
        "target": {"name": item["id"], "creationPolicy": "Owner"}, "data": data,
    }  # fmt: skip
    found = manifest("external-secrets.io/v1", "ExternalSecret", item["id"], item["target_namespace"], spec=spec)
    return [annotated(item, found)]


def _property(entry: Input) -> Object:
    return {"property": entry["remote_property"]} if entry["remote_property"] else {}


def ingress_route(item: Input) -> list[Object]:
    paths = [
        {
            "path": path["path"], "pathType": path["path_type"],
            "backend": {"service": {"name": path["service"], "port": {"number": path["port"]}}},
        }
        for path in item["paths"]
    ]  # fmt: skip
    spec = {
        "ingressClassName": item["ingress_class"], "tls": [{"hosts": [item["host"]], "secretName": item["tls_secret"]}],
        "rules": [{"host": item["host"], "http": {"paths": paths}}],
    }  # fmt: skip
    issuer = {"cert-manager.io/cluster-issuer": item["cluster_issuer"]} if item["cluster_issuer"] else {}
    return [
        annotated(item, manifest("networking.k8s.io/v1", "Ingress", item["id"], item["target_namespace"], spec=spec), **issuer)
    ]


BY_KIND: dict[str, Callable[[Input], list[Object]]] = {
    "platform_components": component,
    "namespaces": namespace,
    "rolebindings": rolebinding,
    "network_policies": network_policy,
    "resource_quotas": resource_quota,
    "external_secrets": external_secret,
    "ingress_routes": ingress_route,
}
