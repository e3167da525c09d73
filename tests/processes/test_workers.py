"""Several workers behind one address: one that dies is replaced, all end together, and they are one server to everybody."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live

SEED = live.ROOT / "data" / "seed.json"
VIEW = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces"
ROUTE = "/api/v2/flux/clusters/{cluster_dns}/namespaces"
MANY = 24  # connections; the kernel shares them out by chance, and this many do not all come to the same worker


def lines(server: live.Server, message: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in found if line["message"] == message]


def pids(server: live.Server) -> dict[int, int]:
    """Of the workers, by their numbers."""
    return {line["worker"]: line["pid"] for line in lines(server, "worker started")}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_workers(server: live.Server, listening: int = 2) -> None:
    """Until so many have come up, since the server was started."""
    live.until(lambda: server.process.poll() is not None or len(lines(server, "listening")) >= listening)
    assert server.process.poll() is None, server.log.read_text()


@contextlib.contextmanager
def serving(directory: Path, **overrides: str) -> Iterator[live.Server]:
    with live.serving(directory, WORKERS="2", SEED_FILE=str(SEED), **overrides) as server:
        wait_for_workers(server)
        try:
            yield server
        finally:
            for pid in pids(server).values():  # one that a test has stopped
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def ended(directory: Path, **overrides: str) -> tuple[int, str]:
    """Exit code and last line of a server that does not start."""
    server = live.Server(directory, live.environment(directory, **{"WORKERS": "2", **overrides}))
    try:
        return server.process.wait(60), server.log.read_text().splitlines()[-1]
    finally:
        server.kill()


def poll(server: live.Server, times: int = MANY) -> None:
    with server.client(live.READ) as flux:
        assert [flux.get(VIEW).status_code for _ in range(times)] == [200] * times


def measured(server: live.Server) -> dict[str, float]:
    with server.client(live.READ) as prometheus:
        answer = prometheus.get("/metrics")
    assert answer.status_code == 200
    return {name: float(value) for name, value in re.findall(r"^([^#\s]\S*) (\S+)$", answer.text, re.MULTILINE)}


POLLS = f'flux_resourceset_requests_total{{method="GET",route="{ROUTE}",status="200"}}'
POLL_SECONDS = f'flux_resourceset_request_seconds_count{{route="{ROUTE}"}}'


def test_they_are_one_server_also_after_one_of_them_was_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        poll(server)
        before = measured(server)
        assert before[POLLS] == before[POLL_SECONDS] == MANY
        assert before["flux_resourceset_revision"] == 1
        assert before['flux_resourceset_documents{kind="clusters"}'] == 1
        os.kill(pids(server)[2], signal.SIGKILL)
        poll(server)  # whoever comes to the place of the dead one waits for the next
        wait_for_workers(server, 3)
        assert measured(server)[POLLS] == 2 * MANY
        assert [(line["worker"], line["exit_code"]) for line in lines(server, "worker died")] == [(2, -signal.SIGKILL)]
        assert {line["worker"] for line in lines(server, "listening")} == {1, 2}


@pytest.mark.long
@pytest.mark.sqlite
def test_a_write_through_any_of_them_is_seen_at_once_through_all(tmp_path: Path) -> None:
    with serving(tmp_path, LOG_LEVEL="debug") as server, server.client() as api:  # which says who answered
        for number in range(MANY):
            assert api.patch("/namespaces/cert-manager", json={"labels": {"n": str(number)}}).status_code == 200
            assert api.get(VIEW).json()["inputs"][0]["labels"]["n"] == str(number)
        answered = lines(server, "answered")
        assert {line["worker"] for line in answered if line["method"] == "PATCH"} == {1, 2}
        assert {line["worker"] for line in answered if line["route"] == ROUTE} == {1, 2}
        assert measured(server)["flux_resourceset_revision"] == MANY + 1


@pytest.mark.long
def test_one_that_is_asked_to_end_is_replaced_and_leaves_all_that_it_has_counted(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        poll(server)
        for number in (1, 2):
            os.kill(pids(server)[number], signal.SIGTERM)
        wait_for_workers(server, 4)
        assert measured(server)[POLLS] == MANY
        assert {line["exit_code"] for line in lines(server, "worker died")} == {0}


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2])
def test_one_that_is_killed_again_and_again_is_replaced_every_time(tmp_path: Path, number: int) -> None:
    with serving(tmp_path) as server:
        for times in range(1, 8):
            os.kill(pids(server)[number], signal.SIGKILL)
            wait_for_workers(server, 2 + times)
        poll(server)
        assert measured(server)[POLLS] == MANY


@pytest.mark.long
def test_one_that_does_not_answer_is_left_out_of_what_is_measured_but_for_what_it_has_counted(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        poll(server)
        assert measured(server)[POLLS] == MANY
        os.kill(pids(server)[1], signal.SIGSTOP)
        with live.client(server.url, live.READ) as prometheus:
            prometheus.timeout = httpx.Timeout(5)
            for _ in range(MANY):  # until one comes to the other worker
                with contextlib.suppress(httpx.ReadTimeout):
                    text = prometheus.get("/metrics").text
                    break
        assert f"{POLLS} {float(MANY)}" in text
        assert "flux_resourceset_revision 1.0" in text


@pytest.mark.long
def test_they_die_with_their_supervisor(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.kill()
        live.until(lambda: not any(map(is_running, pids(server).values())))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(server.address)
    with serving(tmp_path, LISTEN_ADDR=server.url.removeprefix("http://")) as successor:
        poll(successor)


# The start


@pytest.mark.long
def test_a_broken_configuration_ends_the_start_with_its_one_line(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "broken.yaml").write_text("kind: [")
    code, last = ended(tmp_path, RESOURCES_DIR=str(kinds))
    assert code == 2
    assert last.startswith("flux-resourceset: ")
    assert "broken.yaml" in last


def test_the_memory_store_is_refused(tmp_path: Path) -> None:
    code, last = ended(tmp_path, STORE_BACKEND="memory")
    assert (code, last.partition(",")[0]) == (2, "flux-resourceset: WORKERS is 2")


@pytest.mark.long
def test_a_configuration_that_breaks_later_does_not_restart_for_ever(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    with serving(tmp_path, RESOURCES_DIR=str(kinds)) as server:
        (kinds / "broken.yaml").write_text("kind: [")
        os.kill(pids(server)[2], signal.SIGKILL)
        assert server.process.wait(60) == 2
        told = [line for line in server.log.read_text().splitlines() if line.startswith("flux-resourceset: ")]
        assert all("broken.yaml" in line for line in told[:-1])
        assert len(lines(server, "worker started")) == 2 + 5
        assert told[-1] == "flux-resourceset: worker 2 did not start, after 5 tries; its exit code is 2"
        assert not any(map(is_running, pids(server).values()))


@pytest.mark.long
@pytest.mark.parametrize(("running", "started"), [("2", "2"), ("2", "1"), ("1", "2")])
def test_an_address_that_is_taken_is_refused(tmp_path: Path, running: str, started: str) -> None:
    with live.serving(tmp_path, WORKERS=running) as server:
        wait_for_workers(server, int(running))
        second = tmp_path / "second"
        second.mkdir()
        code, last = ended(second, WORKERS=started, LISTEN_ADDR=server.url.removeprefix("http://"))
        assert code == 2
        assert re.fullmatch(r"flux-resourceset: LISTEN_ADDR \S+ cannot be used: Address already in use.*", last)


@pytest.mark.long
def test_of_servers_that_start_together_on_one_address_one_has_it(tmp_path: Path) -> None:
    environment = live.environment(tmp_path, WORKERS="2", SEED_FILE=str(SEED))
    with contextlib.ExitStack() as stack:
        servers = [live.Server(tmp_path, environment) for _ in range(4)]  # which write to the same log
        for server in servers:
            stack.callback(server.end)
        live.until(lambda: sum(server.process.poll() is not None for server in servers) == 3)
        assert sorted(server.process.poll() or 0 for server in servers) == [0, 2, 2, 2]
        wait_for_workers(next(server for server in servers if server.process.poll() is None))
        poll(servers[0])


@pytest.mark.long
def test_a_port_that_the_system_chooses_is_the_same_for_all(tmp_path: Path) -> None:
    server = live.Server(tmp_path, live.environment(tmp_path, WORKERS="2", SEED_FILE=str(SEED), LISTEN_ADDR="127.0.0.1:0"))
    try:
        wait_for_workers(server)
        (address,) = {line["address"] for line in lines(server, "listening")}
        server.url = f"http://{address}"
        poll(server)
        assert measured(server)[POLLS] == MANY
    finally:
        server.end()


@pytest.mark.long
@pytest.mark.sqlite
def test_the_store_is_begun_anew_once(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)):
        pass
    for file in tmp_path.glob("fleet.db*"):
        if file.suffix != ".store":
            file.unlink()
    assert ended(tmp_path)[0] == 2
    words = ("--begin-anew",)
    server = live.Server(tmp_path, live.environment(tmp_path, WORKERS="2"), (*live.PROGRAM, *words))
    try:
        wait_for_workers(server)
        with server.client() as api:
            assert api.post("/namespaces", json={"id": "new"}).status_code == 201
            os.kill(pids(server)[1], signal.SIGKILL)
            wait_for_workers(server, 3)
            assert [api.get("/namespaces/new").status_code for _ in range(MANY)] == [200] * MANY
    finally:
        server.end()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_shows_a_token(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for pid in (server.process.pid, *pids(server).values()):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            assert words
            assert live.READ.encode() not in words
            assert live.WRITE.encode() not in words


# The end


class Slow:
    """A write of which half was sent."""

    def __init__(self, server: live.Server, number: int) -> None:
        self._body = json.dumps({"id": f"slow-{number}"}).encode()
        self._connection = socket.create_connection(server.address, timeout=60)
        head = f"POST /namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.WRITE}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(self._body)}\r\nExpect: 100-continue\r\n\r\n"
        self._connection.sendall(head.encode())
        assert self._connection.recv(1000).startswith(b"HTTP/1.1 100")  # it is being read
        self._connection.sendall(self._body[:5])

    def finish(self) -> bytes:
        self._connection.sendall(self._body[5:])
        return self._connection.recv(1 << 16).partition(b"\r\n")[0]

    def close(self) -> None:
        self._connection.close()


def is_refused(server: live.Server) -> bool:
    try:
        socket.create_connection(server.address).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        return False
    return False


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whole_group", [False, True], ids=["the supervisor", "every process"])
def test_a_signal_lets_each_finish_what_it_has_begun(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    with serving(tmp_path, LOG_LEVEL="debug") as server, contextlib.ExitStack() as stack:
        requests = [Slow(server, each) for each in range(MANY)]
        for request in requests:
            stack.callback(request.close)
        for pid in pids(server).values() if whole_group else ():  # as a terminal does, or systemd
            os.kill(pid, number)
        server.process.send_signal(number)
        live.until(lambda: is_refused(server))
        assert {request.finish() for request in requests} == {b"HTTP/1.1 201 Created"}
        assert server.process.wait(60) == 0
        assert {line["worker"] for line in lines(server, "answered") if line["method"] == "POST"} == {1, 2}
        assert [line.get("worker") for line in lines(server, "stopped")][-1] is None  # the supervisor is the last
        assert not any(map(is_running, pids(server).values()))


@pytest.mark.long
def test_a_second_signal_is_in_earnest(tmp_path: Path) -> None:
    with serving(tmp_path) as server, contextlib.ExitStack() as stack:
        for each in range(MANY):
            stack.callback(Slow(server, each).close)
        server.process.send_signal(signal.SIGTERM)
        live.until(lambda: is_refused(server))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert not lines(server, "stopped; what was still running was cut off")  # as it would be when time is over
        assert not any(map(is_running, pids(server).values()))
