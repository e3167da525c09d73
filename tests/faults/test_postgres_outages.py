"""PostgreSQL is stopped, killed and started again under running servers: polls go on, writes are refused, and none is lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import live
import postgres_server
from faults import databases
from faults.checker import assert_right
from faults.instances import Recovery, agree, assert_polls_go_on, loaded
from faults.load import log_of

READERS = "writer writer reader reader"


def away(server: postgres_server.Server, how: str) -> None:
    server.stop() if how == "stopped" else server.kill()


@pytest.mark.parametrize(
    ("how", "times"), [pytest.param("killed", 1, marks=pytest.mark.quick), ("killed", 5), ("stopped", 5)], ids=str
)
def test_polls_outlive_a_database_that_goes_and_comes_back(tmp_path: Path, how: str, times: int, recovery: Recovery) -> None:
    names = READERS if times > 1 else "writer reader"
    with databases.database() as (server, url), databases.running(tmp_path, names, url) as instances:
        with loaded(instances) as made:
            for _ in range(times):
                away(server, how)
                made.until_writes_fail()
                assert_polls_go_on(made)
                server.start()
                recovery.until_well(made, f"PostgreSQL {how}, and started again")
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)))


def test_a_database_that_crashes_and_recovers_by_itself_loses_nothing(tmp_path: Path, recovery: Recovery) -> None:
    """As when the kernel kills one of its processes: all sessions are cut off, and the log is replayed."""
    with databases.database() as (server, url), databases.running(tmp_path, READERS, url) as instances:
        with loaded(instances) as made:
            for _ in range(5):
                (process,) = server.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
                since = time.monotonic()
                os.kill(process[0], signal.SIGKILL)
                recovery.until_well(made, "PostgreSQL: one of its processes killed with -9", since)
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)))


def test_sessions_that_an_administrator_ends_are_opened_again(tmp_path: Path, recovery: Recovery) -> None:
    with databases.database() as (server, url), databases.running(tmp_path, READERS, url) as instances:
        with loaded(instances) as made:
            for _ in range(20):
                since = time.monotonic()
                server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'test%'")
                recovery.until_well(made, "PostgreSQL: sessions ended by an administrator", since)
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)))


def test_a_reader_that_starts_while_the_database_is_away_serves_its_snapshot_and_then_follows(
    tmp_path: Path, recovery: Recovery
) -> None:
    kept = {"SNAPSHOT_FILE": str(tmp_path / "snapshot")}
    with (
        databases.database() as (server, url),
        databases.running(tmp_path, "writer", url) as writers,
        databases.running(tmp_path, "reader", url, **kept) as readers,
    ):
        instances = [*writers, *readers]
        readers[0].target.name = "keeper"
        with loaded(instances) as made:
            live.until((tmp_path / "snapshot").exists)
            server.kill()
            readers[0].kill()
            since = time.monotonic()
            readers[0].start()
            readers[0].wait()
            recovery.note("reader started while PostgreSQL is away, from its snapshot", time.monotonic() - since)
            assert_polls_go_on(made)
            server.start()
            recovery.until_well(made, "PostgreSQL killed, and started again")
        agree(instances)
        assert_right(databases.history(made, log_of(writers[0].server)))
