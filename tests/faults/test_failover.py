"""A primary dies and its synchronous standby takes over: to servers a reconnect, and no acknowledged write is lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import live
import postgres_server
from faults import databases, load
from faults.checker import assert_right
from faults.instances import Recovery, agree, assert_polls_go_on, loaded
from faults.load import log_of
from faults.test_postgres_outages import READERS

STANDBY = "standby"


@contextlib.contextmanager
def followed(primary: postgres_server.Server, port: int = 0) -> Iterator[postgres_server.Server]:
    """A standby that streams, and without which nothing is acknowledged."""
    standby = primary.standby(STANDBY, fsync=True, port=port)
    try:
        standby.start()
        primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
        primary.execute("SELECT pg_reload_conf()")
        live.until(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        yield standby
    finally:
        standby.remove()


def either(url: str, *servers: postgres_server.Server) -> str:
    """The database on whichever of them takes writes."""
    name = url.rpartition("/")[2]
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://{postgres_server.ADMINISTRATOR}@{hosts}/{name}?target_session_attrs=read-write"


def test_no_acknowledged_write_is_lost_when_the_standby_takes_over(tmp_path: Path, recovery: Recovery) -> None:
    with (
        databases.database() as (first, url),
        followed(first) as second,
        databases.running(tmp_path, READERS, either(url, first, second)) as instances,
    ):
        with loaded(instances) as made:
            made.go_on(50)
            first.kill()
            made.until_writes_fail()
            assert_polls_go_on(made)
            second.promote()
            recovery.until_well(made, "PostgreSQL: primary killed, and the standby promoted")
            made.go_on(50)
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)), writes=100)


def test_the_standby_takes_over_and_the_first_one_comes_back_as_its_standby_and_takes_over_again(
    tmp_path: Path, recovery: Recovery
) -> None:
    with (
        databases.database() as (first, url),
        followed(first) as second,
        databases.running(tmp_path, READERS, either(url, first, second)) as instances,
        contextlib.ExitStack() as held,
    ):
        with loaded(instances) as made:
            first.kill()
            second.promote()
            recovery.until_well(made, "PostgreSQL: primary killed, and the standby promoted")
            third = held.enter_context(followed(second, first.port))
            made.go_on(20)
            second.stop()  # in order this time
            third.promote()
            recovery.until_well(made, "PostgreSQL: primary stopped, and the standby promoted")
            made.go_on(20)
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)), writes=50)


def test_without_its_standby_nothing_is_acknowledged_and_nobody_waits_for_ever(tmp_path: Path, recovery: Recovery) -> None:
    with (
        databases.database() as (first, url),
        followed(first) as second,
        databases.running(tmp_path, READERS, either(url, first, second)) as instances,
    ):
        with loaded(instances) as made:
            second.stop()
            began = time.monotonic()
            made.until_writes_fail()
            assert_polls_go_on(made)
            assert not [write for write in made.writes if write.acknowledged and write.sent > began]
            second.start()
            recovery.until_well(made, "PostgreSQL: synchronous standby away, and back")
        agree(instances)
        assert made.hung == 0
        assert_right(databases.history(made, log_of(instances[0].server)))


@contextlib.contextmanager
def impatient(primary: postgres_server.Server) -> Iterator[None]:
    """An administrator ends every wait for the standby: what was written is in the primary then, and nowhere else."""
    over = threading.Event()

    def cancel() -> None:
        while not over.wait(0.05):
            primary.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)


def test_what_no_standby_has_is_not_acknowledged_either_when_it_is_sent_again(tmp_path: Path) -> None:
    with (
        databases.database() as (first, url),
        followed(first) as second,
        databases.running(tmp_path, "writer", either(url, first, second)) as instances,
        instances[0].server.client() as api,
    ):
        change = {"oci_tag": "2.0.0"}
        body = {"operations": [{"op": "patch", "kind": "platform_components", "id": load.SHARED, "document": change}]}

        def sent() -> list[int]:
            """Under a key, and as a write that changes nothing once the first is there."""
            keyed = api.post("/batch", json=body, headers={"Idempotency-Key": "key"})
            return [keyed.status_code, api.patch(f"/platform_components/{load.SHARED}", json=change).status_code]

        second.stop()
        with impatient(first):
            assert sent() == [503, 503]
            assert sent() == [503, 503]
        second.start()
        live.until(lambda: sent() == [200, 200])
        assert [entry.revision for entry in log_of(instances[0].server)] == [1, 2]
