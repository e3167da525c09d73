"""SIGTERM ends the process within ten seconds, whatever is running; what was acknowledged is there afterwards."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import live
from faults import crowds
from faults.crowds import DRY_RUN, Sent
from faults.stores import revisions

SECONDS = 10


def stopped(server: live.Server) -> int:
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait(SECONDS)


def test_dry_runs_end_at_once(tmp_path: Path) -> None:
    with crowds.serving(tmp_path) as server, contextlib.ExitStack() as stack:
        # two are under way by then, and two wait for their turn, which must not come
        running = [stack.enter_context(Sent(server, "POST", DRY_RUN, crowds.on_every_cluster(9))) for _ in range(4)]
        crowds.Polls(server).poll(3)
        assert stopped(server) == 0
        for sent in running:
            assert sent.problem()["detail"].endswith("the server stops; ask again")  # not: cut off
        assert json.loads(server.log.read_text().splitlines()[-1])["message"] == "stopped"


@pytest.mark.thorough  # it waits for the server to give up
def test_nothing_keeps_the_process(tmp_path: Path) -> None:
    with crowds.serving(tmp_path) as server, contextlib.ExitStack() as stack:
        with server.client() as api:
            assert api.post("/namespaces", json={"id": "acknowledged"}).status_code == 201
        for path in ("/export?history=true", "/export", "/clusters", "/changes"):
            for _ in range(3):
                stack.enter_context(Sent(server, "GET", path))  # and nobody reads it
        slow = stack.enter_context(socket.create_connection(server.address))
        slow.sendall(f"POST /batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.WRITE}\r\n".encode())
        slow.sendall(b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        large = b'{"operations":[' + b"[]," * 800_000 + b"[]]}"
        stack.enter_context(Sent(server, "POST", "/batch", large, live.WRITE))
        other = sqlite3.connect(tmp_path / "fleet.db", isolation_level=None)
        stack.callback(other.close)
        other.execute("BEGIN IMMEDIATE")  # another process writes, and does not come to an end
        for number in range(5):
            stack.enter_context(Sent(server, "POST", "/namespaces", {"id": f"waiting-{number}"}, live.WRITE))
        stack.enter_context(Sent(server, "POST", "/batch", crowds.on_every_cluster(5), live.WRITE))
        crowds.Polls(server).poll(10)  # whatever came before them is under way by then
        assert stopped(server) == 0
    with live.serving(tmp_path) as server, server.client() as api:
        assert api.get("/namespaces/acknowledged").status_code == 200


def is_taken(database: Path) -> bool:
    return True


def is_begun(database: Path) -> bool:
    with contextlib.closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True  # the server writes
        other.execute("ROLLBACK")
        return False


def is_committed(database: Path) -> bool:
    return len(revisions(database)) > 1  # the first is the seed


@pytest.mark.thorough
@pytest.mark.parametrize("moment", [is_taken, is_begun, is_committed])
def test_a_write_that_is_cut_off_is_wholly_there_or_not_at_all(tmp_path: Path, moment: Callable[[Path], bool]) -> None:
    with crowds.serving(tmp_path) as server, Sent(server, "POST", "/batch", crowds.on_every_cluster(9), live.WRITE) as sent:
        crowds.Polls(server).poll(3)  # it is under way by then
        live.until(lambda: moment(tmp_path / "fleet.db") or sent.answered, 180)  # a slow machine takes long to write all that
        assert stopped(server) == 0
        acknowledged = b" 200 " in sent.answer()[0]
    with live.serving(tmp_path) as server, server.client() as api:
        patched = [cluster["patches"] != {} for cluster in api.get("/clusters").json()]
        assert len(set(patched)) == 1
        assert patched[0] or not acknowledged
