"""Work off the event loop: whoever may only read does not hold up those who write."""

from __future__ import annotations

import asyncio
import threading

import pytest
from starlette.requests import Request

from flux_resourceset import threads
from flux_resourceset.http import bodies
from flux_resourceset.tokens import Role, Token, Tokens


def request_of(role: Role) -> Request:
    request = Request({"type": "http", "state": {}})
    request.state.principal = Tokens([Token.of("someone", role, "a secret of its own")]).find(b"a secret of its own")
    return request


@pytest.mark.parametrize("waiting", [threads.COUNT, 50])
def test_a_writer_does_not_wait_for_what_readers_asked_for(waiting: int) -> None:
    free = threading.Event()

    async def ask() -> str:
        long = [asyncio.ensure_future(bodies._run(request_of("read"), free.wait)) for _ in range(waiting)]
        done = await asyncio.wait_for(bodies._run(request_of("write"), lambda: "done"), 30)
        assert not any(each.done() for each in long)
        free.set()
        await asyncio.gather(*long)
        return done

    assert asyncio.run(ask()) == "done"
