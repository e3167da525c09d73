"""Git: revisions, trees and commits of a repository, by the git program. Nothing of it is checked out or executed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories.git_trees import Tree
from flux_resourceset.repositories import release_order

# A revision is one word of Git; nothing of it may be taken for an option or for several.
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_USUAL = "100644"  # mode of a file
_FEW = 50  # paths that Git is given one by one: it compares every entry of a tree with all of them

# What a hook or a caller has set must not lead to another repository than the one that was named.
FOREIGN = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR",
    "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
    "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",  # nor are paths anything but paths
)  # fmt: skip
# Every path that differs, a renamed one twice, a submodule too, whatever a repository says of it.
_COMPARE = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=none")
_CO_AUTHOR = re.compile(r"^\s*co-authored-by\s*:.*<([^<>\n]+)>", re.IGNORECASE | re.MULTILINE)
_AT_ONCE = 1000  # paths on a command line, of which a system takes two megabytes
_SETTINGS = (  # what a repository's own configuration must not change
    "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "diff.noprefix=false",
)  # fmt: skip


class Commit(NamedTuple):
    id: str
    emails: tuple[str, ...]  # of its author, its committer and its co-authors
    message: str


class NoRepository(Exception):
    """A folder that is in no repository of Git."""


def program(environment: Mapping[str, str]) -> str:
    """Where git is."""
    found = shutil.which("git", path=environment.get("PATH"))
    if found is None:
        raise failures.usage("git is not on the PATH; install it")
    return found


class Git:
    """A repository, seen from a folder of it: paths are those below the folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._program = program(environment)
        self._environment = {
            **{name: value for name, value in environment.items() if name not in FOREIGN},
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",  # what a repository puts in the place of a commit is not that commit
            "GIT_LITERAL_PATHSPECS": "1",
            "LC_ALL": "C",
        }
        done = self._run("rev-parse", "--show-prefix", check=False)
        if done.returncode:
            raise NoRepository(_words(done.stderr))
        self.prefix = done.stdout.decode(errors="surrogateescape").removesuffix("\n")

    # Asking

    def commit(self, revision: str) -> str:
        """The commit that a revision names."""
        if not revision:
            raise failures.usage("a revision is empty; an unset variable, perhaps")
        if revision.startswith("-") or not revision.isprintable():
            raise _unknown(revision)
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", check=False)
        found = done.stdout.decode(errors="replace").strip()
        if done.returncode or not _COMMIT.fullmatch(found):
            raise _unknown(revision)
        return found

    def tag(self, name: str) -> str | None:
        """The commit of a tag; a branch of that name is none, nor is what only leads to a commit, such as v1~2."""
        named = self._run("show-ref", "--verify", "--hash", f"refs/tags/{name}", check=False).stdout.decode().strip()
        found = self._run("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}", check=False).stdout.decode().strip()
        return found if named and _COMMIT.fullmatch(found) else None

    def tags(self) -> list[str]:
        """Newest first: by version, where they are versions; what is none comes last."""
        names = self._text("for-each-ref", "--format=%(refname:strip=2)", "refs/tags/").splitlines()
        return sorted(names, key=lambda name: (-release_order.order(name)[0], release_order.order(name)), reverse=True)

    def branch_exists(self, name: str) -> bool:
        return self._run("show-ref", "--verify", "--quiet", f"refs/heads/{name}", check=False).returncode == 0

    def is_branch_name(self, name: str) -> bool:
        if name.startswith("-") or name in ("HEAD", "@"):
            return False
        return self._run("check-ref-format", f"refs/heads/{name}", check=False).returncode == 0

    def merge_base(self, first: str, second: str) -> str:
        done = self._run("merge-base", first, second, check=False)
        if done.returncode:
            raise failures.Failure(
                failures.NOT_FOUND, f"{first[:12]} and {second[:12]} have no commit in common; fetch more of the history"
            )
        return done.stdout.decode().split()[0]

    def merge_bases(self, first: str, second: str) -> list[str]:
        """Where the histories of two commits have met: after merges crosswise in several places, of which `merge_base` is any.
        Whoever judges a change looks at all, or a head could hide what it changes."""
        found = self._run("merge-base", "--all", first, second, check=False).stdout.decode().split()
        return found or [self.merge_base(first, second)]

    def is_cut_between(self, first: str, second: str) -> bool:
        """Whether a shallow clone ends before the histories of two commits meet, so that some of either may be missing."""
        if self._text("rev-parse", "--is-shallow-repository").strip() != "true":
            return False
        return bool(self._text("rev-list", "--max-count=1", "--max-parents=0", f"{first}...{second}").strip())

    def changed(self, before: str, after: str | None) -> list[str]:
        """The paths that differ between two commits, or a commit and the work tree; a renamed file is two of them."""
        against = [] if after is None else [after]
        listed = self._paths(*_COMPARE, "--relative", "-z", before, *against)
        if after is None:
            listed += self._paths("ls-files", "--others", "--exclude-standard", "-z")
        return sorted(set(listed))

    def changed_anywhere(self, before: str, after: str) -> list[str]:
        """The same for two commits, and from the top of the repository."""
        return sorted(self._paths(*_COMPARE, "--no-relative", "-z", before, after))

    def dirty(self, paths: Sequence[str]) -> list[str]:
        """Those that differ from HEAD, staged or not."""
        compared = self._of(paths, *_COMPARE, "--relative", "-z", "HEAD")
        return compared + self._of(paths, "ls-files", "--others", "-z")

    def ignored(self) -> frozenset[str]:
        """What is in the work tree and is never committed: files and whole folders."""
        listed = self._paths("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return frozenset(path.removesuffix("/") for path in listed)

    def commits(self, after: str, until: str) -> list[Commit]:
        """Every commit of a range, newest first, with whoever wrote it."""
        text = self._text("log", "-z", "--no-mailmap", "--format=%H%x00%ae%x00%ce%x00%B", f"{after}..{until}")
        fields = iter(text.split("\0"))
        return [
            Commit(id, (author, committer, *_CO_AUTHOR.findall(message)), message)
            for id, author, committer, message in zip(fields, fields, fields, fields, strict=False)
        ]

    def trailer(self, message: str, key: str) -> str | None:
        """The last value of a trailer, as Git reads them."""
        done = self._run("interpret-trailers", "--parse", "--no-divider", input=message.encode(errors="surrogateescape"))
        values = [
            line.partition(":")[2].strip()
            for line in done.stdout.decode(errors="replace").splitlines()
            if line.lower().startswith(f"{key.lower()}:")
        ]
        return values[-1] if values else None

    def first_parents(self, start: str, paths: Collection[str]) -> dict[str, list[tuple[str, int]]]:
        """By path, the commits of the first-parent line that changed it, newest first, each with its committer's time.

        One walk finds all, since each has to look into every tree of the history.
        """
        within = paths if len(paths) <= _FEW else {path.partition("/")[0] for path in paths}
        words = ("--root", "--diff-merges=first-parent", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z")
        text = self._text("log", "--first-parent", "--format=%x00%H %ct", *words, start, "--", *sorted(within)) if paths else ""
        found: dict[str, list[tuple[str, int]]] = {path: [] for path in paths}
        for record in text.strip("\0").split("\0\0"):  # no path is empty
            head, _, names = record.partition("\0\n")
            id, _, seconds = head.partition(" ")
            for name in names.split("\0"):
                if name in found:
                    found[name].append((id, int(seconds)))
        return found

    # Trees

    @contextlib.contextmanager
    def tree(self, commit: str) -> Iterator[Tree]:
        """The files of a commit below the folder."""
        with subprocess.Popen(  # noqa: S603  # no shell
            self._command("cat-file", "--batch"), env=self._environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            yield Tree(process, f"{commit}:{self.prefix}")
            assert process.stdin is not None
            process.stdin.close()

    # Writing

    def written(self, parent: str, files: Mapping[str, bytes], message: str, *, in_place: bool) -> str:
        """A commit that differs from its parent by these files alone; `in_place`: the work tree has them already."""
        names = [self.prefix + path for path in sorted(files)]
        with tempfile.TemporaryDirectory(prefix="flux-resourceset-") as folder:
            blobs = self._hashed(names) if in_place else self._stored([files[path] for path in sorted(files)], folder)
            listed = self._of(list(files), "ls-tree", "-z", "--full-name", parent)
            modes = {line.partition("\t")[2]: line.partition(" ")[0] for line in listed}
            lines = [f"{modes.get(name, _USUAL)} {blob}\t{name}\0" for name, blob in zip(names, blobs, strict=True)]
            index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            self._run("read-tree", parent, more=index)
            self._run("update-index", "-z", "--index-info", input="".join(lines).encode(errors="surrogateescape"), more=index)
            tree = self._run("write-tree", more=index).stdout.decode().strip()
        signs = self._run("config", "--type=bool", "--get", "commit.gpgSign", check=False).stdout.strip() == b"true"
        done = self._run("commit-tree", tree, "-p", parent, *(["-S"] if signs else []), input=message.encode(), check=False)
        if done.returncode:
            raise failures.usage(f"git cannot commit: {_words(done.stderr)}")
        return done.stdout.decode().strip()

    def _hashed(self, paths: Sequence[str], *how: str) -> list[str]:
        """Files as Git stores them, with the ends of lines that it keeps; paths are from the top of the repository."""
        named = "".join(f"{path}\n" for path in paths).encode(errors="surrogateescape")
        return self._run("hash-object", "-w", *how, "--stdin-paths", input=named).stdout.decode().split()

    def _stored(self, bodies: Sequence[bytes], folder: str) -> list[str]:
        """The same for bytes that are nowhere yet, to the letter."""
        paths = [os.path.join(folder, str(place)) for place in range(len(bodies))]
        for path, body in zip(paths, bodies, strict=True):
            with open(path, "wb") as file:
                file.write(body)
        return self._hashed(paths, "--no-filters")

    def create_branch(self, name: str, commit: str) -> None:
        done = self._run("update-ref", "--stdin", input=f"create refs/heads/{name} {commit}\n".encode(), check=False)
        if done.returncode:
            raise failures.Failure(failures.CONFLICT, f"branch {name} cannot be made: {_words(done.stderr)}")

    def advance(self, before: str, commit: str, paths: Sequence[str], message: str) -> None:
        """Move HEAD to a commit on top of it; of the index only these paths follow. Where one cannot, neither does."""
        subject = message.splitlines()[0]
        done = self._run("update-ref", "-m", f"commit: {subject}", "HEAD", commit, before, check=False)
        if done.returncode:
            raise failures.Failure(failures.CONFLICT, f"HEAD cannot be moved: {_words(done.stderr)}")
        listed = "".join(f"{line}\0" for line in self._of(paths, "ls-tree", "-z", "--full-name", commit))
        done = self._run("update-index", "-z", "--index-info", input=listed.encode(errors="surrogateescape"), check=False)
        if done.returncode:
            self._run("update-ref", "-m", "reset: the index could not follow", "HEAD", before, commit)
            raise failures.Failure(failures.CONFLICT, f"the index cannot be written: {_words(done.stderr)}")

    # Running

    def _command(self, *words: str) -> list[str]:
        return [self._program, *_SETTINGS, "-C", str(self.folder), *words]

    def _run(
        self, *words: str, input: bytes = b"", more: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(  # noqa: S603  # no shell
            self._command(*words), input=input, capture_output=True, env={**self._environment, **(more or {})}, check=False
        )
        if check and done.returncode:
            raise failures.usage(f"git {words[0]} failed: {_words(done.stderr)}")
        return done

    def _text(self, *words: str) -> str:
        return self._run(*words).stdout.decode(errors="surrogateescape")

    def _paths(self, *words: str) -> list[str]:
        return [path for path in self._text(*words).split("\0") if path]

    def _of(self, paths: Sequence[str], *words: str) -> list[str]:
        """What a command says of these paths, however many they are."""
        parts = (paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE))
        return [found for part in parts for found in self._paths(*words, "--", *part)]


def _unknown(revision: str) -> failures.Failure:
    return failures.Failure(failures.NOT_FOUND, f'revision "{revision}" not found')


def _words(stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else "it says nothing"
