"""A PostgreSQL database that was lost, emptied, exchanged or restored is never served as an empty or older fleet by itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
import postgres_server
from faults.stores import DEMO, PATH, SEED, exit_line, inputs, poll, write

SCHEMA = "flux_resourceset"
ALL_TABLES = ", ".join(f"{SCHEMA}.{table}" for table in ("migrations", "log_head", *postgres_server.TABLES))

LOSSES = {
    "the schema dropped": f"DROP SCHEMA {SCHEMA} CASCADE",
    "every table emptied": f"TRUNCATE {ALL_TABLES}",
    "all but the identity emptied": f"TRUNCATE {', '.join(f'{SCHEMA}.{name}' for name in postgres_server.TABLES[:-1])}",
    "documents and log emptied": f"TRUNCATE {SCHEMA}.documents, {SCHEMA}.entries CASCADE",
    "the identity emptied": f"TRUNCATE {SCHEMA}.identity",
    "the newest entry removed": f"DELETE FROM {SCHEMA}.changes WHERE revision = (SELECT max(revision) FROM {SCHEMA}.entries);"
    f" DELETE FROM {SCHEMA}.entries WHERE revision = (SELECT max(revision) FROM {SCHEMA}.entries)",
    "a table dropped": f"DROP TABLE {SCHEMA}.documents",
}


class Fleet:
    """A database, and servers on it."""

    def __init__(self, directory: Path, database: postgres_server.Server, stack: contextlib.ExitStack) -> None:
        self.directory = directory
        self.database = database
        self.url = database.create()
        self._stack = stack

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    def server(self, mode: str = "crud", wait_for: str = "/ready", **overrides: str) -> live.Server:
        settings = {"API_MODE": mode, "DATABASE_URL": self.url, "DATABASE_MODE": "", **overrides}
        server = live.Server(self.directory, live.environment(self.directory, **settings))
        self._stack.callback(server.end)
        server.wait(wait_for)
        return server

    def refused(self, *arguments: str, **overrides: str) -> str:
        """The last line of a writer that must not start."""
        settings = {"DATABASE_URL": self.url, "DATABASE_MODE": "", **overrides}
        code, line = exit_line(self.directory, *arguments, **settings)
        assert code == 2, line
        return line

    def restarted(self, *arguments: str, **overrides: str) -> live.Server:
        settings = {"DATABASE_URL": self.url, "DATABASE_MODE": "", **overrides}
        program = (*live.PROGRAM, *arguments)
        server = live.Server(self.directory, live.environment(self.directory, **settings), program)
        self._stack.callback(server.end)
        server.wait("/ready")
        return server

    def snapshot(self, name: str = "snapshot") -> dict[str, str]:
        return {"SNAPSHOT_FILE": str(self.directory / name)}

    def disconnect(self) -> None:
        self.database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.name}'")

    def back_up(self) -> None:
        self.disconnect()
        self.database.execute(f"CREATE DATABASE {self.name}_backup TEMPLATE {self.name} STRATEGY file_copy")

    def restore(self) -> None:
        self.database.execute(f"ALTER DATABASE {self.name} WITH ALLOW_CONNECTIONS false")
        self.disconnect()
        self.database.execute(f"ALTER DATABASE {self.name} RENAME TO {self.name}_lost")
        self.database.execute(f"ALTER DATABASE {self.name}_backup RENAME TO {self.name}")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with contextlib.ExitStack() as stack:
        yield Fleet(tmp_path, postgres_server.shared(), stack)


@pytest.fixture
def begun(fleet: Fleet) -> Fleet:
    begin(fleet)
    return fleet


def begin(fleet: Fleet) -> None:
    """Load the demo's fleet, and stop the writer."""
    fleet.server(DATABASE_MODE="rwc", SEED_FILE=str(SEED)).stop()


def status(server: live.Server, path: str = PATH) -> int:
    return poll(server, path)[0]


def has_noticed(server: live.Server) -> bool:
    """Whether a server answers 503; until then it may only answer what it had."""
    code, body = poll(server)
    assert code == 503 or len(body["inputs"]) == 3, body
    return code == 503


def until_unavailable(server: live.Server) -> None:
    live.until(lambda: httpx.get(server.url + "/ready").status_code == 503)
    assert status(server) == 503


# Lost, emptied or wrong


@pytest.mark.parametrize("mode", ["", "rw"])
def test_a_writer_begins_no_fleet_unless_told_to(fleet: Fleet, mode: str) -> None:
    line = fleet.refused(DATABASE_MODE=mode, SEED_FILE=str(SEED))
    for part in ("there is no fleet in the database", "restore it from a backup", "mode=rwc"):
        assert part in line
    assert fleet.database.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{SCHEMA}'", fleet.name) == []


def test_the_mode_may_be_in_the_url_beside_parameters_of_the_driver(fleet: Fleet) -> None:
    url = fleet.url
    fleet.url = f"{url}?connect_timeout=5&mode=rwc"
    writer = fleet.server(SEED_FILE=str(SEED))
    assert len(inputs(writer)) == 3
    writer.stop()
    fleet.url = f"{url}?mode=rw&connect_timeout=5"
    assert len(inputs(fleet.server())) == 3


@pytest.mark.parametrize("mode", ["ro", "RWC", "create", "%00"])
def test_an_unknown_mode_is_refused(fleet: Fleet, mode: str) -> None:
    url = fleet.url
    assert "for PostgreSQL it must be one of rwc, rw" in fleet.refused(DATABASE_MODE=mode)
    fleet.url = f"{url}?mode={mode}"
    assert "for PostgreSQL it must be one of rwc, rw" in fleet.refused(API_MODE="read-only")


@pytest.mark.parametrize("loss", LOSSES)
def test_what_was_lost_is_never_served_as_an_empty_fleet(begun: Fleet, loss: str) -> None:
    writer, reader = begun.server(), begun.server("read-only")
    assert len(inputs(reader)) == 3
    for statement in LOSSES[loss].split("; "):
        begun.database.execute(statement, begun.name)
    if "documents" not in LOSSES[loss] or "entries" in LOSSES[loss]:  # documents are read at the start only
        until_unavailable(reader)
        until_unavailable(writer)
        assert write(writer, "POST", "/namespaces", {"id": "late"}) == 503
    writer.kill()
    assert begun.refused(SEED_FILE=str(SEED)), "with mode rw"
    if loss != "the schema dropped":  # then nothing of ours is left to notice
        assert begun.refused(DATABASE_MODE="rwc", SEED_FILE=str(SEED)), "with mode rwc"
    started = begun.server("read-only", "/health", DATABASE_MODE="rwc")
    assert status(started) == 503
    assert has_noticed(reader) or loss == "a table dropped"

    anew = begun.restarted("--begin-anew", SEED_FILE="")
    assert status(anew) == 404
    live.until(lambda: has_noticed(reader))  # a running reader does not follow into emptiness


def test_a_worker_that_is_replaced_begins_no_fleet_in_the_place_of_a_lost_one(fleet: Fleet) -> None:
    server = fleet.server(DATABASE_MODE="rwc", SEED_FILE=str(SEED), WORKERS="2")
    live.until(lambda: len(messages(server, "listening")) == 2)
    fleet.database.execute(f"DROP SCHEMA {SCHEMA} CASCADE", fleet.name)
    os.kill(messages(server, "worker started")[-1]["pid"], signal.SIGKILL)
    live.until(lambda: server.process.poll() is not None)
    assert server.process.poll() == 2, "after several tries"
    assert fleet.database.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{SCHEMA}'", fleet.name) == []


def messages(server: live.Server, message: str) -> list[dict[str, Any]]:
    """The lines of its log with a message, once they are complete."""
    found = [
        json.loads(line) for line in server.log.read_text().splitlines(keepends=True) if line.startswith("{") and line[-1] == "\n"
    ]
    return [line for line in found if line["message"] == message]


def test_what_is_left_of_a_lost_fleet_is_set_aside_when_one_is_begun_anew(begun: Fleet) -> None:
    begun.database.execute(f"TRUNCATE {SCHEMA}.identity", begun.name)
    begun.restarted("--begin-anew").stop()
    kept = begun.database.execute(f"SELECT count(*) FROM {SCHEMA}_lost_1.documents", begun.name)
    assert kept[0][0] > 0


def test_a_good_fleet_is_kept_whatever_is_said_at_the_start(begun: Fleet) -> None:
    begun.database.execute(f"DELETE FROM {SCHEMA}.memos", begun.name)
    writer = begun.restarted("--begin-anew", DATABASE_MODE="rwc")
    assert len(inputs(writer)) == 3


def test_a_fleet_without_documents_is_opened_again(fleet: Fleet) -> None:
    fleet.server(DATABASE_MODE="rwc", SEED_FILE="").stop()
    writer = fleet.server(SEED_FILE="")
    assert write(writer, "POST", "/namespaces", {"id": "first"}) == 201


def test_a_reader_writes_nothing_whatever_the_mode(fleet: Fleet) -> None:
    reader = fleet.server("read-only", "/health", DATABASE_MODE="rwc")
    assert status(reader) == 503
    assert fleet.database.execute(f"SELECT 1 FROM pg_namespace WHERE nspname = '{SCHEMA}'", fleet.name) == []


def test_a_snapshot_file_keeps_a_fleet_from_being_begun_in_an_empty_database(begun: Fleet) -> None:
    begun.server(**begun.snapshot()).stop()
    begun.url = begun.database.create()
    line = begun.refused(DATABASE_MODE="rwc", SEED_FILE=str(SEED), **begun.snapshot())
    assert "SNAPSHOT_FILE" in line
    begun.restarted("--begin-anew", **begun.snapshot())


@pytest.mark.parametrize("mode", ["crud", "read-only"])
def test_a_snapshot_file_of_another_fleet_is_refused_and_kept(begun: Fleet, mode: str) -> None:
    begun.server(**begun.snapshot()).stop()
    content = (begun.directory / "snapshot").read_bytes()
    begun.url = begun.database.create()
    begun.server(DATABASE_MODE="rwc", SEED_FILE="").stop()
    words = f"the snapshot file {begun.directory / 'snapshot'} is of another store"
    if mode == "crud":
        assert words in begun.refused(**begun.snapshot())
    else:
        reader = begun.server(mode, "/health", **begun.snapshot())
        assert status(reader) == 503
        assert words in reader.log.read_text()
        reader.stop()
    assert (begun.directory / "snapshot").read_bytes() == content


# Stepped back


@pytest.fixture
def stepped_back(begun: Fleet) -> Fleet:
    step_back(begun)
    return begun


def step_back(fleet: Fleet) -> None:
    """Restore a backup, after a reader and a writer have left their snapshots of the newer state."""
    fleet.back_up()
    writer = fleet.server(**fleet.snapshot("of-writer"))
    reader = fleet.server("read-only", **fleet.snapshot("of-reader"))
    assert write(writer, "DELETE", f"/clusters/{DEMO}/namespaces/podinfo") == 200
    live.until(lambda: len(inputs(reader)) == 2)
    assert (reader.stop(), writer.stop()) == (0, 0)
    fleet.restore()


def test_a_reader_that_starts_compares_its_snapshot_with_the_database(stepped_back: Fleet) -> None:
    reader = stepped_back.server("read-only", "/health", **stepped_back.snapshot("of-reader"))
    live.until(lambda: "the database has stepped back" in reader.log.read_text())
    assert status(reader) == 503
    writer = stepped_back.server()  # without a snapshot: that the step back is meant, a person has decided
    live.until(lambda: status(reader) == 200)
    assert len(inputs(reader)) == len(inputs(writer)) == 3
    again = stepped_back.server("read-only", **stepped_back.snapshot("of-reader"))
    assert len(inputs(again)) == 3


def test_a_reader_that_started_from_its_snapshot_refuses_an_older_database(stepped_back: Fleet) -> None:
    url = stepped_back.url
    stepped_back.database.execute(f"ALTER DATABASE {stepped_back.name} WITH ALLOW_CONNECTIONS false")
    reader = stepped_back.server("read-only", **stepped_back.snapshot("of-reader"))
    assert len(inputs(reader)) == 2
    stepped_back.database.execute(f"ALTER DATABASE {url.rpartition('/')[2]} WITH ALLOW_CONNECTIONS true")
    live.until(lambda: "the database has stepped back" in reader.log.read_text())  # before it, that the log is read anew
    assert status(reader) == 503


def test_a_writer_does_not_start_on_a_database_older_than_its_snapshot(stepped_back: Fleet) -> None:
    file = stepped_back.directory / "of-writer"
    for _ in range(2):
        line = stepped_back.refused(**stepped_back.snapshot("of-writer"))
        for part in ("the database has stepped back", str(file), "remove the file"):
            assert part in line
        stepped_back.server().stop()  # another writer has started meanwhile: the file is newer all the same
    file.unlink()
    assert len(inputs(stepped_back.server(**stepped_back.snapshot("of-writer")))) == 3


def test_a_writer_that_started_from_its_snapshot_refuses_an_older_database(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        fleet = Fleet(tmp_path, stack.enter_context(postgres_server.running()), stack)
        begin(fleet)
        step_back(fleet)
        fleet.database.stop()
        writer = fleet.server(**fleet.snapshot("of-writer"))
        assert len(inputs(writer)) == 2
        fleet.database.start()
        until_unavailable(writer)
        assert write(writer, "POST", "/namespaces", {"id": "late"}) == 503
        registered: list[Any] = fleet.database.execute(f"SELECT revision FROM {SCHEMA}.log_head", fleet.name)
        assert registered == [(1,)], "nothing was written"


def test_a_snapshot_older_than_the_database_is_simply_outdated(begun: Fleet) -> None:
    begun.server(**begun.snapshot()).stop()
    older = (begun.directory / "snapshot").read_bytes()
    writer = begun.server()
    assert write(writer, "DELETE", f"/clusters/{DEMO}/namespaces/podinfo") == 200
    for mode in ("read-only", "crud"):
        (begun.directory / "snapshot").write_bytes(older)
        server = begun.server(mode, **begun.snapshot())
        assert len(inputs(server)) == 2
        server.stop()
