"""Requests as bytes, for the fast path and the ordinary route: cases that parsers like to disagree about, and generated ones."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Sequence

import live
from api.fleets import DEMO_DNS, view

BOUND_SECRET, LOST_SECRET = b"bound-" + b"b" * 32, b"lost-" + b"l" * 32
BOUND = b"Authorization: Bearer " + BOUND_SECRET
BOUND_BASIC = b"Authorization: Basic " + base64.b64encode(b"flux:" + BOUND_SECRET)
LOST = b"Authorization: Bearer " + LOST_SECRET
OTHER_DNS, GONE_DNS, NO_CLUSTER = "other.example.com", "gone.example.com", "never.example.com"
OTHER, GONE, NEVER = (view(dns, "namespaces").encode() for dns in (OTHER_DNS, GONE_DNS, NO_CLUSTER))
PATH = view(DEMO_DNS, "namespaces").encode()
ONE = PATH + b"/podinfo"  # one input of it
TOKEN = b"Authorization: Bearer " + live.READ.encode()
BASIC = b"Authorization: Basic " + base64.b64encode(b"flux:" + live.READ.encode())
HOST = b"Host: api.example.com"


def request(
    *lines: bytes, method: bytes = b"GET", target: bytes = PATH, version: bytes = b"HTTP/1.1", body: bytes = b""
) -> bytes:
    return b"\r\n".join([b" ".join([method, target, version]), *lines, b"", body])


PLAIN = request(HOST, TOKEN)
AS_FLUX = request(HOST, b"User-Agent: flux-operator/v0.58.1", b"Accept: application/json", TOKEN, b"Accept-Encoding: gzip")

PROXY = (
    b"Connection: keep-alive", b"X-Request-Id: 9d9f7a3b2c1e4f5a8b7c6d5e4f3a2b1c", b"X-Real-IP: 10.0.0.1",
    b"X-Forwarded-For: 10.0.0.1, 10.0.0.2", b"X-Forwarded-Host: api.example.com", b"X-Forwarded-Port: 443",
    b"X-Forwarded-Proto: https", b"X-Forwarded-Scheme: https", b"Forwarded: for=10.0.0.1;proto=https", b"Via: 1.1 ingress",
    b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", b"tracestate: a=b",
    b"X-Envoy-Attempt-Count: 1", b"X-Envoy-Expected-Rq-Timeout-Ms: 15000",
)  # fmt: skip

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
    "a proxy's headers": [request(HOST, TOKEN, *PROXY)],
    "a proxy's headers, HTTP/1.0": [request(HOST, TOKEN, *PROXY[1:], b"Connection: close", version=b"HTTP/1.0")],
    "a proxy's headers, gzip": [request(*PROXY[2:], HOST, TOKEN, b"Accept-Encoding: gzip, deflate", b"X-Request-Id: 1/a+b=")],
    "every sign that a name may have": [request(HOST, TOKEN, b"!#$%&'*+-.^_`|~09azAZ: x")],
    "every plain sign in a value": [request(HOST, TOKEN, b"X: " + bytes(range(32, 127)))],
    "a sign that no name has": [request(HOST, TOKEN, b"X(Y): x")],
    "connection close in capitals": [request(HOST, TOKEN, b"CONNECTION:CLOSE ")],
    "connection keep-alive, close": [request(HOST, TOKEN, b"Connection: keep-alive, close")],
    "connection te": [request(HOST, TOKEN, b"Connection: te")],
    "no connection said": [request(HOST, TOKEN, b"Connection:")],
    "two connections": [request(HOST, TOKEN, b"Connection: keep-alive", b"Connection: close")],
    "proxy-connection close": [request(HOST, TOKEN, b"Proxy-Connection: close")],
    "keep-alive as a header": [request(HOST, TOKEN, b"Keep-Alive: timeout=5")],
    "upgrade without connection": [request(HOST, TOKEN, b"Upgrade: h2c")],
    "pipelined, the first closes": [request(HOST, TOKEN, b"Connection: close") + AS_FLUX],
    "pipelined, the last closes": [AS_FLUX + request(HOST, TOKEN, b"Connection: close")],
    "pipelined, the last is HTTP/1.0": [AS_FLUX * 2 + request(HOST, TOKEN, version=b"HTTP/1.0")],
    "pipelined, HTTP/1.0 first": [request(HOST, TOKEN, version=b"HTTP/1.0") + AS_FLUX],
    "pipelined with ids": [b"".join(request(HOST, TOKEN, b"X-Request-Id: %d" % n) for n in range(20))],
    "pipelined, many": [PLAIN * 300],
    "pipelined, the second malformed": [PLAIN + request(HOST, TOKEN, b"bad line")],
    "pipelined, the second cut": [PLAIN + AS_FLUX[:-2]],
    "two request ids": [request(HOST, TOKEN, b"X-Request-Id: a", b"X-Request-Id: b")],
    "an empty request id": [request(HOST, TOKEN, b"X-Request-Id:")],
    "spaces around a request id": [request(HOST, TOKEN, b"X-Request-Id:   a-b  ")],
    "a request id of 128": [request(HOST, TOKEN, b"X-Request-Id: " + b"x" * 128)],
    "a request id of 129": [request(HOST, TOKEN, b"X-Request-Id: " + b"x" * 129)],
    "a decommissioned cluster": [request(HOST, TOKEN, target=GONE)],
    "spaces after a token": [request(HOST, TOKEN + b"   ")],
    "a space in a token": [request(HOST, TOKEN + b" x")],
    "basic, broken": [request(HOST, b"Authorization: Basic !!!")],
    "a minimal revision": [request(HOST, TOKEN, b"X-Min-Revision: 1")],
    "a return before the end of a value": [request(HOST, TOKEN, b"X: a\r")],
    "a return in the path, a newline in a value": [request(HOST, b"X: a\nb", TOKEN, target=PATH + b"\r")],
    "TLS on the plain port": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64],
    "nothing but newlines": [b"\r\n\r\n"],
}  # fmt: skip

ONE_CASES: dict[str, Sequence[bytes]] = {  # of one input
    "one": [request(HOST, TOKEN, target=ONE)],
    "one, as Flux": [AS_FLUX.replace(PATH, ONE)],
    "one, basic": [request(HOST, BASIC, target=ONE)],
    "one, by its own token": [request(HOST, BOUND, target=ONE)],
    "one, by the token of another cluster": [request(HOST, LOST, target=ONE)],
    "one, no token": [request(HOST, target=ONE)],
    "one, HEAD": [request(HOST, TOKEN, target=ONE, method=b"HEAD")],
    "one, POST": [request(HOST, TOKEN, target=ONE, method=b"POST")],
    "one, HTTP/1.0": [request(HOST, TOKEN, target=ONE, version=b"HTTP/1.0")],
    "one, with an id": [request(HOST, TOKEN, b"X-Request-Id: abc", target=ONE)],
    "one, pipelined with its view": [PLAIN + request(HOST, TOKEN, target=ONE) + AS_FLUX],
    "one, split in its id": [request(HOST, TOKEN, target=ONE)[:72], request(HOST, TOKEN, target=ONE)[72:]],
    "one, a proxy's headers": [request(HOST, TOKEN, *PROXY, target=ONE)],
    "one, a minimal revision": [request(HOST, TOKEN, b"X-Min-Revision: 1", target=ONE)],
    "one, a query": [request(HOST, TOKEN, target=ONE + b"?a=1")],
    "one, a fragment": [request(HOST, TOKEN, target=ONE + b"#x")],
    "one, a query before it": [request(HOST, TOKEN, target=PATH + b"?a/podinfo")],
    "one, percent encoded": [request(HOST, TOKEN, target=ONE.replace(b"/pod", b"/%70od"))],
    "one, its slash percent encoded": [request(HOST, TOKEN, target=ONE.replace(b"/pod", b"%2Fpod"))],
    "one, broken percent encoding": [request(HOST, TOKEN, target=ONE + b"%zz")],
    "one, percent encoded newline": [request(HOST, TOKEN, target=ONE + b"%0a")],
    "one, not UTF-8": [request(HOST, TOKEN, target=PATH + b"/%ff")],
    "one, in upper case": [request(HOST, TOKEN, target=PATH + b"/Podinfo")],
    "one, a slash behind it": [request(HOST, TOKEN, target=ONE + b"/")],
    "one, two slashes before it": [request(HOST, TOKEN, target=PATH + b"//podinfo")],
    "one, something behind it": [request(HOST, TOKEN, target=ONE + b"/x")],
    "one, parameters of a path": [request(HOST, TOKEN, target=ONE + b";x=1")],
    "one, not assigned": [request(HOST, TOKEN, target=PATH + b"/nobody")],
    "one, not assigned anywhere else": [request(HOST, TOKEN, target=OTHER + b"/podinfo")],
    "one, dots": [request(HOST, TOKEN, target=PATH + b"/..")],
    "one, of an unknown view": [request(HOST, TOKEN, target=PATH + b"x/podinfo")],
    "one, of an unknown dns": [request(HOST, TOKEN, target=NEVER + b"/podinfo")],
    "one, of no dns": [request(HOST, TOKEN, target=b"/api/v2/flux/clusters//namespaces/podinfo")],
    "one, decommissioned": [request(HOST, TOKEN, target=GONE + b"/podinfo")],
    "one, decommissioned, packed": [request(HOST, TOKEN, b"Accept-Encoding: gzip", target=GONE + b"/podinfo")],
    "one, decommissioned, dots": [request(HOST, TOKEN, target=GONE + b"/..")],
    "one, decommissioned, every plain sign": [request(HOST, TOKEN, target=GONE + b"/azAZ09._~-")],
    "one, decommissioned, every other sign": [request(HOST, TOKEN, target=GONE + b"/!$&'()*+,;=:@|^`{}[]<>\\\"")],
    "one, decommissioned, a slash": [request(HOST, TOKEN, target=GONE + b"/")],
    "one, decommissioned, a query": [request(HOST, TOKEN, target=GONE + b"/x?a=1")],
    "one, decommissioned, percent encoded": [request(HOST, TOKEN, target=GONE + b"/%70odinfo")],
    "one, decommissioned, percent encoded slash": [request(HOST, TOKEN, target=GONE + b"/a%2Fb")],
    "one, decommissioned, percent encoded newline": [request(HOST, TOKEN, target=GONE + b"/a%0A")],
    "one, decommissioned, broken percent encoding": [request(HOST, TOKEN, target=GONE + b"/a%")],
    "one, decommissioned, an unknown view": [request(HOST, TOKEN, target=GONE + b"x/podinfo")],
}  # fmt: skip


# Generated, from a seed: half of them polls as they come in production, and half with faults, cut and joined anywhere

_ONES = [ONE, ONE + b"/", ONE + b"?x", ONE[:-1], ONE.replace(b"/pod", b"/p%6Fd"), GONE + b"/%2e", GONE + b"/~", NEVER + b"/a"]
_OTHERS = [NEVER, PATH + b"?x", PATH + b"/", b"/health", PATH[:-1], b"http://h" + PATH, b"/clusters"]
_TARGETS = [PATH] * 9 + [ONE] * 3 + _ONES + _OTHERS
_METHODS = [b"GET"] * 20 + [b"HEAD", b"POST", b"get"]
_VERSIONS = [b"HTTP/1.1"] * 12 + [b"HTTP/1.1 ", b"HTTP/9", b"HTTP/1.2", b"http/1.1"]
_HOSTS = [[HOST]] * 15 + [[], [HOST, b"host: y"], [b"Host:"]]
_TOKENS = [[TOKEN]] * 8 + [[LOST], [TOKEN, TOKEN], [], [TOKEN + b"x"], [b"Authorization: x"], [b"Authorization: Basic x"]]
_ENCODINGS = [
    b"gzip", b"gzip, deflate, br", b"identity", b"*", b"gzip;q=0", b"gzip;q=0, *", b"x-gzip", b"br;q=1.0, gzip;q=0.8, *;q=0.1",
    b"", b"GZIP", b"gzip ; q=0.000",
]  # fmt: skip
_CONNECTIONS = [b"te", b"close, te", b"", b"upgrade", b"keep-alive, close"]
_FAULTS = [
    b"Content-Length: 0", b"Content-Length: 3", b"Transfer-Encoding: chunked", b" folded", b"bad line", b"Name : z", b": x",
    b"User-Agent: a\nX: b", b"User-Agent: a\rX: b", b"Expect: 100-continue", b"Accept:\x7f", b"Accept: \xff", b"X-\xe9: y",
    b"X: \0", b"Upgrade: h2c", b"Proxy-Connection: close", b"X-Request-Id: a b", b"X[1]: y", b"Connection: close",
    b"X-Request-Id: twice", b"accept-encoding: gzip", b"Range: bytes=0-1", b"Cookie: a=b", b'If-None-Match: "x"',
]  # fmt: skip
_BODIES = [b""] * 15 + [b"abc", b"0\r\n\r\n", b"\r\n"]


def generated(seed: int) -> list[bytes]:
    """What is sent on one connection, in packets."""
    chance = random.Random(seed)
    number, faulty = chance.choice([1, 1, 1, 2, 3]), chance.random() < 0.5
    stream = b"".join(_generated_request(chance, faulty, last=place == number - 1) for place in range(number))
    behind = [PLAIN] if chance.random() < 0.2 else []  # on a connection that may have come back to the fast path
    if chance.random() < 0.8:
        return [stream, *behind]
    cuts = sorted(chance.randrange(1, len(stream)) for _ in range(chance.choice([1, 1, 2])))
    return [part for part in (stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, None], strict=True)) if part] + behind


def _generated_request(chance: random.Random, faulty: bool, last: bool) -> bytes:
    some = chance.choice
    ends = last and chance.random() < 0.3
    lines = [HOST, some([TOKEN, TOKEN, BASIC, BOUND, BOUND_BASIC])]
    targets = [PATH, PATH, ONE, *([GONE, GONE + b"/x"] if TOKEN in lines else [PATH, ONE])]
    method, target, version, body = b"GET", some(targets), b"HTTP/1.1", b""
    if ends:
        version = some([version, b"HTTP/1.0"])
    optional: list[tuple[float, Callable[[], bytes]]] = [
        (0.6, lambda: b"Accept-Encoding: " + some(_ENCODINGS)),
        (0.4, lambda: b"Connection: " + some([b"close", b"Close", b"keep-alive"] if ends else [b"keep-alive", b"Keep-Alive"])),
        (0.4, lambda: b"X-Request-Id: %x" % chance.getrandbits(128)),
        (0.5, lambda: b"User-Agent: flux-operator/v0.58.1"),
        (0.3, lambda: b"Accept: application/json"),
        (0.1, lambda: b"X-Pad: " + b"x" * some([100, 4000, 20_000])),
    ]
    if faulty:
        lines = [*some(_HOSTS), *some(_TOKENS)]
        method, target, version, body = some(_METHODS), some(_TARGETS), some([version, *_VERSIONS]), some(_BODIES)
        optional += [(0.3, lambda: some(_FAULTS)), (0.1, lambda: b"Connection: " + some(_CONNECTIONS))]
    lines += chance.sample(PROXY[2:], some([0, 0, 2, 5, 9]))
    lines += [made() for likely, made in optional if chance.random() < likely]
    chance.shuffle(lines)
    lines = [_varied(chance, line, faulty) for line in lines]
    return request(*lines, method=method, target=target, version=version, body=body)


def _varied(chance: random.Random, line: bytes, faulty: bool) -> bytes:
    """In another case, with other spaces."""
    name, colon, value = line.partition(b": ")
    if not colon or chance.random() < 0.7:
        return line
    name = chance.choice([name, name.lower(), name.upper(), name.swapcase()])
    spaces = [b" ", b"", b"  ", b"\t"] if faulty else [b" ", b"", b"   "]
    after = b"" if name.lower() == b"x-request-id" and not faulty else chance.choice([b"", b"", *spaces])
    return name + b":" + chance.choice(spaces) + value + after
