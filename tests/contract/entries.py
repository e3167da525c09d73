"""Entries of the change log as the contract writes them."""

from __future__ import annotations

from typing import Any

from flux_resourceset.changes import Change, Decommissioned, Document, Entry, Query
from flux_resourceset.store import Store


def time(number: int) -> str:
    return f"2026-01-{number:02}T00:00:00.000000Z"


def create(kind: str, id: str, **fields: Any) -> Change:
    return Change(kind, id, "create", None, {"id": id, **fields})


def update(kind: str, before: Document, after: Document) -> Change:
    return Change(kind, after["id"], "update", before, after)


def delete(kind: str, before: Document) -> Change:
    return Change(kind, before["id"], "delete", before, None)


def entry(
    revision: int,
    *changes: Change,
    actor: str = "t",
    decommissioned: tuple[Decommissioned, ...] = (),
    vanished: tuple[str, ...] = (),
) -> Entry:
    return Entry(revision, time(revision), actor, None, None, None, False, changes, decommissioned, vanished)


def commit(store: Store, *entries: Entry) -> None:
    for each in entries:
        store.begin().commit(each)


def matching(store: Store, query: Query, page: int = 1000) -> list[Entry]:
    return [entry for entries in store.find(query, page) for entry in entries]


def bodies(store: Store, kind: str) -> dict[str, Document]:
    return {id: stored.body for id, stored in store.snapshot().documents.get(kind, {}).items()}
