"""Git over HTTP on loopback: what real git gets and sends, in every way that Flux's own client may ask too."""

from __future__ import annotations

import gzip
import http.client
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import git_server
from .git_server import GitServer, git

NAME = "acme-fleet-config"


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[GitServer]:
    with git_server.serving(tmp_path) as running:
        yield running


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    tree = git_server.init(tmp_path / "work")
    git_server.commit(tree, {"fleet.yaml": "environments: []\n"}, "first")
    git(tree, "tag", "v1.0.0")
    return tree


def pkt(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def post(forge: GitServer, body: bytes, headers: dict[str, str], *, chunked: bool = False) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", forge.port, timeout=30)
    try:
        sent: object = iter([body[:7], body[7:]]) if chunked else body
        content_type = {"Content-Type": "application/x-git-upload-pack-request"}
        connection.request("POST", f"/{NAME}.git/git-upload-pack", sent, content_type | headers, encode_chunked=chunked)  # type: ignore[arg-type]
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("version", ["0", "1", "2"])
def test_a_clone_has_branch_tag_and_files_in_every_protocol_version(
    forge: GitServer, work_tree: Path, tmp_path: Path, version: str
) -> None:
    url = forge.create(NAME, work_tree)
    git(tmp_path, "-c", f"protocol.version={version}", "clone", "--quiet", url, "clone")
    assert (tmp_path / "clone" / "fleet.yaml").read_text() == "environments: []\n"
    assert git(tmp_path / "clone", "rev-parse", "HEAD", "v1.0.0^{commit}").split() == [
        forge.head(NAME),
        forge.head(NAME, "v1.0.0"),
    ]
    assert git(tmp_path / "clone", "symbolic-ref", "--short", "HEAD") == "main"


def test_a_shallow_clone_of_a_tag_has_that_commit_alone(forge: GitServer, work_tree: Path, tmp_path: Path) -> None:
    git_server.commit(work_tree, {"fleet.yaml": "environments: [{name: dev}]\n"}, "second")
    url = forge.create(NAME, work_tree)
    git(tmp_path, "clone", "--quiet", "--depth=1", "--single-branch", "--branch=v1.0.0", url, "clone")
    assert git(tmp_path / "clone", "rev-list", "--all", "HEAD") == git(work_tree, "rev-parse", "v1.0.0")


def test_a_push_arrives_with_the_next_fetch(forge: GitServer, work_tree: Path, tmp_path: Path) -> None:
    url = forge.create(NAME, work_tree)
    git(tmp_path, "clone", "--quiet", url, "clone")
    pushed = git_server.commit(work_tree, {"dev/a.yaml": "a: 1\n", "fleet.yaml": None}, "second")
    forge.push(NAME, work_tree)
    assert forge.head(NAME) == pushed
    git(tmp_path / "clone", "fetch", "--quiet")
    assert git(tmp_path / "clone", "rev-parse", "origin/main") == pushed
    assert git(tmp_path / "clone", "ls-tree", "-r", "--name-only", "origin/main") == "dev/a.yaml"


def test_rewritten_history_is_pushed_by_force_only(forge: GitServer, work_tree: Path) -> None:
    forge.create(NAME, work_tree)
    before = forge.head(NAME)
    git(work_tree, "commit", "--quiet", "--amend", "--message", "another first")
    with pytest.raises(git_server.GitFailed, match="non-fast-forward"):
        forge.push(NAME, work_tree, "refs/heads/main")
    assert forge.head(NAME) == before
    forge.push(NAME, work_tree, "refs/heads/main", force=True)
    assert forge.head(NAME) == git(work_tree, "rev-parse", "HEAD") != before


def test_a_push_too_large_for_one_buffer_comes_in_chunks(forge: GitServer, work_tree: Path) -> None:
    forge.create(NAME, work_tree)
    noise = random.Random(0).randbytes(200_000).hex()  # hardly compresses, and is more than the smallest buffer
    pushed = git_server.commit(work_tree, {"noise": noise}, "large")
    git(work_tree, "-c", "http.postBuffer=65536", "push", "--quiet", forge.url(NAME), "main")
    assert forge.head(NAME) == pushed
    assert any(each.headers.get("transfer-encoding") == "chunked" for each in forge.requests)


def test_a_long_negotiation_comes_compressed(forge: GitServer, work_tree: Path, tmp_path: Path) -> None:
    url = forge.create(NAME, work_tree)
    git(tmp_path, "clone", "--quiet", url, "clone")
    for number in range(60):  # what the client has and the server does not know: a line of negotiation each
        # each later than what both have: that is named last
        git_server.commit(tmp_path / "clone", {}, f"own {number}", date=f"{2_000_000_000 + number} +0000")
    pushed = git_server.commit(work_tree, {"fleet.yaml": "environments: [{name: dev}]\n"}, "second")
    forge.push(NAME, work_tree)
    git(tmp_path / "clone", "fetch", "--quiet")
    assert git(tmp_path / "clone", "rev-parse", "origin/main") == pushed
    assert any(each.headers.get("content-encoding") == "gzip" for each in forge.requests)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_request_is_understood_in_chunks_and_compressed(
    forge: GitServer, work_tree: Path, chunked: bool, compressed: bool
) -> None:
    forge.create(NAME, work_tree)
    body = pkt(f"want {forge.head(NAME)} ofs-delta\n") + b"0000" + pkt("done\n")
    encoding = {"Content-Encoding": "gzip"} if compressed else {}
    status, answer = post(forge, gzip.compress(body) if compressed else body, encoding, chunked=chunked)
    assert (status, answer[:8], answer[8:12]) == (200, b"0008NAK\n", b"PACK")


@pytest.mark.parametrize("length", ["-1", "999999999999"])
def test_a_body_without_bounds_is_refused(forge: GitServer, work_tree: Path, length: str) -> None:
    forge.create(NAME, work_tree)
    assert post(forge, b"", {"Content-Length": length})[0] == 400


def test_nobody_answers_while_it_is_down_and_the_same_url_does_after(forge: GitServer, work_tree: Path, tmp_path: Path) -> None:
    url = forge.create(NAME, work_tree)
    with forge.down():
        with pytest.raises(git_server.GitFailed, match=r"(?i)failed to connect|connection refused"):
            git(tmp_path, "ls-remote", url)
        with pytest.raises(git_server.GitFailed):
            forge.push(NAME, work_tree)
    assert forge.head(NAME) in git(tmp_path, "ls-remote", url)


def test_an_unknown_repository_is_not_found_and_nothing_else_is_served(forge: GitServer, work_tree: Path, tmp_path: Path) -> None:
    forge.create(NAME, work_tree)
    (tmp_path / "secret").write_text("outside")
    with pytest.raises(git_server.GitFailed, match="not found"):
        git(tmp_path, "ls-remote", forge.url("nothing"))
    connection = http.client.HTTPConnection("127.0.0.1", forge.port, timeout=30)
    connection.request("GET", f"/{NAME}.git/../../secret")
    answer = connection.getresponse()
    assert answer.status >= 400
    assert b"outside" not in answer.read()
    connection.close()


def test_polls_are_counted(forge: GitServer, work_tree: Path, tmp_path: Path) -> None:
    url = forge.create(NAME, work_tree)
    git(tmp_path, "ls-remote", url)
    git(tmp_path, "ls-remote", url)
    assert (forge.asked_for(NAME), forge.asked_for("nothing")) == (2, 0)
