"""What the page on PostgreSQL has people type: carried out against a real one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import yaml

import live
import postgres_server

PAGE = (live.ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
DATABASE, WRITER, READER = "flux_resourceset", "flux_resourceset", "flux_resourceset_reader"
POLL = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/platform-components"


def statements(block: str) -> list[str]:
    return [line for line in block.splitlines() if line]


@pytest.fixture
def server() -> Iterator[postgres_server.Server]:
    """One on which somebody has followed the page."""
    found = postgres_server.shared()
    everywhere, within = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    try:
        for statement in statements(everywhere):
            found.execute(statement)
        for statement in statements(within):
            found.execute(statement, DATABASE)
        yield found
    finally:
        found.drop(found.url(DATABASE))
        for role in (WRITER, READER):
            found.execute(f"DROP ROLE IF EXISTS {role}")


def execute(server: postgres_server.Server, user: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url(DATABASE, user), autocommit=True, connect_timeout=5) as db:
        found = db.execute(statement.encode())
        return found.fetchall() if found.description else []


def test_readers_may_read_what_writers_make_and_nothing_else(server: postgres_server.Server) -> None:
    assert execute(server, READER, "SHOW server_encoding") == [("UTF8",)]
    execute(server, WRITER, "CREATE SCHEMA flux_resourceset CREATE TABLE documents (id text)")
    execute(server, WRITER, "INSERT INTO flux_resourceset.documents VALUES ('a')")
    assert execute(server, READER, "SELECT id FROM flux_resourceset.documents") == [("a",)]
    execute(server, WRITER, "CREATE TABLE flux_resourceset.later (id text)")  # by another release
    assert execute(server, READER, "SELECT id FROM flux_resourceset.later") == []
    for forbidden in (
        "INSERT INTO flux_resourceset.documents VALUES ('b')",
        "DELETE FROM flux_resourceset.documents",
        "CREATE TABLE flux_resourceset.mine (id text)",
        "CREATE SCHEMA mine",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(server, READER, forbidden)


def run(directory: Path, *arguments: str, **settings: str) -> str:
    """A command of the server, as whoever follows the page runs it."""
    command = [sys.executable, "-m", "flux_resourceset.server", *arguments]
    env = live.environment(directory, **settings)
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_a_fleet_moves_and_is_served_by_the_two_roles(server: postgres_server.Server, tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as before, before.client(live.READ) as api:
        expected = api.get(POLL).content
    of_writers, of_readers = (server.url(DATABASE, role) for role in (WRITER, READER))
    run(tmp_path, "copy-store", f"sqlite://{tmp_path}/fleet.db?mode=ro", of_writers)
    run(tmp_path, "verify", DATABASE_URL=of_writers)
    with (
        live.serving(tmp_path, DATABASE_URL=of_writers) as writer,
        live.serving(tmp_path, DATABASE_URL=of_readers, API_MODE="read-only") as reader,
        writer.client() as people,
        reader.client(live.READ) as cluster,
    ):
        assert cluster.get(POLL).content == expected
        assert people.patch("/clusters/demo-cluster-01/patches/podinfo", json={"replicaCount": "7"}).status_code == 200
        deadline = time.monotonic() + 30  # for a reader that hangs, no claim about speed
        while b'"7"' not in cluster.get(POLL).content:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        run(tmp_path, "export", "--history", "fleet.json", DATABASE_URL=of_readers)  # as the backup of the chart does
    assert len(json.loads((tmp_path / "fleet.json").read_text())["history"]) == 2
    run(tmp_path, "copy-store", of_writers, f"sqlite://{tmp_path}/back.db?mode=rwc")
    with live.serving(tmp_path, DATABASE_URL=f"sqlite://{tmp_path}/back.db") as back, back.client(live.READ) as cluster:
        assert b'"7"' in cluster.get(POLL).content


def test_the_sample_for_kubernetes_makes_the_same_roles_and_the_same_database() -> None:
    sample = next(yaml.safe_load_all((live.ROOT / "deploy/server/samples/cloudnativepg.yaml").read_text()))
    made = sample["spec"]["bootstrap"]["initdb"]
    assert (made["database"], made["owner"], made["encoding"]) == (DATABASE, WRITER, "UTF8")
    assert [role["name"] for role in sample["spec"]["managed"]["roles"]] == [READER]
    for statement in made["postInitApplicationSQL"]:
        assert f"\n{statement};\n" in PAGE
