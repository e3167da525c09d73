"""Trees of files: a commit, read by one process of git, and a work tree as the disk has it. Symlinks are not followed."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import git_isolation
from flux_resourceset.repositories import trees

_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0", re.DOTALL)
_SORTS = {0o100000: trees.Sort.FILE, 0o040000: trees.Sort.FOLDER, 0o120000: trees.Sort.LINK}  # by the type within a mode
_TYPE = 0o170000  # the bits of a mode that Git looks at to tell files from folders, in every notation of the number
_NO_NAMES = frozenset({b".", b".."})
_REMEMBERED = 64  # folders: those above the one that is read, and its neighbours
_PIECE = 1024 * 1024  # bytes, of what is passed over
# Errors of paths where no file or folder is. Any other error, such as one of the disk or of permissions, ends the command.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG})
_FILE, _FOLDER = b"blob", b"tree"  # types of objects
_REMAKE = "its name is not one name, or is there twice; make the commit again with git add and git commit"


class _Listed(NamedTuple):
    sort: trees.Sort
    id: str  # of the object


class Objects:
    """One process of `git cat-file --batch`. Only a complete answer counts; anything else ends the command."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # __exit__ closes it
        try:
            self._process = subprocess.Popen(  # noqa: S603  # no shell
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
            )
        except OSError as exc:
            self._stderr.close()
            raise failures.usage(f"git cannot be started: {exc.strerror or exc}") from exc
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> None:
        code = self._ended()
        with self._stderr:
            if kind is None and code:
                raise self._failure(code)

    def read(self, name: str, kind: bytes, path: str, most: int | None = None) -> bytes:
        """The content of an object of this type. Raises trees.TooLarge if it has more bytes than `most`."""
        try:
            self._questions.write(f"{name}\n".encode())
            self._questions.flush()
        except OSError:  # it ended before it was asked
            raise self._failure(self._ended()) from None
        head = self._answers.readline()
        if head == f"{name} missing\n".encode():
            raise failures.usage(f"{path or name}: git lacks the object {name}; {git_isolation.REMEDY}")
        id, _, rest = head.rstrip(b"\n").partition(b" ")
        found, _, size = rest.partition(b" ")
        if not head.endswith(b"\n") or not size.isdigit():
            raise self._failure(self._ended())
        if found != kind or (b"^" not in name.encode() and id != name.encode()):
            line = f"{path or name}: git has a {found.decode(errors='replace')} where a {kind.decode()} must be"
            raise failures.usage(f"{line}; the repository is damaged")
        return self._content(int(size), path, most)

    def _content(self, size: int, path: str, most: int | None) -> bytes:
        if most is not None and size > most:
            left = size + 1
            while left:
                left -= len(self._exactly(min(_PIECE, left)))
            raise trees.TooLarge(path)
        return self._exactly(size + 1)[:-1]

    def _exactly(self, size: int) -> bytes:
        body = self._answers.read(size)
        if len(body) != size:
            raise self._failure(self._ended())
        return body

    def _ended(self) -> int:
        """Its exit code; it ends when nothing more can be asked."""
        for pipe in (self._questions, self._answers):
            try:
                pipe.close()
            except OSError:
                pass  # what was not written yet has no reader
        return self._process.wait()

    def _failure(self, code: int) -> failures.Failure:
        self._stderr.seek(0)
        stderr = self._stderr.read(_PIECE)
        if not code:
            return failures.usage(f"git cat-file ended before it had answered; {git_isolation.REMEDY}")
        return git_isolation.failure("cat-file", code, stderr)


class Tree(trees.Tree):
    """The files of a commit, each asked for by the id that its folder lists: by its path, Git would read all folders anew."""

    def __init__(self, objects: Objects, commit: str, prefix: str) -> None:
        self._objects = objects
        self._commit = commit
        self._prefix = prefix
        self._folders: OrderedDict[str, dict[str, _Listed]] = OrderedDict()

    def at(self, commit: str) -> Tree:
        """The files of another commit, from the same process."""
        return Tree(self._objects, commit, self._prefix)

    def children(self, folder: str) -> Mapping[str, trees.Sort]:
        return {name: each.sort for name, each in self._listing(folder).items()}

    def read(self, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        found = self._listing(folder).get(name)
        if found is None or found.sort is not trees.Sort.FILE:
            return None
        return self._objects.read(found.id, _FILE, path, trees.LARGEST)

    def _listing(self, folder: str) -> dict[str, _Listed]:
        if folder in self._folders:
            self._folders.move_to_end(folder)
            return self._folders[folder]
        listing = self._folders[folder] = self._read_listing(folder)
        if len(self._folders) > _REMEMBERED:
            self._folders.popitem(last=False)
        return listing

    def _read_listing(self, folder: str) -> dict[str, _Listed]:
        if not folder:
            return self._root()
        above, _, own = folder.rpartition("/")
        return self._below(self._listing(above), own, folder)

    def _root(self) -> dict[str, _Listed]:
        """The folder that the repository is seen from; empty in commits that do not have it."""
        listing = self._parsed(f"{self._commit}^{{tree}}", "")
        for name in self._prefix.split("/")[:-1]:
            listing = self._below(listing, name, self._prefix)
        return listing

    def _below(self, listing: Mapping[str, _Listed], name: str, folder: str) -> dict[str, _Listed]:
        found = listing.get(name)
        return self._parsed(found.id, folder) if found is not None and found.sort is trees.Sort.FOLDER else {}

    def _parsed(self, id: str, folder: str) -> dict[str, _Listed]:
        body = self._objects.read(id, _FOLDER, folder)
        hash_size = 32 if len(self._commit) == 64 else 20
        names: dict[str, _Listed] = {}
        place = 0
        while (match := _ENTRY.match(body, place)) is not None:
            mode, entry = match.groups()
            place = match.end() + hash_size
            sort = _SORTS.get(int(mode, 8) & _TYPE, trees.Sort.OTHER)
            name = entry.decode(errors="surrogateescape")
            if b"/" in entry or entry in _NO_NAMES or name in names:
                # A checkout would have a file in a place where this tree has none.
                raise failures.usage(f"{folder or id}: git has a folder with a wrong entry {name!r}; {_REMAKE}")
            names[name] = _Listed(sort, body[match.end() : place].hex())
        if place != len(body):
            raise failures.usage(f"{folder or id}: git has a folder that cannot be read; the repository is damaged")
        return dict(sorted(names.items()))


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
        except (OSError, ValueError) as exc:
            _check_absent(exc, self._root / folder, is_folder=True)
            return {}
        if not folder:
            names.pop(".git", None)
        if self._ignored:
            names = {name: sort for name, sort in names.items() if (f"{folder}/{name}" if folder else name) not in self._ignored}
        return dict(sorted(names.items()))

    def read(self, path: str) -> bytes | None:
        if not self._is_real(path.rpartition("/")[0]):
            return None
        try:
            handle = os.open(self._root / path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with open(handle, "rb") as file:
                body = file.read(trees.LARGEST + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else None
        except (OSError, ValueError) as exc:
            _check_absent(exc, self._root / path)
            return None
        if body is not None and len(body) > trees.LARGEST:
            raise trees.TooLarge(path)
        return body

    def _is_real(self, folder: str) -> bool:
        """Whether no part of the way is a symlink."""
        here = self._root
        for name in folder.split("/") if folder else ():
            here = here / name
            try:
                mode = os.lstat(here).st_mode
            except (OSError, ValueError) as exc:
                _check_absent(exc, here, is_folder=True)
                return True  # nothing is there, which the caller finds, too
            if stat.S_ISLNK(mode):
                return False
        return True


def _sort(entry: os.DirEntry[str]) -> trees.Sort:
    if entry.is_symlink():
        return trees.Sort.LINK
    if entry.is_dir(follow_symlinks=False):
        return trees.Sort.FOLDER
    return trees.Sort.FILE if entry.is_file(follow_symlinks=False) else trees.Sort.OTHER


def _check_absent(exc: OSError | ValueError, place: Path, *, is_folder: bool = False) -> None:
    """End the command unless nothing is there: what cannot be read must not look like what was removed."""
    if isinstance(exc, ValueError) or exc.errno in _ABSENT:
        return
    if is_folder or not os.path.isdir(place):  # Windows refuses to open a folder as a file
        raise failures.usage(f"{place} cannot be read: {exc.strerror or exc}") from exc
