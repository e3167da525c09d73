"""All rules for a repository of fleet config: cluster by cluster and tenant by tenant, so that few things are kept in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from flux_resourceset.repositories import applied_objects, findings, layout, trees
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import cluster_files, owners, places, reports, secret_sources, tenant, tenant_inputs
from flux_resourceset.repositories.lint.reports import LAYOUT, MANIFEST, Report
from flux_resourceset.repositories.lint.scenes import Scene
from flux_resourceset.repositories.object_policy import ACCOUNT, INSTALLED_BINDINGS
from flux_resourceset.repositories.policy import Policy
from flux_resourceset.repositories.trees import Sort

_BELONGS = "a cluster has flux-instance.yaml, flux/blueprints.yaml, flux/sync.yaml, base/*.yaml and tenants/"
_INSTANCE, _PIN, _SYNC = layout.CLUSTER_FILES
_FOLDERS = frozenset({layout.FLUX, layout.BASE, layout.TENANTS})
_OF_FLUX = frozenset(file.rpartition("/")[2] for file in (_PIN, _SYNC))


def lint(tree: trees.Tree, policy: Policy, releases: tenant_inputs.Releases) -> Iterator[Finding]:
    """Everything that is wrong, in no order."""
    known, fields = tenant_inputs.Known(releases), tenant_inputs.Fields.of(policy)
    scene = Scene(tree, policy, known, fields, secret_sources.Owners(), {})
    yield from scene.judged(places.outside(tree, policy.names))
    yield from owners.lint(tree, policy)
    for environment in policy.names:
        yield from _of_environment(scene, environment)
        for cluster in layout.clusters(tree, policy, environment):
            yield from _of_cluster(scene, cluster)


def _of_environment(scene: Scene, name: str) -> Iterator[Finding]:
    inside = scene.tree.children(name)
    if inside:
        yield from places.of_environment(name)
    belongs = "an environment has clusters, and nothing else"
    yield from scene.judged(places.placed(scene.tree, name, inside, places.KEEP.__eq__, lambda folder: True, belongs))


def _of_cluster(scene: Scene, cluster: layout.Cluster) -> Iterator[Finding]:
    yield from places.of_cluster(cluster, scene.clusters)
    yield from _of_places(scene, cluster)
    instance, documents = scene.read(cluster.path(_INSTANCE))
    place = cluster_files.place(scene.policy, cluster, scene.tree.children(""), documents or ())
    if documents is not None:
        cluster_files.of_instance(instance, documents, place)
    yield from instance.found
    yield from _of_base(scene, place)
    tag = yield from _of_flux(scene, place)
    namespaces: dict[str, str] = {}
    for name, sort in scene.tree.children(cluster.path(layout.TENANTS)).items():
        if sort is Sort.FOLDER:
            yield from tenant.lint(scene, layout.Tenant(*cluster, name), tag, namespaces)


def _of_places(scene: Scene, cluster: layout.Cluster) -> Iterator[Finding]:
    tree = scene.tree
    inside = tree.children(cluster.folder)
    placed = places.placed(tree, cluster.folder, inside, _INSTANCE.__eq__, _FOLDERS.__contains__, _BELONGS)
    yield from scene.judged(placed, (_INSTANCE,))
    folder = cluster.path(layout.FLUX)
    flux = tree.children(folder)
    yield from scene.judged(places.placed(tree, folder, flux, _OF_FLUX.__contains__, lambda name: False, _BELONGS), [*_OF_FLUX])
    present = {**inside, **{f"{layout.FLUX}/{name}": sort for name, sort in flux.items()}}
    yield from places.missing(cluster.folder, present, layout.CLUSTER_FILES, _BELONGS)
    folder = cluster.path(layout.TENANTS)
    belongs = "tenants/ has a directory for each tenant, and nothing else"
    placed = places.placed(tree, folder, tree.children(folder), places.KEEP.__eq__, lambda name: True, belongs)
    yield from scene.judged(placed)


def _of_flux(scene: Scene, place: cluster_files.Place) -> Generator[Finding, None, str | None]:
    """The release of the blueprints that the cluster is pinned to; None if that is none."""
    cluster = place.cluster
    report, documents = scene.read(cluster.path(_SYNC))
    if documents is not None:
        cluster_files.of_sync(report, documents, place)
    yield from report.found
    report, documents = scene.read(cluster.path(_PIN))
    tag, line = cluster_files.of_blueprints(report, documents, place) if documents is not None else (None, None)
    if tag is not None and not scene.known.has(tag):
        report.add(
            applied_objects.PIN, line, f"the blueprints have no tag {tag}; fetch their tags, or name a release that is there"
        )
        tag = None
    yield from report.found
    return tag


def _of_base(scene: Scene, place: cluster_files.Place) -> Iterator[Finding]:
    cluster = place.cluster
    folder = cluster.path(layout.BASE)
    inside = scene.tree.children(folder)
    names = [name for name in inside if name.endswith(".yaml")]
    is_own = {*names, places.KEEP}.__contains__
    yield from scene.judged(places.placed(scene.tree, folder, inside, is_own, lambda name: False, _BELONGS), names)
    found = [Report(f"{folder}/{name}") for name in names if inside[name] is Sort.FILE]
    bodies = [(report, body) for report in found if (body := reports.body(scene.tree, report.path, report)) is not None]
    told = [admins for _, body in bodies if (admins := cluster_files.admins(body)) is not None]
    roles: set[str] = set()
    for report, body in bodies:
        name = report.path.rpartition("/")[2]
        file = cluster_files.of_base(name, body, told[0] if told else INSTALLED_BINDINGS, place.rules)
        report.found += file.at(report.path)
        report.found += scene.vaults.judge(cluster, report.path, iter(file.vaults))
        roles |= file.roles
    for report in found:
        yield from report.found
    unread = len(found) < len(names) or any(finding.rule == reports.YAML for report in found for finding in report.found)
    if ACCOUNT not in roles and not unread:  # in what cannot be read it may stand
        message = f"must hold the ClusterRole {ACCOUNT}, which the tenants are bound to"
        yield findings.error(MANIFEST if names else LAYOUT, folder, None, message)
