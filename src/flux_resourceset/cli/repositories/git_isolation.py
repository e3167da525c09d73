"""How git is run: with an environment and settings in which it starts no other program and opens no connection.

A stranger may have written a branch, or the configuration of a repository that was downloaded. Git would run programs that
either of them names: filters, hooks, monitors of the file system, and programs that fetch objects that are missing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from flux_resourceset.cli import failures

# Variables of a hook or a caller that would lead to another repository than the named one, or change what Git reads there.
FOREIGN = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR",
    "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE",
    "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
    "GIT_EXTERNAL_DIFF", "GIT_ATTR_SOURCE",
    "GIT_CONFIG",  # `git config` alone would read this file, and see neither filters nor commit.gpgSign
})  # fmt: skip
_VARIABLES = {
    # No protocol is allowed, not even that of local files. It overrides `protocol.<name>.allow` of a repository, which
    # `-c protocol.allow=never` does not.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",  # a missing object stays missing; older versions of Git have only the line above
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",  # a replacement of a commit has other content than its id promises
    "GIT_GRAFT_FILE": os.devnull,  # instead of info/grafts, which would give commits other parents
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
_SETTINGS = {  # they override the configuration of the repository, of the user and of the system
    "safe.bareRepository": "explicit",  # files of a branch can look like a bare repository
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": "false",
    "core.askPass": "false",
    "core.editor": "false",
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    # Only the form of answers
    "core.quotePath": "false",
    "diff.noprefix": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "log.showSignature": "false",
}
SETTINGS = tuple(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}"))

_OWN = ("local", "worktree")  # scopes of the repository itself
_DRIVER = re.compile(r"(filter|hook)\.(.+)\.[^.]+", re.DOTALL)
_OFF = {"filter": ("clean=", "smudge=", "process=", "required=false"), "hook": ("enabled=false",)}
_SIGNING = {  # by key: the default of Git
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.ssh.defaultkeycommand": "",
}
_HIGHEST = 129  # exit code of git itself, for a wrong command line; a shell around git reports a signal as 128 + its number
_LACKS = re.compile(
    r"lazy fetching disabled|transport '\w*' not allowed|unable to read|bad object|missing|could not (parse|fetch)"
)
REMEDY = "the clone may lack objects: use one that is not shallow, partial or damaged"


class Entry(NamedTuple):
    """One value of Git's configuration."""

    scope: str
    key: str
    value: str


def program(environment: Mapping[str, str]) -> str:
    """The path of git."""
    found = shutil.which("git", path=environment.get("PATH"))
    if found is None:
        raise failures.usage("git is not on the PATH; install it")
    return found


def environment(given: Mapping[str, str]) -> dict[str, str]:
    return {**{name: value for name, value in given.items() if name not in FOREIGN}, **_VARIABLES}


def records(command: str, answer: bytes, size: int) -> Iterator[tuple[str, ...]]:
    """The records of an answer, of so many fields that end with NUL. An answer that ends within a record is a failure."""
    *fields, rest = answer.decode(errors="surrogateescape").split("\0")
    if rest or len(fields) % size:
        raise failures.usage(f"git {command} ended within its answer; nothing is known from it")
    each = iter(fields)
    return zip(*[each] * size, strict=True)


def entries(listed: bytes) -> list[Entry]:
    """The answer of `git config --null --show-scope`."""
    return [Entry(scope, *item.partition("\n")[::2]) for scope, item in records("config", listed, 2)]


def drivers_off(found: Iterable[Entry]) -> tuple[str, ...]:
    """Settings that switch off every filter and hook that the configuration names."""
    names = dict.fromkeys((match[1], match[2]) for each in found if (match := _DRIVER.fullmatch(each.key)))
    for kind, name in names:
        if "=" in name:  # `-c` would end the key there
            raise failures.usage(f"the configuration of Git has a {kind} {name!r}, which cannot be switched off; rename it")
    return tuple(word for kind, name in names for off in _OFF[kind] for word in ("-c", f"{kind}.{name}.{off}"))


def signing_programs(found: Sequence[Entry]) -> tuple[str, ...]:
    """Settings by which signatures are made by the programs of the user or the system, never by those that a repository names."""
    named = {each.key for each in found if each.scope in _OWN and each.key in _SIGNING}
    if {"gpg.program", "gpg.openpgp.program"} & named:
        named |= {"gpg.program", "gpg.openpgp.program"}  # one setting with two names: the last of either counts
    trusted = {**_SIGNING}
    for each in found:
        if each.scope not in _OWN and each.key in _SIGNING:
            trusted[each.key] = each.value
            if each.key == "gpg.program":
                trusted["gpg.openpgp.program"] = each.value
            elif each.key == "gpg.openpgp.program":
                trusted["gpg.program"] = each.value
    return tuple(word for key in _SIGNING if key in named for word in ("-c", f"{key}={trusted[key]}"))


class Runner:
    """Runs git in a folder."""

    def __init__(self, folder: Path, given: Mapping[str, str], settings: Sequence[str] = SETTINGS) -> None:
        self.environment = environment(given)
        self._command = [program(given), "--no-pager", *settings]
        self._folder = ["-C", str(folder)]

    def switch_drivers_off(self) -> list[Entry]:
        """Run no filter and no hook that the configuration names from now on. Returns the entries about programs."""
        listed = self.run("config", "--null", "--show-scope", "--get-regexp", r"^(filter|hook|gpg)\.", answers=(0, 1))
        found = entries(listed.stdout)
        self._command += drivers_off(found)
        return found

    def command(self, *words: str, settings: Sequence[str] = ()) -> list[str]:
        return [*self._command, *settings, *self._folder, *words]

    def run(
        self,
        *words: str,
        input: bytes = b"",
        more: Mapping[str, str] | None = None,
        answers: Collection[int] = (0,),
        settings: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git to its end. An exit code that is not one of the answers is a failure, and so is a signal."""
        command = self.command(*words, settings=settings)
        try:
            done = subprocess.run(  # noqa: S603  # no shell
                command, input=input, capture_output=True, env={**self.environment, **(more or {})}, check=False
            )
        except OSError as exc:
            raise failures.usage(f"git cannot be started: {exc.strerror or exc}") from exc
        if done.returncode not in answers:
            raise failure(words[0], done.returncode, done.stderr)
        return done


def failure(command: str, code: int, stderr: bytes) -> failures.Failure:
    """Why a git that did not answer ends the command."""
    if code < 0 or code > _HIGHEST:
        number = -code if code < 0 else code - 128
        names = {each.value: each.name for each in signal.Signals}
        return failures.usage(f"git {command} was ended by {names.get(number, f'signal {number}')}; nothing is known from it")
    text = stderr.decode(errors="replace")
    return failures.usage(f"git {command} failed: {reason(stderr)}" + (f"; {REMEDY}" if _LACKS.search(text) else ""))


def reason(stderr: bytes) -> str:
    """The line that says why git refuses."""
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (fatal or lines or ["no reason given"])[0].removeprefix("fatal: ").removeprefix("error: ")
