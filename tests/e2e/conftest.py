"""The fixtures of the end-to-end suite: one control plane for the whole session."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import live

from . import charts as chart_sources
from . import control_plane as control_planes
from . import faults, foreign, shipped, workloads
from . import home as homes
from .kube import Kube

POLL_ANNOTATION = "fluxcd.controlplane.io/reconcileEvery"


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control_planes.ControlPlane]:
    # CI ends a job with SIGTERM, which Python takes as a sudden death: fixtures would not be torn down.
    before = signal.signal(signal.SIGTERM, _interrupt)
    directory: Path = tmp_path_factory.mktemp("control-plane")
    try:
        with (
            control_planes.running(directory) as plane,
            workloads.reported_available(plane.api_url, plane.authority.own, plane.admin),
        ):
            yield plane
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def kube(control_plane: control_planes.ControlPlane) -> Kube:
    return control_plane.kube


@pytest.fixture(scope="session")
def checked(kube: Kube) -> Kube:
    """The same, which knows the custom resources of others too."""
    foreign.establish(kube, *foreign.ALL)
    kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shipped.PLACE}}])
    return kube


@pytest.fixture(scope="session")
def charts(control_plane: control_planes.ControlPlane) -> Iterator[chart_sources.Charts]:
    with chart_sources.serving(control_plane.registry) as served:
        yield served


@pytest.fixture(scope="session")
def home(kube: Kube, charts: chart_sources.Charts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[homes.Home]:
    """Our server with the demo fleet; the control plane is its demo cluster."""
    directory: Path = tmp_path_factory.mktemp("home")
    seed = directory / "seed.json"
    homes.demo_seed(charts, seed)
    tokens = directory / "tokens"
    tokens.write_text("fleet read first-token\n")
    tokens.chmod(0o600)
    environment = live.environment(directory, SEED_FILE=str(seed), TOKENS_FILE=str(tokens))
    server = live.Server(directory, environment)
    try:
        server.wait("/ready")
        with faults.proxying(server.address) as proxy:
            phoned = homes.Home(server, proxy, kube, charts, directory, environment)
            phoned.join(homes.DEMO)
            phoned.providers_ready()
            yield phoned
            server = phoned.server
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def _everything_still_runs(request: pytest.FixtureRequest) -> None:
    """A controller that has died makes every later test time out: say so instead."""
    if "control_plane" in request.fixturenames:
        plane: control_planes.ControlPlane = request.getfixturevalue("control_plane")
        plane.processes.check_alive()


@pytest.fixture
def poll_annotations() -> dict[str, str]:
    """For providers and ResourceSets in tests: what takes minutes in production must take a second here."""
    return {POLL_ANNOTATION: "1s"}
