"""Events as the command line reads them: cut anywhere, and over connections that end."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator

import pytest

from client import servers
from flux_resourceset import client
from flux_resourceset.client import events
from flux_resourceset.client.events import Event

TEXT = (
    b':\nid: e-1\n\nid: e-2\nevent: change\ndata: {"a": 1}\n\n: hello\n\r\n'
    b"id: e-3\r\nevent: change\r\ndata:x\r\ndata: y\r\n\r\nevent: reset\ndata: z\n\nid: e-4\nevent: change\ndata: cut"
)
FOUND = [
    Event("e-1", "", ""),
    Event("e-2", "change", '{"a": 1}'),
    Event("e-2", "", ""),
    Event("e-3", "change", "x\ny"),
    Event("e-3", "reset", "z"),
]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_however_they_are_cut_and_one_without_its_end_is_none(size: int) -> None:
    pieces = (TEXT[start : start + size] for start in range(0, len(TEXT), size))
    assert list(events.parsed(pieces)) == FOUND


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_MAX_EVENT", 1000)
    with pytest.raises(client.Unreachable, match="no end"):
        list(events.parsed(itertools.repeat(b"x" * 100)))


class Scripted:
    """A server that answers each connection with the next of these bytes, and ends it."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.asked: list[list[str]] = []

    def __call__(self, connection: socket.socket) -> None:
        lines = servers.head(connection)
        with self._lock:
            self.asked.append(lines)
            answer = self._answers.pop(0) if self._answers else servers.answer({"detail": "it is over"}, "401 Unauthorized")
        connection.sendall(answer)

    @property
    def places(self) -> list[str]:
        names = "Last-Event-ID: "
        return ["".join(line.removeprefix(names) for line in lines if line.startswith(names)) for lines in self.asked]


def chunked(*pieces: bytes, ends: bool = True) -> bytes:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + (b"0\r\n\r\n" if ends else b"")


def followed(server: Scripted, pauses: list[float], troubles: list[Exception]) -> Iterator[Event]:
    with servers.listening(server) as port:
        asking = client.Client(f"http://127.0.0.1:{port}", {"read": "token"}, timeout=10)
        yield from events.following(asking, "/changes", {"kind": "clusters"}, troubles.append, pauses.append)


def test_what_a_connection_loses_the_next_one_is_asked_for() -> None:
    busy = servers.answer({"detail": "not now"}, "503 Service Unavailable")
    server = Scripted(
        chunked(b":\nid: e-1\n\nid: e-2\nevent: ch", b"ange\ndata: 2\n\nid: e-3\nevent: change\ndata: 3", ends=False),
        busy,
        b"",
        busy,
        HEAD + b"\r\nid: e-3\nevent: change\ndata: 3\n\n",
        chunked(b"id: e-4\nevent: change\ndata: 4\n\n"),
    )
    pauses: list[float] = []
    troubles: list[Exception] = []
    found = followed(server, pauses, troubles)
    assert [next(found).id for _ in range(4)] == ["e-1", "e-2", "e-3", "e-4"]
    with pytest.raises(client.Problem) as refused:
        next(found)
    assert refused.value.status == 401
    assert server.places == ["", "e-2", "e-2", "e-2", "e-2", "e-3", "e-4"]
    assert all("Accept: text/event-stream" in lines for lines in server.asked)
    assert server.asked[0][0] == "GET /changes?kind=clusters HTTP/1.1"
    assert pauses == [0.2, 0.4, 0.8, 1.6, 0.2, 0.2]  # longer while nothing comes
    assert len(troubles) == 1


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (servers.answer([]), events.NoStream),
        (servers.answer({"detail": "x"}, "503 Service Unavailable"), client.Problem),
        (servers.answer({"detail": "x"}, "404 Not Found"), client.Problem),
        (b"", client.Unreachable),
        (b"nonsense\r\n\r\n", client.Unreachable),
        (chunked(b"id: e-1\n\n")[:-9] + b"zz\r\n", client.Unreachable),
    ],
)
def test_what_goes_wrong_at_first_is_told_at_once(answer: bytes, failure: type[Exception]) -> None:
    pauses: list[float] = []
    with pytest.raises(failure):
        list(followed(Scripted(answer), pauses, []))
    assert pauses == []


@pytest.mark.parametrize(("id", "revision"), [("e-7", 7), ("e-f-12", 12)])
def test_an_id_ends_with_the_revision(id: str, revision: int) -> None:
    assert events.revision(Event(id, "change", "")) == revision


@pytest.mark.parametrize("id", ["", "e", "e-", "e-x", "e-²"])
def test_what_is_no_id_is_not_taken_for_one(id: str) -> None:
    with pytest.raises(client.Unreachable):
        events.revision(Event(id, "change", ""))
