"""Git: revisions, trees and commits of a repository, by the git program. Nothing of it is checked out or executed."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import git_isolation
from flux_resourceset.cli.repositories.git_trees import Objects, Tree
from flux_resourceset.repositories import release_order

# A revision is one word of Git; nothing of it may be taken for an option or for several.
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_USUAL = "100644"  # mode of a file
_FEW = 50  # paths that Git is given one by one: it compares every entry of a tree with all of them

# Every path that differs, a renamed one twice, by no program that attributes name.
_COMPARE = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-z")
_COMMITS = ("--ignore-submodules=none",)  # a submodule too, whatever a repository says of it
# The commit of a submodule counts, its files do not: to compare those, git would run another git, by the submodule's settings.
_FILES = ("--ignore-submodules=dirty",)
_CO_AUTHOR = re.compile(r"^\s*co-authored-by\s*:.*<([^<>\n]+)>", re.IGNORECASE | re.MULTILINE)
_AT_ONCE = 1000  # paths on a command line, of which a system takes two megabytes
_TO_INDEX = ("update-index", "-z", "--index-info")
_CONFLICT = re.compile(rb"lock|exist|expected")  # words of git where something else holds or has a place
_REFUSED = (0, 1, 128)  # exit codes of a write that git may refuse


class Commit(NamedTuple):
    id: str
    emails: tuple[str, ...]  # of its author, its committer and its co-authors
    message: str


class NoRepository(Exception):
    """A folder that is in no repository of Git."""


class Git:
    """A repository, seen from a folder of it: paths are those below the folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._git = git_isolation.Runner(folder, environment)
        self._run = self._git.run
        done = self._run("rev-parse", "--is-inside-work-tree", "--show-prefix", answers=(0, 128))
        if done.returncode:
            if b"not a git repository" in done.stderr:
                raise NoRepository(git_isolation.reason(done.stderr))
            raise git_isolation.failure("rev-parse", done.returncode, done.stderr)
        inside, _, prefix = done.stdout.decode(errors="surrogateescape").partition("\n")
        if inside != "true":
            raise failures.usage(f"{folder} is in a repository of Git, but not among its files; use a clone with a work tree")
        self.prefix = prefix.removesuffix("\n")
        self._configured = self._git.switch_drivers_off()

    @property
    def top(self) -> Path:
        """The folder of the whole work tree, without symlinks."""
        return self.folder.resolve().joinpath(*[".."] * self.prefix.count("/")).resolve()

    # Asking

    def commit(self, revision: str) -> str:
        """The commit that a revision names."""
        if not revision:
            raise failures.usage("a revision is empty; an unset variable, perhaps")
        if revision.startswith("-") or not revision.isprintable():
            raise _unknown(revision)
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", answers=(0, 1))
        found = done.stdout.decode(errors="replace").strip()
        if done.returncode or not _COMMIT.fullmatch(found):
            raise _unknown(revision)
        return found

    def tag(self, name: str) -> str | None:
        """The commit of a tag; a branch of that name is none, nor is what only leads to a commit, such as v1~2."""
        listed = self._run("show-ref", "--verify", "--quiet", f"refs/tags/{name}", answers=(0, 1))
        if listed.returncode:
            return None
        named = self._text("show-ref", "--verify", "--hash", f"refs/tags/{name}").strip()
        done = self._run("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}", answers=(0, 1))
        found = done.stdout.decode(errors="replace").strip()
        return found if _COMMIT.fullmatch(found) else None

    def tags(self) -> list[str]:
        """Newest first: by version, where they are versions; what is none comes last."""
        names = self._text("for-each-ref", "--format=%(refname:strip=2)", "refs/tags/").splitlines()
        return sorted(names, key=lambda name: (-release_order.order(name)[0], release_order.order(name)), reverse=True)

    def branch_exists(self, name: str) -> bool:
        return self._run("show-ref", "--verify", "--quiet", f"refs/heads/{name}", answers=(0, 1)).returncode == 0

    def is_branch_name(self, name: str) -> bool:
        if name.startswith("-") or name in ("HEAD", "@"):
            return False
        return self._run("check-ref-format", f"refs/heads/{name}", answers=(0, 1)).returncode == 0

    def merge_base(self, first: str, second: str) -> str:
        done = self._run("merge-base", first, second, answers=(0, 1))
        if done.returncode:
            raise failures.Failure(
                failures.NOT_FOUND, f"{first[:12]} and {second[:12]} have no commit in common; fetch more of the history"
            )
        return done.stdout.decode().split()[0]

    def merge_bases(self, first: str, second: str) -> list[str]:
        """Where the histories of two commits have met: after merges crosswise in several places, of which `merge_base` is any.
        Whoever judges a change looks at all, or a head could hide what it changes."""
        found = self._run("merge-base", "--all", first, second, answers=(0, 1)).stdout.decode().split()
        return found or [self.merge_base(first, second)]

    def is_cut_between(self, first: str, second: str) -> bool:
        """Whether a shallow clone ends before the histories of two commits meet, so that some of either may be missing."""
        if self._text("rev-parse", "--is-shallow-repository").strip() == "false":
            return False
        return bool(self._text("rev-list", "--max-count=1", "--max-parents=0", f"{first}...{second}").strip())

    def changed(self, before: str, after: str | None) -> list[str]:
        """The paths that differ between two commits, or a commit and the work tree; a renamed file is two of them."""
        against = [] if after is None else [after]
        submodules = _FILES if after is None else _COMMITS
        listed = self._paths(*_COMPARE, *submodules, "--relative", before, *against)
        if after is None:
            listed += self._paths("ls-files", "--others", "--exclude-standard", "-z")
        return sorted(set(listed))

    def changed_anywhere(self, before: str, after: str) -> list[str]:
        """The same for two commits, and from the top of the repository."""
        return sorted(self._paths(*_COMPARE, *_COMMITS, "--no-relative", before, after))

    def staged(self, paths: Sequence[str]) -> list[str]:
        """Those that the index has in another state than HEAD."""
        return self._of(paths, *_COMPARE, *_FILES, "--cached", "--relative", "HEAD")

    def ignored(self) -> frozenset[str]:
        """What is in the work tree and is never committed: files and whole folders."""
        listed = self._paths("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return frozenset(path.removesuffix("/") for path in listed)

    def commits(self, after: str, until: str) -> list[Commit]:
        """Every commit of a range, newest first, with whoever wrote it."""
        found = self._records(4, "log", "-z", "--no-mailmap", "--format=%H%x00%ae%x00%ce%x00%B", f"{after}..{until}")
        return [
            Commit(id, (author, committer, *_CO_AUTHOR.findall(message)), message) for id, author, committer, message in found
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
        words = (
            "--root",
            "--diff-merges=first-parent",
            "--name-only",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--relative",
            "-z",
        )
        asked = ("log", "--first-parent", "--format=%x00%H %ct", *words, start, "--", *sorted(within))
        text = "\0".join(field for (field,) in self._records(1, *asked)) if paths else ""
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
        with Objects(self._git.command("cat-file", "--batch"), self._git.environment) as objects:
            yield Tree(objects, commit, self.prefix)

    # Writing

    def written(self, parent: str, files: Mapping[str, bytes], message: str) -> str:
        """A commit that differs from its parent by these files alone, stored byte by byte as given."""
        names = [self.prefix + path for path in sorted(files)]
        with tempfile.TemporaryDirectory(prefix="flux-resourceset-") as folder:
            blobs = self._stored([files[path] for path in sorted(files)], folder)
            listed = self._of(list(files), "ls-tree", "-z", "--full-name", parent)
            modes = {line.partition("\t")[2]: line.partition(" ")[0] for line in listed}
            lines = [f"{modes.get(name, _USUAL)} {blob}\t{name}\0" for name, blob in zip(names, blobs, strict=True)]
            index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            self._run("read-tree", parent, more=index)
            self._run(*_TO_INDEX, input="".join(lines).encode(errors="surrogateescape"), more=index)
            tree = self._run("write-tree", more=index).stdout.decode().strip()
        signs = self._run("config", "--type=bool", "--get", "commit.gpgSign", answers=(0, 1)).stdout.strip() == b"true"
        programs = git_isolation.signing_programs(self._configured)
        words = ("commit-tree", tree, "-p", parent, *(["-S"] if signs else []))
        done = self._run(*words, input=message.encode(), answers=_REFUSED, settings=programs)
        if done.returncode:
            raise failures.usage(f"git cannot commit: {git_isolation.reason(done.stderr)}")
        return done.stdout.decode().strip()

    def _stored(self, bodies: Sequence[bytes], folder: str) -> list[str]:
        """The ids of bytes as they are: no filter, and no other end of a line."""
        paths = [os.path.join(folder, str(place)) for place in range(len(bodies))]
        for path, body in zip(paths, bodies, strict=True):
            with open(path, "wb") as file:
                file.write(body)
        named = "".join(f"{path}\n" for path in paths).encode(errors="surrogateescape")
        return self._run("hash-object", "-w", "--no-filters", "--stdin-paths", input=named).stdout.decode().split()

    def create_branch(self, name: str, commit: str) -> None:
        done = self._run("update-ref", "--stdin", input=f"create refs/heads/{name} {commit}\n".encode(), answers=_REFUSED)
        if done.returncode:
            raise _conflict(f"branch {name} cannot be made", done.stderr)

    def advance(self, before: str, commit: str, paths: Sequence[str], message: str) -> None:
        """Move HEAD to a commit on top of it; of the index only these paths follow. If either fails, both are put back."""
        subject = message.splitlines()[0]
        entries = {each: self._entries(paths, each) for each in (before, commit)}
        try:
            done = self._run("update-ref", "-m", f"commit: {subject}", "HEAD", commit, before, answers=_REFUSED)
            if done.returncode:
                raise _conflict("HEAD cannot be moved", done.stderr)
            try:
                done = self._run(*_TO_INDEX, input=entries[commit], answers=_REFUSED)
                if done.returncode:
                    raise _conflict("the index cannot be written", done.stderr)
            except failures.Failure:
                self._run(*_TO_INDEX, input=entries[before], answers=_REFUSED)
                raise
        except failures.Failure:  # git refuses to move back a HEAD that is not at the commit
            self._run("update-ref", "-m", "reset: the commit failed", "HEAD", before, commit, answers=_REFUSED)
            raise

    def _entries(self, paths: Sequence[str], commit: str) -> bytes:
        """The lines of the index for these paths, as a commit has them."""
        listed = self._of(paths, "ls-tree", "-z", "--full-name", commit)
        return "".join(f"{line}\0" for line in listed).encode(errors="surrogateescape")

    # Answers

    def _text(self, *words: str) -> str:
        return self._run(*words).stdout.decode(errors="surrogateescape")

    def _records(self, size: int, *words: str) -> Iterator[tuple[str, ...]]:
        return git_isolation.records(words[0], self._run(*words).stdout, size)

    def _paths(self, *words: str) -> list[str]:
        return [path for (path,) in self._records(1, *words) if path]

    def _of(self, paths: Sequence[str], *words: str) -> list[str]:
        """What a command says of these paths, however many they are."""
        parts = (paths[start : start + _AT_ONCE] for start in range(0, len(paths), _AT_ONCE))
        return [found for part in parts for found in self._paths(*words, "--", *part)]


def _unknown(revision: str) -> failures.Failure:
    return failures.Failure(failures.NOT_FOUND, f'revision "{revision}" not found')


def _conflict(what: str, stderr: bytes) -> failures.Failure:
    line = f"{what}: {git_isolation.reason(stderr)}"
    return failures.Failure(failures.CONFLICT if _CONFLICT.search(stderr) else failures.USAGE, line)
