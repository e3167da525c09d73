"""SIGTERM: stop accepting, finish what is in flight, exit 0."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import DEMO_DNS, SEED, view


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.WRITE}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def until_it_stops_accepting(server: live.Server) -> None:
    while True:
        try:
            socket.create_connection(server.address, timeout=10).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return


@pytest.mark.long
def test_a_request_in_flight_is_finished_and_idle_connections_do_not_hold_up_the_end(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, contextlib.ExitStack() as stack:
        _, polled, writing = (stack.enter_context(socket.create_connection(server.address, timeout=10)) for _ in range(3))
        polled.sendall(request("GET", view(DEMO_DNS, "namespaces")))
        assert polled.recv(65536).startswith(b"HTTP/1.1 200")
        whole = request("POST", "/namespaces", json.dumps({"id": "late"}).encode())
        writing.sendall(whole[:-4])
        assert httpx.get(server.url + "/health").status_code == 200  # by now the half request has arrived
        server.process.send_signal(signal.SIGTERM)
        until_it_stops_accepting(server)
        writing.sendall(whole[-4:])
        assert writing.recv(65536).startswith(b"HTTP/1.1 201")
        assert server.process.wait(10) == 0
        assert "Traceback" not in server.log.read_text()
    with live.serving(tmp_path) as server, server.client() as api:
        assert api.get("/namespaces/late").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_exits_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with live.serving(tmp_path, STORE_BACKEND="memory") as server:
        server.process.send_signal(number)
        assert server.process.wait(10) == 0
        assert json.loads(server.log.read_text().splitlines()[-1])["message"] == "stopped"


@pytest.mark.thorough  # it waits for the server to give up
def test_a_request_that_never_ends_does_not_keep_the_server(tmp_path: Path) -> None:
    with (
        live.serving(tmp_path, STORE_BACKEND="memory") as server,
        socket.create_connection(server.address, timeout=10) as stuck,
    ):
        stuck.sendall(request("POST", "/namespaces", b"{" * 100)[:-50])
        assert httpx.get(server.url + "/health").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
        head, _, body = stuck.recv(65536).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert json.loads(body)["code"] == "unavailable"
        assert "Traceback" not in server.log.read_text()
