"""Trees of files: a commit, read by one process of git, and a work tree as the disk has it. Symlinks are not followed."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from flux_resourceset.repositories import trees

_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0", re.DOTALL)
_SORTS = {b"100": trees.Sort.FILE, b"400": trees.Sort.FOLDER, b"120": trees.Sort.LINK}  # by the beginning of a mode
_REMEMBERED = 64  # folders: those above the one that is read, and its neighbours
_PIECE = 1024 * 1024  # bytes, of what is passed over


class _Listed(NamedTuple):
    sort: trees.Sort
    id: str  # of the object


class Tree(trees.Tree):
    """The files of a commit, asked for one by one from one process of `git cat-file --batch`.

    Each is asked for by the id that its folder lists: by its path, Git would read all folders above it anew.
    """

    def __init__(self, process: subprocess.Popen[bytes], root: str) -> None:
        self._process = process
        self._root = root
        self._folders: OrderedDict[str, dict[str, _Listed]] = OrderedDict()

    def at(self, commit: str) -> Tree:
        """The files of another commit, from the same process."""
        return Tree(self._process, f"{commit}:{self._root.partition(':')[2]}")

    def children(self, folder: str) -> Mapping[str, trees.Sort]:
        return {name: each.sort for name, each in self._listing(folder).items()}

    def read(self, path: str) -> bytes | None:
        folder, _, name = path.rpartition("/")
        found = self._listing(folder).get(name)
        return self._object(found.id, path) if found is not None and found.sort is trees.Sort.FILE else None

    def _listing(self, folder: str) -> dict[str, _Listed]:
        if folder in self._folders:
            self._folders.move_to_end(folder)
            return self._folders[folder]
        listing = self._folders[folder] = self._read_listing(folder)
        if len(self._folders) > _REMEMBERED:
            self._folders.popitem(last=False)
        return listing

    def _read_listing(self, folder: str) -> dict[str, _Listed]:
        name = self._root
        if folder:
            above, _, own = folder.rpartition("/")
            found = self._listing(above).get(own)
            if found is None or found.sort is not trees.Sort.FOLDER:
                return {}
            name = found.id
        body = self._object(name) or b""
        hash_size = 32 if len(self._root.partition(":")[0]) == 64 else 20
        names: dict[str, _Listed] = {}
        place = 0
        while (match := _ENTRY.match(body, place)) is not None:
            mode, entry = match.groups()
            place = match.end() + hash_size
            sort = _SORTS.get(mode[:3], trees.Sort.OTHER)
            names[entry.decode(errors="surrogateescape")] = _Listed(sort, body[match.end() : place].hex())
        return dict(sorted(names.items()))

    def _object(self, name: str, path: str | None = None) -> bytes | None:
        """The content of an object; with the path of a file, no more of it than is read of files."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{name}\n".encode(errors="surrogateescape"))
        stdin.flush()
        head = stdout.readline().rstrip(b"\n").rsplit(b" ", 2)
        if len(head) != 3 or not head[2].isdigit():
            return None  # missing
        size = int(head[2])
        if path is not None and size > trees.LARGEST:
            for start in range(0, size + 1, _PIECE):
                stdout.read(min(_PIECE, size + 1 - start))
            raise trees.TooLarge(path)
        body = stdout.read(size)
        stdout.read(1)
        return body


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
        if not self._is_real(path.rpartition("/")[0]):
            return None
        try:
            handle = os.open(self._root / path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with open(handle, "rb") as file:
                body = file.read(trees.LARGEST + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else None
        except (OSError, ValueError):
            return None
        if body is not None and len(body) > trees.LARGEST:
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
