"""Who may call what: tokens, methods and modes; named tokens and their rotation without a restart."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import DEMO, DEMO_DNS, KINDS, SEED, assert_problem, fresh, make, view

pytestmark = pytest.mark.usefixtures("both_ways")

FLUX = view(DEMO_DNS, "namespaces")
READS = (
    FLUX,
    "/api/v2/flux/clusters",
    "/metrics",
    *(f"/{kind}" for kind in KINDS),
    f"/clusters/{DEMO}",
    "/changes",
    "/changes/1",
)
MUTATIONS = (
    ("POST", "/clusters"),
    ("PUT", f"/clusters/{DEMO}"),
    ("PATCH", f"/clusters/{DEMO}"),
    ("DELETE", f"/clusters/{DEMO}"),
    ("PUT", f"/clusters/{DEMO}/namespaces/podinfo"),
    ("DELETE", f"/clusters/{DEMO}/platform_components/podinfo"),
    ("PATCH", f"/clusters/{DEMO}/patches/podinfo"),
)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_a_rehearsal_of_a_batch_takes_the_read_token_and_the_batch_itself_does_not(stranger: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {live.READ}"}
    body = {"operations": [{"op": "create", "kind": "namespaces", "id": "rehearsed", "document": {}}]}
    assert stranger.post("/batch?dry_run=true", json=body, headers=headers).status_code == 200
    for path in ("/batch", "/batch?dry_run=false", "/batch?dry_run=true&dry_run=false"):
        assert_problem(stranger.post(path, json=body, headers=headers), 403, "forbidden")
    assert stranger.get("/namespaces/rehearsed", headers=headers).status_code == 404


@pytest.mark.parametrize("path", READS)
def test_every_read_takes_either_token_and_nothing_less(stranger: httpx.Client, path: str) -> None:
    for token in (live.READ, live.WRITE):
        assert stranger.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        response = stranger.get(path, headers=headers)
        assert_problem(response, 401, "unauthorized")
        assert "Bearer" in response.headers["www-authenticate"]


@pytest.mark.parametrize(("method", "path"), MUTATIONS)
def test_every_mutation_takes_the_write_token_alone(api: httpx.Client, reader: httpx.Client, method: str, path: str) -> None:
    before = api.get("/clusters").content
    assert_problem(reader.request(method, path, json={}), 403, "forbidden")
    assert_problem(api.request(method, path, headers={"Authorization": "Bearer wrong"}), 401)
    assert api.get("/clusters").content == before


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        live.READ,
        f"Token {live.READ}",
        f"Bearer {live.READ}x",
        f"Bearer {live.READ[:-1]}",
        f"Bearer {live.READ.upper()}",
        f"Bearer {live.READ}, Bearer {live.READ}",
        f"Bearer{live.READ}",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(live.READ.encode()).decode(),
        basic(live.READ, ""),
        basic("flux", "wrong"),
        f"Basic {live.READ}",
    ],
)
def test_other_credentials_are_refused(stranger: httpx.Client, value: str) -> None:
    assert_problem(stranger.get(FLUX, headers={"Authorization": value}), 401, "unauthorized")


@pytest.mark.parametrize("value", [f"bearer {live.READ}", f"BEARER  {live.READ}", basic("flux", live.READ), basic("", live.READ)])
def test_the_scheme_has_any_case_and_basic_carries_the_token_as_password(stranger: httpx.Client, value: str) -> None:
    assert stranger.get(FLUX, headers={"Authorization": value}).status_code == 200


def test_two_authorization_headers_are_refused_even_if_both_are_good(stranger: httpx.Client) -> None:
    headers = [("Authorization", f"Bearer {live.READ}"), ("Authorization", f"Bearer {live.READ}")]
    assert_problem(stranger.get(FLUX, headers=headers), 401)


def test_a_token_in_the_query_string_counts_for_nothing(stranger: httpx.Client) -> None:
    assert_problem(stranger.get(FLUX, params={"token": live.READ, "access_token": live.READ}), 401)


@pytest.mark.parametrize("path", ["/health", "/ready", "/openapi.yaml", "/openapi.json"])
@pytest.mark.parametrize("value", [None, "Bearer wrong", f"Bearer {live.READ}"])
def test_the_public_paths_ask_for_no_token_and_ignore_one(stranger: httpx.Client, path: str, value: str | None) -> None:
    assert stranger.get(path, headers={"Authorization": value} if value else {}).status_code == 200


@pytest.mark.parametrize("path", ["/nothing", "/clusters/nobody", view("never.example.com", "namespaces"), "/", "/health/"])
def test_nothing_about_a_path_is_revealed_without_a_token(stranger: httpx.Client, reader: httpx.Client, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        assert_problem(stranger.request(method, path), 401)
    assert_problem(reader.delete(path), 403)
    assert_problem(reader.get(path), 404)


def test_a_refused_body_is_not_even_looked_at(stranger: httpx.Client, reader: httpx.Client) -> None:
    assert_problem(stranger.post("/clusters", content=b"{" * 2_000_000), 401)
    assert_problem(reader.post("/clusters", content=b"{" * 2_000_000), 403)


# Without a write token of its own


def test_without_a_write_token_the_read_token_writes_and_the_log_warns(tmp_path: Path) -> None:
    with live.serving(tmp_path, CRUD_AUTH_TOKEN="", STORE_BACKEND="memory") as server, server.client(live.READ) as api:
        make(api, "namespaces", "written")
        assert api.get("/changes/1").json()["actor"] == "write"
        warnings = [line for line in server.log.read_text().splitlines() if json.loads(line)["level"] == "warning"]
        assert any("CRUD_AUTH_TOKEN" in line for line in warnings)


# A read-only server


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    directory = tmp_path_factory.mktemp("read-only")
    with live.serving(directory, API_MODE="read-only", STORE_BACKEND="memory", SEED_FILE=str(SEED)) as server:
        yield server


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_read_only_server_has_no_crud_routes(read_only: live.Server, method: str) -> None:
    with read_only.client(live.READ) as client:
        paths = ["/clusters", f"/clusters/{DEMO}", f"/clusters/{DEMO}/namespaces/podinfo", "/changes", "/namespaces/x"]
        for path in paths:
            assert_problem(client.request(method, path), 404, "not-found")
        assert len(client.get(FLUX).json()["inputs"]) == 3


def test_a_read_only_server_knows_no_write_token(read_only: live.Server) -> None:
    with read_only.client(live.WRITE) as client:
        for path in (FLUX, "/metrics", "/clusters"):
            assert_problem(client.get(path), 401)
    with read_only.client(live.READ) as client:
        assert client.get("/metrics").status_code == 200


# Named tokens


def write_tokens(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace the file as a mounted Secret would be replaced."""
    partial = path.with_suffix(".new")
    partial.write_text(text)
    partial.chmod(mode)
    os.replace(partial, path)


@pytest.mark.long
def test_named_tokens_are_rotated_with_an_overlap_and_without_a_restart(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    write_tokens(tokens, "# who    role  token\nci write old\n\ndash read dashboard # a comment\n")
    with live.serving(tmp_path, TOKENS_FILE=str(tokens), AUTH_TOKEN="", CRUD_AUTH_TOKEN="", SEED_FILE=str(SEED)) as server:
        ask = {token: server.client(token) for token in ("old", "new", "dashboard")}

        def statuses() -> list[int]:
            return [ask[token].get(FLUX).status_code for token in ask]

        assert statuses() == [200, 401, 200]
        make(ask["old"], "namespaces", fresh("by-ci"))
        assert ask["old"].get("/changes?limit=1").json()[0]["actor"] == "ci"
        assert_problem(ask["dashboard"].post("/namespaces", json={"id": "x"}), 403)
        write_tokens(tokens, "ci write old\nci write new\ndash read dashboard\n")
        assert statuses() == [200, 200, 200]
        write_tokens(tokens, "ci write new\ndash read dashboard\n")
        assert statuses() == [401, 200, 200]
        for broken in ("ci admin new\n", "just two\n", "", "ci write new extra\n"):
            write_tokens(tokens, broken)
            assert statuses() == [401, 200, 200]
        write_tokens(tokens, "ci write stolen\n", mode=0o644)
        assert statuses() == [401, 200, 200]
        tokens.unlink()
        assert statuses() == [401, 200, 200]
        assert server.log.read_text().count("the last good one stays in force") == 6
        write_tokens(tokens, "# nobody\n")
        assert statuses() == [401, 401, 401]
        for client in ask.values():
            client.close()


def test_polls_on_an_open_connection_follow_the_rotation(tmp_path: Path) -> None:
    """The fast path remembers who was verified; it must forget them with their tokens."""
    tokens = tmp_path / "tokens"
    write_tokens(tokens, "flux read first\n")
    with live.serving(tmp_path, TOKENS_FILE=str(tokens), SEED_FILE=str(SEED)) as server, server.client("first") as client:
        assert [client.get(FLUX).status_code for _ in range(3)] == [200] * 3
        write_tokens(tokens, "flux read second\n")
        assert client.get(FLUX).status_code == 401
        assert client.get(FLUX, headers={"Authorization": f"Bearer {live.READ}"}).status_code == 200
