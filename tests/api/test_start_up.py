"""Starting: what stops a server, in one plain line and exit code 2; seeds; the settings that are enough."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
import zygote
from api import fleets
from api.fleets import DEMO, SEED, inputs


def refused(directory: Path, **overrides: str) -> str:
    """The one line with which a server refuses to start; an empty setting is left out altogether."""
    env = {name: value for name, value in live.environment(directory, **overrides).items() if value}
    done = zygote.run(zygote.SERVER, [], env, directory)
    told = done.stderr.decode()
    assert done.returncode == 2, told
    assert "Traceback" not in told
    assert done.stdout == b""
    line = told.rstrip("\n").splitlines()[-1]
    assert line.startswith("flux-resourceset: ")
    return line


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"AUTH_TOKEN": ""}, "AUTH_TOKEN"),
        ({"API_MODE": "readonly"}, "API_MODE"),
        ({"STORE_BACKEND": "redis"}, "STORE_BACKEND"),
        ({"DATABASE_URL": "postgres-no://x"}, "DATABASE_URL"),
        ({"DATABASE_URL": "sqlite://x.db?mode=wrong"}, "DATABASE_URL"),
        ({"DATABASE_URL": "sqlite://missing.db?mode=rw"}, "missing.db"),
        ({"DATABASE_URL": "sqlite://a%00b.db"}, "DATABASE_URL"),
        ({"DATABASE_URL": f"sqlite://{'x' * 300}.db"}, "cannot be reached"),
        ({"SEED_FILE": "x" * 300}, "cannot be read"),
        ({"LISTEN_ADDR": "nowhere"}, "LISTEN_ADDR"),
        ({"SEED_FILE": "absent.json"}, "absent.json"),
        ({"TOKENS_FILE": "absent.tokens"}, "absent.tokens"),
        ({"RESOURCES_DIR": "absent"}, "absent"),
        ({"OPENAPI_FILE": "absent.yaml"}, "absent.yaml"),
        ({"ENVIRONMENTS": "Dev"}, "ENVIRONMENTS"),
    ],
    ids=str,
)
def test_a_wrong_setting_stops_the_start_and_is_named(tmp_path: Path, overrides: dict[str, str], named: str) -> None:
    assert named in refused(tmp_path, **overrides)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"openapi: 3.0.3\npaths: [a\n", "own.yaml:3: invalid YAML"),
        (b"\x00\xff", "own.yaml:1: invalid YAML"),
        (b"a: 1\n---\nb: 2\n", "own.yaml:2: invalid YAML"),
        (b"a: !!python/name:os.system x\n", "own.yaml:1: invalid YAML"),
        (b"Not a document at all.\n", "this is no OpenAPI document"),
        (b"", "this is no OpenAPI document"),
    ],
    ids=repr,
)
def test_an_openapi_file_that_is_no_document_stops_the_start_with_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "own.yaml").write_bytes(content)
    line = refused(tmp_path, OPENAPI_FILE=str(tmp_path / "own.yaml"))
    assert line.startswith("flux-resourceset: OPENAPI_FILE ")
    assert said in line


def test_a_busy_port_stops_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert address in refused(tmp_path, LISTEN_ADDR=address)


def test_a_tokens_file_that_others_can_read_stops_the_start(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ci write hidden-secret\n")
    tokens.chmod(0o644)
    line = refused(tmp_path, TOKENS_FILE=str(tokens))
    assert "TOKENS_FILE" in line
    assert "hidden-secret" not in line


def test_a_tokens_file_without_a_token_stops_the_start(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("# nobody yet\n")
    tokens.chmod(0o600)
    line = refused(tmp_path, AUTH_TOKEN="", CRUD_AUTH_TOKEN="", TOKENS_FILE=str(tokens))
    assert line == "flux-resourceset: no token is known; set AUTH_TOKEN or add one to TOKENS_FILE"


def test_a_database_that_is_damaged_or_another_programs_stops_a_writer(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"not a database, but long enough to be looked at" * 100)
    assert "garbage.db" in refused(tmp_path, DATABASE_URL=f"sqlite://{garbage}")
    assert garbage.read_bytes().startswith(b"not a database")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    assert "other.db" in refused(tmp_path, DATABASE_URL=f"sqlite://{tmp_path}/other.db")


def test_a_bad_kind_file_stops_the_start_with_file_and_line(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "bad.yaml").write_text("kind: things\napiVersion: v1\nschema:\n  type: array\n  surprise: 1\n")
    assert "bad.yaml:3: schema: " in refused(tmp_path, RESOURCES_DIR=str(kinds))
    (kinds / "bad.yaml").write_text("")
    assert "bad.yaml:1" in refused(tmp_path, RESOURCES_DIR=str(kinds))


# Seeds


@pytest.mark.long
def test_a_bad_seed_names_every_violation_and_leaves_the_store_empty(tmp_path: Path) -> None:
    seed = tmp_path / "bad.json"
    bad: dict[str, list[Any]] = {
        "clusters": [fleets.cluster("one", environment="prd"), fleets.cluster("two", namespaces=[{"id": "ghost"}])],
        "namespaces": [{"id": "kube-system"}],
    }
    seed.write_text(json.dumps(bad))
    line = refused(tmp_path, SEED_FILE=str(seed))
    assert all(word in line for word in ("one", "/environment", "kube-system", "/id"))
    seed.write_text(json.dumps({**bad, "clusters": bad["clusters"][1:], "namespaces": []}))
    assert "/namespaces/0/id" in refused(tmp_path, SEED_FILE=str(seed))
    seed.write_text("{")
    assert "bad.json" in refused(tmp_path, SEED_FILE=str(seed))
    with live.serving(tmp_path) as server, server.client() as api:
        assert (api.get("/clusters").json(), api.get("/changes").json()) == ([], [])


def test_a_seed_is_loaded_once_in_one_transaction_and_never_over_data(tmp_path: Path) -> None:
    seed = tmp_path / "own.json"
    seed.write_text(json.dumps({"namespaces": [{"_id": "first"}, {"id": "second"}]}))
    with live.serving(tmp_path, SEED_FILE=str(seed)) as server, server.client() as api:
        (entry,) = api.get("/changes").json()
        assert (entry["revision"], len(entry["changes"])) == (1, 2)
        api.delete("/namespaces/first")
    with live.serving(tmp_path, SEED_FILE=str(seed)) as server, server.client() as api:
        assert [found["id"] for found in api.get("/namespaces").json()] == ["second"]
        assert len(api.get("/changes").json()) == 2


def test_an_emptied_store_is_not_seeded_again(tmp_path: Path) -> None:
    seed = tmp_path / "own.json"
    seed.write_text(json.dumps({"namespaces": [{"id": "only"}]}))
    for expected in (["only"], []):
        with live.serving(tmp_path, SEED_FILE=str(seed)) as server, server.client() as api:
            assert [found["id"] for found in api.get("/namespaces").json()] == expected
            api.delete("/namespaces/only")


# The least that is needed


@pytest.fixture
def demo_directory(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "seed.json").write_bytes(SEED.read_bytes())
    return tmp_path


def start_with(directory: Path, env: dict[str, str]) -> live.Server:
    return live.Server(directory, {"PATH": os.environ["PATH"], "LISTEN_ADDR": f"127.0.0.1:{live.free_port()}", **env})


@pytest.mark.long
@pytest.mark.usefixtures("both_ways")
def test_the_documented_crud_line_is_enough_and_seeds_the_default_file(demo_directory: Path) -> None:
    env = {"API_MODE": "crud", "AUTH_TOKEN": "read-token", "CRUD_AUTH_TOKEN": "write-token"}
    server = start_with(demo_directory, env)
    try:
        server.wait("/ready")
        with server.client() as api:
            assert [found["id"] for found in api.get("/clusters").json()] == [DEMO]
            assert len(inputs(api, fleets.DEMO_DNS)) == 3
    finally:
        assert server.stop() == 0
    database = demo_directory / "data" / "flux-resourceset.db"
    assert database.stat().st_mode & 0o777 == 0o600


def test_the_documented_read_only_line_is_enough_and_creates_nothing(demo_directory: Path) -> None:
    server = start_with(demo_directory, {"AUTH_TOKEN": "read-token"})
    try:
        server.wait("/health")
        assert httpx.get(server.url + "/ready").status_code == 503
    finally:
        assert server.stop() == 0
    assert [path.name for path in (demo_directory / "data").iterdir()] == ["seed.json"]


@pytest.mark.long
def test_the_memory_store_is_seeded_leaves_no_file_and_forgets(demo_directory: Path) -> None:
    for _ in range(2):
        server = start_with(demo_directory, {"API_MODE": "crud", "AUTH_TOKEN": live.WRITE, "STORE_BACKEND": "memory"})
        try:
            server.wait("/ready")
            with server.client() as api:
                assert [found["id"] for found in api.get("/clusters").json()] == [DEMO]
                fleets.make(api, "namespaces", "forgotten")
        finally:
            assert server.stop() == 0
    assert [path.name for path in (demo_directory / "data").iterdir()] == ["seed.json"]


def test_secret_looking_keys_are_allowed_by_name(tmp_path: Path) -> None:
    allowed = {"SEED_FILE": str(SEED), "ALLOW_SECRET_LIKE_KEYS": "db.password, apiKey"}
    with live.serving(tmp_path, **allowed) as server, server.client() as api:
        path = f"/clusters/{DEMO}/patches/podinfo"
        assert api.patch(path, json={"db.password": "x", "apiKey": "y"}).status_code == 200
        assert fleets.pointers(api.patch(path, json={"password": "x"})) == {"/password"}


def test_environments_can_be_named(tmp_path: Path) -> None:
    with live.serving(tmp_path, STORE_BACKEND="memory", ENVIRONMENTS="lab,edge") as server, server.client() as api:
        fleets.make(api, "clusters", environment="edge")
        assert fleets.pointers(api.post("/clusters", json=fleets.cluster("x"))) == {"/environment"}
        assert api.get("/clusters?environment=dev").status_code == 422
