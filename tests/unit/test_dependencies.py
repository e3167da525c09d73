"""Components that depend on components: known, acyclic, of one type, and never deleted from under others."""

from __future__ import annotations

import pytest

from flux_resourceset import drafts, errors
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, pointers, refused, write

KNOWN = kind_files.load()
COMPONENTS = KNOWN.by_name["platform_components"]


@pytest.fixture
def ledger() -> Ledger:
    """base ← middle ← top, and a Kustomize component of its own."""
    made = samples.ledger_of(KNOWN)
    create(
        made,
        "platform_components",
        component("base"),
        component("middle", depends_on=["base"]),
        component("top", depends_on=["middle"]),
        component("overlay", type="kustomize"),
    )
    return made


def test_an_unknown_dependency_is_refused(ledger: Ledger) -> None:
    new = component("new", depends_on=["base", "ghost"])
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(COMPONENTS, new))
    assert pointers(refusal) == ["/depends_on/1"]


def test_a_component_does_not_depend_on_itself(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(COMPONENTS, "base", {"depends_on": ["base"]}))
    assert "makes a cycle: base → base" in refusal.detail


@pytest.mark.parametrize(("through", "way"), [("middle", "base → middle → base"), ("top", "base → top → middle → base")])
def test_a_cycle_is_refused_and_shown(ledger: Ledger, through: str, way: str) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(COMPONENTS, "base", {"depends_on": [through]}))
    assert pointers(refusal) == ["/depends_on/0"]
    assert f"makes a cycle: {way}" in refusal.detail


def test_of_a_long_cycle_both_ends_are_shown(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        for number in range(count):
            draft.create(COMPONENTS, component(f"c{number:02}", depends_on=[f"c{number - 1:02}"] if number else []))
        draft.merge(COMPONENTS, "c00", {"depends_on": [f"c{count - 1:02}"]})

    count = 20  # names behind the first: as many as are shown
    whole = " → ".join(["c00", *(f"c{number:02}" for number in reversed(range(count)))])
    assert f"makes a cycle: {whole}" in refused(errors.Invalid, ledger, work).detail
    count = 21
    shown = [*range(20, 10, -1), "…", *range(9, -1, -1)]
    way = " → ".join(["c00", *(f"c{number:02}" if isinstance(number, int) else number for number in shown)])
    assert f"makes a cycle: {way}" in refused(errors.Invalid, ledger, work).detail


def test_a_cycle_made_by_one_transaction_is_refused(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(COMPONENTS, component("a", depends_on=["b"]))
        draft.create(COMPONENTS, component("b", depends_on=["a"]))

    assert "makes a cycle" in refused(errors.Invalid, ledger, work).detail


def test_dependencies_may_come_later_in_the_same_transaction(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        draft.create(COMPONENTS, component("a", depends_on=["b"]))
        draft.create(COMPONENTS, component("b"))

    assert write(ledger, work) is not None


def test_a_dependency_is_of_the_same_type(ledger: Ledger) -> None:
    new = component("new", depends_on=["overlay"])
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(COMPONENTS, new))
    assert pointers(refusal) == ["/depends_on/0"]
    assert "type kustomize" in refusal.detail


def test_a_type_cannot_change_under_a_dependency(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(COMPONENTS, "top", {"type": "kustomize"}))
    assert pointers(refusal) == ["/depends_on/0"]


def test_a_type_cannot_change_under_a_dependent(ledger: Ledger) -> None:
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.merge(COMPONENTS, "base", {"type": "kustomize"}))
    assert pointers(refusal) == ["/type"]
    assert '"middle" depends on it' in refusal.detail


def test_a_chain_can_change_its_type_together(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        for id in ("base", "middle", "top"):
            draft.merge(COMPONENTS, id, {"type": "kustomize"})

    assert write(ledger, work) is not None


@pytest.mark.parametrize("force", [False, True])
def test_what_others_depend_on_is_not_deleted_even_by_force(ledger: Ledger, force: bool) -> None:
    refusal = refused(errors.InUse, ledger, lambda draft: draft.delete(COMPONENTS, "base", force))
    assert refusal.extra["users"] == ["middle"]
    assert refusal.status == 409


def test_a_chain_can_be_deleted_together(ledger: Ledger) -> None:
    def work(draft: drafts.Draft) -> None:
        for id in ("base", "middle", "top"):
            draft.delete(COMPONENTS, id)

    assert write(ledger, work) is not None


def test_a_cluster_need_not_have_what_its_components_depend_on(ledger: Ledger) -> None:
    references = [{"id": "top"}, {"id": "middle", "enabled": False}]
    assert create(ledger, "clusters", cluster(platform_components=references)) is not None
