"""Any log, kept as earlier releases kept it, is the same log after it was brought forward."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import old_files
from flux_resourceset import changes
from flux_resourceset.changes import Change, Decommissioned, Entry
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore

keys = st.tuples(st.sampled_from(["clusters", "n"]), st.sampled_from("ab"))
fields = st.dictionaries(st.sampled_from("pqr"), st.integers(0, 1) | st.text("ü\"'", max_size=2), max_size=3)
wishes = st.tuples(keys, st.sampled_from(["x.example.com", "y.example.com"]), fields, st.booleans())
steps = st.tuples(st.lists(wishes, max_size=3, unique_by=lambda wish: wish[0]), st.booleans(), st.booleans())


def written(steps: list[Any]) -> MemoryStore:
    """A store that took these steps."""
    store = MemoryStore()
    for wanted, forced, far in steps:
        made = [change for wish in wanted if (change := _change(store, *wish))]
        came = (Decommissioned("far.example.com", "far"),) if far else ()
        if made or came:
            revision = store.head().revision + 1
            entry = Entry(revision, f"2026-01-{revision:02}T00:00:00.000000Z", "t", None, None, None, forced, tuple(made), came)
            store.begin().commit(entry)
    return store


def _change(store: MemoryStore, key: tuple[str, str], dns: str, more: dict[str, Any], remove: bool) -> Change | None:
    kind, id = key
    stored = store.documents.get(kind, {}).get(id)
    after = None if remove else {"id": id, "cluster_dns": dns, **more}
    operation = changes.operation(there=stored is not None, stays=after is not None)
    return None if operation is None else Change(kind, id, operation, stored.body if stored else None, after)


@pytest.mark.long
@given(st.lists(steps, max_size=12), st.sampled_from([2, 3]))
@settings(max_examples=25, deadline=None)
def test_a_log_of_an_earlier_release_is_the_same_afterwards(steps: list[Any], version: int) -> None:
    model = written(steps)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.db"
        assert old_files.write(path, model.log, version) == model.head().hash
        with contextlib.closing(SqliteStore(path)) as store:
            assert msgspec.json.encode(store.entries(0)) == msgspec.json.encode(model.entries(0))
            assert store.verified() == model.verified()
            for revision in range(model.head().revision + 1):
                assert store.digest_at(revision) == model.digest_at(revision)
                assert store.state_at(revision).hash == model.state_at(revision).hash
