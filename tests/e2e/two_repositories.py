"""Both repositories of a fleet behind the Git server, and control planes that follow them, one for each environment.

with two_repositories.running(tmp_path, "dev", "staging") as estate:
    estate.repositories.ok("set", "payment-app", "--environment", "dev", "--set", "logLevel=INFO", "--commit")
    estate.dev.follow(estate.repositories.push())
    estate.dev.released("payment-processor-api", "logLevel", "INFO")
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import live
from cli import fleets

from . import charts as chart_sources
from . import control_plane as control_planes
from . import git_server
from .charts import Charts
from .control_plane import ControlPlane
from .git_server import GitServer
from .kube import NAMESPACE, Kube, KubectlFailed, Object, ready

TENANT, APPLICATION = "payment-app", "payment-processor"  # of the sample
DATABASE, SERVICE = f"{APPLICATION}-db", f"{APPLICATION}-api"
RESOURCESET = "standard-layered-app"
CHARTS = ("standard-db", "standard-api")
BLUEPRINTS, CONFIG = "acme-platform-blueprints", "acme-fleet-config"

KUSTOMIZATION = "kustomization.kustomize.toolkit.fluxcd.io"
GIT_REPOSITORY = "gitrepository.source.toolkit.fluxcd.io"
HELM_REPOSITORY = "helmrepository.source.toolkit.fluxcd.io"
HELM_RELEASE = "helmrelease.helm.toolkit.fluxcd.io"
HELM_CHART = "helmchart.source.toolkit.fluxcd.io"
PROVIDER = "resourcesetinputprovider.fluxcd.controlplane.io"
RESOURCE_SET = "resourceset.fluxcd.controlplane.io"

_NOT_OF_A_TENANT = ("events", "events.events.k8s.io")  # they tell of what happens, and are no part of it
_REQUEST = "reconcile.fluxcd.io/requestedAt"
_BY_KUBERNETES = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")


class Repositories(fleets.Fleet):
    """Both of them, as `fleet init` makes them but for the addresses, with their copies on the Git server."""

    def __init__(self, folder: Path, forge: GitServer, charts_url: str) -> None:
        super().__init__(folder)
        self.forge = forge
        self.cli.ok("fleet", "init", str(folder), "--charts", charts_url)
        files = ("*/*/flux/blueprints.yaml", "*/*/flux-instance.yaml", "fleet.yaml")
        for place in [place for pattern in files for place in sorted(self.root.glob(pattern))]:
            for name in (BLUEPRINTS, CONFIG):
                text = place.read_text()
                place.write_text(text.replace(f"https://github.com/acme/{name}.git", forge.url(name)))
        self.commit("Where the repositories are")
        forge.create(BLUEPRINTS, self.blueprints)
        forge.create(CONFIG, self.root)

    def ask(self, url: str) -> None:
        """Let commands ask this API from now on, as the policy says it to the clusters."""
        self.edit("fleet.yaml", "https://fleet.acme.example", url)
        tokens = {"FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE}
        self.cli = self.cli.but(**tokens)

    def push(self) -> str:
        """What is committed in the fleet config; answers the commit."""
        self.forge.push(CONFIG, self.root)
        return self.forge.head(CONFIG)

    def push_blueprints(self) -> None:
        self.forge.push(BLUEPRINTS, self.blueprints)

    def deliver(self, message: str) -> str:
        """Commit whatever was changed in the fleet config, and push it."""
        self.commit(message)
        return self.push()

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """What is written within, and not committed, is taken away again."""
        try:
            yield
        finally:
            self.git("clean", "-fdq")

    def new_tenant(self, name: str, cluster: str, blueprint: str = "standard-service", **inputs: str) -> None:
        given = {"appName": name, "image": f"registry.acme.com/{name}:v1.0.0", "logLevel": "INFO", **inputs}
        words = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
        self.ok("new-tenant", name, "--cluster", cluster, "--blueprint", blueprint, *words, "--set-json", "replicas=1")

    def vault(self, cluster: Cluster) -> str:
        """The server that the secrets of the sample's tenant come from."""
        documents = yaml.safe_load_all(self.read(f"{cluster.folder}/tenants/{TENANT}/secrets.yaml"))
        (store,) = (each for each in documents if each["kind"] == "SecretStore")
        server: str = store["spec"]["provider"]["vault"]["server"]
        return server

    def pin(self, environment: str, tag: str) -> None:
        """Written by hand: it is what a promotion starts from."""
        path = f"{environment}/{environment}-use1-01/flux/blueprints.yaml"
        before = yaml.safe_load(self.read(path))["spec"]["ref"]["tag"]
        self.edit(path, f"tag: {before}\n", f"tag: {tag}\n")


@dataclass(frozen=True)
class Cluster:
    """A control plane that follows the directory of a cluster."""

    environment: str
    plane: ControlPlane

    @property
    def kube(self) -> Kube:
        return self.plane.kube

    @property
    def name(self) -> str:
        return f"{self.environment}-use1-01"

    @property
    def folder(self) -> str:
        return f"{self.environment}/{self.name}"

    @property
    def namespace(self) -> str:
        """Of the sample's tenant."""
        return f"payment-{self.environment}"

    # Following Git

    def begin(self, instance: Object) -> None:
        """What Flux Operator makes of the sync of a FluxInstance: the controllers it would start run already."""
        sync = instance["spec"]["sync"]
        metadata = {"name": NAMESPACE, "namespace": NAMESPACE}
        source = {"interval": sync["interval"], "url": sync["url"], "ref": {"name": sync["ref"]}}
        reference = {"kind": sync["kind"], "name": NAMESPACE}
        spec = {"interval": "10m", "path": sync["path"], "prune": True, "sourceRef": reference}
        self.kube.apply([
            {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": sync["kind"], "metadata": metadata, "spec": source},
            {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata, "spec": spec},
        ])  # fmt: skip

    def follow(self, commit: str) -> None:
        """Look into Git now, and wait until all that the commit says is applied."""
        self.kube.reconcile(GIT_REPOSITORY, NAMESPACE)
        for name in (NAMESPACE, "base", "tenants"):
            self.kube.wait_for_object(
                KUSTOMIZATION, name, NAMESPACE, where=lambda found: _applied(found, commit) and ready(found)
            )

    def runs_blueprints(self, tag: str, tenant: str = TENANT) -> None:
        """Wait until a tenant has the ResourceSet of this release."""
        self.kube.wait_for_object(KUSTOMIZATION, f"{tenant}-sync", NAMESPACE, where=lambda found: _applied(found, f"{tag}@sha1:"))

    def looked(self, kind: str, name: str, namespace: str = NAMESPACE) -> Object:
        """The object, after its controller was asked to look at it and has done so, whatever became of it."""
        (found,) = self._looked(namespace, f"{kind}/{name}")
        return found

    def looked_at_everything(self) -> None:
        """From Git to Helm: who would change something in the sample's tenant has had the opportunity."""
        self._looked(NAMESPACE, f"{GIT_REPOSITORY}/{NAMESPACE}", f"{GIT_REPOSITORY}/platform-blueprints")
        self._looked(NAMESPACE, f"{KUSTOMIZATION}/tenants")  # not both at once: while one is at work, the other waits for seconds
        self._looked(NAMESPACE, f"{KUSTOMIZATION}/{TENANT}-sync")
        self.looked_at_inputs()

    def looked_at_inputs(self) -> Object:
        """From the provider to Helm; answers the provider."""
        provider = self.looked(PROVIDER, f"{TENANT}-inputs", self.namespace)
        self.looked_at_releases()
        return provider

    def looked_at_releases(self) -> None:
        """With the inputs that the provider has, or has had."""
        self._looked(self.namespace, f"{RESOURCE_SET}/{RESOURCESET}")
        self._looked(self.namespace, f"{HELM_RELEASE}/{DATABASE}", f"{HELM_RELEASE}/{SERVICE}")

    def _looked(self, namespace: str, *names: str) -> list[Object]:
        moment, place = str(time.time_ns()), f"--namespace={namespace}"
        self.kube.run("annotate", "--overwrite", place, *names, f"{_REQUEST}={moment}")

        def look() -> list[Object] | None:
            answer = json.loads(self.kube.run("get", place, *names, "--output=json"))
            found: list[Object] = answer["items"] if len(names) > 1 else [answer]
            return found if all(_handled(each) == moment for each in found) else None

        found = self.kube.wait_for(look, f"a look at {', '.join(names)}")
        assert found is not None
        return found

    # What is there

    def values(self, release: str, namespace: str = "") -> Object:
        """What a release has given to its chart; empty while there is none."""
        found = self.kube.get("configmap", f"{release}-values", namespace or self.namespace)
        values: Object = json.loads(found["data"]["values"]) if found else {}
        return values

    def released(self, release: str, field: str, value: Any, namespace: str = "") -> Object:
        """The values of a release, once it has this one."""

        def look() -> Object | None:
            values = self.values(release, namespace)
            return values if values.get(field) == value else None

        found = self.kube.wait_for(look, f"{release} with {field} {value!r}")
        assert found is not None
        self.kube.wait_ready(HELM_RELEASE, release, namespace or self.namespace)
        return found

    def revisions(self, namespace: str = "") -> dict[str, int]:
        """The revision of each Helm release of a tenant."""
        secrets = self.kube.find("secrets", namespace or self.namespace, selector="owner=helm,status=deployed")
        labels = [each["metadata"]["labels"] for each in secrets]
        return {each["name"]: int(each["version"]) for each in labels}

    def objects(self, namespace: str = "") -> dict[str, Object]:
        """Everything in the namespace of a tenant, of every kind that Kubernetes knows, by kind and name."""
        kinds = self.kube.run("api-resources", "--verbs=list", "--namespaced", "--output=name").split()
        found = self.kube.find(",".join(kind for kind in kinds if kind not in _NOT_OF_A_TENANT), namespace or self.namespace)
        return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}

    def identities(self, namespace: str = "") -> dict[str, tuple[str, str]]:
        """UID and generation of everything in the namespace; a kind without generations tells any change by its version."""
        metadata = {name: each["metadata"] for name, each in self.objects(namespace).items()}
        return {name: (each["uid"], str(each.get("generation") or each["resourceVersion"])) for name, each in metadata.items()}

    def contents(self, namespace: str = "") -> dict[str, Object]:
        """Everything in the namespace, as somebody wrote it."""
        return {name: _written(each) for name, each in self.objects(namespace).items()}

    def refusal(self, manifest: Object) -> str | None:
        """Why the API server would not create this; None if it would."""
        try:
            self.kube.run("create", "--dry-run=server", "--filename=-", stdin=json.dumps(manifest))
        except KubectlFailed as problem:
            return str(problem)
        return None


def _applied(found: Object, revision: str) -> bool:
    return ready(found) and revision in found["status"].get("lastAppliedRevision", "")


def _handled(found: Object) -> str | None:
    handled: str | None = found.get("status", {}).get("lastHandledReconcileAt")
    return handled


def _written(found: Object) -> Object:
    metadata = {name: value for name, value in found["metadata"].items() if name not in _BY_KUBERNETES}
    metadata["annotations"] = {name: value for name, value in metadata.get("annotations", {}).items() if name != _REQUEST}
    return {name: value for name, value in found.items() if name != "status"} | {"metadata": metadata}


@dataclass(frozen=True)
class Estate:
    """All of it."""

    repositories: Repositories
    charts: Charts
    clusters: dict[str, Cluster]

    @property
    def dev(self) -> Cluster:
        return self.clusters["dev"]

    @property
    def staging(self) -> Cluster:
        return self.clusters["staging"]

    def everywhere(self, do: Callable[[Cluster], object]) -> None:
        """In all clusters at the same time, for most of it is waiting."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(do, self.clusters.values()))

    def check_alive(self) -> None:
        """A controller that has died makes every later test time out: say so instead."""
        for cluster in self.clusters.values():
            cluster.plane.processes.check_alive()


@contextlib.contextmanager
def running(
    directory: Path, *environments: str, prepare: Callable[[Repositories], object] = lambda repositories: None
) -> Iterator[Estate]:
    """Clusters that have the sample; what `prepare` commits before is what they begin with."""
    with contextlib.ExitStack() as stack:
        clusters = {}
        for name in environments:
            (directory / name).mkdir()
            clusters[name] = Cluster(name, stack.enter_context(control_planes.running(directory / name)))
        charts = stack.enter_context(chart_sources.serving(clusters[environments[0]].plane.registry))
        for chart in CHARTS:
            charts.publish(chart_sources.shown_values("1.0.0", chart))
        forge = stack.enter_context(git_server.serving(directory))
        repositories = Repositories(directory / "fleet", forge, charts.http_url)
        prepare(repositories)
        commit = repositories.push()
        for cluster in clusters.values():
            cluster.begin(yaml.safe_load(repositories.read(f"{cluster.folder}/flux-instance.yaml")))
        estate = Estate(repositories, charts, clusters)
        estate.everywhere(lambda cluster: cluster.follow(commit))
        estate.everywhere(lambda cluster: cluster.kube.wait_ready(HELM_RELEASE, SERVICE, cluster.namespace))
        yield estate
