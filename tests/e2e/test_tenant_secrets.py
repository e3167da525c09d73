"""The secrets of a tenant, from secrets.yaml in Git to the Secret that its charts read; vault and controller are stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from . import charts as chart_sources
from . import control_plane as control_planes
from . import git_server, secret_operator
from .kube import NAMESPACE, Kube, Object, condition, ready
from .secret_operator import SECRETS, StandInVault, decoded
from .two_repositories import CONFIG, KUSTOMIZATION, TENANT, Cluster, Repositories

SECRET, PLACE, PATH = "payment-app-secrets", "payment-dev", "secret/data/payment-app/dev"
SOURCE = "tenant-secrets"


@dataclass(frozen=True)
class Secrets:
    kube: Kube
    vault: StandInVault

    def wait_for(self, **data: str) -> Object:
        return self.kube.wait_for_object("secret", SECRET, PLACE, where=lambda found: decoded(found) == data)

    def wait_until(self, good: bool) -> Object:
        """The ExternalSecret, once it is in order, or once it is not."""
        status = "True" if good else "False"
        return self.kube.wait_for_object(
            SECRETS, SECRET, PLACE, where=lambda found: condition(found, "Ready").get("status") == status
        )


@pytest.fixture(scope="module")
def secrets(
    control_plane: control_planes.ControlPlane, charts: chart_sources.Charts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secrets]:
    """The tenant without the base of its cluster, whose policies would keep other tests from making namespaces."""
    kube, directory = control_plane.kube, tmp_path_factory.mktemp("secrets")
    with git_server.serving(directory) as forge:
        repositories = Repositories(directory / "fleet", forge, charts.http_url)
        repositories.push()
        cluster = Cluster("dev", control_plane)
        with secret_operator.standing_in(kube, repositories.vault(cluster)) as vault:
            vault.write(PATH, {"db_password": "first", "not_asked_for": "x"})
            kube.apply(synced(forge.url(CONFIG), f"./{cluster.folder}/tenants/{TENANT}"))
            try:
                yield Secrets(kube, vault)
            finally:
                kube.delete(KUSTOMIZATION, SOURCE, NAMESPACE)
                kube.delete("gitrepository", SOURCE, NAMESPACE)
                kube.wait_gone(KUSTOMIZATION, f"{TENANT}-sync", NAMESPACE)
                kube.delete("namespace", PLACE)


def synced(url: str, path: str) -> list[Object]:
    metadata = {"name": SOURCE, "namespace": NAMESPACE}
    source: Object = {"interval": "10m", "url": url, "ref": {"branch": "main"}}
    spec: Object = {"interval": "10m", "path": path, "prune": True, "sourceRef": {"kind": "GitRepository", "name": SOURCE}}
    return [
        {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata, "spec": source},
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec},
    ]


def test_the_secret_appears_with_what_the_tenant_asks_for_and_no_more(secrets: Secrets) -> None:
    secrets.vault.write(PATH, {"db_password": "first", "not_asked_for": "x"})
    found = secrets.wait_for(db_password="first")
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ExternalSecret", SECRET)
    secrets.wait_until(good=True)
    store = secrets.kube.get("secretstore.external-secrets.io", "cluster-vault", PLACE) or {}
    assert ready(store)


def test_the_tenant_logs_in_under_its_own_name_and_reads_its_own_path(secrets: Secrets) -> None:
    secrets.wait_until(good=True)
    assert set(secrets.vault.logins) == {("kubernetes", TENANT)}
    assert set(secrets.vault.reads) == {PATH}


def test_a_rotation_arrives_in_the_same_secret(secrets: Secrets) -> None:
    before = secrets.wait_until(good=True)
    secret = secrets.kube.wait_for_object("secret", SECRET, PLACE)
    secrets.vault.write(PATH, {"db_password": "rotated"})
    assert secrets.wait_for(db_password="rotated")["metadata"]["uid"] == secret["metadata"]["uid"]
    after = secrets.kube.get(SECRETS, SECRET, PLACE) or {}
    assert after["metadata"]["generation"] == before["metadata"]["generation"]  # nobody has touched what Git says


def test_a_sealed_vault_takes_no_secret_away_and_what_was_written_arrives_after(secrets: Secrets) -> None:
    secrets.wait_until(good=True)
    held = decoded(secrets.kube.wait_for_object("secret", SECRET, PLACE))
    secrets.vault.sealed = True
    try:
        secrets.vault.write(PATH, {"db_password": "while sealed"})
        assert "sealed" in condition(secrets.wait_until(good=False), "Ready")["message"]
        assert decoded(secrets.kube.get("secret", SECRET, PLACE) or {}) == held
    finally:
        secrets.vault.sealed = False
    secrets.wait_for(db_password="while sealed")
    secrets.wait_until(good=True)
