"""What a transaction is: an entry of the change log with every document before and after."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from flux_resourceset.kinds import CLUSTERS

Document = dict[str, Any]
Operation = Literal["create", "update", "delete"]


class Change(msgspec.Struct, frozen=True):
    kind: str
    id: str
    operation: Operation
    before: Document | None
    after: Document | None


class Retired(msgspec.Struct, frozen=True):
    """The DNS name of a cluster that was decommissioned somewhere else and came along with an import."""

    dns: str
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
    retired: tuple[Retired, ...] = ()


class Origin(msgspec.Struct, frozen=True):
    """Who writes, and why."""

    actor: str
    on_behalf_of: str | None = None
    request_id: str | None = None
    reason: str | None = None


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A document and the revision that last changed it."""

    body: Document
    revision: int


class Tombstone(msgspec.Struct, frozen=True):
    """The DNS name of a cluster that was decommissioned: Flux gets an empty list for it."""

    dns: str
    id: str
    revision: int


class Snapshot(msgspec.Struct, frozen=True):
    """Everything a store holds at one revision, but for the log."""

    epoch: str
    revision: int
    documents: dict[str, dict[str, Stored]]
    tombstones: tuple[Tombstone, ...]


class Query(msgspec.Struct, frozen=True):
    """Which entries of the log are wanted, newest first."""

    kind: str | None = None
    id: str | None = None
    actor: str | None = None
    since: str | None = None
    until: str | None = None
    before: int | None = None
    limit: int = 100

    def matches(self, entry: Entry) -> bool:
        return (
            (self.before is None or entry.revision < self.before)
            and (self.actor is None or entry.actor == self.actor)
            and (self.since is None or entry.time >= self.since)
            and (self.until is None or entry.time <= self.until)
            and self._touched_by(entry)
        )

    def _touched_by(self, entry: Entry) -> bool:
        if self.kind is None and self.id is None:
            return True  # also an entry that only brought tombstones
        return any(self.kind in (None, change.kind) and self.id in (None, change.id) for change in entry.changes)


def retirements(entry: Entry) -> Iterator[tuple[str, Tombstone | None]]:
    """What an entry does to tombstones: a DNS name and its tombstone, or None when the name is alive again."""
    for known in entry.retired:
        yield known.dns, Tombstone(known.dns, known.id, entry.revision)
    # first what goes, then what is there: one entry may hand a name from one cluster to another, in either order
    of_clusters = [change for change in entry.changes if change.kind == CLUSTERS]
    for change in of_clusters:
        dns = change.before["cluster_dns"] if change.before else None
        if dns is not None and (change.after is None or change.after["cluster_dns"] != dns):
            yield dns, Tombstone(dns, change.id, entry.revision)
    for change in of_clusters:
        if change.after is not None:
            yield change.after["cluster_dns"], None


def timestamp(moment: datetime.datetime) -> str:
    """UTC in a fixed width, so that text order is time order."""
    return moment.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


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
    for dns, tombstone in retirements(entry):
        if tombstone is None:
            tombstones.pop(dns, None)
        else:
            tombstones[dns] = tombstone


def let_go(entries: list[Entry]) -> None:
    """Empty the list, a change at a time: to free ten thousand documents in one go holds up everybody for 100 ms."""
    while entries:
        made = list(entries.pop().changes)
        while made:
            made.pop()
