"""No document that the API accepts can add, drop or change an object beyond what it says: rendered by Flux Operator itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import live
from flux_resourceset import cluster_bundle
from flux_resourceset.kinds import kind_files
from flux_resourceset.render import dialect
from unit import samples

from . import expectations, flux_operator, hostile
from .kube import Kube

Object = dict[str, Any]

KNOWN = kind_files.load(live.ROOT / "examples" / "kinds")
EXAMPLES, TAKEN_EXAMPLES = 8, 3  # each is a cluster with up to 15 definitions
# no shrinking: it would call the CLI thousands of times, and the comparison already names the object
SETTINGS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.reuse, Phase.generate)
)
PLACE = "hostile"  # the namespace of dry runs


def inputs_of(kind: str, cluster: Object, definitions: list[Object]) -> list[Object]:
    """Through the API's own door: every document is accepted or the test fails, and the answer is what Flux would get."""
    ledger = samples.ledger_of(KNOWN)
    samples.create(ledger, kind, *definitions)
    samples.create(ledger, "clusters", cluster)
    body = ledger.fleet.answer(f"{cluster['cluster_dns']}/{KNOWN.referenced_by_name[kind].endpoint}".encode())
    inputs: list[Object] = json.loads(body)["inputs"]
    assert [item["id"] for item in inputs] == [reference["id"] for reference in cluster[kind]]
    return inputs


def rendered(directory: Path, kind: str, inputs: list[Object]) -> list[Object]:
    view = KNOWN.referenced_by_name[kind]
    template = view.resourceset or cluster_bundle.resourceset(view.endpoint)
    assert template
    return flux_operator.rendered(directory, template, inputs)


@pytest.mark.parametrize("kind", hostile.DEFINITIONS)
@SETTINGS
@given(data=st.data())
def test_hostile_documents_make_exactly_the_expected_objects(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster, definitions = data.draw(hostile.fleets(kind))
    inputs = inputs_of(kind, cluster, definitions)
    view = KNOWN.referenced_by_name[kind]
    found = rendered(tmp_path_factory.mktemp("render"), kind, inputs)
    expected = [expectations.owned(view.endpoint, each) for item in inputs for each in expectations.BY_KIND[kind](item)]
    if kind == "platform_components":
        found = expectations.without_patches(view.endpoint, found, inputs)
    assert expectations.by_identity(found) == expectations.by_identity(expected)
    assert len(found) == len(expected)


@pytest.fixture(scope="module")
def taker(kube: Kube) -> Kube:
    """A cluster with what the objects need to be taken."""
    kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}])
    return kube


def taken(kube: Kube, directory: Path, kind: str, cluster: Object, definitions: list[Object]) -> None:
    """One object that the API server refuses would hold up the whole view of a cluster."""
    found = rendered(directory, kind, inputs_of(kind, cluster, definitions))
    for each in found:
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = PLACE
    if found:
        # one document, and no escapes but YAML's own: kubectl splits streams at `---` and does not know surrogates
        kube.apply(dialect.json_text({"apiVersion": "v1", "kind": "List", "items": found}), dry_run=True)


@pytest.mark.parametrize("kind", hostile.DEFINITIONS)
@settings(SETTINGS, max_examples=TAKEN_EXAMPLES)
@given(data=st.data())
def test_the_api_server_takes_what_hostile_documents_become(
    kind: str, data: st.DataObject, taker: Kube, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taken(taker, tmp_path_factory.mktemp("render"), kind, *data.draw(hostile.fleets(kind)))


LONGEST: dict[str, list[Object]] = {
    "platform_components": [
        {"id": "c" * 44, "component_path": "p" * 1984, "oci_url": "https://u", "oci_tag": "t" * 2000},
        {"id": "k" * 44, "component_path": "p" * 1984, "oci_url": "oci://u", "oci_tag": "t" * 2000, "type": "kustomize"},
    ],
    "namespaces": [
        {"id": "n" * 63, "labels": {"l" * 63: "v" * 63}, "annotations": {f"{'p' * 63}.{'q' * 63}/{'a' * 63}": "v" * 200_000}}
    ],
    "rolebindings": [{"id": "r" * 63, "role": "r" * 2000, "subjects": [{"kind": "User", "name": "u" * 2000}]}],
}


@pytest.mark.parametrize("kind", LONGEST)
def test_the_api_server_takes_very_long_values(kind: str, taker: Kube, tmp_path: Path) -> None:
    references = [{"id": each["id"]} for each in LONGEST[kind]]
    cluster: Object = {
        "id": "c1",
        "cluster_name": "n" * 253,
        "cluster_dns": "c1.example.com",
        "environment": "prod",
        kind: references,
    }
    if kind == "platform_components":
        cluster["patches"] = {each["id"]: {"k" * 250: "v" * 1000} for each in references}
    taken(taker, tmp_path, kind, cluster, LONGEST[kind])


def test_the_hostile_kinds_are_all_kinds_with_a_view() -> None:
    assert set(hostile.DEFINITIONS) == set(expectations.BY_KIND) == {kind.name for kind in KNOWN.referenced}
