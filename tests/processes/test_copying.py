"""The command copy-store, from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

import live
import postgres_server
import zygote

pytestmark = [pytest.mark.long, pytest.mark.sqlite]

CLUSTER = {"id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "dev"}


def run(directory: Path, *words: str, **environment: str) -> tuple[int, str]:
    with (directory / "command.log").open("w+b") as log, open("/dev/null", "rb") as nothing:
        process = zygote.start(zygote.SERVER, words, live.environment(directory) | environment, directory, nothing, log, log)
        code = process.wait(60)
        log.seek(0)
        return code, log.read().decode()


@pytest.fixture
def source(tmp_path: Path) -> str:
    """The URL of a store with a cluster."""
    with live.serving(tmp_path) as server, server.client() as client:
        assert client.post("/clusters", json=CLUSTER).status_code == 201
    return f"sqlite://{tmp_path}/fleet.db"


def ids(directory: Path, url: str) -> list[str]:
    with live.serving(directory, DATABASE_URL=url) as server, server.client() as client:
        return [cluster["id"] for cluster in client.get("/clusters").json()]


def test_a_copy_serves_the_same_fleet(tmp_path: Path, source: str) -> None:
    target = f"sqlite://{tmp_path}/copy/fleet.db"
    code, said = run(tmp_path, "copy-store", source, target)
    assert (code, said) == (0, f"copied 1 documents with the log up to revision 1 to {target}\n")
    assert ids(tmp_path, target) == ["one"]


def test_a_fleet_moves_to_postgresql_and_back(tmp_path: Path, source: str) -> None:
    back = f"sqlite://{tmp_path}/back/fleet.db"
    with postgres_server.shared().database() as target:
        assert run(tmp_path, "copy-store", source, target)[0] == 0
        assert ids(tmp_path, target) == ["one"]
        assert run(tmp_path, "copy-store", target, back)[0] == 0
    assert ids(tmp_path, back) == ["one"]


def test_a_copy_into_a_filled_store_has_to_be_asked_for(tmp_path: Path, source: str) -> None:
    target = f"sqlite://{tmp_path}/copy/fleet.db"
    assert run(tmp_path, "copy-store", source, target)[0] == 0
    code, said = run(tmp_path, "copy-store", source, target)
    assert (code, said.count("\n")) == (6, 1)
    assert "--replace" in said
    assert run(tmp_path, "copy-store", source, target, "--replace")[0] == 0
    assert ids(tmp_path, target) == ["one"]


WRONG = {
    "no source": ("sqlite://{}/missing.db", "sqlite://{}/new.db", "there is no database at"),
    "no URL": ("fleet.db", "sqlite://{}/new.db", "FROM_URL is 'fleet.db'"),
    "memory": ("memory://", "sqlite://{}/new.db", "FROM_URL is memory://"),
    "into memory": ("sqlite://{}/fleet.db", "memory://", "TO_URL is memory://"),
    "itself": ("sqlite://{}/fleet.db", "sqlite://{}/./fleet.db?mode=rw", "are the same store"),
    "a password": ("sqlite://{}/fleet.db", "postgresql://me:hush@127.0.0.1/new", "TO_URL holds a password"),
    "a password in a parameter": ("sqlite://{}/fleet.db", "postgresql://127.0.0.1/new?password=hush", "DATABASE_PASSWORD_FILE"),
}


@pytest.mark.parametrize(("there", "here", "why"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_copied_is_refused_in_one_line(tmp_path: Path, source: str, there: str, here: str, why: str) -> None:
    code, said = run(tmp_path, "copy-store", there.format(tmp_path), here.format(tmp_path))
    assert (code, said.count("\n")) == (2, 1)
    assert why in said
    assert "hush" not in said
    assert not (tmp_path / "new.db").exists()


def test_the_same_file_by_another_name_is_the_same_store(tmp_path: Path, source: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    code, said = run(tmp_path, "copy-store", source, f"sqlite://{tmp_path}/link/fleet.db", "--replace")
    assert (code, "are the same store" in said) == (2, True)
    assert ids(tmp_path, source) == ["one"]
