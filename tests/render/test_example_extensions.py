"""examples/extensions: fields that components gain, from the document to the objects in the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import live
from flux_resourceset import documents, merge, render
from flux_resourceset.kinds import kind_files

EXAMPLES = live.ROOT / "examples" / "extensions"
TEMPLATE = "platform_components.resourceset.yaml"
SHIPPED = live.ROOT / "deploy" / "cluster" / "views" / "platform-components" / "resourceset.yaml"
KNOWN = kind_files.load(EXAMPLES)
COMPONENTS = KNOWN.referenced_by_name["platform_components"]

NAMESPACE = "      targetNamespace: << $id | quote >>\n"
TARGET = """\
      targetNamespace: << get inputs "target_namespace" | default $id | quote >>
      <<- if get inputs "storage_namespace" >>
      storageNamespace: << inputs.storage_namespace | quote >>
      <<- end >>
"""
NAME = "      releaseName: << $id | quote >>\n"
RELEASE = '      releaseName: << get inputs "release_name" | default $id | quote >>\n'
URL = "      url: << inputs.source.oci_url | quote >>\n"
SECRET = """\
      <<- if get inputs "registry_secret" >>
      secretRef:
        name: << inputs.registry_secret | quote >>
      <<- end >>
"""


def test_the_template_is_the_shipped_one_with_what_uses_the_fields() -> None:
    shipped = SHIPPED.read_text(encoding="utf-8").replace("# ../../README.md says", "# deploy/cluster/README.md says")
    expected = shipped.replace(NAMESPACE, TARGET).replace(NAME, RELEASE).replace(URL, URL + SECRET)
    assert (EXAMPLES / TEMPLATE).read_text(encoding="utf-8") == expected, "make the same change here as in the shipped one"
    assert (shipped.count(NAMESPACE), shipped.count(NAME), shipped.count(URL)) == (1, 1, 2)


def objects(definition: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    plain = {"id": "web", "component_path": "web", "oci_url": "oci://registry.example.com/charts", "oci_tag": "1.0.0"}
    document = documents.completed(COMPONENTS, {**plain, **definition})
    assert documents.violations(KNOWN, COMPONENTS, document) == []
    cluster = {"id": "c", "cluster_name": "c", "cluster_dns": "c.example.com", "environment": "dev"}
    whole = documents.completed(KNOWN.clusters, {**cluster, "platform_components": [{"id": "web", **reference}]})
    inputs = [{**each, "digest": "d"} for each in merge.inputs(COMPONENTS, whole, {"web": document})]
    template = yaml.safe_load(Path(EXAMPLES / TEMPLATE).read_text(encoding="utf-8"))
    return {each["kind"]: each["spec"] for each in render.resourceset(template, inputs)}


@pytest.mark.parametrize(
    ("definition", "reference", "namespace", "secret"),
    [
        ({}, {}, "web", None),
        ({"target_namespace": "apps", "registry_secret": "mirror"}, {}, "apps", "mirror"),
        ({"target_namespace": "apps"}, {"target_namespace": "here", "registry_secret": "edge"}, "here", "edge"),
        ({"target_namespace": "apps"}, {"target_namespace": None}, "apps", None),
    ],
)
def test_the_fields_reach_the_objects(definition: Any, reference: Any, namespace: str, secret: str | None) -> None:
    found = objects(definition, reference)
    assert found["HelmRelease"]["targetNamespace"] == namespace
    assert found["HelmRepository"].get("secretRef") == (None if secret is None else {"name": secret})
    assert objects({**definition, "type": "kustomize"}, reference)["OCIRepository"].get("secretRef") == (
        None if secret is None else {"name": secret}
    )


@pytest.mark.parametrize(
    ("definition", "reference", "expected"),
    [
        ({}, {}, ("web", "web", None)),
        ({"release_name": "apps-web", "target_namespace": "apps"}, {}, ("apps-web", "apps", None)),
        ({"storage_namespace": "apps"}, {}, ("web", "web", "apps")),
        (
            {"release_name": "w", "storage_namespace": "apps"},
            {"release_name": "v1.web", "storage_namespace": "here"},
            ("v1.web", "web", "here"),
        ),
    ],
)
def test_a_component_can_be_a_helm_release_that_is_there(definition: Any, reference: Any, expected: Any) -> None:
    found = objects(definition, reference)["HelmRelease"]
    assert (found["releaseName"], found["targetNamespace"], found.get("storageNamespace")) == expected


def test_a_release_name_is_one_that_helm_takes() -> None:
    document = {"id": "web", "component_path": "web", "oci_url": "oci://registry.example.com/charts", "oci_tag": "1.0.0"}
    for name in ("w" * 54, "Web", "web_1", ""):
        assert documents.violations(KNOWN, COMPONENTS, documents.completed(COMPONENTS, {**document, "release_name": name}))


def test_the_template_is_that_of_the_extended_kind() -> None:
    assert COMPONENTS.resourceset == (EXAMPLES / TEMPLATE).read_text(encoding="utf-8")
    assert COMPONENTS.overrides[-2:] == ("target_namespace", "registry_secret")
