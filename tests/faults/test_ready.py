"""A server that is not ready tells strangers no more than that."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import live
from api.fleets import DEMO_DNS, SEED, assert_problem
from api.test_authentication import write_tokens
from flux_resourceset import errors

pytestmark = pytest.mark.quick

STRANGERS = (None, "Bearer wrong", "Basic !!!", "nonsense", f"Bearer {live.READ}x")


def not_ready(server: live.Server) -> list[str]:
    """What the log has about it."""
    lines = map(json.loads, server.log.read_text().splitlines())
    return [line["message"] for line in lines if line["message"].startswith("not ready")]


@pytest.mark.long
def test_only_a_token_shows_where_the_database_was(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client(None) as stranger:
        database = tmp_path / "fleet.db"
        os.rename(database, tmp_path / "away")
        for value in STRANGERS:
            headers = {"Authorization": value} if value else {}
            problem = assert_problem(stranger.get("/ready", headers=headers), 503, "unavailable")
            assert "log of the server" in problem["detail"]
            assert problem["title"] == errors.Doubt.title
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                for path in ("/health", "/ready", "/ready?x=1", "/openapi.yaml"):
                    answer = stranger.request(method, path, headers=headers)
                    assert answer.status_code != 401
                    assert "fleet.db" not in answer.text + str(answer.headers)
        (told,) = not_ready(server)
        assert str(database) in told
        for token in (live.READ, live.WRITE):
            answer = stranger.get("/ready", headers={"Authorization": f"Bearer {token}"})
            problem = assert_problem(answer, 503, "unavailable")
            assert str(database) in problem["detail"]
            assert problem["title"] == errors.Doubt.title
        os.rename(tmp_path / "away", database)
        assert stranger.get("/ready").status_code == 200
        os.rename(database, tmp_path / "away")
        assert stranger.get("/ready").status_code == 503
        assert len(not_ready(server)) == 2


def test_a_token_of_a_cluster_is_told_no_more_than_a_stranger(tmp_path: Path) -> None:
    bound = "bound-" + "b" * 32
    write_tokens(tmp_path / "tokens", f"demo read {bound} {DEMO_DNS}\n")
    with live.serving(tmp_path, SEED_FILE=str(SEED), TOKENS_FILE=str(tmp_path / "tokens")) as server:
        os.rename(tmp_path / "fleet.db", tmp_path / "away")
        with server.client(bound) as cluster, server.client(None) as stranger:
            problems = [assert_problem(client.get("/ready"), 503, "unavailable") for client in (cluster, stranger)]
        assert problems[0]["detail"] == problems[1]["detail"]
        assert "fleet.db" not in problems[0]["detail"]


def test_a_reader_without_a_database_names_no_file_either(tmp_path: Path) -> None:
    with live.serving(tmp_path, "/health", API_MODE="read-only") as server, server.client(None) as stranger:
        assert "fleet.db" not in assert_problem(stranger.get("/ready"), 503, "unavailable")["detail"]
        assert "fleet.db" in not_ready(server)[0]
