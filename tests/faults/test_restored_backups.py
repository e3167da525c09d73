"""A store that goes back: readers and writers notice, and never go on from a state that is no more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import live
from faults import stores
from faults.stores import DEMO, PATH, SEED, inputs, poll, revisions, write


@pytest.mark.long
@pytest.mark.quick
def test_a_reader_loads_a_restored_backup_and_stops_saying_that_a_cluster_is_gone(tmp_path: Path) -> None:
    database, backup = tmp_path / "fleet.db", tmp_path / "backup.db"
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        before = inputs(reader)
        stores.copy_database(database, backup)
        assert write(writer, "DELETE", f"/clusters/{DEMO}") == 200
        assert inputs(reader) == []  # decommissioned
        writer.stop()
        stores.copy_database(backup, database)
        with live.serving(tmp_path) as again:
            assert inputs(reader) == before
            assert inputs(again) == before
            for number in range(3):  # also once the writer has passed the revision that the reader had seen
                assert write(again, "POST", "/namespaces", {"id": f"n{number}"}) == 201
                assert inputs(reader) == before
    assert revisions(database) == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["backup", "copy"])
@pytest.mark.parametrize("restarted", [False, True], ids=["in -wal", "put away"])
def test_a_restore_under_a_running_writer_leaves_a_log_without_gaps(tmp_path: Path, how: str, restarted: bool) -> None:
    database, backup = tmp_path / "fleet.db", tmp_path / "backup.db"
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as first:
        assert write(first, "POST", "/namespaces", {"id": "early"}) == 201
        stores.copy_database(database, backup)
        for number in range(5):
            write(first, "POST", "/namespaces", {"id": f"n{number}"})
        write(first, "DELETE", f"/clusters/{DEMO}")
        if restarted:
            first.stop()  # now the newest data are in the database file, and the -wal file is gone
        with live.serving(tmp_path) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
            assert inputs(writer) == inputs(reader) == []
            if how == "backup":
                stores.copy_database(backup, database)
            else:
                shutil.copyfile(backup, database)
            late = write(writer, "POST", "/namespaces", {"id": "late"})
            kept = (
                late == 201
            )  # a copy below a full -wal file changes nothing; else it is doubt, for nobody said that it is meant
            assert kept or late == 503
            for server in (writer, reader):
                status, body = poll(server)
                assert (status, body.get("inputs")) == (200, []) if kept else status == 503 and "restart" in body["detail"]
            writer.stop()
            with live.serving(tmp_path) as again:  # every process opens it, and the start of a writer says that it is meant
                assert inputs(again) == inputs(reader)
                assert (inputs(reader) == []) is kept
                assert write(again, "POST", "/namespaces", {"id": "later"}) == 201
    found = revisions(database)
    assert found == list(range(1, len(found) + 1))


@pytest.mark.parametrize("rename", [False, True], ids=["copied", "renamed"])
def test_a_copy_over_the_file_of_a_stopped_writer_is_a_restore_although_others_read(tmp_path: Path, rename: bool) -> None:
    database, backup = tmp_path / "fleet.db", tmp_path / "backup.db"
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        before = inputs(reader)
        stores.copy_database(database, backup)
        assert write(writer, "DELETE", f"/clusters/{DEMO}") == 200
        assert inputs(reader) == []
        assert writer.stop() == 0
        assert inputs(reader) == []  # nothing is lost
        if rename:
            os.replace(backup, database)
        else:
            shutil.copyfile(backup, database)
        assert poll(reader)[0] == 503
        with live.serving(tmp_path) as again:
            assert inputs(again) == inputs(reader) == before
    assert revisions(database) == [1]


def test_a_log_that_forked_is_loaded_anew(tmp_path: Path) -> None:
    database, backup = tmp_path / "fleet.db", tmp_path / "backup.db"
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        stores.copy_database(database, backup)
        assert write(writer, "DELETE", f"/clusters/{DEMO}") == 200
        assert inputs(reader) == []
        writer.stop()
        other = tmp_path / "other"  # the backup goes on elsewhere, beyond the revision that the reader has seen
        other.mkdir()
        shutil.copyfile(backup, other / "fleet.db")
        with live.serving(other) as elsewhere:
            for number in range(4):
                assert write(elsewhere, "POST", "/namespaces", {"id": f"n{number}"}) == 201
            elsewhere.stop()
        stores.copy_database(other / "fleet.db", database)
        assert "podinfo" in inputs(reader)  # a writer was started on it since, so it is meant
        assert "loaded anew" in reader.log.read_text()


def test_another_store_is_doubt_until_a_restart(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with live.serving(other, SEED_FILE=str(SEED)) as elsewhere:
        write(elsewhere, "DELETE", f"/clusters/{DEMO}")
        elsewhere.stop()
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        assert inputs(reader)
        writer.stop()
        stores.copy_database(other / "fleet.db", tmp_path / "fleet.db")
        for _ in range(3):
            status, problem = poll(reader)
            assert (status, problem["code"]) == (503, "unavailable")
            assert "restart" in problem["detail"]
        reader.stop()
        with live.serving(tmp_path, API_MODE="read-only") as again:
            assert inputs(again) == []


def test_an_import_with_history_is_told_to_those_who_follow(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        before = inputs(reader)
        export = tmp_path / "export.json"
        assert run(tmp_path, "export", "--history", str(export)) == 0
        write(writer, "POST", "/namespaces", {"id": "late"})
        assert run(tmp_path, "import", "--replace", "--yes", str(export)) == 0
        for server in (writer, reader):
            assert inputs(server) == before
            assert poll(server)[0] == 200
        assert write(writer, "POST", "/namespaces", {"id": "later"}) == 201


def run(directory: Path, *arguments: str) -> int:
    program = (*live.PROGRAM, *arguments)
    return live.Server(directory, live.environment(directory), program).process.wait(30)


def test_a_file_renamed_away_and_back_is_the_same_store(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer:
        before = inputs(writer)
        os.rename(tmp_path / "fleet.db", tmp_path / "away")
        assert poll(writer, PATH)[0] == 503
        os.rename(tmp_path / "away", tmp_path / "fleet.db")
        assert inputs(writer) == before
        assert write(writer, "POST", "/namespaces", {"id": "late"}) == 201
