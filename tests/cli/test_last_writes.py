"""What is read after a write is not older than it, whichever replica answers; and nothing waits for what will never come."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pytest

import live
from cli.command import Cli


@pytest.fixture
def mine(server: live.Server, tmp_path: Path) -> Cli:
    """With a home of its own."""
    return Cli(tmp_path, server.url)


def files(cli: Cli) -> list[Path]:
    return list((cli.home / ".local" / "state").rglob("last-write-*"))


def asked(cli: Cli, *words: str) -> list[str]:
    """The X-Min-Revision of every request."""
    lines = cli.ok("--debug", *words).err.splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("> X-Min-Revision")]


def revision(api: httpx.Client) -> str:
    return str(api.get("/namespaces?limit=1").headers["x-revision"])


def test_reads_after_a_write_ask_for_its_revision(mine: Cli, api: httpx.Client) -> None:
    assert asked(mine, "namespace", "list") == []
    mine.ok("namespace", "create", "last-write-a")
    wanted = revision(api)
    assert set(asked(mine, "namespace", "list")) == {wanted}
    assert set(asked(mine, "namespace", "delete", "last-write-a", "--yes")) <= {wanted}
    assert set(asked(mine, "namespace", "list")) == {revision(api)}


def test_its_file_holds_no_token_and_is_for_its_owner_alone(mine: Cli) -> None:
    mine.ok("namespace", "create", "last-write-b")
    (file,) = files(mine)
    content = file.read_text()
    assert set(json.loads(content)) == {"server", "revision", "time"}
    assert not any(token in content for token in (live.READ, live.WRITE))
    assert file.stat().st_mode & 0o777 == 0o600
    mine.ok("namespace", "delete", "last-write-b", "--yes")


def test_it_is_remembered_for_this_server_and_for_five_minutes(mine: Cli, api: httpx.Client) -> None:
    mine.ok("namespace", "create", "last-write-c")
    (file,) = files(mine)
    content = json.loads(file.read_text())
    several: tuple[object, ...] = (
        {**content, "time": content["time"] - 301},
        {**content, "time": content["time"] + 3600},
        {**content, "server": "http://elsewhere"},
        {**content, "revision": "7"},
        {**content, "revision": -1},
        [],
    )
    for wrong in several:
        file.write_text(json.dumps(wrong))
        assert asked(mine, "namespace", "list") == []
    file.write_bytes(b"\xff")
    assert asked(mine, "namespace", "list") == []
    mine.ok("namespace", "delete", "last-write-c", "--yes")
    assert set(asked(mine, "namespace", "list")) == {revision(api)}


@pytest.mark.long
def test_a_server_that_is_behind_is_asked_again_with_a_warning(mine: Cli) -> None:
    mine.ok("namespace", "create", "last-write-d")
    (file,) = files(mine)
    file.write_text(json.dumps({**json.loads(file.read_text()), "revision": 10**9}))
    done = mine.ok("namespace", "list")
    assert "last-write-d" in done.out
    assert f"warning: the server has not come to revision {10**9}" in done.err
    assert not file.exists()
    assert "warning" not in mine.ok("namespace", "list").err
    mine.ok("namespace", "delete", "last-write-d", "--yes")


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_home_that_cannot_be_written_is_no_reason_to_fail(mine: Cli) -> None:
    (mine.home / ".local").write_text("no directory")
    mine.ok("namespace", "create", "last-write-e")
    mine.ok("namespace", "delete", "last-write-e", "--yes")
    without = mine.but(HOME=None)
    assert "podinfo" in without.ok("namespace", "list").out
