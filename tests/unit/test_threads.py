"""Work off the event loop: those who read hold up neither those who write nor those who poll."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import Request

from flux_resourceset import errors, threads
from flux_resourceset.http import bodies, long_answers, request_threads
from flux_resourceset.kinds import kind_files
from flux_resourceset.readings import Readings
from flux_resourceset.tokens import Role, Token, Tokens
from unit import samples


def request_of(role: Role, method: str = "POST", body: bytes = b"") -> Request:
    headers = [(b"content-type", b"application/json")]

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body}

    request = Request({"type": "http", "method": method, "http_version": "1.1", "headers": headers, "state": {}}, receive)
    request.state.principal = Tokens([Token.of("someone", role, "a secret of its own")]).find(b"a secret of its own")
    return request


@contextlib.asynccontextmanager
async def held(pool: ThreadPoolExecutor, waiting: int = 50) -> AsyncIterator[None]:
    """A pool whose threads are busy and that others wait for, until the end."""
    free = threading.Event()
    long = [asyncio.ensure_future(threads.run(pool, free.wait)) for _ in range(waiting)]
    try:
        yield
        assert not any(each.done() for each in long)
    finally:
        free.set()
        await asyncio.gather(*long)


@pytest.mark.parametrize("waiting", [threads.COUNT, 50])
def test_a_writer_does_not_wait_for_what_readers_asked_for(waiting: int) -> None:
    async def ask() -> str:
        async with held(threads.FOR_READS, waiting):
            return await asyncio.wait_for(request_threads.run(request_of("write"), lambda: "done"), 30)

    assert asyncio.run(ask()) == "done"


@pytest.mark.parametrize(("role", "method"), [("read", "POST"), ("read", "GET"), ("write", "GET"), ("write", "HEAD")])
def test_what_only_reads_waits_for_what_reads_and_not_for_writes(role: Role, method: str) -> None:
    """Also when a writer asks: an export takes seconds, and a write must not wait for them."""

    async def ask() -> str:
        async with held(threads.FOR_WRITES):
            return await asyncio.wait_for(request_threads.run(request_of(role, method), lambda: "done"), 30)

    assert asyncio.run(ask()) == "done"


def long_pieces() -> Iterator[bytes]:
    for _ in range(5):
        yield b"x" * 200_000


def test_body_and_answer_of_a_write_do_not_wait_for_readers() -> None:
    async def ask() -> tuple[object, bytes]:
        async with held(threads.FOR_READS):
            request = request_of("write", body=b'{"a": 1}')
            body = await asyncio.wait_for(bodies.read_bulk(request, dict), 30)
            answer = await asyncio.wait_for(long_answers.json_answer(request, long_pieces()), 30)
            read = b"".join([chunk async for chunk in answer.body_iterator])  # type: ignore[attr-defined]
            await asyncio.wait_for(bodies.let_go(request, [], 1), 30)
            return body, read

    body, read = asyncio.run(ask())
    assert (body, len(read)) == ({"a": 1}, 1_000_000)


def test_the_fleet_list_waits_neither_for_readers_nor_for_writers() -> None:
    reader = Readings(samples.ledger_of(kind_files.load()).follower)

    async def ask() -> bytes:
        async with held(threads.FOR_READS), held(threads.FOR_WRITES):
            return await asyncio.wait_for(reader.fleet_list(lambda cluster: True, (), packed=False), 30)

    assert asyncio.run(ask()) == b'{"inputs":[]}'


def test_a_body_that_was_received_is_not_decoded_before_it_is_read() -> None:
    unread = asyncio.run(bodies.receive_bulk(request_of("read", body=b"no JSON")))
    with pytest.raises(errors.MalformedBody):
        unread.read(lambda body: body)
