"""`compact` and `verify` beside servers that are polled and written to: nobody notices, and what was folded is gone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import live
import zygote
from processes.asking import Asking

pytestmark = pytest.mark.long

PATH = "/api/v2/flux/clusters/one.example.com/namespaces"
CLUSTER = {"id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "dev"}


def run(directory: Path, *words: str) -> tuple[int, str]:
    """A command of the program on the database of the directory: exit code, and what it says."""
    with (directory / "command.log").open("w+b") as log, open("/dev/null", "rb") as nothing:
        process = zygote.start(zygote.SERVER, words, live.environment(directory), directory, nothing, log, log)
        code = process.wait(60)
        log.seek(0)
        return code, log.read().decode()


@contextlib.contextmanager
def beside(act: Callable[[], None]) -> Iterator[list[Exception]]:
    """Do something again and again in a thread, until the block is left; what went wrong."""
    failures: list[Exception] = []
    over = threading.Event()

    def loop() -> None:
        while not over.is_set():
            try:
                act()
            except Exception as exc:
                failures.append(exc)
                return

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield failures
    finally:
        over.set()
        thread.join(60)


def polling(ask: Asking) -> Callable[[], None]:
    def poll() -> None:
        status, body = ask("GET", PATH)
        assert status == 200, body
        assert [each["id"] for each in body["inputs"]] == ["a"]

    return poll


def writing(ask: Asking, written: list[int]) -> Callable[[], None]:
    def write() -> None:
        status, body = ask("PATCH", "/namespaces/a", {"labels": {"n": str(len(written))}}, **{"X-Reason": "again"})
        assert status == 200, body
        written.append(len(written))

    return write


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with live.serving(tmp_path) as server, Asking(server) as ask:
        assert ask("POST", "/namespaces", {"id": "a"})[0] == 201
        assert ask("POST", "/clusters", {**CLUSTER, "namespaces": [{"id": "a"}]})[0] == 201
        for number in range(20):
            assert ask("PATCH", "/namespaces/a", {"labels": {"n": f"x{number}"}})[0] == 200
    return tmp_path


def read(server: live.Server, path: str) -> tuple[int, Any]:
    with Asking(server, live.READ) as ask:
        return ask("GET", path)


def logged(server: live.Server, query: str = "") -> tuple[int, Any]:
    status, body = read(server, f"/changes?limit=1000{query}")
    return status, [entry["revision"] for entry in body] if status == 200 else body["code"]


def test_nobody_notices_a_compact_or_a_verify(filled: Path) -> None:
    written: list[int] = []
    with live.serving(filled) as writer, live.serving(filled, API_MODE="read-only") as reader, contextlib.ExitStack() as held:
        tokens = ((writer, live.READ), (reader, live.READ), (writer, live.WRITE))
        asks = [held.enter_context(Asking(server, token)) for server, token in tokens]
        failures = [
            held.enter_context(beside(polling(asks[0]))),
            held.enter_context(beside(polling(asks[1]))),
            held.enter_context(beside(writing(asks[2], written))),
        ]
        live.until(lambda: len(written) > 3)
        for before in ("5", "10", "15", "20"):
            code, said = run(filled, "compact", "--before", before)
            assert (code, said.splitlines()[-1].endswith(f"the log goes on from revision {before}")) == (0, True), said
            code, said = run(filled, "verify")
            assert (code, f"from the base at revision {int(before) - 1} " in said) == (0, True), said
        seen = len(written)
        live.until(lambda: len(written) > seen + 3 or any(failures))
        held.close()
        assert failures == [[], [], []]
        head = 22 + len(written)
        assert logged(writer) == (200, list(range(head, 19, -1)))
        assert logged(writer, "&after=19") == (200, list(range(20, head + 1)))
        assert logged(writer, "&after=18") == (410, "compacted")
        for revision, status in ((20, 200), (19, 410), (1, 410), (head + 1, 404), (0, 404)):
            assert read(writer, f"/changes/{revision}")[0] == status
        assert read(writer, "/export?history=true")[1]["code"] == "compacted"
        assert read(writer, "/export")[0] == 200
        assert read(writer, f"/changes/{head}")[1]["changes"][0]["after"]["labels"] == {"n": str(len(written) - 1)}
    with live.serving(filled) as again:
        assert logged(again)[1][-1] == 20


def test_what_a_compact_would_do_is_only_said(filled: Path) -> None:
    assert run(filled, "compact", "--before", "5", "--dry-run") == (0, "would fold 4 entries; the log goes on from revision 5\n")
    assert run(filled, "compact", "--before", "5") == (0, "folded 4 entries; the log goes on from revision 5\n")
    for before in ("5", "4", "1", "0", "2020-01-01T00:00:00Z", "90d"):
        assert run(filled, "compact", "--before", before) == (0, "nothing to fold: no entry of the log is older\n")
    assert run(filled, "compact", "--before", "22")[0] == 0
    assert run(filled, "verify")[0] == 0


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("23", "revision 23 is not there yet; the newest is 22"),
        ("soon", "it must be a revision, a time"),
        ("2026-01-01", "it must be a revision, a time"),
        ("2026-01-01T00:00:00", "it must be a revision, a time"),
        ("-1", "it must be a revision, a time"),
        ("999999999999999999", "it must be a revision, a time"),
    ],
)
def test_what_cannot_be_folded_is_said(filled: Path, before: str, said: str) -> None:
    code, line = run(filled, "compact", "--before", before)
    assert (code, said in line) == (2, True), line


@pytest.mark.sqlite
def test_a_compact_never_creates_a_store(tmp_path: Path) -> None:
    code, line = run(tmp_path, "compact", "--before", "1")
    assert (code, "there is no database" in line) == (2, True)
    assert not (tmp_path / "fleet.db").exists()


def test_what_is_older_than_now_may_be_folded_but_for_the_newest(filled: Path) -> None:
    assert run(filled, "compact", "--before", "0d") == (0, "folded 21 entries; the log goes on from revision 22\n")
    with live.serving(filled) as server:
        assert logged(server) == (200, [22])
