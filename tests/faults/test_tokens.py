"""A tokens file that cannot be read for a moment, is half-written, or is swapped: who may ask, and who may not any more."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import live
from api.fleets import DEMO_DNS, SEED
from api.test_authentication import write_tokens
from api.test_start_up import refused
from faults import sockets

pytestmark = pytest.mark.quick

OLD, NEW = "old-" + "0" * 28, "new-" + "1" * 28


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    write_tokens(tmp_path / "tokens", f"fleet read {OLD}\n")
    return tmp_path / "tokens"


@pytest.fixture
def server(tmp_path: Path, tokens: Path) -> Iterator[live.Server]:
    settings = {"AUTH_TOKEN": "", "CRUD_AUTH_TOKEN": "w" * 32, "TOKENS_FILE": str(tokens), "SEED_FILE": str(SEED)}
    with live.serving(tmp_path, **settings) as running:
        yield running


def polled(connection: socket.socket, *secrets: str) -> list[int]:
    """The statuses of polls as Flux sends them, on one open connection."""
    found = []
    for secret in secrets:
        connection.sendall(sockets.request(token=secret))
        found.append(sockets.answered(connection).status)
    return found


def eventually(connection: socket.socket, *statuses: int) -> None:
    """Sooner or later the old and the new token get these, although nobody touches anything any more."""
    deadline = time.monotonic() + 20
    while (found := polled(connection, OLD, NEW)) != list(statuses):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def complaints(server: live.Server) -> list[str]:
    lines = map(json.loads, server.log.read_text().splitlines())
    return [line["error"] for line in lines if "last good one stays in force" in line["message"]]


@pytest.mark.long
def test_a_file_that_cannot_be_opened_is_looked_at_again(server: live.Server, tokens: Path) -> None:
    with sockets.connected(server) as connection:
        assert polled(connection, OLD, NEW) == [200, 401]
        pid = server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, before[1]))  # what is open stays open
        write_tokens(tokens, f"fleet read {NEW}\n")
        for _ in range(50):
            assert polled(connection, OLD, NEW) == [200, 401]  # the last good ones
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        eventually(connection, 401, 200)
    (told,) = complaints(server)
    assert "Too many open files" in told
    assert "tokens re-read" in server.log.read_text()


def swap_with_directory(path: Path) -> Callable[[], None]:
    path.unlink()
    path.mkdir()

    def mend() -> None:
        partial = path.with_suffix(".new")
        write_tokens(partial, f"fleet read {NEW}\n")
        path.rmdir()
        partial.rename(path)

    return mend


def take_away(path: Path) -> Callable[[], None]:
    path.unlink()
    return lambda: write_tokens(path, f"fleet read {NEW}\n")


def open_to_all(path: Path) -> Callable[[], None]:
    write_tokens(path, f"fleet read {NEW}\n", mode=0o604)
    return lambda: path.chmod(0o600)


def write_half(path: Path) -> Callable[[], None]:
    """In place, and stopped in the middle of the secret."""
    text = f"fleet read {NEW}\n"
    path.write_text(text[:-12])

    def finish() -> None:
        with path.open("a") as file:
            file.write(text[-12:])

    return finish


def become_a_pipe(path: Path) -> Callable[[], None]:
    path.unlink()
    os.mkfifo(path, 0o600)
    return lambda: write_tokens(path, f"fleet read {NEW}\n")


BREAKS = [swap_with_directory, take_away, open_to_all, write_half, become_a_pipe]


@pytest.mark.parametrize("damage", BREAKS)
def test_a_broken_file_leaves_the_last_good_one_and_is_told_once(
    server: live.Server, tokens: Path, damage: Callable[[Path], Callable[[], None]]
) -> None:
    with sockets.connected(server) as connection:
        mend = damage(tokens)
        for _ in range(50):
            assert polled(connection, OLD, NEW, NEW[:-11]) == [200, 401, 401]
        mend()
        eventually(connection, 401, 200)
        assert polled(connection, NEW[:-11]) == [401]
    assert len(complaints(server)) == 1


def test_a_half_written_file_stops_the_start_with_the_remedy(tmp_path: Path) -> None:
    write_tokens(tmp_path / "tokens", f"fleet read {NEW[:-11]}")
    line = refused(tmp_path, TOKENS_FILE=str(tmp_path / "tokens"))
    assert "finish it with a newline" in line
    assert NEW[:8] not in line


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (f"edge write {NEW} {DEMO_DNS}", "make its role read, or take its fourth word away"),
        (f"edge read {NEW} Edge.Example.com", "must be a lower-case RFC 1123 DNS name"),
        (f"edge read {NEW} {DEMO_DNS} {DEMO_DNS}", "a line is `name role token`"),
    ],
)
def test_a_bad_binding_stops_the_start_and_leaves_the_last_good_file_in_force(
    server: live.Server, tokens: Path, tmp_path: Path, line: str, remedy: str
) -> None:
    with sockets.connected(server) as connection:
        write_tokens(tokens, f"fleet read {OLD}\n{line}\n")
        for _ in range(5):
            assert polled(connection, OLD, NEW) == [200, 401]
    (complaint,) = complaints(server)
    start = refused(tmp_path, TOKENS_FILE=str(tokens))
    for text in (complaint, start):
        assert f"TOKENS_FILE {tokens}:2: " in text
        assert remedy in text
        assert NEW not in text


def test_a_mounted_secret_is_followed_through_its_links(tmp_path: Path) -> None:
    """Kubernetes writes a new directory and turns one link; the path of the file itself never changes."""

    def mount(version: str, secret: str) -> None:
        (tmp_path / version).mkdir()
        write_tokens(tmp_path / version / "tokens", f"fleet read {secret}\n", mode=0o640)
        (tmp_path / "..data_tmp").symlink_to(version)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    mount("..v1", OLD)
    (tmp_path / "tokens").symlink_to("..data/tokens")
    settings = {"TOKENS_FILE": str(tmp_path / "tokens"), "SEED_FILE": str(SEED)}
    with live.serving(tmp_path, **settings) as server, sockets.connected(server) as connection:
        assert polled(connection, OLD, NEW) == [200, 401]
        mount("..v2", NEW)
        shutil.rmtree(tmp_path / "..v1")
        assert polled(connection, OLD, NEW) == [401, 200]
        assert complaints(server) == []


def test_short_and_shared_secrets_are_warned_about_by_name_only(tmp_path: Path) -> None:
    write_tokens(tmp_path / "tokens", f"ada read s3cr3t\nbob read {OLD}\nzoe write {OLD}\n")
    settings = {"AUTH_TOKEN": "s3cr3t-read", "CRUD_AUTH_TOKEN": "s3cr3t-write", "TOKENS_FILE": str(tmp_path / "tokens")}
    with live.serving(tmp_path, SEED_FILE=str(SEED), **settings) as server:
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    warned = [line["message"] for line in lines if line["level"] == "warning"]
    for name in ("AUTH_TOKEN has", "CRUD_AUTH_TOKEN has", "token 'ada' of TOKENS_FILE has"):
        assert any(message.startswith(f"{name} fewer than 16 characters") for message in warned)
    assert [line["tokens"] for line in lines if "several names" in line["message"]] == ["bob, zoe"]
    assert "s3cr3t" not in server.log.read_text()
