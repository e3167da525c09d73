"""docs/moving-in.md, followed to the letter: what plain Flux made is handed over, back and over again, and never reinstalled."""

from __future__ import annotations

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
from .kube import NAMESPACE, Kube, Object, condition, ready

PAGE = live.ROOT / "docs" / "moving-in.md"
CLUSTER, SHOP = "prod-eu-01", "shop"
KUSTOMIZATION = "kustomization.kustomize.toolkit.fluxcd.io"
OWNER = "kustomize.toolkit.fluxcd.io/name"
LIMITS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: shop}\ndata: {pods: '10'}\n"
OTHERS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: others, namespace: flux-system}\n"
History = list[tuple[int, str]]  # revisions and their status
Histories = tuple[History, History]
_BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Move:
    """The page, with a server that has its files, and a cluster that runs what its Git repository holds."""

    page: str
    session: console.Session
    kube: Kube
    charts: Charts
    tools: Path  # a directory with nothing but the programs of the page

    def blocks(self, heading: str) -> list[tuple[str, str]]:
        _, _, rest = self.page.partition(f"\n## {heading}\n")
        found: list[tuple[str, str]] = _BLOCK.findall(rest.partition("\n## ")[0])
        assert found, f"the page has no commands under {heading}"
        return found

    def follow(self, heading: str) -> str:
        """Carries out the commands of a section; answers what those of the shell printed."""
        printed = ""
        for kind, text in self.blocks(heading):
            if kind == "sh":
                printed += self.shell(text)
            else:
                for step in console.steps(f"```console\n{text}```\n"):
                    found = console.difference(step.expected, self.session.run(step.command))
                    assert found is None, f"{step.command}\n{found}"
        return printed

    def shell(self, text: str) -> str:
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
        shown = {Path(name).name: text for each in directories for name, text in found.items() if name.startswith(f"{each}/")}
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

    def history(self, release: str, namespace: str) -> History:
        secrets = self.kube.find("secrets", namespace, selector=f"owner=helm,name={release}")
        labels = [each["metadata"]["labels"] for each in secrets]
        return sorted((int(each["version"]), each["status"]) for each in labels)

    def histories(self) -> Histories:
        return self.history("web", SHOP), self.history("shop-cache", NAMESPACE)

    def owner_of_limits(self) -> str:
        return str((self.kube.get("configmap", "limits", SHOP) or {})["metadata"]["labels"][OWNER])

    def wait_owner(self, kustomization: str, histories: Histories) -> None:
        self.kube.wait_for(lambda: self.histories() == histories, f"{histories}")
        self.kube.wait_for(lambda: self.owner_of_limits() == kustomization, f"{kustomization} has the labels")


def revisions(last: int) -> Histories:
    """The histories of both releases when each has so many revisions."""
    found = [*((number, "superseded") for number in range(1, last)), (last, "deployed")]
    return found, found


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


def named(name: str) -> Object:
    return {"name": name, "namespace": NAMESPACE}


def old_fleet(move: Move) -> None:
    """A cluster that follows its repository, as Flux is bootstrapped everywhere."""
    move.commit("git")
    move.charts.registry.push_files("fleet", "v1", {"policies/limits.yaml": LIMITS})
    source: Object = {"interval": "10m", "url": f"oci://{move.charts.registry.address}/fleet", "ref": {"tag": "main"}}
    apps: Object = {"interval": "10m", "path": "./apps", "prune": True, "sourceRef": {"kind": "OCIRepository", "name": "fleet"}}
    move.kube.apply([
        {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": named("fleet"), "spec": source},
        {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": named("apps"), "spec": apps},
    ])  # fmt: skip
    move.kube.wait_ready("helmrelease", "storefront", SHOP)
    move.kube.wait_ready("helmrelease", "cache")
    move.kube.wait_ready(KUSTOMIZATION, "policies")
    move.wait_owner("policies", revisions(1))
    move.kube.patch("helmrelease", "cache", {"spec": {"suspend": True}}, NAMESPACE)  # not in Git, so it does not last
    move.kube.reconcile(KUSTOMIZATION, "apps")
    move.kube.wait_for_object("helmrelease", "cache", NAMESPACE, where=lambda found: not found["spec"].get("suspend"))


def hold(move: Move) -> None:
    move.commit("git", "held")
    move.follow("4. Hold the old objects")


@pytest.fixture
def joined(move: Move) -> Move:
    """With a cluster that polls, also when the story above was not told."""
    kube = move.kube
    if not kube.get("resourceset", "platform-components", NAMESPACE):
        cluster = {"id": CLUSTER, "cluster_name": CLUSTER, "cluster_dns": f"{CLUSTER}.k8s.example.com", "environment": "prod"}
        with move.session.server.client() as client:
            client.post("/clusters", json=cluster).raise_for_status()
        move.shell(move.blocks("5. Hand over")[0][1])
        kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}}])
    return move


def installed_by_helm(move: Move, name: str) -> tuple[str, int | None]:
    """A release that Flux knows nothing of; answers what identifies its Deployment."""
    move.shell(f"helm --namespace {SHOP} install {name} {move.charts.http_url}storefront-1.4.2.tgz")
    assert move.history(name, SHOP) == [(1, "deployed")]
    return move.identities()[f"Deployment/{name}"]


def assigned(move: Move, id: str, patches: Object, **fields: str) -> None:
    """A component of that name in the namespace of the page, with its patches from the start."""
    chart = {"component_path": "storefront", "oci_url": move.charts.http_url, "oci_tag": "1.4.2"}
    with move.session.server.client() as client:
        client.post("/platform_components", json={"id": id, **chart, "target_namespace": SHOP, **fields}).raise_for_status()
        found = client.get(f"/clusters/{CLUSTER}").json()
        change = {"platform_components": [*found["platform_components"], {"id": id}], "patches": {id: patches}}
        client.patch(f"/clusters/{CLUSTER}", json=change).raise_for_status()


def assert_nothing_else_changed(move: Move) -> None:
    """Of the release two labels did, and the namespace has no traces of its former owner."""
    old, new = (move.shell(f"helm --namespace {SHOP} get manifest web --revision {each}").splitlines() for each in (1, 2))
    assert {line.split(":")[0].strip() for line in set(old) ^ set(new)} == {
        "helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace",
    }  # fmt: skip
    metadata = (move.kube.get("namespace", SHOP) or {})["metadata"]
    assert (metadata["labels"]["team"], OWNER in metadata["labels"]) == ("shop", False)


def test_a_fleet_moves_in_and_nothing_is_installed_anew(move: Move) -> None:
    old_fleet(move)
    kube, before = move.kube, move.identities()
    namespace = (kube.get("namespace", SHOP) or {})["metadata"]["uid"]
    assert set(before) >= {"Deployment/web", "Deployment/shop-cache", "ConfigMap/limits"}
    inventory = move.follow("1. Take the inventory")
    assert re.search(r"shop +storefront +web +shop +shop +storefront +1\.4\.2 +1\n", inventory)
    assert re.search(r"flux-system +cache +shop-cache +shop +flux-system +cache +0\.9\.0 +1\n", inventory)
    move.follow("2. Describe what is there")
    move.follow("3. Compare")

    hold(move)
    assert move.histories() == revisions(1)
    move.follow("5. Hand over")
    assert move.histories() == revisions(2)
    assert "Upgrade complete" in move.follow("6. Check")
    assert (move.identities(), move.owner_of_limits()) == (before, "platform-policies")
    assert_nothing_else_changed(move)

    move.follow("Roll back")
    assert (move.identities(), move.histories()) == (before, revisions(2))
    move.commit("git")
    move.wait_owner("policies", revisions(3))
    assert move.identities() == before

    hold(move)
    move.follow("Try again")
    move.wait_owner("platform-policies", revisions(4))
    move.follow("6. Check")
    move.commit("removed")
    move.follow("7. Remove the old objects from Git")
    for name in ("platform-storefront", "platform-cache"):
        kube.wait_ready("helmrelease", name)
    assert (move.identities(), move.histories()) == (before, revisions(4))
    move.commit("git", "held")  # the way back begins with the old objects, suspended
    kube.wait_for_object("helmrelease", "storefront", SHOP)
    kube.wait_for_object("helmrelease", "cache", NAMESPACE)
    move.follow("4. Hold the old objects")
    move.commit("removed")
    kube.wait_gone("helmrelease", "storefront", SHOP)
    kube.wait_gone("helmrelease", "cache", NAMESPACE)
    assert (move.identities(), move.histories()) == (before, revisions(4))

    for id in ("storefront", "cache", "policies"):
        move.session.run(f"flux-resourceset-cli component unassign {id} --cluster {CLUSTER}")
    kube.wait_for(lambda: not move.identities().keys() & before.keys(), "now they are uninstalled")
    kube.wait_for(lambda: move.histories() == ([], []), "with their histories")
    kept = (kube.get("namespace", SHOP) or {})["metadata"]
    assert (kept["uid"], "deletionTimestamp" in kept) == (namespace, False)


def test_a_release_of_helm_itself_is_adopted_and_survives_an_upgrade_that_fails(joined: Move) -> None:
    before = installed_by_helm(joined, "manual")
    assigned(joined, "manual", {"replicaCount": "many"}, storage_namespace=SHOP)

    def failed(found: Object) -> bool:
        return condition(found, "Stalled").get("reason") == "MissingRollbackTarget"

    joined.kube.wait_for_object("helmrelease", "platform-manual", NAMESPACE, where=failed)
    assert (joined.identities()["Deployment/manual"], joined.history("manual", SHOP)[0]) == (before, (1, "deployed"))
    joined.session.run(f"flux-resourceset-cli component patch manual --cluster {CLUSTER} --unset replicaCount")
    joined.kube.wait_ready("helmrelease", "platform-manual")
    assert joined.identities()["Deployment/manual"] == before
    assert joined.history("manual", SHOP)[-1][1] == "deployed"


def test_in_another_storage_namespace_the_history_begins_anew(joined: Move) -> None:
    before = installed_by_helm(joined, "stray")
    assigned(joined, "stray", {})
    joined.kube.wait_ready("helmrelease", "platform-stray")
    assert joined.history("stray", SHOP) == joined.history("stray", NAMESPACE) == [(1, "deployed")]
    assert joined.identities()["Deployment/stray"] == before


def test_and_if_that_fails_the_objects_are_deleted(joined: Move) -> None:
    installed_by_helm(joined, "lost")
    assigned(joined, "lost", {"replicaCount": "many"})
    joined.kube.wait_gone("deployment", "lost", SHOP)
    assert joined.history("lost", SHOP) == [(1, "deployed")]  # which is no longer true


def test_flux_takes_back_what_kubectl_suspends_unless_it_says_that_it_is_flux(joined: Move) -> None:
    assigned(joined, "held", {})
    kube = joined.kube
    kube.wait_ready("helmrelease", "platform-held")

    def suspended_after_a_look() -> object:
        kube.reconcile("resourceset", "platform-components")
        asked = (kube.get("resourceset", "platform-components", NAMESPACE) or {})["metadata"]["annotations"]
        moment = asked["reconcile.fluxcd.io/requestedAt"]
        kube.wait_for_object(
            "resourceset", "platform-components", NAMESPACE,
            where=lambda found: found["status"].get("lastHandledReconcileAt") == moment and ready(found),
        )  # fmt: skip
        return (kube.get("helmrelease", "platform-held", NAMESPACE) or {})["spec"].get("suspend", False)

    kube.patch("helmrelease", "platform-held", {"spec": {"suspend": True}}, NAMESPACE)
    assert suspended_after_a_look() is False
    suspension = ("--type=merge", '--patch={"spec": {"suspend": true}}', "--field-manager=flux")
    kube.run("patch", "helmrelease", "platform-held", "--namespace", NAMESPACE, *suspension)
    assert suspended_after_a_look() is True
