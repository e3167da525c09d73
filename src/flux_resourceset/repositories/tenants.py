"""What the files of a tenant and its cluster say: who holds its inputs, which blueprint of which release it has."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from flux_resourceset.repositories import layout, manifests, trees
from flux_resourceset.repositories.manifests import Manifest

PROVIDER = "ResourceSetInputProvider"
STATIC, EXTERNAL = "Static", "ExternalService"  # types of providers: Git holds the values, or the API does
VALUES = ("spec", "defaultValues")  # where a Static provider has them
TAG = ("spec", "ref", "tag")
_PATH = re.compile(r"(?:\./)?apps/([^/]+)/?")


class Broken(Exception):
    """A file that does not say what it must; a line of the file, where there is one, and why."""

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path, self.line, self.reason = path, line, reason


class Unread(Broken):
    """A file whose content cannot be had, so that nothing is known of it."""


class Sync(NamedTuple):
    blueprint: str
    namespace: str


class Inputs(NamedTuple):
    """What a tenant's provider says."""

    type: str
    values: dict[str, Any]  # those that Git holds
    url: str  # of the API that holds them otherwise
    manifest: Manifest


def documents(tree: trees.Tree, path: str) -> list[Manifest]:
    found = readable(tree, path)
    if not found:
        raise Broken(path, None, "is missing or empty")
    return found


def readable(tree: trees.Tree, path: str) -> list[Manifest]:
    """The documents of a file; none where there is no file."""
    try:
        return manifests.of_tree(tree, path)
    except manifests.Unread as exc:
        raise Unread(path, None, exc.reason) from exc
    except manifests.Unreadable as exc:
        raise Broken(path, exc.line, exc.reason) from exc


def single(tree: trees.Tree, path: str, kind: str) -> Manifest:
    """The one object of a kind in a file."""
    found = [manifest for manifest in documents(tree, path) if manifest.kind == kind]
    if len(found) != 1:
        raise Broken(path, None, f"must hold one {kind}, and holds {len(found)}")
    return found[0]


def inputs(tree: trees.Tree, tenant: layout.Tenant) -> Inputs:
    path = tenant.path(layout.INPUT)
    manifest = single(tree, path, PROVIDER)
    sort = manifest.at("spec", "type")
    if sort not in (STATIC, EXTERNAL):
        raise Broken(path, manifest.line("spec", "type"), f"spec.type must be {STATIC} or {EXTERNAL}")
    values = manifest.at(*VALUES)
    if sort == STATIC and not isinstance(values, dict):
        raise Broken(path, manifest.line(*VALUES), "spec.defaultValues must hold the inputs")
    return Inputs(sort, values if sort == STATIC else {}, str(manifest.at("spec", "url") or ""), manifest)


def sync(tree: trees.Tree, tenant: layout.Tenant) -> Sync:
    path = tenant.path(layout.SYNC)
    manifest = single(tree, path, "Kustomization")
    match = _PATH.fullmatch(str(manifest.at("spec", "path") or ""))
    if match is None:
        raise Broken(path, manifest.line("spec", "path"), "spec.path must be ./apps/<blueprint>")
    namespace = manifest.at("spec", "targetNamespace")
    if not isinstance(namespace, str) or not namespace:
        raise Broken(path, manifest.line("spec"), "spec.targetNamespace must name the tenant's namespace")
    return Sync(match[1], namespace)


def pin(tree: trees.Tree, cluster: layout.Cluster) -> str:
    """The tag of the blueprints that a cluster runs."""
    path = cluster.path(layout.BLUEPRINTS)
    manifest = single(tree, path, "GitRepository")
    tag = manifest.at(*TAG)
    if not isinstance(tag, str) or not tag:
        raise Broken(path, manifest.line("spec", "ref"), "spec.ref.tag must name a tag of the blueprints")
    return tag
