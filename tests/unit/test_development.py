"""The small programs that development leans on: which Pythons are found, and which lines nothing reaches."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import live
import pythons
import unreached

SOURCE = """
def outer(asked):
    if asked:
        return 1

    def inner():
        return 2

    return inner


class Kind:
    def name(self):
        return 3
"""


def test_lines_are_named_by_file_function_and_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(unreached, "PACKAGE", tmp_path)
    file = tmp_path / "kinds.py"
    file.write_text(SOURCE)
    found = unreached.unreached(file, [2, 3, 4, 6, 7, 9, 12, 13, 14], [4, 7, 14])
    assert list(found) == ["kinds.py outer: return 1", "kinds.py outer.inner: *", "kinds.py Kind.name: *"]


def test_a_list_has_a_reason_below_its_lines() -> None:
    listed = unreached.explained("# a list\n\na.py f: x\na.py f: x\n    why\nb.py g: y\n    who is first\n")
    assert listed == Counter({"a.py f: x": 2, "b.py g: y": 1})


def test_a_line_without_a_reason_is_refused() -> None:
    with pytest.raises(SystemExit, match="no reason is given for b"):
        unreached.explained("a.py f: x\n    why\nb.py g: y\n")


@pytest.mark.long
def test_the_list_of_this_project_explains_every_line() -> None:
    listed = unreached.explained(unreached.LIST.read_text(encoding="utf-8"))
    assert list(unreached.stale(listed)) == []


def test_a_place_whose_function_is_no_more_is_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(unreached, "PACKAGE", tmp_path)
    (tmp_path / "kinds.py").write_text(SOURCE)
    places = Counter(["kinds.py outer.inner: *", "kinds.py -: x", "kinds.py gone: *", "gone.py outer: *"])
    assert list(unreached.stale(places)) == ["kinds.py gone: *", "gone.py outer: *"]


def test_a_python_is_found_on_the_path_and_among_those_of_pyenv(tmp_path: Path) -> None:
    shims, version = tmp_path / "shims", tmp_path / ".pyenv" / "versions" / "3.12.9"
    for file, script in (
        (shims / "python3.11", "echo 3.11"),
        (shims / "python3.12", "echo 'pyenv: not active' >&2; exit 127"),
        (version / "bin" / "python", "echo 3.12"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    environment = {"PATH": f"{shims}:/usr/bin:/bin", "PYENV_ROOT": str(tmp_path / ".pyenv")}
    assert pythons.interpreter("3.11", environment) == str(shims / "python3.11")
    assert pythons.interpreter("3.12", environment) == str(version / "bin" / "python")
    assert pythons.interpreter("3.99", environment) is None


def test_without_any_python_nothing_is_passed(tmp_path: Path) -> None:
    program = [sys.executable, str(live.ROOT / "tests" / "pythons.py"), "false"]
    done = subprocess.run(program, env={"PATH": str(tmp_path), "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.count("not found, and so not tested") == len(pythons.VERSIONS)
    assert done.stdout.endswith("passed: none; failed: none\n")
