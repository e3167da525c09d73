"""What a manager applies never takes anything from others, and goes as it came."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from flux_resourceset import applying, budgets, differences, documents, operations
from flux_resourceset.applying import REFERENCE, Merged
from flux_resourceset.changes import Document
from flux_resourceset.differences import ABSENT, Steps, same
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, stored

KNOWN = kind_files.load()
FIELDS = applying.Fields(KNOWN.references("clusters"), {"platform_components"})
completed = partial(documents.completed, KNOWN.clusters)


def parts(labels: str, ids: list[str], names: list[str]) -> st.SearchStrategy[Document]:
    """Partial documents of a cluster, within a vocabulary."""
    some = st.integers(0, 2)
    references = st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from(ids)}, optional={"oci_tag": some.map(str) | st.none(), "enabled": st.booleans()}
        ),
        unique_by=lambda item: item["id"],
        max_size=3,
    )
    optional: dict[str, st.SearchStrategy[Any]] = {
        "labels": st.dictionaries(st.sampled_from(labels), some.map(str), max_size=3),
        "platform_components": references,
        "patches": st.dictionaries(st.sampled_from(ids), st.dictionaries(st.sampled_from("kl"), some, max_size=2), max_size=2),
        **{name: some if name == "node_count" else some.map(str) for name in names},
    }
    return st.fixed_dictionaries({}, optional=optional).map(with_references)


def with_references(document: Document) -> Document:
    """Patches without what they patch are no good document."""
    held = {item["id"] for item in document.get("platform_components", ())}
    patches = {id: values for id, values in document.get("patches", {}).items() if id in held and values}
    return {**document, "patches": patches} if "patches" in document else document


anything = parts("abc", ["app", "db", "web"], ["node_count", "vm_image", "k0s_version"])
here = parts("ab", ["app", "db"], ["vm_image"])
elsewhere = parts("cd", ["web", "dns"], ["node_count", "k0s_version"])


def live(document: Document) -> Document:
    return completed({**cluster("c1"), **document})


def merged(last: Document | None, new: Document, there: Document, *others: Document) -> Merged:
    found = applying.merged(last, new, there, others, completed, FIELDS)
    return found._replace(document=completed(found.document))


def changed(before: Document, after: Document) -> Iterator[tuple[Steps, Any]]:
    """Every leaf of what was there that is something else now."""
    for item in differences.of_documents(before, after, FIELDS.references):
        yield from _leaves(item.steps, item.before)


def _leaves(steps: Steps, value: Any) -> Iterator[tuple[Steps, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves((*steps, name), inner)
    else:
        yield steps, value


def is_default(document: Document, steps: Steps) -> bool:
    silent = completed(differences.without(document, steps))
    return same(differences.at(silent, steps), differences.at(document, steps))


def names(document: Document) -> applying.Names:
    return applying.names(document, FIELDS, completed(document))


@given(st.none() | anything, anything, anything, st.lists(anything, max_size=1))
def test_nothing_is_changed_that_others_set(
    last: Document | None, new: Document, there: Document, others: list[Document]
) -> None:
    """Whatever became something else was nobody's, or what this manager had applied, or is named as a conflict; a reference
    that goes or comes back by force does so with all that belongs to it."""
    before = live(there)
    found = merged(last, new, before, *others)
    named = {each.steps for each in found.conflicts}
    ids = {each.steps[1] for each in found.conflicts if len(each.steps) > 2}
    for steps, value in changed(before, found.document):
        mine = differences.at(last or {}, steps)
        forced = steps in named or bool(ids.intersection(steps[1:2]))
        free = value is ABSENT or steps[-1] == "id" or same(value, mine) or is_default(before, steps)
        assert free or forced, (steps, value)


@given(st.none() | anything, anything, anything)
def test_without_conflicts_others_lose_nothing(last: Document | None, new: Document, there: Document) -> None:
    before = live(there)
    found = merged(last, new, before)
    assume(not found.conflicts)
    for steps, value in changed(before, found.document):
        mine = differences.at(last or {}, steps)
        assert value is ABSENT or steps[-1] == "id" or same(value, mine) or is_default(before, steps), (steps, value)


@given(st.none() | anything, anything, anything, st.lists(anything, max_size=1))
def test_applying_twice_changes_nothing(last: Document | None, new: Document, there: Document, others: list[Document]) -> None:
    first = merged(last, new, live(there), *others)
    second = merged(new, new, first.document, *others)
    assert second.document == first.document
    assert second.conflicts == ()
    assert set(second.kept) == set(first.kept)


@given(elsewhere, here, here)
def test_what_is_applied_and_removed_was_never_applied(mine: Document, there: Document, then: Document) -> None:
    """Also when others changed something of their own in between."""
    first = merged(None, mine, live(there))
    assert first.conflicts == ()
    assert merged(mine, {}, first.document).document == live(there)
    meanwhile = merged(there, then, first.document).document
    last = merged(mine, {}, meanwhile)
    assert (last.document, last.conflicts, last.kept) == (merged(there, then, live(there)).document, (), ())


@given(st.lists(st.tuples(st.booleans(), here, elsewhere), max_size=6))
def test_two_managers_of_different_fields_never_meet(steps: list[tuple[bool, Document, Document]]) -> None:
    last: dict[bool, Document | None] = {True: None, False: None}
    there = live({})
    for first, one, another in steps:
        new = one if first else another
        others = [document for document in (last[not first],) if document]
        found = merged(last[first], new, there, *others)
        assert (found.conflicts, found.kept) == ((), ())
        last[first], there = new, found.document
    for document in last.values():
        for place, value in names(document or {}).items():
            assert value is REFERENCE or same(differences.at(there, place), value)


@given(anything, anything, anything)
def test_what_is_kept_is_exactly_what_differs(last: Document, new: Document, there: Document) -> None:
    before = live(there)
    found = merged(last, new, before)
    assume(not found.conflicts)
    was, named, kept = names(last), names(new), set()
    for steps, value in named.items():
        if steps not in was or not same(value, was[steps]):
            continue
        at = differences.at(before, steps)
        if at is not ABSENT if value is REFERENCE else same(at, value):
            continue
        removed = steps[:2] in was and was[steps[:2]] is REFERENCE and differences.at(before, steps[:2]) is ABSENT
        kept.add(steps[:2] if removed else steps)
    assert set(found.kept) == kept
    assert len(found.kept) == len(set(found.kept))


@given(anything, anything)
def test_references_keep_their_order_and_new_ones_come_behind(new: Document, there: Document) -> None:
    before = [item["id"] for item in live(there)["platform_components"]]
    after = [item["id"] for item in merged(None, new, live(there)).document["platform_components"]]
    wanted = [item["id"] for item in new.get("platform_components", ())]
    assert after == [*before, *(id for id in wanted if id not in before)]


@given(st.lists(st.tuples(st.sampled_from(["ci", "cli"]), anything, st.booleans()), max_size=5))
def test_through_a_ledger_the_second_time_makes_no_revision(steps: list[tuple[str, Document, bool]]) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", *(component(id) for id in ("app", "db", "web")))
    create(ledger, "clusters", cluster("c1"))
    for manager, document, force in steps:
        before = stored(ledger, "clusters", "c1")
        if not attempted(ledger, manager, document, force):
            assert not force
            assert stored(ledger, "clusters", "c1") == before
            continue
        after = ledger.fleet.revision
        assert attempted(ledger, manager, document, False)
        assert ledger.fleet.revision == after


def attempted(ledger: Ledger, manager: str, document: Document, force: bool) -> bool:
    one = {"op": "apply", "kind": "clusters", "id": "c1", "manager": manager, "document": document, "force": force}
    batch = operations.Batch(operations.parsed(KNOWN, {"operations": [one]}, budgets.Budget()))
    try:
        samples.write(ledger, batch.work)
    except operations.errors.Conflict:
        return False
    return True
