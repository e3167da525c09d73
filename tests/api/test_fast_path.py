"""The fast path against the ordinary route: the same bytes for the same bytes, apart from the date.

A connection that has sent anything but plain polls belongs to the ordinary route for good, so every case goes to the
running server twice: on a fresh connection, where the fast path looks at it first, and on one that asked for /health
before.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import contextlib
import re
import socket
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import live
from api.fleets import DEMO_DNS, SEED, VIEWS, cluster, make, view
from flux_resourceset import tokens
from flux_resourceset.changes import Origin
from flux_resourceset.follower import Follower
from flux_resourceset.http import metrics, poll
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore

PATH = view(DEMO_DNS, "namespaces").encode()
TOKEN = b"Authorization: Bearer " + live.READ.encode()
BASIC = b"Authorization: Basic " + base64.b64encode(b"flux:" + live.READ.encode())
HOST = b"Host: api.example.com"
LAST = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def request(
    *lines: bytes, method: bytes = b"GET", target: bytes = PATH, version: bytes = b"HTTP/1.1", body: bytes = b""
) -> bytes:
    return b"\r\n".join([b" ".join([method, target, version]), *lines, b"", body])


PLAIN = request(HOST, TOKEN)
AS_FLUX = request(HOST, b"User-Agent: flux-operator/v0.58.1", b"Accept: application/json", TOKEN, b"Accept-Encoding: gzip")

CASES: dict[str, Sequence[bytes]] = {
    "plain": [PLAIN],
    "as Flux": [AS_FLUX],
    "basic": [request(HOST, BASIC)],
    "pipelined": [PLAIN * 3],
    "pipelined with others": [PLAIN + request(HOST, TOKEN, target=b"/clusters/nobody") + AS_FLUX],
    "one after the other": [PLAIN, AS_FLUX, PLAIN],
    "a poll, then something else, then a poll": [PLAIN, request(HOST, TOKEN, target=b"/nothing"), PLAIN],
    "split in the method": [PLAIN[:2], PLAIN[2:]],
    "split in the path": [PLAIN[:40], PLAIN[40:]],
    "split in the token": [PLAIN[:-12], PLAIN[-12:]],
    "split before the last newline": [PLAIN[:-1], PLAIN[-1:]],
    "one and a half": [PLAIN + PLAIN[:30], PLAIN[30:]],
    "never finished": [PLAIN[:-2]],
    "odd casing": [request(b"hOST: x", b"AUTHORIZATION: bEARER " + live.READ.encode(), b"aCCept-ENCODING: GZip")],
    "tabs and spaces around values": [request(b"Host:\tx \t", b"Authorization: \t Bearer  " + live.READ.encode() + b"\t ")],
    "no space after the colon": [request(b"Host:x", TOKEN.replace(b": ", b":"))],
    "space before the colon": [request(b"Host : x", TOKEN)],
    "absolute form": [request(HOST, TOKEN, target=b"http://api.example.com" + PATH)],
    "absolute form without a path": [request(HOST, TOKEN, target=b"http://api.example.com")],
    "percent encoding": [request(HOST, TOKEN, target=PATH.replace(b"demo", b"%64emo"))],
    "percent encoded slash": [request(HOST, TOKEN, target=PATH.replace(b"/namespaces", b"%2Fnamespaces"))],
    "broken percent encoding": [request(HOST, TOKEN, target=PATH + b"%zz")],
    "percent encoded newline": [request(HOST, TOKEN, target=PATH + b"%0a")],
    "query": [request(HOST, TOKEN, target=PATH + b"?a=1")],
    "empty query": [request(HOST, TOKEN, target=PATH + b"?")],
    "fragment": [request(HOST, TOKEN, target=PATH + b"#x")],
    "double slash": [request(HOST, TOKEN, target=b"/" + PATH)],
    "trailing slash": [request(HOST, TOKEN, target=PATH + b"/")],
    "dots": [request(HOST, TOKEN, target=PATH + b"/../namespaces")],
    "upper case": [request(HOST, TOKEN, target=PATH.upper())],
    "unknown view": [request(HOST, TOKEN, target=PATH + b"x")],
    "unknown dns": [request(HOST, TOKEN, target=b"/api/v2/flux/clusters/never.example.com/namespaces")],
    "empty dns": [request(HOST, TOKEN, target=b"/api/v2/flux/clusters//namespaces")],
    "fleet list": [request(HOST, TOKEN, target=b"/api/v2/flux/clusters?environment=prod")],
    "non-ASCII path": [request(HOST, TOKEN, target=PATH + b"\xc3\xa9")],
    "two spaces": [PLAIN.replace(b" HTTP", b"  HTTP")],
    "the end of the line in the path": [request(HOST, TOKEN, target=PATH + b" HTTP/1.1")],
    "head": [request(HOST, TOKEN, method=b"HEAD")],
    "post": [request(HOST, TOKEN, method=b"POST")],
    "lower-case method": [request(HOST, TOKEN, method=b"get")],
    "unknown method": [request(HOST, TOKEN, method=b"BREW")],
    "body on get": [request(HOST, TOKEN, b"Content-Length: 5", body=b"hello")],
    "body without a length": [request(HOST, TOKEN, body=b"hello")],
    "body that looks like a poll": [request(HOST, TOKEN, b"Content-Length: %d" % len(PLAIN), body=PLAIN)],
    "length of zero": [request(HOST, TOKEN, b"Content-Length: 0")],
    "length that is none": [request(HOST, TOKEN, b"Content-Length: x")],
    "chunked": [request(HOST, TOKEN, b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")],
    "length and chunked": [request(HOST, TOKEN, b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n")],
    "expect": [request(HOST, TOKEN, b"Expect: 100-continue")],
    "expect with a body": [request(HOST, TOKEN, b"Expect: 100-continue", b"Content-Length: 2", body=b"{}")],
    "upgrade to a websocket": [request(HOST, TOKEN, b"Connection: Upgrade", b"Upgrade: websocket")],
    "upgrade to h2c": [request(HOST, TOKEN, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: x")],
    "the preface of HTTP/2": [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "HTTP/1.0": [request(HOST, TOKEN, version=b"HTTP/1.0")],
    "HTTP/1.0 keep-alive": [request(HOST, TOKEN, b"Connection: keep-alive", version=b"HTTP/1.0")],
    "HTTP/1.2": [request(HOST, TOKEN, version=b"HTTP/1.2")],
    "HTTP/2.0": [request(HOST, TOKEN, version=b"HTTP/2.0")],
    "no version": [b"GET " + PATH + b"\r\n" + TOKEN + b"\r\n\r\n"],
    "connection close": [request(HOST, TOKEN, b"Connection: close")],
    "connection keep-alive": [request(HOST, TOKEN, b"Connection: keep-alive")],
    "connection close, pipelined": [request(HOST, TOKEN, b"Connection: close") + PLAIN],
    "no host": [request(TOKEN)],
    "two hosts": [request(HOST, HOST, TOKEN)],
    "no headers": [request()],
    "no token": [request(HOST)],
    "wrong token": [request(HOST, TOKEN + b"x")],
    "empty token": [request(HOST, b"Authorization: Bearer ")],
    "two tokens": [request(HOST, TOKEN, TOKEN)],
    "a good and a bad token": [request(HOST, TOKEN, b"Authorization: Bearer x")],
    "an empty second token": [request(HOST, TOKEN, b"Authorization:")],
    "request id": [request(HOST, TOKEN, b"X-Request-Id: abc")],
    "unusable request id": [request(HOST, TOKEN, b"X-Request-Id: a b")],
    "conditional": [request(HOST, TOKEN, b'If-None-Match: "1"')],
    "range": [request(HOST, TOKEN, b"Range: bytes=0-4")],
    "gzip with a weight": [request(HOST, TOKEN, b"Accept-Encoding: deflate, gzip;q=0.5")],
    "gzip refused": [request(HOST, TOKEN, b"Accept-Encoding: gzip;q=0")],
    "gzip refused, everything wanted": [request(HOST, TOKEN, b"Accept-Encoding: *;q=1, gzip ; q=0.000")],
    "gzip in two headers": [request(HOST, TOKEN, b"Accept-Encoding: br", b"Accept-Encoding: gzip")],
    "empty accept-encoding": [request(HOST, TOKEN, b"Accept-Encoding:")],
    "bare newlines": [PLAIN.replace(b"\r\n", b"\n")],
    "one bare newline": [PLAIN.replace(b"\r\nAuth", b"\nAuth")],
    "a bare newline in a value": [request(HOST, b"User-Agent: a\nb: c", TOKEN)],
    "a bare return in a value": [request(HOST, b"User-Agent: a\rb", TOKEN)],
    "bare newlines at the end": [PLAIN[:-2] + b"\n"],
    "a leading empty line": [b"\r\n" + PLAIN],
    "a trailing empty line": [PLAIN + b"\r\n"],
    "obs-fold": [request(HOST, b"User-Agent: a\r\n b", TOKEN)],
    "obs-fold of the token": [request(HOST, TOKEN.replace(b"Bearer ", b"Bearer\r\n "))],
    "obs-fold as the first line": [request(b" Host: x", TOKEN)],
    "NUL in a value": [request(HOST, b"User-Agent: a\0b", TOKEN)],
    "NUL in the path": [request(HOST, TOKEN, target=PATH + b"\0")],
    "control character in a value": [request(HOST, b"User-Agent: a\x01b", TOKEN)],
    "non-ASCII value": [request(HOST, "User-Agent: é".encode(), TOKEN)],
    "non-ASCII name": [request(HOST, "Usér: x".encode(), TOKEN)],
    "a line without a colon": [request(HOST, b"nonsense", TOKEN)],
    "an empty name": [request(HOST, b": x", TOKEN)],
    "an empty value": [request(b"Host:", TOKEN, b"User-Agent:")],
    "a long header": [request(HOST, TOKEN, b"User-Agent: " + b"x" * 20_000)],
    "an oversized header": [request(HOST, TOKEN, b"User-Agent: " + b"x" * 300_000)],
    "a head just within bounds": [request(HOST, TOKEN, b"User-Agent: " + b"x" * 65_000)],
    "a head just beyond bounds": [request(HOST, TOKEN, b"User-Agent: " + b"x" * 65_600)],
    "a head that goes on and on": [request(HOST, TOKEN, b"User-Agent: " + b"x" * 60_000)[:-4], *[b"x" * 60_000] * 3],
    "many headers": [request(HOST, TOKEN, *[b"Accept: x"] * 500)],
    "many unknown headers": [request(HOST, TOKEN, *(b"X-%d: y" % n for n in range(500)))],
    "a proxy's headers": [request(HOST, TOKEN, b"X-Forwarded-For: 1.2.3.4", b"Via: 1.1 x", b"Forwarded: for=x")],
    "TLS on the plain port": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64],
    "nothing but newlines": [b"\r\n\r\n"],
}  # fmt: skip


def exchange(address: tuple[str, int], packets: Sequence[bytes], patience: float, *, ordinary: bool) -> bytes:
    """Everything that comes back, until the server closes."""
    alone = sum(packet.count(b" HTTP/") for packet in packets) <= 1
    with socket.create_connection(address, timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ordinary:
            connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            while not connection.recv(65536).endswith(b"}"):
                pass  # head and body are written apart
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


def assert_alike(address: tuple[str, int], packets: Sequence[bytes]) -> bytes:
    """Both ways give the same, which is returned. Where one packet follows on another it matters whether the answer was out by
    then, so a difference counts only if it is still there when the packets are far apart."""
    for patience in (0.05, 0.3, 1.5):
        fast = exchange(address, packets, patience, ordinary=False)
        ordinary = exchange(address, packets, patience, ordinary=True)
        if fast == ordinary:
            break
    assert fast == ordinary
    assert fast  # the last request at least is always answered, or the first refused
    return fast


def normal(answer: bytes) -> bytes:
    answer = re.sub(rb"\r\ndate: [^\r]*", b"\r\ndate: then", answer)
    return re.sub(rb'(x-request-id: |request_id":")[0-9a-f]{32}', rb"\1made-up", answer)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_the_fast_path_and_the_ordinary_route_answer_alike(server: live.Server, case: str) -> None:
    assert_alike(server.address, CASES[case])


def mixtures() -> st.SearchStrategy[list[bytes]]:
    """Requests put together from fragments that parsers like to disagree about, cut anywhere."""
    lines = st.sampled_from([
        HOST, TOKEN, BASIC, b"host: y", b"Accept: */*", b"Accept-Encoding: gzip", b"Accept-Encoding: gzip;q=0, *",
        b"accept-encoding: x-gzip", b"User-Agent: flux", b"User-Agent: \t", b"Connection: close", b"Content-Length: 0",
        b"Content-Length: 3", b"X-Request-Id: 1", b"Transfer-Encoding: chunked", b" folded", b"bad line", b"Authorization: x",
        b"Host : z", b"User-Agent: a\nX: b", b"Expect: 100-continue", b"Cookie: a=b", b"Accept:\x7f", b"Accept: \xff",
    ])  # fmt: skip
    targets = st.sampled_from([PATH, PATH, PATH + b"?x", PATH + b"/", b"/health", PATH[:-1], b"http://h" + PATH, PATH + b"%20"])
    methods = st.sampled_from([b"GET", b"GET", b"GET", b"HEAD", b"POST", b"get"])
    versions = st.sampled_from([b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.1 ", b"HTTP/9"])
    one = st.builds(
        lambda method, target, version, found, body: request(*found, method=method, target=target, version=version, body=body),
        methods, targets, versions, st.lists(lines, max_size=5), st.sampled_from([b"", b"", b"abc", b"0\r\n\r\n"]),
    )  # fmt: skip
    good = st.permutations([HOST, TOKEN, b"Accept-Encoding: gzip", b"User-Agent: x"]).map(lambda found: request(*found))
    stream = st.lists(st.one_of(good, one), min_size=1, max_size=3).map(b"".join)
    return st.tuples(stream, st.integers(0, 400), st.booleans()).map(
        lambda drawn: [part for part in (drawn[0][: drawn[1]], drawn[0][drawn[1] :]) if part] if drawn[2] else [drawn[0]]
    )


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(packets=mixtures())
def test_mixtures_are_answered_alike(server: live.Server, packets: list[bytes]) -> None:
    assert_alike(server.address, packets)


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(packets=mixtures())
def test_many_mixtures_are_answered_alike(server: live.Server, packets: list[bytes]) -> None:
    assert_alike(server.address, packets)


# Tokens that are bound to a cluster

BOUND_SECRET, LOST_SECRET = b"bound-" + b"b" * 32, b"lost-" + b"l" * 32
BOUND = b"Authorization: Bearer " + BOUND_SECRET
BOUND_BASIC = b"Authorization: Basic " + base64.b64encode(b"flux:" + BOUND_SECRET)
LOST = b"Authorization: Bearer " + LOST_SECRET
OTHER_DNS, NO_CLUSTER = "other.example.com", "never.example.com"
OTHER = view(OTHER_DNS, "namespaces").encode()

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
    "no cluster": ([request(HOST, BOUND, target=view(NO_CLUSTER, "namespaces").encode())], [403]),
    "own, which is no cluster": ([request(HOST, LOST, target=view(NO_CLUSTER, "namespaces").encode())], [404]),
    "of a token whose own is no cluster": ([request(HOST, LOST)], [403]),
    "everybody's, of a token for all": ([request(HOST, TOKEN), request(HOST, TOKEN, target=OTHER)], [200, 200]),
}


@pytest.fixture(scope="module")
def binding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    directory = tmp_path_factory.mktemp("bound")
    path = directory / "tokens"
    path.write_text(f"demo read {BOUND_SECRET.decode()} {DEMO_DNS}\nlost read {LOST_SECRET.decode()} {NO_CLUSTER}\n")
    path.chmod(0o600)
    with live.serving(directory, TOKENS_FILE=str(path), SEED_FILE=str(SEED)) as running:
        with running.client() as api:
            make(api, "clusters", "other", cluster_dns=OTHER_DNS)
        yield running


@pytest.mark.parametrize("case", BOUND_CASES)
def test_bound_tokens_are_answered_alike_on_both_ways_and_as_they_should(binding: live.Server, case: str) -> None:
    packets, statuses = BOUND_CASES[case]
    answers = assert_alike(binding.address, packets)
    assert [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)][: len(statuses)] == statuses


def test_a_bound_token_takes_the_fast_path_to_its_own_views_and_to_no_other(fast: poll.Fast) -> None:
    fast.tokens = tokens.Tokens([tokens.Token.of("one", "read", BOUND_SECRET.decode(), DEMO_DNS)])
    polls = {path: request(HOST, BOUND, target=path) for path in (PATH, OTHER, PATH[:-1], PATH + b"/" + PATH[1:])}

    async def taken() -> list[bytes]:
        return [path for path, sent in polls.items() if fast.answer(sent) is not None]

    assert asyncio.run(taken()) == [PATH]
    assert asyncio.run(taken()) == [PATH]  # also once the header block is known
    assert len(fast.heads) == 1


# That it is taken at all, and lets go


@pytest.fixture
def fast() -> poll.Fast:
    memory = MemoryStore()
    ledger = Ledger(Follower(kind_files.load(), lambda: memory))
    ledger.write_now(lambda draft: draft.create(ledger.kinds.clusters, cluster("one", cluster_dns=DEMO_DNS)), Origin("test"))
    ledger.follower.refresh()  # so that the first poll finds nothing to wait for
    known = tokens.Tokens([tokens.Token.of("read", "read", live.READ)])
    return poll.Fast(ledger.follower, known, metrics.Metrics(ledger.follower))


TAKEN = {"plain", "as Flux", "basic", "odd casing", "tabs and spaces around values", "no space after the colon",
         "gzip with a weight", "gzip refused", "gzip refused, everything wanted", "gzip in two headers",
         "empty accept-encoding", "an empty value", "a long header", "a head just within bounds", "many headers"}  # fmt: skip


def test_only_whole_plain_polls_with_a_good_token_are_taken(fast: poll.Fast) -> None:
    async def taken() -> set[str]:
        return {case for case, packets in CASES.items() if len(packets) == 1 and fast.answer(packets[0]) is not None}

    assert asyncio.run(taken()) == TAKEN
    assert asyncio.run(taken()) == TAKEN  # also once the header blocks are known


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

    async def taken() -> bool:
        return fast.answer(received) is not None

    assert asyncio.run(taken()) is not live.ordinary
    if not live.ordinary:
        assert re.sub(rb"Host: [0-9.:]+", HOST, received) == AS_FLUX


@pytest.mark.parametrize("view_name", VIEWS)
def test_every_view_is_taken(fast: poll.Fast, view_name: str) -> None:
    async def answer() -> bytes | None:
        return fast.answer(request(HOST, TOKEN, target=view(DEMO_DNS, view_name).encode()))

    assert (asyncio.run(answer()) or b"").endswith(b'{"inputs":[]}')


def test_what_idles_for_two_sweeps_is_closed_and_what_polls_is_kept(fast: poll.Fast) -> None:
    async def scene() -> tuple[bytes, bytes, bytes]:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: poll.PollProtocol(fast, None), "127.0.0.1", 0)
        address = listening.sockets[0].getsockname()
        (idle, idle_writer), (busy, busy_writer) = [await asyncio.open_connection(*address) for _ in range(2)]
        for _ in range(3):
            busy_writer.write(PLAIN)
            await busy.readuntil(b'{"inputs":[]}')
            fast.sweep()
        seen = await idle.read()
        busy_writer.write(PLAIN)
        answer = await busy.readuntil(b'{"inputs":[]}')
        for _ in range(2):
            fast.sweep()
        end = await asyncio.wait_for(busy.read(), 10)  # nobody is kept for what they did once
        for writer in (idle_writer, busy_writer):
            writer.close()
        listening.close()
        return seen, answer, end

    seen, answer, end = asyncio.run(scene())
    assert (seen, answer[:15], end) == (b"", b"HTTP/1.1 200 OK", b"")


def test_a_connection_that_was_handed_over_after_idling_is_not_closed_by_the_next_sweep(fast: poll.Fast) -> None:
    class Ordinary(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # TCP transports are Transports

        def data_received(self, data: bytes) -> None:
            self.transport.write(b"ordinary")

    async def scene() -> tuple[bytes, bytes]:
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: poll.PollProtocol(fast, Ordinary), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(PLAIN)
        await reader.readuntil(b'{"inputs":[]}')
        fast.sweep()
        heard = []
        for _ in range(2):
            writer.write(b"something else")
            heard.append(await asyncio.wait_for(reader.readexactly(len(b"ordinary")), 10))
            fast.sweep()
        writer.close()
        listening.close()
        return heard[0], heard[1]

    assert asyncio.run(scene()) == (b"ordinary", b"ordinary")


def test_header_blocks_are_remembered_up_to_a_bound(fast: poll.Fast, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []
    find = fast.tokens.find

    def checking(secret: bytes) -> tokens.Principal | None:
        checked.append(secret)
        return find(secret)

    monkeypatch.setattr(fast.tokens, "find", checking)

    async def ask(number: int) -> bool:
        """Whether the token had to be checked."""
        checked.clear()
        answer = fast.answer(request(HOST, TOKEN, b"User-Agent: %d" % number)) or b""
        assert answer.endswith(b'{"inputs":[]}')
        return bool(checked)

    async def scene() -> None:
        await ask(0)
        monkeypatch.setattr(poll, "_MAX_MEMORY_BYTES", 3 * fast._heads_bytes)
        assert [await ask(number) for number in (1, 2, 0, 1, 2)] == [True, True, False, False, False]
        for number in range(3, 10):  # each takes the place of the oldest one, and of no other
            assert await ask(number)
            assert not any([await ask(kept) for kept in (number - 1, number - 2, number)])
            assert len(fast.heads) == 3
        assert await ask(0)

    asyncio.run(scene())


def test_a_long_header_block_is_answered_and_not_remembered(fast: poll.Fast) -> None:
    async def ask() -> bytes:
        return fast.answer(request(HOST, TOKEN, b"User-Agent: " + b"x" * 5000)) or b""

    assert asyncio.run(ask()).endswith(b'{"inputs":[]}')
    assert not fast.heads


def test_the_date_of_an_answer_is_the_one_of_http(fast: poll.Fast) -> None:
    async def answer() -> bytes:
        return fast.answer(PLAIN) or b""

    assert re.search(rb"\r\ndate: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n", asyncio.run(answer()))
