"""What is true of the SQLite store's log alone: it is small, read in steps, and does not hide damage."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.entries import bodies, commit, create, entry, matching, update
from flux_resourceset import changes, errors
from flux_resourceset.store import Memo
from flux_resourceset.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with contextlib.closing(SqliteStore(path)) as made:
        yield made


def updates(count: int, text: str = "") -> Iterator[changes.Entry]:
    """Of three documents in turn, with one value that changes."""
    last: dict[str, dict[str, Any]] = {name: {"id": name, "text": text, "v": 0, "more": text} for name in "abc"}
    yield entry(1, *(create("n", **last[name]) for name in "abc"))
    for revision in range(2, count + 2):
        before = last["abc"[revision % 3]]
        last[before["id"]] = {**before, "v": revision}
        made = entry(1, update("n", before, last[before["id"]]))
        yield msgspec.structs.replace(made, revision=revision)


def walked(statements: list[str]) -> int:
    """How often the changes of documents were looked for."""
    return len([text for text in statements if "c.kind = " in text or "(c.kind, c.id) IN" in text])


@pytest.mark.parametrize("query", [changes.Query(limit=90), changes.Query(after=1, limit=90), changes.Query(before=60, limit=40)])
@pytest.mark.parametrize("page", [1, 7, 1000])
def test_every_document_is_looked_for_once_however_many_pages_are_read(
    store: SqliteStore, statements: list[str], query: changes.Query, page: int
) -> None:
    """From there on each change is one step from the one before it: reading a long log is linear."""
    log = list(updates(90))
    commit(store, *log)
    statements.clear()
    found = matching(store, query, page)
    assert found == sorted((each for each in log if query.matches(each)), key=lambda each: each.revision,
                           reverse=not query.ascending)[: query.limit]  # fmt: skip
    assert walked(statements) <= 3


def test_a_stretch_of_the_log_is_read_from_what_is_there(store: SqliteStore, statements: list[str]) -> None:
    log = list(updates(60))
    commit(store, *log)
    head = store.head()
    for after, until, walks in ((0, None, 0), (30, None, 0), (10, 40, 3)):
        statements.clear()
        assert store.entries(after, until) == log[after:until]
        assert walked(statements) == walks
    commit(store, *(list(updates(64))[61:]))
    statements.clear()
    followed = store.follow(head)
    assert followed is not None
    assert [each.changes[0].after for each in followed.entries] == [each.changes[0].after for each in list(updates(64))[61:]]
    assert walked(statements) == 0


def test_one_value_of_many_documents_is_little_in_the_file(store: SqliteStore, path: Path) -> None:
    """500 documents of 4 KB: 4 MB before and after, and an answer of 2 MB."""
    documents: list[dict[str, Any]] = [
        {"id": f"c{number:03}", "text": "".join(map(str, range(1000))), "v": 1, "more": number} for number in range(500)
    ]
    commit(store, entry(1, *(create("n", **body) for body in documents)))
    store.settle()
    size = path.stat().st_size
    changed = [update("n", body, {**body, "v": 2}) for body in documents]
    answer = msgspec.json.encode([change.after for change in changed])
    with store.begin() as transaction:
        transaction.commit(entry(2, *changed), Memo("key", "2026-01-02T00:00:00.000000Z", "digest", answer))
    store.settle()
    assert path.stat().st_size - size < 15_000_000 / 10_000 * 500
    with store.begin() as transaction:
        assert transaction.recall("key") == Memo("key", "2026-01-02T00:00:00.000000Z", "digest", answer)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE changes SET lead = lead + 1 WHERE revision = 5",
        "UPDATE changes SET trail = trail - 1 WHERE revision = 5",
        "UPDATE changes SET after = x'30' WHERE revision = 5",
        "UPDATE changes SET before = NULL WHERE revision = 5",
        "UPDATE changes SET operation = 'delete' WHERE revision = 5",
        "UPDATE changes SET previous = NULL WHERE revision = 5",
    ],
)
def test_a_delta_that_does_not_fit_is_doubt(store: SqliteStore, path: Path, damage: str) -> None:
    commit(store, *updates(8))
    connection = sqlite3.connect(path)
    connection.execute(damage)
    connection.commit()
    connection.close()
    id = "abc"[5 % 3]
    for ask in (
        lambda: store.entries(0),
        lambda: store.document_at("n", id, 4),
        lambda: store.state_at(4),
        lambda: store.touches("n", id, None, 9),
        lambda: matching(store, changes.Query()),
        lambda: matching(store, changes.Query(after=0)),
    ):
        with pytest.raises(errors.Doubt, match=r"revision [58]: .* does not fit the document; restore a backup"):
            ask()
    assert len(bodies(store, "n")) == 3


def test_a_damaged_memo_is_doubt(store: SqliteStore, path: Path) -> None:
    store.begin().commit(None, Memo("key", "2026-01-02T00:00:00.000000Z", "digest", b"answer"))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE memos SET body = x'00'")
    connection.commit()
    connection.close()
    with pytest.raises(errors.Doubt), store.begin() as transaction:
        transaction.recall("key")
