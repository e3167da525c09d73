"""Random histories, with deletions, revivals, imports and reverts, and what was seen while they were made."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

import postgres_server
from flux_resourceset import errors, imports, reverts, transfer
from flux_resourceset.changes import Document
from flux_resourceset.drafts import Draft
from flux_resourceset.history import Past
from flux_resourceset.ledger import Ledger
from flux_resourceset.store import Store, postgres_connections
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.postgres import PostgresStore
from flux_resourceset.store.sqlite import SqliteStore
from property.test_fleet_coherence import KNOWN, Operation, attempted, begun, operations
from unit import samples

BACKENDS = ("memory", "sqlite", "postgres")

Step = tuple[Any, ...]

writes = st.tuples(st.just("write"), st.lists(operations, min_size=1, max_size=4))
steps: st.SearchStrategy[Step] = st.one_of(
    writes,
    writes,
    st.tuples(st.just("undo"), st.integers(1, 20), st.booleans()),
    st.tuples(st.just("go back"), st.integers(0, 20)),
    st.tuples(st.just("import"), st.integers(0, 20), st.booleans()),
)
histories = st.lists(steps, max_size=10)
revisions = st.integers(0, 20)


class Seen(NamedTuple):
    """What there was at a revision."""

    documents: dict[str, dict[str, Document]]
    answers: dict[tuple[str, str], bytes | type[errors.Refusal]]  # by cluster and view


@contextlib.contextmanager
def stored_in(backend: str) -> Iterator[Store]:
    with contextlib.ExitStack() as held:
        store: Store = MemoryStore()
        if backend == "sqlite":
            store = SqliteStore(Path(held.enter_context(tempfile.TemporaryDirectory())) / "fleet.db")
        elif backend == "postgres":
            store = PostgresStore(postgres_connections.target(held.enter_context(postgres_server.shared().store())))
        held.callback(store.close)
        yield store


def lived(store: Store, history: list[Step]) -> tuple[Ledger, list[Seen]]:
    """The fleet with a history behind it, and what was seen at every revision, from 0 on."""
    ledger = begun(store)
    past = Past(KNOWN, store)
    seen = [_seen(past, revision) for revision in range(ledger.fleet.revision)]  # how it begins is not what this is about
    seen.append(look(ledger))
    for step in history:
        take(ledger, seen, step)
        if ledger.fleet.revision == len(seen):
            seen.append(look(ledger))
        assert ledger.fleet.revision == len(seen) - 1
    return ledger, seen


def _seen(past: Past, revision: int) -> Seen:
    return Seen(bodies(past.fleet(revision).documents), {})


def look(ledger: Ledger) -> Seen:
    answers: dict[tuple[str, str], bytes | type[errors.Refusal]] = {}
    for dns, id in ledger.fleet.cluster_ids.items():
        for view in KNOWN.by_endpoint:
            answers[id, view] = answer(lambda dns=dns, view=view: ledger.fleet.answer(f"{dns}/{view}".encode()))  # type: ignore[misc]
    return Seen(bodies(ledger.fleet.documents), answers)


def answer(ask: Callable[[], bytes]) -> bytes | type[errors.Refusal]:
    try:
        return ask()
    except errors.Refusal as refusal:
        return type(refusal)


def bodies(documents: dict[str, dict[str, Any]]) -> dict[str, dict[str, Document]]:
    return {kind: {id: stored.body for id, stored in of_kind.items()} for kind, of_kind in documents.items()}


def take(ledger: Ledger, seen: list[Seen], step: Step) -> None:
    store = ledger.follower.store
    past = Past(KNOWN, store)
    match step:
        case "write", transaction:
            attempted(ledger, list[Operation](transaction))
        case "undo", revision, force:
            for entry in store.entries(revision - 1, revision):
                attempt(ledger, reverts.Undo(store.epoch(), entry, force, past.last_changed).work)
        case "go back", revision:
            then = seen[min(revision, len(seen) - 1)].documents
            attempt(ledger, reverts.going_back(store.epoch(), then, reverts.Scope()))
        case "import", revision, decommission:
            then_fleet = past.fleet(min(revision, len(seen) - 1))
            export = transfer.parsed(KNOWN, json.loads(b"".join(transfer.exported(then_fleet, None))), "the file")
            attempt(ledger, imports.importing(export, "", replace=True, decommission_absent=decommission))
        case _:
            raise AssertionError(step)


def attempt(ledger: Ledger, work: Callable[[Draft], None]) -> bool:
    """Whether it was done; if not, it broke a rule."""
    try:
        samples.write(ledger, work)
    except errors.Refusal:
        return False
    return True
