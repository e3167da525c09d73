"""Several changes of one draft: each sees those before it, and the whole is judged as it would leave the fleet."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from flux_resourceset import drafts, errors
from flux_resourceset.changes import Decommissioned
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import cluster, component, create, namespace, pointers, refused, stored, write

KNOWN = kind_files.load()
CLUSTERS = KNOWN.clusters
COMPONENTS = KNOWN.referenced_by_name["platform_components"]
NAMESPACES = KNOWN.referenced_by_name["namespaces"]


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "platform_components", component("base"), component("app", depends_on=["base"]))
    create(made, "namespaces", namespace("team"), namespace("free"))
    create(made, "clusters", cluster("c1", namespaces=[{"id": "team"}]), cluster("c2"))
    return made


def test_the_ids_are_those_that_the_draft_would_leave(ledger: Ledger) -> None:
    draft = drafts.Draft(ledger.fleet)
    draft.create(NAMESPACES, namespace("new"))
    draft.merge(NAMESPACES, "team", {"labels": {"a": "b"}})
    draft.delete(NAMESPACES, "free")
    assert draft.ids("namespaces") == ["new", "team"]
    assert draft.ids("clusters") == ["c1", "c2"]


def test_a_definition_cannot_go_under_a_user_that_changes_as_well(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.merge(CLUSTERS, "c1", {"labels": {"a": "b"}})
        draft.delete(NAMESPACES, "team")

    assert "c1" in refused(errors.InUse, ledger, work).detail


def test_a_definition_may_go_from_under_a_user_that_lets_it_go(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.delete(NAMESPACES, "team")
        draft.unassign("c1", NAMESPACES, "team")

    assert write(ledger, work) is not None
    assert ledger.fleet.dangling() == []


def test_a_component_cannot_go_under_a_dependent_that_comes_or_changes(ledger: Ledger) -> None:
    def comes(draft: drafts.Draft) -> None:
        draft.delete(COMPONENTS, "base", force=True)
        draft.delete(COMPONENTS, "app")
        draft.create(COMPONENTS, component("other", depends_on=["base"]))

    def changes(draft: drafts.Draft) -> None:
        draft.delete(COMPONENTS, "base", force=True)
        draft.merge(COMPONENTS, "app", {"oci_tag": "2"})

    for work in (comes, changes):
        refused(errors.InUse, ledger, work)


def test_dependents_are_looked_for_anew_after_every_change(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        assert list(draft.refusals(draft.changes())) == []
        draft.merge(COMPONENTS, "app", {"depends_on": []})
        draft.delete(COMPONENTS, "base")

    assert write(ledger, work) is not None


def test_what_a_part_says_is_not_blamed_for_the_rest_of_the_cluster(ledger: Ledger) -> None:
    """The whole is judged in the end: until then a cluster may refer to what comes later."""

    def work(draft: drafts.Draft) -> None:
        draft.merge(CLUSTERS, "c1", {"namespaces": [{"id": "later"}]})
        draft.assign("c1", NAMESPACES, "free", {})
        draft.create(NAMESPACES, namespace("later"))

    assert write(ledger, work) is not None
    assert [ref["id"] for ref in stored(ledger, "clusters", "c1")["namespaces"]] == ["later", "free"]


# Names that were decommissioned elsewhere


def taken(ledger: Ledger, *work: str) -> tuple[Decommissioned, ...]:
    """What a draft takes over of these names, after deleting and creating the clusters before the colons."""
    draft = drafts.Draft(ledger.fleet)
    for word in work:
        verb, _, id = word.partition(" ")
        if verb == "delete":
            draft.delete(CLUSTERS, id)
        elif verb == "create":
            draft.create(CLUSTERS, cluster(id))
        else:
            draft.take_tombstone(f"{id}.example.com", id)
    return draft.taken_tombstones()


def test_a_tombstone_is_taken_over_unless_its_name_lives_or_is_buried_already(ledger: Ledger) -> None:
    assert taken(ledger, "take c9") == (Decommissioned("c9.example.com", "c9"),)
    assert taken(ledger, "take c1") == ()
    assert taken(ledger, "take c9", "create c9") == ()
    assert taken(ledger, "delete c1", "take c1") == (Decommissioned("c1.example.com", "c1"),)
    assert taken(ledger, "delete c2", "take c1") == ()
    write(ledger, lambda draft: draft.delete(CLUSTERS, "c2"))
    assert taken(ledger, "take c2") == ()


# Kinds that are away


def test_what_a_cluster_says_of_a_kind_that_is_away_stays_and_cannot_be_changed(tmp_path: Path) -> None:
    more = samples.kinds_from(tmp_path, samples.PLAIN)
    store = MemoryStore()
    before = samples.ledger_of(more, store)
    create(before, "widgets", {"id": "w"})
    create(before, "clusters", cluster("c1", widgets=[{"id": "w"}]))
    away = samples.ledger_of(KNOWN, store)
    write(away, lambda draft: draft.merge(CLUSTERS, "c1", {"labels": {"a": "b"}}))
    write(away, lambda draft: draft.replace(CLUSTERS, "c1", cluster("c1", cluster_name="new")))
    assert stored(away, "clusters", "c1")["widgets"] == [{"id": "w"}]
    for value in ([], [{"id": "x"}]):
        patch = {"widgets": value}
        refusal = refused(errors.Invalid, away, functools.partial(drafts.Draft.merge, kind=CLUSTERS, id="c1", patch=patch))
        assert pointers(refusal) == ["/widgets"]
