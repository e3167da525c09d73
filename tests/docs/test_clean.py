"""`make clean` takes away what was built, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import live

BUILT = (
    ".venv/bin/python", ".venv-3.12/dev", "elsewhere/bin/python", "dist/a.whl", "src/flux_resourceset.egg-info/PKG-INFO",
    ".coverage", ".coverage.host.1", ".pytest_cache/x", ".mypy_cache/x", ".ruff_cache/x", ".hypothesis/x",
    "src/flux_resourceset/__pycache__/a.pyc",
)  # fmt: skip
KEPT = ("data/seed.json", "data/fleet.db", "src/flux_resourceset/a.py", ".git/HEAD", "var/fleet.db", "requirements/dev.txt")


def test_clean_removes_what_was_built_and_calls_neither_kind_nor_docker(tmp_path: Path) -> None:
    place = tmp_path / "copy"  # never here, where these tests run from what it removes
    for name in (*BUILT, *KEPT):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x")
    for name in ("Makefile", "Makefile.kind"):
        shutil.copy(live.ROOT / name, place)
    command = ["make", "-C", str(place), "clean", "VENV=elsewhere"]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [name for name in BUILT if (place / name).exists()] == []
    assert [name for name in KEPT if not (place / name).exists()] == []
    assert "kind" not in done.stdout
    assert "docker" not in done.stdout


def test_what_clean_removes_is_what_git_ignores() -> None:
    """But for data; so nothing that is kept in the repository goes."""
    ignored = (live.ROOT / ".gitignore").read_text().split()
    recipe = (live.ROOT / "Makefile").read_text().partition("\nclean:")[2].partition(".PHONY")[0]
    missing = [name for name in ignored if name.strip("/") not in recipe]
    assert missing == ["/data/*.db*", "/var/", "simulated/"]
