"""What no object of a cluster may be, as the admission policies of its base judge it: images, cluster-admin, labels, accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from flux_resourceset.repositories.manifests import at, items

ACCOUNT = "tenant"  # as which Flux acts in the namespace of a tenant
LABELS = ("tenant", "environment")  # of a namespace

# Whom the admission policies leave alone: a cluster must be able to repair itself.
_UNJUDGED_IMAGES = frozenset({"kube-system", "kube-public", "kube-node-lease", "flux-system"})
_INSTALLED_NAMESPACES = frozenset({"default", "flux-system"})
INSTALLED_BINDINGS = frozenset({"cluster-admin", "cluster-reconciler-flux-system", "flux-operator"})

_NAMED = re.compile(r"object\.metadata\.name\s+in\s+\[([^\]]*)\]")  # in the expression of a policy that leaves some alone
_LATEST = re.compile(r":latest(?:@|\Z)")
_TAGGED = re.compile(r":[^/]+\Z")  # a colon before a slash is that of a port

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_RBAC, _HELM, _ADMISSION = "rbac.authorization.k8s.io", "helm.toolkit.fluxcd.io", "admissionregistration.k8s.io"
_CLUSTER_ADMIN = "cluster-admin"  # the role, and the policy that keeps others from it
_WORKLOADS = {  # where each has its pod
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        (
            ("", "ReplicationController"),
            ("batch", "Job"),
            *(("apps", f"{kind}Set") for kind in ("Replica", "Stateful", "Daemon")),
        ),
        ("spec", "template", "spec"),
    ),
    ("apps", "Deployment"): ("spec", "template", "spec"),
}
_OF_FLUX = {("fluxcd.controlplane.io", "ResourceSet"), (_HELM, "HelmRelease"), ("kustomize.toolkit.fluxcd.io", "Kustomization")}


class Fault(NamedTuple):
    steps: tuple[str | int, ...]  # to what is wrong, in the object
    message: str


def faults(manifest: Mapping[str, Any], admins: frozenset[str] = INSTALLED_BINDINGS) -> Iterator[Fault]:
    """Of any object; `admins` are the ClusterRoleBindings that may give everything."""
    for place, item in enumerate(items(manifest) or ()):
        if isinstance(item, dict):
            yield from (Fault(("items", place, *fault.steps), fault.message) for fault in faults(item, admins))
    group, kind = _sort(manifest)
    yield from _of_images(manifest, group, kind)
    if group == _RBAC and kind in ("RoleBinding", "ClusterRoleBinding"):
        yield from _of_binding(manifest, kind, admins)
    if (group, kind) == ("", "Namespace"):
        yield from _of_namespace(manifest)


def faults_of_tenant(manifest: Mapping[str, Any], namespace: str) -> Iterator[Fault]:
    """The same of an object that a tenant's ResourceSet makes."""
    yield from faults(manifest)
    fault = account_fault(manifest, namespace)
    if fault is not None:
        yield fault


def account_fault(manifest: Mapping[str, Any], namespace: str) -> Fault | None:
    """In the namespace of a tenant Flux acts as the tenant."""
    inside = at(manifest, "metadata", "namespace") in (None, namespace)
    if not inside or _sort(manifest) not in _OF_FLUX or at(manifest, "spec", "serviceAccountName") == ACCOUNT:
        return None
    return Fault(("spec", "serviceAccountName"), f"spec.serviceAccountName must be {ACCOUNT}, or it acts with all rights")


def admins_of(manifest: Mapping[str, Any]) -> frozenset[str] | None:
    """The ClusterRoleBindings that the policy of a cluster leaves alone; None if this is not that policy."""
    if _sort(manifest) != (_ADMISSION, "ValidatingAdmissionPolicy") or at(manifest, "metadata", "name") != _CLUSTER_ADMIN:
        return None
    conditions = at(manifest, "spec", "matchConditions")
    texts = [str(at(each, "expression") or "") for each in (conditions if isinstance(conditions, list) else ())]
    lists = [found[1] for text in texts for found in _NAMED.finditer(text)]
    return frozenset(name for each in lists for name in re.findall(r"""["']([^"']+)["']""", each))


def image_fault(image: str) -> str | None:
    """Why it is not known what would run."""
    if _LATEST.search(image):
        return "is latest, which is another image tomorrow; name a version and its digest"
    if "@" not in image and not _TAGGED.search(image):
        return "has neither tag nor digest, which means latest; name a version and its digest"
    return None


def _sort(manifest: Mapping[str, Any]) -> tuple[str, str]:
    version = manifest.get("apiVersion")
    return str(version or "").rpartition("/")[0], str(manifest.get("kind") or "")


def _text(manifest: Mapping[str, Any], *steps: str) -> str:
    return str(at(manifest, *steps) or "")


def _of_images(manifest: Mapping[str, Any], group: str, kind: str) -> Iterator[Fault]:
    if (group, kind) == (_HELM, "HelmRelease"):
        steps: tuple[str, ...] = ("spec", "values", "image")
        image = at(manifest, *steps)
        if isinstance(image, str) and (why := image_fault(image)):
            yield Fault(steps, f"values.image {image!r} {why}")
    elif _text(manifest, "metadata", "namespace") not in _UNJUDGED_IMAGES:
        yield from _of_pod(manifest, _WORKLOADS.get((group, kind), ("spec", "template", "spec")), (group, kind) in _WORKLOADS)


def _of_pod(manifest: Mapping[str, Any], steps: tuple[str, ...], is_workload: bool) -> Iterator[Fault]:
    """Other kinds may have a pod as well, and containers in it that only change those of a pod elsewhere."""
    for name in _CONTAINERS:
        containers = at(manifest, *steps, name)
        for place, container in enumerate(containers if isinstance(containers, list) else ()):
            image = at(container, "image")
            where: tuple[str | int, ...] = (*steps, name, place, "image")
            if isinstance(image, str) and (why := image_fault(image)):
                yield Fault(where, f"image {image!r} {why}")
            elif is_workload and not isinstance(image, str):
                yield Fault(where, "a container has no image; name one with its version and digest")


def _of_binding(manifest: Mapping[str, Any], kind: str, admins: frozenset[str]) -> Iterator[Fault]:
    role = (at(manifest, "roleRef", "kind"), at(manifest, "roleRef", "name"))
    installed = kind == "ClusterRoleBinding" and _text(manifest, "metadata", "name") in admins
    if role == ("ClusterRole", _CLUSTER_ADMIN) and not installed:
        yield Fault(("roleRef", "name"), "nobody may be bound to cluster-admin; bind a role that holds what is needed")


def _of_namespace(manifest: Mapping[str, Any]) -> Iterator[Fault]:
    name = _text(manifest, "metadata", "name")
    missing = [label for label in LABELS if not at(manifest, "metadata", "labels", label)]
    if missing and name not in _INSTALLED_NAMESPACES and not name.startswith("kube-"):
        labels = " and ".join(missing)
        yield Fault(("metadata", "labels"), f"a namespace needs the labels {' and '.join(LABELS)}; {labels} is missing")
