"""Where documents and the change log are kept. One protocol, one contract suite, a module per backend.

A store knows nothing of kinds but that deleted clusters leave tombstones; what may be written is settled before.
Its methods block, so they are called in threads, any of them at any time; but for version(), which compares numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Applied, Charge, Document, Entry, Head, Query, Snapshot, Stored, Tombstone, View

Key = tuple[str, str]  # kind and id


class Memo(msgspec.Struct, frozen=True):
    """The answer that was given under an idempotency key."""

    key: str
    time: str
    digest: str
    body: bytes


class Followed(NamedTuple):
    """What came behind a head, oldest first, the hash of the log's end, which start of a writer vouches for it, and the views.

    What documents were before may be left out of the changes: whoever follows has them.
    """

    entries: list[Entry]
    hash: str
    opened: str = ""
    views: tuple[View, ...] = ()


class Outline(NamedTuple):
    """Where a log ends, and which documents (kind and id) were changed behind a head, where these are many."""

    head: Head
    changed: frozenset[tuple[str, str]]
    views: tuple[View, ...]


class Fault(NamedTuple):
    """Where a store does not agree with itself."""

    revision: int
    what: str


class Verified(NamedTuple):
    """What was held against each other: a log from its base to its end, and the documents that it leads to."""

    base: int
    revision: int
    documents: int
    fault: Fault | None  # the first, if there is any


Weighted = TypeVar("Weighted")


def pages(found: Iterable[Weighted], weight: Callable[[Weighted], int], most: int) -> Iterator[list[Weighted]]:
    """In their order, as many at a time as weigh no more than that together, or one that weighs more."""
    page: list[Weighted] = []
    weighs = 0
    for item in found:
        more = max(1, weight(item))  # an entry may bring names only
        if page and weighs + more > most:
            yield page
            page, weighs = [], 0
        page.append(item)
        weighs += more
    if page:
        yield page


def check_reachable(revision: int, base: int, end: int) -> None:
    """That a log with this base and this end can tell how things were at a revision."""
    if revision < base:
        raise errors.Compacted.below(base, f"revision {revision}")
    if revision > end:
        raise ValueError(f"revision {revision} is not there yet; the newest is {end}")


def check_foldable(before: int, end: int) -> None:
    if before > end + 1:
        raise ValueError(f"revision {before} is not there yet; the newest is {end}")


def check_led_to(
    whole: Snapshot, revision: int, documents: dict[str, dict[str, Stored]], tombstones: Iterable[Tombstone]
) -> None:
    """That a history adds up to the fleet that it came with."""
    there = {kind: of_kind for kind, of_kind in documents.items() if of_kind}
    wanted = {kind: of_kind for kind, of_kind in whole.documents.items() if of_kind}
    if (revision, there, set(tombstones)) != (whole.revision, wanted, set(whole.tombstones)):
        raise errors.Doubt("the history does not lead to the fleet that it came with; nothing was written")


def digest(documents: Iterable[tuple[str, str, int, bytes]], tombstones: Iterable[Tombstone], forgone: Iterable[Key]) -> str:
    """Of a whole state: documents (kind, id, revision, JSON) in their order, tombstones and what may be done without in any."""
    told = hashlib.sha256()
    for kind, id, revision, body in documents:
        told.update(msgspec.json.encode((kind, id, revision, len(body))) + body)
    told.update(msgspec.json.encode((sorted((each.dns, each.id, each.revision) for each in tombstones), sorted(forgone))))
    return told.hexdigest()


def applied_to_nothing(kind: str, id: str) -> str:
    """What is wrong with a record that outlived its document."""
    return f"something was applied to {kind} {id!r}, which is not there"


def replaced_meanwhile() -> errors.Doubt:
    return errors.Doubt("the log was replaced while it was searched; ask again")


class Transaction(Protocol):
    """The only writer, until it is committed or rolled back; as a context, rolled back unless it was committed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def epoch(self) -> str: ...

    def follow(self, known: Head) -> Followed | None:
        """As of the store, but nobody can write any more."""

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        """As of the store."""

    def snapshot(self) -> Snapshot: ...

    def recall(self, key: str) -> Memo | None: ...

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        """As of the store."""

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        """As of the store."""

    def commit(
        self,
        entry: Entry | None,
        memo: Memo | None = None,
        forget_before: str = "",
        charge: Charge | None = None,
        hash: str | None = None,
        applied: Sequence[Applied] = (),
    ) -> str:
        """Write documents, tombstones and log together, durably, or raise and write nothing; the hash of the log's end,
        which may be given by whoever has worked it out. What was applied to a document that the entry deletes goes with it."""

    def restore(self, snapshot: Snapshot, history: list[Entry], applied: Sequence[Applied] = ()) -> None:
        """Put a whole fleet with its log, and what was applied to it, in the place of everything, and commit. Views stay."""

    def fold(self, before: int, digest: str | None = None) -> int:
        """Take the entries below a revision out of the log, and commit: the one before it becomes the base. How many went.

        Documents, memos and the rest of the log stay as they are. The digest of the base may be given by whoever has worked
        it out (see digest_at).
        """

    def rollback(self) -> None:
        """Give up what was not committed, and let the next writer in; nothing is left to do when it is over already."""


class Store(Protocol):
    lags: bool  # whether what others commit is known a little later, instead of by the next look at the version

    def version(self) -> object:
        """Differs once anything was committed since the last call, by whomever, or by this process alone where it lags. Asked on
        the event loop, before every answer: it compares numbers, and waits for nothing. Where it lags, it never raises."""

    def seen(self) -> float:
        """time.monotonic() when the store last answered: now, where nothing is between it and this process."""

    def is_reachable(self) -> bool:
        """Whether it answers; waits for nothing. While it does not, reading and writing is errors.Unreachable."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Where it lags: call this, from any thread, whenever version() or is_reachable() may have become another."""

    def snapshot(self) -> Snapshot: ...

    def head(self) -> Head: ...

    def continues(self, known: Head) -> bool:
        """Whether the log goes on from a head, or ends there; of one below its base nobody can tell any more."""

    def follow(self, known: Head) -> Followed | None:
        """What came behind a head; None when the log does not go on from there: it was replaced, went back, or forked.

        Grows with the changes.
        """

    def follow_few(self, known: Head, few: int, before: Outline | None = None) -> Followed | Outline | None:
        """The same if these are few changes, and otherwise an outline of them; the one from before if it still holds."""

    def stored(self, keys: Iterable[tuple[str, str]], at: Head) -> dict[tuple[str, str], Stored] | None:
        """Those of these documents (kind and id) that there are at the log's end; None if it does not end there any more."""

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        """The log above a revision, up to and including another one or else to its end, oldest first.

        What was folded away is not in it.
        """

    def signatures(self, revisions: Iterable[int]) -> dict[int, Entry]:
        """Those of these entries that there are, without what they changed and brought along: who wrote them, when and why."""

    def base(self) -> int:
        """The revision up to which the log was folded away: its entries begin with the next one. 0: it is whole."""

    def epoch(self) -> str:
        """Changes when the log was replaced, so that revisions no longer compare."""

    def applied(self, keys: Iterable[Key]) -> dict[Key, dict[str, Document]]:
        """What was applied last to these documents, by manager; only those to which anything was applied."""

    def applied_by(self, manager: str, kinds: Collection[str]) -> list[Key]:
        """The documents of these kinds to which a manager applied something, by kind and id."""

    def find(self, query: Query, page: int) -> Iterator[list[Entry]]:
        """The matching entries, in the order that the query says: in pages of up to so many changes, or of one entry with more.

        The log is searched once, and nothing is held between two pages, for whoever reads them may take long. A log that was
        replaced meanwhile is Doubt.
        """

    # As it was. Below the base all of these are errors.Compacted; above the log's end ValueError: whoever asks looks first.

    def document_at(self, kind: str, id: str, revision: int) -> Stored | None:
        """The document when the log stood at a revision; None if it was not there then. Grows with its own changes since."""

    def documents_at(self, keys: Iterable[tuple[str, str]], revision: int) -> dict[tuple[str, str], Stored]:
        """The same for several (kind and id), from one state of the store; those that were there."""

    def state_at(self, revision: int) -> Snapshot:
        """Documents, tombstones and what may be done without, when the log stood at a revision. Grows with the log since."""

    def touches(self, kind: str, id: str, before: int | None, limit: int) -> list[Entry]:
        """The entries that changed a document, newest first, below a revision if one is given: each with that change alone, and
        without the names that it brought along. Grows with the document's own changes."""

    def touches_of(self, keys: Iterable[Key], before: int | None, limit: int) -> dict[Key, list[Entry]]:
        """The same for several documents, from one state of the store; of each up to so many."""

    def touched(self, after: int, until: int) -> list[tuple[str, str]]:
        """The documents (kind and id) that were changed above a revision, up to and including another one; in any order."""

    def revision_at(self, time: str) -> int:
        """The newest revision that was there at a time; the base if that was the newest then, 0 if there was none."""

    def digest_at(self, revision: int) -> str:
        """Of all that state_at() tells, over exact bytes. Grows with documents and with the log since."""

    def verified(self) -> Verified:
        """Whether every revision agrees with the chain of the log, with the rest of it, and with what is there; one state of
        it, while others write. Grows with documents and log, and holds the documents."""

    def begin(self) -> Transaction:
        """Wait for the other writers and keep them out."""

    def settle(self) -> None:
        """Before an orderly end: leave the newest data where whoever copies the store looks for them, if that is possible."""

    def close(self) -> None: ...
