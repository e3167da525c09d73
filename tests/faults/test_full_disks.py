"""A disk that is full: writes are refused, polls go on, and when there is room again so do writes, without a restart."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

import live
import postgres_server
from faults import databases, disks, load
from faults.checker import assert_right
from faults.disks import Disk
from faults.instances import Recovery, agree, assert_polls_go_on, loaded, running
from faults.load import log_of


def small(directory: Path) -> AbstractContextManager[Disk]:
    return disks.small(directory, 4)


@pytest.mark.parametrize("disk", [small, disks.limited], ids=["small disk", "file size limit"])
def test_a_full_disk_refuses_writes_and_nothing_else(
    tmp_path: Path, disk: Callable[[Path], AbstractContextManager[Disk]], recovery: Recovery
) -> None:
    with disk(tmp_path) as full:
        url = f"sqlite://{full.directory}/fleet.db?mode=rwc"
        with running(tmp_path, "writer writer reader", DATABASE_URL=url, SEED_FILE=str(load.seed(tmp_path))) as instances:
            with loaded(instances) as made:
                pids = [instance.pid for instance in instances]
                for _ in range(3):
                    full.fill(pids)
                    made.until_writes_fail()
                    assert_polls_go_on(made)
                    full.free(pids)
                    recovery.until_well(made, f"SQLite: {type(full).__name__.lower()} disk full")
            agree(instances)
            assert_right(made.history(log_of(instances[0].server)))


@pytest.mark.parametrize("what", ["tables", "log"])
def test_a_full_disk_of_postgres_refuses_writes_and_nothing_else(tmp_path: Path, what: str, recovery: Recovery) -> None:
    """Tables that cannot grow are an error. With a log that cannot, PostgreSQL ends, and has to be started when there is room."""
    home = postgres_server.directory()
    with (
        disks.small(home, 200) as full,
        postgres_server.running(fsync=True, home=full.directory) as server,
        databases.running(tmp_path, "writer writer reader", server.create()) as instances,
    ):
        with loaded(instances) as made:
            for _ in range(2):
                full.fill(pids_of(server))
                if what == "log":
                    use_up_log(server)
                else:
                    use_up_tables(server)
                made.until_writes_fail()
                assert_polls_go_on(made)
                full.free(pids_of(server))
                since = time.monotonic()
                if not server.is_running:
                    server.start()
                recovery.until_well(made, f"PostgreSQL: disk full for its {what}", since)
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)))
    shutil.rmtree(home)


def pids_of(server: postgres_server.Server) -> list[int]:
    return disks.family(server.process.pid) if server.process else []


def use_up_log(server: postgres_server.Server) -> None:
    """A segment after the other, until there is no room for the next."""
    with contextlib.suppress(psycopg.Error):
        while True:
            server.execute("SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000000)), pg_switch_wal()")


def use_up_tables(server: postgres_server.Server) -> None:
    """What room there is within files that are there already."""
    with contextlib.suppress(psycopg.Error):
        server.execute("CREATE TABLE IF NOT EXISTS rest (x text)")
        while True:
            server.execute("INSERT INTO rest SELECT repeat(md5(random()::text), 20) FROM generate_series(1, 100)")


def test_a_full_disk_for_the_snapshot_file_leaves_the_last_good_one_and_harms_nobody(tmp_path: Path, recovery: Recovery) -> None:
    with disks.small(tmp_path, 1) as full:
        file = full.directory / "snapshot"
        with running(tmp_path, "writer", SEED_FILE=str(load.seed(tmp_path)), SNAPSHOT_FILE=str(file)) as instances:
            live.until(file.exists)
            good = file.read_bytes()
            pids = [instances[0].pid]
            with loaded(instances) as made:
                full.fill(pids)
                live.until(lambda: "cannot be written" in instances[0].server.log.read_text())
                made.go_on(20)
                assert_polls_go_on(made)
                assert file.read_bytes() == good
                assert sorted(path.name for path in full.directory.iterdir()) in (["filler", "snapshot"], ["snapshot"])
                full.free(pids)
                since = time.monotonic()
                live.until(lambda: file.read_bytes() != good)
                recovery.note("disk full for the snapshot file, until it is written again", time.monotonic() - since)
            agree(instances)
            assert_right(made.history(log_of(instances[0].server)))
