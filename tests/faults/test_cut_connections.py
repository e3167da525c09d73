"""Connections to PostgreSQL that stall, crawl, break or only seem to be there: polls go on, and no write hangs or is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import live
import postgres_server
from faults import databases, load, proxy
from faults.checker import assert_right
from faults.instances import Instance, Recovery, agree, assert_polls_go_on, loaded
from faults.load import log_of
from faults.proxy import Weather
from faults.test_postgres_outages import READERS

Database = AbstractContextManager[tuple[postgres_server.Server, str]]
BROKEN: tuple[Weather, ...] = ("stalled", "reset", "half open", "silent")


def assert_outlived(
    directory: Path, weather: Weather, times: int, names: str, database: Callable[[], Database], recovery: Recovery
) -> None:
    with (
        database() as (server, url),
        proxy.before(server.port) as between,
        databases.running(directory, names, databases.through(url, between.port)) as instances,
    ):
        with loaded(instances) as made:
            for _ in range(times):
                between.set(weather)
                made.until_writes_fail()
                assert_polls_go_on(made)
                between.set("fine")
                recovery.until_well(made, f"PostgreSQL: connections {weather}, and fine again")
        agree(instances)
        assert made.hung == 0  # whoever writes is told, and nobody waits for ever
        assert_right(databases.history(made, log_of(instances[0].server)))


@pytest.mark.parametrize(("weather", "times"), [("reset", 5), ("stalled", 1), ("half open", 1), ("silent", 1)], ids=str)
def test_polls_go_on_and_writes_are_told_when_connections_break(
    tmp_path: Path, weather: Weather, times: int, recovery: Recovery
) -> None:
    assert_outlived(tmp_path, weather, times, READERS, databases.database, recovery)


@pytest.mark.quick
def test_polls_go_on_when_connections_are_reset_once(tmp_path: Path, recovery: Recovery) -> None:
    assert_outlived(tmp_path, "reset", 1, "writer reader", databases.quick_database, recovery)


def test_slow_connections_are_no_fault(tmp_path: Path, recovery: Recovery) -> None:
    with (
        databases.database() as (server, url),
        proxy.before(server.port) as between,
        databases.running(tmp_path, READERS, databases.through(url, between.port)) as instances,
    ):
        with loaded(instances) as made:
            between.set("slow")
            made.go_on(10)
            assert_polls_go_on(made)
            between.set("fine")
            recovery.until_well(made, "PostgreSQL: connections slow, and fine again")
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)))


def test_a_reader_that_is_cut_off_is_behind_and_catches_up(tmp_path: Path, recovery: Recovery) -> None:
    """The others go on meanwhile. It never goes back, and each of its answers was true once."""
    with (
        databases.database() as (server, url),
        proxy.before(server.port) as between,
        databases.running(tmp_path, "writer reader", url) as instances,
        databases.running(tmp_path, "reader", databases.through(url, between.port)) as cut_off,
    ):
        cut_off[0].target.name = "cut-off"
        everybody = [*instances, *cut_off]
        with loaded(everybody) as made:
            for weather in BROKEN:
                between.set(weather)
                made.go_on(20)
                assert_polls_go_on(made)
                with made.quiet():
                    between.set("fine")
                    since = time.monotonic()
                    agree(everybody)
                    recovery.note(
                        f"PostgreSQL: one reader cut off ({weather}), until it knows the newest", time.monotonic() - since
                    )
        assert_right(databases.history(made, log_of(instances[0].server)))


def test_a_reader_with_a_limit_is_never_older_than_that(tmp_path: Path, recovery: Recovery) -> None:
    limit = 2
    with (
        databases.database() as (server, url),
        proxy.before(server.port) as between,
        databases.running(tmp_path, "writer", url) as instances,
        databases.running(tmp_path, "reader", databases.through(url, between.port), MAX_STALENESS=str(limit)) as limited,
    ):
        limited[0].target.name = process = "limited"
        everybody = [*instances, *limited]
        with loaded(everybody) as made:
            for weather in BROKEN:
                between.set(weather)
                made.until_polled(lambda poll: poll.process.startswith(process) and poll.status == 503)
                assert_stale(limited[0])
                with made.quiet():
                    between.set("fine")
                    since = time.monotonic()
                    agree(everybody)
                    recovery.note(f"PostgreSQL: one reader beyond MAX_STALENESS ({weather})", time.monotonic() - since)
        found = databases.history(made, log_of(instances[0].server))
        found.staleness |= {limited[0].target.process: limit + databases.LATE}
        assert_right(found)


def assert_stale(instance: Instance) -> None:
    with instance.server.client(live.READ) as api:
        problems = [api.get(path).json() for path in (load.path_of(load.KEYS[0]), "/ready")]
    assert [problem["code"] for problem in problems] == ["stale", "stale"]
