"""What deploy/ ships, built by kubectl and Helm, and the question whether the API server takes it."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import yaml

import live

from . import flux_operator
from .kube import NAMESPACE, Kube, Object
from .tools import build

DEPLOY = live.ROOT / "deploy"
CHART = DEPLOY / "chart" / "flux-resourceset"
PRODUCTION, LOCAL = "server/overlays/production", "server/overlays/demo"
CLUSTER_SCOPED = {"Namespace", "ClusterRoleBinding"}
PLACE = "manifests"  # where dry runs look, so that what other tests made is not in the way


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
