"""What SQL is run over, of whichever database: statements that both understand, with ? where a value goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from flux_resourceset.store import Key

AT_ONCE = 500  # rows, or documents that are asked for, in one statement; both databases take some thousands of values
Row = tuple[Any, ...]

Item = TypeVar("Item")


class Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """In a transaction, by one thread at a time."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """For each row; an INSERT names its values last but for what is done on a conflict."""

    def stream(self, sql: str, values: Sequence[Any] = ..., /) -> Iterator[Any]:
        """The rows one after the other, however many there are; others may be asked for meanwhile."""


def batches(items: Iterable[Item], most: int = AT_ONCE) -> Iterator[list[Item]]:
    rest = iter(items)
    while batch := list(islice(rest, most)):
        yield batch


def of_keys(db: Connection, keys: Iterable[Key], statement: Callable[[str], str], *values: object) -> Iterator[Any]:
    """The rows of a statement about any number of documents, or whatever has a name in two parts: it is made of an expression
    for all of them, that goes behind `(kind, id) IN`, and the values come behind them."""
    for listed, parts in _listed(keys):
        yield from db.execute(statement(listed), [*parts, *values])


def run_for_keys(db: Connection, keys: Iterable[Key], statement: str) -> None:
    """The same for what has no rows; the expression goes in the place of {}."""
    for listed, parts in _listed(keys):
        db.execute(statement.format(listed), parts)


def _listed(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    for batch in batches(dict.fromkeys(keys)):
        yield f"(VALUES {', '.join(['(?, ?)'] * len(batch))})", [part for key in batch for part in key]


def of_values(db: Connection, wanted: Iterable[object], statement: Callable[[str], str]) -> Iterator[Any]:
    """The same for single values; the expression goes behind `IN`."""
    for batch in batches(dict.fromkeys(wanted)):
        yield from db.execute(statement(f"({', '.join('?' * len(batch))})"), batch)


class Runs:
    """Rows that begin with a revision and come in its order, one revision after the other: the log is walked once."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._runs = groupby(rows, key=itemgetter(0))
        self._run: tuple[int, Iterator[Row]] | None = next(self._runs, None)

    def of(self, revision: int) -> Iterator[Row]:
        """To be read before the next ones are asked for."""
        while self._run is not None and self._run[0] < revision:
            self._run = next(self._runs, None)
        return self._run[1] if self._run is not None and self._run[0] == revision else iter(())
