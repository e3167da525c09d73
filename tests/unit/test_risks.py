"""What may surprise in what clusters run: something without what it depends on, or in no exact version where that matters."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import guards
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, namespace

KNOWN = kind_files.load(samples.KINDS_DIR)
COMPONENTS = KNOWN.referenced_by_name["platform_components"]


@pytest.fixture
def ledger() -> Ledger:
    ledger = samples.ledger_of(KNOWN)
    ledger.limits = guards.Limits(protected=frozenset({"prod"}))
    create(ledger, "platform_components", component("base"), component("app"), component("top", depends_on=["base"]))
    create(ledger, "namespaces", namespace("n"))
    apps = [{"id": "app"}]
    create(
        ledger, "clusters", *(cluster(f"c{n}", environment="prod" if n else "dev", platform_components=apps) for n in range(3))
    )
    return ledger


def warned(ledger: Ledger, *deeds: Any) -> list[str]:
    return list(samples.rehearsed(ledger, *deeds).warnings)


def assigned(cluster: str, id: str, **fields: Any) -> Any:
    return lambda draft: draft.assign(cluster, COMPONENTS, id, fields)


def merged(kind: str, id: str, **fields: Any) -> Any:
    return lambda draft: draft.merge(KNOWN.by_name[kind], id, fields)


def test_what_is_assigned_without_what_it_depends_on_is_told_once(ledger: Ledger) -> None:
    missing = 'clusters "c0": component "top" is assigned without "base", which it depends on'
    assert warned(ledger, assigned("c0", "top")) == [missing]
    assert warned(ledger, assigned("c0", "top"), assigned("c0", "base")) == []
    samples.write(ledger, assigned("c0", "top"))
    assert warned(ledger, merged("clusters", "c0", labels={"x": "y"})) == []  # it was so before


def test_a_definition_that_comes_to_depend_on_something_is_told_with_how_many_lack_it(ledger: Ledger) -> None:
    samples.write(ledger, assigned("c0", "base"))
    needs = merged("platform_components", "app", depends_on=["base"])
    assert warned(ledger, needs) == ['2 cluster(s): component "app" is assigned without "base", which it depends on']
    assert warned(ledger, merged("platform_components", "base", depends_on=["app"])) == []
    assert warned(ledger, merged("namespaces", "n", labels={"x": "y"})) == []


def test_what_nobody_can_refer_to_has_no_risks(ledger: Ledger) -> None:
    create(ledger, "freezes", {"id": "f", "reason": "r", "environment": "qa"})
    assert warned(ledger, merged("freezes", "f", reason="other")) == []


@pytest.mark.parametrize(
    ("definition", "reference", "said"),
    [
        ({"oci_tag": "latest"}, {}, "latest"),
        ({"oci_tag": "latest", "component_version": "1.2.3"}, {}, None),
        ({"oci_tag": "latest"}, {"oci_tag": "1.2.3"}, None),
        ({"oci_tag": "1.2.3"}, {"oci_tag": "latest"}, "latest"),
        ({"oci_tag": "1.x"}, {}, "1.x"),
        ({"oci_tag": "1.2.3"}, {"oci_tag": None}, None),
        ({"type": "kustomize", "oci_tag": "latest"}, {}, "latest"),
        ({"type": "kustomize", "oci_tag": "latest", "component_version": "1.2.3"}, {}, "latest"),
        ({"type": "kustomize", "oci_tag": "v1.2.3"}, {}, None),
    ],
)
def test_no_exact_version_in_a_protected_environment_is_told(
    ledger: Ledger, definition: dict[str, Any], reference: dict[str, Any], said: str | None
) -> None:
    create(ledger, "platform_components", component("new", **definition))
    told = f'clusters "c1": component "new" has no exact version ({said}) in prod, which is protected'
    assert [text for text in warned(ledger, assigned("c1", "new", **reference)) if "protected" in text] == (
        [told] if said else []
    )
    assert [text for text in warned(ledger, assigned("c0", "new", **reference)) if "protected" in text] == []


def test_a_definition_that_loses_its_version_is_told_with_how_many_have_it(ledger: Ledger) -> None:
    loose = 'component "app" has no exact version (latest) in prod, which is protected'
    assert warned(ledger, merged("platform_components", "app", oci_tag="latest")) == [f"2 cluster(s): {loose}"]
