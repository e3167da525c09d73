"""Requests and connections leave no reference cycles: their memory is free at once, without the garbage collector.

The collector never looks at objects that were frozen (collector.py), so a cycle among them would stay for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
import uvloop

from flux_resourceset import errors, tokens
from flux_resourceset.http import app, listening, metrics, ordinary, poll, unread
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.tokens import Token
from unit import samples

READ, WRITE = "a-token-that-reads", "a-token-that-writes"
TIMES = 5
OURS = ("flux_resourceset", "uvicorn")
ANSWER = b"HTTP/1.1 "

Client = Callable[[tuple[str, int]], None]


pytestmark = pytest.mark.long  # most take half a second


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Only the objects of the test are looked at, and only when it asks for it."""
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()


def head(method: str, path: str, token: str = READ, body: bytes = b"", **more: str) -> bytes:
    headers = {"Host": "x", "Authorization": f"Bearer {token}", **more}
    if body:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def batch(*operations: dict[str, Any]) -> bytes:
    return json.dumps({"operations": operations}).encode()


def created(id: str, **document: Any) -> dict[str, Any]:
    return {"op": "create", "kind": "namespaces", "id": id, "document": document}


def applied(id: str, **document: Any) -> dict[str, Any]:
    return {"op": "apply", "kind": "namespaces", "id": id, "manager": "ci", "document": {"id": id, **document}}


REFUSED = {
    "400 a body that is not JSON": head("POST", "/namespaces", WRITE, b"{"),
    "400 a request that is not HTTP": b"nonsense\r\n\r\n",
    "401": head("GET", "/clusters", "wrong"),
    "403": head("DELETE", "/namespaces/there"),
    "404 a view": head("GET", "/api/v2/flux/clusters/nowhere/namespaces"),
    "404 a write": head("PATCH", "/namespaces/nowhere", WRITE, b"{}"),
    "405": head("DELETE", "/clusters", WRITE),
    "409 a write": head("POST", "/namespaces", WRITE, b'{"id": "there"}'),
    "409 an apply": head("POST", "/batch", WRITE, batch(applied("there", labels={"a": "c"}))),
    "409 a dry run of an apply": head("POST", "/plan", body=batch(applied("there", labels={"a": "c"}))),
    "409 a dry run": head("POST", "/batch?dry_run=true", body=batch(created("there"))),
    "409 a plan": head("POST", "/plan", body=batch(created("there"))),
    "409 a revert": head("POST", "/changes/1/revert?dry_run=true", WRITE),
    "412": head("PUT", "/namespaces/there", WRITE, b"{}", If_Match='"99"'),
    "413": head("POST", "/namespaces", WRITE, Content_Type="application/json", Content_Length="99999999"),
    "415": head("POST", "/namespaces", WRITE, Content_Type="text/plain", Content_Length="0"),
    "422 a write": head("POST", "/namespaces", WRITE, b'{"id": "new", "unknown": 1}'),
    "422 a dry run": head("POST", "/batch?dry_run=true", body=batch(created("new", unknown=1))),
    "500": head("GET", "/openapi.yaml"),
    "503 a view": head("GET", "/api/v2/flux/clusters/c1.example.com/namespaces"),
    "503 a dry run": head("POST", "/batch?dry_run=true", body=batch(created("new"))),
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
def test_a_refused_request_leaves_no_cycle(request_: bytes, request: pytest.FixtureRequest) -> None:
    status = request.node.callspec.id[:3]
    assert garbage(functools.partial(ask, request_, status), is_broken=status == "503") == []


@pytest.mark.parametrize(
    "path", ["/clusters", "/export", "/changes", "/api/v2/flux/clusters", "/namespaces/there/history", "/metrics", "/kinds"]
)
def test_an_answer_leaves_no_cycle(path: str) -> None:
    assert garbage(functools.partial(ask, head("GET", path), "200")) == []


def test_a_write_leaves_no_cycle() -> None:
    assert garbage(functools.partial(ask, head("PUT", "/namespaces/there", WRITE, b'{"labels": {"a": "b"}}'), "200")) == []


def test_a_write_that_is_repeated_under_its_key_leaves_no_cycle() -> None:
    request = head("POST", "/batch", WRITE, batch(created("once")), Idempotency_Key="k")
    assert garbage(functools.partial(ask, request, "200")) == []


def test_a_connection_that_is_reset_leaves_no_cycle() -> None:
    def reset(address: tuple[str, int]) -> None:
        with socket.create_connection(address) as connection:
            connection.sendall(head("GET", "/clusters"))
            assert connection.recv(1) == ANSWER[:1]
            # closing it with unread bytes resets it

    assert garbage(reset) == []


def test_pipelined_requests_whose_client_leaves_leave_no_cycle() -> None:
    def leave(address: tuple[str, int]) -> None:
        with socket.create_connection(address) as connection:
            connection.sendall(head("GET", "/clusters") * 4)

    assert garbage(leave) == []


def test_a_pipelined_request_that_was_cut_off_leaves_no_cycle() -> None:
    def leave(address: tuple[str, int]) -> None:
        with socket.create_connection(address) as connection:
            connection.sendall(head("GET", "/clusters") + head("POST", "/namespaces", WRITE, b'{"id": "new"}')[:-1])
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    assert garbage(leave) == []


@pytest.mark.parametrize("count", [2_000, 20_000], ids=["while its answer is sent", "while it runs"])
def test_a_dry_run_whose_client_leaves_leaves_no_cycle(count: int) -> None:
    body = batch(*(created(f"n{number}") for number in range(count)))

    def leave(address: tuple[str, int]) -> None:
        with socket.create_connection(address) as connection:
            connection.sendall(head("POST", "/batch?dry_run=true", WRITE, body))

    assert garbage(leave) == []


# Looking


def garbage(client: Client, is_broken: bool = False) -> list[str]:
    """Types of ours that only the collector could free, after a client has asked a server some times and left."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_garbage(client, is_broken))


async def _garbage(client: Client, is_broken: bool) -> list[str]:
    store = _Breakable()
    ledger = samples.ledger_of(kind_files.load(None), store)
    samples.write(ledger, lambda draft: draft.create(ledger.kinds.by_name["namespaces"], {"id": "there"}))
    samples.write(ledger, lambda draft: draft.create(ledger.kinds.clusters, samples.cluster()))
    samples.write(ledger, lambda draft: draft.merge(ledger.kinds.by_name["namespaces"], "there", {"labels": {"a": "b"}}))
    store.is_broken = is_broken
    async with _serving(ledger) as (server, address):
        await asyncio.to_thread(client, address)  # what is made at the first time and stays
        await _at_rest(server)
        gc.collect()
        for _ in range(TIMES):
            await asyncio.to_thread(client, address)
        await _at_rest(server)
        return _found()


def _found() -> list[str]:
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return sorted({type(each).__qualname__ for each in gc.garbage if type(each).__module__.startswith(OURS)})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


async def _at_rest(server: uvicorn.Server) -> None:
    """Until every connection is gone, and every task and thread that worked for one."""
    while server.server_state.connections or server.server_state.tasks or len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110  # no event
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def _serving(ledger: Ledger) -> Any:
    measures = metrics.Metrics(ledger.follower)
    known = tokens.Tokens([Token.of("reader", "read", READ), Token.of("writer", "write", WRITE)])
    table = app.routes(ledger.kinds, ledger, measures, _defective, writable=True)
    fast, slow = poll.Fast(ledger.follower, known, measures), unread.Unread()
    gate = app.Gate(table, known, measures, True, ledger.follower)
    config = uvicorn.Config(gate, http=ordinary.protocol_class(slow, fast), ws="none", lifespan="off", log_config=None)
    server = listening.Server(config, fast, slow)
    config.load()
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await server.startup(sockets=[listener])
        yield server, listener.getsockname()
        await server.shutdown([listener])


class _Breakable(MemoryStore):
    """A store that can be damaged under a running server."""

    is_broken = False

    def version(self) -> object:
        if self.is_broken:
            raise errors.Doubt("the store is damaged")
        return super().version()


def _defective() -> bytes:
    """An OpenAPI document that cannot be made."""
    raise ZeroDivisionError


def ask(request: bytes, status: str, address: tuple[str, int]) -> None:
    """On connections that are idle for a moment after their answers, as Flux leaves them."""
    with contextlib.ExitStack() as open_:
        for _ in range(3):
            connection = open_.enter_context(socket.create_connection(address))
            connection.sendall(request)
            answer = b""
            while b"\r\n\r\n" not in answer:
                more = connection.recv(65536)
                assert more, "the server closed the connection without an answer"
                answer += more
            assert answer.startswith(ANSWER + status.encode()), answer
