"""Commands whose answer is lost: what is safe to repeat is repeated and done once, and the rest is sent once."""

from __future__ import annotations

import select
import socket
import threading
from pathlib import Path

import httpx

import live
from cli.command import Cli


class Cutter:
    """A proxy that carries out the first request of a method and path, and cuts the connection before its answer."""

    def __init__(self, behind: tuple[str, int], request: bytes) -> None:
        self._behind = behind
        self._request = request
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        self._asked = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._carry(connection)

    def _carry(self, connection: socket.socket) -> None:
        with connection, socket.create_connection(self._behind) as server:
            while True:
                ready, _, _ = select.select([connection, server], [], [])
                for side in ready:
                    data = side.recv(1 << 20)
                    if not data or (side is server and self._asked and not self.cuts):
                        self.cuts += 1 if data else 0
                        return
                    self._asked = self._asked or data.startswith(self._request)
                    (server if side is connection else connection).sendall(data)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_a_command_whose_answer_was_lost_is_repeated_and_done_once(cli: Cli, server: live.Server, api: httpx.Client) -> None:
    cutter = Cutter(server.address, b"POST /batch ")
    try:
        done = cli.but(FLUX_API_URL=cutter.url).ok("namespace", "create", "lost-answer", "--cluster", "demo-cluster-01")
    finally:
        cutter.close()
    assert cutter.cuts == 1
    assert "1 created, 1 updated" in done.err  # the first answer, not one about something that exists already
    assert len(api.get("/changes?id=lost-answer").json()) == 1
    cli.ok("namespace", "unassign", "lost-answer", "--cluster", "demo-cluster-01")


def test_a_write_that_nothing_makes_safe_to_repeat_is_sent_once(
    cli: Cli, server: live.Server, api: httpx.Client, tmp_path: Path
) -> None:
    cli.ok("namespace", "create", "sent-once", "--label", "a=old")
    cutter = Cutter(server.address, b"PUT /namespaces/sent-once ")
    try:
        cut = cli.but(FLUX_API_URL=cutter.url, EDITOR="sed -i s/old/new/", TMPDIR=str(tmp_path))
        broken, kept = cut.refused(5, "namespace", "edit", "sent-once")
    finally:
        cutter.close()
    assert cutter.cuts == 1
    assert "may have happened" in broken
    assert str(next(tmp_path.glob("namespace-sent-once-*.yaml"))) in kept
    assert api.get("/namespaces/sent-once").json()["labels"] == {"a": "new"}
