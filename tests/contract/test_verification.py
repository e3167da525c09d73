"""`verify` on a real file: whatever is changed in it by SQL is found, be it in the newest entry, be it after a compact."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from contract.entries import commit, create, delete, entry, update
from contract.folding import fold
from flux_resourceset import logs, server
from flux_resourceset.changes import Applied, Change, Charge, Decommissioned, Entry, Forgone, View
from flux_resourceset.store.sqlite import SqliteStore

C1 = {"id": "c1", "cluster_dns": "c1.example.com", "labels": {"a": "b"}}
C2 = {"id": "c2", "cluster_dns": "c2.example.com"}


def said(revision: int, *made: Change, forced: bool = False) -> Entry:
    """With something in every member."""
    return msgspec.structs.replace(
        entry(revision, *made),
        on_behalf_of="jane",
        request_id=f"r{revision}",
        reason="because",
        forced=forced,
        decommissioned=(Decommissioned(f"far{revision}.example.com", "far"),),
        vanished=(f"gone{revision}.example.com",),
        forgone=(Forgone("m", f"lost{revision}"),),
        reverts=1,
    )


LOG = [
    said(1, create("clusters", "c1", **{k: v for k, v in C1.items() if k != "id"}), create("n", "a", v=1)),
    said(2, create("clusters", "c2", cluster_dns="c2.example.com"), create("n", "b")),
    said(3, update("clusters", C1, {**C1, "labels": {"a": "c"}}), update("n", {"id": "a", "v": 1}, {"id": "a", "v": 22})),
    said(4, delete("clusters", C2), delete("n", {"id": "b"}), forced=True),
    said(5, create("n", "b", v=1), update("clusters", {**C1, "labels": {"a": "c"}}, C1)),
    said(6, update("n", {"id": "a", "v": 22}, {"id": "a", "v": 3}), update("n", {"id": "b", "v": 1}, {"id": "b"}), forced=True),
]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "fleet.db"
    with contextlib.closing(SqliteStore(path)) as store:
        commit(store, *LOG)
        store.begin().commit(None, charge=Charge((View("places", "n", "places"),), "2026-01-09T00:00:00.000000Z"))
        store.begin().commit(None, applied=[Applied("n", "a", "ci", {"id": "a"})])
        store.settle()
    monkeypatch.setenv("DATABASE_URL", f"sqlite://{path}")
    return path


@pytest.fixture
def folded(path: Path) -> Path:
    with contextlib.closing(SqliteStore(path)) as store:
        fold(store, 2)
        store.settle()
    return path


def tamper(path: Path, statement: str) -> None:
    """As root with a shell would: no key stops it."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        assert db.execute(statement).rowcount > 0, statement
        db.commit()


@pytest.fixture(autouse=True)
def _logs_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in this process, whose logs other tests look at."""
    monkeypatch.setattr(logs, "configure", lambda level: None)


def verify(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code, (out, err) = server.main(["verify"]), capsys.readouterr()
    assert (out == "") != (err == "")
    assert (out + err).count("\n") == 1
    return code, out + err


def test_a_good_store_is_told_in_one_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(capsys) == (0, "verified to revision 6: log, 3 documents and tombstones agree\n")


def test_a_folded_store_is_verified_from_its_base(folded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = verify(capsys)
    assert (code, line) == (0, "verified from the base at revision 2 to revision 6: log, 3 documents and tombstones agree\n")


def test_an_empty_store_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    SqliteStore(tmp_path / "new.db").close()
    monkeypatch.setenv("DATABASE_URL", f"sqlite://{tmp_path}/new.db")
    assert verify(capsys)[0] == 0


def columns(path: Path, table: str) -> dict[str, str]:
    """Name and type."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {row[1]: row[2] for row in db.execute(f"PRAGMA table_info({table})")}


def another(name: str, type: str) -> str:
    """An expression for another value than the column has."""
    return {
        "INTEGER": f"coalesce({name}, 0) + 1000",
        "TEXT": f"coalesce({name}, '') || 'x'",
        "BLOB": f"CASE WHEN {name} IS NULL THEN CAST('[]' AS BLOB) ELSE CAST(replace({name}, '\"', '\"x') || ' ' AS BLOB) END",
    }[type]


WHICH = {
    "entries": ["revision = 1", "revision = 3", "revision = 6"],
    "changes": [
        *(f"revision = {revision} AND position = {position}" for revision in (1, 3, 4, 5, 6) for position in (0, 1)),
    ],
    "documents": ["id = 'c1'", "id = 'a'", "id = 'b'"],
    "tombstones": ["dns = 'c2.example.com'", "dns = 'far6.example.com'"],
    "tombstones_before": ["dns = 'c2.example.com'", "dns = 'far6.example.com'"],
    "forgone": ["id = 'lost1'", "id = 'lost6'"],
    "forgone_before": ["id = 'lost3'", "id = 'lost6'"],
    "identity": ["true"],
}


def assert_everything_is_noticed(original: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, unnoticed, tried = original.read_bytes(), [], 0
    with contextlib.closing(sqlite3.connect(original)) as db:
        there = {
            (table, where)
            for table, wheres in WHICH.items()
            for where in wheres
            if db.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]
        }
    for table, where in sorted(there):
        statements = [f"UPDATE {table} SET {name} = {another(name, type)}" for name, type in columns(original, table).items()]
        for statement in [*statements, f"DELETE FROM {table}"]:
            original.write_bytes(content)
            tamper(original, f"{statement} WHERE {where}")
            code, line = verify(capsys)
            tried += 1
            if code != 1 or not line.startswith("revision "):
                unnoticed.append((statement, where, code, line))
    assert unnoticed == []
    assert tried > 90


@pytest.mark.long
def test_whatever_is_changed_is_noticed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_everything_is_noticed(path, capsys)


@pytest.mark.long
def test_whatever_is_changed_after_a_compact_is_noticed(folded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_everything_is_noticed(folded, capsys)


@pytest.mark.parametrize(
    ("statement", "revision"),
    [
        ("UPDATE entries SET reason = 'another' WHERE revision = 6", 6),
        ("UPDATE entries SET reason = 'another' WHERE revision = 3", 3),
        ("UPDATE entries SET forced = 0 WHERE revision = 6", 6),
        ("UPDATE entries SET reverts = NULL WHERE revision = 6", 6),
        ("UPDATE entries SET documents = 7 WHERE revision = 3", 3),
        ("DELETE FROM entries WHERE revision = 4", 4),
        ("UPDATE changes SET after = CAST('23' AS BLOB) WHERE revision = 3 AND id = 'a'", 3),
        ("UPDATE changes SET before = CAST('4' AS BLOB) WHERE revision = 6 AND id = 'a'", 6),
        ("UPDATE changes SET previous = 2 WHERE revision = 6 AND id = 'a'", 6),
        ('UPDATE documents SET body = CAST(\'{"id":"a","v":4}\' AS BLOB) WHERE id = \'a\'', 6),
        ('UPDATE documents SET body = CAST(\'{"id": "a","v":3}\' AS BLOB) WHERE id = \'a\'', 6),
        ("DELETE FROM documents WHERE id = 'c1'", 5),
        ("DELETE FROM tombstones WHERE dns = 'c2.example.com'", 4),
    ],
)
def test_the_first_revision_that_does_not_agree_is_named(
    path: Path, capsys: pytest.CaptureFixture[str], statement: str, revision: int
) -> None:
    tamper(path, statement)
    code, line = verify(capsys)
    assert (code, line.split(": ")[0]) == (1, f"revision {revision} does not agree")


def test_a_missing_entry_is_told_from_one_that_was_changed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tamper(path, "DELETE FROM entries WHERE revision = 4")
    assert verify(capsys) == (1, "revision 4 does not agree: an entry of revision 5 stands in its place\n")


def test_a_row_that_came_from_nowhere_is_noticed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = path.read_bytes()
    for statement in (
        "INSERT INTO documents (kind, id, revision, body) VALUES ('n', 'z', 3, x'7b7d')",
        "INSERT INTO tombstones (dns, id, revision) VALUES ('c1.example.com', 'c1', 6)",
        "INSERT INTO changes (revision, position, kind, id, operation, after) VALUES (9, 0, 'n', 'z', 'create', x'7b7d')",
        "INSERT INTO tombstones_before (revision, dns) VALUES (6, 'z.example.com')",
        "INSERT INTO forgone (kind, id) VALUES ('n', 'z')",
        "INSERT INTO identity (epoch) VALUES ('another')",
        "INSERT INTO applied (kind, id, manager, body) VALUES ('n', 'z', 'ci', x'7b7d')",
        "INSERT INTO applied (kind, id, manager, body) VALUES ('n', 'a', 'cli', x'7b')",
    ):
        path.write_bytes(content)
        tamper(path, statement)
        assert verify(capsys)[0] == 1, statement


def test_a_record_without_its_document_is_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tamper(path, "INSERT INTO applied (kind, id, manager, body) VALUES ('n', 'z', 'ci', x'7b7d')")
    assert verify(capsys) == (1, "revision 6 does not agree: something was applied to n 'z', which is not there\n")


def test_verifying_does_not_write(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert verify(capsys)[0] == 0
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"no database" * 99)])
def test_what_cannot_be_opened_is_another_exit_code(
    path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], object]
) -> None:
    damage(path)
    assert verify(capsys)[0] == 2


def test_a_store_in_memory_cannot_be_verified(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STORE_BACKEND", "memory")
    assert verify(capsys)[0] == 2
