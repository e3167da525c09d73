"""Paths into Helm values: what is one, where it leads, and which values can be set there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from flux_resourceset import errors
from flux_resourceset.kinds import helm_paths, kind_files
from flux_resourceset.openapi import conversion
from unit import samples
from unit.samples import cluster, component, create, pointers, refused, write

KNOWN = kind_files.load()

PATHS: dict[str, helm_paths.Steps] = {
    "a": ("a",),
    "ui.color": ("ui", "color"),
    r"grafana\.ini.server.root_url": ("grafana.ini", "server", "root_url"),
    r"nodeSelector.kubernetes\.io/os": ("nodeSelector", "kubernetes.io/os"),
    "hosts[0]": ("hosts", 0),
    "hosts[9999].paths[1].path": ("hosts", 9999, "paths", 1, "path"),
    "a[0][1]": ("a", 0, 1),
    r"\.": (".",),
    r"a\.[2].b": ("a.", 2, "b"),
    "1.2": ("1", "2"),
    ".".join("a" * 31): ("a",) * 31,
    "a" * 250: ("a" * 250,),
}


@pytest.mark.parametrize(("path", "way"), PATHS.items())
def test_a_path_leads_along_keys_and_places_in_lists(path: str, way: helm_paths.Steps) -> None:
    assert helm_paths.is_path(path)
    assert helm_paths.steps(path) == way
    assert helm_paths.shown(way) == path


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", ".a", "a..b", "a\\", "a\\.b\\", r"a\b", r"a\\.b", r"a\[0]", "a[", "a[]", "a[0", "a]", "a[0]]", "a[x]",
     "a[-1]", "a[00]", "a[01]", "a[10000]", "a[0]b", "[0]", "a.[0]", "a b", "a=b", "a,b", "a{b}", "ä", "a\n", "a" * 251,
     ".".join("a" * 32)],
)  # fmt: skip
def test_what_helm_would_not_take_or_take_for_something_else_is_no_path(text: str) -> None:
    assert not helm_paths.is_path(text)
    constraint = conversion.CONSTRAINTS["helm-path"]
    assert len(text) > constraint["maxLength"] or not re.search(constraint["pattern"].replace("$", r"\Z"), text)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("hosts", ["a", 1, 0.5, True, ""], None),
        (r"grafana\.ini.x", [], None),
        ("hosts[0]", "a", None),
        ("hosts[0]", "", None),
        ("hosts[0].name", "x", None),
        ("hosts[0]", 3, None),
        ("hosts[0]", 3.0, None),
        ("hosts[0]", ["a"], "one by one"),
        ("hosts[0].paths", ["a"], "one by one"),
        ("hosts[0].weight", 0.5, "whole numbers only"),
        ("hosts[0].weight", -0.0, "whole numbers only"),
        ("hosts[0].name", "", "Helm would drop"),
        ("hosts[0].a[1]", "", None),
        ("a.b", "", None),
        ("a.b", 0.5, None),
    ],
)
def test_what_cannot_be_set_is_refused_with_the_remedy(key: str, value: Any, said: str | None) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app"))
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    if said is None:
        write(ledger, lambda draft: draft.set_patches("c1", "app", {key: value}))
        assert ledger.fleet.documents["clusters"]["c1"].body["patches"] == {"app": {key: value}}
        return
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.set_patches("c1", "app", {key: value}))
    assert pointers(refusal) == ["/" + key.replace("/", "~1")]
    assert said in refusal.violations[0].message


@pytest.mark.parametrize("value", [None, {}, [None], [["a"]], [{"a": 1}]])
def test_a_patch_is_a_scalar_or_an_array_of_them(value: Any) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app"))
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.set_patches("c1", "app", {"a": value}))
    assert all(pointer.startswith("/a") for pointer in pointers(refusal))
    if value:
        assert "set the elements one by one, as in a[0].name" in refusal.violations[0].message


def test_an_object_is_refused_with_the_remedy() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app"))
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.set_patches("c1", "app", {"a.b": {"c": "d"}}))
    assert "set what is in it path by path, as in a.b.name" in refusal.violations[0].message


@pytest.mark.parametrize("patches", [{"hosts[0]": "a"}, {r"a\.b": "a"}, {"a/b": "a"}, {"a": ["x"]}])
def test_directories_take_variables_only(patches: dict[str, Any]) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app", type="kustomize"))
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    refusal = refused(errors.Invalid, ledger, lambda draft: draft.set_patches("c1", "app", patches))
    assert "as type of the component is kustomize" in refusal.violations[0].message
    create(ledger, "platform_components", component("chart"))
    kinds = ledger.kinds.by_name
    create(ledger, "clusters", cluster("c2", platform_components=[{"id": "chart"}], patches={"chart": patches}))
    becoming = {"type": "kustomize"}
    turned = refused(errors.Invalid, ledger, lambda draft: draft.merge(kinds["platform_components"], "chart", becoming))
    assert pointers(turned) == ["/type"]


@pytest.mark.parametrize(
    ("patches", "said"),
    [
        ({"a": "1", "a.b": "2"}, ["a.b cannot be set below a; Helm refuses the release"]),
        ({"hosts": "1", "hosts[0]": "2"}, ["hosts[0] cannot be set below hosts; Helm refuses the release"]),
        ({"hosts[0]": "1", "hosts[0].name": "2"}, ["hosts[0].name cannot be set below hosts[0], which Helm drops"]),
        ({"hosts[0]": "1", "hosts[0][0]": "2"}, ["hosts[0][0] cannot be set below hosts[0]; Helm refuses the release"]),
        ({"hosts": ["a", "b"], "hosts[2]": "c"}, []),
        ({"hosts": ["a"], "hosts.name": "c"}, ["hosts.name cannot be set below hosts; Helm refuses the release"]),
        ({r"a\.b": "1", "a": "2"}, []),
        ({"hosts[1]": "a"}, ["hosts[0] is null, for Helm replaces the list of the chart; set it, too"]),
        ({"hosts[0].a": "a", "hosts[2].b": "b"}, ["hosts[1] is null, for Helm replaces the list of the chart; set it, too"]),
        ({"hosts[0]": "a", "hosts[1]": "b"}, []),
        ({r"a\.b[1][0]": "a"}, [r"a\.b[0] is null, for Helm replaces the list of the chart; set it, too"]),
    ],
)
def test_what_helm_makes_something_else_of_is_warned_about(patches: dict[str, Any], said: list[str]) -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "platform_components", component("app"))
    create(ledger, "clusters", cluster("c1", platform_components=[{"id": "app"}]))
    outcome = ledger.write_now(lambda draft: draft.set_patches("c1", "app", patches), samples.ORIGIN)
    assert [text.partition('patches of "app": ')[2] for text in outcome.shown_warnings] == said
