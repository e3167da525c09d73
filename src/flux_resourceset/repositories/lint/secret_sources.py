"""Rules secret-name, secret-path and shared-store: whether the secrets that tenants name come from where they must."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flux_resourceset.repositories import findings, layout
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.manifests import Manifest

NAME, PATH, SHARED = "secret-name", "secret-path", "shared-store"
INPUT = "secretName"
STORES = ("SecretStore", "ClusterSecretStore")
_PORTS = {"https": ":443", "http": ":80"}


class Vault(NamedTuple):
    """Where a store gets secrets from; two that are equal are one."""

    server: str
    namespace: str
    mount: str


def targets(documents: Sequence[Manifest]) -> dict[str, list[Manifest]]:
    """The ExternalSecrets of a file by the Secrets that they make."""
    found: dict[str, list[Manifest]] = {}
    for manifest in documents:
        if manifest.kind == "ExternalSecret":
            found.setdefault(str(manifest.at("spec", "target", "name") or manifest.name), []).append(manifest)
    return found


def of_names(
    tenant: layout.Tenant, provider: Manifest, named: Mapping[tuple[str | int, ...], str], made: Mapping[str, Any]
) -> Iterator[Finding]:
    """Whether there are ExternalSecrets for the Secrets that a provider names, each at its place."""
    for steps, name in named.items():
        if name not in made:
            message = f"no ExternalSecret of {layout.SECRETS} makes the Secret {name}; its spec.target.name must be that"
            yield findings.error(NAME, tenant.path(layout.INPUT), provider.line(*steps), message)


def named(values: Any, steps: tuple[str | int, ...]) -> dict[tuple[str | int, ...], str]:
    """The Secrets that inputs name, by their places."""
    found: dict[tuple[str | int, ...], str] = {}
    for step, value in values.items() if isinstance(values, dict) else enumerate(values):
        if step == INPUT and isinstance(value, str):
            found[(*steps, step)] = value
        elif isinstance(value, dict | list):
            found |= named(value, (*steps, step))
    return found


def of_paths(tenant: layout.Tenant, pattern: str | None, secrets: Sequence[Manifest]) -> Iterator[Finding]:
    """Whether secrets of a tenant are read from its own path and no other."""
    if pattern is None:
        return
    wanted = pattern.replace("{tenant}", tenant.name).replace("{environment}", tenant.environment)
    for manifest in secrets:
        for steps, key in _keys(manifest):
            if key != wanted:
                message = f"reads {key}; the secrets of {tenant.name} in {tenant.environment} are at {wanted}"
                yield findings.error(PATH, tenant.path(layout.SECRETS), manifest.line(*steps), message)


def _keys(manifest: Manifest) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for place, each in enumerate(_list(manifest.at("spec", "data"))):
        if isinstance(each, dict):
            yield ("spec", "data", place, "remoteRef", "key"), manifest.at("spec", "data", place, "remoteRef", "key")
    for place, each in enumerate(_list(manifest.at("spec", "dataFrom"))):
        for word, field in (("extract", "key"), ("find", "path")):
            if isinstance(each, dict) and word in each:
                yield ("spec", "dataFrom", place, word, field), manifest.at("spec", "dataFrom", place, word, field)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# Stores


def vaults(documents: Sequence[Manifest]) -> Iterator[tuple[Vault, int]]:
    """The vaults that the stores of a file use, with their lines."""
    for manifest in documents:
        server = manifest.at("spec", "provider", "vault", "server")
        if manifest.kind in STORES and isinstance(server, str):
            vault = manifest.at("spec", "provider", "vault")
            mount, namespace = (str(vault.get(name) or "").strip("/") for name in ("path", "namespace"))
            yield Vault(_server(server), namespace, mount), manifest.line("spec", "provider", "vault", "server")


def _server(url: str) -> str:
    """A URL as it is told apart from others."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    host = parts.netloc.rpartition("@")[2].lower().removesuffix(_PORTS.get(parts.scheme, "\0"))
    host = re.sub(r"\.(?=:[0-9]*\Z|\Z)", "", host)  # which only says that the name is complete
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


class Owners:
    """Which cluster each vault belongs to: that which was seen first."""

    def __init__(self) -> None:
        self._owners: dict[Vault, layout.Cluster] = {}
        self._told: set[tuple[Vault, layout.Cluster]] = set()

    def judge(self, cluster: layout.Cluster, path: str, used: Iterator[tuple[Vault, int]]) -> Iterator[Finding]:
        """Told once for a cluster, however many of its tenants use the vault."""
        for vault, line in used:
            owner = self._owners.setdefault(vault, cluster)
            if owner != cluster and (vault, cluster) not in self._told:
                self._told.add((vault, cluster))
                message = (
                    f"{vault.server}, mount {vault.mount or '-'}, is that of {owner.folder} too; "
                    "give each cluster a vault or a mount of its own"
                )
                yield findings.error(SHARED, path, line, message)
