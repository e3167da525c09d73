"""Clients by the thousand that say nothing, or half of something, and never go: the others are served as if alone."""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from faults import crowds, load
from faults.checker import assert_right
from faults.instances import Instance, Recovery, agree, loaded, running
from faults.load import log_of

POLL = f"GET {load.path_of(load.KEYS[0])} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.READ}\r\n"
WRITE = f"POST /batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.WRITE}\r\nContent-Type: application/json\r\n"
IDLE = 5000
SAID = {  # and then nothing more
    "nothing": b"",
    "half a head": POLL.encode()[:40],
    "a poll that ends nowhere": POLL.encode(),
    "half a body": WRITE.encode() + b"Content-Length: 1000\r\n\r\n{",
    "a whole poll": POLL.encode() + b"\r\n",
}


@pytest.fixture
def room() -> Iterator[None]:
    """For so many descriptors in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def make_room(instance: Instance) -> None:
    """As a unit file or a container does for a server of many clients."""
    _, hard = resource.prlimit(instance.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(instance.pid, resource.RLIMIT_NOFILE, (hard, hard))


def connect(instance: Instance, count: int, held: contextlib.ExitStack, said: bytes) -> list[socket.socket]:
    found = []
    for _ in range(count):
        connection = held.enter_context(socket.create_connection(instance.server.address, timeout=30))
        connection.sendall(said)
        found.append(connection)
    return found


def open_still(connections: list[socket.socket]) -> int:
    """How many the server has not ended; what it says is read."""
    count = 0
    with selectors.DefaultSelector() as readable:
        for connection in connections:
            connection.setblocking(False)
            readable.register(connection, selectors.EVENT_READ)
            try:
                while connection.recv(65536):
                    pass
            except BlockingIOError:
                count += 1
            except ConnectionError:
                pass
    return count


@pytest.mark.usefixtures("room")
def test_five_thousand_idle_connections_hold_up_nobody(tmp_path: Path, recovery: Recovery) -> None:
    with running(tmp_path, "writer reader", SEED_FILE=str(load.seed(tmp_path))) as instances:
        for instance in instances:
            make_room(instance)
        before = [crowds.descriptors(instance.server) for instance in instances]
        with loaded(instances) as made:
            with contextlib.ExitStack() as held:
                for instance in instances:
                    connect(instance, IDLE // 2, held, b"")
                made.go_on(50)
                assert_served(made)
            recovery.until_well(made, f"{IDLE:,} idle connections, and their end")
        agree(instances)
        live.until(
            lambda: all(crowds.descriptors(each.server) <= most + 10 for each, most in zip(instances, before, strict=True))
        )
        assert_right(made.history(log_of(instances[0].server)), writes=50)


def assert_served(made: load.Load) -> None:
    """Nobody was refused, or cut off."""
    assert {poll.status for poll in made.polls} == {200}
    assert all(write.acknowledged or write.was_refused for write in made.writes)


@pytest.mark.usefixtures("room")
def test_slow_and_half_open_clients_hold_up_nobody_and_are_let_go(tmp_path: Path, recovery: Recovery) -> None:
    with running(tmp_path, "writer reader", SEED_FILE=str(load.seed(tmp_path))) as instances:
        for instance in instances:
            make_room(instance)
        with loaded(instances) as made, contextlib.ExitStack() as held:
            slow = {name: connect(instances[0], 100, held, said) for name, said in SAID.items()}
            for connections in slow.values():
                for connection in connections[::2]:
                    connection.shutdown(socket.SHUT_WR)  # half open
            made.go_on(50)
            assert_served(made)
            live.until(lambda: not any(map(open_still, slow.values())), 90)
            recovery.until_well(made, "slow and half-open clients, until they are let go")
        agree(instances)
        assert_right(made.history(log_of(instances[0].server)), writes=50)
