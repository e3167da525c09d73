"""A read-only server before, beside and after a writer, and any server whose file is damaged or lost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import live
from api.fleets import DEMO_DNS, SEED, assert_problem, inputs, make, view
from flux_resourceset import errors

pytestmark = pytest.mark.usefixtures("both_ways")

PATH = view(DEMO_DNS, "namespaces")


def assert_not_ready(server: live.Server, remedy: str) -> None:
    """Alive, and in doubt about everything else."""
    with server.client(live.READ) as client:
        assert client.get("/health").status_code == 200
        assert remedy in assert_problem(client.get("/ready"), 503, "unavailable")["detail"]
        for path in (PATH, view("never.example.com", "namespaces"), "/api/v2/flux/clusters"):
            assert_problem(client.get(path), 503, "unavailable")
        assert client.get("/metrics").status_code == 200


@pytest.mark.sqlite
def test_a_reader_waits_for_a_writer_and_creates_nothing_itself(tmp_path: Path) -> None:
    with live.serving(tmp_path, "/health", API_MODE="read-only", SEED_FILE=str(SEED)) as reader:
        assert_not_ready(reader, "API_MODE=crud")
        assert not (tmp_path / "fleet.db").exists()
        (tmp_path / "fleet.db").touch()
        assert_not_ready(reader, "API_MODE=crud")  # a file without a schema
        assert (tmp_path / "fleet.db").stat().st_size == 0
        (tmp_path / "fleet.db").unlink()
        with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
            reader.wait("/ready")
            with reader.client(live.READ) as flux, writer.client() as api:
                assert len(inputs(flux, DEMO_DNS, "namespaces")) == 3
                api.delete("/clusters/demo-cluster-01/namespaces/podinfo")
                assert len(inputs(flux, DEMO_DNS, "namespaces")) == 2
                assert flux.get(PATH).content == api.get(PATH).content
        with reader.client(live.READ) as flux:  # the writer is gone, polling goes on
            assert len(inputs(flux, DEMO_DNS, "namespaces")) == 2


@pytest.mark.long
def test_answers_are_the_same_bytes_after_a_restart_and_in_another_process(tmp_path: Path) -> None:
    paths = (*(view(DEMO_DNS, name) for name in ("platform-components", "namespaces", "rolebindings")), "/api/v2/flux/clusters")
    seen = set()
    for mode in ("crud", "crud", "read-only"):
        with live.serving(tmp_path, API_MODE=mode, SEED_FILE=str(SEED)) as server, server.client(live.READ) as client:
            seen.add(tuple(client.get(path).content for path in paths))
    assert len(seen) == 1


@pytest.mark.sqlite
def test_a_reader_serves_a_file_that_nobody_may_write(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)):
        pass
    (tmp_path / "fleet.db").chmod(0o400)
    url = f"sqlite://{tmp_path}/fleet.db?mode=ro"
    with live.serving(tmp_path, API_MODE="read-only", DATABASE_URL=url) as server, server.client(live.READ) as client:
        assert len(inputs(client, DEMO_DNS, "namespaces")) == 3
        assert_problem(client.post("/clusters", json={}), 404)


def test_a_writer_with_a_read_only_database_does_not_start(tmp_path: Path) -> None:
    server = live.Server(tmp_path, live.environment(tmp_path, DATABASE_URL=f"sqlite://{tmp_path}/fleet.db?mode=ro"))
    assert server.process.wait(20) == 2
    assert "DATABASE_URL" in server.log.read_text().splitlines()[-1]


@pytest.mark.sqlite
def test_a_lost_file_is_503_until_it_is_back_and_never_begun_anew(tmp_path: Path) -> None:
    database, aside = tmp_path / "fleet.db", tmp_path / "aside"
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, writer.client() as api:
        good = api.get(PATH).content
        aside.mkdir()
        for path in tmp_path.glob("fleet.db*"):
            os.replace(path, aside / path.name)
        for _ in range(3):
            assert_not_ready(writer, "fleet.db")
            assert_problem(api.post("/namespaces", json={"id": "lost"}), 503, "unavailable")
            assert assert_problem(api.get("/clusters"), 503, "unavailable")["title"] == errors.Doubt.title
        assert not database.exists()
        for path in aside.iterdir():
            shutil.copy(path, tmp_path / path.name)
        writer.wait("/ready")
        assert api.get(PATH).content == good
        make(api, "namespaces", "found")


@pytest.mark.sqlite
def test_a_file_overwritten_with_garbage_never_gives_an_empty_answer(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, writer.client() as api:
        good = api.get(PATH).content
        for path in tmp_path.glob("fleet.db*"):
            path.write_bytes(b"\xa5" * 40_000)
        for _ in range(5):
            response = api.get(PATH)
            assert response.content == good or response.status_code == 503
            written = api.post("/namespaces", json={"id": "lost"})
            assert_problem(written, 503, "unavailable")
        assert_problem(api.get("/changes"), 503, "unavailable")


@pytest.mark.long
@pytest.mark.parametrize("how", ["cut", "begun anew", "replaced"])
@pytest.mark.sqlite
def test_an_emptied_file_is_doubt_and_never_a_new_fleet(tmp_path: Path, how: str) -> None:
    database = tmp_path / "fleet.db"
    with (
        live.serving(tmp_path, SEED_FILE=str(SEED)) as writer,
        live.serving(tmp_path, API_MODE="read-only") as reader,
        writer.client() as api,
        reader.client(live.READ) as flux,
    ):
        if how == "cut":
            os.truncate(database, 0)
        elif how == "replaced":
            (tmp_path / "empty").touch()
            os.replace(tmp_path / "empty", database)
        else:
            for path in tmp_path.glob("fleet.db*"):
                path.unlink()
            database.touch()
        for _ in range(3):
            assert_problem(api.post("/namespaces", json={"id": "lost"}), 503, "unavailable")
            assert_problem(api.get("/clusters"), 503, "unavailable")
            for client in (api, flux):
                assert_problem(client.get("/api/v2/flux/clusters"), 503, "unavailable")
                assert_problem(client.get(PATH), 503, "unavailable")
        assert_not_ready(writer, "restore")


@pytest.mark.sqlite
def test_a_writer_does_not_start_on_an_empty_file_whose_log_says_that_there_was_more(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, writer.client() as api:
        make(api, "namespaces", "kept")
        writer.kill()
    os.truncate(tmp_path / "fleet.db", 0)
    again = live.Server(tmp_path, live.environment(tmp_path, SEED_FILE=str(SEED)))
    assert again.process.wait(20) == 2
    assert "damaged" in again.log.read_text().splitlines()[-1]


def test_an_answer_that_flux_would_refuse_is_503_and_the_other_views_go_on(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)):
        pass
    with contextlib.closing(live.opened_store(tmp_path)) as store:
        document = {**store.snapshot().documents["namespaces"]["podinfo"].body, "annotations": {"note": "x" * 930_000}}
    large = "UPDATE documents SET body = ? WHERE kind = 'namespaces' AND id = 'podinfo'"
    live.alter(tmp_path, large, values=[json.dumps(document).encode()])
    with live.serving(tmp_path) as server, server.client() as api:
        for headers in ({}, {"Accept-Encoding": "identity"}, {"Connection": live.ORDINARY}):
            assert_problem(api.get(PATH, headers=headers), 503, "unavailable")
        assert len(inputs(api, DEMO_DNS)) == 3


def test_a_gap_in_the_log_is_503(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, writer.client() as api:
        make(api, "namespaces", "one")
        make(api, "namespaces", "two")
    live.alter(tmp_path, "DELETE FROM changes WHERE revision = 2", "DELETE FROM entries WHERE revision = 2")
    with live.serving(tmp_path, "/health", API_MODE="read-only") as reader:
        assert_not_ready(reader, "restore")


@pytest.mark.sqlite  # PostgreSQL holds the keys together
def test_a_log_that_jumps_under_a_running_reader_is_503(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        with reader.client(live.READ) as flux:
            assert len(inputs(flux, DEMO_DNS, "namespaces")) == 3
        database = sqlite3.connect(tmp_path / "fleet.db")
        database.execute("UPDATE entries SET revision = 5")
        database.commit()
        database.close()
        for server in (reader, writer):
            assert_not_ready(server, "restore")
