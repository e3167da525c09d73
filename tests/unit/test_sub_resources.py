"""Parts of a cluster: assigning, unassigning and patching, each without touching the rest."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import changes, drafts, errors
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, namespace, pointers, refused, stored, write

KNOWN = kind_files.load()
COMPONENTS = KNOWN.referenced_by_name["platform_components"]
NAMESPACES = KNOWN.referenced_by_name["namespaces"]


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "platform_components", component("app"), component("base"), component("spare"))
    create(made, "namespaces", namespace("team"))
    references = [{"id": "app", "oci_tag": "2"}, {"id": "base"}]
    create(made, "clusters", cluster("c1", platform_components=references, patches={"app": {"a": "1", "b": 2}}))
    return made


def has(ledger: Ledger, field: str) -> Any:
    return stored(ledger, "clusters", "c1")[field]


def test_assigning_adds_a_completed_reference_at_the_end(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.assign("c1", COMPONENTS, "spare", {}))
    assert has(ledger, "platform_components")[2] == {"id": "spare", "enabled": True}


def test_assigning_again_replaces_in_place(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.assign("c1", COMPONENTS, "app", {"id": "app", "enabled": False}))
    assert has(ledger, "platform_components") == [{"id": "app", "enabled": False}, {"id": "base", "enabled": True}]
    assert has(ledger, "patches") == {"app": {"a": "1", "b": 2}}


def test_assigning_the_same_changes_nothing(ledger: Ledger) -> None:
    assert write(ledger, lambda draft: draft.assign("c1", COMPONENTS, "base", {})) is None


def test_an_unknown_definition_cannot_be_assigned(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.assign("c1", NAMESPACES, "ghost", {}))
    assert pointers(refusal) == ["/id"]


def test_pointers_count_from_the_body_of_the_request(ledger: Ledger) -> None:
    body = {"enabled": "yes", "colour": 1}
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.assign("c1", COMPONENTS, "app", body))
    assert pointers(refusal) == ["/colour", "/enabled"]


@pytest.mark.parametrize("body", [[], "x", None])
def test_a_reference_is_an_object(ledger: Ledger, body: Any) -> None:
    assert pointers(refused(errors.Invalid, ledger, lambda draft: draft.assign("c1", COMPONENTS, "app", body))) == [""]
    assert pointers(refused(errors.Invalid, ledger, lambda draft: draft.set_patches("c1", "app", body))) == [""]


def test_the_body_may_repeat_the_id_but_not_another(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.assign("c1", COMPONENTS, "app", {"id": "base"}))
    assert pointers(refusal) == ["/id"]


def test_a_reference_is_merged(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.merge_reference("c1", COMPONENTS, "app", {"enabled": False, "oci_tag": None}))
    assert has(ledger, "platform_components")[0] == {"id": "app", "enabled": False}


def test_a_reference_that_is_not_there_is_not_found(ledger: Ledger) -> None:
    refused(errors.NotFound, ledger, lambda draft: draft.reference("c1", COMPONENTS, "spare"))
    refused(errors.NotFound, ledger, lambda draft: draft.merge_reference("c1", COMPONENTS, "spare", {}))
    refused(errors.NotFound, ledger, lambda draft: draft.assign("ghost", COMPONENTS, "app", {}))


def test_unassigning_takes_the_patches_along_and_counts_them(ledger: Ledger) -> None:
    outcome = ledger.write_now(lambda draft: draft.unassign("c1", COMPONENTS, "app"), changes.Origin("t"))
    assert outcome.result == 2
    assert outcome.entry is not None
    assert has(ledger, "platform_components") == [{"id": "base", "enabled": True}]
    assert has(ledger, "patches") == {}


def test_unassigning_what_is_not_there_changes_nothing(ledger: Ledger) -> None:
    outcome = ledger.write_now(lambda draft: draft.unassign("c1", COMPONENTS, "spare"), changes.Origin("t"))
    assert (outcome.result, outcome.entry) == (0, None)


def test_unassigning_a_namespace_leaves_patches_of_the_same_name(ledger: Ledger) -> None:
    create(ledger, "namespaces", namespace("app"))
    write(ledger, lambda draft: draft.assign("c1", NAMESPACES, "app", {}))
    write(ledger, lambda draft: draft.unassign("c1", NAMESPACES, "app"))
    assert has(ledger, "patches") == {"app": {"a": "1", "b": 2}}


def test_a_dangling_reference_can_be_unassigned_and_patched(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.delete(COMPONENTS, "app", force=True))
    write(ledger, lambda draft: draft.merge_patches("c1", "app", {"c": 3}))
    assert has(ledger, "patches")["app"]["c"] == 3
    write(ledger, lambda draft: draft.unassign("c1", COMPONENTS, "app"))
    assert has(ledger, "patches") == {}


def test_two_edits_of_one_cluster_keep_each_other(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.assign("c1", COMPONENTS, "spare", {}))
    write(ledger, lambda draft: draft.assign("c1", NAMESPACES, "team", {}))
    write(ledger, lambda draft: draft.merge_patches("c1", "base", {"x": 1}))
    assert [reference["id"] for reference in has(ledger, "platform_components")] == ["app", "base", "spare"]
    assert has(ledger, "namespaces") == [{"id": "team"}]
    assert has(ledger, "patches") == {"app": {"a": "1", "b": 2}, "base": {"x": 1}}


# Patches


def read_patches(ledger: Ledger, id: str) -> Any:
    return drafts.Draft(ledger.fleet).patches("c1", id)


def test_patches_are_read_and_empty_when_there_are_none(ledger: Ledger) -> None:
    assert read_patches(ledger, "app") == {"a": "1", "b": 2}
    assert read_patches(ledger, "base") == {}


def test_patches_of_what_is_not_assigned_are_not_found(ledger: Ledger) -> None:
    for work in (
        lambda draft: draft.patches("c1", "spare"),
        lambda draft: draft.set_patches("c1", "spare", {"a": 1}),
        lambda draft: draft.merge_patches("c1", "spare", {"a": 1}),
        lambda draft: draft.patches("ghost", "app"),
    ):
        refused(errors.NotFound, ledger, work)


def test_merged_patches_lose_what_is_null(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.merge_patches("c1", "app", {"a": None, "c": True}))
    assert read_patches(ledger, "app") == {"b": 2, "c": True}


def test_replaced_patches_are_exactly_what_was_sent(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.set_patches("c1", "app", {"z": 1}))
    assert has(ledger, "patches") == {"app": {"z": 1}}


def test_empty_patches_leave_no_trace(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.set_patches("c1", "app", {}))
    assert has(ledger, "patches") == {}
    assert write(ledger, lambda draft: draft.set_patches("c1", "base", {})) is None


def test_wrong_patches_are_told_from_their_own_body(ledger: Ledger) -> None:
    body = {"a b": 1, "password": "x", "deep": {"er": 1}}
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge_patches("c1", "app", body))
    assert pointers(refusal) == ["/a b", "/deep", "/password"]


def test_patching_replicas_from_true_to_one_is_a_change(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.merge_patches("c1", "app", {"on": True}))
    assert write(ledger, lambda draft: draft.merge_patches("c1", "app", {"on": 1})) is not None
    assert read_patches(ledger, "app")["on"] is not True
