"""What the shipped views make of their inputs, field by field; the expectations are those of the end-to-end suite."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

import live
from e2e import expectations
from flux_resourceset import cluster_bundle, render
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Referenced
from flux_resourceset.render import dialect
from render.generated import Maker

Object = dict[str, Any]

KINDS = kind_files.load(live.ROOT / "examples" / "kinds")
GENERATED = 150  # of each kind: every hostile text in every field, as good as surely
CLUSTER = {"name": "one", "dns": "one.example.com", "environment": "prod"}
COMPONENT = {
    "id": "web", "component_path": "web", "component_version": "latest", "cluster_env_enabled": False, "type": "helm",
    "depends_on": [], "wait_for": [], "enabled": True, "patches": {}, "cluster": CLUSTER, "digest": "d1",
    "source": {"oci_url": "https://charts.example.com", "oci_tag": "1.0.0"},
}  # fmt: skip


def template(kind: Referenced) -> Object:
    ((_, found),) = dialect.documents(kind.resourceset or cluster_bundle.resourceset(kind.endpoint) or "")
    return dict(found)


def rendered(view: str, *inputs: Object) -> list[Object]:
    return render.resourceset(template(KINDS.by_endpoint[view]), list(inputs))


def components(*changes: Object) -> dict[str, Object]:
    """By kind, what the component above becomes with these changes."""
    found = rendered("platform-components", *({**COMPONENT, **change} for change in changes))
    return {each["kind"]: each for each in found}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS.referenced, ids=lambda kind: kind.endpoint)
def test_generated_inputs_make_exactly_the_expected_objects(kind: Referenced) -> None:
    inputs = Maker(seed=8).inputs(KINDS, kind, GENERATED)
    found = render.resourceset(template(kind), inputs)
    expected = [expectations.owned(kind.endpoint, each) for item in inputs for each in expectations.BY_KIND[kind.name](item)]
    if kind.patches:
        found = expectations.without_patches(kind.endpoint, found, inputs)
    wanted = expectations.by_identity(expected)
    for identity, each in expectations.by_identity(found).items():
        assert json.dumps(each, sort_keys=True) == json.dumps(wanted.pop(identity, None), sort_keys=True)  # true is not 1 here
    assert wanted == {}
    assert len(found) == len(expected)


# Components


def test_a_component_waits_for_those_that_run_and_not_for_all_that_it_depends_on() -> None:
    for type, kind in (("helm", "HelmRelease"), ("kustomize", "Kustomization")):
        asked = {"type": type, "depends_on": ["away", "here"], "wait_for": ["here"]}
        assert components(asked)[kind]["spec"]["dependsOn"] == [{"name": "platform-here"}]
        assert "dependsOn" not in components({**asked, "wait_for": []})[kind]["spec"]


def test_a_server_that_says_nothing_of_waiting_is_taken_at_its_dependencies() -> None:
    asked = {**COMPONENT, "depends_on": ["other"]}
    del asked["wait_for"], asked["type"], asked["digest"]
    found = {each["kind"]: each for each in rendered("platform-components", asked)}
    assert found["HelmRelease"]["spec"]["dependsOn"] == [{"name": "platform-other"}]


def test_a_disabled_component_makes_nothing() -> None:
    assert components({"enabled": False, "patches": {"a": "1"}}) == {}


@pytest.mark.parametrize(
    ("tag", "component", "pinned"),
    [("1.0.0", "2.0.0", "1.0.0"), ("latest", "2.0.0", "2.0.0"), ("latest", "latest", None), ("1.0.0", "latest", "1.0.0")],
)
def test_a_chart_has_the_version_that_is_pinned_or_none(tag: str, component: str, pinned: str | None) -> None:
    source = {"oci_url": "https://charts.example.com", "oci_tag": tag}
    chart = components({"source": source, "component_version": component})["HelmRelease"]["spec"]["chart"]["spec"]
    assert chart.get("version") == pinned


def test_a_path_by_environment_has_one_slash_before_it() -> None:
    for path in ("apps/web", "apps/web/"):
        chart = components({"component_path": path, "cluster_env_enabled": True})["HelmRelease"]["spec"]["chart"]["spec"]
        assert chart["chart"] == "apps/web/prod"


@pytest.mark.parametrize(
    ("url", "tag", "kind", "ref"),
    [
        ("oci://registry.example.com/web", "latest", "OCIRepository", {"tag": "latest"}),
        ("https://git.example.com/web", "v1", "GitRepository", {"tag": "v1"}),
        ("https://git.example.com/web", "latest", "GitRepository", None),
    ],
)
def test_directories_come_from_a_registry_or_from_git(url: str, tag: str, kind: str, ref: Object | None) -> None:
    found = components({"type": "kustomize", "source": {"oci_url": url, "oci_tag": tag}})
    assert found[kind]["spec"].get("ref") == ref
    assert found["Kustomization"]["spec"]["sourceRef"] == {"kind": kind, "name": "charts-web"}


@pytest.mark.parametrize(
    ("name", "slug"),
    [("one", "one"), ("Zürich #1", "zurich-1"), ("_a_b_", "a-b"), ("--", "cluster"), ("a_b", "a-b")],
)
def test_the_values_of_a_component_are_named_after_it_and_the_cluster(name: str, slug: str) -> None:
    found = components({"patches": {"a": "1"}, "cluster": {**CLUSTER, "name": name}})
    assert found["ConfigMap"]["metadata"]["name"] == f"values-web-{slug}"


@pytest.mark.parametrize(("id", "name"), [("a--b", "a--b"), ("a_b", "a-b"), ("Web App", "web-app"), ("y", "y")])
def test_names_are_made_of_ids_that_are_none(id: str, name: str) -> None:
    found = components({"id": id})
    assert found["HelmRepository"]["metadata"]["name"] == f"charts-{name}"
    assert found["HelmRelease"]["spec"]["releaseName"] == found["HelmRelease"]["spec"]["targetNamespace"] == name


PATCHES = {
    "replicas": 2,
    "flag": "true",
    "a.b": 0.5,
    "text": "007",
    "many": "a,b={c}",
    "off": False,
    "yes": "no",
    "big": "1" * 19,
}
TAKEN = {
    "replicas": ("2", "typed"), "flag": ("true", "typed"), "a.b": ('{"a":{"b":0.5}}', "document"), "text": ("007", "literal"),
    "many": ("a,b={c}", "literal"), "off": ("false", "typed"), "yes": ("no", "literal"), "big": ("1" * 19, "literal"),
}  # fmt: skip


def test_a_patch_arrives_in_a_chart_with_its_type() -> None:
    found = components({"patches": PATCHES})
    assert found["ConfigMap"]["data"] == {key: text for key, (text, _) in TAKEN.items()}
    how: dict[str, Object] = {"typed": {"targetPath": True}, "literal": {"targetPath": True, "literal": True}, "document": {}}
    assert found["HelmRelease"]["spec"]["valuesFrom"] == [
        {
            "kind": "ConfigMap", "name": "values-web-one", "valuesKey": key,
            **{name: key if name == "targetPath" else value for name, value in how[way].items()},
        }
        for key, (_, way) in sorted(TAKEN.items())
    ]  # fmt: skip


ESCAPED = {
    r"grafana\.ini.server.root_url": "https://x", "hosts[0].name": "3", r"node.kubernetes\.io/os": "linux",
    r"a\.b.c": 0.5, "list": ["a", 1, True, "3"], r"x\.y.list": [],
}  # fmt: skip


def test_a_patch_key_that_no_config_map_takes_stands_under_another_and_means_the_same() -> None:
    found = components({"patches": ESCAPED})
    data, entries = found["ConfigMap"]["data"], found["HelmRelease"]["spec"]["valuesFrom"]
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) and not key.startswith("..") for key in data)
    assert {entry["valuesKey"] for entry in entries} == data.keys()
    taken = {entry.get("targetPath", ""): (data[entry["valuesKey"]], entry.get("literal", False)) for entry in entries}
    assert taken.pop("") is not None
    assert taken == {
        r"grafana\.ini.server.root_url": ("https://x", True), "hosts[0].name": ("3", False),
        r"node.kubernetes\.io/os": ("linux", True),
    }  # fmt: skip
    documents = [json.loads(data[entry["valuesKey"]]) for entry in entries if "targetPath" not in entry]
    assert documents == [{"a.b": {"c": 0.5}}, {"list": ["a", 1, True, "3"]}, {"x.y": {"list": []}}]
    assert data["list"] == '{"list":["a",1,true,"3"]}'


def test_a_patch_of_directories_is_a_variable() -> None:
    found = components({"type": "kustomize", "patches": {"RATIO": 0.5, "COUNT": 2, "WORD": "007"}})
    assert found["ConfigMap"]["data"] == {"RATIO": "0.5", "COUNT": "2", "WORD": "007"}
    assert found["Kustomization"]["spec"]["postBuild"] == {"substituteFrom": [{"kind": "ConfigMap", "name": "values-web-one"}]}


# Namespaces and role bindings


def test_a_namespace_is_kept_unless_it_may_be_pruned() -> None:
    plain = {"id": "a", "labels": {}, "annotations": {}}
    prune = "fluxcd.controlplane.io/prune"
    for said, kept in (({}, "disabled"), ({"allow_prune": False}, "disabled"), ({"allow_prune": True}, None)):
        (found,) = rendered("namespaces", {**plain, **said, "digest": "d1"})
        assert found["metadata"]["annotations"].get(prune) == kept


def test_a_role_binding_is_recreated_when_its_role_changes() -> None:
    (found,) = rendered("rolebindings", {"id": "a", "role": "view", "subjects": [], "digest": "d1"})
    assert found["metadata"]["annotations"]["fluxcd.controlplane.io/force"] == "enabled"
    assert found["subjects"] == []


@pytest.mark.parametrize("id", ["1", "true", "null", "y", "1e3", "0x1f"])
def test_an_id_that_looks_like_something_else_is_a_name(id: str) -> None:
    digest = {"digest": id}  # which is one of those as often as not
    (namespace,) = rendered("namespaces", {"id": id, "labels": {id: id}, "annotations": {id: id}, **digest})
    assert namespace["metadata"]["name"] == namespace["metadata"]["labels"][id] == id
    assert namespace["metadata"]["annotations"] == {
        id: id, "event.toolkit.fluxcd.io/digest": id, "fluxcd.controlplane.io/prune": "disabled",
    }  # fmt: skip
    subject = {"kind": "ServiceAccount", "name": id, "namespace": id}
    (binding,) = rendered("rolebindings", {"id": id, "role": id, "subjects": [subject], **digest})
    assert (binding["metadata"]["name"], binding["roleRef"]["name"], binding["subjects"]) == (id, id, [subject])
    assert binding["metadata"]["annotations"]["event.toolkit.fluxcd.io/digest"] == id
    source = {"oci_url": "https://x", "oci_tag": id}
    release = components({"id": id, "component_path": id, "source": source, "patches": {id: id}, **digest})["HelmRelease"]
    assert (release["spec"]["releaseName"], release["spec"]["targetNamespace"]) == (id, id)
    chart = release["spec"]["chart"]["spec"]
    assert (chart["chart"], chart["version"]) == (id, id)
    assert release["spec"]["valuesFrom"][0]["valuesKey"] == id
    assert release["metadata"]["annotations"]["event.toolkit.fluxcd.io/digest"] == id
    found = components({"id": id, "type": "kustomize", "source": source, "patches": {id: id}, **digest})
    assert found["GitRepository"]["spec"]["ref"] == {"tag": id}
    assert found["Kustomization"]["metadata"]["annotations"]["event.toolkit.fluxcd.io/digest"] == id
    assert found["ConfigMap"]["data"] == {id: id}


def test_a_url_that_ends_like_a_key_is_a_url() -> None:
    source = {"oci_url": "https://x.example.com/a:", "oci_tag": "1"}
    for type, kind in (("helm", "HelmRepository"), ("kustomize", "GitRepository")):
        assert components({"type": type, "source": source})[kind]["spec"]["url"] == source["oci_url"]


# What holds of every view


@pytest.mark.parametrize("kind", KINDS.referenced, ids=lambda kind: kind.endpoint)
def test_a_view_is_about_itself_in_the_namespace_of_flux(kind: Referenced) -> None:
    found = template(kind)
    assert (found["apiVersion"], found["kind"]) == ("fluxcd.controlplane.io/v1", "ResourceSet")
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == (kind.endpoint, "flux-system")
    assert found["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"] == "10m"
    assert found["spec"]["inputsFrom"] == [{"kind": "ResourceSetInputProvider", "name": kind.endpoint}]
    waits = [each for each in found["spec"]["dependsOn"] if each["kind"] == "ResourceSetInputProvider"]
    assert [(each["apiVersion"], each["name"], each["namespace"], each["ready"]) for each in waits] == [
        ("fluxcd.controlplane.io/v1", kind.endpoint, "flux-system", True)
    ]


@pytest.mark.parametrize("view", ["namespaces", "platform-components", "rolebindings"])
def test_a_shipped_provider_asks_for_its_own_view_and_for_all_of_it(view: str) -> None:
    ((_, found),) = dialect.documents(cluster_bundle.provider(view) or "")
    assert (found["apiVersion"], found["kind"]) == ("fluxcd.controlplane.io/v1", "ResourceSetInputProvider")
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == (view, "flux-system")
    assert found["metadata"]["annotations"]["fluxcd.controlplane.io/reconcileEvery"] == "5m"
    assert found["spec"] == {
        "type": "ExternalService",
        "url": f"${{INTERNAL_API_URL}}/api/v2/flux/clusters/${{CLUSTER_DNS}}/{view}",
        "secretRef": {"name": "internal-api-token"},
        "filter": {"limit": 10000},
    }


def test_what_delivers_the_views_never_prunes_them_and_knows_whose_they_are() -> None:
    cluster = live.ROOT / "deploy" / "cluster"
    source, delivery = yaml.safe_load_all((cluster / "delivery.yaml").read_text())
    assert delivery["spec"]["prune"] is False
    assert delivery["spec"]["postBuild"] == {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-identity"}]}
    assert (delivery["spec"]["path"], delivery["spec"]["sourceRef"]["name"]) == ("./views", source["metadata"]["name"])
    listed = yaml.safe_load((cluster / "views" / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == {path.name for path in (cluster / "views").iterdir() if path.is_dir()}
    for view in listed:
        own = yaml.safe_load((cluster / "views" / view / "kustomization.yaml").read_text())["resources"]
        assert set(own) == {"provider.yaml", "resourceset.yaml"}
