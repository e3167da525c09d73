"""A thin client for tests that ask thousands of times: one connection, no frills."""

from __future__ import annotations

import http.client
import json
from typing import Any, Self

import live


class Asking:
    def __init__(self, server: live.Server, token: str = live.WRITE) -> None:
        self._connection = http.client.HTTPConnection(*server.address, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}"}

    @classmethod
    def as_soon_as_possible(cls, server: live.Server) -> Self:
        """Connected as soon as the server listens; it answers when it has loaded its store."""
        ask = cls(server)

        def is_connected() -> bool:
            try:
                ask._connection.connect()
            except ConnectionRefusedError:
                assert server.process.poll() is None, server.log.read_text()
                return False
            return True

        live.until(is_connected)
        return ask

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        sent = {**self._headers, **headers}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        self._connection.request(method, path, content, sent)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and decoded body."""
        self.send(method, path, body, **headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._connection.close()


def once(server: live.Server, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    with Asking(server) as ask:
        return ask(method, path, body)
