"""What is read in threads: the log page by page, and lists."""

from __future__ import annotations

import asyncio
import gzip
import threading
from typing import Any

import pytest

from flux_resourceset import readings
from flux_resourceset.changes import Query
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import CLUSTERS
from flux_resourceset.readings import Readings
from unit import samples
from unit.samples import namespace

KNOWN = kind_files.load()

# The log, page by page


def pages_of(reader: Readings, query: Query) -> list[list[int]]:
    """The revisions of each page."""

    async def ask() -> list[list[int]]:
        return [[entry.revision for entry in page] for page in await reader.find(query)]

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("query", "revisions"),
    [
        (Query(), [*range(12, 0, -1)]),
        (Query(limit=5), [12, 11, 10, 9, 8]),
        (Query(before=4), [3, 2, 1]),
        (Query(after=0), [*range(1, 13)]),
        (Query(after=3, limit=4), [4, 5, 6, 7]),
        (Query(after=12), []),
        (Query(kind="clusters"), []),
    ],
)
@pytest.mark.parametrize("changes_of_a_page", [1, 4, 1000])
def test_pages_add_up_to_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, query: Query, revisions: list[int], changes_of_a_page: int
) -> None:
    monkeypatch.setattr(readings, "PAGE_CHANGES", changes_of_a_page)
    ledger = samples.ledger_of(KNOWN)
    for number in range(12):
        samples.create(ledger, "namespaces", namespace(f"n{number}"), namespace(f"m{number}"))
    pages = pages_of(Readings(ledger.follower), query)
    assert [revision for page in pages for revision in page] == revisions
    assert all(len(page) <= max(1, changes_of_a_page // 2) for page in pages)


def test_one_entry_is_read_by_its_revision() -> None:
    ledger = samples.ledger_of(KNOWN)
    for id in ("a", "b", "c"):
        samples.create(ledger, "namespaces", namespace(id))
    reader = Readings(ledger.follower)
    assert [[entry.revision for entry in asyncio.run(reader.entry(at))] for at in (0, 1, 3, 4)] == [[], [1], [3], []]


# Lists


def test_documents_that_match_come_by_id() -> None:
    ledger = samples.ledger_of(KNOWN)
    samples.create(ledger, "namespaces", *(namespace(id, labels={"x": id[0]}) for id in ("b2", "a1", "b1")))
    listed = asyncio.run(Readings(ledger.follower).documents("namespaces", lambda body: body["labels"]["x"] == "b"))
    assert [body["id"] for body in listed.documents] == ["b1", "b2"]


def test_work_on_the_whole_fleet_is_done_in_threads() -> None:
    """Of the event loop it takes no more than to copy a table."""
    ledger = samples.ledger_of(KNOWN)
    samples.create(ledger, CLUSTERS, samples.cluster())
    reader = Readings(ledger.follower)
    seen: set[str] = set()

    def matches(body: dict[str, Any]) -> bool:
        seen.add(threading.current_thread().name)
        return True

    async def ask() -> None:
        await reader.documents(CLUSTERS, matches)
        packed = await reader.fleet_list(matches, (), True)
        assert gzip.decompress(packed) == await reader.fleet_list(matches, (), False)

    asyncio.run(ask())
    assert seen
    assert threading.current_thread().name not in seen
