"""A new repository of Git with one commit, the same whatever its user has configured: no hooks, no templates, no signature."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from flux_resourceset.cli.repositories import git_isolation

BRANCH = "main"
_IDENTITY = ("fleet init", "fleet-init@localhost")  # where nobody is configured in whose name to commit

# Variables that would make another sort of repository
_FOREIGN = frozenset({"GIT_TEMPLATE_DIR", "GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT"})
_SETTINGS = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.excludesFile": os.devnull,
    "core.attributesFile": os.devnull,
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
}


def create(folder: Path, files: Mapping[str, str], subject: str, tag: str | None, environment: Mapping[str, str]) -> None:
    """Make the folder with these files, committed on main, under a tag if one is given."""
    run = _Runner(folder, environment)
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    run("init", "--quiet", "--template=", "--object-format=sha1", f"--initial-branch={BRANCH}", ".")
    run.settle_identity()
    run("add", "--force", "--all")
    run("commit", "--quiet", "--no-verify", "--message", subject)
    if tag is not None:
        run("tag", "--annotate", "--message", subject, tag)


class _Runner:
    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        known = {name: value for name, value in environment.items() if name not in _FOREIGN}
        self._git = git_isolation.Runner(folder, known, [*git_isolation.SETTINGS, *settings])
        self._git.switch_drivers_off()
        self._identity: dict[str, str] = {}

    def __call__(self, *words: str) -> None:
        self._git.run(*words, more=self._identity)

    def settle_identity(self) -> None:
        """Use a name of our own for the sample where Git does not know in whose name to commit."""
        for who in ("AUTHOR", "COMMITTER"):
            if self._git.run("var", f"GIT_{who}_IDENT", answers=(0, 1, 128)).returncode:
                name, address = _IDENTITY
                self._identity |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": address}
