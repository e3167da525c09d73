"""Keys of patches that what is patched cannot take: refused when a write makes them wrong, borne where they were before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import changes, drafts, errors
from flux_resourceset.changes import Document
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from unit import samples
from unit.samples import cluster, component, create, pointers, refused, write

KNOWN = kind_files.load()
COMPONENTS = KNOWN.referenced_by_name["platform_components"]
DOTTED = {"app": {"ui.color": "red"}}


def whole(type: str) -> Document:
    return component("app", type=type, component_version="latest", cluster_env_enabled=False, depends_on=[])


@pytest.fixture
def old() -> Ledger:
    """A fleet from before there was the rule: a cluster patches a directory with a dotted key."""
    lists: dict[str, Any] = {"labels": {}, "namespaces": [], "rolebindings": [], "patches": DOTTED}
    user = cluster("c1", platform_components=[{"id": "app", "enabled": True}], **lists)
    found = {"platform_components": whole("kustomize"), "clusters": user}
    made = tuple(changes.Change(kind, document["id"], "create", None, document) for kind, document in found.items())
    store = MemoryStore()
    store.begin().commit(changes.Entry(1, "2026-01-01T00:00:00.000000Z", "t", None, None, None, False, made))
    return samples.ledger_of(KNOWN, store)


def test_what_was_wrong_before_does_not_stop_other_writes(old: Ledger) -> None:
    write(old, lambda draft: draft.merge(KNOWN.clusters, "c1", {"labels": {"tier": "edge"}}))
    write(old, lambda draft: draft.merge(COMPONENTS, "app", {"oci_tag": "2"}))
    write(old, lambda draft: draft.set_patches("c1", "app", {"ui.color": "blue", "size": 1}))
    refusal = refused(errors.Invalid, old, lambda draft: draft.merge_patches("c1", "app", {"ui.size": 1}))
    assert pointers(refusal) == ["/ui.size"]
    write(old, lambda draft: draft.set_patches("c1", "app", {"color": "blue"}))
    refused(errors.Invalid, old, lambda draft: draft.set_patches("c1", "app", DOTTED["app"]))


def test_an_import_may_hold_it_and_is_warned(old: Ledger) -> None:
    taken = old.fleet.documents["clusters"]["c1"].body
    draft = drafts.Draft(samples.ledger_of(KNOWN).fleet)
    draft.may_misname = True
    draft.put(COMPONENTS, whole("kustomize"))
    draft.put(KNOWN.clusters, taken)
    draft.finish()
    assert any("/patches/app/ui.color" in warning for warning in draft.warnings)


OWN = """\
kind: apps
apiVersion: v1
metadata:
  x-flux:
    patches: true
    patch_keys: {format: variable, where: {type: b}}
    reference: {type: {type: string}}
    overrides: [type]
schema:
  type: array
  key: {name: id, schema: {type: string}}
  items:
    type: object
    required: [id]
    properties:
      id: {type: string}
      type: {type: string, default: a}
"""


@pytest.mark.parametrize(
    ("definition", "reference", "wrong"),
    [("a", {}, False), ("b", {}, True), ("a", {"type": "b"}, True), ("b", {"type": "a"}, False)],
)
def test_what_a_reference_overrides_counts(definition: str, reference: Document, wrong: bool, tmp_path: Path) -> None:
    ledger = samples.ledger_of(samples.kinds_from(tmp_path, OWN))
    create(ledger, "apps", {"id": "app", "type": definition})
    document = cluster("c1", apps=[{"id": "app", **reference}], patches=DOTTED)
    if wrong:
        refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(ledger.fleet.kinds.clusters, document))
        assert pointers(refusal) == ["/patches/app/ui.color"]
    else:
        create(ledger, "clusters", document)


def test_a_reference_cannot_become_what_its_patches_do_not_fit(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, OWN)
    ledger = samples.ledger_of(known)
    create(ledger, "apps", {"id": "app"})
    create(ledger, "clusters", cluster("c1", apps=[{"id": "app"}], patches=DOTTED))
    apps = known.referenced_by_name["apps"]
    assert pointers(refused(errors.Invalid, ledger, lambda draft: draft.assign("c1", apps, "app", {"type": "b"}))) == [
        "/patches/app/ui.color"
    ]


def test_a_cluster_that_changes_along_is_told_of_itself() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app"))
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}], patches=DOTTED))

    def work(draft: drafts.Draft) -> None:
        draft.merge(COMPONENTS, "app", {"type": "kustomize"})
        draft.merge(KNOWN.clusters, "c1", {"labels": {"tier": "edge"}})

    assert pointers(refused(errors.Invalid, ledger, work)) == ["/patches/app/ui.color"]


@pytest.mark.parametrize("references", [5, True, {"id": "app"}, "app"])
def test_patches_beside_what_is_no_list_are_no_defect(references: Any) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app", type="kustomize"))
    document = cluster("c1", platform_components=references, patches=DOTTED)
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.create(KNOWN.clusters, document))
    assert "/platform_components" in pointers(refusal)
