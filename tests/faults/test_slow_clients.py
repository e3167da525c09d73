"""Clients that do not read, and clients that send without end: they are let go, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from api.fleets import SEED, Document, component, view
from faults import crowds, sockets

MANY = 60
PATIENCE = 90  # seconds until a test gives up


@pytest.fixture
def server(tmp_path: Path) -> Iterator[live.Server]:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as running:
        yield running


def until_as_before(server: live.Server, before: int) -> None:
    live.until(lambda: crowds.descriptors(server) <= before, PATIENCE)


def connections(server: live.Server, stack: contextlib.ExitStack) -> list[socket.socket]:
    found = []
    for _ in range(MANY):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what nobody reads stays with the server
        connection.settimeout(30)
        connection.connect(server.address)
        found.append(stack.enter_context(connection))
    return found


def test_a_body_that_trickles_in_without_a_good_token_is_refused_by_its_head_and_let_go(server: live.Server) -> None:
    head = b"POST /batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 1000000\r\n\r\n"
    before = crowds.descriptors(server)
    with contextlib.ExitStack() as stack:
        trickling = connections(server, stack)
        for connection in trickling:
            connection.sendall(head)
        for connection in trickling:
            assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")

        def all_are_let_go() -> bool:
            for connection in list(trickling):
                try:
                    connection.sendall(b" ")
                except OSError:
                    trickling.remove(connection)
            return not trickling

        live.until(all_are_let_go, PATIENCE)
        until_as_before(server, before)
        assert "Traceback" not in server.log.read_text()


def test_a_whole_body_without_a_good_token_gets_its_answer_and_keeps_its_connection(server: live.Server) -> None:
    with server.client("wrong") as stranger:
        first = stranger.post("/batch", content=b" " * 900_000)
        assert first.status_code == 401
        assert stranger.post("/batch", content=b"").status_code == 401


@pytest.mark.thorough  # it waits for the server to lose its patience
@pytest.mark.parametrize(
    ("headers", "at_once"),
    [("", 1), (sockets.ORDINARY, 1), ("", 3)],
    ids=["fast path", "ordinary route", "pipelined"],
)
def test_clients_that_never_read_are_let_go(tmp_path: Path, headers: str, at_once: int) -> None:
    large: Document = {"id": "c", "cluster_name": "c", "cluster_dns": "c.example.com", "environment": "dev"}
    large |= {"platform_components": [{"id": "x"}], "patches": {"x": {"large": "x" * 600_000}}}
    (tmp_path / "seed.json").write_text(json.dumps({"platform_components": [component("x")], "clusters": [large]}))
    path = view("c.example.com", "platform-components")
    poll = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.READ}\r\n{headers}\r\n".encode()
    with live.serving(tmp_path, SEED_FILE="seed.json") as server, contextlib.ExitStack() as stack:
        before = crowds.descriptors(server)
        found = connections(server, stack)
        for _ in range(12):
            for connection in found:
                connection.sendall(poll * at_once)  # and nothing is read
        live.until(
            lambda: crowds.descriptors(server) > before + MANY // 2, PATIENCE
        )  # they are there; who asked before may be gone
        until_as_before(server, before)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.thorough
def test_long_answers_that_nobody_reads_are_let_go(tmp_path: Path) -> None:
    with crowds.serving(tmp_path) as server, contextlib.ExitStack() as stack:
        before, resident = crowds.descriptors(server), crowds.resident(server)
        for connection in connections(server, stack)[: MANY // 6]:
            connection.sendall(
                f"GET /export?history=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.READ}\r\n\r\n".encode()
            )
        live.until(lambda: crowds.descriptors(server) > before + MANY // 2, PATIENCE)
        until_as_before(server, before)
        assert crowds.resident(server) - resident < 2 * 2**30  # what is not read is not written; only the log is held
        assert "Traceback" not in server.log.read_text()
