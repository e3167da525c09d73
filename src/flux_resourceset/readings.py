"""What grows with the fleet or with the log, read in threads: lists, the log, and everything that was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from flux_resourceset import errors, fleet, history, provenance, reverts, rules, threads
from flux_resourceset.answers import compressed
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Document, Entry, Query, Stored, Tombstone
from flux_resourceset.drafts import Draft
from flux_resourceset.follower import Follower
from flux_resourceset.history import Diff, Past, Point
from flux_resourceset.kinds.model import CLUSTERS, Referenced
from flux_resourceset.news import damage_reported
from flux_resourceset.store import replaced_meanwhile
from flux_resourceset.usage import Usage

T = TypeVar("T")

PAGE_CHANGES = 1000  # of the log to hold at a time: a megabyte or some

Matches = Callable[[Document], bool]


class Listed(NamedTuple):
    revision: int
    documents: list[Document]  # by id


class Documented(NamedTuple):
    revision: int  # of the fleet
    stored: Stored


class Used(NamedTuple):
    revision: int
    usage: Usage


class Buried(NamedTuple):
    revision: int
    total: int
    rows: list[Document]  # by DNS name


class Answered(NamedTuple):
    revision: int
    body: bytes


class Readings:
    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._kinds = follower.kinds

    # What is, and what was: at a point of the log, or without one as it is now

    async def documents(self, kind: str, matches: Matches, at: Point | None = None) -> Listed:
        """Those of a kind that match."""
        if at is not None:
            return await self._past(lambda past: _listed(past.fleet(past.revision(at)), kind, matches))
        state = await self._follower.fresh()
        stored = dict(state.documents[kind])  # it goes on changing, and the search is in a thread
        return Listed(state.revision, await threads.run(threads.FOR_READS, _matching, stored, matches))

    async def document(self, kind: str, id: str, at: Point | None = None) -> Documented | None:
        """None: it is not there. Of the past that is a refusal of its own."""
        if at is not None:
            return await self._past(lambda past: _documented(past, kind, id, past.revision(at)))
        state = await self._follower.fresh()
        stored = state.get(kind, id)
        return Documented(state.revision, stored) if stored else None

    async def usage(self, kind: Referenced, id: str | None, matches: Matches) -> Used | None:
        """Which of the clusters that match use what of a kind, or one definition of it; None: there is no such definition."""
        state = await self._follower.fresh()
        if id is not None and id not in state.documents[kind.name]:
            return None
        clusters, definitions = state.documents[CLUSTERS], state.documents[kind.name]
        if id is None:
            found = dict(clusters), dict(definitions)  # they go on changing, and the search is in a thread
        else:
            users = state.users.get((kind.name, id), frozenset())
            found = {user: clusters[user] for user in users}, {id: definitions[id]}
        return Used(state.revision, await threads.run(threads.FOR_READS, _used, kind, *found, matches))

    async def tombstones(self, offset: int, end: int | None) -> Buried:
        """Clusters that were decommissioned, with what the log says of it. Grows with tombstones."""
        state = await self._follower.fresh()
        epoch, every = state.epoch, dict(state.tombstones)

        def work(past: Past) -> list[Document]:
            if past.store.epoch() != epoch:
                raise replaced_meanwhile()
            wanted = [every[dns] for dns in sorted(every)[offset:end]]
            signatures = past.store.signatures({tombstone.revision for tombstone in wanted})
            return [_buried(tombstone, signatures.get(tombstone.revision)) for tombstone in wanted]

        return Buried(state.revision, len(every), await self._past(work))

    async def state(self, at: Point | None = None) -> fleet.Fleet:
        """The whole fleet, standing still."""
        if at is not None:
            return await self._past(lambda past: past.fleet(past.revision(at)))
        return (await self._follower.fresh()).copied()

    async def answer(self, cluster: str, view: str, at: Point | None = None) -> Answered:
        """Byte for byte what Flux gets, or got."""
        if at is not None:
            return await self._past(lambda past: _answered(past, cluster, view, past.revision(at)))
        state = await self._follower.fresh()
        kind, stored = history.view_of(self._kinds, view), state.get(CLUSTERS, cluster)
        if stored is None:
            raise rules.not_found(CLUSTERS, cluster)
        return Answered(state.revision, state.answer(f"{stored.body['cluster_dns']}/{kind.endpoint}".encode()))

    async def history(self, kind: str, id: str, before: int | None, limit: int) -> Iterator[Document]:
        """The changes of a document, newest first, to be read in a thread."""
        return await self._past(lambda past: past.history(kind, id, before, limit))

    async def provenance(self, cluster: str, view: str, input: str, at: Point | None = None) -> tuple[int, list[Document]]:
        """The values of an input with where each comes from, and the revision."""

        def work(past: Past) -> tuple[int, list[Document]]:
            revision = past.revision(at)
            return revision, provenance.of(past, cluster, view, input, revision)

        return await self._past(work)

    async def diff(self, first: Point, last: Point | None, budget: Budget) -> Diff:
        """What is not the same at two points of the log. Grows with the changes behind the first."""
        still = (await self._follower.fresh()).copied()
        return await self._past(lambda past: history.difference(past, still, past.revision(first), past.revision(last), budget))

    async def told(self, tell: Callable[[Past], T]) -> T:
        """Whatever can be said about the past only."""
        return await self._past(tell)

    # For those who go back

    async def undo(self, revision: int, force: bool) -> reverts.Undo | None:
        """The work that takes a change back; None: there is no such revision."""

        def work(past: Past) -> reverts.Undo | None:
            entries = _entry(past, revision)
            return reverts.Undo(past.store.epoch(), entries[0], force, past.last_changed) if entries else None

        return await self._past(work)

    async def restoring(self, kind: str, id: str, to: Point) -> Callable[[Draft], None]:
        """The work that makes a document what it was."""

        def work(past: Past) -> Callable[[Draft], None]:
            then = past.document(kind, id, past.revision(to))
            return reverts.restoring(past.store.epoch(), self._kinds.by_name[kind], id, then.body)

        return await self._past(work)

    async def going_back(self, to: Point, scope: reverts.Scope) -> Callable[[Draft], None]:
        """The work that makes a fleet what it was."""

        def work(past: Past) -> Callable[[Draft], None]:
            then = past.fleet(past.revision(to)).documents
            bodies = {kind: {id: stored.body for id, stored in of_kind.items()} for kind, of_kind in then.items()}
            return reverts.going_back(past.store.epoch(), bodies, scope)

        return await self._past(work)

    async def _past(self, work: Callable[[Past], T]) -> T:
        doubts = dict((await self._follower.fresh()).doubts)
        self._follower.check_reachable()
        return await threads.run(threads.FOR_READS, _from_one_log, Past(self._kinds, self._follower.store, doubts), work)

    async def fleet_list(self, matches: Matches, filters: Iterable[str], packed: bool) -> bytes:
        """The list of clusters for provisioners; gzipped if it is to be packed."""
        still = (await self._follower.fresh()).copied()
        return await threads.run(threads.FOR_POLLS, _fleet_list, still, matches, filters, packed)

    # The log

    async def find(self, query: Query) -> Iterator[list[Entry]]:
        """The pages of the log that a query asks for, to be read in a thread; whoever has read one may let go of it."""
        return await self._past(lambda past: _found(past, query))

    async def entry(self, revision: int) -> list[Entry]:
        """The one with this revision, or none; Compacted if there was one."""
        return await self._past(lambda past: _entry(past, revision))


def _from_one_log(past: Past, work: Callable[[Past], T]) -> T:
    epoch = past.store.epoch()
    with damage_reported():
        found = work(past)
    if past.store.epoch() != epoch:
        raise replaced_meanwhile()
    return found


def _listed(then: fleet.Fleet, kind: str, matches: Matches) -> Listed:
    return Listed(then.revision, _matching(then.documents[kind], matches))


def _documented(past: Past, kind: str, id: str, revision: int) -> Documented:
    return Documented(revision, past.document(kind, id, revision))


def _answered(past: Past, cluster: str, view: str, revision: int) -> Answered:
    return Answered(revision, past.answer(cluster, view, revision))


def _found(past: Past, query: Query) -> Iterator[list[Entry]]:
    """Whoever asks for what came behind a revision is not to miss what was folded away."""
    base = past.store.base()
    if query.after is not None and query.after < base:
        raise errors.Compacted.below(base, f"what came after revision {query.after}")
    return past.store.find(query, PAGE_CHANGES)


def _entry(past: Past, revision: int) -> list[Entry]:
    found, base = past.store.entries(revision - 1, revision), past.store.base()
    if not found and 0 < revision <= base:
        raise errors.Compacted.below(base, f"the entry of revision {revision}")
    return found


def _matching(stored: dict[str, Stored], matches: Matches) -> list[Document]:
    return [body for body in (stored[id].body for id in sorted(stored)) if matches(body)]


def _used(kind: Referenced, clusters: dict[str, Stored], definitions: dict[str, Stored], matches: Matches) -> Usage:
    return Usage(kind, _matching(clusters, matches), {id: stored.body for id, stored in definitions.items()})


def _buried(tombstone: Tombstone, entry: Entry | None) -> Document:
    """Where the entry was folded away, nothing but nulls tells of it; its revision is known all the same."""
    named = {"id": tombstone.id, "cluster_dns": tombstone.dns}
    return {**named, **history.signature(entry), "revision": tombstone.revision}


def _fleet_list(still: fleet.Fleet, matches: Matches, filters: Iterable[str], packed: bool) -> bytes:
    body = still.list_answer(matches, filters)
    return compressed(body) if packed else body
