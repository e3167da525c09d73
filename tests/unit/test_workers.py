"""What workers tell each other, what becomes of it when one dies, and what several of them are to Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest
import uvicorn
import uvloop
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from flux_resourceset import serving, tokens
from flux_resourceset.http import feed, metrics, ordinary, poll, unread, workers
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit.connections import at_once
from unit.samples import ledger_of

NAME = "flux_resourceset_"


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return ledger_of(kind_files.load())


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def counted(*numbers: float) -> metrics.Families:
    family = CounterMetricFamily(NAME + "requests", "Requests.", labels=("route",))
    for number, value in enumerate(numbers):
        family.add_metric((f"/{number}",), value)
    return [family]


def values(families: metrics.Families) -> dict[str, float]:
    return {"".join((sample.name, *sample.labels.values())): sample.value for family in families for sample in family.samples}


# As one


@pytest.mark.parametrize(
    ("name", "told", "whole"),
    [
        ("revision", (7, 5, 6), 5),
        ("store_up", (1, 0, 1), 0),
        ("store_seen_seconds", (0.1, 9, 3), 9),
        ("store_age_seconds", (0.1, 9, 3), 9),
        ("follow_lag_seconds", (0.1, 9, 3), 9),
        ("documents", (3, 4, 5), 3),
        ("tombstones", (3, 4, 5), 3),
        ("skipped_references", (0, 2, 1), 2),
        ("streams", (3, 4, 5), 12),
        ("prepared_answers", (3, 4, 5), 12),
    ],
)
def test_gauges_of_several_workers(name: str, told: tuple[float, ...], whole: float) -> None:
    families = metrics.together([GaugeMetricFamily(NAME + name, "It.", value=value)] for value in told)
    assert values(families) == {NAME + name: whole}


def test_every_gauge_has_a_rule(ledger: Ledger) -> None:
    gauges = [family.name for family in metrics.Metrics(ledger.follower).collect() if family.type == "gauge"]
    assert gauges
    assert all(name in metrics.GAUGES or name.endswith("_seconds") for name in gauges)


def test_counters_and_histograms_are_added_up_whichever_worker_knows_them(ledger: Ledger) -> None:
    one, other = metrics.Metrics(ledger.follower), metrics.Metrics(ledger.follower)
    one.count("/a", "GET", 200, 0.3)
    other.count("/a", "GET", 200, 0.7)
    other.count("/b", "GET", 404, 0.002)
    both = metrics.together([one.counted(), other.counted()])
    together = metrics.Metrics(ledger.follower)
    for route, status, seconds in (("/a", 200, 0.3), ("/a", 200, 0.7), ("/b", 404, 0.002)):
        together.count(route, "GET", status, seconds)
    assert values(both) == values(together.counted())


# On the board


def test_what_was_written_last_is_read() -> None:
    board = workers.Board(2)
    assert board.read(1) == []
    for number in range(5):
        board.write(1, counted(number), is_everything=True)
        assert values(board.read(1)) == {NAME + "requests_total/0": number}
    assert (board.told(1), board.told(2)) == (5, 0)
    assert board.read(2) == []


def test_what_is_half_written_is_not_there() -> None:
    board = workers.Board(1)
    for number in (1, 2):
        board.write(1, counted(number), is_everything=True)
    place = board._places[0]
    start = workers._start(3)  # where the next one would go
    place[start : start + 9] = b"\xff" * 9  # and here the worker was killed
    assert values(board.read(1)) == {NAME + "requests_total/0": 2}


def test_what_is_too_long_leaves_what_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    board = workers.Board(1)
    board.write(1, counted(1), is_everything=True)
    monkeypatch.setattr(workers, "_HALF", 10)
    board.write(1, counted(2), is_everything=True)
    assert board.told(1) == 1


def worker(board: workers.Board, number: int, listener: socket.socket) -> workers.Worker:
    return workers.Worker(number, False, False, listener, board, lambda: None)


def test_whoever_comes_into_the_place_of_a_dead_worker_goes_on_from_what_that_told(
    ledger: Ledger, listener: socket.socket
) -> None:
    board = workers.Board(1)

    async def lives(requests: int) -> dict[str, float]:
        measures = metrics.Metrics(ledger.follower)
        workers.Siblings(worker(board, 1, listener), measures, ledger.follower).attend()
        for _ in range(requests):
            measures.count("/a", "GET", 200, 0.1)
        return values(metrics.together(await measures.gather()))

    for total in (2, 4, 6):
        found = asyncio.run(lives(2))
        assert found[NAME + "requests_total/aGET200"] == found[NAME + "request_seconds_count/a"] == total
        assert found[NAME + "revision"] == 0


def test_a_worker_that_does_not_answer_is_not_waited_for_long(
    ledger: Ledger, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PATIENCE_SECONDS", 0.01)
    board = workers.Board(3)  # of which the third never comes up
    frozen: list[Metric] = [*counted(5), GaugeMetricFamily(NAME + "revision", "It.", value=-1)]
    board.write(2, frozen, is_everything=True)

    async def asked() -> metrics.Families:
        measures = metrics.Metrics(ledger.follower)
        workers.Siblings(worker(board, 1, listener), measures, ledger.follower).attend()
        for _ in range(100_000):  # more than its bell takes
            board.ring(2)
        return metrics.together(await measures.gather())

    found = values(asyncio.run(asked()))
    assert (found[NAME + "requests_total/0"], found[NAME + "revision"]) == (5, 0)


# The way out


def test_connections_that_wait_to_be_accepted_are_answered_before_the_end(ledger: Ledger, listener: socket.socket) -> None:
    async def ending() -> list[bytes]:
        measures = metrics.Metrics(ledger.follower)
        fast = poll.Fast(ledger.follower, tokens.Tokens([]), measures)
        slow = unread.Unread()
        config = uvicorn.Config(at_once, http=ordinary.protocol_class(slow, fast), lifespan="off", log_config=None)
        server = serving._Server(config, fast, slow, feed.Feed(ledger.follower, measures), ledger, is_worker=True)
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(20)]
            for client in clients:  # the loop does not run meanwhile
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await server.shutdown([listener])
            return [client.recv(1000) for client in clients]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert {answer.partition(b"\r\n")[0] for answer in runner.run(ending())} == {b"HTTP/1.1 200 OK"}
