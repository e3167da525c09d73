"""A database that is lost is never begun anew unless somebody says so: an empty fleet deletes what clusters run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

import live
from faults.stores import DEMO, PATH, SEED, copy_database, exit_line, inputs, poll, revisions, write

FILES = ("fleet.db", "fleet.db-wal", "fleet.db-shm")


def lose(directory: Path) -> None:
    for name in FILES:
        (directory / name).unlink(missing_ok=True)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A directory whose writer was stopped in order."""
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
        writer.stop()
    return tmp_path


@pytest.mark.quick
def test_the_marker_names_the_store_from_its_first_document_on(tmp_path: Path) -> None:
    marker = tmp_path / "fleet.db.store"
    with live.serving(tmp_path) as writer:
        assert not marker.exists()
        write(writer, "POST", "/namespaces", {"id": "first"})
        found = json.loads(marker.read_bytes())
        assert found["store"] == "fleet.db"
        assert found["epoch"]
        assert "filling" not in found  # that was said only while the first document was written
        assert stat.S_IMODE(marker.stat().st_mode) == 0o600


@pytest.mark.quick
def test_a_writer_refuses_to_begin_anew_where_a_store_was(filled: Path) -> None:
    lose(filled)
    code, line = exit_line(filled, SEED_FILE=str(SEED))
    assert code == 2
    for word in ("fleet.db.store", "--begin-anew", "restore"):
        assert word in line
    assert not (filled / "fleet.db").exists()


def test_to_begin_anew_can_be_said_once(filled: Path) -> None:
    before = json.loads((filled / "fleet.db.store").read_bytes())["epoch"]
    lose(filled)
    program = (*live.PROGRAM, "--begin-anew")
    server = live.Server(filled, live.environment(filled, SEED_FILE=str(SEED)), program)
    server.wait("/ready")
    assert inputs(server)
    server.stop()
    assert json.loads((filled / "fleet.db.store").read_bytes())["epoch"] != before
    again = live.Server(filled, live.environment(filled), program)  # said again by mistake, it takes nothing away
    again.wait("/ready")
    assert inputs(again)
    again.stop()


@pytest.mark.parametrize("size", [0, 100, 511])
@pytest.mark.parametrize("marked", [True, False])
def test_a_file_that_was_cut_is_no_store(filled: Path, size: int, marked: bool) -> None:
    os.truncate(filled / "fleet.db", size)
    if not marked:
        (filled / "fleet.db.store").unlink()
    code, line = exit_line(filled, SEED_FILE=str(SEED))
    assert code == 2
    assert "backup" in line
    assert os.path.getsize(filled / "fleet.db") == size


def test_a_log_file_without_its_database_says_that_there_was_one(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
        writer.kill()
    (tmp_path / "fleet.db").unlink()
    (tmp_path / "fleet.db.store").unlink()
    code, line = exit_line(tmp_path)
    assert code == 2
    assert "fleet.db-wal" in line


def test_an_empty_store_in_the_place_of_a_filled_one_is_a_lost_one(
    filled: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with live.serving(elsewhere) as empty:
        empty.stop()
    shutil.copyfile(elsewhere / "fleet.db", filled / "fleet.db")
    code, line = exit_line(filled, SEED_FILE=str(SEED))
    assert code == 2
    assert "--begin-anew" in line


def test_an_empty_copy_of_a_store_in_its_place_is_not_begun_anew(tmp_path: Path) -> None:
    """A copy that was made before the first document is an empty store of the same epoch."""
    program = (*live.PROGRAM, "--begin-anew")
    with live.serving(tmp_path) as empty:
        empty.stop()
    shutil.copyfile(tmp_path / "fleet.db", tmp_path / "backup.db")
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        assert inputs(reader)
        writer.kill()
        lose(tmp_path)
        shutil.copyfile(tmp_path / "backup.db", tmp_path / "fleet.db")
        code, line = exit_line(tmp_path, SEED_FILE=str(SEED))
        assert code == 2
        for word in ("fleet.db.store", "--begin-anew", "restore"):
            assert word in line
        assert poll(reader)[0] == poll(reader, "/api/v2/flux/clusters")[0] == 503
        anew = live.Server(tmp_path, live.environment(tmp_path), program)
        try:
            anew.wait("/ready")
            assert poll(anew, "/api/v2/flux/clusters") == (200, {"inputs": []})
            assert poll(reader, "/api/v2/flux/clusters")[0] == 503  # it is another store, and nobody told the reader
        finally:
            anew.kill()


@pytest.mark.quick
def test_all_that_was_acknowledged_is_in_the_database_itself(tmp_path: Path) -> None:
    """Also right after the first write: a kill that takes the -wal file along, or a copy of the one file, loses nothing."""
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
        before = inputs(writer)
        assert write(writer, "POST", "/namespaces", {"id": "newest"}) == 201
        writer.kill()
    for name in FILES[1:]:
        (tmp_path / name).unlink()
    with live.serving(tmp_path) as again:
        assert inputs(again) == before
        assert poll(again, "/namespaces/newest")[0] == 200


def test_a_store_whose_first_document_did_not_get_through_is_no_lost_one(tmp_path: Path) -> None:
    with live.serving(tmp_path) as writer:
        writer.stop()
    with contextlib.closing(sqlite3.connect(tmp_path / "fleet.db")) as database:
        (epoch,) = database.execute("SELECT epoch FROM identity").fetchone()
    marker = {"store": "fleet.db", "epoch": epoch, "filling": True}  # as a kill leaves it that comes before the commit
    (tmp_path / "fleet.db.store").write_text(json.dumps(marker))
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
        assert inputs(writer)
        assert "filling" not in (tmp_path / "fleet.db.store").read_text()


def test_a_store_moves_with_its_marker_and_a_copy_needs_none(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    moved = tmp_path_factory.mktemp("moved")
    copy_database(filled / "fleet.db", moved / "copy.db")
    for name in ("fleet.db", "fleet.db.store"):
        shutil.move(filled / name, moved / name.replace("fleet", "renamed"))
    for name in ("copy", "renamed"):
        with live.serving(moved, DATABASE_URL=f"sqlite://{moved}/{name}.db?mode=rwc") as server:
            assert inputs(server)
        assert (moved / f"{name}.db.store").exists()
    with live.serving(filled, SEED_FILE=str(SEED)) as fresh:  # nothing is left that speaks of a store here
        assert inputs(fresh)


@pytest.mark.parametrize("size", [0, 100, 511])
def test_a_file_cut_under_a_running_writer_is_doubt(tmp_path: Path, size: int) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
        os.truncate(tmp_path / "fleet.db", size)
        for name in FILES[1:]:
            (tmp_path / name).unlink()
        for _ in range(3):
            assert write(writer, "POST", "/namespaces", {"id": "lost"}) == 503
            assert poll(writer)[0] == 503
            assert poll(writer, "/api/v2/flux/clusters")[0] == 503
            assert poll(writer, "/ready")[0] == 503


def test_a_seed_never_begins_a_lost_store_anew_for_clusters_as_first_provisioned(filled: Path) -> None:
    seed = json.loads(SEED.read_text())
    for cluster in seed["clusters"]:
        cluster.update(platform_components=[], namespaces=[], rolebindings=[], patches={})
    (filled / "first.json").write_text(json.dumps(seed))
    lose(filled)
    assert exit_line(filled, SEED_FILE=str(filled / "first.json"))[0] == 2


# The files with the newest data


@pytest.mark.parametrize("lost", [FILES[1:], FILES[1:2], FILES[2:]], ids=["both", "wal", "shm"])
def test_no_acknowledged_write_is_lost_with_the_files_beside_the_database(tmp_path: Path, lost: tuple[str, ...]) -> None:
    kept = []
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        before = inputs(writer)
        for number in range(30):
            if number % 10 == 5:
                for name in lost:
                    (tmp_path / name).unlink()
            id = f"n{number}"
            if write(writer, "POST", "/namespaces", {"id": id}) == 201:
                kept.append(id)
            for server in (writer, reader):
                status, body = poll(server)
                assert status == 503 or [each["id"] for each in body["inputs"]] == before
        reader.wait("/ready")  # without a restart
        assert inputs(reader) == inputs(writer) == before
        writer.kill()
        reader.kill()
    assert len(kept) > 15
    found = revisions(tmp_path / "fleet.db")
    assert found == list(range(1, len(found) + 1))
    with live.serving(tmp_path) as again:
        ids = {document["id"] for document in poll_as_writer(again, "/namespaces")}
        assert ids >= {*kept}
        assert DEMO in {document["id"] for document in poll_as_writer(again, "/clusters")}
        assert inputs(again, PATH)


def poll_as_writer(server: live.Server, path: str) -> list[dict[str, str]]:
    status, body = poll(server, path)
    assert status == 200, body
    found: list[dict[str, str]] = body
    return found
