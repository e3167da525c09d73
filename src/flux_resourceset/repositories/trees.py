"""A tree of files, as a commit or a work tree has it; what is behind it does not matter to whoever reads."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

LARGEST = 1024 * 1024  # bytes of a file that is read: no manifest has as many, for etcd takes none of them


class Sort(enum.Enum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "symlink"  # never followed
    OTHER = "other"  # a submodule, a socket


class Entry(NamedTuple):
    path: str  # from the root, with slashes
    sort: Sort


class TooLarge(Exception):
    """A file with more bytes than are read."""


class Unread(Exception):
    """A file that is listed and cannot be read: what it holds is not known."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there and cannot be read")


class Tree(Protocol):
    def children(self, folder: str) -> Mapping[str, Sort]:
        """The names in a folder, in order; none where there is no such folder. The root is the empty text."""

    def read(self, path: str) -> bytes | None:
        """A file's content; None where there is no file, and also where a symlink is. Raises TooLarge."""


def checked(tree: Tree, path: str) -> bytes | None:
    """A file's content; None only where no file is. Raises Unread where one is listed that cannot be read, and TooLarge."""
    body = tree.read(path)
    folder, _, name = path.rpartition("/")
    if body is None and tree.children(folder).get(name) is Sort.FILE:
        raise Unread(path)
    return body


def entries(tree: Tree, folder: str = "") -> Iterator[Entry]:
    """Everything below a folder but the folders themselves, in the order of paths."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        inside = tree.children(here)
        below = []
        for name, sort in inside.items():
            path = f"{here}/{name}" if here else name
            if sort is Sort.FOLDER:
                below.append(path)
            else:
                yield Entry(path, sort)
        waiting += reversed(below)


class Files(Tree):
    """A tree in memory."""

    def __init__(self, files: Mapping[str, bytes], links: frozenset[str] = frozenset()) -> None:
        self._files = files
        self._folders: dict[str, dict[str, Sort]] = {"": {}}
        for path in sorted([*files, *links]):
            folder, _, name = path.rpartition("/")
            self._folder(folder)[name] = Sort.LINK if path in links else Sort.FILE

    def _folder(self, path: str) -> dict[str, Sort]:
        if path not in self._folders:
            above, _, name = path.rpartition("/")
            self._folder(above)[name] = Sort.FOLDER
            self._folders[path] = {}
        return self._folders[path]

    def children(self, folder: str) -> Mapping[str, Sort]:
        return dict(sorted(self._folders.get(folder, {}).items()))

    def read(self, path: str) -> bytes | None:
        body = self._files.get(path)
        if body is not None and len(body) > LARGEST:
            raise TooLarge(path)
        return body
