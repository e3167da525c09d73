"""The command line where modules, calls and modes of Unix are missing. Windows itself is not run here."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from cli.command import Done
from flux_resourceset import atomic_files
from flux_resourceset.cli import windows
from flux_resourceset.cli.cluster import manifest_files

UNIX_MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
UNIX_CALLS = (
    "fork",
    "forkpty",
    "getuid",
    "geteuid",
    "getgid",
    "fchmod",
    "chown",
    "fchown",
    "mkfifo",
    "umask",
    "uname",
    "O_NONBLOCK",
)

# os.name stays what it is for the standard library, which would look for calls of Windows
PROLOGUE = f"""
import os, sys
for name in {UNIX_MODULES!r}:
    sys.modules[name] = None
import random, tempfile  # these fork, and ask for the system, while they are imported
for name in {UNIX_CALLS!r}:
    delattr(os, name)
os.name = "nt"
from flux_resourceset.cli import windows
os.name = "posix"
assert windows.HERE
from flux_resourceset.cli import main
sys.exit(main())
"""


def windowed(home: Path, *words: str, **variables: str) -> Done:
    env = {"USERPROFILE": str(home), "PATH": os.environ["PATH"], "HOME": str(home), **variables}
    done = subprocess.run([sys.executable, "-c", PROLOGUE, *words], env=env, capture_output=True, text=True, timeout=60)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "words", [["--help"], ["version"], ["completion", "bash"], ["explain", "cluster"], ["cluster", "create", "--help"]]
)
def test_what_needs_no_server_runs(tmp_path: Path, words: list[str]) -> None:
    done = windowed(tmp_path, *words)
    assert (done.code, done.err) == (0, ""), done
    assert done.out


def test_templates_are_rendered(tmp_path: Path) -> None:
    quotas = live.ROOT / "examples" / "kinds" / "resource_quotas"
    folder = tmp_path / "manifests"
    done = windowed(
        tmp_path, "render", "--inputs", f"{quotas}.inputs.json", "-f", f"{quotas}.resourceset.yaml",
        "--engine", "builtin", "--directory", str(folder),
    )  # fmt: skip
    assert done.code == 0, done
    assert list(folder.rglob("*.yaml"))


def test_a_server_is_asked_and_a_configuration_without_modes_is_read(server: live.Server, tmp_path: Path) -> None:
    stored = windowed(tmp_path, "config", "set-context", "demo", "--url", server.url, "--token", live.READ)
    assert stored.code == 0, stored
    (tmp_path / ".config" / "flux-resourceset" / "config.yaml").chmod(0o666)  # as Windows shows every file
    listed = windowed(tmp_path, "cluster", "list", "-o", "name")
    assert (listed.code, "clusters/demo-cluster-01" in listed.out) == (0, True), listed


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module as it is on Windows."""
    monkeypatch.setattr(os, "name", "nt")
    importlib.reload(windows)
    monkeypatch.undo()
    yield
    importlib.reload(windows)


@pytest.mark.usefixtures("here")
def test_the_editor_is_notepad_and_takes_a_path_with_backslashes() -> None:
    assert windows.DEFAULT_EDITOR == "notepad"
    line = windows.editor_command(r'"C:\Program Files\Editor\edit.exe" --wait', r"C:\Temp\cluster.yaml")
    assert line == r'"C:\Program Files\Editor\edit.exe" --wait "C:\Temp\cluster.yaml"'


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "file"), [("system:node", "system%3Anode"), ("aux", "%61ux"), ("nul.x", "%6Eul.x"), ("auxiliary", "auxiliary")]
)
def test_names_of_files_are_such_as_windows_takes(name: str, file: str) -> None:
    assert manifest_files.plain(name) == file


def test_elsewhere_names_of_files_stay() -> None:
    assert (manifest_files.plain("system:node"), manifest_files.plain("aux")) == ("system:node", "aux")


@pytest.mark.usefixtures("here")
def test_only_terminals_that_take_escapes_get_them() -> None:
    assert not windows.takes_escapes({})
    assert windows.takes_escapes({"WT_SESSION": "1"})
    assert not windows.takes_escapes({"WT_SESSION": "1", "TERM": "dumb"})


@pytest.mark.usefixtures("here")
def test_a_reader_that_has_gone_is_an_invalid_argument() -> None:
    assert windows.is_broken_pipe(OSError(22, "Invalid argument"))
    assert windows.is_broken_pipe(BrokenPipeError())


def test_a_file_is_replaced_though_no_directory_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refusing(path: str, flags: int, mode: int = 0o777) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode)

    file = tmp_path / "fleet.json"
    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(os, "name", "nt")
    atomic_files.replace(file, b"{}")
    monkeypatch.undo()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("fleet.json", b"{}")]


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")  # as for a file that somebody has open

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        atomic_files.replace(tmp_path / "fleet.json", b"{}")
    assert list(tmp_path.iterdir()) == []
