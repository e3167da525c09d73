"""Imports into a fleet that is polled: what a file does not hold is not deleted, and nothing is replaced unasked."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import live
from flux_resourceset import transfer

EMPTY = b'{"inputs":[]}'
QUESTION = b"type yes"


class Site(NamedTuple):
    """A writer and a reader on one file, and the commands beside them."""

    directory: Path
    writer: httpx.Client
    reader: httpx.Client

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*live.PROGRAM, *words],
            env=live.environment(self.directory),
            cwd=self.directory,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def ok(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def refused(self, *words: str, stdin: str = "") -> str:
        """What is said when a command does nothing."""
        before = self.answers()
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 2, done
        assert self.answers() == before
        return done.stderr

    def poll(self, name: str) -> tuple[int, bytes]:
        answer = self.reader.get(f"/api/v2/flux/clusters/{name}.example.com/namespaces")
        return answer.status_code, answer.content if answer.status_code == 200 else b""

    def answers(self) -> list[tuple[int, bytes]]:
        return [self.poll(name) for name in ("one", "two", "later", "renamed", "old")]

    def create(self, *names: str, **fields: Any) -> None:
        for name in names:
            body = {"id": name, "cluster_name": name, "cluster_dns": f"{name}.example.com", "environment": "dev"}
            answer = self.writer.post("/clusters", json={**body, "namespaces": [{"id": "space"}], **fields})
            assert answer.status_code == 201, answer.text

    @contextlib.contextmanager
    def polling(self, name: str) -> Iterator[list[tuple[int, bytes]]]:
        """Poll a cluster all the while; what it got, each answer once."""
        seen: list[tuple[int, bytes]] = []
        stop = threading.Event()

        def ask() -> None:
            while not stop.is_set():
                found = self.poll(name)
                if not seen or seen[-1] != found:
                    seen.append(found)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield seen
        finally:
            stop.set()
            thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Clusters one and two; old was decommissioned."""
    with (
        live.serving(tmp_path) as writer,
        live.serving(tmp_path, API_MODE="read-only") as reader,
        writer.client() as writing,
        reader.client(live.READ) as reading,
    ):
        made = Site(tmp_path, writing, reading)
        writing.post("/namespaces", json={"id": "space"})
        made.create("one", "two", "old")
        assert writing.delete("/clusters/old").status_code == 200
        yield made


@pytest.mark.parametrize("history", [[], ["--history"]], ids=["plain", "history"])
def test_a_cluster_that_an_older_export_does_not_hold_is_never_given_an_empty_list(site: Site, history: list[str]) -> None:
    site.ok("export", *history, "older.json")
    site.create("later")
    site.create("renamed")
    with site.polling("later") as seen:
        told = site.ok("import", "--replace", "--yes", "older.json")
        live.until(lambda: seen[-1][0] != 200)  # the reader has told of it
    assert "later.example.com vanishes" in told
    assert [status for status, _ in seen] == [200, 404]
    assert [status for status, _ in site.answers()] == [200, 200, 404, 404, 200]
    assert site.poll("old") == (200, EMPTY)
    with live.serving(site.directory, API_MODE="read-only") as later, later.client(live.READ) as asking:  # from the file alone
        assert asking.get("/api/v2/flux/clusters/later.example.com/namespaces").status_code == 404
    assert site.poll("one")[1] != EMPTY


@pytest.mark.parametrize("history", [[], ["--history"]], ids=["plain", "history"])
def test_absent_clusters_are_decommissioned_when_it_is_said(site: Site, history: list[str]) -> None:
    site.ok("export", *history, "older.json")
    site.create("later")
    told = site.ok("import", "--replace", "--yes", "--decommission-absent", "older.json")
    assert "later.example.com is decommissioned" in told
    assert site.poll("later") == site.poll("old") == (200, EMPTY)
    assert site.poll("one")[1] != EMPTY
    with live.serving(site.directory, API_MODE="read-only") as later, later.client(live.READ) as asking:
        assert asking.get("/api/v2/flux/clusters/later.example.com/namespaces").content == EMPTY
    again = site.ok("import", "--replace", "--yes", "older.json")  # it stays so
    assert "is decommissioned" not in again


@pytest.mark.parametrize("history", [[], ["--history"]], ids=["plain", "history"])
def test_a_name_that_an_older_export_does_not_know_is_never_given_an_empty_list(site: Site, history: list[str]) -> None:
    site.ok("export", *history, "older.json")
    site.writer.delete("/clusters/two")
    site.create("two", cluster_dns="renamed.example.com")
    site.ok("import", "--replace", "--yes", "older.json")
    assert [status for status, _ in site.answers()] == [200, 200, 404, 404, 200]
    assert site.poll("two")[1] != EMPTY


def test_nothing_is_replaced_unasked(site: Site) -> None:
    site.ok("export", "older.json")
    site.create("later")
    content = (site.directory / "older.json").read_text()
    assert "--yes" in site.refused("import", "--replace", "older.json").splitlines()[-1]
    assert "--yes" in site.refused("import", "--replace", "-", stdin=content).splitlines()[-1]
    assert "yes\n" not in site.refused("import", "--replace", "older.json", stdin="yes\n")
    assert "goes with --replace" in site.refused("import", "--decommission-absent", "--yes", "older.json")
    assert "use --replace" in site.refused("import", "--yes", "older.json")


def test_nothing_is_asked_where_nothing_can_be_lost(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    site.ok("export", "older.json")
    other = tmp_path_factory.mktemp("other")
    done = subprocess.run(
        [*live.PROGRAM, "import", "--replace", str(site.directory / "older.json")],
        env=live.environment(other), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        'warning: old.example.com of cluster "old" was decommissioned where the file was made; its answers are [] from now on',
        "imported 3 documents; the fleet is at revision 1",
    ]


def test_an_empty_or_wrong_file_is_refused_whatever_is_said(site: Site) -> None:
    data: dict[str, Any] = {"format": transfer.FORMAT, "revision": 0, "documents": {}, "tombstones": []}
    for whole in (data, {**data, "history": []}):
        (site.directory / "empty.json").write_text(json.dumps({**whole, "checksum": transfer.checksum(whole)}))
        assert "holds no documents" in site.refused("import", "--replace", "--yes", "empty.json")
    wrong = {**data, "documents": {"clusters": [{"id": "\x1b]0;x\x07"}]}}
    (site.directory / "wrong.json").write_text(json.dumps({**wrong, "checksum": transfer.checksum(wrong)}))
    assert "\x1b" not in site.refused("import", "--replace", "--yes", "wrong.json")
    (site.directory / "nothing.json").write_bytes(b"")
    assert "invalid JSON value" in site.refused("import", "--replace", "--yes", "nothing.json")


def test_on_a_terminal_it_asks(site: Site) -> None:
    site.ok("export", "older.json")
    site.create("later")
    for answer in (b"y\n", b"\n", b"\x04", None):
        code, shown = answered(site, answer)
        assert (code, b"nothing was changed" in shown) == (2, True)
        assert site.poll("later")[0] == 200
    assert answered(site, b"yes\n")[0] == 0
    assert site.poll("later")[0] == 404


def answered(site: Site, answer: bytes | None) -> tuple[int, bytes]:
    """The exit code, and what the terminal shows; without an answer, somebody presses Ctrl-C."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*live.PROGRAM, "import", "--replace", "older.json"],
        env=live.environment(site.directory), cwd=site.directory, stdin=slave, stdout=slave, stderr=slave,
    ) as process:  # fmt: skip
        os.close(slave)
        shown = b""
        while QUESTION not in shown:
            shown += os.read(master, 65536)
        assert b"later.example.com vanishes" in shown
        # nobody is held up by the question
        assert site.writer.patch("/clusters/later", json={"labels": {"at": str(process.pid)}}).status_code == 200
        if answer is None:
            process.send_signal(signal.SIGINT)
        else:
            os.write(master, answer)
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(master, 65536):
                shown += chunk
        code = process.wait(30)
    os.close(master)
    assert b"Traceback" not in shown
    return code, shown


# Over HTTP


def edited(site: Site, change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    data: dict[str, Any] = site.writer.get("/export").json()
    change({document["id"]: document for document in data["documents"]["clusters"]} | {"": data})
    data["checksum"] = transfer.checksum(data)
    return data


def test_a_merge_passes_by_no_guard(site: Site) -> None:
    before = site.answers()
    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "/cluster_dns": lambda found: found["one"].update(cluster_dns="renamed.example.com"),
        "/namespaces/1/id": lambda found: found["one"]["namespaces"].append({"id": "nowhere"}),
        "/namespaces": lambda found: found["one"].pop("namespaces"),
    }
    for pointer, change in changes.items():
        answer = site.writer.post("/import?merge=true", json=edited(site, change))
        assert answer.status_code == 422, answer.text
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
        assert site.answers() == before


def test_a_merge_does_not_decommission_who_lives(site: Site) -> None:
    before = site.answers()

    def bury(found: dict[str, Any]) -> None:
        found[""]["documents"]["clusters"] = []
        found[""]["tombstones"].append({"dns": "one.example.com", "id": "one", "revision": 1})

    answer = site.writer.post("/import?merge=true", json=edited(site, bury))
    assert answer.status_code == 200, answer.text
    assert site.answers() == before
    told = answer.json()["warnings"]
    assert told == answer.headers.get_list("x-warning")
    assert ['cluster "one" has the name and stays' in text for text in told] == [True]


def test_what_force_left_and_who_was_decommissioned_move_with_a_warning_each(
    site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert site.writer.delete("/namespaces/space?force=true").status_code == 200
    data = site.writer.get("/export").json()
    with live.serving(tmp_path_factory.mktemp("other")) as other, other.client() as there:
        answer = there.post("/import", json=data)
        assert answer.status_code == 200, answer.text
        told = answer.json()["warnings"]
        assert [text.partition(";")[0] for text in told] == [
            'namespaces "space" was deleted by force',
            'old.example.com of cluster "old" was decommissioned where the file was made',
        ]
        assert told == answer.headers.get_list("x-warning")
        (entry,) = there.get("/changes").json()
        assert entry["forced"]
        assert entry["forgone"] == data["deleted_by_force"] == [{"kind": "namespaces", "id": "space"}]
        assert there.get("/export").json()["deleted_by_force"] == data["deleted_by_force"]
