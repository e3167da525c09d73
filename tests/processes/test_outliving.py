"""Servers on a real PostgreSQL that is stopped, comes back, is restored or is not there at the start: polls go on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
import postgres_server
from api.fleets import assert_problem, cluster, namespace, view

pytestmark = pytest.mark.long

DNS = "c1.example.com"
POLL = view(DNS, "namespaces")


class Fleet:
    """A database of its own, since it is stopped, with servers on it."""

    def __init__(self, directory: Path, database: postgres_server.Server, stack: contextlib.ExitStack) -> None:
        self.directory = directory
        self.database = database
        self.url = database.create()
        self._stack = stack

    def server(self, mode: str = "crud", wait_for: str = "/ready", **overrides: str) -> live.Server:
        settings = {"API_MODE": mode, "DATABASE_URL": self.url, **overrides}
        server = live.Server(self.directory, live.environment(self.directory, **settings))
        self._stack.callback(server.end)
        server.wait(wait_for)
        return server

    def opened(self) -> str:
        """When a writer last vouched for the log."""
        ((told,),) = self.database.execute("SELECT opened FROM flux_resourceset.identity", self.url.rpartition("/")[2])
        return str(told)

    def snapshot(self, name: str = "snapshot") -> dict[str, str]:
        return {"SNAPSHOT_FILE": str(self.directory / name)}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with contextlib.ExitStack() as stack:
        yield Fleet(tmp_path, stack.enter_context(postgres_server.running()), stack)


def fill(server: live.Server) -> None:
    with server.client() as api:
        for kind, document in (
            ("namespaces", namespace("n1")),
            ("namespaces", namespace("n2")),
            ("clusters", cluster("c1", namespaces=[{"id": "n1"}])),
        ):
            assert api.post(f"/{kind}", json=document).status_code == 201


def ready(server: live.Server) -> dict[str, Any]:
    response = httpx.get(server.url + "/ready")
    return {"status_code": response.status_code, **response.json()}


def until_ready(server: live.Server, **told: object) -> None:
    live.until(lambda: told.items() <= ready(server).items())


def names(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["inputs"]]


def assign(server: live.Server, name: str) -> httpx.Response:
    with server.client() as api:
        return api.put(f"/clusters/c1/namespaces/{name}", json={})


def test_polls_and_reads_go_on_while_the_database_is_away(fleet: Fleet) -> None:
    writer = fleet.server()
    fill(writer)
    reader = fleet.server("read-only")
    assert ready(reader) | {"age": 0} == {"status_code": 200, "status": "ok", "revision": 3, "store": "ok", "age": 0}
    fleet.database.stop()
    for server in (writer, reader):
        until_ready(server, store="unreachable")
        with server.client(live.READ) as api:
            assert names(api.get(POLL)) == ["n1"]
            assert api.get("/api/v2/flux/clusters").status_code == 200
            metrics = api.get("/metrics").text
            assert "flux_resourceset_store_up 0.0" in metrics
            assert "flux_resourceset_revision 3.0" in metrics
    assert ready(writer)["age"] >= 0
    with writer.client() as api:
        assert api.get("/clusters/c1").status_code == 200
        assert len(api.get("/namespaces").json()) == 2
        for path in ("/changes", "/changes/1", "/export", "/clusters/c1/history", "/diff?from=1"):
            assert_problem(api.get(path), 503, "unavailable")
        assert_problem(api.get("/changes", headers={"Accept": "text/event-stream"}), 503, "unavailable")
        assert_problem(api.post("/namespaces", json=namespace("n3")), 503, "unavailable")
        assert api.get("/namespaces").headers["x-revision"] == "3"
    fleet.database.start()
    live.until(lambda: ready(writer)["store"] == ready(reader)["store"] == "ok")
    response = assign(writer, "n2")
    assert (response.status_code, response.headers["x-revision"]) == (200, "4")
    with reader.client(live.READ) as api:
        assert names(api.get(POLL, headers={"X-Min-Revision": "4"})) == ["n1", "n2"]
        assert "flux_resourceset_store_up 1.0" in api.get("/metrics").text


def test_what_one_writer_writes_is_answered_by_it_at_once_and_by_others_soon(fleet: Fleet) -> None:
    servers = [fleet.server(), fleet.server()]
    fill(servers[0])
    with servers[0].client() as here, servers[1].client() as there:
        for number in range(20):
            mine, other = (here, there) if number % 2 else (there, here)
            assert mine.put("/clusters/c1/namespaces/n2", json={}).status_code == 200
            assert names(mine.get(POLL)) == ["n1", "n2"]
            made = mine.delete("/clusters/c1/namespaces/n2")
            assert names(mine.get(POLL)) == ["n1"]
            waited = other.get(POLL, headers={"X-Min-Revision": made.headers["x-revision"]})
            assert names(waited) == ["n1"]
        assert here.get("/namespaces").headers["x-revision"] == there.get("/namespaces").headers["x-revision"] == "43"


def test_max_staleness_ends_what_is_too_old(fleet: Fleet) -> None:
    fill(fleet.server())
    reader = fleet.server("read-only", MAX_STALENESS="2")
    fleet.database.stop()
    live.until(lambda: ready(reader)["status_code"] == 503)
    assert ready(reader)["code"] == "stale"
    with reader.client(live.READ) as api:
        for path in (POLL, "/api/v2/flux/clusters"):
            assert_problem(api.get(path), 503, "stale")
    fleet.database.start()
    live.until(lambda: ready(reader)["status_code"] == 200)
    with reader.client(live.READ) as api:
        assert names(api.get(POLL)) == ["n1"]


def test_a_reader_starts_without_its_database_and_is_not_ready(fleet: Fleet) -> None:
    fill(fleet.server())
    fleet.database.stop()
    reader = fleet.server("read-only", "/health")
    assert ready(reader)["status_code"] == 503
    with reader.client(live.READ) as api:
        assert_problem(api.get(POLL), 503, "unavailable")
        assert_problem(api.get("/api/v2/flux/clusters"), 503, "unavailable")
    fleet.database.start()
    live.until(lambda: ready(reader)["status_code"] == 200)
    with reader.client(live.READ) as api:
        assert names(api.get(POLL)) == ["n1"]


def test_a_snapshot_is_served_by_a_reader_and_a_writer_that_start_while_the_database_is_away(fleet: Fleet) -> None:
    first = fleet.server(**fleet.snapshot())
    fill(first)
    assert first.stop() == 0
    other = fleet.server()  # goes on while no snapshot is kept
    assert assign(other, "n2").status_code == 200
    other.end()
    opened = fleet.opened()
    fleet.database.stop()
    started = [fleet.server(mode, **fleet.snapshot()) for mode in ("read-only", "crud")]
    for server in started:
        assert ready(server)["store"] == "unreachable"
        assert "snapshot" in server.log.read_text()
        with server.client(live.READ) as api:
            assert names(api.get(POLL)) == ["n1"]
    with started[1].client() as api:
        assert_problem(api.post("/namespaces", json=namespace("n3")), 503, "unavailable")
    fleet.database.start()
    for server in started:
        until_ready(server, store="ok", revision=4)
        with server.client(live.READ) as api:
            assert names(api.get(POLL)) == ["n1", "n2"]
    live.until(lambda: fleet.opened() > opened)  # the writer has taken charge
    with started[1].client() as api:
        assert api.post("/namespaces", json=namespace("n3")).headers["x-revision"] == "5"


def test_a_snapshot_that_is_damaged_or_of_another_store_is_refused_and_named(fleet: Fleet) -> None:
    first = fleet.server(**fleet.snapshot())
    fill(first)
    assert first.stop() == 0
    content = (fleet.directory / "snapshot").read_bytes()
    (fleet.directory / "damaged").write_bytes(content.replace(b'"n1"', b'"n9"', 1))
    fleet.database.stop()
    away = fleet.url
    for name, url, told in (
        ("damaged", away, "is damaged"),
        ("snapshot", away.replace("/test_", "/other_"), "is of another store"),
    ):
        fleet.url = url
        reader = fleet.server("read-only", "/health", **fleet.snapshot(name))
        assert ready(reader)["status_code"] == 503
        assert f"the snapshot file {fleet.directory / name} {told}" in reader.log.read_text()


def test_a_writer_without_database_and_snapshot_gives_up(fleet: Fleet) -> None:
    fleet.database.stop()
    environment = live.environment(fleet.directory, DATABASE_URL=fleet.url, **fleet.snapshot())
    done = subprocess.run(live.PROGRAM, env=environment, cwd=fleet.directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "cannot be reached" in done.stderr.splitlines()[-1]


def test_a_log_that_forked_while_a_reader_was_cut_off_is_never_mixed(fleet: Fleet) -> None:
    """A backup is restored and written to; the reader doubts it until a writer that started later vouches for it."""
    name = fleet.url.rpartition("/")[2]
    writer = fleet.server()
    fill(writer)
    fleet.database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    writer.end()
    fleet.database.execute(f"CREATE DATABASE backup TEMPLATE {name} STRATEGY file_copy")
    writer, reader = fleet.server(), fleet.server("read-only")
    assert assign(writer, "n2").status_code == 200
    live.until(lambda: ready(reader)["revision"] == 4)
    writer.end()
    fleet.database.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
    fleet.database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    live.until(lambda: ready(reader)["store"] == "unreachable")
    with reader.client(live.READ) as api:
        assert names(api.get(POLL)) == ["n1", "n2"]
    fleet.database.execute(f"ALTER DATABASE {name} RENAME TO lost")
    fleet.database.execute(f"ALTER DATABASE backup RENAME TO {name}")
    live.until(lambda: ready(reader)["status_code"] == 503)
    with reader.client(live.READ) as api:
        assert_problem(api.get(POLL), 503, "unavailable")
    writer = fleet.server()
    with writer.client() as api:
        assert api.delete("/clusters/c1/namespaces/n1").status_code == 200
    live.until(lambda: ready(reader)["status_code"] == 200 and ready(reader)["revision"] == 4)
    with reader.client(live.READ) as api:
        assert names(api.get(POLL)) == []


def test_a_database_that_stalls_is_away_too(fleet: Fleet) -> None:
    """Half-open: what is sent is taken, and nothing ever comes back."""
    writer = fleet.server()
    fill(writer)
    assert fleet.database.process is not None
    group = fleet.database.process.pid
    os.killpg(group, signal.SIGSTOP)
    for process in _children(group):  # they have groups of their own
        os.kill(process, signal.SIGSTOP)
    try:
        with writer.client() as api:
            assert names(api.get(POLL)) == ["n1"]  # before anybody has noticed
            assert_problem(api.post("/namespaces", json=namespace("n3")), 503, "unavailable")
            until_ready(writer, status_code=200, store="unreachable")
            assert names(api.get(POLL)) == ["n1"]
            assert_problem(api.post("/namespaces", json=namespace("n3")), 503, "unavailable")
    finally:
        for process in (*_children(group), group):
            os.kill(process, signal.SIGCONT)
    until_ready(writer, store="ok")
    with writer.client() as api:
        assert api.post("/namespaces", json=namespace("n4")).status_code == 201
        made = [change["id"] for entry in api.get("/changes").json() for change in entry["changes"]]
        assert sorted(set(made)) == sorted(made)  # each at most once


def _children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
