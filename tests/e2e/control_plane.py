"""Kubernetes, Flux Operator, the Flux controllers and an OCI registry, as processes on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import certificates, kube, processes
from .tools import build

# Only what a test needs: namespaces must terminate, owners' objects be collected, and service accounts exist.
CONTROLLERS = "namespace-controller,garbage-collector-controller,serviceaccount-controller"


class ToolsMissing(Exception):
    """The programs were not built, or other versions are pinned by now."""


@dataclass(frozen=True)
class ControlPlane:
    """What runs: where its files are, how to talk to it."""

    directory: Path
    bin: Path
    processes: processes.Processes
    authority: certificates.Authority
    api_url: str
    registry: str  # host:port of the OCI registry, plain HTTP

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def kube(self) -> kube.Kube:
        return kube.Kube(self.bin / "kubectl", self.kubeconfig)

    @property
    def admin(self) -> certificates.Pair:
        pki = self.authority.directory
        return certificates.Pair(pki / "admin.crt", pki / "admin.key")


@contextlib.contextmanager
def running(directory: Path) -> Iterator[ControlPlane]:
    """Starts everything under the directory, and stops everything, also when the start itself fails."""
    cache = build.home(os.environ)
    missing = build.missing(cache)
    if missing:
        names = ", ".join(missing)
        raise ToolsMissing(f"not built for the present pins: {names}; run tests/e2e/tools/build.sh")
    ports = processes.free_ports(2)
    with processes.Processes(directory) as started:
        plane = ControlPlane(
            directory,
            cache / "bin",
            started,
            certificates.Authority.create(directory / "pki"),
            f"https://127.0.0.1:{ports[0]}",
            f"127.0.0.1:{ports[1]}",
        )
        start_kubernetes(plane)
        apply_definitions(plane, cache / "crds")
        start_flux(plane)
        yield plane


def start_kubernetes(plane: ControlPlane) -> None:
    client_port, peer_port, manager_port = processes.free_ports(3)
    etcd_url, peer_url = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    plane.processes.start("etcd", plane.bin / "etcd", *_etcd_flags(plane, etcd_url, peer_url))
    _issue_certificates(plane)
    serving = _apiserver_flags(plane, etcd_url)
    server = plane.processes.start("kube-apiserver", plane.bin / "kube-apiserver", *serving)
    server.wait_until(lambda: _answers_ok(plane))
    manager = _controller_manager_flags(plane, manager_port)
    plane.processes.start("kube-controller-manager", plane.bin / "kube-controller-manager", *manager)


def _etcd_flags(plane: ControlPlane, url: str, peer_url: str) -> list[str]:
    return [
        "--name=e2e",
        f"--data-dir={plane.directory / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=e2e={peer_url}",
        "--unsafe-no-fsync",  # nothing here has to survive a crash
        "--log-level=warn",
    ]


def _issue_certificates(plane: ControlPlane) -> None:
    plane.authority.server("apiserver", ["IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"])
    plane.authority.client("admin", organization="system:masters")
    certificates.rsa_key(plane.authority.directory / "service-account.key")
    cluster = {"server": plane.api_url, "certificate-authority": str(plane.authority.own.certificate)}
    user = {"client-certificate": str(plane.admin.certificate), "client-key": str(plane.admin.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "admin"}}],
        "current-context": "e2e",
    }
    plane.kubeconfig.write_text(json.dumps(config), encoding="utf-8")


def _apiserver_flags(plane: ControlPlane, etcd_url: str) -> list[str]:
    pki = plane.authority.directory
    return [
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={plane.api_url.rpartition(':')[2]}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--service-account-issuer={plane.api_url}",
        f"--service-account-key-file={pki / 'service-account.key'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",  # loopback is refused as an endpoint of the `kubernetes` service
    ]


def _controller_manager_flags(plane: ControlPlane, port: int) -> list[str]:
    pki = plane.authority.directory
    return [
        f"--kubeconfig={plane.kubeconfig}",
        f"--authentication-kubeconfig={plane.kubeconfig}",
        f"--authorization-kubeconfig={plane.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--leader-elect=false",
        "--use-service-account-credentials=false",
        f"--service-account-private-key-file={pki / 'service-account.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--controllers={CONTROLLERS}",
    ]


def apply_definitions(plane: ControlPlane, definitions: Path) -> None:
    """The custom resources of exactly the pinned versions, and the namespace that Flux works in."""
    folders = [flag for each in sorted(definitions.iterdir()) for flag in ("--filename", str(each))]
    plane.kube.run("apply", "--server-side", *folders)
    plane.kube.run("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    plane.kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kube.NAMESPACE}}])


def start_flux(plane: ControlPlane) -> None:
    """All at once; each tells on its own port when it is ready."""
    storage, events, receiver, *health = processes.free_ports(3 + 5)
    waiting = [
        _start_operator(plane, health[0]),
        _start_controller(plane, "source-controller", health[1], events, *_storage_flags(plane, storage)),
        _start_controller(plane, "helm-controller", health[2], events, "--graceful-shutdown-timeout=1s"),
        _start_controller(plane, "kustomize-controller", health[3], events),
        _start_notifications(plane, health[4], events, receiver),
    ]
    registry_port = plane.registry.rpartition(":")[2]
    registry = plane.processes.start("registry", plane.bin / "registry", "-port", registry_port)
    _wait_for_answer(registry, f"http://{plane.registry}/v2/")
    for process, port in zip(waiting, health, strict=True):
        _wait_for_answer(process, f"http://127.0.0.1:{port}/readyz")


def _start_operator(plane: ControlPlane, health: int) -> processes.Process:
    return plane.processes.start(
        "flux-operator",
        plane.bin / "flux-operator",
        "--enable-leader-election=false",
        "--web-server-port=0",
        "--metrics-addr=0",
        f"--health-addr=127.0.0.1:{health}",
        "--max-retry-delay=5s",  # tests wait for the recovery from an error
        "--requeue-dependency=1s",
        "--interval-jitter-percentage=0",
        f"--storage-path={plane.directory / 'operator'}",
        env=_environment(plane) | {"GODEBUG": "fips140=on"},  # it refuses to start otherwise
    )


def _start_controller(
    plane: ControlPlane,
    name: str,
    health: int,
    events: int,
    *flags: str,
) -> processes.Process:
    return plane.processes.start(
        name,
        plane.bin / name,
        *_controller_flags(health),
        f"--events-addr=http://127.0.0.1:{events}/",
        "--requeue-dependency=1s",
        "--interval-jitter-percentage=0",
        "--concurrent=10",
        *flags,
        env=_environment(plane),
    )


def _start_notifications(plane: ControlPlane, health: int, events: int, receiver: int) -> processes.Process:
    addresses = (f"--events-addr=127.0.0.1:{events}", f"--receiverAddr=127.0.0.1:{receiver}")
    program = plane.bin / "notification-controller"
    flags = (*_controller_flags(health), *addresses)
    return plane.processes.start("notification-controller", program, *flags, env=_environment(plane))


def _controller_flags(health: int) -> list[str]:
    return [
        "--watch-all-namespaces=true",
        "--enable-leader-election=false",
        "--min-retry-delay=200ms",
        "--max-retry-delay=2s",
        "--metrics-addr=0",
        f"--health-addr=127.0.0.1:{health}",
    ]


def _storage_flags(plane: ControlPlane, port: int) -> tuple[str, ...]:
    path = plane.directory / "artifacts"
    path.mkdir()
    address = f"127.0.0.1:{port}"
    return (f"--storage-path={path}", f"--storage-addr={address}", f"--storage-adv-addr={address}")


def _environment(plane: ControlPlane) -> dict[str, str]:
    return {"KUBECONFIG": str(plane.kubeconfig), "RUNTIME_NAMESPACE": kube.NAMESPACE}


def _answers_ok(plane: ControlPlane) -> bool:
    with contextlib.suppress(kube.KubectlFailed):
        return plane.kube.run("get", "--raw", "/readyz") == "ok"
    return False


def _wait_for_answer(process: processes.Process, url: str) -> None:
    process.wait_until(lambda: _answers(url))


def _answers(url: str) -> bool:
    with (
        contextlib.suppress(urllib.error.URLError, OSError),
        urllib.request.urlopen(url, timeout=2) as answer,
    ):
        return bool(answer.status == 200)
    return False
