"""What managers applied last, as a draft sees it: the records of a store, with those of the draft on top."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from flux_resourceset import differences
from flux_resourceset.changes import Applied, Document

Key = tuple[str, str]  # kind and id

_MANAGER = re.compile(r"[a-z0-9.-]{1,64}")


def is_manager(name: str) -> bool:
    return _MANAGER.fullmatch(name) is not None


class Records(Protocol):
    """Where they are kept: a store, or a transaction on it."""

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]: ...

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]: ...


class Applications:
    def __init__(self, stored: Records | None = None) -> None:
        self._stored = stored
        self._known: dict[Key, dict[str, Document]] = {}  # as they are stored, of the documents that were asked for
        self._new: dict[Key, dict[str, Document]] = {}
        self._forgotten: set[Key] = set()  # whose document was deleted: what is created there anew is another one

    def load(self, keys: Iterable[Key]) -> None:
        """Read what is stored of many in one go."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._known]
        found = self._stored.applied(unknown) if self._stored is not None and unknown else {}
        self._known.update({key: found.get(key, {}) for key in unknown})

    def of(self, key: Key) -> dict[str, Document]:
        """What was applied to a document last, by manager."""
        return {**({} if key in self._forgotten else self._read(key)), **self._new.get(key, {})}

    def _read(self, key: Key) -> dict[str, Document]:
        self.load([key])
        return self._known[key]

    def by(self, manager: str, kind: str) -> list[Key]:
        """The documents of a kind to which a manager applied something, by id."""
        stored = self._stored.applied_by(manager, [kind]) if self._stored is not None else []
        new = {key for key, of_key in self._new.items() if key[0] == kind and manager in of_key}
        return sorted({key for key in stored if key not in self._forgotten} | new)

    def put(self, key: Key, manager: str, document: Document) -> None:
        if not differences.same(self.of(key).get(manager), document):
            self._new.setdefault(key, {})[manager] = document

    def forget(self, key: Key) -> None:
        self._new.pop(key, None)
        self._forgotten.add(key)

    def made(self, is_there: Callable[[Key], bool]) -> list[Applied]:
        """What is to be written: those of documents that are not there go with these."""
        again = [key for key in sorted(self._forgotten) if is_there(key)]
        self.load(again)
        gone = [Applied(*key, manager, None) for key in again for manager in self._known[key]]
        new = [Applied(*key, manager, document) for key, of_key in self._new.items() for manager, document in of_key.items()]
        return [*gone, *new]
