"""A server with the demo fleet and the kinds of examples/, and the command that talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from cli.command import Cli

SERVED = {"SEED_FILE": str(live.ROOT / "data" / "seed.json"), "RESOURCES_DIR": str(live.ROOT / "examples" / "kinds")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    with live.serving(tmp_path_factory.mktemp("server"), **SERVED) as server:
        yield server


@pytest.fixture
def cli(server: live.Server, tmp_path: Path) -> Cli:
    return Cli(tmp_path, server.url)
