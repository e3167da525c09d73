"""Where things stand in a repository of fleet config: environments, then clusters, then tenants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flux_resourceset.repositories import trees
from flux_resourceset.repositories.policy import Policy

TENANTS = "tenants"
BASE = "base"
FLUX = "flux"
KEEP = ".gitkeep"  # Git knows no empty folders
INPUT, NAMESPACE, SECRETS, SYNC = "input.yaml", "namespace.yaml", "secrets.yaml", "sync.yaml"
TENANT_FILES = (INPUT, NAMESPACE, SECRETS, SYNC)
BLUEPRINTS = f"{FLUX}/blueprints.yaml"  # of a cluster: the pin
INSTANCE = "flux-instance.yaml"
CLUSTER_FILES = (INSTANCE, BLUEPRINTS, f"{FLUX}/sync.yaml")


class Cluster(NamedTuple):
    environment: str
    name: str

    @property
    def folder(self) -> str:
        return f"{self.environment}/{self.name}"

    def path(self, file: str) -> str:
        return f"{self.folder}/{file}"


class Tenant(NamedTuple):
    environment: str
    cluster: str
    name: str

    @property
    def folder(self) -> str:
        return f"{self.environment}/{self.cluster}/{TENANTS}/{self.name}"

    @property
    def where(self) -> Cluster:
        return Cluster(self.environment, self.cluster)

    def path(self, file: str) -> str:
        return f"{self.folder}/{file}"

    def told(self) -> dict[str, str]:
        return {"environment": self.environment, "cluster": self.cluster, "tenant": self.name}


def clusters(tree: trees.Tree, policy: Policy, environment: str | None = None) -> Iterator[Cluster]:
    """In the order of promotion, then of names."""
    for name in policy.names:
        if environment in (None, name):
            yield from (Cluster(name, cluster) for cluster in _folders(tree, name))


def tenants(
    tree: trees.Tree,
    policy: Policy,
    name: str | None = None,
    *,
    environment: str | None = None,
    cluster: str | None = None,
) -> Iterator[Tenant]:
    """In the same order; of one environment, one cluster, one name, where these are given."""
    for each in clusters(tree, policy, environment):
        if cluster in (None, each.name):
            found = (Tenant(*each, folder) for folder in _folders(tree, each.path(TENANTS)) if name in (None, folder))
            yield from (tenant for tenant in found if tree.children(tenant.folder))  # Git knows no empty directories


def tenant_of(path: str) -> Tenant | None:
    """The tenant whose directory a path is in."""
    parts = path.split("/")
    return Tenant(parts[0], parts[1], parts[3]) if len(parts) > 4 and parts[2] == TENANTS else None


def cluster_of(path: str) -> Cluster | None:
    parts = path.split("/")
    return Cluster(parts[0], parts[1]) if len(parts) > 2 else None


def _folders(tree: trees.Tree, folder: str) -> list[str]:
    return [name for name, sort in tree.children(folder).items() if sort is trees.Sort.FOLDER]
