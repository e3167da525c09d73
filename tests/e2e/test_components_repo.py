"""The sample repository of platform components: every environment builds alone, and a cluster runs what its path and tag say."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import live

from . import flux_operator
from .home import DEMO, Home
from .kube import Kube, Object

REPOSITORY = live.ROOT / "examples" / "components-repo"
WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yaml"
REGISTRY: dict[str, Any] = yaml.safe_load((REPOSITORY / "COMPONENTS.yaml").read_text())
VERSIONS = [f"{each['path']}/{version}" for each in REGISTRY["components"] for version in each["versions"]]
ENVIRONMENTS = [f"{version}/{environment}" for version in VERSIONS for environment in REGISTRY["environments"]]


def built(directory: Path) -> list[Object]:
    command = [str(flux_operator.binary("kubectl")), "kustomize", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


def test_the_layout_is_that_of_the_registry() -> None:
    assert VERSIONS == [
        "core/cert-manager/1.14.0", "core/cert-manager/1.14.1", "observability/grafana/17.0.0", "observability/grafana/17.1.0",
        "networking/ingress-nginx/4.9.0",
    ]  # fmt: skip
    shipped = {path.parent.relative_to(REPOSITORY).as_posix() for path in REPOSITORY.rglob("kustomization.yaml")}
    assert shipped == {*ENVIRONMENTS, *(f"{version}/base" for version in VERSIONS)}
    assert REGISTRY["environments"] == ["dev", "qa", "uat", "prod"]


@pytest.mark.parametrize("directory", ENVIRONMENTS)
def test_an_environment_builds_with_nothing_but_its_own_version(directory: str, tmp_path: Path) -> None:
    version, _, environment = directory.rpartition("/")
    shutil.copytree(REPOSITORY / version, tmp_path / "alone")
    found = built(tmp_path / "alone" / environment)
    component = version.split("/")[1]
    # Flux moves nothing: each manifest names its namespace, and that one outlives the component
    assert {each["metadata"].get("namespace", each["metadata"]["name"]) for each in found} == {component}
    (namespace,) = (each for each in found if each["kind"] == "Namespace")
    assert namespace["metadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/prune": "disabled"}


def test_production_differs_from_development_in_every_version() -> None:
    for version in VERSIONS:
        assert built(REPOSITORY / version / "prod") != built(REPOSITORY / version / "dev"), version


def test_the_api_server_takes_every_environment(kube: Kube) -> None:
    everything = [found for directory in ENVIRONMENTS for found in built(REPOSITORY / directory)]
    names = {each["metadata"]["name"] for each in everything if each["kind"] == "Namespace"}
    kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(names)])
    kube.apply(everything, dry_run=True)


# Releasing

FLUX = """#!/bin/sh
# stands for the flux CLI and a registry that holds what was pushed
if [ "$1 $2" = "pull artifact" ]; then grep -qx "$3" "$PUSHED"; else echo "$3" >> "$PUSHED"; echo "$@" >> "$PUSHED.arguments"; fi
"""


def steps() -> list[str]:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    found = [step for step in workflow["jobs"]["release"]["steps"] if "run" in step]
    return [step["run"] for step in found if not step["name"].startswith("Install")]  # it is installed here


def run_steps(repository: Path, pushed: Path) -> subprocess.CompletedProcess[str]:
    """What CI does on a merge, with kubectl for real."""
    tools = pushed.parent / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "flux").write_text(FLUX)
    (tools / "flux").chmod(stat.S_IRWXU)
    workflow = yaml.safe_load(WORKFLOW.read_text())
    path = f"{tools}:{Path(sys.executable).parent}:{flux_operator.binary('kubectl').parent}:{os.environ['PATH']}"
    environment = {**os.environ, **workflow["env"], "PATH": path, "PUSHED": str(pushed)}
    script = "set -eo pipefail\n" + "\n".join(f"(\n{step}\n)" for step in steps())
    command = ["bash", "-c", script]
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    repository = tmp_path / "repository"
    shutil.copytree(REPOSITORY, repository)
    (tmp_path / "pushed").touch()
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "origin.git")], check=True)
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["remote", "add", "origin", str(tmp_path / "origin.git")],
        ["-c", "user.name=ci", "-c", "user.email=ci@example.com", "commit", "--quiet", "-m", "merged"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    return repository


def test_a_merge_pushes_one_new_tag_and_never_moves_an_old_one(checkout: Path) -> None:
    pushed = checkout.parent / "pushed"
    done = run_steps(checkout, pushed)
    assert done.returncode == 0, done.stderr
    assert pushed.read_text() == "oci://registry.example.com/platform/components:v1.1.0\n"
    assert " --path=. " in pushed.with_name("pushed.arguments").read_text()
    again = run_steps(checkout, pushed)
    assert (again.returncode, again.stderr) == (1, "v1.1.0 is taken, and tags never move: write the next one into VERSION\n")


BROKEN = {
    "core/cert-manager/1.14.0/uat": ("resources: [../nowhere]\n", "nowhere"),
    "core/cert-manager/1.15.0/dev": ("resources: [service.yaml]\n", "core/cert-manager/1.15.0"),
}


@pytest.mark.parametrize("directory", BROKEN)
def test_nothing_is_pushed_of_a_repository_that_is_not_whole(directory: str, checkout: Path) -> None:
    kustomization, said = BROKEN[directory]
    (checkout / directory).mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkout / "observability/grafana/17.0.0/base/service.yaml", checkout / directory / "service.yaml")
    (checkout / directory / "kustomization.yaml").write_text(kustomization)
    pushed = checkout.parent / "pushed"
    done = run_steps(checkout, pushed)
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert pushed.read_text() == ""


# In a cluster


def test_a_cluster_runs_the_environment_the_path_and_the_tag_that_it_is_given(home: Home, kube: Kube) -> None:
    paths = [path for path in REPOSITORY.rglob("*.yaml") if path != WORKFLOW]
    files = {path.relative_to(REPOSITORY).as_posix(): path.read_text() for path in paths}
    repository = "platform/sample"
    home.charts.registry.push_files(repository, "v1.0.0", files)
    url = f"oci://{home.charts.registry.address}/{repository}"
    old, new = "observability/grafana/17.0.0", "observability/grafana/17.1.0"
    home.component("grafana", type="kustomize", component_path=old, oci_url=url, oci_tag="v1.0.0", cluster_env_enabled=True)

    def runs(version: str, replicas: int) -> None:
        (wanted,) = (each for each in built(REPOSITORY / version) if each["kind"] == "Deployment")
        image = wanted["spec"]["template"]["spec"]["containers"][0]["image"]

        def as_wanted(found: Object) -> bool:
            container = found["spec"]["template"]["spec"]["containers"][0]
            return bool(container["image"] == image and found["spec"]["replicas"] == replicas)

        kube.wait_for_object("deployment", "grafana", "grafana", where=as_wanted)

    runs(f"{old}/dev", 1)
    # an upgrade of this cluster alone, in a newer artifact: both axes at once
    release = {**files, f"{new}/dev/kustomization.yaml": files[f"{new}/uat/kustomization.yaml"]}
    home.charts.registry.push_files(repository, "v1.1.0-rc1", release)
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/grafana", {"oci_tag": "v1.1.0-rc1", "component_path": new})
    runs(f"{new}/uat", 2)
    home.call("DELETE", f"/clusters/{DEMO}/platform_components/grafana")
    kube.wait_gone("deployment", "grafana", "grafana")
    assert "deletionTimestamp" not in (kube.get("namespace", "grafana") or {})["metadata"]
