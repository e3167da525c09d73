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
from flux_resourceset.repositories import trees

# A revision is one word of Git; nothing of it may be taken for an option or for several.
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0", re.DOTALL)
_SORTS = {b"100": trees.Sort.FILE, b"400": trees.Sort.FOLDER, b"120": trees.Sort.LINK}  # by the beginning of a mode

_USUAL = "100644"  # mode of a file
_FEW = 50  # paths that Git is given one by one: it compares every entry of a tree with all of them

# What a hook or a caller has set must not lead to another repository than the one that was named.
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX")
_SETTINGS = (  # what a repository's own configuration must not change
    "-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "diff.noprefix=false",
)  # fmt: skip


class Commit(NamedTuple):
    id: str
    emails: tuple[str, ...]  # of its author, its committer and its co-authors
    message: str


class NoRepository(Exception):
    """A folder that is in no repository of Git."""


class Git:
    """A repository, seen from a folder of it: paths are those below the folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        program = shutil.which("git", path=environment.get("PATH"))
        if program is None:
            raise failures.usage("git is not on the PATH; install it")
        self.folder = folder
        self._program = program
        self._environment = {
            **{name: value for name, value in environment.items() if name not in _FOREIGN},
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
        """The commit of a tag; a branch of that name is none."""
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/tags/{name}^{{commit}}", check=False)
        found = done.stdout.decode(errors="replace").strip()
        return found if not done.returncode and _COMMIT.fullmatch(found) else None

    def tags(self) -> list[str]:
        """Newest first: by version, where they are versions."""
        return self._text("for-each-ref", "--sort=-version:refname", "--format=%(refname:strip=2)", "refs/tags/").splitlines()

    def branch_exists(self, name: str) -> bool:
        return self._run("show-ref", "--verify", "--quiet", f"refs/heads/{name}", check=False).returncode == 0

    def is_branch_name(self, name: str) -> bool:
        return not name.startswith("-") and self._run("check-ref-format", "--branch", name, check=False).returncode == 0

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
        listed = self._paths("diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", before, *against)
        if after is None:
            listed += self._paths("ls-files", "--others", "--exclude-standard", "-z")
        return sorted(set(listed))

    def changed_anywhere(self, before: str, after: str) -> list[str]:
        """The same for two commits, and from the top of the repository."""
        return sorted(self._paths("diff", "--name-only", "--no-renames", "--no-ext-diff", "--no-relative", "-z", before, after))

    def dirty(self, paths: Sequence[str]) -> list[str]:
        """Those that differ from HEAD, staged or not."""
        if not paths:
            return []
        return self._paths(
            "diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", "HEAD", "--", *paths
        ) + self._paths("ls-files", "--others", "-z", "--", *paths)

    def ignored(self) -> frozenset[str]:
        """What is in the work tree and is never committed: files and whole folders."""
        listed = self._paths("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        return frozenset(path.removesuffix("/") for path in listed)

    def commits(self, after: str, until: str) -> list[Commit]:
        """Every commit of a range, newest first, with whoever wrote it."""
        form = "%H%x00%ae%x00%ce%x00%(trailers:key=Co-authored-by,valueonly,separator=%x01)%x00%B%x00%x00"
        text = self._text("log", "--no-mailmap", f"--format={form}", f"{after}..{until}")
        found = []
        for record in text.split("\0\0\n"):
            if record:
                id, author, committer, others, message = record.rstrip("\0").split("\0", 4)
                addresses = [match for each in others.split("\1") for match in re.findall(r"<([^<>]+)>", each)]
                found.append(Commit(id, (author, committer, *addresses), message))
        return found

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

    def identity(self) -> bool:
        """Whether somebody is configured in whose name commits can be made."""
        return self._run("var", "GIT_COMMITTER_IDENT", check=False).returncode == 0

    # Trees

    @contextlib.contextmanager
    def tree(self, commit: str) -> Iterator[Tree]:
        """The files of a commit below the folder."""
        with subprocess.Popen(  # noqa: S603  # no shell
            self._command("cat-file", "--batch"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment
        ) as process:
            yield Tree(process, f"{commit}:{self.prefix}")
            assert process.stdin is not None
            process.stdin.close()

    # Writing

    def written(self, parent: str, files: Mapping[str, bytes], message: str, *, in_place: bool) -> str:
        """A commit that differs from its parent by these files alone; `in_place`: the work tree has them already."""
        with tempfile.TemporaryDirectory(prefix="flux-resourceset-") as folder:
            blobs = self._hashed(sorted(files)) if in_place else self._stored([files[path] for path in sorted(files)], folder)
            listed = self._text("ls-tree", "-z", "--full-name", parent, "--", *files).split("\0")
            modes = {line.partition("\t")[2]: line.partition(" ")[0] for line in listed if line}
            names = [self.prefix + path for path in sorted(files)]
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
        """Files as Git stores them, with the ends of lines that it keeps."""
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
        """Move HEAD to a commit on top of it; of the index only these paths follow."""
        subject = message.splitlines()[0]
        done = self._run("update-ref", "-m", f"commit: {subject}", "HEAD", commit, before, check=False)
        if done.returncode:
            raise failures.Failure(failures.CONFLICT, f"HEAD cannot be moved: {_words(done.stderr)}")
        listed = self._run("ls-tree", "-z", "--full-name", commit, "--", *paths).stdout
        self._run("update-index", "-z", "--index-info", input=listed)

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


def _unknown(revision: str) -> failures.Failure:
    return failures.Failure(failures.NOT_FOUND, f'revision "{revision}" not found')


def _words(stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else "it says nothing"


class Tree(trees.Tree):
    """The files of a commit, asked for one by one from one process."""

    def __init__(self, process: subprocess.Popen[bytes], root: str) -> None:
        self._process = process
        self._root = root
        self._last: tuple[str, Mapping[str, trees.Sort]] = ("\0", {})  # whoever reads a file often reads its neighbours

    def at(self, commit: str) -> Tree:
        """The files of another commit, from the same process."""
        return Tree(self._process, f"{commit}:{self._root.partition(':')[2]}")

    def children(self, folder: str) -> Mapping[str, trees.Sort]:
        if self._last[0] != folder:
            self._last = folder, self._children(folder)
        return self._last[1]

    def _children(self, folder: str) -> Mapping[str, trees.Sort]:
        found = self._object(folder, b"tree", None)
        if found is None:
            return {}
        names: dict[str, trees.Sort] = {}
        place = 0
        hash_size = 32 if len(self._root.partition(":")[0]) == 64 else 20
        while (match := _ENTRY.match(found, place)) is not None:
            mode, name = match.groups()
            names[name.decode(errors="surrogateescape")] = _SORTS.get(mode[:3], trees.Sort.OTHER)
            place = match.end() + hash_size
        return dict(sorted(names.items()))

    def read(self, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        if self._is_link(folder, name):
            return None
        return self._object(path, b"blob", trees.LARGEST)

    def _is_link(self, folder: str, name: str) -> bool:
        """Git gives the target of a symlink as its content; that is no file."""
        return self.children(folder).get(name, trees.Sort.FILE) is not trees.Sort.FILE

    def _object(self, path: str, sort: bytes, most: int | None) -> bytes | None:
        if "\n" in path:
            return None
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{self._root}{path}\n".encode(errors="surrogateescape"))
        stdin.flush()
        head = stdout.readline().rstrip(b"\n").rsplit(b" ", 2)
        if len(head) != 3 or not head[2].isdigit():
            return None  # missing, or ambiguous
        body = stdout.read(int(head[2]))
        stdout.read(1)
        if most is not None and len(body) > most:
            raise trees.TooLarge(path)
        return body if head[1] == sort else None


class WorkTree(trees.Tree):
    """The files as they are in a folder, whatever Git knows of them; symlinks are not followed."""

    def __init__(self, root: Path, ignored: frozenset[str] = frozenset()) -> None:
        self._root = root
        self._ignored = ignored

    def children(self, folder: str) -> Mapping[str, trees.Sort]:
        if not self._is_real(folder):
            return {}
        try:
            with os.scandir(self._root / folder) as found:
                names = {each.name: _sort(each) for each in found}
        except OSError:
            return {}
        if not folder:
            names.pop(".git", None)
        if self._ignored:
            names = {name: sort for name, sort in names.items() if (f"{folder}/{name}" if folder else name) not in self._ignored}
        return dict(sorted(names.items()))

    def read(self, path: str) -> bytes | None:
        folder, _, _ = path.rpartition("/")
        if not self._is_real(folder):
            return None
        try:
            with open(
                os.open(self._root / path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb"
            ) as file:
                body = file.read(trees.LARGEST + 1)
        except (OSError, ValueError):
            return None
        if len(body) > trees.LARGEST:
            raise trees.TooLarge(path)
        return body

    def _is_real(self, folder: str) -> bool:
        """Whether no part of the way is a symlink."""
        here = self._root
        for name in folder.split("/") if folder else ():
            here = here / name
            if here.is_symlink():
                return False
        return True


def _sort(entry: os.DirEntry[str]) -> trees.Sort:
    if entry.is_symlink():
        return trees.Sort.LINK
    if entry.is_dir(follow_symlinks=False):
        return trees.Sort.FOLDER
    return trees.Sort.FILE if entry.is_file(follow_symlinks=False) else trees.Sort.OTHER
