"""One server with the demo data for all tests of a worker; tests use ids of their own and leave the demo alone.

Polls are answered on two ways, and every client asks as Flux does, on the fast one. Modules that look at what Flux gets
say `pytestmark = pytest.mark.usefixtures("both_ways")`, and run once on each.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

import live
from api import fleets


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    with live.serving(tmp_path_factory.mktemp("api"), SEED_FILE=str(fleets.SEED)) as running:
        yield running


@pytest.fixture(scope="session")
def api(server: live.Server) -> Iterator[httpx.Client]:
    """A client with the write token."""
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def reader(server: live.Server) -> Iterator[httpx.Client]:
    """A client with the read token, as a cluster has it."""
    with server.client(live.READ) as client:
        yield client


@pytest.fixture(scope="session")
def stranger(server: live.Server) -> Iterator[httpx.Client]:
    """A client without a token."""
    with server.client(None) as client:
        yield client
