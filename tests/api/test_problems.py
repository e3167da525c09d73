"""Every error on every route has one shape, and every answer a request id."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

import httpx
import pytest
import yaml

import live
from api.fleets import DEMO, DEMO_DNS, KINDS, VIEWS, assert_problem, view

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ROUTES = (
    "/health",
    "/ready",
    "/openapi.yaml",
    "/metrics",
    "/api/v2/flux/clusters",
    *(view(dns, name) for name in VIEWS for dns in (DEMO_DNS, "never.example.com")),
    *(f"/{kind}" for kind in KINDS),
    *(f"/{kind}/{id}" for kind in KINDS for id in ("nobody", "Not An Id")),
    *(f"/clusters/{DEMO}/{part}/nobody" for part in ("platform_components", "namespaces", "rolebindings", "patches")),
    *(f"/clusters/nobody/{part}/nobody" for part in ("platform_components", "namespaces", "rolebindings", "patches")),
    "/changes",
    "/changes/0",
    "/nothing/here",
    "/",
)
TOKENS = {"none": None, "wrong": "wrong", "read": live.READ, "write": live.WRITE}


@pytest.fixture(scope="module")
def routes(stranger: httpx.Client) -> list[str]:
    """Those above, and every one that the server documents."""
    documented = yaml.load(stranger.get("/openapi.yaml").text, Loader=yaml.CSafeLoader)["paths"]
    return sorted({*ROUTES, *(re.sub(r"\{\w+\}", "nobody", template) for template in documented)})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("token", TOKENS)
def test_every_error_on_every_route_has_the_same_shape(server: live.Server, routes: list[str], method: str, token: str) -> None:
    with server.client(TOKENS[token]) as client:
        for path in routes:
            # an unknown parameter, and no body: whatever can be wrong here, is
            response = client.request(method, path + "?unknown=1", headers={"X-Request-Id": "shape-1"})
            assert response.status_code < 500, (path, response.text)
            assert response.headers["x-request-id"] == "shape-1"
            if response.status_code < 400:
                continue
            assert response.headers["content-type"] == "application/problem+json", path
            if method == "HEAD":
                assert response.content == b""
                continue
            problem = assert_problem(response, response.status_code)
            assert problem["type"].endswith(problem["code"])
            if response.status_code == 401:
                assert "www-authenticate" in response.headers
            if response.status_code == 405:
                assert method not in response.headers["allow"].split(", ")


ALLOWED = {
    "/health": "GET, HEAD",
    "/metrics": "GET, HEAD",
    "/changes": "GET, HEAD",
    "/changes/1": "GET, HEAD",
    "/clusters": "GET, HEAD, POST",
    f"/clusters/{DEMO}": "DELETE, GET, HEAD, PATCH, PUT",
    f"/clusters/{DEMO}/namespaces/x": "DELETE, GET, HEAD, PATCH, PUT",
    f"/clusters/{DEMO}/patches/x": "DELETE, GET, HEAD, PATCH, PUT",
}


@pytest.mark.parametrize("path", ALLOWED)
def test_a_wrong_method_is_told_the_right_ones(api: httpx.Client, path: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        if method not in ALLOWED[path]:
            response = api.request(method, path, json={})
            assert_problem(response, 405, "method-not-allowed")
            assert response.headers["allow"] == ALLOWED[path]


@pytest.mark.parametrize("id", ["abc", "a" * 128, "550e8400-e29b-41d4-a716-446655440000"])
def test_a_usable_request_id_is_echoed_and_recorded(api: httpx.Client, id: str) -> None:
    response = api.get("/clusters/nobody", headers={"X-Request-Id": id})
    assert (response.headers["x-request-id"], response.json()["request_id"]) == (id, id)


@pytest.mark.parametrize("id", ["", "a b", "a" * 129, '"quoted"', "<script>", "a\tb"])
def test_an_unusable_request_id_is_replaced(api: httpx.Client, id: str) -> None:
    response = api.get("/health", headers={"X-Request-Id": id})
    assert re.fullmatch(r"[0-9a-f]{32}", response.headers["x-request-id"])


def test_without_a_request_id_each_answer_gets_its_own(api: httpx.Client) -> None:
    assert len({api.get("/health").headers["x-request-id"] for _ in range(3)}) == 3


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"NONSENSE\r\n\r\n",
        b"BREW /clusters HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /clusters/\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nBroken Name: x\r\n\r\n",
        b"POST /clusters HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /clusters HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET /health?" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
    ids=lambda sent: sent[:30].decode("latin-1").split("\r")[0],
)
def test_even_what_is_no_http_is_answered_with_a_problem(server: live.Server, request_bytes: bytes) -> None:
    with socket.create_connection(server.address, timeout=10) as connection:
        connection.sendall(request_bytes)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/problem+json" in head
    assert json.loads(body)["code"] == "bad-request"


UNFINISHED = (
    f"POST /namespaces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {live.WRITE}\r\nContent-Type: application/json\r\n".encode()
)


@pytest.mark.thorough  # it waits for the server's patience to end
@pytest.mark.parametrize(
    "more",
    [b"", b"Content-Length: 20\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n"],
    ids=["head", "body", "chunks"],
)
def test_a_request_that_never_ends_is_given_up_with_a_problem(server: live.Server, more: bytes) -> None:
    with socket.create_connection(server.address, timeout=60) as connection:
        connection.sendall(UNFINISHED + more)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(body)["code"] == "request-timeout"


def test_a_client_that_leaves_in_the_middle_is_no_failure_of_the_server(tmp_path: Path) -> None:
    with live.serving(tmp_path) as server, server.client() as api:
        with socket.create_connection(server.address, timeout=10) as connection:
            connection.sendall(UNFINISHED + b"Content-Length: 20\r\n\r\n{")
        deadline = time.monotonic() + 10
        while 'status="499"' not in api.get("/metrics").text:
            assert time.monotonic() < deadline, "the server has not noticed"
        assert "Traceback" not in server.log.read_text()
        assert api.get("/namespaces").json() == []
