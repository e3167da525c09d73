"""What a transaction is: an entry of the change log with every document before and after."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from flux_resourceset import errors

CLUSTERS = "clusters"  # decommissioned, they leave tombstones
FREEZES = "freezes"  # they hold up writes; beside clusters the one kind that code may name

Document = dict[str, Any]
Operation = Literal["create", "update", "delete"]

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Change(msgspec.Struct, frozen=True):
    kind: str
    id: str
    operation: Operation
    before: Document | None
    after: Document | None


class Decommissioned(msgspec.Struct, frozen=True):
    """The DNS name of a cluster that was decommissioned somewhere else and came along with an import."""

    dns: str
    id: str


class Forgone(msgspec.Struct, frozen=True):
    """A definition that was deleted by force somewhere else, while clusters referred to it, and came along with an import."""

    kind: str
    id: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One transaction. Revisions are 1, 2, 3, … without gaps, over the whole fleet."""

    revision: int
    time: str
    actor: str
    on_behalf_of: str | None
    request_id: str | None
    reason: str | None
    forced: bool
    changes: tuple[Change, ...]
    # named `retired` in JSON and SQL, where logs have it since the first release; giving up a kind is something else
    decommissioned: tuple[Decommissioned, ...] = msgspec.field(default=(), name="retired")
    vanished: tuple[str, ...] = ()  # DNS names that a cluster gave up without being decommissioned: 404, not an empty list
    forgone: tuple[Forgone, ...] = ()
    reverts: int | None = None  # the revision that it undoes


class Origin(msgspec.Struct, frozen=True):
    """Who writes, and why."""

    actor: str
    on_behalf_of: str | None = None
    request_id: str | None = None
    reason: str | None = None


class Applied(msgspec.Struct, frozen=True):
    """What a manager applied last to a document, as it was sent; it stands beside the document, and goes with it."""

    kind: str
    id: str
    manager: str
    document: Document | None  # None: there is no such record any more


class Setter(msgspec.Struct, frozen=True):
    """Who last set something, and in which revision; nobody knows where that was folded away."""

    actor: str | None = None
    revision: int | None = None
    on_behalf_of: str | None = None


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A document and the revision that last changed it."""

    body: Document
    revision: int


class Tombstone(msgspec.Struct, frozen=True):
    """The DNS name of a cluster that was decommissioned: Flux gets an empty list for it."""

    dns: str
    id: str
    revision: int


class Head(msgspec.Struct, frozen=True):
    """Where a log ends. Two logs with the same head are the same log."""

    epoch: str  # changes when the log was replaced, so that revisions no longer compare
    revision: int
    hash: str  # of the newest entry, over all that came before it; empty for an empty log


class View(msgspec.Struct, frozen=True):
    """A path that Flux polls, the kind that it was written for, and the array of clusters that refers to it."""

    endpoint: str
    kind: str
    field: str


class Charge(msgspec.Struct, frozen=True):
    """What a writer that starts says of a store: it vouches for the log as it is, and serves these views from it."""

    views: tuple[View, ...]
    opened: str  # the time of the start: a log that went back is believed only to a start that came later


class Snapshot(msgspec.Struct, frozen=True):
    """Everything a store holds at one revision, but for the log."""

    epoch: str
    revision: int
    documents: dict[str, dict[str, Stored]]
    tombstones: tuple[Tombstone, ...]
    hash: str = ""
    forgone: frozenset[tuple[str, str]] = frozenset()  # kind and id of definitions that the log says were deleted by force
    views: tuple[View, ...] = ()
    replaced: tuple[str, ...] = ()  # the epochs in whose place an import has put this one
    opened: str = ""  # when a writer last vouched for it
    base: int = 0  # the revision up to which the log was folded away: its entries begin with the next one


class Query(msgspec.Struct, frozen=True):
    """Which entries of the log are wanted: oldest first those above a revision (`after`), or else newest first."""

    kind: str | None = None
    id: str | None = None
    actor: str | None = None
    since: str | None = None
    until: str | None = None
    before: int | None = None
    after: int | None = None
    limit: int = 100

    @property
    def ascending(self) -> bool:
        return self.after is not None

    def matches(self, entry: Entry) -> bool:
        return (
            (self.before is None or entry.revision < self.before)
            and (self.after is None or entry.revision > self.after)
            and (self.actor is None or entry.actor == self.actor)
            and (self.since is None or entry.time >= self.since)
            and (self.until is None or entry.time <= self.until)
            and self._touched_by(entry)
        )

    def _touched_by(self, entry: Entry) -> bool:
        if self.kind is None and self.id is None:
            return True  # also an entry that only brought tombstones
        return any(self.kind in (None, change.kind) and self.id in (None, change.id) for change in entry.changes)


def tombstone_changes(entry: Entry) -> Iterator[tuple[str, Tombstone | None]]:
    """What an entry does to tombstones: a DNS name and its tombstone, or None when the name is alive again, or nobody's."""
    for known in entry.decommissioned:
        yield known.dns, Tombstone(known.dns, known.id, entry.revision)
    # first what goes, then what is there: one entry may hand a name from one cluster to another, in either order
    of_clusters = [change for change in entry.changes if change.kind == CLUSTERS]
    vanished = frozenset(entry.vanished)
    for change in of_clusters:
        dns = change.before["cluster_dns"] if change.before else None
        if dns is not None and (change.after is None or change.after["cluster_dns"] != dns):
            yield dns, None if dns in vanished else Tombstone(dns, change.id, entry.revision)
    for change in of_clusters:
        if change.after is not None:
            yield change.after["cluster_dns"], None


def forgoings(entry: Entry) -> Iterator[tuple[tuple[str, str], bool]]:
    """What an entry does to references: a definition, and whether they may do without it from then on."""
    for change in entry.changes:
        if change.kind != CLUSTERS:
            yield (change.kind, change.id), entry.forced and change.after is None
    for known in entry.forgone:
        yield (known.kind, known.id), True


def chained(previous: str, entry: Entry) -> str:
    """The hash of an entry and, over the hash of the one before it, of the whole log up to it.

    What a document was before stands in the entries before, so only what it became is told. Piece by piece: an entry
    may change ten thousand documents, and other threads want their turn.
    """
    about = msgspec.structs.replace(entry, changes=())
    digest = hashlib.sha256(previous.encode() + _canonical(about))
    for change in entry.changes:
        digest.update(_canonical((change.kind, change.id, change.operation, change.after)))
    return digest.hexdigest()


def moment(text: str) -> datetime.datetime | None:
    """A time of RFC 3339; None if it is none."""
    try:
        return datetime.datetime.fromisoformat(text.upper()) if _RFC3339.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def grounded(documents: dict[str, dict[str, Stored]], entry: Entry) -> Entry:
    """The entry, with the documents before it as they really are: whoever made it may have completed them meanwhile."""
    made = []
    for change in entry.changes:
        stored = documents.get(change.kind, {}).get(change.id)
        check_operation(change, there=stored is not None)
        made.append(msgspec.structs.replace(change, before=stored.body if stored else None))
    return msgspec.structs.replace(entry, changes=tuple(made))


def check_operation(change: Change, *, there: bool) -> None:
    """That a change fits what it is made to: what is there can only be updated or deleted, what is not can only be created."""
    if change.operation != operation(there=there, stays=change.after is not None):
        raise errors.Doubt(f"{change.operation} of {change.kind} {change.id!r} does not fit what is stored; try again")


def operation(*, there: bool, stays: bool) -> Operation | None:
    if there:
        return "update" if stays else "delete"
    return "create" if stays else None


def narrowed(entry: Entry, change: Change) -> Entry:
    """The entry as far as one document is concerned."""
    return msgspec.structs.replace(entry, changes=(change,), decommissioned=(), vanished=(), forgone=())


def signed(entry: Entry) -> Entry:
    """The entry without what it changed and brought along."""
    return msgspec.structs.replace(entry, changes=(), decommissioned=(), vanished=(), forgone=())


def timestamp(moment: datetime.datetime) -> str:
    """UTC in a fixed width, so that text order is time order."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def vouched(now: str, before: str) -> str:
    """When a writer vouches for a log: later than the one before it, also with a clock that was set back meanwhile."""
    last = moment(before)
    return now if last is None or now > before else timestamp(last + datetime.timedelta(microseconds=1))


def replayed(entries: Iterable[Entry]) -> tuple[dict[str, dict[str, Stored]], tuple[Tombstone, ...]]:
    """The documents and tombstones that a whole log adds up to."""
    documents: dict[str, dict[str, Stored]] = {}
    tombstones: dict[str, Tombstone] = {}
    for entry in entries:
        settle(documents, tombstones, entry)
    return documents, tuple(tombstones.values())


def settle(documents: dict[str, dict[str, Stored]], tombstones: dict[str, Tombstone], entry: Entry) -> None:
    """Carry out an entry."""
    for change in entry.changes:
        of_kind = documents.setdefault(change.kind, {})
        if change.after is None:
            of_kind.pop(change.id, None)
        else:
            of_kind[change.id] = Stored(change.after, entry.revision)
    bury(tombstones, entry)


def bury(tombstones: dict[str, Tombstone], entry: Entry) -> None:
    """Carry out what an entry does to tombstones."""
    for dns, tombstone in tombstone_changes(entry):
        if tombstone is None:
            tombstones.pop(dns, None)
        else:
            tombstones[dns] = tombstone


def forgo(forgone: set[tuple[str, str]], entry: Entry) -> None:
    """Carry out what an entry does to the definitions that references may do without."""
    for key, may in forgoings(entry):
        (forgone.add if may else forgone.discard)(key)


def let_go(entries: list[Entry]) -> None:
    """Empty the list, a change at a time: to free ten thousand documents in one go holds up everybody for 100 ms."""
    while entries:
        made = list(entries.pop().changes)
        while made:
            made.pop()
