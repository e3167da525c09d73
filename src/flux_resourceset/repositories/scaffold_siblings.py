"""What a new cluster or tenant takes over from those that are there: addresses, the pin, the place of secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from flux_resourceset.repositories import layout, manifests, scaffold, tenants, trees
from flux_resourceset.repositories.layout import Cluster
from flux_resourceset.repositories.policy import Policy

_INSTANCE = "flux-instance.yaml"
_STORE = ("spec", "provider", "vault")


def name(policy: Policy) -> str:
    """What the names of the repositories begin with, as far as the policy tells."""
    found = PurePath(policy.checkout or "").name.removesuffix("-platform-blueprints")
    return found if policy.checkout and found != PurePath(policy.checkout).name else scaffold.NAME


def pin(tree: trees.Tree, policy: Policy, environment: str) -> str | None:
    """The release that most clusters of an environment have; of several the one whose clusters come first."""
    found: Counter[str] = Counter()
    for cluster in layout.clusters(tree, policy, environment):
        try:
            found[tenants.pin(tree, cluster)] += 1
        except tenants.Broken:
            continue  # that cluster says nothing; lint says why
    return found.most_common(1)[0][0] if found else None


def sources(tree: trees.Tree, policy: Policy, environment: str) -> scaffold.Sources:
    """Where other clusters find the repositories, those of the same environment first."""
    near = list(layout.clusters(tree, policy, environment))
    far = [cluster for cluster in layout.clusters(tree, policy) if cluster not in near]
    ci = scaffold.GITLAB if ".gitlab-ci.yml" in tree.children("") else scaffold.GITHUB
    usual = scaffold.default_sources(name(policy), ci)
    fleet_config = (_text(tree, each, _INSTANCE, "FluxInstance", "spec", "sync", "url") for each in (*near, *far))
    blueprints = (_text(tree, each, layout.BLUEPRINTS, "GitRepository", "spec", "url") for each in (*near, *far))
    return scaffold.Sources(next(filter(None, fleet_config), usual[0]), next(filter(None, blueprints), usual[1]))


def store(tree: trees.Tree, policy: Policy, cluster: Cluster) -> scaffold.Store:
    """Where the secrets of the cluster's other tenants are kept."""
    for tenant in layout.tenants(tree, policy, environment=cluster.environment, cluster=cluster.name):
        for manifest in _documents(tree, tenant.path(layout.SECRETS)):
            found = manifest.at(*_STORE) if manifest.kind == "SecretStore" else None
            parts = (manifests.at(found, "server"), manifests.at(found, "path"))
            auth = manifests.at(found, "auth", "kubernetes", "mountPath")
            if all(isinstance(part, str) and part for part in (*parts, auth)):
                return scaffold.Store(*parts, auth)
    return scaffold.default_store(name(policy), cluster.name)


def _text(tree: trees.Tree, cluster: Cluster, file: str, kind: str, *steps: str) -> str | None:
    for manifest in _documents(tree, cluster.path(file)):
        value: Any = manifest.at(*steps) if manifest.kind == kind else None
        if isinstance(value, str) and value:
            return value
    return None


def _documents(tree: trees.Tree, path: str) -> Iterator[manifests.Manifest]:
    try:
        yield from manifests.of_tree(tree, path)
    except manifests.Unreadable:
        return  # lint says why
