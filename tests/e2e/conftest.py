"""The fixtures of the end-to-end suite: one control plane for the whole session."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from . import charts as chart_sources
from . import control_plane as control_planes
from . import workloads
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
def charts(control_plane: control_planes.ControlPlane) -> Iterator[chart_sources.Charts]:
    with chart_sources.serving(control_plane.registry) as served:
        yield served


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
