"""What deploy/ ships, built by kubectl and Helm, and the question whether the API server takes it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

import live

from . import flux_operator
from .kube import NAMESPACE, Kube, Object
from .tools import build

DEPLOY = live.ROOT / "deploy"
CHART = DEPLOY / "chart" / "flux-resourceset"
PRODUCTION, LOCAL, POSTGRES = "server/overlays/production", "server/overlays/demo", "server/overlays/postgresql"
CLUSTER_SCOPED = {"Namespace", "ClusterRoleBinding"}
PLACE = "manifests"  # where dry runs look, so that what other tests made is not in the way

_DATABASE = "flux-api-db-rw.flux-system:5432/flux_resourceset"
# The values with which the chart is the overlay postgresql, on the database of samples/cloudnativepg.yaml.
ON_POSTGRES = {
    "postgres": {
        "existingSecret": "flux-api-db-app",
        "url": f"postgresql://flux_resourceset@{_DATABASE}",
        "readers": {"existingSecret": "flux-api-db-reader", "url": f"postgresql://flux_resourceset_reader@{_DATABASE}"},
        "tls": {"caSecret": "flux-api-db-ca"},
    },
    "read": {"autoscaling": {"enabled": True}},
    "networkPolicy": {"postgresTo": [{"podSelector": {"matchLabels": {"cnpg.io/cluster": "flux-api-db"}}}]},
}


@functools.cache
def built(directory: str) -> tuple[Object, ...]:
    return tuple(objects(kustomized(DEPLOY / directory)))


def kustomized(directory: Path) -> str:
    command = [str(flux_operator.binary("kubectl")), "kustomize", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[Object]:
    return [found for found in yaml.safe_load_all(text) if found]


def one(directory: str, kind: str, name: str) -> Object:
    (found,) = (each for each in built(directory) if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def elsewhere(found: Object) -> Object:
    """The same object in a namespace of its own."""
    if found["kind"] in CLUSTER_SCOPED:
        return found
    return {**found, "metadata": {**found["metadata"], "namespace": PLACE}}


def assert_taken(kube: Kube, found: list[Object]) -> None:
    assert found
    kube.apply([elsewhere(each) for each in found], dry_run=True)


def helm_template(*options: str, release: str = "flux-resourceset") -> list[Object]:
    command = [
        str(build.home(os.environ) / "bin" / "helm"),
        "template",
        release,
        str(CHART),
        "--namespace",
        NAMESPACE,
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def rendered_with(values: dict[str, Any], directory: Path, release: str = "flux-resourceset") -> list[Object]:
    (directory / "values.json").write_text(json.dumps(values))
    return helm_template("--values", str(directory / "values.json"), release=release)


def pod_specs(found: list[Object]) -> dict[str, Object]:
    """The pods of the chart, by the names of what makes them."""
    templates = {each["metadata"]["name"]: each["spec"]["template"] for each in found if each["kind"] == "Deployment"}
    jobs = (each for each in found if each["kind"] == "CronJob")
    return templates | {each["metadata"]["name"]: each["spec"]["jobTemplate"]["spec"]["template"] for each in jobs}
