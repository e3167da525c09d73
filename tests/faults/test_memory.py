"""A server's memory does not grow with what it was asked: refused requests, lists and dry runs leave nothing behind.

The connections stay idle for a while after the answer, as Flux leaves them: what is closed at once is young, and young garbage is
always collected.
"""

from __future__ import annotations

import collections
import itertools
import json
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from faults import crowds

IDLE = 200  # connections that are open and idle
AT_ONCE = 20  # that are asked on before the first answer is read
GROWTH = 1.1

FEW = pytest.param(2_000, 10_000, marks=[pytest.mark.quick, pytest.mark.long], id="10,000")
ALL = pytest.param(20_000, 200_000, marks=pytest.mark.thorough, id="200,000")
FEW_DRY_RUNS = pytest.param(10, 60, marks=[pytest.mark.quick, pytest.mark.long], id="60")
ALL_DRY_RUNS = pytest.param(10, 1_000, marks=pytest.mark.thorough, id="1,000")


def head(method: str, path: str, token: str = live.READ, body: Any = None, **more: str) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    lines = {"Host": "x", "User-Agent": "x", "Authorization": f"Bearer {token}", **more}
    if content:
        lines |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    shown = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{shown}\r\n".encode() + content


def create(id: str, **document: Any) -> dict[str, Any]:
    return {"operations": [{"op": "create", "kind": "namespaces", "id": id, "document": document}]}


VIEWS = "/api/v2/flux/clusters"
VIEW = f"{VIEWS}/c1.example.com/namespaces"
WRITER = {
    401: [head("GET", VIEW, "wrong"), head("GET", "/clusters", "wrong")],
    403: [head("DELETE", "/namespaces/there")],
    404: [head("GET", f"{VIEWS}/nowhere/namespaces"), head("GET", "/namespaces/nowhere")],
    405: [head("DELETE", "/clusters", live.WRITE)],
    409: [
        head("POST", "/namespaces", live.WRITE, {"id": "there"}),
        head("POST", crowds.DRY_RUN, body=create("there")),
    ],
    413: [head("POST", "/namespaces", live.WRITE, Content_Type="application/json", Content_Length="99999999")],
    422: [
        head("POST", "/namespaces", live.WRITE, {"id": "new", "unknown": 1}),
        head("POST", crowds.DRY_RUN, body=create("new", unknown=1)),
    ],
    200: [
        head("GET", "/namespaces"),
        head("GET", f"{VIEWS}?environment=dev"),
        head("POST", crowds.DRY_RUN, body=create("new")),
        head("GET", VIEW),
    ],
}
READER_WITHOUT_STORE = {
    401: [head("GET", VIEW, "wrong")],
    404: [head("GET", "/nowhere")],
    405: [head("POST", VIEWS)],
    503: [head("GET", VIEW), head("GET", VIEWS), head("GET", "/ready")],
}


class Clients:
    """Many of them: each asks once, reads the answer and leaves its connection as it is, until many newer ones are there."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._idle = collections.deque[socket.socket]()

    def ask(self, requests: Iterable[tuple[int, bytes]]) -> None:
        waiting = []
        for status, request in requests:
            connection = socket.create_connection(self._address, timeout=60)
            connection.sendall(request)
            waiting.append((status, connection))
        for status, connection in waiting:
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 %d " % status), answer
            self._idle.append(connection)
        while len(self._idle) > IDLE:
            self._idle.popleft().close()

    def close(self) -> None:
        while self._idle:
            self._idle.popleft().close()


def assert_no_growth(ask: Callable[[int], None], server: live.Server, few: int, many: int) -> None:
    """Compare what the server has resident after few and after many requests."""
    ask(few)
    before = crowds.resident(server, "VmRSS")
    ask(many - few)
    after = crowds.resident(server, "VmRSS")
    assert after <= GROWTH * before, f"{before / 2**20:.1f} MiB after {few:,}, {after / 2**20:.1f} MiB after {many:,}"


def asking(server: live.Server, requests: dict[int, list[bytes]]) -> Callable[[int], None]:
    clients = Clients(server.address)
    turn: Iterator[tuple[int, bytes]] = itertools.cycle([(status, each) for status, some in requests.items() for each in some])

    def ask(count: int) -> None:
        for _ in range(count // AT_ONCE):
            clients.ask(itertools.islice(turn, AT_ONCE))
        clients.close()

    return ask


@pytest.mark.parametrize(("few", "many"), [FEW, ALL])
def test_requests_of_every_kind_leave_nothing_in_memory(tmp_path: Path, few: int, many: int) -> None:
    cluster = {"id": "c1", "cluster_name": "c1", "cluster_dns": "c1.example.com", "environment": "dev"}
    (tmp_path / "seed.json").write_text(json.dumps({"namespaces": [{"id": "there"}], "clusters": [cluster]}))
    with live.serving(tmp_path, SEED_FILE=str(tmp_path / "seed.json")) as server:
        assert_no_growth(asking(server, WRITER), server, few, many)


@pytest.mark.parametrize(("few", "many"), [FEW, ALL])
def test_a_reader_that_answers_503_to_a_fleet_does_not_grow(tmp_path: Path, few: int, many: int) -> None:
    missing = f"sqlite://{tmp_path}/missing.db?mode=ro"
    with live.serving(tmp_path, "/health", API_MODE="read-only", DATABASE_URL=missing) as server:
        assert_no_growth(asking(server, READER_WITHOUT_STORE), server, few, many)


# Dry runs over many clusters, each of which is refused at its end

CLUSTERS = 300
APPLIED = [
    {"op": "apply", "kind": "clusters", "id": f"c{number}", "manager": "ci", "document": {"labels": {"tier": "edge", "by": "ci"}}}
    for number in range(CLUSTERS)
]


def patched(text: str, *more: dict[str, Any]) -> dict[str, Any]:
    operations = crowds.on_every_cluster(values={"n": text})["operations"]
    return {"operations": [*operations, *more]}


def existing() -> dict[str, Any]:
    return {"op": "create", "kind": "platform_components", "id": crowds.EVERYWHERE, "document": {}}


REFUSED: dict[str, tuple[int, str, Any, dict[str, str]]] = {
    "409 a revert": (409, "/changes/{first}/revert?dry_run=true", None, {}),
    "409 conflicting applies": (409, crowds.DRY_RUN, {"operations": APPLIED}, {}),
    "409 already there": (409, crowds.DRY_RUN, patched("x", existing()), {}),
    "404": (404, crowds.DRY_RUN, patched("x", {"op": "delete", "kind": "namespaces", "id": "nowhere"}), {}),
    "412 another plan": (412, crowds.DRY_RUN, patched("x"), {"If-Plan": '"' + "0" * 32 + '"'}),
    "422 an unknown field": (422, crowds.DRY_RUN, patched("x", create("new", unknown=1)["operations"][0]), {}),
}


@pytest.mark.parametrize(("few", "many"), [FEW_DRY_RUNS, ALL_DRY_RUNS])
def test_refused_dry_runs_leave_nothing_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, many: int) -> None:
    monkeypatch.setattr(crowds, "CLUSTERS", CLUSTERS)
    with crowds.serving(tmp_path) as server, server.client() as api:
        for operations in (
            [{**each, "document": {"labels": {"tier": "edge", "by": "another"}}} for each in APPLIED],
            patched("first")["operations"],
            patched("second")["operations"],
            [{"op": "patch", "kind": "clusters", "id": each["id"], "document": {"labels": {"by": "hand"}}} for each in APPLIED],
        ):
            made = api.post("/batch", json={"operations": operations})
            assert made.status_code == 200, made.text
            revision = made.json()["revision"]
        turn = itertools.cycle(REFUSED.items())

        def ask(count: int) -> None:
            for name, (status, path, body, headers) in itertools.islice(turn, count):
                answer: httpx.Response = api.post(path.format(first=revision - 2), json=body, headers=headers)
                assert answer.status_code == status, f"{name}: {answer.text[:1000]}"

        assert_no_growth(ask, server, few, many)
