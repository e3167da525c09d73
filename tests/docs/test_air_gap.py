"""What the page on bootstrapping says of an air gap: an export, served read-only inside, gives the same answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import live

VIEWS = ("platform-components", "namespaces", "rolebindings")


def flux_resourceset(directory: Path, *arguments: str, database: Path) -> None:
    env = live.environment(directory, DATABASE_URL=f"sqlite://{database}?mode=rwc", SEED_FILE="")
    command = [sys.executable, "-m", "flux_resourceset.server", *arguments]
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def answers(server: live.Server) -> list[bytes]:
    with server.client(live.READ) as api:
        found = [api.get(f"/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/{view}") for view in VIEWS]
    assert [answer.status_code for answer in found] == [200] * 3
    return [answer.content for answer in found]


@pytest.mark.long
def test_an_exported_fleet_is_served_read_only_with_the_same_bytes(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as outside:
        expected = answers(outside)
    inside = tmp_path / "inside"
    inside.mkdir()
    flux_resourceset(tmp_path, "export", "fleet.json", database=tmp_path / "fleet.db")
    flux_resourceset(tmp_path, "import", "fleet.json", database=inside / "next.db")
    with live.serving(inside, API_MODE="read-only", DATABASE_URL=f"sqlite://{inside}/next.db?mode=ro") as server:
        assert answers(server) == expected
        with server.client(live.READ) as api:
            assert api.get("/clusters").status_code == 404
