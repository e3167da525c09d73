"""A new repository of Git with one commit, the same whatever its user has configured: no hooks, no templates, no signature."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import git

BRANCH = "main"
_IDENTITY = ("fleet init", "fleet-init@localhost")  # where nobody is configured in whose name to commit

# Beside what must not lead to another repository: what would make another sort of one.
_FOREIGN = frozenset({*git.FOREIGN, "GIT_TEMPLATE_DIR", "GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT"})
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
}


def create(folder: Path, files: Mapping[str, str], subject: str, tag: str | None, environment: Mapping[str, str]) -> None:
    """Make the folder with these files, committed on main, under a tag if one is given."""
    run = _Runner(git.program(environment), environment)
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    run("init", "--quiet", "--template=", "--object-format=sha1", f"--initial-branch={BRANCH}", ".", at=folder)
    run.settle_identity(folder)
    run("add", "--force", "--all", at=folder)
    run("commit", "--quiet", "--no-verify", "--message", subject, at=folder)
    if tag is not None:
        run("tag", "--annotate", "--message", subject, tag, at=folder)


class _Runner:
    def __init__(self, program: str, environment: Mapping[str, str]) -> None:
        self._command = [program, *(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))]
        self._environment = {name: value for name, value in environment.items() if name not in _FOREIGN} | {"LC_ALL": "C"}

    def __call__(self, *words: str, at: Path) -> None:
        done = self._done(*words, at=at)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
            raise failures.usage(f"git {words[0]} failed: {said[-1].removeprefix('fatal: ')}")

    def settle_identity(self, folder: Path) -> None:
        """Where Git does not know in whose name to commit, nobody has to be asked for a sample."""
        for who in ("AUTHOR", "COMMITTER"):
            if self._done("var", f"GIT_{who}_IDENT", at=folder).returncode:
                name, address = _IDENTITY
                self._environment |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": address}

    def _done(self, *words: str, at: Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(  # noqa: S603  # no shell
            [*self._command, "-C", str(at), *words], capture_output=True, env=self._environment, check=False
        )
