"""docs/moving-in.md, followed to the letter: what plain Flux made is handed over, back, and over again; nothing is reinstalled."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import live
from docs import console

from . import charts as chart_sources
from . import control_plane as control_planes
from . import workloads
from .charts import Charts
from .kube import NAMESPACE, Kube, Object, ready

PAGE = live.ROOT / "docs" / "moving-in.md"
CLUSTER, SHOP = "prod-eu-01", "shop"
KUSTOMIZATION = "kustomization.kustomize.toolkit.fluxcd.io"
OWNER = "kustomize.toolkit.fluxcd.io/name"
LIMITS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: shop}\ndata: {pods: '10'}\n"
OTHERS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: others, namespace: flux-system}\n"
_BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Move:
    """The page, with a server that has its files, and a cluster that runs what its Git repository holds."""

    page: str
    session: console.Session
    kube: Kube
    charts: Charts
    tools: Path  # a directory with nothing but the programs of the page

    def follow(self, heading: str) -> str:
        """Carries out the commands of a section; answers what those of the shell printed."""
        _, _, rest = self.page.partition(f"\n## {heading}\n")
        assert rest, f"the page has no section {heading}"
        printed = ""
        for kind, text in _BLOCK.findall(rest.partition("\n## ")[0]):
            if kind == "sh":
                printed += self._shell(text)
            else:
                for step in console.steps(f"```console\n{text}```\n"):
                    found = console.difference(step.expected, self.session.run(step.command))
                    assert found is None, f"{step.command}\n{found}"
        return printed

    def _shell(self, text: str) -> str:
        environment = {
            "PATH": f"{self.tools}:{Path(sys.executable).parent}:{os.defpath}",
            "HOME": str(self.session.directory),
            "KUBECONFIG": str(self.kube.kubeconfig),
            "FLUX_API_URL": self.session.server.url,
            "FLUX_API_TOKEN": live.READ,
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text], cwd=self.session.directory, env=environment,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}\n{self.kube.state()}"
        return done.stdout

    def commit(self, *directories: str) -> None:
        """Puts directories of the page, one over the other, where the cluster takes its state from."""
        found = console.files(self.page)
        shown = {
            Path(name).name: text for each in directories for name, text in found.items() if name.startswith(f"{each}/")
        }
        files = {f"apps/{name}": text for name, text in {"others.yaml": OTHERS, **shown}.items()}
        files["policies/limits.yaml"] = LIMITS
        self.charts.registry.push_files("fleet", "main", files)
        if self.kube.get("ocirepository", "fleet", NAMESPACE):
            self.kube.reconcile("ocirepository", "fleet")

    # What is there

    def identities(self) -> dict[str, tuple[str, int | None]]:
        """UID and generation of everything that must survive."""
        found = self.kube.find("deployments,configmaps", SHOP)
        names = {f"{each['kind']}/{each['metadata']['name']}": each["metadata"] for each in found}
        return {name: (metadata["uid"], metadata.get("generation")) for name, metadata in names.items()}

    def history(self, release: str, namespace: str) -> list[tuple[int, str]]:
        secrets = self.kube.find("secrets", namespace, selector=f"owner=helm,name={release}")
        labels = [each["metadata"]["labels"] for each in secrets]
        return sorted((int(each["version"]), each["status"]) for each in labels)

    def histories(self) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        return self.history("web", SHOP), self.history("shop-cache", NAMESPACE)

    def owner_of_limits(self) -> str:
        return str((self.kube.get("configmap", "limits", SHOP) or {})["metadata"]["labels"][OWNER])

    def wait_old(self) -> None:
        self.kube.wait_ready("helmrelease", "storefront", SHOP, timeout=60)
        self.kube.wait_ready("helmrelease", "cache", timeout=60)
        self.kube.wait_ready(KUSTOMIZATION, "policies", timeout=60)


@pytest.fixture(scope="module")
def move(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Move]:
    """A control plane of its own, which is the page's cluster: the one of the other tests is another."""
    directory = tmp_path_factory.mktemp("page")
    with (
        control_planes.running(tmp_path_factory.mktemp("moving")) as plane,
        workloads.reported_available(plane.api_url, plane.authority.own, plane.admin),
        chart_sources.serving(plane.registry) as charts,
        console.session(directory, _with_what_is_here(charts)) as session,
    ):
        for name, version in (("storefront", "1.4.2"), ("cache", "0.9.0")):
            charts.publish(chart_sources.Chart(name, version, chart_sources.podinfo(version).files))
        tools = directory / "tools"
        tools.mkdir()
        for name in ("kubectl", "helm"):
            (tools / name).symlink_to(plane.bin / name)
        (directory / f"{CLUSTER}.token").write_text(live.READ)
        page = _with_what_is_here(charts).replace("https://fleet-read.example.com", session.server.url)
        yield Move(page, session, plane.kube, charts, tools)


def _with_what_is_here(charts: Charts) -> str:
    """The page with addresses that answer here, an OCI artifact for the Git repository, and faster polls."""
    page = PAGE.read_text(encoding="utf-8")
    for shown, here in (
        ("https://charts.example.com", charts.http_url.rstrip("/")),
        ("oci://registry.example.com", f"oci://{charts.registry.address}"),
        ("kind: GitRepository, name: fleet", "kind: OCIRepository, name: fleet"),
        (f"--token-file {CLUSTER}.token", f"--token-file {CLUSTER}.token --interval 1s"),
    ):
        assert shown in page
        page = page.replace(shown, here)
    return page


def old_fleet(move: Move) -> None:
    """A cluster that follows its repository, as Flux is bootstrapped everywhere."""
    move.commit("git")
    move.charts.registry.push_files("fleet", "v1", {"policies/limits.yaml": LIMITS})
    source: Object = {"interval": "1m", "url": f"oci://{move.charts.registry.address}/fleet", "ref": {"tag": "main"}}
    apps: Object = {"interval": "1m", "path": "./apps", "prune": True, "sourceRef": {"kind": "OCIRepository", "name": "fleet"}}
    of_flux = {"namespace": NAMESPACE}
    move.kube.apply([
        {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "fleet", **of_flux}, "spec": source},
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "apps", **of_flux}, "spec": apps},
    ])  # fmt: skip
    for kind, name, namespace in (("helmrelease", "storefront", SHOP), ("helmrelease", "cache", NAMESPACE)):
        move.kube.wait_for_object(kind, name, namespace, where=ready, timeout=60)
    move.kube.wait_for_object("configmap", "limits", SHOP)
    move.wait_old()


def test_a_fleet_moves_in_and_nothing_is_installed_anew(move: Move) -> None:
    old_fleet(move)
    kube, first = move.kube, [(1, "deployed")]
    assert move.histories() == (first, first)
    before, namespace = move.identities(), (kube.get("namespace", SHOP) or {})["metadata"]["uid"]
    assert set(before) >= {"Deployment/web", "Deployment/shop-cache", "ConfigMap/limits"}

    inventory = move.follow("1. Take the inventory")
    assert re.search(r"shop +storefront +web +shop +shop +storefront +1\.4\.2 +1\n", inventory)
    assert re.search(r"flux-system +cache +shop-cache +shop +flux-system +cache +0\.9\.0 +1\n", inventory)
    move.follow("2. Describe what is there")
    move.follow("3. Compare")
    move.commit("git", "held")
    move.follow("4. Hold the old objects")
    assert move.histories() == (first, first)

    move.follow("5. Hand over")
    second = [(1, "superseded"), (2, "deployed")]
    assert move.histories() == (second, second)
    assert "Upgrade complete" in move.follow("6. Check")
    assert (move.identities(), move.owner_of_limits()) == (before, "platform-policies")

    move.follow("Roll back")
    assert (move.identities(), move.histories()) == (before, (second, second))
    move.commit("git")
    third = [(1, "superseded"), (2, "superseded"), (3, "deployed")]
    kube.wait_for(lambda: move.histories() == (third, third), "the old HelmReleases have them again", timeout=60)
    kube.wait_for(lambda: move.owner_of_limits() == "policies", "and the old Kustomization", timeout=60)
    move.wait_old()
    assert move.identities() == before

    move.commit("git", "held")
    move.follow("4. Hold the old objects")
    move.follow("Try again")
    fourth = [*((number, "superseded") for number in (1, 2, 3)), (4, "deployed")]
    kube.wait_for(lambda: move.histories() == (fourth, fourth), "the new ones again", timeout=60)
    kube.wait_for(lambda: move.owner_of_limits() == "platform-policies", "all of them", timeout=60)
    move.follow("6. Check")
    move.commit("removed")
    move.follow("7. Remove the old objects from Git")
    for name in ("platform-storefront", "platform-cache"):
        kube.wait_ready("helmrelease", name)
    assert (move.identities(), move.histories()) == (before, (fourth, fourth))
    assert (kube.get("namespace", SHOP) or {})["metadata"]["uid"] == namespace

    for id in ("storefront", "cache", "policies"):
        move.session.run(f"flux-resourceset-cli component unassign {id} --cluster {CLUSTER}")
    kube.wait_for(lambda: not move.identities().keys() & before.keys(), "now they are uninstalled", timeout=60)
    assert json.dumps(move.histories()) == "[[], []]"
    assert "deletionTimestamp" not in (kube.get("namespace", SHOP) or {})["metadata"]
