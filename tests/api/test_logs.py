"""The log on stderr: JSON lines, one per mutation, and never a secret."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import live
from api.fleets import DEMO, DEMO_DNS, SEED, make, view


def lines(server: live.Server) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log.read_text().splitlines()]


@pytest.mark.long
def test_every_mutation_is_one_line_with_actor_and_revision_and_a_read_is_none(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api:
        start = len(lines(server))
        make(api, "namespaces", "logged")
        api.patch("/namespaces/logged", json={"labels": {"a": "1"}}, headers={"X-Reason": "why not", "X-Request-Id": "r-1"})
        api.patch("/namespaces/logged", json={"labels": {"a": "1"}})  # changes nothing
        api.get("/namespaces/logged")
        api.get(view(DEMO_DNS, "namespaces"))
        api.put(f"/clusters/{DEMO}/namespaces/logged", json={})
        api.post("/namespaces", json={"id": "Bad"})
        forced = {"op": "delete", "kind": "namespaces", "id": "logged", "force": True}
        api.post("/batch?dry_run=true", json={"operations": [forced]}).raise_for_status()  # a rehearsal, not worth a word
        api.delete("/namespaces/logged?force=true")
        found = lines(server)[start:]
    changed = [line for line in found if line["message"] == "changed"]
    assert [line["revision"] for line in changed] == [2, 3, 4, 5]
    assert {line["actor"] for line in changed} == {"write"}
    assert (changed[1]["reason"], changed[1]["request_id"]) == ("why not", "r-1")
    assert changed[3]["forced"] is True
    assert [line["level"] for line in found if line not in changed] == ["warning"]  # of the force


@pytest.mark.long
def test_debug_tells_of_every_request_polls_included(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED), LOG_LEVEL="debug") as server, server.client(live.READ) as client:
        for path in (view(DEMO_DNS, "namespaces"), "/nowhere", "/health"):  # the line of the last may still be on its way
            client.get(path)
        found = [(line["level"], line["route"], line["status"]) for line in lines(server) if line["message"] == "answered"]
    assert ("debug", view("{cluster_dns}", "namespaces"), 200) in found
    assert ("debug", "none", 404) in found


@pytest.mark.long
def test_no_secret_is_ever_logged_or_answered(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ci write third-secret\n")
    tokens.chmod(0o600)
    secrets = ("first-secret", "second-secret", "third-secret", "guessed-secret")
    answers = []
    settings = {"AUTH_TOKEN": secrets[0], "CRUD_AUTH_TOKEN": secrets[1], "TOKENS_FILE": str(tokens), "LOG_LEVEL": "debug"}
    with live.serving(tmp_path, SEED_FILE=str(SEED), **settings) as server, server.client(None) as client:
        for secret in secrets:
            coded = base64.b64encode(f"flux:{secret}".encode()).decode()
            for value in (f"Bearer {secret}", f"Basic {coded}", f"Token {secret}", secret):
                headers = {"Authorization": value}
                for method, path in (("GET", view(DEMO_DNS, "namespaces")), ("POST", "/namespaces"), ("GET", "/metrics")):
                    answers.append(client.request(method, path, headers=headers, content=b"{").text)
        tokens.write_text("ci write third-secret broken-secret line\n")
        client.get("/clusters")
        log = server.log.read_text()
    spoken = log + "".join(answers)
    assert "unauthorized" in spoken
    assert not [secret for secret in (*secrets, "broken-secret") if secret in spoken]
    assert base64.b64encode(b"flux:first-secret").decode() not in spoken


@pytest.mark.parametrize(
    ("setting", "levels"),
    [
        ({"LOG_LEVEL": "error"}, set()),
        ({"RUST_LOG": "warn"}, set()),
        ({"RUST_LOG": "info,hyper=debug"}, {"info"}),
        ({"LOG_LEVEL": "off", "RUST_LOG": "info"}, set()),
        ({"LOG_LEVEL": "loud"}, {"info", "warning"}),
    ],
    ids=lambda value: "-".join(sorted(value)),
)
def test_the_level_decides_what_is_said(tmp_path: Path, setting: dict[str, str], levels: set[str]) -> None:
    long = {"AUTH_TOKEN": "r" * 16, "CRUD_AUTH_TOKEN": "w" * 16}  # nothing to warn about
    with live.serving(tmp_path, STORE_BACKEND="memory", **long, **setting) as server, server.client("w" * 16) as api:
        make(api, "namespaces", "quiet")
        assert {line["level"] for line in lines(server)} == levels
