"""Several server processes on one file: nobody loses a write, and everybody sees it at the next request."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import live
from processes.asking import Asking, once

pytestmark = pytest.mark.long

WRITERS = 20
CLUSTER = {"id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "dev"}
PATH = "/api/v2/flux/clusters/demo-cluster-01.k8s.example.com/namespaces"
SEED = live.ROOT / "data" / "seed.json"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[live.Server, live.Server]]:
    """Two writers on one file, with a cluster and twenty definitions of each sort."""
    directory = tmp_path_factory.mktemp("pair")
    with live.serving(directory) as first, live.serving(directory) as second:
        with Asking(first) as ask:
            assert ask("POST", "/clusters", CLUSTER)[0] == 201
            for number in range(WRITERS):
                ask("POST", "/namespaces", {"id": f"n{number}"})
                component = {"id": f"c{number}", "component_path": "x", "oci_url": "https://example.com", "oci_tag": "1"}
                ask("POST", "/platform_components", component)
        yield first, second


def at_once(servers: tuple[live.Server, ...], act: Callable[[Asking, int], int]) -> list[int]:
    """What twenty clients get who act at the same time, spread over the servers."""

    def one(number: int) -> int:
        with Asking(servers[number % len(servers)]) as ask:
            return act(ask, number)

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(one, range(WRITERS)))


def cluster_of(server: live.Server) -> Any:
    """As it is at the end of the log, however late a process hears of that."""
    with Asking(server) as ask:
        return ask("GET", "/clusters/one", **{"X-Min-Revision": str(logged(server)[-1])})[1]


def logged(server: live.Server) -> list[int]:
    """The revisions of the whole log, read forwards, page by page."""
    revisions: list[int] = []
    while page := once(server, "GET", f"/changes?limit=1000&after={revisions[-1] if revisions else 0}")[1]:
        revisions += [entry["revision"] for entry in page]
    return revisions


def assert_log_without_gaps(*servers: live.Server) -> None:
    for server in servers:
        revisions = logged(server)
        assert revisions == list(range(1, len(revisions) + 1))


@pytest.mark.parametrize("processes", [1, 2])
def test_twenty_parallel_writers_on_one_cluster_lose_nothing(pair: tuple[live.Server, live.Server], processes: int) -> None:
    servers = pair[:processes]

    def assign(ask: Asking, number: int) -> int:
        first, _ = ask("PUT", f"/clusters/one/namespaces/n{number}", {})
        second, _ = ask("PUT", f"/clusters/one/platform_components/c{number}", {"oci_tag": str(number)})
        third, _ = ask("PATCH", f"/clusters/one/patches/c{number}", {"replicas": number})
        return max(first, second, third)

    def unassign(ask: Asking, number: int) -> int:
        ask("DELETE", f"/clusters/one/namespaces/n{number}")
        return ask("DELETE", f"/clusters/one/platform_components/c{number}")[0]

    assert at_once(servers, assign) == [200] * WRITERS
    for server in pair:
        found = cluster_of(server)
        assert sorted(ref["id"] for ref in found["namespaces"]) == sorted(f"n{n}" for n in range(WRITERS))
        assert {ref["id"]: ref["oci_tag"] for ref in found["platform_components"]} == {f"c{n}": str(n) for n in range(WRITERS)}
        assert found["patches"] == {f"c{n}": {"replicas": n} for n in range(WRITERS)}
    assert at_once(servers, unassign) == [200] * WRITERS
    assert all(cluster_of(server)["namespaces"] == cluster_of(server)["platform_components"] == [] for server in pair)
    assert_log_without_gaps(*pair)


def test_of_twenty_writers_with_the_same_tag_exactly_one_wins(pair: tuple[live.Server, live.Server]) -> None:
    tag = f'"{once(pair[0], "GET", "/changes?kind=clusters&limit=1")[1][0]["revision"]}"'

    def rename(ask: Asking, number: int) -> int:
        return ask("PATCH", "/clusters/one", {"cluster_name": f"name-{number}"}, **{"If-Match": tag})[0]

    assert sorted(at_once(pair, rename)) == [200] + [412] * (WRITERS - 1)
    assert_log_without_gaps(*pair)


def test_of_twenty_writers_who_create_the_same_exactly_one_wins(pair: tuple[live.Server, live.Server]) -> None:
    statuses = at_once(pair, lambda ask, number: ask("POST", "/namespaces", {"id": "same", "labels": {"by": str(number)}})[0])
    assert sorted(statuses) == [201] + [409] * (WRITERS - 1)
    same_dns = at_once(pair, lambda ask, n: ask("POST", "/clusters", {**CLUSTER, "id": f"x{n}", "cluster_dns": "x.example"})[0])
    assert sorted(same_dns) == [201] + [409] * (WRITERS - 1)
    assert_log_without_gaps(*pair)


@pytest.mark.sqlite  # PostgreSQL tells a little later
@pytest.mark.parametrize("writes", [100, pytest.param(1000, marks=pytest.mark.thorough)])
def test_a_reader_process_sees_each_write_at_its_next_request(tmp_path: Path, writes: int) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as writer, live.serving(tmp_path, API_MODE="read-only") as reader:
        with Asking(writer) as write, Asking(reader, live.READ) as poll, Asking(reader, live.READ) as ordinary:
            for number in range(writes):
                status, _ = write("PATCH", "/namespaces/cert-manager", {"labels": {"n": str(number)}})
                assert status == 200
                # the fast path and the ordinary route in turn
                _, seen = ordinary("GET", PATH, Connection=live.ORDINARY) if number % 2 else poll("GET", PATH)
                assert seen["inputs"][0]["labels"]["n"] == str(number)
        assert logged(writer) == list(range(1, writes + 2))


def test_processes_that_start_together_on_nothing_make_one_file_and_seed_it_once(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        servers = [live.Server(tmp_path, live.environment(tmp_path, SEED_FILE=str(SEED))) for _ in range(3)]
        for server in servers:
            stack.callback(server.stop)
        for server in servers:
            server.wait("/ready")
        answers = [once(server, "GET", "/changes") for server in servers]
        assert answers[0] == answers[1] == answers[2]
        assert [entry["actor"] for entry in answers[0][1]] == ["seed"]


@pytest.mark.sqlite
def test_the_end_of_one_process_leaves_the_others_alone(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as survivor, live.serving(tmp_path, API_MODE="read-only") as reader:
        with live.serving(tmp_path) as victim:
            assert once(victim, "POST", "/namespaces", {"id": "before"})[0] == 201
            victim.kill()
        assert once(survivor, "PUT", "/clusters/demo-cluster-01/namespaces/before", {})[0] == 200
        with Asking(reader, live.READ) as poll:
            assert poll("GET", PATH)[1]["inputs"][-1]["id"] == "before"
