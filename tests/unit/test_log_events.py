"""Entries as events: the text, its chunks, and what they are about."""

from __future__ import annotations

import json

import msgspec
import pytest

from flux_resourceset import log_events
from flux_resourceset.changes import Change, Entry, Query
from flux_resourceset.log_events import CHUNK_BYTES, Filter


def entry(*changes: tuple[str, str], text: str = "ü\n") -> Entry:
    made = tuple(Change(kind, id, "create", None, {"id": id, "text": text}) for kind, id in changes)
    return Entry(7, "2026-01-31T12:00:00.000000Z", "ada", None, "r", "why\nnot", False, made)


@pytest.mark.parametrize("size", [1, CHUNK_BYTES - 300, CHUNK_BYTES, 5 * CHUNK_BYTES])
def test_an_event_is_the_entry_on_one_line_whatever_is_in_it(size: int) -> None:
    whole = entry(("a", "1"), ("b", "2"), text="\n" * size)
    made = log_events.event("abc", whole)
    text = b"".join(made.chunks)
    lines = text.decode().split("\n")
    assert lines[:2] == ["id: abc-7", "event: change"]
    assert json.loads(lines[2].removeprefix("data: ")) == json.loads(msgspec.json.encode(whole))
    assert lines[3:] == ["", ""]
    assert made.size == len(text)
    assert all(len(chunk) <= CHUNK_BYTES for chunk in made.chunks)


@pytest.mark.parametrize("kind", [None, "a", "b", "c"])
@pytest.mark.parametrize("id", [None, "1", "2", "3"])
@pytest.mark.parametrize("actor", [None, "ada", "bob"])
def test_an_event_passes_a_filter_as_its_entry_matches_a_query(kind: str | None, id: str | None, actor: str | None) -> None:
    for each in (entry(("a", "1"), ("b", "2")), entry()):
        event = log_events.event("abc", each)
        assert event.passes(Filter(kind, id, actor)) == Query(kind, id, actor).matches(each)
