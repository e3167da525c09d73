"""A server that knows the kinds of two blueprints, and the fleet of a test with its clusters, for tests of the bridge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import live
from cli.fleets import INPUT, Fleet

CLUSTERS = {name: f"{name}-use1-01" for name in ("dev", "staging", "prod")}
DEV, STAGING, PROD = (INPUT.format(name) for name in CLUSTERS)
SECRETS = DEV.replace("input.yaml", "secrets.yaml")
KIND, BATCH = "standard_services", "batch_jobs"
CONFIRMED = {"X-Confirm-Removals": "1"}


@pytest.fixture(scope="module")
def server(scaffold: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    folder = tmp_path_factory.mktemp("bridge")
    kinds = folder / "kinds"
    kinds.mkdir()
    text = Fleet(scaffold)("kind", "standard-service").out
    (kinds / "first.yaml").write_text(text)
    (kinds / "second.yaml").write_text(text.replace("standard_service", "batch_job"))
    with live.serving(folder, RESOURCES_DIR=str(kinds), ENVIRONMENTS=",".join(CLUSTERS)) as running:
        yield running


@pytest.fixture
def api(server: live.Server) -> Iterator[httpx.Client]:
    """The server, with the three clusters of the sample and nothing else."""
    with server.client() as client:
        for kind in ("freezes", "clusters", KIND, BATCH):
            for document in client.get(f"/{kind}").json():
                assert client.delete(f"/{kind}/{document['id']}", headers=CONFIRMED).is_success
        for environment, id in CLUSTERS.items():
            assert client.post("/clusters", json=cluster(id, environment)).status_code == 201
        yield client


def cluster(id: str, environment: str) -> dict[str, Any]:
    return {"id": id, "cluster_name": id, "cluster_dns": f"{id}.acme.example", "environment": environment}


@pytest.fixture
def bridged(fleet: Fleet, server: live.Server, api: httpx.Client) -> Fleet:
    """The fleet, with an API to hold its inputs."""
    fleet.cli = fleet.cli.but(FLUX_API_URL=server.url, FLUX_API_TOKEN=live.READ, FLUX_API_WRITE_TOKEN=live.WRITE)
    return fleet


def polled(api: httpx.Client, environment: str, tenant: str = "payment-app", kind: str = KIND) -> dict[str, Any]:
    """What Flux gets for a tenant, but for what the API adds."""
    dns = f"{CLUSTERS[environment]}.acme.example"
    answer = api.get(f"/api/v2/flux/clusters/{dns}/{kind.replace('_', '-')}/{tenant}")
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["inputs"]
    return {name: value for name, value in found.items() if name not in ("id", "cluster", "digest")}


def values(fleet: Fleet, path: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(fleet.read(path))["spec"]["defaultValues"]
    return found


def revision(api: httpx.Client) -> int:
    return int(api.get("/clusters").headers["X-Revision"])


def references(api: httpx.Client, environment: str, kind: str = KIND) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/clusters/{CLUSTERS[environment]}").json()[kind]
    return found


def switched(fleet: Fleet, to: str, *words: str) -> Any:
    return fleet.ok("switch", "payment-app", "--to", to, *(words or ("--environment", "dev")))
