"""Starts on SQLite with a snapshot file: what is away is not what is damaged, and nothing is begun anew by mistake."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import DEMO_DNS, SEED, assert_problem, namespace, view

POLL = view(DEMO_DNS, "namespaces")

pytestmark = [pytest.mark.long, pytest.mark.sqlite]  # processes/test_outliving.py is about PostgreSQL


def url(directory: Path, mode: str = "rwc") -> str:
    return f"sqlite://{directory}/fleet.db?mode={mode}"


def settings(directory: Path) -> dict[str, str]:
    return {"SNAPSHOT_FILE": str(directory / "snapshot")}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A directory with a database and the snapshot that its writer left."""
    server = live.Server(tmp_path, live.environment(tmp_path, SEED_FILE=str(SEED), **settings(tmp_path)))
    server.wait("/ready")
    assert server.stop() == 0
    assert (tmp_path / "snapshot").stat().st_mode & 0o777 == 0o600
    return tmp_path


def take_away(directory: Path) -> None:
    (directory / "away").mkdir()
    for file in directory.glob("fleet.db*"):
        shutil.move(file, directory / "away" / file.name)


def bring_back(directory: Path) -> None:
    for file in sorted((directory / "away").iterdir(), reverse=True):  # the database itself last
        os.rename(file, directory / file.name)


def failed(directory: Path, *words: str, **overrides: str) -> str:
    """The last line of a start that must end with 2."""
    environment = live.environment(directory, **overrides)
    done = subprocess.run([*live.PROGRAM, *words], env=environment, cwd=directory, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("mode", ["read-only", "crud"])
def test_a_missing_file_is_away_and_the_snapshot_is_served_until_it_is_back(kept: Path, mode: str) -> None:
    take_away(kept)
    with live.serving(kept, API_MODE=mode, DATABASE_URL=url(kept, "rw"), **settings(kept)) as server:
        assert "what the snapshot file says is served" in server.log.read_text()
        ready = httpx.get(server.url + "/ready").json()
        assert ready | {"age": 0} == {"status": "ok", "revision": 1, "store": "unreachable", "age": 0}
        with server.client(live.READ) as api:
            answer = api.get(POLL)
            assert (answer.status_code, len(answer.json()["inputs"])) == (200, 3)
            assert api.get("/api/v2/flux/clusters").status_code == 200
            assert "flux_resourceset_store_up 0.0" in api.get("/metrics").text
        if mode == "crud":
            with server.client() as api:
                assert api.get("/namespaces").status_code == 200
                assert_problem(api.post("/namespaces", json=namespace("late")), 503, "unavailable")
                for path in ("/changes", "/export"):
                    assert_problem(api.get(path), 503, "unavailable")
        assert not (kept / "fleet.db").exists()
        bring_back(kept)
        with server.client(live.READ) as api:
            assert api.get(POLL).content == answer.content
        assert httpx.get(server.url + "/ready").json() == {"status": "ok"}
        if mode == "crud":
            with server.client() as api:
                assert api.post("/namespaces", json=namespace("late")).status_code == 201
        (kept / "fleet.db").rename(kept / "gone")  # under the running server that is doubt, as ever
        with server.client(live.READ) as api:
            assert_problem(api.get(POLL), 503, "unavailable")


def test_a_damaged_file_is_doubt_whatever_a_snapshot_says(kept: Path) -> None:
    (kept / "fleet.db").write_bytes(b"garbage" * 1000)
    assert "fleet.db" in failed(kept, **settings(kept))
    with live.serving(kept, "/health", API_MODE="read-only", **settings(kept)) as server, server.client(live.READ) as api:
        assert_problem(api.get(POLL), 503, "unavailable")


def test_a_writer_does_not_begin_an_empty_store_where_a_snapshot_is(kept: Path) -> None:
    take_away(kept)
    line = failed(kept, **settings(kept))
    assert str(kept / "fleet.db") in line
    assert str(kept / "snapshot") in line
    assert not (kept / "fleet.db").exists()
    with live.serving(kept) as server:  # without one, it is as ever
        assert server.process.poll() is None


def test_it_does_so_when_it_is_told_to(kept: Path) -> None:
    take_away(kept)
    environment = live.environment(kept, SEED_FILE="", **settings(kept))
    server = live.Server(kept, environment, (*live.PROGRAM, "--begin-anew"))
    try:
        server.wait("/ready")
        with server.client() as api:
            assert api.get("/clusters").json() == []
    finally:
        server.end()


def test_a_snapshot_of_another_path_is_foreign(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    shutil.copy(kept / "snapshot", other / "snapshot")
    line = failed(other, DATABASE_URL=url(other, "rw"), **settings(other))
    assert f"the snapshot file {other / 'snapshot'} is of another store" in line


def step_back(directory: Path) -> None:
    """Write to the store, and then put the database back as it was before; the snapshot holds the newer state."""
    shutil.copytree(directory, directory / "backup")
    with live.serving(directory, **settings(directory)) as server, server.client() as api:
        assert api.post("/namespaces", json=namespace("late")).status_code == 201
        assert server.stop() == 0
    for file in directory.glob("fleet.db*"):
        file.unlink()
    for file in (directory / "backup").glob("fleet.db*"):
        shutil.copy(file, directory)


def test_a_writer_does_not_start_on_a_database_older_than_its_snapshot(kept: Path) -> None:
    step_back(kept)
    line = failed(kept, **settings(kept))
    for part in ("the database has stepped back", str(kept / "snapshot"), "remove the file"):
        assert part in line
    (kept / "snapshot").unlink()
    with live.serving(kept, **settings(kept)) as server, server.client() as api:
        assert api.get("/namespaces/late").status_code == 404


def test_a_reader_serves_an_older_database_once_a_writer_was_started_on_it(kept: Path) -> None:
    step_back(kept)
    with live.serving(kept, "/health", API_MODE="read-only", **settings(kept)) as reader, reader.client(live.READ) as api:
        assert_problem(api.get(POLL), 503, "unavailable")
        with live.serving(kept):
            live.until(lambda: api.get(POLL).status_code == 200)
            assert len(api.get(POLL).json()["inputs"]) == 3


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    assert "SNAPSHOT_FILE" in failed(tmp_path, STORE_BACKEND="memory", **settings(tmp_path))
    for wrong in ("-1", "soon", "1.5"):
        assert "MAX_STALENESS" in failed(tmp_path, MAX_STALENESS=wrong)


def test_a_snapshot_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    with live.serving(tmp_path, SNAPSHOT_FILE=str(tmp_path / "none" / "snapshot")) as server, server.client() as api:
        live.until(lambda: "cannot be written" in server.log.read_text())
        assert api.post("/namespaces", json=namespace("n1")).status_code == 201
