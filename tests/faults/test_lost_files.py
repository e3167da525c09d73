"""The SQLite file is removed, cut or swapped for an older one under running servers that are polled and written to.

Nobody gets a wrong answer, no acknowledged write goes into a file that nobody will see again, and all is well without a restart
when the right file is back.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import live
from contract.entries import commit, create, entry
from faults import load
from faults.checker import assert_right
from faults.instances import Instance, Recovery, agree, loaded, running
from faults.load import Load, log_of
from faults.stores import copy_database
from faults.test_lost_databases import FILES
from flux_resourceset.store import sqlite_files
from flux_resourceset.store.sqlite import SqliteStore

BESIDE = FILES[1:]


def until_refused(made: Load, instances: list[Instance]) -> None:
    """Everybody notices: polls are 503 everywhere."""
    since = time.monotonic()
    everybody = {instance.target.process for instance in instances}
    live.until(lambda: {poll.process for poll in made.polls[-200:] if poll.status == 503 and poll.asked > since} == everybody)


def removed(database: Path, newest: Path, older: Path) -> None:
    for name in FILES:
        (database.parent / name).unlink(missing_ok=True)


def removed_alone(database: Path, newest: Path, older: Path) -> None:
    database.unlink()


def cut(database: Path, newest: Path, older: Path) -> None:
    os.truncate(database, 4096)


def emptied(database: Path, newest: Path, older: Path) -> None:
    os.truncate(database, 0)


def swapped(database: Path, newest: Path, older: Path) -> None:
    os.replace(older, database)


def overwritten(database: Path, newest: Path, older: Path) -> None:
    shutil.copyfile(older, database)


def overwritten_alone(database: Path, newest: Path, older: Path) -> None:
    for name in BESIDE:
        (database.parent / name).unlink()
    shutil.copyfile(older, database)


DEEDS = [
    removed,
    removed_alone,
    cut,
    emptied,
    pytest.param(swapped, marks=pytest.mark.quick),
    overwritten,
    overwritten_alone,
]

Deed = Callable[[Path, Path, Path], None]


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)
def test_a_file_that_is_lost_is_doubt_until_it_is_back(tmp_path: Path, deed: Deed, recovery: Recovery) -> None:
    database, newest, older = (tmp_path / name for name in ("fleet.db", "newest.db", "older.db"))
    with running(tmp_path, "writer writer reader", SEED_FILE=str(load.seed(tmp_path))) as instances:
        with loaded(instances) as made:
            copy_database(database, older)
            made.go_on(20)
            with made.quiet():
                copy_database(database, newest)
                deed(database, newest, older)
                until_refused(made, instances)
            time.sleep(0.3)  # writes are tried as well, and whatever is acknowledged has to be there in the end
            with made.quiet():
                for name in BESIDE:
                    (tmp_path / name).unlink(missing_ok=True)
                os.replace(newest, database)
                since = time.monotonic()
            recovery.until_well(made, f"SQLite: file {deed.__name__.replace('_', ' ')}, and the newest put back", since)
        agree(instances)
        assert_right(made.history(log_of(instances[0].server)), writes=20)


MANY = 300


@pytest.mark.parametrize("released", [False, True], ids=["while somebody reads", "when nobody reads any more"])
@pytest.mark.parametrize("preserved", [False, True], ids=["copied", "copied with its times"])
def test_nothing_is_written_on_top_of_a_mixture_of_an_older_file_and_the_newest_pages(
    tmp_path: Path, released: bool, preserved: bool
) -> None:
    """Somebody reads for so long that what is written stays in the -wal file; a backup is copied over the database below it."""
    database, older = tmp_path / "fleet.db", tmp_path / "older.db"
    seed = load.seed(tmp_path)
    fleet = json.loads(seed.read_text())
    fleet["clusters"] += [load.cluster(f"c{number}", "0") for number in range(MANY)]
    seed.write_text(json.dumps(fleet))
    with live.serving(tmp_path, SEED_FILE=str(seed)) as writer, writer.client() as api:

        def write(number: int, value: str) -> int:
            return api.patch(f"/clusters/c{number}", json={"labels": {"a": value}}).status_code

        copy_database(database, older)
        assert {write(number, "x" * 60) for number in range(0, MANY, 2)} == {200}
        with contextlib.closing(sqlite3.connect(database)) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM entries").fetchone()
            assert {write(number, "y") for number in range(20)} == {200}
            (shutil.copy2 if preserved else shutil.copyfile)(older, database)
            if released:
                reading.rollback()
            assert {write(number, "z") for number in range(100, 110)} == {503}


@pytest.mark.quick
def test_two_writers_in_turn_look_at_the_whole_file_only_if_it_was_written_by_neither(tmp_path: Path) -> None:
    """To look takes time that grows with the file, and writers that take turns would look each time."""
    with contextlib.closing(SqliteStore(tmp_path / "fleet.db")) as one, contextlib.closing(SqliteStore(one.path)) as other:
        commit(one, entry(1, create("n", "a")))
        assert sqlite_files.is_as_left(one.path)
        commit(other, entry(2, create("n", "b")))
        assert sqlite_files.is_as_left(one.path)
        one.settle()
        assert sqlite_files.is_as_left(one.path)
        os.utime(one.path)
        assert not sqlite_files.is_as_left(one.path)
        commit(one, entry(3, create("n", "c")))
        assert sqlite_files.is_as_left(one.path)
        (tmp_path / "fleet.db.left").unlink()
        commit(other, entry(4, create("n", "d")))
        assert sqlite_files.is_as_left(one.path)
