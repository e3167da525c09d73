"""Clients that poll and write without end while things break, and keep all that they were told for the checker."""

from __future__ import annotations

import contextlib
import functools
import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import live
from faults import checker
from faults.checker import FLEET_LIST, History, Poll, Write
from flux_resourceset.changes import Entry

CLUSTERS = ("one", "two", "three")  # that are never taken away, so that no list of theirs is ever empty
VISITOR = "visitor"  # is decommissioned and comes back
SHARED = "shared"  # a definition that all of them refer to
ENDPOINT = "platform-components"
KEYS = (*(f"{id}.example.com/{ENDPOINT}" for id in (*CLUSTERS, VISITOR)), FLEET_LIST)
PAUSE = 0.002  # between two questions of a client, so that two cores are enough for all
PATIENCE = 20.0  # of a client, in seconds: a server knows after 10 that its database hangs

Document = dict[str, Any]


def cluster(id: str, number: str) -> Document:
    return {
        "id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "dev",
        "platform_components": [{"id": SHARED}], "patches": {SHARED: {"n": number}},
    }  # fmt: skip


def seed(directory: Path) -> Path:
    component = {"id": SHARED, "component_path": "x", "oci_url": "oci://a.example.com/x", "oci_tag": "1.0.0"}
    clusters = [cluster(id, "0") for id in (*CLUSTERS, VISITOR)]
    path = directory / "seed.json"
    path.write_text(json.dumps({"platform_components": [component], "clusters": clusters}))
    return path


class Target:
    """An address, and the process that answers there now: a restart makes another one of it."""

    def __init__(self, name: str, address: tuple[str, int]) -> None:
        self.name = name
        self.address = address
        self.generation = 0

    @property
    def process(self) -> str:
        return f"{self.name}#{self.generation}"


class Client:
    """Asks one target on one connection, and on a new one when that broke."""

    def __init__(self, target: Target, token: str) -> None:
        self.target = target
        self._headers = {"Authorization": f"Bearer {token}"}
        self._connection = http.client.HTTPConnection(*target.address, timeout=PATIENCE)
        self.hung = 0  # questions that were not answered in all that time

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int | None, bytes]:
        """Status and body; without a status there was no answer."""
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            self._connection.request(method, path, content, {**self._headers, **headers})
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as exc:
            self.hung += isinstance(exc, TimeoutError)
            self._connection.close()
            return None, b""

    def close(self) -> None:
        self._connection.close()


class Load:
    """Starts with the block, ends with it; `history` is what was recorded."""

    def __init__(self, pollers: Sequence[Target], writers: Sequence[Target], *, clients: int = 2, pause: float = PAUSE) -> None:
        self._over = threading.Event()
        self._may_write = threading.Event()
        self._may_write.set()
        self._busy = threading.Semaphore(clients)
        self._clients = clients
        self._pause = pause
        self._numbers = itertools.count(1)
        self._writers = writers
        self.polls: list[Poll] = []
        self.writes: list[Write] = []
        self.hung = 0  # writes that a server left without an answer
        self.failures: list[BaseException] = []
        acts = [functools.partial(self._poll, target, number) for target in pollers for number in range(2)]
        acts += [functools.partial(self._write, number) for number in range(clients)]
        self._threads = [threading.Thread(target=self._run, args=(act,)) for act in acts]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._may_write.set()
        for thread in self._threads:
            thread.join(60)
        if failure[0] is None:
            assert not any(thread.is_alive() for thread in self._threads)
            if self.failures:
                raise self.failures[0]

    def _run(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as exc:
            self.failures.append(exc)

    # What clients do

    def _poll(self, target: Target, number: int) -> None:
        with contextlib.closing(Client(target, live.READ)) as client:
            for key in itertools.cycle(KEYS[number:] + KEYS[:number]):
                if self._over.is_set():
                    return
                before, asked = target.process, time.monotonic()
                status, body = client.ask("GET", path_of(key))
                ended = time.monotonic()
                if target.process == before:  # else nobody knows which of them it was
                    self.polls.append(Poll(before, asked, ended, key, status, body))
                self._rest(status)

    def _write(self, number: int) -> None:
        chance = random.Random(number)
        visits = number == 0  # one client alone lets the visitor come and go
        clients = [Client(target, live.WRITE) for target in self._writers]
        with contextlib.ExitStack() as held:
            for client in clients:
                held.callback(client.close)
            while self._may_write.wait() and not self._over.is_set():
                with self._busy:
                    count = next(self._numbers)
                    write = self._attempts(chance, clients, f"w{count}", operation(chance, count, visits))
                    self.writes.append(write)
                self._rest(write.statuses[-1])
            self.hung += sum(client.hung for client in clients)

    def _attempts(self, chance: random.Random, clients: Sequence[Client], id: str, body: Document) -> Write:
        """Half of those who get no clear answer give up, the others ask again under the same key, whomever."""
        statuses: list[int | None] = []
        sent, process = time.monotonic(), ""
        while True:
            client = chance.choice(clients)
            before = client.target.process
            status, _ = client.ask("POST", "/batch", body, **{"X-Reason": id, "Idempotency-Key": id})
            statuses.append(status)
            if status is not None and status < 300:
                process = before if client.target.process == before else ""
            if (status is not None and status < 500) or self._over.is_set() or chance.random() < 0.5:
                return Write(id, process, sent, time.monotonic(), tuple(statuses))
            self._rest(status)

    def _rest(self, status: int | None) -> None:
        time.sleep(self._pause if status is not None and status < 500 else 5 * self._pause)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody writes within the block; polls go on."""
        self._may_write.clear()
        for _ in range(self._clients):
            self._busy.acquire()
        try:
            yield
        finally:
            self._busy.release(self._clients)
            self._may_write.set()

    # What came of it

    @property
    def acknowledged(self) -> int:
        return sum(write.acknowledged for write in self.writes)

    def go_on(self, count: int = 5, seconds: float = 60.0) -> None:
        """Until so many more polls of every target, and so many more writes, were good."""
        since = time.monotonic()
        live.until(lambda: self.failures or self._were_good(since, count), seconds)

    def until_polled(self, wanted: Callable[[Poll], bool], count: int = 1, seconds: float = 60.0) -> None:
        """Until so many polls that are sent from now on are like that."""
        since = time.monotonic()
        live.until(
            lambda: self.failures or sum(poll.asked > since and wanted(poll) for poll in self.polls[-500:]) >= count, seconds
        )

    def until_writes_fail(self, count: int = 3) -> None:
        """Until so many that are sent from now on were told that the store is away."""
        since = time.monotonic()
        live.until(
            lambda: self.failures or sum(write.sent > since and 503 in write.statuses for write in self.writes[-100:]) >= count
        )

    def _were_good(self, since: float, count: int) -> bool:
        wrote = sum(write.acknowledged and write.sent >= since for write in self.writes[-200:])
        polled = sum(poll.status == 200 and poll.asked >= since for poll in self.polls[-500:])
        return wrote >= count and polled >= count

    def history(self, entries: Sequence[Entry], began: int = 1, **more: Any) -> History:
        return History(entries, tuple(self.polls), tuple(self.writes), began, **more)

    def recovered(self, since: float) -> float:
        return checker.recovered(self.history(()), since)


def operation(chance: random.Random, count: int, visits: bool) -> Document:
    """A batch of one: mostly something of one cluster, at times of all, and the visitor comes and goes."""
    number = str(count)
    if visits and chance.random() < 0.2:
        if chance.random() < 0.5:
            made: Document = {"op": "delete", "kind": "clusters", "id": VISITOR}
        else:
            made = {"op": "create", "kind": "clusters", "id": VISITOR, "document": cluster(VISITOR, number)}
    elif chance.random() < 0.1:
        made = {"op": "patch", "kind": "platform_components", "id": SHARED, "document": {"oci_tag": f"1.0.{number}"}}
    else:
        id = chance.choice(CLUSTERS)
        made = {"op": "patch-values", "kind": "platform_components", "id": SHARED, "clusters": [id], "values": {"n": number}}
    return {"operations": [made]}


def path_of(key: str) -> str:
    return "/api/v2/flux/clusters" + ("" if key == FLEET_LIST else f"/{key}")


def log_of(server: live.Server) -> list[Entry]:
    """The whole log, oldest first."""
    found: list[Entry] = []
    with contextlib.closing(Client(Target("log", server.address), live.READ)) as client:
        while True:
            after = found[-1].revision if found else 0
            status, body = client.ask("GET", f"/changes?limit=1000&after={after}")
            assert status == 200, body
            page = msgspec.json.decode(body, type=list[Entry])
            if not page:
                return found
            found += page
