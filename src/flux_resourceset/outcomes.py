"""What became of a write or a dry run: the result of its work, the entry that it made, what that does, and what it warns of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from flux_resourceset import errors
from flux_resourceset.changes import Entry
from flux_resourceset.effects import Effect
from flux_resourceset.guards import Guards

T = TypeVar("T")
U = TypeVar("U")

SHOWN_WARNINGS = 10  # in headers, in the answer of a batch and in the log: enough to see what is meant


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    result: T
    entry: Entry | None  # None: nothing changed
    warnings: tuple[str, ...]  # all of them; a change to thousands of clusters has thousands
    base_revision: int  # of the fleet that the work began with
    effect: Effect
    guards: Guards

    @property
    def revision(self) -> int:
        """Of the fleet afterwards; of a dry run, as it would be."""
        return self.entry.revision if self.entry else self.base_revision

    def with_result(self, result: U) -> Outcome[U]:
        return Outcome(result, self.entry, self.warnings, self.base_revision, self.effect, self.guards)

    @property
    def shown_warnings(self) -> list[str]:
        return first(self.warnings, SHOWN_WARNINGS)


@dataclass(frozen=True, slots=True)
class Idempotency(Generic[T]):
    """The key of a write whose answer is kept, to be given again for the same request."""

    key: str
    digest: str  # of the request
    answer: Callable[[Outcome[T]], bytes]

    def repeat(self, digest: str, body: bytes) -> NoReturn:
        """The answer that is kept under the key, or a refusal if that is another request's."""
        if digest != self.digest:
            raise errors.KeyReused("Idempotency-Key was used for another request within 24 hours; use a new one")
        raise Answered(body)


class Answered(Exception):
    """Not an error: the request was carried out before."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


def first(warnings: Sequence[str], count: int) -> list[str]:
    """As many as are told, and how many are not."""
    more = len(warnings) - count
    return [*warnings[:count], *([f"and {more} more warnings"] if more > 0 else [])]
