"""All rules for one tenant of a cluster."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from flux_resourceset.repositories import findings, layout, tenants
from flux_resourceset.repositories.blueprints import Blueprint
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import (
    cluster_files,
    places,
    secret_sources,
    secret_values,
    tenant_files,
    tenant_inputs,
)
from flux_resourceset.repositories.lint.reports import LAYOUT, Report
from flux_resourceset.repositories.lint.scenes import Scene
from flux_resourceset.repositories.lint.tenant_inputs import BLUEPRINT, Held
from flux_resourceset.repositories.manifests import Manifest, objects

_BELONGS = f"a tenant has {', '.join(layout.TENANT_FILES)}, and nothing else"
_TOKEN = ("spec", "secretRef", "name")  # of a provider that asks the API


def lint(scene: Scene, tenant: layout.Tenant, tag: str | None, namespaces: dict[str, str]) -> Iterator[Finding]:
    """`tag` is the release that the cluster is pinned to, if it has one; `namespaces` are those of its tenants so far."""
    yield from _of_places(scene, tenant)
    namespace = yield from _of_namespace(scene, tenant, namespaces)
    secrets = yield from _of_secrets(scene, tenant, namespace)
    blueprint = yield from _of_sync(scene, tenant, namespace, tag)
    report, documents = _read(scene, tenant, layout.INPUT)
    provider = tenant_files.of_input(report, documents, tenant, namespace, scene.policy) if documents is not None else None
    yield from report.found
    if provider is None:
        return
    yield from tenant_inputs.of_holder(tenant, provider, scene.policy)
    if provider.at("spec", "type") == tenants.STATIC:
        held = Held(tenant, namespace, provider)
        yield from _of_values(scene, held, secrets)
        if blueprint is not None:
            yield from tenant_inputs.of_blueprint(held, blueprint)
    elif isinstance(name := provider.at(*_TOKEN), str) and secrets is not None:
        yield from secret_sources.of_names(tenant, provider, {_TOKEN: name}, secret_sources.targets(secrets))


def _of_places(scene: Scene, tenant: layout.Tenant) -> Iterator[Finding]:
    inside = scene.tree.children(tenant.folder)
    yield from places.of_tenant(tenant)
    is_own = layout.TENANT_FILES.__contains__
    placed = places.placed(scene.tree, tenant.folder, inside, is_own, lambda name: False, _BELONGS)
    yield from scene.judged(placed, layout.TENANT_FILES)
    yield from places.missing(tenant.folder, inside, layout.TENANT_FILES, _BELONGS)


def _read(scene: Scene, tenant: layout.Tenant, file: str) -> tuple[Report, list[Manifest] | None]:
    report, documents = scene.read(tenant.path(file))
    for manifest in objects(documents or ()):
        report.found += cluster_files.of_object(report.path, manifest)
    return report, documents


def _of_namespace(scene: Scene, tenant: layout.Tenant, namespaces: dict[str, str]) -> Generator[Finding, None, str | None]:
    report, documents = _read(scene, tenant, layout.NAMESPACE)
    namespace = tenant_files.of_namespace(report, documents, tenant) if documents is not None else None
    other = namespaces.setdefault(namespace, tenant.name) if namespace is not None else tenant.name
    if other != tenant.name:
        line = next(manifest.line("metadata", "name") for manifest in documents or () if manifest.kind == "Namespace")
        report.add(LAYOUT, line, f"namespace {namespace} is that of tenant {other} too; give each tenant of a cluster its own")
    yield from report.found
    return namespace


def _of_secrets(
    scene: Scene, tenant: layout.Tenant, namespace: str | None
) -> Generator[Finding, None, Sequence[Manifest] | None]:
    """What the file holds; None if it cannot be read, so that nothing can be missing in it."""
    report, documents = _read(scene, tenant, layout.SECRETS)
    if documents is not None:
        tenant_files.of_secrets(report, documents, namespace)
        yield from scene.vaults.judge(tenant.where, report.path, secret_sources.vaults(documents))
    yield from report.found
    return documents


def _of_sync(
    scene: Scene, tenant: layout.Tenant, namespace: str | None, tag: str | None
) -> Generator[Finding, None, Blueprint | None]:
    """The blueprint that makes objects of the tenant's inputs, where it can be had."""
    report, documents = _read(scene, tenant, layout.SYNC)
    sync = tenant_files.of_sync(report, documents, tenant, namespace) if documents is not None else None
    yield from report.found
    if sync is None or sync.blueprint is None or tag is None:
        return None
    blueprint = scene.known.blueprint(sync.blueprint, tag)
    if isinstance(blueprint, str):
        yield findings.error(BLUEPRINT, report.path, sync.manifest.line("spec", "path"), blueprint)
        return None
    return blueprint


def _of_values(scene: Scene, held: Held, secrets: Sequence[Manifest] | None) -> Iterator[Finding]:
    """Of inputs that Git holds, whatever the blueprint takes."""
    yield from secret_values.of_inputs(held.path, held.provider, tenants.VALUES)
    yield from tenant_inputs.of_values(held, scene.fields)
    if secrets is None:
        return
    named, made = secret_sources.named(held.values, tenants.VALUES), secret_sources.targets(secrets)
    yield from secret_sources.of_names(held.tenant, held.provider, named, made)
    used = [manifest for name in dict.fromkeys(named.values()) for manifest in made.get(name, ())]
    yield from secret_sources.of_paths(held.tenant, scene.policy.secret_path, used)
