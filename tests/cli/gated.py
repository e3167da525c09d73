"""A repository of fleet config for tests of the gates: commits with dates and writers, and a stand-in for cosign on the PATH."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from cli.command import Cli, Done


def now() -> int:
    """The clock that the gate looks at: what a test calls an hour ago is that when it runs."""
    return int(time.time())


HOUR = 3600
DIGESTS = ["sha256:" + f"{number:x}" * 64 for number in range(16)]
V1, V2, V3 = (f"registry.acme.com/payment:v{number}@{DIGESTS[number]}" for number in (1, 2, 3))
WRITER = "dev-1@acme.example"
SOAKED = {"environment": "prod", "field": "image", "same_as": "staging", "soak": "1h"}
PROD = "prod/prod-1/tenants/payment-app/input.yaml"

COSIGN = """#!/bin/sh
printf '%s\\n' "$@" -- >> "{log}"
if [ "$2" = --key ]; then cat "$3" >> "{keys}"; fi
{then}
"""

SIGNED = """case $1 in
    verify) echo '[{"critical": {"type": "cosign container image signature"}}]';;
    verify-attestation) echo '{"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []}';;
esac
exit 0"""


def environment(*, at: int | None = None, email: str = WRITER, committer: str | None = None) -> dict[str, str]:
    moment = f"{now() if at is None else at} +0000"
    return {
        "PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "Writer", "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": moment,
        "GIT_COMMITTER_NAME": "Writer", "GIT_COMMITTER_EMAIL": committer or email, "GIT_COMMITTER_DATE": moment,
    }  # fmt: skip


class Gated:
    """The fleet is at `root`, which may be a directory of its repository."""

    def __init__(self, folder: Path, below: str = "") -> None:
        self.folder = folder
        self.repository = folder / "repository"
        self.root = self.repository / below
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", ".")
        self.cli = Cli(folder)

    def git(self, *words: str, input: str | None = None, **who: Any) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.repository), *words], env=environment(**who), input=input, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    # Files

    def write(self, path: str, body: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.encode() if isinstance(body, str) else body)

    def policy(self, **policy: Any) -> None:
        environments = [{"name": "dev"}, {"name": "staging"}, {"name": "prod"}]
        self.write("fleet.yaml", json.dumps({"environments": environments, **policy}, indent=1))

    def input(self, cluster: str, tenant: str = "payment-app", /, **values: Any) -> str:
        """The inputs of a tenant; a cluster is named after its environment."""
        path = f"{cluster.partition('-')[0]}/{cluster}/tenants/{tenant}/input.yaml"
        lines = [f"    {name}: {json.dumps(value)}" for name, value in values.items()]
        head = ["kind: ResourceSetInputProvider", "spec:", "  type: Static", "  defaultValues:"]
        self.write(path, "\n".join([*head, *lines, ""]))
        return path

    # Commits

    def commit(self, message: str = "change", *, ago: int = 0, **who: Any) -> str:
        """All of the work tree, `ago` seconds before now."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, at=now() - ago, **who)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, start: str = "HEAD") -> None:
        """A new one, or an old one that is moved."""
        self.git("checkout", "-q", "-f", "-B", name, start)

    def on(self, name: str) -> None:
        self.git("checkout", "-q", "-f", name)

    def merge(self, *others: str, ago: int = 0, message: str = "merge", **who: Any) -> str:
        self.git("merge", "-q", "--no-ff", "-m", message, *others, at=now() - ago, **who)
        return self.git("rev-parse", "HEAD")

    def joined(self, *parents: str, message: str = "merge", ago: int = 0, **who: Any) -> str:
        """A commit with the work tree as it is, whatever its parents had."""
        self.git("add", "-A")
        words = [word for parent in parents for word in ("-p", self.git("rev-parse", parent))]
        made = self.git("commit-tree", self.git("write-tree"), *words, "-m", message, at=now() - ago, **who)
        self.git("reset", "-q", "--hard", made)
        return made

    # Commands

    def __call__(self, *words: str, stdin: str | bytes = "") -> Done:
        return self.cli("fleet", *words, "--repo", str(self.root), stdin=stdin)

    def rows(self, code: int, *words: str) -> Any:
        """What check-image says of the branch `change` against main."""
        done = self("check-image", "--base", "main", "--head", "change", *words)
        assert done.code == code, done
        assert bool(done.lines) is bool(code), done
        return done.data

    def refused(self, code: int, *words: str, stdin: str | bytes = "") -> str:
        done = self(*words, stdin=stdin)
        assert (done.code, done.out) == (code, ""), done
        (line,) = done.lines
        return line

    # cosign

    def cosign(self, then: str = SIGNED) -> None:
        """A stand-in that notes what it is asked, with what keys, and then does this."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "cosign"
        program.write_text(COSIGN.format(log=self.folder / "asked", keys=self.folder / "keys", then=then))
        program.chmod(0o755)
        self.cli = self.cli.but(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")

    def no_cosign(self) -> None:
        """A PATH with git, and nothing else."""
        folder = self.folder / "only-git"
        folder.mkdir()
        git = shutil.which("git")
        assert git is not None
        (folder / "git").symlink_to(git)
        self.cli = self.cli.but(PATH=str(folder))

    @property
    def asked(self) -> list[list[str]]:
        """The command lines of cosign; as they run side by side, sorted."""
        file = self.folder / "asked"
        if not file.exists():
            return []
        return sorted(question.splitlines() for question in file.read_text().split("--\n") if question)

    @property
    def keys(self) -> str:
        return (self.folder / "keys").read_text()


def prepared(fleet: Gated) -> Gated:
    """Staging has had version 2 for two hours, prod has version 1, and there is a branch for a change."""
    fleet.policy(images=[SOAKED])
    fleet.write("keys/cosign.pub", "key of base\n")
    for cluster in ("dev-1", "staging-1", "prod-1"):
        fleet.input(cluster, image=V1, replicas=2)
    fleet.commit("all have version 1", ago=9 * HOUR)
    fleet.input("staging-1", image=V2, replicas=2)
    fleet.commit("staging gets version 2", ago=2 * HOUR)
    fleet.branch("change")
    return fleet


def promoted(fleet: Gated, image: Any = V2) -> Gated:
    fleet.input("prod-1", image=image, replicas=2)
    fleet.commit("prod gets it")
    return fleet


def states(row: dict[str, Any]) -> str:
    return " ".join(row[name] for name in ("pinned", "same", "soak", "signature", "attestation"))
