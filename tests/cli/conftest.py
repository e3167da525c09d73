"""One server with the demo data and two further kinds for all tests of a worker; tests use ids of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live
from cli.command import Cli

KINDS = Path(__file__).parent / "kinds"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    with live.serving(
        tmp_path_factory.mktemp("cli"), SEED_FILE=str(live.ROOT / "data" / "seed.json"), RESOURCES_DIR=str(KINDS)
    ) as running:
        yield running


@pytest.fixture(scope="session")
def api(server: live.Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def cli(server: live.Server, home: Path) -> Cli:
    return Cli(home, server.url)


@pytest.fixture
def offline(tmp_path: Path) -> Cli:
    """The command with no server, no configuration and an empty home."""
    return Cli(tmp_path)
