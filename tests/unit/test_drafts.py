"""A draft against the fleet: identity, references, uniqueness, what is in use, and force."""

from __future__ import annotations

from pathlib import Path

import pytest

from flux_resourceset import drafts, errors
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import cluster, component, create, namespace, pointers, refused, rolebinding, stored, write

KNOWN = kind_files.load()
CLUSTERS = KNOWN.clusters
COMPONENTS = KNOWN.referenced_by_name["platform_components"]
NAMESPACES = KNOWN.referenced_by_name["namespaces"]


@pytest.fixture
def ledger() -> Ledger:
    """One cluster that uses one of everything."""
    made = samples.ledger_of(KNOWN)
    create(made, "platform_components", component("app"), component("spare"))
    create(made, "namespaces", namespace("team"), namespace("free"))
    create(made, "rolebindings", rolebinding("admins"))
    references = {"platform_components": [{"id": "app"}], "namespaces": [{"id": "team"}], "rolebindings": [{"id": "admins"}]}
    create(made, "clusters", cluster("c1", **references, patches={"app": {"replicas": 2}}))
    return made


# Creating, and what never changes


def test_a_created_document_is_stored_complete(ledger: Ledger) -> None:
    create(ledger, "namespaces", {"id": "new"})
    assert stored(ledger, "namespaces", "new") == {"id": "new", "labels": {}, "annotations": {}, "allow_prune": False}


def test_an_id_can_be_created_once(ledger: Ledger) -> None:
    refusal = refused(errors.AlreadyExists, ledger, lambda draft: draft.create(NAMESPACES, namespace("team")))
    assert refusal.status == 409


def test_an_invalid_document_is_refused_with_everything_wrong(ledger: Ledger) -> None:
    document = cluster("c2", environment="moon", namespaces=[{"id": "ghost"}], extra=1)
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(CLUSTERS, document))
    assert pointers(refusal) == ["/environment", "/extra", "/namespaces/0/id"]


@pytest.mark.parametrize("id", [5, None, ["a"], {}])
def test_an_id_that_is_no_text_is_one_violation(ledger: Ledger, id: object) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(NAMESPACES, {"id": id}))
    assert [(v.pointer, v.message) for v in refusal.violations] == [("/id", "must be a string")]


@pytest.mark.parametrize("body", [[], "text", 1, None, True])
def test_a_body_that_is_no_object_is_refused_as_a_whole(ledger: Ledger, body: object) -> None:
    for work in (
        lambda draft: draft.create(NAMESPACES, body),
        lambda draft: draft.replace(NAMESPACES, "team", body),
        lambda draft: draft.create_at(NAMESPACES, "new", body),
        lambda draft: draft.merge(NAMESPACES, "team", body),
    ):
        assert pointers(refused(errors.Invalid, ledger, work)) == [""]


def test_an_id_never_changes(ledger: Ledger) -> None:
    for work in (
        lambda draft: draft.replace(NAMESPACES, "team", namespace("other")),
        lambda draft: draft.merge(NAMESPACES, "team", {"id": "other"}),
        lambda draft: draft.create_at(NAMESPACES, "new", namespace("other")),
    ):
        assert pointers(refused(errors.Invalid, ledger, work)) == ["/id"]


def test_a_dns_name_never_changes(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(CLUSTERS, "c1", {"cluster_dns": "new.example.com"}))
    assert pointers(refusal) == ["/cluster_dns"]


def test_removing_a_required_field_points_at_the_missing_member(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(CLUSTERS, "c1", {"cluster_dns": None, "id": None}))
    assert pointers(refusal) == ["/cluster_dns", "/id"]


def test_what_is_not_there_cannot_be_changed(ledger: Ledger) -> None:
    for work in (
        lambda draft: draft.replace(NAMESPACES, "ghost", namespace("ghost")),
        lambda draft: draft.merge(NAMESPACES, "ghost", {}),
        lambda draft: draft.delete(NAMESPACES, "ghost"),
    ):
        refused(errors.NotFound, ledger, work)


def test_a_change_that_changes_nothing_makes_no_revision(ledger: Ledger) -> None:
    before = ledger.fleet.revision
    assert write(ledger, lambda draft: draft.merge(NAMESPACES, "team", {"labels": {"x": None}})) is None
    assert write(ledger, lambda draft: draft.replace(NAMESPACES, "team", namespace("team"))) is None
    assert ledger.fleet.revision == before


def test_the_latest_tombstone_of_an_id_or_of_a_name_is_found(ledger: Ledger) -> None:
    clusters = ledger.kinds.by_name["clusters"]
    for id, dns in (("gone", "one"), ("gone", "two"), ("other", "three")):
        create(ledger, "clusters", cluster(id, cluster_dns=f"{dns}.example.com"))
        write(ledger, lambda draft: draft.delete(clusters, id))  # noqa: B023  # at once
    found: list[str | None] = []

    def work(draft: drafts.Draft) -> None:
        asked: list[tuple[str, object]] = [("gone", None), ("gone", "one"), ("gone", "three"), ("new", "one"), ("new", "four")]
        for id, dns in [*asked, ("new", 5), ("other", "two")]:
            tombstone = draft.buried(id, f"{dns}.example.com" if isinstance(dns, str) else dns)
            found.append(tombstone.dns.partition(".")[0] if tombstone else None)

    assert write(ledger, work) is None
    assert found == ["two", "two", "three", "one", None, None, "three"]


def test_creating_and_deleting_in_one_transaction_is_no_change(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(NAMESPACES, namespace("brief"))
        draft.delete(NAMESPACES, "brief")

    assert write(ledger, work) is None


def test_one_transaction_names_each_change_with_before_and_after(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(NAMESPACES, namespace("new"))
        draft.merge(NAMESPACES, "team", {"allow_prune": True})
        draft.delete(NAMESPACES, "free")

    entry = write(ledger, work)
    assert entry is not None
    shown = {change.id: (change.operation, change.before is None, change.after is None) for change in entry.changes}
    assert shown == {"new": ("create", True, False), "team": ("update", False, False), "free": ("delete", False, True)}


# PUT must not empty lists in silence


def test_replacing_a_cluster_must_name_what_it_has(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.replace(CLUSTERS, "c1", cluster("c1")))
    assert pointers(refusal) == ["/namespaces", "/patches", "/platform_components", "/rolebindings"]
    assert {violation.message.split(";")[0] for violation in refusal.violations} == {"is not empty"}


def test_replacing_a_cluster_can_empty_lists_that_it_names(ledger: Ledger) -> None:
    empty: dict[str, object] = {"platform_components": [], "namespaces": [], "rolebindings": [], "patches": {}}
    write(ledger, lambda draft: draft.replace(CLUSTERS, "c1", cluster("c1", **empty)))
    assert {name: stored(ledger, "clusters", "c1")[name] for name in empty} == empty


def test_lists_that_are_empty_may_be_left_out(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c2"))
    write(ledger, lambda draft: draft.replace(CLUSTERS, "c2", cluster("c2", labels={"a": "b"})))
    assert stored(ledger, "clusters", "c2")["labels"] == {"a": "b"}


def test_replacing_drops_optional_fields_that_are_left_out(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c2", node_count=3, labels={"a": "b"}))
    write(ledger, lambda draft: draft.replace(CLUSTERS, "c2", cluster("c2")))
    assert stored(ledger, "clusters", "c2")["labels"] == {}
    assert "node_count" not in stored(ledger, "clusters", "c2")


# References


def test_a_new_dangling_reference_is_refused(ledger: Ledger) -> None:
    document = cluster("c2", namespaces=[{"id": "team"}, {"id": "ghost"}], rolebindings=[{"id": "nobody"}])
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(CLUSTERS, document))
    assert pointers(refusal) == ["/namespaces/1/id", "/rolebindings/0/id"]
    assert 'namespace "ghost" not found' in refusal.detail


def test_a_reference_may_be_created_in_the_same_transaction(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(CLUSTERS, cluster("c2", namespaces=[{"id": "new"}]))
        draft.create(NAMESPACES, namespace("new"))

    assert write(ledger, work) is not None


def test_a_cluster_that_lost_a_definition_by_force_can_still_be_edited(ledger: Ledger) -> None:
    entry = write(ledger, lambda draft: draft.delete(NAMESPACES, "team", force=True))
    assert entry is not None
    assert entry.forced
    assert ledger.fleet.dangling() == [("c1", "namespaces", "team")]
    write(ledger, lambda draft: draft.merge(CLUSTERS, "c1", {"labels": {"a": "b"}}))
    refusal = refused(
        errors.Invalid, ledger, lambda draft: draft.merge(CLUSTERS, "c1", {"namespaces": [{"id": "team"}, {"id": "ghost"}]})
    )
    assert pointers(refusal) == ["/namespaces/1/id"]


def test_a_definition_in_use_cannot_be_deleted(ledger: Ledger) -> None:
    refusal = refused(errors.InUse, ledger, lambda draft: draft.delete(NAMESPACES, "team"))
    assert refusal.extra["users"] == ["c1"]
    assert refusal.extra["count"] == 1
    assert "c1" in refusal.detail


def test_the_refusal_names_twenty_users_and_counts_all(ledger: Ledger) -> None:
    create(ledger, "clusters", *(cluster(f"d{number:02}", namespaces=[{"id": "free"}]) for number in range(25)))
    refusal = refused(errors.InUse, ledger, lambda draft: draft.delete(NAMESPACES, "free"))
    assert refusal.extra["users"] == [f"d{number:02}" for number in range(20)]
    assert refusal.extra["count"] == 25


def test_a_definition_may_go_together_with_its_last_user(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.delete(NAMESPACES, "team")
        draft.merge(CLUSTERS, "c1", {"namespaces": []})

    entry = write(ledger, work)
    assert entry is not None
    assert not entry.forced


def test_a_definition_cannot_go_while_a_new_user_comes(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(CLUSTERS, cluster("c2", namespaces=[{"id": "free"}]))
        draft.delete(NAMESPACES, "free")

    with pytest.raises(errors.Refusal):
        write(ledger, work)


def test_force_that_was_not_needed_is_not_recorded(ledger: Ledger) -> None:
    entry = write(ledger, lambda draft: draft.delete(NAMESPACES, "free", force=True))
    assert entry is not None
    assert not entry.forced


def test_one_id_in_two_lists_that_take_patches_is_refused() -> None:
    known = kind_files.load(samples.KINDS_DIR)
    ledger = samples.ledger_of(known)
    create(ledger, "platform_components", component("same"))
    create(ledger, "workloads", {"id": "same", "image": "x"}, {"id": "other", "image": "x"})
    both = cluster("c1", platform_components=[{"id": "same"}], assigned_workloads=[{"id": "same"}])
    assert pointers(refused(errors.Invalid, ledger, lambda draft: draft.create(known.clusters, both))) == [
        "/assigned_workloads/0/id"
    ]
    patches = {"same": {"a": 1}, "other": {"b": 2}}
    create(ledger, "clusters", {**both, "assigned_workloads": [{"id": "other"}], "patches": patches})
    assert stored(ledger, "clusters", "c1")["patches"] == patches


# DNS names


def test_a_dns_name_belongs_to_one_cluster(ledger: Ledger) -> None:
    taken = cluster("c2", cluster_dns="c1.example.com")
    refusal = refused(errors.AlreadyExists, ledger, lambda draft: draft.create(CLUSTERS, taken))
    assert "/cluster_dns" in refusal.detail
    assert '"c1"' in refusal.detail


def test_two_clusters_of_one_transaction_cannot_share_a_dns_name(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(CLUSTERS, cluster("c2", cluster_dns="new.example.com"))
        draft.create(CLUSTERS, cluster("c3", cluster_dns="new.example.com"))

    refused(errors.AlreadyExists, ledger, work)


@pytest.mark.parametrize("create_first", [False, True])
def test_a_dns_name_can_be_handed_over_in_one_transaction(ledger: Ledger, create_first: bool) -> None:
    def work(draft: drafts.Draft) -> None:
        if not create_first:
            draft.delete(CLUSTERS, "c1")
        draft.create(CLUSTERS, cluster("heir", cluster_dns="c1.example.com", namespaces=[{"id": "free"}]))
        if create_first:
            draft.delete(CLUSTERS, "c1")

    ledger.fleet.answer(b"c1.example.com/namespaces")
    write(ledger, work)
    assert ledger.fleet.cluster_ids["c1.example.com"] == "heir"
    assert ledger.fleet.tombstones == {}
    assert b'"free"' in ledger.fleet.answer(b"c1.example.com/namespaces")


def test_a_cluster_made_anew_under_another_name_leaves_the_old_name_empty(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.delete(CLUSTERS, "c1")
        draft.create(CLUSTERS, cluster("c1", cluster_dns="moved.example.com"))

    write(ledger, work)
    assert set(ledger.fleet.tombstones) == {"c1.example.com"}
    assert ledger.fleet.answer(b"c1.example.com/namespaces") == b'{"inputs":[]}'


# Preconditions


@pytest.mark.parametrize(
    ("precondition", "fine"),
    [
        (drafts.Precondition(), True),
        (drafts.Precondition(if_match=frozenset({'"2"'})), True),
        (drafts.Precondition(if_match=frozenset({'"1"', '"2"'})), True),
        (drafts.Precondition(if_match=frozenset({"*"})), True),
        (drafts.Precondition(if_match=frozenset({'"1"'})), False),
        (drafts.Precondition(if_match=frozenset({"2"})), False),
        (drafts.Precondition(if_none_match=frozenset({'"1"'})), True),
        (drafts.Precondition(if_none_match=frozenset({'"2"'})), False),
        (drafts.Precondition(if_none_match=frozenset({"*"})), False),
    ],
)
def test_a_precondition_compares_the_revision_of_the_document(
    ledger: Ledger, precondition: drafts.Precondition, fine: bool
) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.expect("namespaces", "team", precondition)

    if fine:
        write(ledger, work)
    else:
        refused(errors.PreconditionFailed, ledger, work)


def test_a_document_that_is_not_there_matches_nothing(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.expect("namespaces", "ghost", drafts.Precondition(if_none_match=frozenset({"*"}))))
    any_match = drafts.Precondition(if_match=frozenset({"*"}))
    refusal = refused(errors.PreconditionFailed, ledger, lambda draft: draft.expect("namespaces", "ghost", any_match))
    assert 'namespaces "ghost" was not found' in refusal.detail


def test_a_failed_precondition_names_the_revision_at_which_the_document_is(ledger: Ledger) -> None:
    older = drafts.Precondition(if_match=frozenset({'"1"'}))
    refusal = refused(errors.PreconditionFailed, ledger, lambda draft: draft.expect("namespaces", "team", older))
    assert 'namespaces "team" is at revision 2, not at "1"' in refusal.detail


# Null in a patch


@pytest.mark.parametrize("name", ["namespaces", "platform_components", "rolebindings", "patches"])
def test_null_empties_neither_references_nor_patches(ledger: Ledger, name: str) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(CLUSTERS, "c1", {name: None}))
    remedy = 'send {"<component>": null} for each one to remove' if name == "patches" else "send [] to empty it"
    assert (f"/{name}", f"must not be null; {remedy}") in refusal.violations


def test_null_is_refused_also_where_there_is_nothing_to_empty(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("c2"))
    patch = {"namespaces": None, "environment": "moon"}
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(CLUSTERS, "c2", patch))
    assert pointers(refusal) == ["/environment", "/namespaces"]


def test_what_the_refusals_advise_empties(ledger: Ledger) -> None:
    empty: dict[str, list[str]] = {"namespaces": [], "platform_components": [], "rolebindings": []}
    write(ledger, lambda draft: draft.merge(CLUSTERS, "c1", {**empty, "patches": {"app": None}}))
    assert {**empty, "patches": {}}.items() <= stored(ledger, "clusters", "c1").items()


def test_null_inside_patches_removes_one_key_or_those_of_one_component(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.merge(CLUSTERS, "c1", {"patches": {"app": {"replicas": None, "color": "red"}}}))
    assert stored(ledger, "clusters", "c1")["patches"] == {"app": {"color": "red"}}
    write(ledger, lambda draft: draft.merge(CLUSTERS, "c1", {"patches": {"app": None}}))
    assert stored(ledger, "clusters", "c1")["patches"] == {}


def test_null_does_not_drop_what_is_kept_for_a_kind_that_is_not_here(tmp_path: Path) -> None:
    store = MemoryStore()
    text = samples.PLAIN + "metadata: {x-flux: {cluster_field: widgets, endpoint: widgets}}\n"
    there = samples.ledger_of(samples.kinds_from(tmp_path, text), store)
    create(there, "widgets", {"id": "one"})
    create(there, "clusters", cluster("c1", widgets=[{"id": "one"}]))
    gone = samples.ledger_of(KNOWN, store)
    refusal = refused(errors.Invalid, gone, lambda draft: draft.merge(CLUSTERS, "c1", {"widgets": None}))
    assert pointers(refusal) == ["/widgets"]
    assert stored(gone, "clusters", "c1")["widgets"] == [{"id": "one"}]
