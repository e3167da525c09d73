"""The seed: into an empty store only, all or nothing, with everything that is wrong named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import errors, imports, merge, transfer
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, namespace, stored, write

KNOWN = kind_files.load()
DEMO = Path(__file__).parents[2] / "data" / "seed.json"


@pytest.fixture
def ledger() -> Ledger:
    return samples.ledger_of(KNOWN)


def seed_file(directory: Path, content: Any) -> Path:
    path = directory / "seed.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def refusal(ledger: Ledger, path: Path) -> str:
    with pytest.raises(errors.StartupError) as caught:
        transfer.seed(ledger, path, named=True)
    assert imports.is_empty(ledger.fleet)
    return str(caught.value)


def test_the_demo_seed_is_the_fleet_of_the_book(ledger: Ledger) -> None:
    assert transfer.seed(ledger, DEMO, named=True)
    found = {kind: set(documents) for kind, documents in ledger.fleet.documents.items()}
    assert found == {
        "clusters": {"demo-cluster-01"},
        "freezes": set(),
        "platform_components": {"cert-manager", "traefik", "podinfo"},
        "namespaces": {"cert-manager", "traefik", "podinfo"},
        "rolebindings": {"platform-admins", "dev-readers"},
    }
    demo = stored(ledger, "clusters", "demo-cluster-01")
    assert (demo["environment"], demo["cluster_dns"]) == ("dev", "demo-cluster-01.k8s.example.com")
    assert set(demo["patches"]["podinfo"]) == {"replicaCount", "ui.color", "ui.message"}
    assert stored(ledger, "rolebindings", "platform-admins")["role"] == "cluster-admin"
    components = {id: document.body for id, document in ledger.fleet.documents["platform_components"].items()}
    inputs = merge.inputs(KNOWN.referenced_by_name["platform_components"], demo, components)
    assert inputs[0]["source"] == {"oci_url": "https://charts.jetstack.io", "oci_tag": "latest"}


def test_a_seed_is_one_transaction_of_the_actor_seed(ledger: Ledger) -> None:
    transfer.seed(ledger, DEMO, named=False)
    (entry,) = samples.history(ledger)
    assert (entry.revision, entry.actor) == (1, "seed")
    assert len(entry.changes) == 9


def test_a_seed_is_not_loaded_twice(ledger: Ledger) -> None:
    assert transfer.seed(ledger, DEMO, named=True)
    assert not transfer.seed(ledger, DEMO, named=True)
    assert ledger.fleet.revision == 1


def test_a_store_that_was_emptied_is_not_an_empty_store(ledger: Ledger) -> None:
    create(ledger, "namespaces", namespace("a"))
    write(ledger, lambda draft: draft.delete(KNOWN.by_name["namespaces"], "a"))
    assert not transfer.seed(ledger, DEMO, named=True)


def test_a_missing_default_is_passed_over_and_a_missing_named_one_is_not(ledger: Ledger, tmp_path: Path) -> None:
    assert not transfer.seed(ledger, tmp_path / "none.json", named=False)
    assert "none.json: cannot be read" in refusal(ledger, tmp_path / "none.json")


def test_the_id_may_be_called_as_in_the_catalog_of_the_book(ledger: Ledger, tmp_path: Path) -> None:
    catalog = {key.replace("id", "_id") if key == "id" else key: value for key, value in component("grafana").items()}
    transfer.seed(ledger, seed_file(tmp_path, {"platform_components": [catalog]}), named=True)
    assert stored(ledger, "platform_components", "grafana")["id"] == "grafana"
    assert "_id" not in stored(ledger, "platform_components", "grafana")


def test_the_order_of_the_kinds_does_not_matter(ledger: Ledger, tmp_path: Path) -> None:
    content = {"clusters": [cluster(namespaces=[{"id": "a"}])], "namespaces": [namespace("a")]}
    assert transfer.seed(ledger, seed_file(tmp_path, content), named=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "invalid JSON value"),
        ('{"clusters": [], "clusters": []}', 'duplicate key "clusters"'),
        ("", "invalid JSON value"),
        ('{"clusters": [{"id": "c1", "node_count": NaN}]}', "invalid JSON value"),
        ('{"clusters": [{"id": "\\ud800"}]}', "invalid JSON value"),
        ("[" * 100_000, "invalid JSON value"),
        ("[]", "must hold a JSON object"),
        ({"gadgets": []}, "'gadgets' is no kind"),
        ({"clusters": {}}, "clusters must be an array"),
        ({"clusters": ["text"]}, "clusters[0]: document must be a JSON object"),
    ],
)
def test_a_file_that_is_no_seed_is_refused(ledger: Ledger, tmp_path: Path, content: Any, said: str) -> None:
    path = seed_file(tmp_path, content)
    found = refusal(ledger, path)
    assert found.startswith(f"{path}: ")
    assert said in found
    assert "\n" not in found


def test_bytes_that_are_no_text_are_refused(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "seed.json"
    path.write_bytes(b'{"clusters": "\xff"}')
    assert "invalid JSON value" in refusal(ledger, path)


def test_every_violation_of_a_bad_seed_is_named(ledger: Ledger, tmp_path: Path) -> None:
    content = {
        "clusters": [cluster("c1", environment="moon", extra=1), cluster("c2", labels={"-": "x"})],
        "namespaces": [namespace("kube-system"), namespace("a"), namespace("a")],
    }
    found = refusal(ledger, seed_file(tmp_path, content))
    for part in (
        'clusters "c1": /environment must be one of',
        'clusters "c1": /extra is not a known field',
        'clusters "c2": /labels/- must be',
        'namespaces "kube-system": /id must not be a system namespace',
        'namespaces: duplicate id "a"',
    ):
        assert part in found


def test_what_a_bad_document_repeats_is_named_and_what_it_rightly_refers_to_is_not(ledger: Ledger, tmp_path: Path) -> None:
    bad = cluster("c1", environment="moon", namespaces=[{"id": "a"}])
    content = {"clusters": [bad, cluster("c1"), cluster("c2", cluster_dns="c1.example.com")], "namespaces": [namespace("a")]}
    found = refusal(ledger, seed_file(tmp_path, content))
    assert 'clusters: duplicate id "c1"' in found
    assert 'clusters: duplicate cluster_dns "c1.example.com"' in found
    assert "not found" not in found


def test_every_dangling_reference_and_cycle_of_a_seed_is_named(ledger: Ledger, tmp_path: Path) -> None:
    content = {
        "clusters": [cluster("c1", namespaces=[{"id": "x"}]), cluster("c2", cluster_dns="c1.example.com")],
        "platform_components": [component("a", depends_on=["b"]), component("b", depends_on=["a"])],
    }
    found = refusal(ledger, seed_file(tmp_path, content))
    for part in ('clusters "c1": /namespaces/0/id', 'clusters "c2": /cluster_dns', "makes a cycle: a → b → a", "b → a → b"):
        assert part in found


def test_a_mistake_in_one_document_does_not_hide_those_of_another(ledger: Ledger, tmp_path: Path) -> None:
    content = {"clusters": [cluster("c1", environment="moon"), cluster("c2", namespaces=[{"id": "x"}])]}
    found = refusal(ledger, seed_file(tmp_path, content))
    assert 'clusters "c1": /environment' in found
    assert 'clusters "c2": /namespaces/0/id' in found
