"""Rules for the files of a cluster: what Terraform applies, what Flux syncs, and what every tenant relies on."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from flux_resourceset.repositories import applied_objects, findings, images, layout, object_policy, tenants
from flux_resourceset.repositories.applied_objects import PIN, Rules
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import image_references, secret_sources, secret_values
from flux_resourceset.repositories.lint.reports import MANIFEST, Report, Wanted
from flux_resourceset.repositories.lint.secret_sources import Vault
from flux_resourceset.repositories.lint.tenant_files import EXTERNAL_SECRETS, FLUX_SYSTEM, KUSTOMIZE, OPERATOR, SOURCE
from flux_resourceset.repositories.manifests import Manifest, at, objects
from flux_resourceset.repositories.policy import Policy

OBJECT_POLICY = "object-policy"

_REMEMBERED = 64  # files of bases that are judged once: most clusters have the same
_NO_TAG = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\A[-/.]|[/.]\Z|\.lock\Z")  # what Git takes in no tag
_HELM, _SOURCES = "helm.toolkit.fluxcd.io", "source.toolkit.fluxcd.io"
_VERSIONS = {  # that clusters serve; older ones are gone, or go
    **dict.fromkeys([(_SOURCES, f"{kind}Repository") for kind in ("Git", "Helm", "OCI")], f"{_SOURCES}/v1"),
    (_HELM, "HelmRelease"): f"{_HELM}/v2",
    (KUSTOMIZE.partition("/")[0], "Kustomization"): KUSTOMIZE,
    **dict.fromkeys(
        [("external-secrets.io", kind) for kind in ("SecretStore", "ClusterSecretStore", "ExternalSecret")], EXTERNAL_SECRETS
    ),
    **dict.fromkeys([(OPERATOR.partition("/")[0], kind) for kind in ("ResourceSet", tenants.PROVIDER)], OPERATOR),
}


class Place(NamedTuple):
    """A cluster, and what its files must say."""

    cluster: layout.Cluster
    rules: Rules
    root: frozenset[str]  # names in the root of the fleet


def place(policy: Policy, cluster: layout.Cluster, root: Iterable[str], instance: Sequence[Manifest]) -> Place:
    """`instance` are the documents of its flux-instance.yaml, which names the fleet's own repository."""
    own, own_url = applied_objects.own_repository(manifest.data for manifest in instance)
    rules = Rules(
        sources=None if policy.sources is None else frozenset(policy.sources),
        api_url=policy.api_url,
        needs_digest=any(
            cluster.environment in (rule.environment, rule.same_as)
            for environment in policy.names
            for rule in images.rules_of_base(policy, environment)
        ),
        own=own,
        own_url=own_url,
    )
    return Place(cluster, rules, frozenset(root))


def of_instance(report: Report, documents: Sequence[Manifest], place: Place) -> None:
    report.refuse_others(documents, "FluxInstance")
    instance = report.sole(documents, Wanted("FluxInstance", OPERATOR, "flux", FLUX_SYSTEM))
    if instance is not None:
        report.expect(instance, ("spec", "sync", "kind"), "GitRepository")
        _check_path(report, instance, ("spec", "sync", "path"), place, layout.FLUX)
        _check_applied(report, instance, place.rules, in_base=False)


def _check_applied(report: Report, manifest: Manifest, rules: Rules, *, in_base: bool, passed_over: str | None = None) -> None:
    for fault in applied_objects.faults(manifest.data, report.path.rpartition("/")[2], rules, in_base=in_base):
        if fault.rule != passed_over:
            report.add(fault.rule, manifest.line(*fault.steps), fault.message)


def of_blueprints(report: Report, documents: Sequence[Manifest], place: Place) -> tuple[str | None, int | None]:
    """The tag that is pinned, and its line; None if there is none that Flux would take."""
    report.refuse_others(documents, "GitRepository")
    source = report.sole(documents, Wanted("GitRepository", f"{_SOURCES}/v1", SOURCE, FLUX_SYSTEM))
    if source is None:
        return None, None
    _check_applied(report, source, place.rules, in_base=False, passed_over=PIN)  # which is stricter here
    reference, tag = source.at("spec", "ref"), source.at(*tenants.TAG)
    others = [name for name in reference if name != "tag"] if isinstance(reference, dict) else []
    if others:
        message = f"spec.ref.{others[0]} moves under the cluster; pin a release by spec.ref.tag alone"
        report.add(PIN, source.line("spec", "ref", others[0]), message)
    if not isinstance(tag, str) or not tag:
        if not others:
            report.add(PIN, source.line(*tenants.TAG), "spec.ref.tag must name a release of the blueprints")
        return None, None
    line = source.line(*tenants.TAG)
    if _NO_TAG.search(tag):
        report.add(PIN, line, f"{tag!r} cannot be a tag of Git; name a release of the blueprints")
        return None, None
    return tag, line


def of_sync(report: Report, documents: Sequence[Manifest], place: Place) -> None:
    report.refuse_others(documents, "Kustomization")
    for name in (layout.BASE, layout.TENANTS):
        found = [manifest for manifest in documents if manifest.name == name]
        if len(found) != 1:
            line = found[1].line("metadata", "name") if found else None
            report.add(MANIFEST, line, f"must hold one Kustomization {name}, and holds {len(found) or 'none'}")
            continue
        manifest = found[0]
        report.compare(manifest, Wanted("Kustomization", KUSTOMIZE, name, FLUX_SYSTEM))
        report.expect(manifest, ("spec", "sourceRef", "kind"), "GitRepository")
        report.expect(manifest, ("spec", "sourceRef", "name"), place.rules.own)
        if manifest.at("spec", "sourceRef", "namespace") is not None:
            report.expect(manifest, ("spec", "sourceRef", "namespace"), FLUX_SYSTEM)
        report.expect(manifest, ("spec", "prune"), True)
        report.expect(manifest, ("spec", "wait"), True)
        report.forbid(manifest, ("spec", "targetNamespace"), "moves objects to another namespace; name theirs in the files")
        _check_path(report, manifest, ("spec", "path"), place, name)
        _check_applied(report, manifest, place.rules, in_base=False)
        if name == layout.TENANTS:
            _check_order(report, manifest)
    for manifest in documents:
        if manifest.name not in (layout.BASE, layout.TENANTS):
            message = f"holds Kustomization {manifest.name}; only base and tenants belong into this file"
            report.add(MANIFEST, manifest.line("metadata", "name"), message)


def _check_order(report: Report, tenants: Manifest) -> None:
    earlier = tenants.at("spec", "dependsOn")
    if not isinstance(earlier, list) or not any(at(each, "name") == layout.BASE for each in earlier):
        message = "Kustomization tenants: spec.dependsOn must name base, which tenants rely on"
        report.add(MANIFEST, tenants.line("spec", "dependsOn"), message)


def _check_path(report: Report, manifest: Manifest, steps: Sequence[str], place: Place, folder: str) -> None:
    """From the root of the repository, of which the fleet may be a folder; never by way of another folder of the fleet."""
    wanted = place.cluster.path(folder)
    if not applied_objects.leads_to(manifest.at(*steps), wanted, place.root):
        report.expect(manifest, steps, f"./{wanted}")


# The base


class BaseFile(NamedTuple):
    """What a file of a base is worth, wherever it stands."""

    found: tuple[Finding, ...]  # without path
    roles: frozenset[str]
    vaults: tuple[tuple[Vault, int], ...]

    def at(self, path: str) -> list[Finding]:
        return [finding._replace(path=path) for finding in self.found]


@functools.lru_cache(_REMEMBERED)
def admins(body: bytes) -> frozenset[str] | None:
    """Whom a file of a base lets be bound to cluster-admin; None if it does not say."""
    if b"ValidatingAdmissionPolicy" not in body:
        return None
    told = [object_policy.admins_of(manifest.data) for manifest in objects(Report("").documents(body) or ())]
    return next((each for each in told if each is not None), None)


@functools.lru_cache(_REMEMBERED)
def of_base(name: str, body: bytes, admins: frozenset[str], rules: Rules) -> BaseFile:
    """`name` is that of the file in its folder."""
    report = Report(name)
    report.found += secret_values.of_bytes("", body)
    documents = report.documents(body)
    if documents is None:
        return BaseFile(tuple(report.found), frozenset(), ())
    for manifest in documents:
        _check_object(report, manifest, admins)
        _check_applied(report, manifest, rules, in_base=True)
        _check_images(report, manifest, rules)
    report.found += secret_values.of_documents("", body, documents)
    roles = frozenset(manifest.name for manifest in documents if manifest.kind == "ClusterRole")
    return BaseFile(tuple(report.found), roles, tuple(secret_sources.vaults(documents)))


def _check_object(report: Report, manifest: Manifest, admins: frozenset[str]) -> None:
    data = manifest.data
    whole = isinstance(data, dict) and all(isinstance(data.get(name), str) for name in ("apiVersion", "kind"))
    is_of_kustomize = whole and manifest.api_version.startswith("kustomize.config.k8s.io/")
    if not whole or not (manifest.name or is_of_kustomize or manifest.kind.endswith("List")):
        report.add(MANIFEST, manifest.line(), "is no object of Kubernetes; give it apiVersion, kind and metadata.name")
        return
    wanted = _VERSIONS.get((manifest.api_version.partition("/")[0], manifest.kind))
    if wanted is not None:
        report.expect(manifest, ("apiVersion",), wanted)
    report.found += of_object("", manifest, admins)


def _check_images(report: Report, manifest: Manifest, rules: Rules) -> None:
    """Those that admission lets pass, too: it asks for no digest, and leaves some namespaces alone."""
    if not isinstance(manifest.data, dict):
        return
    refused = {fault.steps for fault in object_policy.faults(manifest.data)}
    for identity, image in applied_objects.images(manifest.data):
        field, line = f"{identity}: {image.place}", manifest.line(*image.steps)
        finding = image_references.of_image("", line, field, image.value, rules.needs_digest)
        if finding is not None and image.steps not in refused:
            report.found.append(finding)


def of_object(path: str, manifest: Manifest, admins: frozenset[str] = object_policy.INSTALLED_BINDINGS) -> list[Finding]:
    """What admission would say of a manifest, and of what it makes if it is a ResourceSet."""
    own = [
        findings.error(OBJECT_POLICY, path, manifest.line(*fault.steps), f"{manifest.kind} {manifest.name}: {fault.message}")
        for fault in object_policy.faults(manifest.data, admins)
    ]
    made = [
        findings.error(OBJECT_POLICY, path, manifest.line("spec"), f"{applied_objects.identity(each)}: {fault.message}")
        for each in applied_objects.made(manifest.data)
        for fault in object_policy.faults(each, admins)
    ]
    return own + made
