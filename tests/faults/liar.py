"""The server with a fault planted into it, for the checker to find. Run with the name of the fault, and the server's words."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from flux_resourceset import answers, fleet, server
from flux_resourceset.store.sqlite_transactions import SqliteTransaction

_count = itertools.count(1)
_commit = SqliteTransaction.commit
_merged = fleet.Fleet.merged


def stale(self: fleet.Fleet, untrue: object) -> None:
    """Answers are kept, whatever becomes of what they were made from."""


def losing(self: SqliteTransaction, *arguments: Any, **more: Any) -> str:
    """Now and then a write is acknowledged and not done."""
    if arguments[0] is None or next(_count) % 7:
        return _commit(self, *arguments, **more)
    self.rollback()
    return ""


def emptying(self: fleet.Fleet, *arguments: Any) -> bytes:
    """Now and then a list is empty."""
    return _merged(self, *arguments) if next(_count) % 7 else answers.EMPTY


FAULTS: dict[str, Callable[[], None]] = {
    "stale": lambda: setattr(fleet.Fleet, "_forget", stale),
    "lost": lambda: setattr(SqliteTransaction, "commit", losing),
    "empty": lambda: setattr(fleet.Fleet, "merged", emptying),
}

if __name__ == "__main__":
    FAULTS[sys.argv.pop(1)]()
    sys.exit(server.main())
