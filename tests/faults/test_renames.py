"""Files that come and go, again and again, under two writers and polls: doubt meanwhile, never a crash, never a lost write."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import live
from faults.stores import PATH, SEED, inputs, poll, revisions
from processes.asking import Asking

TIMES = 60
Wait = Callable[[], None]  # until everybody has met what was done
Harm = Callable[[Path, Wait], None]


def renamed(database: Path, wait: Wait) -> None:
    away = database.with_name("away.db")
    os.rename(database, away)
    wait()
    os.rename(away, database)
    wait()


def removed(*names: str) -> Harm:
    def remove(database: Path, wait: Wait) -> None:
        for name in names:
            database.with_name(database.name + name).unlink(missing_ok=True)  # it may not be there again yet
        wait()

    return remove


HARMS = {"the database renamed": renamed, "wal and shm removed": removed("-wal", "-shm"), "wal removed": removed("-wal")}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_files_that_come_and_go_under_load_crash_nobody_and_lose_nothing(tmp_path: Path, harm: Harm) -> None:
    database = tmp_path / "fleet.db"
    acknowledged: list[str] = []
    statuses: set[int] = set()
    answers: Counter[str] = Counter()  # by who asked
    done = threading.Event()

    def wait() -> None:
        before = answers.copy()
        live.until(lambda: all(answers[name] > before[name] + 1 for name in asking))  # the first may have been on its way

    def writes(server: live.Server, name: str) -> None:
        with Asking(server) as ask:
            number = 0
            while not done.is_set():
                number += 1
                if ask("POST", "/namespaces", {"id": f"{name}-{number}"})[0] == 201:
                    acknowledged.append(f"{name}-{number}")
                answers[name] += 1

    def polls(server: live.Server, name: str) -> None:
        with Asking(server, live.READ) as ask:
            while not done.is_set():
                status, body = ask("GET", PATH)
                statuses.add(status)
                assert status == 503 or body["inputs"]
                answers[name] += 1

    with live.serving(tmp_path, SEED_FILE=str(SEED)) as first, live.serving(tmp_path) as second:
        asking = {"a": (writes, first), "b": (writes, second), "c": (polls, first), "d": (polls, second)}
        threads = [threading.Thread(target=ask, args=(server, name)) for name, (ask, server) in asking.items()]
        for thread in threads:
            thread.start()
        try:
            for _ in range(TIMES):
                harm(database, wait)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        for server in (first, second):
            assert server.process.poll() is None, server.log.read_text()[-2000:]
            server.wait("/ready")
            assert inputs(server)
        assert acknowledged
        assert statuses <= {200, 503}
        first.kill()
        second.kill()
    found = revisions(database)
    assert found == list(range(1, len(found) + 1))
    with live.serving(tmp_path) as again:
        ids = {document["id"] for document in poll(again, "/namespaces")[1]}
        assert ids >= {*acknowledged}
