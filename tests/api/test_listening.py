"""Connections of a running server that are not just one poll after the other: kept, cut off, slow, too many."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from api.fleets import DEMO_DNS, SEED, Document, component, view
from faults import crowds, sockets
from flux_resourceset.http import poll

POLL = sockets.request()
LARGE = view("large.example.com", "platform-components")
CLOSE = "Connection: close\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    directory = tmp_path_factory.mktemp("listening")
    large: Document = {"id": "large", "cluster_name": "large", "cluster_dns": "large.example.com", "environment": "dev"}
    large |= {"platform_components": [{"id": "x"}], "patches": {"x": {"large": "x" * 600_000}}}
    seed = json.loads(SEED.read_bytes())
    seed["platform_components"].append(component("x"))
    seed["clusters"].append(large)
    (directory / "seed.json").write_text(json.dumps(seed))
    with live.serving(directory, SEED_FILE="seed.json") as running:
        yield running
        assert "Traceback" not in running.log.read_text()


def counted(server: live.Server) -> tuple[int, int]:
    """Polls on the fast path, and on the ordinary route."""
    with server.client(live.READ) as api:
        text = api.get("/metrics").text
    found = [re.search(rf"^flux_resourceset_polls_{name}_total (\S+)$", text, re.MULTILINE) for name in ("fast", "ordinary")]
    fast, ordinary = (int(float(each[1])) for each in found if each)
    return fast, ordinary


def test_a_connection_that_asked_for_something_else_comes_back_to_the_fast_path(server: live.Server) -> None:
    fast, ordinary = counted(server)
    with sockets.connected(server) as connection:
        for sent in (POLL, sockets.request("/kinds"), POLL, sockets.request(more=sockets.ORDINARY), POLL * 2, POLL):
            connection.sendall(sent)
            received = b""
            while len(sockets.answers(received)) < sent.count(b" HTTP/1.1"):
                received += connection.recv(65536)
            assert {answer.status for answer in sockets.answers(received)} == {200}
    assert counted(server) == (fast + 5, ordinary + 1)


def test_a_poll_that_is_cut_in_two_is_answered_and_the_next_takes_the_fast_path(server: live.Server) -> None:
    fast, ordinary = counted(server)
    with sockets.connected(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(POLL[:30])
        with server.client() as api:
            assert api.get("/health").status_code == 200  # the first half has arrived by now
        connection.sendall(POLL[30:])
        assert sockets.answered(connection).status == 200
        connection.sendall(POLL)
        assert sockets.answered(connection).status == 200
    assert counted(server) == (fast + 1, ordinary + 1)


@pytest.mark.parametrize("more", ["", CLOSE, sockets.ORDINARY], ids=["kept", "closed", "ordinary"])
def test_an_answer_that_is_not_read_at_once_comes_whole(server: live.Server, more: str) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # by which the system measures what it takes at once
        connection.settimeout(20)
        connection.connect(server.address)
        connection.sendall(sockets.request(LARGE, more=more))
        with server.client() as api:
            assert api.get("/health").status_code == 200  # it has answered by now, and could not send all of it
        answer = sockets.answered(connection)
        assert len(json.loads(answer.body)["inputs"][0]["patches"]["large"]) == 600_000
        if more == CLOSE:
            assert connection.recv(1) == b""
        else:
            connection.sendall(POLL)
            assert sockets.answered(connection).status == 200


def test_what_is_sent_behind_a_request_to_close_does_not_take_its_answer_away(server: live.Server) -> None:
    """A close with something unread is a reset, and that overtakes what was sent."""
    rest = len(sockets.request(more=CLOSE + "X: \r\n"))
    asked = sockets.request(more=CLOSE + "X: " + "x" * (poll.MAX_ASKED_BYTES - rest) + "\r\n")
    assert len(asked) == poll.MAX_ASKED_BYTES  # so that it is read by itself
    before = crowds.descriptors(server)
    for _ in range(10):
        with sockets.connected(server) as connection:
            connection.sendall(asked + b"x" * 40_000)
            received = sockets.everything(connection)
        (answer,) = sockets.answers(received)
        assert answer.status == 200
    live.until(lambda: crowds.descriptors(server) <= before)


def test_clients_that_reset_their_connections_leave_nothing_behind(server: live.Server) -> None:
    before = crowds.descriptors(server)
    for sent in (b"", POLL, POLL * 2, POLL[:-5], sockets.request("/clusters"), sockets.request(LARGE)):
        for _ in range(20):
            connection = socket.create_connection(server.address)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(sent)
            connection.close()
    live.until(lambda: crowds.descriptors(server) <= before)
    with server.client() as api:
        assert api.get(view(DEMO_DNS, "namespaces")).status_code == 200


@pytest.mark.long
@pytest.mark.sqlite
def test_a_reader_waits_for_what_another_process_wrote_without_leaving_the_fast_path(tmp_path: Path) -> None:
    with (
        live.serving(tmp_path, SEED_FILE=str(SEED)) as writer,
        live.serving(tmp_path, API_MODE="read-only") as reader,
        writer.client() as api,
        reader.client(live.READ) as flux,
        sockets.connected(reader) as kept,
        sockets.connected(reader) as handed_over,
    ):
        for number in range(20):
            assert api.patch("/namespaces/cert-manager", json={"labels": {"n": str(number)}}).status_code == 200
            if number % 2:
                kept.sendall(POLL)
                inputs = json.loads(sockets.answered(kept).body)["inputs"]
            else:
                inputs = flux.get(sockets.POLLED).json()["inputs"]
            assert inputs[0]["labels"]["n"] == str(number)
            handed_over.sendall(sockets.request("/whoami"))
            assert sockets.answered(handed_over).status == 200
        assert counted(reader) == (20, 0)
        assert api.patch("/namespaces/cert-manager", json={"labels": {"n": "last"}}).status_code == 200
        handed_over.sendall(POLL)
        assert json.loads(sockets.answered(handed_over).body)["inputs"][0]["labels"]["n"] == "last"
        handed_over.sendall(POLL)
        assert sockets.answered(handed_over).status == 200
        assert counted(reader) == (21, 1)  # with a transport it is the ordinary route that waits


WITHOUT_EPOLL = """
from flux_resourceset import server
from flux_resourceset.http import listening
listening._IS_POSSIBLE = False
server.main()
"""


@pytest.mark.long
def test_where_there_is_no_epoll_uvicorn_listens_and_polls_take_the_fast_path_all_the_same(tmp_path: Path) -> None:
    env = live.environment(tmp_path, SEED_FILE=str(SEED))
    server = live.Server(tmp_path, env, (sys.executable, "-c", WITHOUT_EPOLL))
    try:
        server.wait("/ready")
        with sockets.connected(server) as silent, sockets.connected(server) as connection:
            for sent in (POLL, sockets.request("/kinds"), POLL, sockets.request(more=CLOSE)):
                connection.sendall(sent)
                assert sockets.answered(connection).status == 200
            assert connection.recv(1) == b""
            assert counted(server) == (3, 0)
            assert silent.recv(1) == b""  # who says nothing is let go
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()
    finally:
        server.kill()


FEW_DESCRIPTORS = """
import resource
from flux_resourceset import server
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
server.main()
"""


@pytest.mark.long
def test_when_descriptors_run_out_connections_wait_and_are_taken_later(tmp_path: Path) -> None:
    env = live.environment(tmp_path, SEED_FILE=str(SEED))
    server = live.Server(tmp_path, env, (sys.executable, "-c", FEW_DESCRIPTORS))
    try:
        server.wait("/ready")
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(sockets.connected(server)) for _ in range(120)]
            live.until(lambda: "no more connections can be taken for now" in server.log.read_text())
            held[0].sendall(POLL)  # who was taken is served
            assert sockets.answered(held[0]).status == 200
            for connection in held[1:60]:
                connection.close()
            held[-1].sendall(POLL)  # who waited is taken
            assert sockets.answered(held[-1]).status == 200
        assert server.log.read_text().count("no more connections can be taken") < 10
        assert "Traceback" not in server.log.read_text()
        assert server.stop() == 0
    finally:
        server.kill()
