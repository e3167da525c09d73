"""kill -9 while a file is brought forward, or its log folded: it is the old one or the new one, and whole."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contract import old_files
from contract.entries import commit, create, delete, entry, update
from faults.stores import exit_line
from flux_resourceset import errors
from flux_resourceset.changes import Decommissioned, Entry
from flux_resourceset.store import sqlite_files
from flux_resourceset.store.sqlite import SqliteStore

pytestmark = [pytest.mark.long, pytest.mark.sqlite]

TEXT = "x" * 3000


def log(length: int) -> list[Entry]:
    """Clusters that are created, change again and again, go and come back."""
    entries = [entry(1, *(create("clusters", f"c{n}", cluster_dns=f"c{n}.example.com", text=TEXT, v=1) for n in range(5)))]
    bodies = {change.id: change.after for change in entries[0].changes}
    for revision in range(2, length + 1):
        id = f"c{revision % 5}"
        before = bodies[id]
        if before is None:
            made = create("clusters", id, cluster_dns=f"{id}.example.com", text=TEXT, v=revision)
        elif revision % 11 == 0:
            made = delete("clusters", before)
        else:
            made = update("clusters", before, {**before, "v": revision})
        far = (Decommissioned(f"far{revision}.example.com", "far"),) if revision % 7 == 0 else ()
        entries.append(entry(revision, made, decommissioned=far))
        bodies[id] = made.after
    return entries


LOG = log(28)


def killed(tmp_path: Path, original: Path, points: int, *words: str) -> list[Path]:
    """The files that were left behind, each where its process was killed at another statement."""
    (tmp_path / "copies").mkdir()
    program = [sys.executable, "-m", "processes.killing", str(tmp_path / "copies"), str(original), str(points), *words]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [directory / "fleet.db" for directory in (tmp_path / "copies").iterdir()]


def version(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def assert_good(path: Path, base: int) -> None:
    with contextlib.closing(SqliteStore(path)) as store:
        verified = store.verified()
        assert (verified.fault, verified.base, verified.revision) == (None, base, len(LOG))
        assert store.entries(0) == LOG[base:]
        commit(store, entry(len(LOG) + 1, create("n", "after")))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    old_files.write(tmp_path / "old.db", LOG)
    return tmp_path / "old.db"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    with contextlib.closing(SqliteStore(tmp_path / "whole.db")) as store:
        commit(store, *LOG)
        store.settle()
    return tmp_path / "whole.db"


@pytest.fixture
def fourth(whole: Path) -> Path:
    old_files.forget_applied(whole)
    return whole


POINTS = [10, pytest.param(1000, marks=pytest.mark.thorough)]


@pytest.mark.parametrize("points", POINTS)
def test_a_file_that_is_brought_forward_is_the_old_one_or_the_new_one(tmp_path: Path, old: Path, points: int) -> None:
    files = killed(tmp_path, old, points, "open")
    versions = [version(path) for path in files]
    assert set(versions) == {3, sqlite_files.SCHEMA_VERSION}
    for path in files:
        assert_good(path, 0)
    assert len(files) >= 10


@pytest.mark.parametrize("points", POINTS)
def test_a_file_of_the_fourth_schema_is_the_old_one_or_the_new_one(tmp_path: Path, fourth: Path, points: int) -> None:
    files = killed(tmp_path, fourth, points, "open")
    versions = [version(path) for path in files]
    assert set(versions) == {4, sqlite_files.SCHEMA_VERSION}
    for path in files:
        assert_good(path, 0)
    assert len(files) >= 10


@pytest.mark.parametrize("points", POINTS)
def test_a_log_that_is_folded_is_the_old_one_or_the_new_one(tmp_path: Path, whole: Path, points: int) -> None:
    files = killed(tmp_path, whole, points, "compact", "--before", "12")
    bases = []
    for path in files:
        with contextlib.closing(SqliteStore(path)) as store:
            bases.append(store.base())
        assert_good(path, bases[-1])
    assert set(bases) == {0, 11}
    assert len(files) >= 10


_OPEN = (
    "import sys, pathlib; from flux_resourceset.store.sqlite import SqliteStore; SqliteStore(pathlib.Path(sys.argv[1])).close()"
)


@pytest.mark.thorough
@pytest.mark.parametrize("deed", ["open", "compact"])
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path, old: Path, whole: Path, deed: str) -> None:
    """Also in the middle of a statement."""
    words: Callable[[Path], list[str]] = (
        (lambda path: ["-c", _OPEN, str(path)])
        if deed == "open"
        else (lambda _: ["-m", "flux_resourceset.server", "compact", "--before", "12"])
    )
    for number in range(40):
        (tmp_path / str(number)).mkdir()
        path = Path(shutil.copy(old if deed == "open" else whole, tmp_path / str(number) / "fleet.db"))
        environment = {"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite://{path}"}
        with subprocess.Popen([sys.executable, *words(path)], env=environment, stdout=subprocess.DEVNULL) as process:
            time.sleep(random.uniform(0.1, 0.9))  # no secret
            process.kill()
        with contextlib.closing(SqliteStore(path)) as store:
            base = store.base()
        assert base in (0, 11)
        assert_good(path, base)


DAMAGES = [
    "UPDATE entries SET reason = 'another' WHERE revision = 28",
    "UPDATE changes SET after = CAST(replace(after, 'x', 'y') AS BLOB) WHERE revision = 4",
    "DELETE FROM changes WHERE revision = 9",
    "UPDATE entries SET documents = 9 WHERE revision = 3",
    "UPDATE documents SET body = CAST(replace(body, 'x', 'y') AS BLOB) WHERE id = 'c1'",
    "DELETE FROM documents WHERE id = 'c1'",
    "INSERT INTO tombstones (dns, id, revision) VALUES ('c1.example.com', 'c1', 3)",
    "INSERT INTO forgone (kind, id) VALUES ('n', 'a')",
]


def dump(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_log_of_an_old_file_is_refused_and_the_file_is_left_alone(old: Path, damage: str) -> None:
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute(damage)
        db.commit()
    before = dump(old)
    with pytest.raises(errors.Doubt, match=r"is broken: .*nothing was changed; restore a backup"):
        SqliteStore(old)
    assert dump(old) == before


def test_a_server_does_not_start_on_a_broken_log_of_an_old_file(tmp_path: Path, old: Path) -> None:
    with contextlib.closing(sqlite3.connect(old)) as db:
        db.execute(DAMAGES[0])
        db.commit()
    before = dump(old)
    code, line = exit_line(tmp_path, DATABASE_URL=f"sqlite://{old}")
    assert (code, "revision 28 does not follow" in line) == (2, True)
    assert dump(old) == before
