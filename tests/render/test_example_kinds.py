"""examples/kinds: what its README says of the files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import live

EXAMPLES = live.ROOT / "examples" / "kinds"
OVERRIDES = {"ingress_routes": {"host": "podinfo.us-east-prod-01.example.com"}}


def example(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["external_secrets", "ingress_routes", "network_policies", "resource_quotas"])
def test_the_inputs_are_what_a_cluster_with_the_document_is_answered(kind: str, server: live.Server) -> None:
    (expected,) = example(f"{kind}.inputs.json")["inputs"]
    document, own = example(f"{kind}.document.json"), expected["cluster"]
    cluster = {"cluster_name": own["name"], "cluster_dns": own["dns"], "environment": own["environment"]}
    with server.client() as api:
        api.post("/clusters", json={"id": own["name"], **cluster})  # the first of the kinds makes it
        api.post(f"/{kind}", json=document).raise_for_status()
        assigned = api.put(f"/clusters/{own['name']}/{kind}/{document['id']}", json=OVERRIDES.get(kind, {}))
        assigned.raise_for_status()
        (found,) = api.get(f"/api/v2/flux/clusters/{own['dns']}/{kind.replace('_', '-')}").json()["inputs"]
    del found["digest"]
    assert found == expected
