"""The demo does what the README says of `make demo`."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live

pytestmark = pytest.mark.long

POLL = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/platform-components"


def command(directory: Path, port: int) -> list[str]:
    demo = str(live.ROOT / "demo.py")
    return [sys.executable, demo, "--listen", f"127.0.0.1:{port}", "--directory", str(directory)]


@contextlib.contextmanager
def running(directory: Path, port: int, log: Path, **proxies: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The demo's process, and what it said up to the last line of its welcome."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")} | proxies
    with log.open("w") as stderr:
        process = subprocess.Popen(command(directory, port), env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert process.stdout
    watchdog = threading.Timer(60, process.kill)  # whoever waits for a line that does not come then sees the end
    watchdog.start()
    try:
        said = ""
        while "Ctrl-C stops" not in said:
            line = process.stdout.readline()
            assert line, f"the demo stopped:\n{said}{log.read_text()}"
            said += line
        yield process, said
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.terminate()
        process.wait(30)
        process.stdout.close()


def stopped(process: subprocess.Popen[str], number: int) -> int:
    process.send_signal(number)
    return process.wait(30)


def exports(said: str) -> dict[str, str]:
    return dict(re.findall(r"export (FLUX_\w+)=(\S+)", said))


def read_until(process: subprocess.Popen[str], *wanted: str) -> str:
    """Read on until the demo has said all of it, in whatever order."""
    assert process.stdout
    said = ""
    for line in process.stdout:
        said += line
        if all(words in said for words in wanted):
            return said
    raise AssertionError(f"the demo ended without {wanted!r}")


def carried_out(line: str, shown: dict[str, str]) -> None:
    """A line of the welcome, as the reader's shell would do it."""
    program, *arguments = shlex.split(line)
    command = [sys.executable, "-m", {"flux-resourceset-cli": "flux_resourceset.cli"}[program], *arguments]
    done = subprocess.run(command, env={"PATH": os.defpath, **shown}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_a_patch_arrives_in_the_simulated_cluster_before_the_readers_eyes(tmp_path: Path) -> None:
    with running(tmp_path / "demo", live.free_port(), tmp_path / "log") as (process, said):
        assert "demo-cluster-01 | + HelmRelease flux-system/platform-podinfo\n" in said
        (patch,) = re.findall(r"^  (flux-resourceset-cli .+)$", said, re.MULTILINE)
        carried_out(patch, exports(said))
        read_until(process, 'data.replicaCount: "2" → "3"')
        read_until(process, "~ HelmRelease flux-system/platform-podinfo")
        (values,) = (tmp_path / "demo" / "cluster").rglob("values-podinfo-*.yaml")
        assert "replicaCount: '3'" in values.read_text(encoding="utf-8")
        carried_out("flux-resourceset-cli cluster decommission demo-cluster-01 --yes", exports(said))
        read_until(process, "= Namespace podinfo (kept: pruning is disabled on it)")
        read_until(process, "- HelmRelease flux-system/platform-podinfo")
        process.send_signal(signal.SIGINT)
        read_until(process, "stopped; the state stays in")
        assert process.wait(30) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
    with running(tmp_path / "demo", live.free_port(), tmp_path / "log") as (_, again):
        signs = re.findall(r"^demo-cluster-01 \| (.)", again, re.MULTILINE)
        assert signs == ["="] * 3, "the state was not kept"


@pytest.mark.parametrize(
    ("proxies", "lines"),
    [
        ({}, []),
        ({"HTTP_PROXY": "http://127.0.0.1:9"}, ["export NO_PROXY=127.0.0.1"]),
        ({"http_proxy": "127.0.0.1:9", "no_proxy": "a.example.com"}, ['export no_proxy="$no_proxy,127.0.0.1"']),
        ({"http_proxy": "https://127.0.0.1:9", "NO_PROXY": "a"}, ['export NO_PROXY="$NO_PROXY,127.0.0.1"']),
        ({"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "a.example.com,127.0.0.1"}, []),
    ],
)
def test_no_proxy_is_asked_for_the_demo(tmp_path: Path, proxies: dict[str, str], lines: list[str]) -> None:
    with running(tmp_path / "demo", live.free_port(), tmp_path / "log", **proxies) as (_, said):
        assert re.findall(r"^  (export no_proxy=.*)$", said, re.MULTILINE | re.IGNORECASE) == lines
        for line in lines:
            name, value = line.removeprefix("export ").split("=")
            proxies |= {name: value.strip('"').replace(f"${name}", proxies.get(name, ""))}
        carried_out("flux-resourceset-cli cluster list", {**exports(said), **proxies})


@pytest.mark.thorough  # the cluster of the demo waits a second between polls
def test_the_simulated_cluster_keeps_its_state_while_the_server_is_away(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with running(directory, live.free_port(), tmp_path / "log") as (process, said):
        before = {path: path.read_text() for path in (directory / "cluster").rglob("*.yaml")}
        (server,) = re.findall(r"^  kill (\d+)$", said, re.MULTILINE)
        read_until(process, "is simulated in")
        os.kill(int(server), signal.SIGTERM)
        away = read_until(process, "Ctrl-C stops the rest.", "! namespaces: cannot reach", "! rolebindings: cannot reach")
        assert "; the last state is kept\n" in away
        assert {path: path.read_text() for path in (directory / "cluster").rglob("*.yaml")} == before
        (restart,) = re.findall(r"^  (env .+)$", away, re.MULTILINE)
        with (tmp_path / "again.log").open("w") as log:
            again = subprocess.Popen(shlex.split(restart), stdout=log, stderr=log)
        try:
            read_until(process, "! namespaces: back again")
            carried_out(
                "flux-resourceset-cli component patch podinfo --cluster demo-cluster-01 --set replicaCount=5", exports(said)
            )
            read_until(process, 'data.replicaCount: "2" → "5"')
        finally:
            again.terminate()
            again.wait(30)
        assert stopped(process, signal.SIGINT) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_the_demo_serves_its_fleet_keeps_its_data_and_stops_on_ctrl_c(tmp_path: Path) -> None:
    port, directory, log = live.free_port(), tmp_path / "demo", tmp_path / "log"
    with running(directory, port, log) as (process, said):
        shown = exports(said)
        reading = {"Authorization": f"Bearer {shown['FLUX_API_TOKEN']}"}
        inputs = httpx.get(shown["FLUX_API_URL"] + POLL, headers=reading).json()["inputs"]
        assert [item["id"] for item in inputs] == ["cert-manager", "traefik", "podinfo"]
        lines = [line.strip() for line in said.splitlines() if line.strip().startswith("curl ")]
        assert [POLL in lines[0], "-X PATCH" in lines[1], lines[2].endswith("/changes")] == [True] * 3
        writing = {"Authorization": f"Bearer {shown['FLUX_API_WRITE_TOKEN']}"}
        patches = f"{shown['FLUX_API_URL']}/clusters/demo-cluster-01/patches/podinfo"
        body = json.loads(re.findall(r"-d '([^']+)'", lines[1])[0])
        assert httpx.patch(patches, headers=writing, json=body).json()["patches"]["podinfo"]["replicaCount"] == "4"
        assert stopped(process, signal.SIGINT) == 0
    assert "Traceback" not in log.read_text()
    assert str(directory) in said
    with running(directory, port, log) as (process, again):
        assert exports(again) == shown
        assert httpx.get(patches, headers=reading).json()["replicaCount"] == "4"
        assert stopped(process, signal.SIGTERM) == 0
    with contextlib.closing(socket.socket()) as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_data_and_tokens_are_for_the_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with running(directory, live.free_port(), tmp_path / "log"):
        files = [path for path in directory.iterdir() if path.is_file()]
        modes = {path.name: stat.S_IMODE(os.stat(path).st_mode) for path in (directory, *files)}
    assert modes.pop("demo") == 0o700
    assert modes.keys() >= {"tokens", "fleet.db"}
    assert set(modes.values()) == {0o600}


def test_a_busy_port_is_one_clear_line(tmp_path: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(command(tmp_path, port), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"demo: 127\.0\.0\.1:{port} cannot be used \(Address already in use\); .+\n", done.stderr)


def test_the_seed_holds_the_demo_fleet() -> None:
    seed = json.loads((live.ROOT / "data" / "seed.json").read_text(encoding="utf-8"))
    (cluster,) = seed["clusters"]
    assert (cluster["id"], cluster["environment"]) == ("demo-cluster-01", "dev")
    assert cluster["cluster_dns"] == "demo-cluster-01.k8s.example.com"
    names = ["cert-manager", "traefik", "podinfo"]
    for field in ("platform_components", "namespaces"):
        assert [reference["id"] for reference in cluster[field]] == names
        assert [definition["id"] for definition in seed[field]] == names
    assert {item["id"]: item["role"] for item in seed["rolebindings"]} == {
        "platform-admins": "cluster-admin",
        "dev-readers": "view",
    }
    assert [reference["id"] for reference in cluster["rolebindings"]] == ["platform-admins", "dev-readers"]
    assert cluster["patches"]["podinfo"].keys() == {"replicaCount", "ui.color", "ui.message"}
    assert cluster["patches"]["traefik"].keys() == {"deployment.replicas", "service.type"}
    assert all(component["oci_url"].startswith("https://") for component in seed["platform_components"])
