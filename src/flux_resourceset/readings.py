"""What grows with the fleet or with the log, read in threads: lists, the log, and everything that was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from flux_resourceset import fleet, threads
from flux_resourceset.answers import compressed
from flux_resourceset.changes import Document, Entry, Query, Stored
from flux_resourceset.follower import Follower

PAGE_CHANGES = 1000  # of the log to hold at a time: a megabyte or some


class Readings:
    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._kinds = follower.kinds

    # What is

    async def documents(self, kind: str, matches: Callable[[Document], bool]) -> list[Document]:
        """Those of a kind that match, by id."""
        stored = dict((await self._follower.fresh()).documents[kind])  # it goes on changing, and the search is in a thread
        return await threads.run(threads.FOR_READS, _matching, stored, matches)

    async def fleet_list(self, matches: Callable[[Document], bool], filters: Iterable[str], packed: bool) -> bytes:
        """The list of clusters for provisioners; gzipped if it is to be packed."""
        still = (await self._follower.fresh()).copied()
        return await threads.run(threads.FOR_POLLS, _fleet_list, still, matches, filters, packed)

    # The log

    async def find(self, query: Query) -> Iterator[list[Entry]]:
        """The pages of the log that a query asks for, to be read in a thread; whoever has read one may let go of it."""
        await self._follower.fresh()
        return self._follower.store.find(query, PAGE_CHANGES)

    async def entry(self, revision: int) -> list[Entry]:
        """The one with this revision, or none."""
        await self._follower.fresh()
        return await threads.run(threads.FOR_READS, self._follower.store.entries, revision - 1, revision)


def _matching(stored: dict[str, Stored], matches: Callable[[Document], bool]) -> list[Document]:
    return [body for body in (stored[id].body for id in sorted(stored)) if matches(body)]


def _fleet_list(still: fleet.Fleet, matches: Callable[[Document], bool], filters: Iterable[str], packed: bool) -> bytes:
    body = still.list_answer(matches, filters)
    return compressed(body) if packed else body
