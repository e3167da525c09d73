"""The fast path by itself: what it takes, what it remembers, and what it leaves to the ordinary route."""

from __future__ import annotations

import concurrent.futures
import re
import socket
from pathlib import Path

import pytest

import live
from api.fleets import DEMO_DNS, VIEWS, cluster, view
from api.raw_requests import (
    AS_FLUX,
    BOUND,
    BOUND_SECRET,
    CASES,
    GONE_DNS,
    HOST,
    ONE,
    ONE_CASES,
    OTHER,
    PATH,
    PLAIN,
    PROXY,
    TOKEN,
    request,
)
from flux_resourceset import tokens
from flux_resourceset.changes import Origin
from flux_resourceset.follower import Follower
from flux_resourceset.http import metrics, poll
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore


@pytest.fixture
def fast() -> poll.Fast:
    memory = MemoryStore()
    ledger = Ledger(Follower(kind_files.load(), lambda: memory))
    ledger.write_now(lambda draft: draft.create(ledger.kinds.clusters, cluster("one", cluster_dns=DEMO_DNS)), Origin("test"))
    ledger.follower.refresh()  # so that the first poll finds nothing to wait for
    known = tokens.Tokens([tokens.Token.of("read", "read", live.READ)])
    return poll.Fast(ledger.follower, known, metrics.Metrics(ledger.follower))


def answered(fast: poll.Fast, data: bytes) -> bytes:
    answer = fast.answer(data)
    assert answer is not None
    return answer[0]


def counted(fast: poll.Fast) -> int:
    return sum(sum(observed.counts) for observed in fast._latency.values())


TAKEN = {
    "plain", "as Flux", "basic", "odd casing", "no space after the colon", "gzip with a weight", "gzip refused",
    "gzip refused, everything wanted", "empty accept-encoding", "an empty value", "spaces after a token", "conditional", "range",
    "pipelined", "pipelined with ids", "pipelined, the last closes", "pipelined, the last is HTTP/1.0",
    "HTTP/1.0", "HTTP/1.0 keep-alive", "connection close", "connection keep-alive", "connection close in capitals",
    "keep-alive as a header", "request id", "a request id of 128", "every sign that a name may have",
    "every plain sign in a value", "a proxy's headers", "a proxy's headers, HTTP/1.0", "a proxy's headers, gzip",
}  # fmt: skip


def test_only_whole_plain_polls_with_a_good_token_are_taken(fast: poll.Fast) -> None:
    for _ in range(2):  # also once the tokens are known
        assert {case for case, packets in CASES.items() if len(packets) == 1 and fast.answer(packets[0])} == TAKEN


def stock(fast: poll.Fast) -> None:
    """Give the cluster an input, and decommission another cluster."""
    ledger = Ledger(fast.follower)
    clusters, namespaces = ledger.kinds.clusters, ledger.kinds.referenced_by_name["namespaces"]
    ledger.write_now(lambda draft: draft.create(namespaces, {"id": "podinfo"}), Origin("test"))
    ledger.write_now(lambda draft: draft.assign("one", namespaces, "podinfo", {}), Origin("test"))
    ledger.write_now(lambda draft: draft.create(clusters, cluster("gone", cluster_dns=GONE_DNS)), Origin("test"))
    ledger.write_now(lambda draft: draft.delete(clusters, "gone"), Origin("test"))
    fast.follower.refresh()


ONE_TAKEN = {
    "one", "one, as Flux", "one, basic", "one, HTTP/1.0", "one, with an id", "one, pipelined with its view",
    "one, a proxy's headers", "one, decommissioned", "one, decommissioned, packed", "one, decommissioned, dots",
    "one, decommissioned, every plain sign",
}  # fmt: skip


def test_a_single_input_is_taken_if_its_id_is_plain_and_it_is_there(fast: poll.Fast) -> None:
    stock(fast)
    for _ in range(2):  # also once they are prepared
        assert {case for case, packets in ONE_CASES.items() if len(packets) == 1 and fast.answer(packets[0])} == ONE_TAKEN
    assert {case for case, packets in CASES.items() if len(packets) == 1 and fast.answer(packets[0])} >= TAKEN


def test_single_inputs_are_counted_by_their_view_and_not_by_their_id(fast: poll.Fast) -> None:
    stock(fast)
    for target in (ONE, ONE, PATH):
        answered(fast, request(HOST, TOKEN, target=target))
    assert {name: sum(found.counts) for name, found in fast._latency.items() if sum(found.counts)} == {
        b"namespaces": 1,
        b"namespaces/": 2,
    }


@pytest.mark.parametrize(
    ("case", "ends"),
    [
        ("plain", False), ("connection keep-alive", False), ("connection close", True), ("connection close in capitals", True),
        ("HTTP/1.0", True), ("HTTP/1.0 keep-alive", True), ("pipelined, the last closes", True), ("pipelined", False),
    ],
)  # fmt: skip
def test_a_connection_ends_when_its_last_answer_says_so(fast: poll.Fast, case: str, ends: bool) -> None:
    answer = fast.answer(CASES[case][0])
    assert answer is not None
    assert (answer[1], b"connection: close\r\n" in answer[0]) == (ends, ends)


@pytest.mark.parametrize("name", [name for name in poll._FOREIGN if name != "content-length"])
def test_headers_that_only_the_ordinary_route_understands_are_left_to_it_in_any_case(fast: poll.Fast, name: str) -> None:
    for spelled in (name, name.upper(), name.title()):
        assert fast.answer(request(HOST, TOKEN, f"{spelled}: 1".encode())) is None
        assert fast.answer(request(HOST, TOKEN, f"{spelled}x: 1".encode())) is not None


def test_a_bound_token_takes_the_fast_path_to_its_own_views_and_to_no_other(fast: poll.Fast) -> None:
    fast.tokens = tokens.Tokens([tokens.Token.of("one", "read", BOUND_SECRET.decode(), DEMO_DNS)])
    stock(fast)
    paths = (PATH, ONE, OTHER, OTHER + b"/podinfo", PATH[:-1], PATH + b"/" + PATH[1:])
    for _ in range(2):  # also once the token is known
        assert [path for path in paths if fast.answer(request(HOST, BOUND, target=path))] == [PATH, ONE]
    assert len(fast.verified) == 1


@pytest.mark.parametrize("view_name", VIEWS)
def test_every_view_is_taken(fast: poll.Fast, view_name: str) -> None:
    assert answered(fast, request(HOST, TOKEN, target=view(DEMO_DNS, view_name).encode())).endswith(b'{"inputs":[]}')


def test_the_date_of_an_answer_is_the_one_of_http(fast: poll.Fast) -> None:
    assert re.search(rb"\r\ndate: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n", answered(fast, PLAIN))


def test_each_poll_of_a_pipeline_is_counted_and_what_is_left_to_the_ordinary_route_is_not(fast: poll.Fast) -> None:
    assert fast.answer(PLAIN * 3) is not None
    assert counted(fast) == 3
    assert fast.answer(PLAIN + request(HOST, TOKEN, target=OTHER)) is None
    assert counted(fast) == 3


def test_a_pipeline_whose_answers_are_large_is_left_to_the_ordinary_route(
    fast: poll.Fast, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(b'{"inputs":[]}')
    monkeypatch.setattr(poll, "_MAX_ANSWERED_BYTES", 3 * size)
    assert fast.answer(PLAIN * 3) is not None
    assert fast.answer(PLAIN * 4) is None
    monkeypatch.setattr(poll, "_MAX_ANSWERED_BYTES", size - 1)
    assert fast.answer(PLAIN) is not None  # a single one has any size


def test_a_request_with_more_headers_than_anybody_sends_is_left_to_the_ordinary_route(fast: poll.Fast) -> None:
    assert fast.answer(request(HOST, TOKEN, *[b"X: y"] * 98)) is not None
    assert fast.answer(request(HOST, TOKEN, *[b"X: y"] * 99)) is None


# What is remembered


@pytest.fixture
def checked(fast: poll.Fast, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Secrets that were verified."""
    found: list[bytes] = []
    find = fast.tokens.find

    def checking(secret: bytes) -> tokens.Principal | None:
        found.append(secret)
        return find(secret)

    monkeypatch.setattr(fast.tokens, "find", checking)
    return found


def test_what_changes_from_poll_to_poll_is_not_remembered_and_verifies_nobody_anew(fast: poll.Fast, checked: list[bytes]) -> None:
    for number in range(1000):
        varied = (b"X-Request-Id: %d" % number, b"traceparent: 00-%d" % number, b"User-Agent: %d" % number)
        assert b"x-request-id: %d\r\n" % number in answered(fast, request(HOST, TOKEN, *varied, *PROXY[2:]))
    assert (len(checked), len(fast.verified)) == (1, 1)


def test_every_token_of_ten_thousand_is_verified_once(fast: poll.Fast, monkeypatch: pytest.MonkeyPatch) -> None:
    many = 10_000
    fast.tokens = tokens.Tokens([tokens.Token.of(f"t{number}", "read", f"secret-{number}") for number in range(many)])
    asked = [request(HOST, b"Authorization: Bearer secret-%d" % number) for number in range(many)]
    assert all(fast.answer(each) for each in asked)
    assert len(fast.verified) == many
    monkeypatch.setattr(fast.tokens, "find", None)  # which fails, if it is asked
    assert all(fast.answer(each) for each in asked)


def test_one_token_in_ever_new_words_does_not_fill_the_memory(fast: poll.Fast) -> None:
    for spaces in range(1, 400):
        answered(fast, request(HOST, TOKEN + b" " * spaces))
        assert len(fast.verified) <= poll._SPELLINGS
    answered(fast, request(HOST, TOKEN + b" " * 1000))
    assert max(map(len, fast.verified)) <= 512


def test_a_token_that_was_revoked_is_forgotten_at_once(fast: poll.Fast, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    for secret in ("first-secret-of-flux", "second-secret-of-flux", "third-secret-of-flux"):
        before, asked = set(fast.verified), request(HOST, f"Authorization: Bearer {secret}".encode())
        file.write_text(f"flux read {secret}\n")
        file.chmod(0o600)
        if not before:
            fast.tokens = tokens.Tokens([], file)
        assert fast.answer(asked) is not None
        assert before.isdisjoint(fast.verified)


def test_who_is_refused_is_not_remembered(fast: poll.Fast) -> None:
    for number in range(10):
        assert fast.answer(request(HOST, b"Authorization: Bearer wrong-%d" % number)) is None
    assert not fast.verified


def test_ways_to_ask_for_gzip_are_remembered_up_to_a_bound(fast: poll.Fast) -> None:
    for number in range(1000):
        answered(fast, request(HOST, TOKEN, b"Accept-Encoding: gzip;q=0.%d" % (number + 1)))
    assert poll._accepts_gzip.cache_info().currsize <= 256


# Clients of the tests


def sent(path: str) -> bytes:
    """What a client of the tests sends."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        concurrent.futures.ThreadPoolExecutor() as pool,
        live.client(f"http://127.0.0.1:{listening.getsockname()[1]}", live.READ) as client,
    ):
        asked = pool.submit(client.get, path)
        connection, _ = listening.accept()
        with connection:
            received = connection.recv(65536)
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        assert asked.result().status_code == 204
    return received


@pytest.mark.usefixtures("both_ways")
def test_clients_of_tests_take_the_way_that_they_are_to_take(fast: poll.Fast) -> None:
    received = sent(PATH.decode())
    assert (fast.answer(received) is None) is live.ordinary
    if not live.ordinary:
        assert re.sub(rb"Host: [0-9.:]+", HOST, received) == AS_FLUX
