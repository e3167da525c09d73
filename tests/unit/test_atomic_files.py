"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flux_resourceset import atomic_files


@pytest.mark.parametrize("durable", [True, False])
def test_the_old_content_is_replaced_and_nothing_else_is_left(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "file"
    for content in (b"first", b"second\r\n", b""):
        atomic_files.replace(file, content, durable=durable)
        assert (file.read_bytes(), os.listdir(tmp_path)) == (content, ["file"])


def test_only_the_owner_may_read_it_whatever_it_was_before(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"for all to see")
    file.chmod(0o644)
    atomic_files.replace(str(file), b"secret")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    umask = os.umask(0o022)
    try:
        atomic_files.replace(file, b"for all again", mode=atomic_files.AS_USUAL)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, there: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(target)
    atomic_files.replace(link, b"new")
    assert (link.is_symlink(), target.read_bytes(), os.listdir(target.parent)) == (True, b"new", ["file"])


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    atomic_files.replace(pipe, b"content")
    reader.join(60)
    assert (read, pipe.is_fifo(), os.listdir(tmp_path)) == ([b"content"], True, ["pipe"])


def test_what_a_shell_makes_of_a_pipe_is_written_to() -> None:
    code = "from flux_resourceset import atomic_files; atomic_files.replace('/dev/stdout', b'content')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"content"


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_files.replace(file, b"new")
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"old", ["file"])


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        atomic_files.replace(tmp_path / "folder", b"new")
    assert os.listdir(tmp_path) == ["folder"]


def test_many_who_write_at_once_each_write_a_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda content: atomic_files.replace(file, content, durable=False), contents))
            assert file.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


def test_drafts_can_be_told_from_other_files() -> None:
    names = {atomic_files.draft_name() for _ in range(100)}
    assert len(names) == 100
    assert all(map(atomic_files.is_draft, names))
    assert not any(map(atomic_files.is_draft, ("file", "file.part", ".flux-resourceset-x")))


def test_a_directory_is_not_flushed_where_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    monkeypatch.setattr(os, "open", None)  # Windows opens no directory
    atomic_files.sync_directory(str(tmp_path))
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


def test_it_is_light_to_import() -> None:
    code = "import os, sys; before = set(sys.modules); import flux_resourceset.atomic_files; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"__future__", "flux_resourceset", "flux_resourceset.atomic_files"}
