"""The fast path against the ordinary route: the same bytes for the same bytes, apart from the date.

Every case goes to two servers with the same fleet: one as it is, and one that logs every request, where uvicorn listens and
everything takes the ordinary way. That one is the judge.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import live
from api import raw_requests
from api.fleets import DEMO_DNS, SEED, make, view
from api.raw_requests import (
    BOUND,
    BOUND_BASIC,
    CASES,
    HOST,
    LOST,
    NO_CLUSTER,
    ONE,
    ONE_CASES,
    OTHER,
    OTHER_DNS,
    PATH,
    PLAIN,
    TOKEN,
    request,
)

LAST = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Both(NamedTuple):
    fast: live.Server
    judge: live.Server


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with contextlib.ExitStack() as stack:
        yield Both(*(serving(tmp_path_factory.mktemp(level), level, stack) for level in ("info", "debug")))


def serving(directory: Path, level: str, stack: contextlib.ExitStack) -> live.Server:
    path = directory / "tokens"
    secrets = ((raw_requests.BOUND_SECRET, DEMO_DNS), (raw_requests.LOST_SECRET, NO_CLUSTER))
    path.write_text("".join(f"{dns} read {secret.decode()} {dns}\n" for secret, dns in secrets))
    path.chmod(0o600)
    server = stack.enter_context(live.serving(directory, TOKENS_FILE=str(path), SEED_FILE=str(SEED), LOG_LEVEL=level))
    with server.client() as api:
        make(api, "clusters", "other", cluster_dns=OTHER_DNS)
        make(api, "clusters", "gone", cluster_dns=raw_requests.GONE_DNS)
        assert api.delete("/clusters/gone").status_code == 200
    return server


def counted(server: live.Server, name: str) -> int:
    with server.client() as api:
        found = re.search(rf"^flux_resourceset_polls_{name}_total (\S+)$", api.get("/metrics").text, re.MULTILINE)
    assert found
    return int(float(found[1]))


def exchange(server: live.Server, packets: Sequence[bytes], patience: float) -> bytes:
    """Everything that comes back, until the server closes."""
    alone = sum(packet.count(b" HTTP/") for packet in packets) <= 1
    with socket.create_connection(server.address, timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = b""
        with contextlib.suppress(ConnectionError):
            for packet in packets:
                connection.sendall(packet)
                answer += heard(connection, patience, alone)
            connection.settimeout(10)
            if b"connection: close" not in answer:
                connection.sendall(LAST)
            answer += b"".join(iter(lambda: connection.recv(65536), b""))
    return normal(answer)


def heard(connection: socket.socket, patience: float, alone: bool) -> bytes:
    """What comes until nothing comes any more, or one whole answer if only one can come."""
    connection.settimeout(patience)
    answer = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while chunk := connection.recv(65536):
            answer += chunk
            head, _, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            if alone and length and len(body) == int(length[1]):
                break
    return answer


def assert_alike(both: Both, packets: Sequence[bytes]) -> bytes:
    """Both give the same, which is returned. Where one packet follows on another it matters whether the answer was out by then,
    so a difference counts only if it is still there when the packets are far apart."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for patience in (0.01, 0.05, 0.3, 1.5):
            asked = [pool.submit(exchange, server, packets, patience) for server in both]
            fast, ordinary = (each.result() for each in asked)
            if fast == ordinary != b"":
                break
    assert fast == ordinary, packets
    assert fast  # the last request at least is always answered, or the first refused, unless a reset overtook that
    return fast


def normal(answer: bytes) -> bytes:
    answer = re.sub(rb"\r\ndate: [^\r]*", b"\r\ndate: then", answer)
    return re.sub(rb'(x-request-id: |request_id":")[0-9a-f]{32}', rb"\1made-up", answer)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_fast_path_and_the_ordinary_route_answer_alike(both: Both, case: str) -> None:
    assert_alike(both, CASES[case])


@pytest.mark.parametrize("case", ONE_CASES)
def test_a_single_input_is_answered_alike(both: Both, case: str) -> None:
    assert_alike(both, ONE_CASES[case])


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_poll_behind_anything_is_answered_alike(both: Both, case: str) -> None:
    """A connection comes back to the fast path when all was answered, and only then."""
    assert_alike(both, [*CASES[case], PLAIN, PLAIN])


def test_generated_requests_are_answered_alike(both: Both) -> None:
    assert_all_alike(both, range(60))


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_generated_requests_are_answered_alike(both: Both, part: int) -> None:
    assert_all_alike(both, range(1000 * (part + 1), 1000 * (part + 2)))


def assert_all_alike(both: Both, seeds: range) -> None:
    before = counted(both.fast, "fast")
    for seed in seeds:
        assert_alike(both, raw_requests.generated(seed))
    assert counted(both.fast, "fast") - before > len(seeds) // 3  # or little was compared
    assert counted(both.judge, "fast") == 0


# Tokens that are bound to a cluster

BOUND_CASES: dict[str, tuple[Sequence[bytes], list[int]]] = {  # what is sent, and the statuses of all answers but the last
    "own": ([request(HOST, BOUND)], [200]),
    "own, with gzip": ([request(HOST, BOUND, b"Accept-Encoding: gzip")], [200]),
    "own, by Basic": ([request(HOST, BOUND_BASIC)], [200]),
    "own, again and again": ([request(HOST, BOUND)] * 3, [200] * 3),
    "own, HEAD": ([request(HOST, BOUND, method=b"HEAD")], [200]),
    "own, POST": ([request(HOST, BOUND, method=b"POST")], [403]),
    "own, with a query": ([request(HOST, BOUND, target=PATH + b"?x")], [200]),
    "own, percent encoded": ([request(HOST, BOUND, target=PATH.replace(b"demo", b"%64emo"))], [200]),
    "own, the slash percent encoded": ([request(HOST, BOUND, target=PATH.replace(b"/namespaces", b"%2Fnamespaces"))], [200]),
    "own, in upper case": ([request(HOST, BOUND, target=view(DEMO_DNS.upper(), "namespaces").encode())], [403]),
    "own, an unknown view": ([request(HOST, BOUND, target=PATH + b"x")], [404]),
    "own, no view": ([request(HOST, BOUND, target=PATH[: -len(b"namespaces")])], [403]),
    "own, neither view nor slash": ([request(HOST, BOUND, target=PATH[: -len(b"/namespaces")])], [403]),
    "own, then dots": ([request(HOST, BOUND, target=PATH + b"/../../" + OTHER_DNS.encode() + b"/namespaces")], [403]),
    "another": ([request(HOST, BOUND, target=OTHER)], [403]),
    "another, with gzip": ([request(HOST, BOUND, b"Accept-Encoding: gzip", target=OTHER)], [403]),
    "another, by Basic": ([request(HOST, BOUND_BASIC, target=OTHER)], [403]),
    "another, HEAD": ([request(HOST, BOUND, method=b"HEAD", target=OTHER)], [403]),
    "another, percent encoded": ([request(HOST, BOUND, target=OTHER.replace(b"other", b"%6fther"))], [403]),
    "another, an unknown view": ([request(HOST, BOUND, target=OTHER + b"x")], [403]),
    "own, another, own": ([request(HOST, BOUND), request(HOST, BOUND, target=OTHER), request(HOST, BOUND)], [200, 403, 200]),
    "own and another at once": ([request(HOST, BOUND) + request(HOST, BOUND, target=OTHER)], [200, 403]),
    "one of its own": ([request(HOST, BOUND, target=ONE)], [200]),
    "one of its own, with gzip": ([request(HOST, BOUND, b"Accept-Encoding: gzip", target=ONE)], [200]),
    "one of its own, HEAD": ([request(HOST, BOUND, method=b"HEAD", target=ONE)], [200]),
    "one of its own, not assigned": ([request(HOST, BOUND, target=PATH + b"/nobody")], [404]),
    "one of its own, of an unknown view": ([request(HOST, BOUND, target=PATH + b"x/podinfo")], [404]),
    "one of its own, with a slash": ([request(HOST, BOUND, target=ONE + b"/")], [403]),
    "one of its own, then dots": ([request(HOST, BOUND, target=PATH + b"/..%2F..%2F" + OTHER_DNS.encode())], [403]),
    "one of another": ([request(HOST, BOUND, target=OTHER + b"/podinfo")], [403]),
    "one of another, of an unknown view": ([request(HOST, BOUND, target=OTHER + b"x/podinfo")], [403]),
    "one of its own and of another at once": (
        [request(HOST, BOUND, target=ONE) + request(HOST, BOUND, target=OTHER + b"/podinfo")],
        [200, 403],
    ),
    "no cluster": ([request(HOST, BOUND, target=view(NO_CLUSTER, "namespaces").encode())], [403]),
    "own, which is no cluster": ([request(HOST, LOST, target=view(NO_CLUSTER, "namespaces").encode())], [404]),
    "of a token whose own is no cluster": ([request(HOST, LOST)], [403]),
    "everybody's, of a token for all": ([request(HOST, TOKEN), request(HOST, TOKEN, target=OTHER)], [200, 200]),
}


@pytest.mark.parametrize("case", BOUND_CASES)
def test_bound_tokens_are_answered_alike_on_both_ways_and_as_they_should(both: Both, case: str) -> None:
    packets, statuses = BOUND_CASES[case]
    answers = assert_alike(both, packets)
    assert [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)][: len(statuses)] == statuses
