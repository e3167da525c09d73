"""A client that has sent everything and ends its side of the connection, but still listens: all is answered, on both ways."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from api.fleets import SEED
from faults import sockets
from faults.sockets import request

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module", params=["info", "debug"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    """With the log at debug there is no fast path."""
    directory: Path = tmp_path_factory.mktemp("half-close")
    with live.serving(directory, SEED_FILE=str(SEED), LOG_LEVEL=request.param) as running:
        yield running


FLUX = request()
ORDINARY_POLL = request(more=sockets.ORDINARY)
CLUSTERS = request("/clusters")
EXPORT = request("/export?history=true")
UNKNOWN = request("/clusters/nobody")
STRANGE = request("/clusters", token="wrong")
BATCH = json.dumps({"operations": [{"op": "create", "kind": "namespaces", "id": "rehearsed", "document": {}}]}).encode()
REHEARSAL = request("/batch?dry_run=true", method="POST", body=BATCH)


def create(id: str) -> bytes:
    return request("/namespaces", live.WRITE, "POST", body=json.dumps({"id": id}).encode())


def said(server: live.Server, *segments: bytes) -> list[int]:
    """The statuses of all that came before the server ended its side too."""
    with sockets.connected(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for segment in segments:
            connection.sendall(segment)
        connection.shutdown(socket.SHUT_WR)
        received = sockets.everything(connection)
    found = sockets.answers(received)
    return [answer.status for answer in found]


@pytest.mark.long
@pytest.mark.parametrize(
    ("requests", "statuses"),
    [
        ([FLUX], [200]),
        ([ORDINARY_POLL], [200]),
        ([CLUSTERS], [200]),
        ([EXPORT], [200]),
        ([REHEARSAL], [200]),
        ([FLUX] * 50, [200] * 50),
        ([ORDINARY_POLL] * 50, [200] * 50),
        ([CLUSTERS] * 50, [200] * 50),
        ([FLUX, CLUSTERS, FLUX, REHEARSAL, EXPORT, FLUX], [200] * 6),
        ([CLUSTERS, UNKNOWN, STRANGE, FLUX], [200, 404, 401, 200]),
        ([FLUX, EXPORT, FLUX], [200, 200, 200]),
    ],
    ids=lambda value: f"{len(value)}" if isinstance(value[0], bytes) else "",
)
@pytest.mark.parametrize("at_once", [True, False])
def test_every_request_is_answered(server: live.Server, requests: list[bytes], statuses: list[int], at_once: bool) -> None:
    segments = [b"".join(requests)] if at_once else requests
    for _ in range(5):
        assert said(server, *segments) == statuses


def test_writes_are_answered_and_carried_out(server: live.Server) -> None:
    ids = [f"half-closed-{number}" for number in range(5)]
    assert said(server, b"".join(map(create, ids))) == [201] * 5
    assert said(server, *map(create, ids)) == [409] * 5


@pytest.mark.parametrize(
    "cut", [create("never")[:-3], CLUSTERS[:-2], FLUX[:20], b"GET", create("never").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"]
)
def test_what_was_cut_off_is_dropped_and_what_came_before_is_answered(server: live.Server, cut: bytes) -> None:
    assert said(server, cut) == []
    assert said(server, CLUSTERS + FLUX + cut) == [200, 200]
    assert said(server, CLUSTERS, FLUX, cut) == [200, 200]
    with server.client() as api:
        assert api.get("/namespaces/never").status_code == 404


def test_a_client_that_said_nothing_or_has_its_answer_is_let_go(server: live.Server) -> None:
    assert said(server) == []
    for first in (FLUX, CLUSTERS):
        with sockets.connected(server) as connection:
            connection.sendall(first)
            assert sockets.answered(connection).status == 200
            connection.shutdown(socket.SHUT_WR)
            assert sockets.everything(connection) == b""
