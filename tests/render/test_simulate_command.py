"""`simulate`: what Flux would do in a cluster, done to a directory."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from cli.command import PROGRAM, Cli, Done
from e2e import faults
from flux_resourceset import atomic_files
from flux_resourceset.render import dialect
from render.conftest import SERVED

pytestmark = pytest.mark.long

CLUSTER = "demo-cluster-01"
DNS = "demo-cluster-01.k8s.example.com"
VALUES = "flux-system/configmap/values-podinfo-demo-cluster-01.yaml"
RELEASE = "flux-system/helmrelease.helm.toolkit.fluxcd.io/platform-podinfo.yaml"
VIEWS = 7  # of the package and of examples/kinds
LARGEST = '{"inputs": []}'.ljust(900 * 1024)  # bytes that Flux takes


class Simulated:
    """A cluster of its own server, simulated in a directory."""

    def __init__(self, server: live.Server, home: Path) -> None:
        self.server = server
        self.cli = Cli(home, server.url)
        self.root = home / "cluster"

    def turn(self, cluster: str = CLUSTER) -> Done:
        done = self.cli("simulate", cluster, "--once", "--directory", str(self.root))
        assert "Traceback" not in done.err
        return done

    def files(self) -> dict[str, str]:
        return {path.relative_to(self.root).as_posix(): path.read_text() for path in self.root.rglob("*.yaml")}

    def object(self, name: str) -> dict[str, Any]:
        ((_, manifest),) = dialect.documents((self.root / name).read_text())
        found: dict[str, Any] = manifest
        return found

    def write(self, method: str, path: str, body: Any = None) -> None:
        with self.server.client() as api:
            answer = api.request(method, path, json=body)
        assert answer.is_success, answer.text


@pytest.fixture
def simulated(tmp_path: Path) -> Iterator[Simulated]:
    with live.serving(tmp_path, **SERVED) as server:
        yield Simulated(server, tmp_path)


def signs(done: Done) -> set[str]:
    return {line for line in done.out.splitlines() if not line.startswith(" ")}


def test_changes_are_told_in_the_format_that_was_asked_for(simulated: Simulated) -> None:
    words = ("simulate", CLUSTER, "--once", "--directory", str(simulated.root))
    told = [json.loads(line) for line in simulated.cli.ok(*words, "-o", "json").out.splitlines()]
    assert {each["change"] for each in told} == {"created"}
    namespace = {"change": "created", "group": "", "kind": "Namespace", "namespace": "", "name": "podinfo", "fields": []}
    assert namespace in told
    simulated.write("PATCH", "/namespaces/podinfo", {"labels": {"told": "yes"}})
    assert simulated.cli.ok(*words, "-o", "name").out == "namespace/podinfo\n"
    simulated.write("PATCH", "/namespaces/podinfo", {"labels": {"told": "again"}})
    assert "change: updated" in simulated.cli.ok(*words, "-o", "yaml").out


def test_the_first_poll_creates_everything_and_the_second_changes_nothing(simulated: Simulated) -> None:
    first = simulated.turn()
    assert first.code == 0
    assert {"+ Namespace podinfo", "+ HelmRelease flux-system/platform-podinfo", "+ ClusterRoleBinding dev-readers"} <= signs(
        first
    )
    assert len(simulated.files()) == len(signs(first))
    assert simulated.turn().out == ""


def test_a_patch_shows_the_field_that_changed(simulated: Simulated) -> None:
    simulated.turn()
    simulated.write("PATCH", f"/clusters/{CLUSTER}/patches/podinfo", {"replicaCount": "3", "ui.message": None, "ui.logo": "x"})
    lines = simulated.turn().out.splitlines()
    start = lines.index("~ ConfigMap flux-system/values-podinfo-demo-cluster-01")
    assert set(lines[start + 1 : start + 4]) == {
        '    data.replicaCount: "2" → "3"',
        '    data["ui.message"]: "Hello from patches" → gone',
        '    data["ui.logo"]: "x" is new',
    }
    assert simulated.object(VALUES)["data"]["replicaCount"] == "3"


def test_a_disabled_component_is_pruned_and_nothing_else(simulated: Simulated) -> None:
    simulated.turn()
    before = simulated.files()
    simulated.write("PATCH", f"/clusters/{CLUSTER}/platform_components/podinfo", {"enabled": False})
    assert signs(simulated.turn()) == {
        "- ConfigMap flux-system/values-podinfo-demo-cluster-01",
        "- HelmRelease flux-system/platform-podinfo",
        "- HelmRepository flux-system/charts-podinfo",
    }
    assert {name: text for name, text in before.items() if "podinfo" not in name} == {
        name: text for name, text in simulated.files().items() if "podinfo" not in name
    }
    assert RELEASE not in simulated.files()


def test_an_unassigned_namespace_is_kept_unless_it_may_be_pruned(simulated: Simulated) -> None:
    simulated.write("PATCH", "/namespaces/traefik", {"allow_prune": True})
    simulated.turn()
    for name in ("podinfo", "traefik"):
        simulated.write("DELETE", f"/clusters/{CLUSTER}/namespaces/{name}")
    assert signs(simulated.turn()) == {"= Namespace podinfo (kept: pruning is disabled on it)", "- Namespace traefik"}
    assert "cluster-wide/namespace/podinfo.yaml" in simulated.files()
    assert "cluster-wide/namespace/traefik.yaml" not in simulated.files()


def test_a_decommissioned_cluster_is_emptied_but_for_its_namespaces(simulated: Simulated) -> None:
    simulated.turn()
    simulated.write("DELETE", f"/clusters/{CLUSTER}")
    assert simulated.turn(DNS).code == 0
    assert set(simulated.files()) == {f"cluster-wide/namespace/{name}.yaml" for name in ("cert-manager", "podinfo", "traefik")}


def test_a_cluster_that_never_was_touches_nothing(simulated: Simulated) -> None:
    simulated.turn()
    before = simulated.files()
    done = simulated.turn("never.example.com")
    assert done.code == 5
    assert "namespaces: the server answered 404" in done.err
    assert simulated.files() == before


def test_a_template_that_fails_keeps_the_last_state_of_its_view_alone(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    for name in ("network_policies.yaml", "network_policies.resourceset.yaml"):
        (kinds / name).write_text((live.ROOT / "examples" / "kinds" / name).read_text())
    served = {"SEED_FILE": SERVED["SEED_FILE"], "RESOURCES_DIR": str(kinds)}
    policy = {"id": "allow", "target_namespace": "podinfo", "ingress_rules": []}
    with live.serving(tmp_path, **served) as server:
        simulated = Simulated(server, tmp_path)
        simulated.write("POST", "/network_policies", policy)
        simulated.write("PUT", f"/clusters/{CLUSTER}/network_policies/allow", {})
        assert "+ NetworkPolicy podinfo/allow" in signs(simulated.turn())
    before = simulated.files()
    template = kinds / "network_policies.resourceset.yaml"
    template.write_text(template.read_text().replace("inputs.target_namespace", "inputs.target_namespaces"))
    with live.serving(tmp_path, **served) as server:
        simulated = Simulated(server, tmp_path)
        simulated.write("DELETE", f"/clusters/{CLUSTER}/rolebindings/dev-readers")
        done = simulated.turn()
    assert done.code == 3
    assert "network-policies: cannot be rendered: input 'allow'" in done.err
    assert signs(done) == {"- ClusterRoleBinding dev-readers"}
    assert before.items() >= simulated.files().items()


def test_a_directory_with_other_things_in_it_is_refused(simulated: Simulated) -> None:
    simulated.root.mkdir()
    for name in ("diary.txt", "diary.yaml.2026", atomic_files.draft_name()):  # a draft stands beside its object
        (simulated.root / name).write_text("dear diary")
        done = simulated.turn()
        assert done.code == 2
        assert f"{name} was not made here" in done.lines[0]
        (simulated.root / name).unlink()


def test_a_draft_that_was_left_behind_is_cleared_away(simulated: Simulated) -> None:
    simulated.turn()
    draft = (simulated.root / VALUES).with_name(atomic_files.draft_name())
    draft.write_text("apiVersion: v1\nkind: Conf")
    assert simulated.turn().code == 0
    assert not draft.exists()


def test_a_longer_list_shows_what_came(simulated: Simulated) -> None:
    simulated.turn()
    simulated.write("PATCH", f"/clusters/{CLUSTER}/patches/podinfo", {"aaa": "1", "zzz": "1"})
    fields = [line.strip() for line in simulated.turn().out.splitlines() if "valuesFrom" in line]
    added = '{"kind": "ConfigMap", "name": "values-podinfo-demo-cluster-01", "valuesKey": "%s", "targetPath": "%s"} is new'
    assert fields == [f"spec.valuesFrom[{place}]: {added % (key, key)}" for place, key in ((0, "aaa"), (4, "zzz"))]


def test_a_long_text_shows_where_it_changed(simulated: Simulated) -> None:
    for end in ("one", "two"):
        simulated.write("PATCH", f"/clusters/{CLUSTER}/patches/podinfo", {"ui.message": f"{'so ' * 100}{end}"})
        done = simulated.turn()
    (line,) = [line for line in done.out.splitlines() if "ui.message" in line]
    assert re.fullmatch(r'    data\["ui\.message"\]: …[so ]+one" → …[so ]+two"', line)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_directory_that_cannot_be_written_is_named(place: str, simulated: Simulated, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (line,) = simulated.cli.refused(2, "simulate", CLUSTER, "--once", "--directory", str(tmp_path / place))
    assert line.startswith(f"{tmp_path / place} cannot be written: ")


def test_an_interval_beyond_all_clocks_is_refused(simulated: Simulated) -> None:
    (line,) = simulated.cli.refused(
        2, "simulate", CLUSTER, "--interval", "99999999999999999h", "--directory", str(simulated.root)
    )
    assert "--interval" in line


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("[]", "it is not the object that was due"),
        ('{"inputs": null}', "it is not the object that was due"),
        (LARGEST + " ", "and Flux takes no more than 921600"),
        ("[" * 100_000, "where JSON was due"),
        ('{"inputs": [{"id": "a", "deep": ' + "[" * 200 + "]" * 200 + "}]}", "nested more than 100 levels deep"),
    ],
)
def test_an_answer_that_flux_would_refuse_keeps_the_last_state(body: str, reason: str, simulated: Simulated) -> None:
    simulated.turn()
    before = simulated.files()
    with faults.proxying(simulated.server.address) as proxy:
        proxy.fault = lambda handler: "/api/v2/flux/" in handler.path and faults.body(body)(handler)
        done = simulated.cli.but(FLUX_API_URL=proxy.url)("simulate", CLUSTER, "--once", "--directory", str(simulated.root))
    assert (done.code, done.out) == (5, "")
    assert reason in done.err
    assert done.err.count("the last state is kept") == VIEWS
    assert simulated.files() == before


def test_the_largest_answer_that_flux_takes_is_taken(simulated: Simulated) -> None:
    simulated.turn()
    with faults.proxying(simulated.server.address) as proxy:
        proxy.fault = lambda handler: handler.path.endswith("/rolebindings") and faults.body(LARGEST)(handler)
        done = simulated.cli.but(FLUX_API_URL=proxy.url)("simulate", CLUSTER, "--once", "--directory", str(simulated.root))
    assert done.code == 0
    assert signs(done) == {"- ClusterRoleBinding platform-admins", "- ClusterRoleBinding dev-readers"}


# Running on


def eventually(what: Callable[[], object]) -> None:
    """Wait until it holds; the limit is for a program that hangs, not a claim about speed."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextlib.contextmanager
def running(simulated: Simulated) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    log = simulated.root.parent / "simulate.log"
    words = ["simulate", CLUSTER, "--interval", "50ms", "--directory", str(simulated.root), "--engine", "builtin"]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [*PROGRAM, *words], stdout=stream, stderr=stream, env=simulated.cli.environment, text=True, process_group=0
        )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_drift_is_repaired_at_the_next_turn(simulated: Simulated) -> None:
    with running(simulated) as (_, log):
        eventually(lambda: "+ ClusterRoleBinding dev-readers" in log.read_text())
        before = simulated.files()
        (simulated.root / RELEASE).unlink()
        eventually(lambda: log.read_text().count("+ HelmRelease flux-system/platform-podinfo") == 2)
        values = simulated.root / VALUES
        values.write_text(values.read_text().replace("replicaCount: '2'", "replicaCount: '9'"))
        eventually(lambda: 'data.replicaCount: "9" → "2"' in log.read_text())
        for text in ("no manifest", values.read_text().replace("labels:", "labels: [a]\n  finalizers:")):
            values.write_text(text)
            eventually(lambda: simulated.files() == before)
        simulated.root.rename(simulated.root.with_name("aside"))  # at once: it goes on writing while a tree is removed
        eventually(lambda: simulated.files() == before)


def test_a_directory_that_becomes_unusable_ends_it_with_its_name(simulated: Simulated) -> None:
    with running(simulated) as (process, log):
        eventually(lambda: "+ ClusterRoleBinding dev-readers" in log.read_text())
        simulated.root.rename(simulated.root.with_name("aside"))
        simulated.root.write_text("")
        assert process.wait(60) == 2
        assert f"error: {simulated.root} cannot be written: " in log.read_text()


def test_it_outlives_its_server_and_goes_on_where_it_was(simulated: Simulated, tmp_path: Path) -> None:
    with running(simulated) as (process, log):
        eventually(lambda: "+ ClusterRoleBinding dev-readers" in log.read_text())
        before = simulated.files()
        simulated.server.kill()
        eventually(lambda: all(f"! {view}: cannot reach" in log.read_text() for view in ("namespaces", "rolebindings")))
        assert "the last state is kept" in log.read_text()
        assert simulated.files() == before
        port = str(simulated.server.address[1])
        with live.serving(tmp_path, **SERVED, LISTEN_ADDR=f"127.0.0.1:{port}") as server:
            patch = f"{server.url}/clusters/{CLUSTER}/patches/podinfo"
            httpx.patch(patch, json={"replicaCount": "7"}, headers={"Authorization": f"Bearer {live.WRITE}"}).raise_for_status()
            eventually(lambda: 'data.replicaCount: "2" → "7"' in log.read_text())
            assert "platform-components: back again" in log.read_text()
        assert process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_when_it_is_told_to(number: signal.Signals, simulated: Simulated) -> None:
    with running(simulated) as (process, log):
        eventually(lambda: "+ ClusterRoleBinding dev-readers" in log.read_text())
        process.send_signal(number)
        assert process.wait(60) == 0
        assert "stopped; the state stays in" in log.read_text()
        assert "Traceback" not in log.read_text()
    assert RELEASE in simulated.files()
