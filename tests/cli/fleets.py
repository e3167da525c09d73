"""Both repositories of a fleet for a test: as `fleet init` makes them, copied, with Git at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.command import Cli, Done

NAMES = {
    "GIT_AUTHOR_NAME": "Dev", "GIT_AUTHOR_EMAIL": "dev@acme.example", "GIT_COMMITTER_NAME": "Dev",
    "GIT_COMMITTER_EMAIL": "dev@acme.example", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip
INPUT = "{0}/{0}-use1-01/tenants/payment-app/input.yaml"


class Fleet:
    """Repository A at `blueprints`, repository B at `root`, and the command line that works on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blueprints = folder / "acme-platform-blueprints"
        self.root = folder / "acme-fleet-config"
        self.cli = Cli(folder, **NAMES)

    def __call__(self, *words: str, stdin: str = "") -> Done:
        return self.cli("fleet", *words, "--repo", str(self.root), stdin=stdin)

    def ok(self, *words: str) -> Any:
        done = self(*words)
        assert done.code == 0, done
        return done.data if done.out else None

    def refused(self, code: int, *words: str) -> list[str]:
        done = self(*words)
        assert done.code == code, done
        assert done.lines, done
        return done.lines

    def git(self, *words: str, at: Path | None = None, variables: Mapping[str, str] | None = None) -> str:
        environment = {**os.environ, **NAMES, **(variables or {})}
        done = subprocess.run(
            ["git", "-C", str(at or self.root), *words], capture_output=True, text=True, env=environment, check=True
        )
        return done.stdout.strip()

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text, (path, old)
        self.write(path, text.replace(old, new))

    def commit(self, message: str = "change", **variables: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, variables=variables)
        return self.git("rev-parse", "HEAD")

    def changed(self, first: str = "HEAD~1", second: str = "HEAD") -> list[str]:
        return self.git("diff", "--name-only", first, second).splitlines()

    def release(self, tag: str, path: str, old: str, new: str) -> None:
        """Another release of the blueprints, with one difference."""
        place = self.blueprints / path
        text = place.read_text()
        assert old in text, (path, old)
        place.write_text(text.replace(old, new))
        self.git("commit", "-q", "-a", "-m", tag, at=self.blueprints)
        self.git("tag", tag, at=self.blueprints)


@pytest.fixture(scope="session")
def scaffold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As init makes them; nobody changes these."""
    folder = tmp_path_factory.mktemp("fleet")
    Cli(folder, **NAMES).ok("fleet", "init", str(folder))
    return folder


@pytest.fixture
def fleet(scaffold: Path, tmp_path: Path) -> Fleet:
    shutil.copytree(scaffold, tmp_path / "fleet", symlinks=True)
    return Fleet(tmp_path / "fleet")
