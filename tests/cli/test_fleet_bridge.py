"""The bridge: kind files of blueprints, inputs from Git into the API, and both compared."""

from __future__ import annotations

import shutil
import socket

import httpx
import pytest
import yaml

import live
from cli.bridged import (
    BATCH,
    CLUSTERS,
    CONFIRMED,
    DEV,
    KIND,
    PROD,
    STAGING,
    api,
    bridged,
    polled,
    references,
    revision,
    server,
    values,
)
from cli.fleets import Fleet, fleet, scaffold

pytestmark = pytest.mark.long

__all__ = ["api", "bridged", "fleet", "scaffold", "server"]


# kind


@pytest.mark.long
def test_the_kind_of_a_blueprint_is_that_of_its_newest_release(bridged: Fleet, api: httpx.Client) -> None:
    served = {kind["kind"]: kind for kind in api.get("/kinds").json()}[KIND]
    assert served["overrides"] == ["appName", "image", "replicas", "logLevel", "environment", "secretName"]
    assert (served["endpoint"], served["cluster_field"], served["schema"]["required"]) == ("standard-services", KIND, ["id"])
    assert api.get("/openapi.yaml").status_code == 200
    bridged.release("v1.10.0", "apps/standard-service/inputs.schema.json", '"secretName"', '"secretRef"')
    bridged.release("v1.9.0", "apps/standard-service/inputs.schema.json", '"secretRef"', '"secretOf"')
    newest = yaml.safe_load(bridged("kind", "standard-service").out)
    assert newest["metadata"]["x-flux"]["overrides"][-1] == "secretRef"
    assert bridged.ok("kind", "standard-service", "-o", "json") == newest
    assert bridged("kind", "standard-service", "-o", "name").out == f"{KIND}\n"
    first = yaml.safe_load(bridged("kind", "standard-service", "--at", "v1.0.0").out)
    assert first["metadata"]["x-flux"]["overrides"] == served["overrides"]


def test_the_example_is_what_the_sample_gives(fleet: Fleet) -> None:
    assert fleet("kind", "standard-service").out == (live.ROOT / "examples" / "standard_services.yaml").read_text()


def test_a_kind_of_what_is_not_there_is_not_found(fleet: Fleet) -> None:
    assert fleet.refused(4, "kind", "nothing") == ['blueprint "nothing" not found at tag v1.0.0; there are: standard-service']
    assert 'tag "v9" not found' in fleet.refused(4, "kind", "standard-service", "--at", "v9")[0]
    assert 'tag "main" not found' in fleet.refused(4, "kind", "standard-service", "--at", "main")[0]
    assert "--at is empty" in fleet.refused(2, "kind", "standard-service", "--at", "")[0]


def test_a_signature_that_no_kind_can_express_is_refused(fleet: Fleet) -> None:
    fleet.release("v2.0.0", "apps/standard-service/inputs.schema.json", '"secretName"', '"secret-name"')
    (line,) = fleet.refused(3, "kind", "standard-service")
    assert line.startswith("apps/standard-service/inputs.schema.json: properties.secret-name: ")


# import


def test_an_import_is_one_transaction_of_a_definition_and_what_differs(bridged: Fleet, api: httpx.Client) -> None:
    before = revision(api)
    done = [{"kind": KIND, "id": "payment-app", "operation": "create"}] + [
        {"kind": "clusters", "id": id, "operation": "update"} for id in CLUSTERS.values()
    ]
    assert bridged.ok("import", "payment-app", "--dry-run") == done
    assert revision(api) == before
    assert bridged.ok("import", "payment-app") == done
    assert revision(api) == before + 1
    definition = api.get(f"/{KIND}/payment-app").json()
    dev, staging, prod = (values(bridged, path) for path in (DEV, STAGING, PROD))
    assert definition == {**staging, "id": "payment-app", "environment": "dev"}  # which all differ in: the first counts
    assert references(api, "dev") == [{"id": "payment-app", "image": dev["image"], "logLevel": "DEBUG"}]
    assert references(api, "prod") == [{"id": "payment-app", "replicas": 3, "environment": "prod"}]
    assert [polled(api, name) for name in CLUSTERS] == [dev, staging, prod]
    assert api.get("/changes", params={"limit": 1}).json()[0]["reason"] == "fleet import payment-app"


def test_an_import_that_is_repeated_writes_nothing(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "--all", "--reason", "moving in")
    before = revision(api)
    assert api.get("/changes", params={"limit": 1}).json()[0]["reason"] == "moving in"
    assert bridged.ok("import", "--all") == []
    assert bridged.ok("import", "payment-app", "--dry-run") == []
    assert revision(api) == before


@pytest.mark.long
def test_clusters_that_are_not_selected_keep_what_they_have(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "payment-app")
    before = {name: polled(api, name) for name in CLUSTERS}
    bridged.edit(PROD, "replicas: 3", "replicas: 7")
    bridged.edit(PROD, "logLevel: INFO", "logLevel: WARN")
    bridged.edit(PROD, "    secretName: payment-app-secrets\n", "")
    bridged.edit(DEV, "replicas: 2", "replicas: 9")  # not selected, so it is not imported
    bridged.ok("import", "payment-app", "--environment", "prod")
    assert polled(api, "prod") == values(bridged, PROD)
    assert {name: polled(api, name) for name in ("dev", "staging")} == {name: before[name] for name in ("dev", "staging")}
    assert api.get(f"/{KIND}/payment-app").json()["logLevel"] == "WARN"  # the majority of those that are selected
    assert bridged.ok("import", "payment-app", "--cluster", CLUSTERS["prod"]) == []


def test_other_references_stay_where_they_are(bridged: Fleet, api: httpx.Client) -> None:
    for id in ("zebra", "ant"):
        assert api.post(f"/{KIND}", json={"id": id, "replicas": 5}).status_code == 201
        assert api.put(f"/clusters/{CLUSTERS['dev']}/{KIND}/{id}", json={"image": "x:1"}).status_code in (200, 201)
    bridged.ok("import", "payment-app")
    assert [each["id"] for each in references(api, "dev")] == ["zebra", "ant", "payment-app"]
    assert references(api, "dev")[0] == {"id": "zebra", "image": "x:1"}


def test_a_tenant_that_runs_another_blueprint_elsewhere_is_held_by_two_kinds(bridged: Fleet, api: httpx.Client) -> None:
    shutil.copytree(bridged.blueprints / "apps/standard-service", bridged.blueprints / "apps/batch-job")
    bridged.edit(PROD.replace("input.yaml", "sync.yaml"), "./apps/standard-service", "./apps/batch-job")
    assert {(row["kind"], row["id"]) for row in bridged.ok("import", "--all")} == {
        (KIND, "payment-app"), (BATCH, "payment-app"), *(("clusters", id) for id in CLUSTERS.values()),
    }  # fmt: skip
    assert references(api, "prod") == []
    assert polled(api, "prod", kind=BATCH) == values(bridged, PROD)
    assert bridged.ok("compare", "--all") == []


def test_clusters_that_the_api_does_not_have_are_all_named_and_nothing_is_written(bridged: Fleet, api: httpx.Client) -> None:
    for name in ("dev", "prod"):
        api.delete(f"/clusters/{CLUSTERS[name]}", headers=CONFIRMED)
    before = revision(api)
    lines = bridged.refused(4, "import", "payment-app")
    assert [line.split('"')[1] for line in lines] == ["dev-use1-01", "prod-use1-01"]
    assert bridged.refused(4, "compare", "payment-app")[0] == lines[0]
    assert revision(api) == before
    bridged.ok("import", "payment-app", "--environment", "staging")


@pytest.mark.long
def test_tenants_are_named_or_all_and_what_is_named_must_be_there(bridged: Fleet) -> None:
    for command in ("import", "compare"):
        lines = bridged.refused(2, command, "payment-app", "--all")
        assert lines == ["say one tenant by its name, or --all; not both"]
        assert bridged.refused(4, command, "nobody") == ['tenant "nobody" not found']
        assert 'environment "qa" not found' in bridged.refused(4, command, "--all", "--environment", "qa")[0]
        assert 'cluster "x" not found' in bridged.refused(4, command, "--all", "--cluster", "x")[0]


def test_without_a_name_all_tenants_are_meant(bridged: Fleet, api: httpx.Client) -> None:
    assert {row["cluster"] for row in bridged("compare").data} == set(CLUSTERS.values())
    assert [row["id"] for row in bridged.ok("import", "--environment", "dev")] == ["payment-app", CLUSTERS["dev"]]
    bridged.ok("import")
    assert [polled(api, name) for name in CLUSTERS] == [values(bridged, path) for path in (DEV, STAGING, PROD)]
    assert bridged.ok("compare") == []


def test_values_that_the_kind_refuses_are_not_written(bridged: Fleet, api: httpx.Client) -> None:
    before = revision(api)
    bridged.edit(DEV, "replicas: 2", "replicas: many")
    lines = bridged.refused(3, "import", "payment-app")
    assert any("replicas" in line for line in lines)
    bridged.edit(DEV, "replicas: many", "replicas: null")
    (line,) = bridged.refused(3, "import", "payment-app")
    assert line == f"{DEV}: replicas is null or holds one, which the API cannot hold; leave it out"
    assert revision(api) == before


def test_a_blueprint_whose_kind_the_server_does_not_know_is_not_found(bridged: Fleet) -> None:
    bridged.edit(DEV.replace("input.yaml", "sync.yaml"), "./apps/standard-service", "./apps/worker")
    for command in ("import", "compare"):
        (line,) = bridged.refused(4, command, "--all")
        assert line.startswith('kind "workers" not found in the API; put what "flux-resourceset-cli fleet kind worker" prints')


def test_a_freeze_holds_an_import_up(bridged: Fleet, api: httpx.Client) -> None:
    assert api.post("/freezes", json={"id": "closing", "environment": "prod", "reason": "year-end"}).status_code == 201
    before = revision(api)
    (line,) = bridged.refused(6, "import", "payment-app")
    assert "closing" in line
    assert revision(api) == before
    bridged.ok("import", "payment-app", "--environment", "dev")


@pytest.mark.long
def test_a_server_that_does_not_answer_is_told(bridged: Fleet) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        bridged.cli = bridged.cli.but(FLUX_API_URL=f"http://127.0.0.1:{nobody.getsockname()[1]}")
        for words in (
            ("import", "--all"),
            ("compare", "--all"),
            ("switch", "payment-app", "--to", "api", "--environment", "dev"),
        ):
            assert bridged.refused(5, *words)


@pytest.mark.long
def test_commands_ask_the_api_of_the_policy_unless_another_is_named(bridged: Fleet, server: live.Server) -> None:
    bridged.ok("import", "--all")
    bridged.edit("fleet.yaml", "https://fleet.acme.example", "http://127.0.0.1:9")
    assert bridged.ok("compare", "--all") == []
    bridged.cli = bridged.cli.but(FLUX_API_URL=None)
    assert bridged.refused(5, "compare", "--all")
    bridged.edit("fleet.yaml", "http://127.0.0.1:9", server.url)
    assert bridged.ok("compare", "--all") == []
    bridged.ok("switch", "payment-app", "--to", "api", "--environment", "dev")
    assert bridged("render", "payment-app", "--environment", "dev", "-o", "json").code == 0


# compare


@pytest.mark.long
def test_what_differs_is_told_field_by_field(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "payment-app", "--environment", "dev")
    found = bridged("compare", "payment-app", "--environment", "staging").data
    assert [row["field"] for row in found] == ["appName", "image", "replicas", "logLevel", "environment", "secretName"]
    assert {row["api"] for row in found} == {None}
    assert found[2] == {
        "environment": "staging",
        "cluster": "staging-use1-01",
        "tenant": "payment-app",
        "field": "replicas",
        "git": 2,
        "api": None,
    }
    bridged.edit(DEV, "    replicas: 2\n", "    replicas: 4\n")
    bridged.edit(DEV, "    logLevel: DEBUG\n", "")
    done = bridged("compare", "payment-app", "--cluster", CLUSTERS["dev"])
    assert (done.code, [(row["field"], row["git"], row["api"]) for row in done.data]) == (
        1,
        [("replicas", 4, 2), ("logLevel", None, "DEBUG")],
    )
    bridged.ok("import", "payment-app")
    assert bridged.ok("compare", "payment-app") == []
    assert polled(api, "dev") == values(bridged, DEV)
