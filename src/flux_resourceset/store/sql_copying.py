"""A whole store copied row by row into another one, whichever database each is in, and read back before it counts.

Grows with documents and log; what is held at a time is a batch of rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from flux_resourceset import errors
from flux_resourceset.store import sql_connection, sql_rows
from flux_resourceset.store.sql_connection import Connection, Row

_encode = msgspec.msgpack.Encoder().encode

Progress = Callable[[str, int], None]  # of a table, so many rows


class Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]  # by which both databases put rows into the same order

    @property
    def rows(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.name} ORDER BY {', '.join(self.key)}"  # noqa: S608  # our words

    @property
    def insertion(self) -> str:
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"  # noqa: S608  # our words


def _table(name: str, columns: str, key: str) -> Table:
    return Table(name, tuple(columns.split()), tuple(key.split()))


# All of a store but for its identity, in an order in which nothing comes before what it refers to.
TABLES = (
    _table(
        "entries",
        "revision time actor on_behalf_of request_id reason forced retired forgone vanished documents hash reverts",
        "revision",
    ),
    _table(
        "changes", "revision position kind id operation before after previous lead trail", "revision position"
    ),
    _table("tombstones_before", "revision dns id since", "revision dns"),
    _table("forgone_before", "revision kind id forgone", "revision kind id"),
    _table("documents", "kind id revision body", "kind id"),
    _table("tombstones", "dns id revision", "dns"),
    _table("forgone", "kind id", "kind id"),
    _table("memos", "key time digest body", "key"),
    _table("views", "endpoint kind field", "endpoint"),
    _table("applied", "kind id manager body", "kind id manager"),
)  # fmt: skip


def copy(source: Connection, target: Connection, epoch: str, progress: Progress) -> None:
    """Everything that a store holds, under an epoch of its own, in the place of everything that the other one holds."""
    before = sql_rows.identity(target)
    for table in reversed(TABLES):
        target.execute(f"DELETE FROM {table.name}")  # noqa: S608  # names from above
    for table in TABLES:
        sent = _Digest(table.name, progress)
        target.executemany(table.insertion, sent.of(source.stream(table.rows)))
        arrived = _Digest(table.name, lambda name, rows: None)
        for _ in arrived.of(target.stream(table.rows)):
            pass
        if arrived.value != sent.value:
            raise errors.Doubt(f"the {table.name} that arrived are not those that were sent; nothing was copied")
    now = sql_rows.standing(source)
    # whoever follows what was there is to take this for its successor
    sql_rows.write_identity(target, now.whose._replace(epoch=epoch, replaced=(*before.replaced, before.epoch)))
    sql_rows.register_head(target, now.end.revision, now.end.hash)


class _Digest:
    """Over rows in their order, as they pass."""

    def __init__(self, table: str, progress: Progress) -> None:
        self._table = table
        self._progress = progress
        self._hash = hashlib.sha256()
        self._rows = 0

    @property
    def value(self) -> tuple[int, str]:
        return self._rows, self._hash.hexdigest()

    def of(self, rows: Iterable[Row]) -> Iterator[Row]:
        for batch in sql_connection.batches(rows):
            for row in batch:
                self._hash.update(_encode(row))
            self._rows += len(batch)
            self._progress(self._table, self._rows)
            yield from batch
