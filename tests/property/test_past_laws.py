"""What is told of the past is what was seen then."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.folding import fold
from flux_resourceset import differences, effects, errors, history, json_pointers, provenance
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import CLUSTERS
from flux_resourceset.history import Past
from flux_resourceset.overlay import Overlay
from property.pasts import BACKENDS, Seen, Step, answer, bodies, histories, lived, revisions, stored_in
from property.test_fleet_coherence import KNOWN


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
@given(steps=histories, folded=st.integers(0, 12))
def test_every_state_is_told_as_it_was_seen(backend: str, steps: list[Step], folded: int) -> None:
    with stored_in(backend) as store:
        _, seen = lived(store, steps)
        base = min(folded, len(seen) - 1)
        fold(store, base)
        past = Past(KNOWN, store)
        for revision in range(len(seen)):
            if revision < base:
                with pytest.raises(errors.Compacted):
                    past.fleet(past.revision(revision))
            else:
                assert_as_seen(past, revision, seen[revision])


def assert_as_seen(past: Past, revision: int, seen: Seen) -> None:
    assert bodies(past.fleet(revision).documents) == seen.documents
    for (cluster, view), was in seen.answers.items():
        assert answer(lambda: past.answer(cluster, view, revision)) == was  # noqa: B023  it is asked here and now
    for id in ("c1", "c2", "c3"):
        if id not in seen.documents[CLUSTERS]:
            with pytest.raises(errors.NotFound):
                past.answer(id, "namespaces", revision)


@given(steps=histories)
def test_the_history_of_a_document_adds_up_to_it(steps: list[Step]) -> None:
    with stored_in("memory") as store:
        _, seen = lived(store, steps)
        past = Past(KNOWN, store)
        keys = {(kind, id) for state in seen for kind, of_kind in state.documents.items() for id in of_kind}
        for kind, id in keys:
            document: Any = {}
            for item in reversed(list(past.history(kind, id, None, 1000))):
                document = differences.applied(document, item["fields"])
                then = seen[item["revision"]].documents[kind].get(id)
                assert differences.same(document, then or {})
                assert (item["operation"] == "delete") == (then is None)
            assert differences.same(document, seen[-1].documents[kind].get(id, {}))


@given(steps=histories, first=revisions, last=revisions)
def test_a_difference_is_that_of_the_two_states(steps: list[Step], first: int, last: int) -> None:
    with stored_in("memory") as store:
        ledger, seen = lived(store, steps)
        first, last = sorted(min(point, len(seen) - 1) for point in (first, last))
        past = Past(KNOWN, store)
        found = history.difference(past, ledger.fleet.copied(), first, last, Budget())
        before, after = seen[first].documents, seen[last].documents
        keys = sorted({(kind, id) for state in (before, after) for kind, of_kind in state.items() for id in of_kind})
        expected = [key for key in keys if before[key[0]].get(key[1]) != after[key[0]].get(key[1])]
        assert [(item.kind, item.id) for item in found.changed] == expected
        for item in found.changed:
            fields = history.fields(item, KNOWN.references(item.kind))
            assert differences.same(differences.applied(item.before or {}, fields), item.after or {})
        then, now = Overlay(past.fleet(first), Budget()), Overlay(past.fleet(first), Budget())
        for kind, id in keys:
            now.put(KNOWN.by_name[kind], id, after[kind].get(id))
        assert found.effect == effects.between(then, now, keys)


@given(steps=histories, at=revisions)
def test_a_value_names_the_change_that_really_set_it(steps: list[Step], at: int) -> None:
    with stored_in("memory") as store:
        _, seen = lived(store, steps)
        at = min(at, len(seen) - 1)
        past = Past(KNOWN, store)
        for (cluster, view), body in seen[at].answers.items():
            for content in msgspec.json.decode(body)["inputs"] if isinstance(body, bytes) else ():
                told = provenance.of(past, cluster, view, content["id"], at)
                assert rebuilt(told) == content
                for leaf in told:
                    assert_really_set(leaf, seen, at)


def rebuilt(told: list[dict[str, Any]]) -> Any:
    content: dict[str, Any] = {}
    for leaf in told:
        *way, last = json_pointers.steps(leaf["path"])
        inside = content
        for step in way:
            inside = inside.setdefault(step, {})
        inside[last] = leaf["value"]
    return content


def assert_really_set(leaf: dict[str, Any], seen: list[Seen], at: int) -> None:
    """It has stood there ever since the change, and not before."""
    if leaf["source"] in (provenance.DEFAULT, provenance.COMPUTED):
        assert set(leaf) == {"path", "value", "source"}
        return
    steps, kind, id = tuple(json_pointers.steps(leaf["field"])), leaf["kind"], leaf["id"]
    values = [history.place(state.documents[kind].get(id), steps) for state in seen[: at + 1]]
    assert values[at] == leaf["value"]
    since = leaf["revision"]
    assert all(differences.same(value, values[at]) for value in values[since:])
    assert not differences.same(values[since - 1], values[at])
