"""What was acknowledged is there after kill -9."""

from __future__ import annotations

from pathlib import Path

import pytest

import live
from processes.asking import Asking, once

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.thorough)])
def test_an_acknowledged_write_survives_kill_9_every_time(tmp_path: Path, kills: int) -> None:
    env = live.environment(tmp_path)
    for number in range(kills):
        server = live.Server(tmp_path, env)
        try:
            with Asking.as_soon_as_possible(server) as ask:
                _, found = ask("GET", "/namespaces")
                assert sorted(document["id"] for document in found) == sorted(f"n{seen}" for seen in range(number))
                status, document = ask("POST", "/namespaces", {"id": f"n{number}"})
                server.kill()
                assert (status, document["id"]) == (201, f"n{number}")
        finally:
            server.kill()
    with live.serving(tmp_path) as server:
        assert len(once(server, "GET", "/namespaces")[1]) == kills
        _, log = once(server, "GET", "/changes?limit=1000")
        assert [entry["revision"] for entry in log] == list(range(kills, 0, -1))


def test_a_write_cut_off_by_kill_9_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    ids = [f"n{number}" for number in range(200)]
    cluster = {"cluster_name": "x", "environment": "dev", "namespaces": [{"id": id} for id in ids]}
    with live.serving(tmp_path) as server, Asking(server) as ask:
        for id in ids:
            ask("POST", "/namespaces", {"id": id})
        hasty = [Asking(server) for _ in range(3)]
        for number, one in enumerate(hasty):  # sent, and not waited for
            one.send("POST", "/clusters", {**cluster, "id": f"x{number}", "cluster_dns": f"x{number}.example.com"})
        server.kill()
        for one in hasty:
            one.__exit__()
    with live.serving(tmp_path) as server:
        _, clusters = once(server, "GET", "/clusters")
        assert all(len(found["namespaces"]) == len(ids) for found in clusters)
        _, log = once(server, "GET", "/changes?limit=1")
        assert log[0]["revision"] == len(ids) + len(clusters)
