"""What is true of the SQLite store alone: its file, its schema, damage, and several processes on one file."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from contract import old_files
from contract.entries import bodies, commit, create, delete, entry, matching, update
from contract.folding import fold
from flux_resourceset import changes, errors
from flux_resourceset.store import Outline, sqlite, sqlite_files
from flux_resourceset.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path)
    yield made
    made.close()


def pragma(path: Path, name: str) -> object:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


# The file


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_files_are_for_their_owner_alone(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = SqliteStore(path)
        commit(store, entry(1, create("n", "a")))
    finally:
        os.umask(before)
    found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    store.close()
    assert found == dict.fromkeys(("fleet.db", "fleet.db-wal", "fleet.db-shm", "fleet.db.store", "fleet.db.left"), 0o600)


def test_the_directory_is_made(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "new" / "er" / "fleet.db").close()
    assert (tmp_path / "new" / "er" / "fleet.db").is_file()


def test_a_name_with_odd_characters_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a ?#%20ü.db"
    store = SqliteStore(path)
    commit(store, entry(1, create("n", "a")))
    store.close()
    assert path.is_file()


def test_the_journal_is_a_write_ahead_log(store: SqliteStore, path: Path) -> None:
    assert pragma(path, "journal_mode") == "wal"


def test_the_file_says_whose_it_is_and_in_which_version(store: SqliteStore, path: Path) -> None:
    assert pragma(path, "application_id") == sqlite_files.APPLICATION_ID
    assert pragma(path, "user_version") == sqlite_files.SCHEMA_VERSION == len(sqlite_files.migrations())


def test_what_was_committed_is_there_after_closing(store: SqliteStore, path: Path) -> None:
    commit(store, entry(1, create("n", "a")))
    epoch = store.epoch()
    store.close()
    again = SqliteStore(path)
    assert (again.epoch(), again.snapshot().revision) == (epoch, 1)
    again.close()


# The schema


def schema_of(statements: str) -> list[tuple[str, str, str]]:
    """Type, name and definition of everything, without comments and layout."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(statements)
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY 1, 2").fetchall()
    connection.close()
    return [(type, name, re.sub(r"\s+(?=[,)])", "", re.sub(r"\s+", " ", re.sub(r"--.*", "", sql)))) for type, name, sql in rows]


def test_the_migrations_lead_to_the_schema() -> None:
    schema = (resources.files("flux_resourceset.store") / "sql" / "sqlite.sql").read_text()
    assert schema_of("".join(sqlite_files.migrations())) == schema_of(schema)
    assert len(schema_of(schema)) > 6


def test_the_migrations_are_numbered_without_gaps() -> None:
    folder = resources.files("flux_resourceset.store") / "sql"
    numbered = sorted(file.name for file in folder.iterdir() if file.name.startswith("sqlite_"))
    assert numbered == [f"sqlite_{number:03}.sql" for number in range(1, len(numbered) + 1)]


def test_a_written_file_has_exactly_the_schema(store: SqliteStore, path: Path) -> None:
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT type, name FROM sqlite_schema ORDER BY 1, 2").fetchall()
    connection.close()
    schema = (resources.files("flux_resourceset.store") / "sql" / "sqlite.sql").read_text()
    assert names == [row[:2] for row in schema_of(schema)]


_FIRST = """
INSERT INTO identity VALUES ('first');
INSERT INTO documents VALUES ('n', 'a', 1, '{"id":"a"}'), ('n', 'c', 3, '{"id":"c"}');
INSERT INTO entries VALUES (1, '2026-01-01T00:00:00.000000Z', 't', NULL, NULL, NULL, 0, NULL),
    (2, '2026-01-02T00:00:00.000000Z', 't', NULL, NULL, NULL, 1, NULL),
    (3, '2026-01-03T00:00:00.000000Z', 't', NULL, NULL, NULL, 0, '[{"dns":"d.example.com","id":"d"}]');
INSERT INTO changes VALUES (1, 0, 'n', 'a', 'create', NULL, '{"id":"a"}'), (1, 1, 'n', 'b', 'create', NULL, '{"id":"b"}'),
    (2, 0, 'n', 'b', 'delete', '{"id":"b"}', NULL), (3, 0, 'n', 'c', 'create', NULL, '{"id":"c"}');
INSERT INTO tombstones VALUES ('d.example.com', 'd', 3);
"""


@pytest.fixture
def of_the_first_release(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA journal_mode = WAL; {sqlite_files.migrations()[0]}")
    connection.executescript(re.sub(r"'([\[{][^']*)'", r"CAST('\1' AS BLOB)", _FIRST))
    connection.executescript(f"PRAGMA application_id = {sqlite_files.APPLICATION_ID}; PRAGMA user_version = 1")
    connection.close()
    return path


def test_a_file_of_the_first_release_is_brought_forward(of_the_first_release: Path) -> None:
    with pytest.raises(errors.Unavailable, match="has schema 1"):
        SqliteStore(of_the_first_release, read_only=True)
    store = SqliteStore(of_the_first_release)
    found, log = store.snapshot(), store.entries(0)
    assert (found.epoch, found.revision, set(found.documents["n"])) == ("first", 3, {"a", "c"})
    assert found.forgone == {("n", "b")}
    hash = ""
    for each in log:
        hash = changes.chained(hash, each)
    assert found.hash == hash
    commit(store, entry(4, delete("n", {"id": "c"})))
    store.close()
    assert Path(f"{of_the_first_release}.store").exists()


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_of_an_earlier_schema_is_brought_forward(path: Path, version: int) -> None:
    log = [entry(1, create("n", "a")), entry(2, create("n", "b"), delete("n", {"id": "a"}))]
    hash = old_files.write(path, log, version)
    with pytest.raises(errors.Unavailable, match=f"has schema {version}"):
        SqliteStore(path, read_only=True)
    store = SqliteStore(path)
    assert store.head() == changes.Head("old", 2, hash)
    assert store.entries(0) == log
    commit(store, entry(3, create("n", "c")))
    assert (store.base(), [found.revision for found in store.entries(0)]) == (0, [1, 2, 3])
    assert set(bodies(store, "n")) == {"b", "c"}
    store.close()


def test_a_file_of_the_fourth_schema_is_brought_forward_without_a_look_at_its_log(store: SqliteStore, path: Path) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
    before = store.head()
    store.close()
    old_files.forget_applied(path)
    with pytest.raises(errors.Unavailable, match="has schema 4"):
        SqliteStore(path, read_only=True)
    again = SqliteStore(path)
    assert (again.head(), again.verified().fault, again.applied([("n", "a")])) == (before, None, {})
    again.begin().commit(None, applied=[changes.Applied("n", "a", "ci", {"id": "a"})])
    assert again.applied_by("ci", ["n"]) == [("n", "a")]
    again.close()


def test_what_is_free_in_a_file_that_was_brought_forward_is_given_back(path: Path) -> None:
    """Whoever has it open sees that it shrank, and opens it again."""
    body = {"id": "a", "text": "x" * 10_000}
    updates = [entry(revision, update("n", {**body, "v": revision - 1}, {**body, "v": revision})) for revision in range(2, 60)]
    old_files.write(path, [entry(1, create("n", **body, v=1)), *updates])
    watching = sqlite3.connect(path)
    watching.execute("SELECT count(*) FROM entries").fetchone()
    size = path.stat().st_size
    store = SqliteStore(path)
    assert path.stat().st_size * 4 < size
    assert [each.changes for each in store.entries(57)] == [each.changes for each in updates[-2:]]
    assert watching.execute("PRAGMA quick_check").fetchone() == ("ok",)
    watching.close()
    store.close()


def test_a_newer_schema_is_refused(store: SqliteStore, path: Path) -> None:
    store.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {sqlite_files.SCHEMA_VERSION + 1}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(errors.Unavailable, match=f"schema {sqlite_files.SCHEMA_VERSION + 1}"):
            SqliteStore(path, read_only=read_only)


def test_the_file_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    for statement in ("PRAGMA user_version = 0", "PRAGMA application_id = 7"):
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.close()
        with pytest.raises(errors.Unavailable, match="another program"):
            SqliteStore(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    connection.close()


# A reader


def test_a_reader_never_creates(path: Path) -> None:
    with pytest.raises(errors.Unavailable, match=r"there is no database at .*API_MODE=crud"):
        SqliteStore(path, read_only=True)
    assert list(path.parent.iterdir()) == []


def test_a_reader_never_migrates(path: Path) -> None:
    path.touch()
    with pytest.raises(errors.Unavailable, match=r"has no schema yet.*API_MODE=crud"):
        SqliteStore(path, read_only=True)
    assert path.stat().st_size == 0


def test_a_writer_that_may_not_create_does_not(path: Path) -> None:
    with pytest.raises(errors.Unavailable, match="mode=rwc"):
        SqliteStore(path, create=False)
    assert not path.exists()


def test_a_file_that_cannot_be_created_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(errors.Unavailable, match="cannot be created"):
        SqliteStore(tmp_path / "file" / "fleet.db")


def test_every_connection_sees_a_commit_at_once(path: Path) -> None:
    writers = [SqliteStore(path), SqliteStore(path)]
    reader = SqliteStore(path, read_only=True)
    versions = {reader.version()}
    for number in range(1, 7):
        commit(writers[number % 2], entry(number, create("n", f"a{number}")))
        versions.add(reader.version())
        assert len(versions) == number + 1
        assert [found.revision for found in reader.entries(number - 1)] == [number]
        assert all(store.snapshot().revision == number for store in (*writers, reader))
    for store in (*writers, reader):
        store.close()


_CHILD = """
import sys
from pathlib import Path
from contract.entries import commit, create, entry
from flux_resourceset.store.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
for line in sys.stdin:
    number = int(line)
    commit(store, entry(number, create("n", f"a{number}")))
    print(number, flush=True)
"""


def test_another_process_is_seen_at_once(store: SqliteStore, path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for number in range(1, 21):
            before = store.version()
            child.stdin.write(f"{number}\n")
            child.stdin.flush()
            assert child.stdout.readline() == f"{number}\n"
            assert store.version() != before
            assert [found.revision for found in store.entries(number - 1)] == [number]
        child.stdin.close()
    assert child.returncode == 0


# Damage


def test_a_file_that_is_no_database_is_doubt(path: Path) -> None:
    path.write_bytes(b"this is no database, but long enough to look at" * 100)
    for read_only in (False, True):
        with pytest.raises(errors.Unavailable, match="cannot be used"):
            SqliteStore(path, read_only=read_only)


def test_a_writer_finds_damage_when_it_opens(store: SqliteStore, path: Path) -> None:
    commit(store, *(entry(number, create("n", f"a{number}", text="x" * 500)) for number in range(1, 60)))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 5] = b"\xff" * 8192
    path.write_bytes(content)
    with pytest.raises(errors.Unavailable, match=r"damaged|malformed|cannot be used"):
        SqliteStore(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE documents SET body = x'7b'",
        "UPDATE documents SET body = x'ff'",
        "DELETE FROM changes; DELETE FROM entries WHERE revision = 1",
        "DROP TABLE documents",
        "DELETE FROM identity",
    ],
)
def test_damaged_content_is_doubt_and_never_an_empty_fleet(store: SqliteStore, path: Path, damage: str) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
    connection = sqlite3.connect(path)
    connection.executescript(damage)
    connection.close()
    with pytest.raises(errors.Unavailable):
        store.snapshot()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM changes WHERE revision = 4; DELETE FROM entries WHERE revision = 4",
        "DELETE FROM changes WHERE revision = 3; DELETE FROM entries WHERE revision = 3",
        "UPDATE identity SET base = 1",
        "UPDATE identity SET base = 3",
        "UPDATE documents SET revision = 3 WHERE id = 'a1'",
        "UPDATE documents SET revision = 1 WHERE id = 'a4'",
        "DELETE FROM documents WHERE id = 'a1'",
    ],
)
def test_damage_to_a_folded_log_is_doubt(store: SqliteStore, path: Path, damage: str) -> None:
    commit(store, *(entry(number, create("n", f"a{number}")) for number in range(1, 6)))
    fold(store, 2)
    assert store.snapshot().base == 2
    connection = sqlite3.connect(path)
    connection.executescript(damage)
    connection.close()
    with pytest.raises(errors.Unavailable, match="restore a backup"):
        store.snapshot()


def test_nothing_of_a_folded_log_is_left_and_its_documents_are_still_counted(store: SqliteStore, path: Path) -> None:
    commit(store, entry(1, create("n", "a")), entry(2, create("n", "b")))
    fold(store, 2)
    assert set(bodies(store, "n")) == {"a", "b"}
    with pytest.raises(errors.Unavailable, match="cannot follow revision 2"):
        commit(store, entry(1, create("n", "c")))
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM documents WHERE id = 'a'")
    connection.commit()
    connection.close()
    with pytest.raises(errors.Unavailable, match="1 documents, and its log speaks of 2"):
        store.snapshot()


def two_changes(number: int) -> changes.Entry:
    return entry(number, create("n", f"a{number}"), create("n", f"b{number}"))


def test_many_entries_are_read_by_one_statement(store: SqliteStore, statements: list[str]) -> None:
    commit(store, *map(two_changes, range(1, 31)))
    statements.clear()
    assert len(store.entries(0)) == 30
    assert len([text for text in statements if text.startswith("SELECT")]) == 1


@pytest.mark.parametrize(("page", "reads"), [(1000, 1), (20, 3), (1, 30)])
def test_a_log_is_searched_once_however_many_pages_are_read_of_it(
    store: SqliteStore, statements: list[str], page: int, reads: int
) -> None:
    commit(store, *map(two_changes, range(1, 31)))
    statements.clear()
    assert len(matching(store, changes.Query(kind="n", limit=40), page)) == 30
    assert len([text for text in statements if "WHERE kind = " in text]) == 1
    assert len([text for text in statements if "LEFT JOIN changes" in text]) == reads


def test_no_transaction_is_open_between_two_pages(store: SqliteStore, path: Path) -> None:
    """It would keep what is written out of the database file, for as long as somebody reads slowly."""
    commit(store, *map(two_changes, range(1, 4)))
    pages = store.find(changes.Query(), 1)
    next(pages)
    commit(store, two_changes(4))
    connection = sqlite3.connect(path)
    busy, in_wal, put_away = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    connection.close()
    assert (busy, in_wal) == (0, put_away)
    assert len(next(pages)) == 1


def test_what_an_import_brought_along_is_read_with_many_changes_too(store: SqliteStore) -> None:
    many = tuple(changes.Decommissioned(f"d{number}.example.com", f"d{number}") for number in range(2000))
    commit(store, entry(1, *(create("n", f"a{number}") for number in range(50)), decommissioned=many))
    (found,) = store.entries(0)
    assert (len(found.changes), found.decommissioned) == (50, many)


def test_a_damaged_log_is_doubt(store: SqliteStore, path: Path) -> None:
    commit(store, entry(1, create("n", "a")))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE changes SET after = x'7b'")
    connection.commit()
    connection.close()
    with pytest.raises(errors.Unavailable):
        store.entries(0)


def test_a_failed_commit_writes_nothing_and_lets_the_next_one_in(store: SqliteStore) -> None:
    commit(store, entry(1, create("n", "a")))
    with pytest.raises(errors.Unavailable):
        commit(store, entry(1, create("n", "b")))
    assert bodies(store, "n") == {"a": {"id": "a"}}
    commit(store, entry(2, create("n", "c")))
    assert store.snapshot().revision == 2


def test_a_failed_restore_leaves_everything_as_it_was(store: SqliteStore) -> None:
    commit(store, entry(1, create("n", "a")))
    before = store.snapshot()
    twice = [entry(1, create("n", "x")), entry(1, create("n", "y"))]
    with pytest.raises(errors.Unavailable):
        store.begin().restore(before, twice)
    assert store.snapshot() == before
    commit(store, entry(2, create("n", "c")))


# A file that is not the one it was


@pytest.mark.parametrize("beside", ["-wal", "-shm"])
def test_a_file_beside_the_database_that_was_removed_is_noticed_by_everyone_who_asks(
    store: SqliteStore, path: Path, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BESIDE_SECONDS", 3600.0)
    Path(f"{path}{beside}").unlink()
    store._beside_again = 0.0  # it is time to look again
    for _ in range(3):
        with pytest.raises(errors.Doubt, match="removed or replaced"):
            store.version()


def test_a_removed_file_is_noticed(store: SqliteStore, path: Path) -> None:
    commit(store, entry(1, create("n", "a")))
    path.unlink()
    with pytest.raises(errors.Unavailable, match="removed or replaced"):
        store.version()


def test_a_replaced_file_is_noticed(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    other = SqliteStore(tmp_path / "other.db")
    other.close()
    (tmp_path / "other.db").replace(path)
    with pytest.raises(errors.Unavailable, match="removed or replaced"):
        store.version()


# A read-only volume

BESIDE = ("-shm", "-wal")


@pytest.fixture
def frozen(store: SqliteStore, path: Path) -> Path:
    """A database beside which no file is, nor can be made, whoever runs this: links into nowhere are in their places."""
    commit(store, entry(1, create("n", "a")))
    store.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["fleet.db", "fleet.db.left", "fleet.db.store"]
    for name in BESIDE:
        Path(f"{path}{name}").symlink_to("nowhere/at/all")
    return path


def test_a_read_only_volume_without_a_writer_is_read_as_it_stands(frozen: Path) -> None:
    reader = SqliteStore(frozen, read_only=True)
    assert reader.version() == reader.version()
    assert bodies(reader, "n") == {"a": {"id": "a"}}
    assert [found.revision for found in reader.entries(0)] == [1]
    reader.close()
    assert not Path(f"{frozen}-wal").exists()


def test_a_change_of_a_file_that_stood_still_is_noticed(frozen: Path) -> None:
    reader = SqliteStore(frozen, read_only=True)
    reader.version()
    for name in BESIDE:
        Path(f"{frozen}{name}").unlink()
    writer = SqliteStore(frozen)
    commit(writer, entry(2, create("n", "b")))
    writer.close()
    with pytest.raises(errors.Unavailable, match="removed or replaced"):
        reader.version()
    reader.close()
    again = SqliteStore(frozen, read_only=True)
    assert again.snapshot().revision == 2
    again.close()


def test_a_log_that_was_not_put_away_is_never_left_out(frozen: Path) -> None:
    Path(f"{frozen}-wal").unlink()
    Path(f"{frozen}-wal").touch()
    with pytest.raises(errors.Unavailable):
        SqliteStore(frozen, read_only=True)


def test_a_directory_that_cannot_be_locked_is_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "fleet.db")

    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(errors.Unavailable, match="cannot be locked: No locks available"):
        store.begin()
    store.close()


def test_few_changes_to_large_documents_are_outlined_too(store: SqliteStore) -> None:
    head = store.head()
    commit(store, entry(1, *(create("n", f"a{number}", text="x" * 100_000) for number in range(3))))
    assert isinstance(store.follow_few(head, 10), Outline)
    assert not isinstance(store.follow_few(head, 1000), Outline)
