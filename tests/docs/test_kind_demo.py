"""The kind demo, as far as it can be seen without Docker: real scripts, with recorders in the place of the tools they call."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

import live
from e2e.tools import upstreams

pytestmark = pytest.mark.long

KIND = live.ROOT / "deploy" / "kind"
SCRIPTS = sorted(KIND.glob("*.sh"))
TOOLS = ("docker", "kind", "kubectl", "flux", "curl")
SYSTEM = ("bash", "env", "dirname", "grep", "head", "base64", "tr", "date", "cat", "sleep")

# Writes down how it was called; $ANSWERS holds, for words of the command line, what to print or how to fail.
RECORDER = f"""#!{sys.executable} -IS
import json, os, sys
line = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]])
with open(os.environ["CALLS"], "a") as calls:
    calls.write(line + "\\n")
if "/dev/stdin" in line or line.endswith("apply -f -"):
    sys.stdin.read()
for words, (code, text) in json.loads(os.environ["ANSWERS"]).items():
    if words in line:
        sys.stdout.write(text)
        sys.exit(code)
"""


Answers = dict[str, tuple[int, str]]


class Place:
    """A PATH of our own, with recorders for the tools that are there."""

    def __init__(self, directory: Path, tools: Sequence[str] = TOOLS) -> None:
        self.bin = directory / "bin"
        self.bin.mkdir()
        self._calls = directory / "calls"
        for name in (*SYSTEM, "make"):
            found = shutil.which(name)
            assert found, f"{name} is needed"
            (self.bin / name).symlink_to(found)
        for name in tools:
            (self.bin / name).write_text(RECORDER)
            (self.bin / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    def run(self, *command: str, answers: Answers | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.bin), "CALLS": str(self._calls), "ANSWERS": json.dumps(answers or {}), **env}
        return subprocess.run(command, cwd=live.ROOT, env=env, capture_output=True, text=True, timeout=60)


def script(name: str) -> str:
    return str(KIND / name)


def make(place: Place, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    return place.run("make", *options, "-f", "Makefile", "-f", "Makefile.kind", target)


SEED = (live.ROOT / "data" / "seed.json").read_text(encoding="utf-8")
THERE = {"kind get clusters": (0, "flux-demo\n"), "jsonpath={.data.seed": (0, SEED)}


# Before anything starts


@pytest.mark.parametrize("target", ["kind-create", "kind-demo"])
def test_every_missing_tool_is_named_before_anything_starts(target: str, tmp_path: Path) -> None:
    place = Place(tmp_path, ["docker", "kubectl", "curl"])
    done = make(place, target)
    assert done.returncode != 0
    assert "kind demo: missing: kind flux;" in done.stderr
    assert place.calls == []


def test_a_docker_without_its_daemon_is_told(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run(script("preflight.sh"), "docker", "kind", answers={"docker info": (1, "")})
    assert (done.returncode, place.calls) == (2, ["docker info"])
    assert "its daemon does not answer" in done.stderr


def test_without_the_cluster_the_demo_says_how_to_make_it(tmp_path: Path) -> None:
    done = Place(tmp_path).run(script("demo.sh"))
    assert (done.returncode, "make kind-create makes it" in done.stderr) == (2, True), done


def test_without_the_port_forward_the_cli_demo_asks_for_it(tmp_path: Path) -> None:
    done = Place(tmp_path).run(script("cli-demo.sh"), answers={"curl": (7, "")})
    assert (done.returncode, "make cli-demo-port-forward in another terminal" in done.stderr) == (2, True), done


# Step by step


def test_the_cluster_is_made_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert place.run(script("create.sh")).returncode == 0
    assert "kind create cluster --config deploy/kind/cluster.yaml --wait 180s" in place.calls
    before = len(place.calls)
    done = place.run(script("create.sh"), answers=THERE)
    assert (done.returncode, "it is there already" in done.stdout) == (0, True), done
    assert not any("create" in call for call in place.calls[before:])


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a demo calls that goes through, in a cluster that has no token yet."""
    place = Place(tmp_path_factory.mktemp("demo"))
    done = place.run(script("demo.sh"), answers={**THERE, "get secret/internal-api-token": (1, "")})
    assert done.returncode == 0, done.stdout + done.stderr
    return place.calls


def test_the_demo_goes_from_the_image_to_the_releases_in_order(calls: list[str]) -> None:
    wanted = [
        "kind load docker-image flux-resourceset:local --name flux-demo",
        "install.yaml",
        "rollout status deployment/flux-operator",
        "apply -k deploy/flux",
        "wait fluxinstance/flux",
        "rollout status deployment/helm-controller",
        "create secret generic internal-api-token",
        "create configmap flux-api-seed-data --from-file=seed.json=data/seed.json",
        "apply -k deploy/server/overlays/demo",
        "rollout status deployment/flux-api-crud",
        "rollout status deployment/flux-api-read",
        "component patch cert-manager --cluster demo-cluster-01",
        "apply -k deploy/cluster/overlays/demo",
        *(f"wait resourcesetinputprovider/{view}" for view in ("platform-components", "namespaces", "rolebindings")),
        *(f"wait resourceset/{view}" for view in ("platform-components", "namespaces", "rolebindings")),
        "get clusterrolebinding/platform-admins clusterrolebinding/dev-readers",
        *(f"wait helmrelease/platform-{name}" for name in ("cert-manager", "traefik", "podinfo")),
    ]
    left = iter(calls)
    for words in wanted:
        assert any(words in call for call in left), f"{words!r} is missing, or not in its place in {calls}"


def test_no_other_cluster_is_touched_and_no_process_list_shows_the_token(calls: list[str]) -> None:
    kubectl = [call for call in calls if call.startswith("kubectl ")]
    assert len(kubectl) > 20
    assert all(call.startswith("kubectl --context kind-flux-demo ") for call in kubectl)
    (secret,) = (call for call in kubectl if "create secret" in call)
    assert secret.endswith("--from-file=token=/dev/stdin")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("install.yaml", "could not be applied"),
        ("rollout status deployment/flux-operator", "deployment/flux-operator is not available within 300 s"),
        ("wait fluxinstance/flux", "fluxinstance/flux is not ready within 600 s"),
        ("rollout status deployment/flux-api-crud", "deployment/flux-api-crud is not available within 180 s"),
        ("wait resourcesetinputprovider/namespaces", "resourcesetinputprovider/namespaces is not ready within 120 s"),
        ("wait helmrelease/platform-podinfo", "helmrelease/platform-podinfo is not ready within 600 s"),
    ],
)
def test_a_step_that_fails_says_what_was_waited_for_and_ends_the_demo(words: str, message: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run(script("demo.sh"), answers={words: (1, ""), **THERE})
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert words in place.calls[-1]


def test_a_seed_that_did_not_arrive_ends_the_demo(tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run(script("demo.sh"), answers={"get configmap flux-api-seed-data": (0, "{}"), **THERE})
    assert (done.returncode, "does not hold data/seed.json" in done.stderr) == (2, True), done


def test_the_cli_demo_adds_a_namespace_and_patches_podinfo_for_real(tmp_path: Path) -> None:
    place, token = Place(tmp_path), base64.b64encode(live.WRITE.encode()).decode()
    new = "replicas=3 color=#3b82f6 message=Hello from CLI patch\n"
    answers = {"get secret internal-api-token": (0, token), "get configmap values-": (0, new), "get deployment podinfo": (0, new)}
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as api:
        for _ in range(2):  # it can be repeated
            done = place.run(script("cli-demo.sh"), answers=answers, FLUX_API_URL=server.url)
            assert done.returncode == 0, done.stdout + done.stderr
        cluster = api.get("/clusters/demo-cluster-01").json()
    assert {"id": "demo-runtime"} in cluster["namespaces"]
    assert cluster["patches"]["podinfo"] == {
        "replicaCount": "3", "ui.color": "#3b82f6", "ui.message": "Hello from CLI patch",
    }  # fmt: skip
    left = iter(place.calls)
    for words in (
        "annotate resourcesetinputprovider namespaces --overwrite reconcile.fluxcd.io/requestedAt=",
        "get namespace/demo-runtime",
        "annotate resourcesetinputprovider platform-components --overwrite reconcile.fluxcd.io/requestedAt=",
        "flux --context kind-flux-demo reconcile helmrelease platform-podinfo --namespace flux-system --with-source",
        "get deployment podinfo",
    ):
        assert any(words in call for call in left), f"{words!r} is missing, or not in its place in {place.calls}"


def test_only_the_demos_cluster_is_deleted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert make(place, "kind-delete").returncode == 0
    assert not any("delete" in call for call in place.calls)
    assert place.run(script("delete.sh"), answers=THERE).returncode == 0
    assert [call for call in place.calls if "delete" in call] == ["kind delete cluster --name flux-demo"]


# What it is made of


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("docker-build", ["docker build --tag flux-resourceset:local ."]),
        ("kind-create", ["preflight.sh docker kind kubectl flux curl", "docker build", "create.sh"]),
        ("kind-demo", ["preflight.sh docker kind kubectl flux curl", "docker build", "demo.sh"]),
        ("cli-demo-port-forward", ["preflight.sh kubectl", "port-forward.sh"]),
        ("cli-demo", ["preflight.sh kubectl flux curl", "cli-demo.sh"]),
        ("kind-delete", ["delete.sh"]),
    ],
)
def test_a_target_takes_its_steps_in_order(target: str, lines: list[str], tmp_path: Path) -> None:
    said = make(Place(tmp_path), target, "-n").stdout
    left = iter(said.splitlines())
    for words in lines:
        assert any(words in line for line in left), f"{words!r} is missing, or not in its place in {said}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_bash(path: Path) -> None:
    subprocess.run(["bash", "-n", str(path)], check=True, timeout=30)
    assert path.name == "steps.sh" or os.access(path, os.X_OK)


def test_shellcheck_finds_nothing() -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed")  # no package registry has it; the test above reads the scripts with bash
    done = subprocess.run([program, "-x", *map(str, SCRIPTS)], cwd=live.ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_versions_are_pinned_to_what_is_tested() -> None:
    steps = (KIND / "steps.sh").read_text(encoding="utf-8")
    (operator,) = (each.version for each in upstreams.UPSTREAMS if each.directory == "flux-operator")
    assert f"\nOPERATOR={operator} " in steps
    cluster = yaml.safe_load((KIND / "cluster.yaml").read_text(encoding="utf-8"))
    (node,) = cluster["nodes"]
    assert (cluster["name"], "@sha256:" in node["image"]) == ("flux-demo", True)
    assert node["image"].split(":")[1].rpartition(".")[0] == upstreams.KUBERNETES.rpartition(".")[0]
