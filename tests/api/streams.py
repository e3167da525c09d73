"""Streams of the change log as tests read them: over a plain connection, event by event."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any, NamedTuple, Self

import live

MEDIA_TYPE = "text/event-stream"


class Event(NamedTuple):
    id: str
    name: str
    data: Any

    @property
    def revision(self) -> int:
        return int(self.id.rpartition("-")[2])


class Followed:
    """A stream that is open. Read by a machine: what is not understood is a failure."""

    def __init__(self, server: live.Server, query: str = "", last: str = "", token: str = live.READ, buffer: int = 0) -> None:
        self._connection = http.client.HTTPConnection(*server.address, timeout=60)
        if buffer:
            self._connection.sock = socket.socket()
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            self._connection.sock.settimeout(60)
            self._connection.sock.connect(server.address)
        headers = {"Authorization": f"Bearer {token}", "Accept": MEDIA_TYPE} | ({"Last-Event-ID": last} if last else {})
        self._connection.request("GET", f"/changes{query}", headers=headers)
        self.response = self._connection.getresponse()
        self.status = self.response.status
        self.place = last  # id of the last event, as a browser would send it when it comes back
        self.comments = 0

    def problem(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.response.read())
        return found

    def block(self) -> list[str] | None:
        """The lines up to the next empty one; None at the end, which is no event whatever came before it."""
        lines = []
        try:
            while (line := self.response.readline()) not in (b"\n", b""):
                lines.append(line.decode().removesuffix("\n"))
        except (http.client.IncompleteRead, ConnectionError):  # cut off
            return None
        return lines if line else None

    def event(self) -> Event | None:
        """The next one, or None at the end of the stream; comments and places are passed over."""
        while (lines := self.block()) is not None:
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            self.comments += any(line.startswith(":") for line in lines)
            self.place = fields.get("id", self.place)
            if "data" in fields:
                return Event(fields["id"], fields["event"], json.loads(fields["data"]))
        return None

    def events(self, count: int) -> list[Event]:
        found = [event for event in (self.event() for _ in range(count)) if event is not None]
        assert len(found) == count, found
        return found

    def opened(self) -> Self:
        """Once it is known where it begins."""
        assert self.status == 200, self.problem()
        assert self.block()
        return self

    def close(self) -> None:
        self.response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
