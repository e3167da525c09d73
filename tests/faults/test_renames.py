"""A database that comes and goes under two writers and a poller: doubt meanwhile, never a crash, never a lost write."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import live
from faults.stores import PATH, SEED, inputs, poll, revisions
from processes.asking import Asking

RENAMES = 60


def test_renaming_the_database_away_and_back_under_load_crashes_nobody(tmp_path: Path) -> None:
    database, away = tmp_path / "fleet.db", tmp_path / "away.db"
    acknowledged: list[str] = []
    statuses: set[int] = set()
    done = threading.Event()

    def writes(server: live.Server, name: str) -> None:
        with Asking(server) as ask:
            number = 0
            while not done.is_set():
                number += 1
                if ask("POST", "/namespaces", {"id": f"{name}-{number}"})[0] == 201:
                    acknowledged.append(f"{name}-{number}")

    def polls(server: live.Server) -> None:
        with Asking(server, live.READ) as ask:
            while not done.is_set():
                status, body = ask("GET", PATH)
                statuses.add(status)
                assert status == 503 or body["inputs"]

    with live.serving(tmp_path, SEED_FILE=str(SEED)) as first, live.serving(tmp_path) as second:
        threads = [threading.Thread(target=writes, args=(server, name)) for server, name in ((first, "a"), (second, "b"))]
        threads += [threading.Thread(target=polls, args=(server,)) for server in (first, second)]
        for thread in threads:
            thread.start()
        for _ in range(RENAMES):
            os.rename(database, away)
            time.sleep(0.02)
            os.rename(away, database)
            time.sleep(0.02)
        done.set()
        for thread in threads:
            thread.join()
        for server in (first, second):
            assert server.process.poll() is None, server.log.read_text()[-2000:]
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
