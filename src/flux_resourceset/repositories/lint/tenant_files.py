"""Rule manifest for the four files of a tenant: which objects they hold, and that these belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from flux_resourceset import names
from flux_resourceset.repositories import applied_objects, layout, tenants
from flux_resourceset.repositories.lint import places
from flux_resourceset.repositories.lint.reports import LAYOUT, MANIFEST, Report, Wanted
from flux_resourceset.repositories.manifests import Manifest
from flux_resourceset.repositories.object_policy import ACCOUNT
from flux_resourceset.repositories.policy import Policy

ENVIRONMENT = "environment"
STORE = "cluster-vault"
FLUX_SYSTEM = "flux-system"
SOURCE = applied_objects.BLUEPRINTS
OPERATOR = "fluxcd.controlplane.io/v1"
KUSTOMIZE = "kustomize.toolkit.fluxcd.io/v1"
EXTERNAL_SECRETS = "external-secrets.io/v1"
RBAC = "rbac.authorization.k8s.io"

PRUNE = ("metadata", "annotations", "kustomize.toolkit.fluxcd.io/prune")
MOST_INPUTS = 10000  # Flux Operator cuts the list at its limit, of which this is the greatest, and deletes what was cut

_BLUEPRINT = re.compile(r"(?:\./)?apps/([^/]+)/?")
_HARMLESS = applied_objects.HARMLESS | {"postBuild"}  # fields of the sync; any other may change objects, or bring more


class Sync(NamedTuple):
    blueprint: str | None
    manifest: Manifest


def of_namespace(report: Report, documents: Sequence[Manifest], tenant: layout.Tenant) -> str | None:
    """The namespace that it makes; None if it says none."""
    report.refuse_others(documents, "Namespace", "ServiceAccount", "RoleBinding")
    made = report.sole(documents, Wanted("Namespace", "v1", None, None))
    name = made.at("metadata", "name") if made else None
    namespace = name if isinstance(name, str) and name else None
    if made is not None:
        _check_namespace(report, made, namespace, tenant)
    account = report.sole(documents, Wanted("ServiceAccount", "v1", ACCOUNT, namespace))
    binding = report.sole(documents, Wanted("RoleBinding", f"{RBAC}/v1", None, namespace))
    if binding is not None:
        report.expect(binding, ("roleRef", "kind"), "ClusterRole")
        report.expect(binding, ("roleRef", "name"), ACCOUNT)
        if namespace is not None:
            report.expect(binding, ("subjects",), [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}])
    for manifest in (made, account, binding):
        if manifest is not None:
            report.expect(manifest, PRUNE, "disabled")
    return namespace


def _check_namespace(report: Report, made: Manifest, namespace: str | None, tenant: layout.Tenant) -> None:
    if namespace is None:
        report.add(MANIFEST, made.line("metadata", "name"), "Namespace: metadata.name must be the tenant's namespace")
    elif (fault := places.namespace_fault(namespace)) is not None:
        message = f"{namespace!r} cannot be the namespace of a tenant: {fault}"
        report.add(LAYOUT, made.line("metadata", "name"), message)
    if made.at("metadata", "labels", "tenant"):  # what is missing is for the policy of objects to tell
        report.expect(made, ("metadata", "labels", "tenant"), tenant.name)
    if made.at("metadata", "labels", ENVIRONMENT):
        report.expect(made, ("metadata", "labels", ENVIRONMENT), tenant.environment, ENVIRONMENT)


def of_input(
    report: Report, documents: Sequence[Manifest], tenant: layout.Tenant, namespace: str | None, policy: Policy
) -> Manifest | None:
    """The provider; None if it has no type that is known."""
    report.refuse_others(documents, tenants.PROVIDER)
    provider = report.sole(documents, Wanted(tenants.PROVIDER, OPERATOR, f"{tenant.name}-inputs", namespace))
    if provider is None:
        return None
    report.forbid(provider, ("spec", "values"), "is no field of it; inputs belong into spec.defaultValues")
    sort = provider.at("spec", "type")
    if sort == tenants.STATIC:
        if not isinstance(provider.at(*tenants.VALUES), dict):
            report.add(MANIFEST, provider.line(*tenants.VALUES), "spec.defaultValues must be a map of the inputs")
            return None
    elif sort == tenants.EXTERNAL:
        _check_external(report, provider, tenant, policy)
    else:
        message = f"spec.type must be {tenants.STATIC}, with the inputs in spec.defaultValues, or {tenants.EXTERNAL}"
        report.add(MANIFEST, provider.line("spec", "type"), message)
        return None
    return provider


def _check_external(report: Report, provider: Manifest, tenant: layout.Tenant, policy: Policy) -> None:
    report.expect(provider, ("spec", "filter", "limit"), MOST_INPUTS)
    report.expect(provider, ("spec", "secretRef", "name"), policy.api_secret)
    url = provider.at("spec", "url")
    if policy.api_url is None:
        report.add(MANIFEST, provider.line("spec", "url"), "fleet.yaml has no api.url, so no API can hold inputs; add it there")
    elif not is_url_of(url, policy.api_url, tenant.name):
        wanted = f"{policy.api_url}/api/v2/flux/clusters/<dns>/<view>/{tenant.name}"
        report.add(MANIFEST, provider.line("spec", "url"), f"spec.url must be {wanted}")
    if isinstance(url, str) and url.startswith("http://"):
        report.expect(provider, ("spec", "insecure"), True)


def is_url_of(url: object, api: str, tenant: str) -> bool:
    """Whether it is the address of the one input of a tenant in a cluster."""
    start = f"{api}/api/v2/flux/clusters/"
    if not isinstance(url, str) or not url.startswith(start):
        return False
    dns, *others = url.removeprefix(start).split("/")
    return names.is_dns_name(dns) and len(others) == 2 and names.is_dns_label(others[0]) and others[1] == tenant


def of_secrets(report: Report, documents: Sequence[Manifest], namespace: str | None) -> None:
    report.refuse_others(documents, "SecretStore", "ExternalSecret")
    report.sole(documents, Wanted("SecretStore", EXTERNAL_SECRETS, STORE, namespace))
    for manifest in documents:
        if manifest.kind == "ExternalSecret":
            report.compare(manifest, Wanted("ExternalSecret", EXTERNAL_SECRETS, None, namespace))
            report.expect(manifest, ("spec", "secretStoreRef", "name"), STORE)
            if manifest.at("spec", "secretStoreRef", "kind") is not None:
                report.expect(manifest, ("spec", "secretStoreRef", "kind"), "SecretStore")
            for field in ("data", "dataFrom"):
                entries = manifest.at("spec", field)
                for place in range(len(entries) if isinstance(entries, list) else 0):
                    report.forbid(
                        manifest, ("spec", field, place, "sourceRef", "storeRef"), f"leads elsewhere; {STORE} is the only store"
                    )


def of_sync(report: Report, documents: Sequence[Manifest], tenant: layout.Tenant, namespace: str | None) -> Sync | None:
    report.refuse_others(documents, "Kustomization")
    manifest = report.sole(documents, Wanted("Kustomization", KUSTOMIZE, f"{tenant.name}-sync", FLUX_SYSTEM))
    if manifest is None:
        return None
    report.expect(manifest, ("spec", "sourceRef", "kind"), "GitRepository")
    report.expect(manifest, ("spec", "sourceRef", "name"), SOURCE)
    if manifest.at("spec", "sourceRef", "namespace") is not None:
        report.expect(manifest, ("spec", "sourceRef", "namespace"), FLUX_SYSTEM)
    report.expect(manifest, ("spec", "prune"), True)
    if namespace is not None:
        report.expect(manifest, ("spec", "targetNamespace"), namespace)
        report.expect(manifest, ("spec", "postBuild", "substitute"), {"tenant": tenant.name, "namespace": namespace})
    report.forbid(
        manifest, ("spec", "postBuild", "substituteFrom"), "puts in what nobody reviews; name tenant and namespace only"
    )
    spec = manifest.at("spec")
    for field in spec if isinstance(spec, dict) else ():
        if field not in _HARMLESS:
            report.forbid(manifest, ("spec", str(field)), "changes what the blueprint makes; change the blueprint")
    path = manifest.at("spec", "path")
    match = _BLUEPRINT.fullmatch(path) if isinstance(path, str) else None
    if match is None:
        report.add(MANIFEST, manifest.line("spec", "path"), "spec.path must be ./apps/<blueprint>")
    return Sync(match and match[1], manifest)
