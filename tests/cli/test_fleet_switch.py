"""`fleet switch`: inputs of tenants held by the API instead of Git, and back; and the commands that reach them there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import httpx
import pytest
import yaml

import live
from cli.bridged import (
    CLUSTERS,
    CONFIRMED,
    DEV,
    KIND,
    SECRETS,
    STAGING,
    api,
    bridged,
    cluster,
    polled,
    revision,
    server,
    switched,
    values,
)
from cli.fleets import Fleet, fleet, scaffold

pytestmark = pytest.mark.long

__all__ = ["api", "bridged", "fleet", "scaffold", "server"]

SET_DEV = ("set", "payment-app", "--environment", "dev")
SHARED = ("--existing-secret", "fleet-api-token")


@pytest.mark.long
def test_a_switch_rewrites_the_spec_and_brings_the_token_and_changes_no_object(bridged: Fleet, server: live.Server) -> None:
    bridged.edit("fleet.yaml", "https://fleet.acme.example", server.url)
    bridged.commit()
    before, secrets = bridged.read(DEV), bridged.read(SECRETS)
    bridged.ok("import", "payment-app")
    rendered = bridged("render").out
    row = {"path": DEV, "field": "spec.type", "before": "Static", "after": "ExternalService"}
    assert switched(bridged, "api") == [row]
    written = yaml.safe_load(bridged.read(DEV))
    made = list(yaml.safe_load_all(bridged.cli.ok("bootstrap", CLUSTERS["dev"], *SHARED, "--api-url", server.url).out))
    (provider,) = (each for each in made if each["kind"] == written["kind"] and each["metadata"]["name"] == "standard-services")
    assert written["spec"] == {**provider["spec"], "url": f"{provider['spec']['url']}/payment-app"}
    assert written["spec"]["insecure"] is True
    assert bridged.read(DEV).partition("spec:\n")[0] == before.partition("spec:\n")[0]
    assert bridged.read(SECRETS).startswith(secrets)
    (added,) = yaml.safe_load_all(bridged.read(SECRETS)[len(secrets) :])
    assert (added["kind"], added["spec"]["target"]["name"]) == ("ExternalSecret", "fleet-api-token")
    assert bridged("render").out == rendered
    assert bridged.ok("diff")["tenants"] == []
    assert bridged.ok("lint", "--strict") == []


def test_the_way_back_leads_to_the_same_data_and_the_same_secrets(bridged: Fleet) -> None:
    bridged.ok("import", "payment-app")
    for path in (DEV, SECRETS):
        bridged.write(path, bridged.read(path).replace("\n", "\r\n"))
    before, secrets = bridged.read(DEV), bridged.read(SECRETS)
    switched(bridged, "api")
    assert "\n" not in bridged.read(DEV).replace("\r\n", "")
    assert bridged.read(SECRETS) != secrets
    row = {"path": DEV, "field": "spec.type", "before": "ExternalService", "after": "Static"}
    assert switched(bridged, "git") == [row]
    assert yaml.safe_load(bridged.read(DEV)) == yaml.safe_load(before)
    assert bridged.read(SECRETS) == secrets
    assert switched(bridged, "git") == []


def test_what_the_api_has_by_then_comes_back_in_the_order_of_the_signature(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "payment-app")
    switched(bridged, "api")
    reference = {"secretName": "other-secrets", "replicas": 6, "appName": "other"}
    assert api.put(f"/clusters/{CLUSTERS['dev']}/{KIND}/payment-app", json=reference).status_code == 200
    assert api.patch(f"/{KIND}/payment-app", json={"logLevel": None}).status_code == 200
    warned = bridged("switch", "payment-app", "--to", "git", "--environment", "dev")
    assert (warned.code, warned.err.count("logLevel is required")) == (0, 1)
    found = values(bridged, DEV)
    assert list(found) == ["appName", "image", "replicas", "environment", "secretName"]
    assert (found["appName"], found["replicas"], found["secretName"]) == ("other", 6, "other-secrets")


def test_the_secret_of_a_switch_goes_also_when_its_path_was_changed(bridged: Fleet) -> None:
    bridged.ok("import", "payment-app")
    before = bridged.read(SECRETS)
    switched(bridged, "api")
    bridged.edit(SECRETS, "property: fleet-api-token", "property: token")
    switched(bridged, "git")
    assert bridged.read(SECRETS) == before


def test_an_external_secret_of_somebody_else_stays(bridged: Fleet) -> None:
    bridged.ok("import", "payment-app")
    own = (
        bridged.read(SECRETS)
        .partition("---\n")[2]
        .replace("payment-app-secrets", "fleet-api-token")
        .replace("db_password", "token")
    )
    bridged.write(SECRETS, f"{bridged.read(SECRETS)}---\n{own}")
    before = bridged.read(SECRETS)
    switched(bridged, "api")
    assert bridged.read(SECRETS) == before
    switched(bridged, "git")
    assert bridged.read(SECRETS) == before


@pytest.mark.long
def test_who_has_other_values_is_not_switched_and_neither_is_anybody_with_it(bridged: Fleet) -> None:
    bridged.ok("new-cluster", "dev-use1-02", "--environment", "dev")
    shutil.copytree(bridged.root / "dev/dev-use1-01/tenants", bridged.root / "dev/dev-use1-02/tenants", dirs_exist_ok=True)
    lines = bridged.refused(4, "switch", "payment-app", "--to", "api", "--environment", "dev")
    assert '"dev-use1-02"' in lines[0]
    second = ("--cluster-name", "dev-use1-02", "--cluster-dns", "second.acme.example", "--environment", "dev")
    bridged.cli.ok("cluster", "create", "dev-use1-02", *second)
    bridged.ok("import", "payment-app")
    bridged.edit(DEV.replace("01/", "02/"), "replicas: 2", "replicas: 4")
    before = bridged.git("status", "--porcelain", "-uall"), bridged.read(DEV)
    lines = bridged.refused(6, "switch", "payment-app", "--to", "api", "--environment", "dev")
    assert lines[0] == "dev/dev-use1-02/tenants/payment-app: replicas is 4 in Git and 2 in the API"
    assert (bridged.git("status", "--porcelain", "-uall"), bridged.read(DEV)) == before
    bridged.ok("import", "payment-app")
    assert len(switched(bridged, "api")) == 2


def test_a_tenant_that_the_api_does_not_have_is_not_switched(bridged: Fleet) -> None:
    lines = bridged.refused(6, "switch", "payment-app", "--to", "api", "--cluster", CLUSTERS["dev"])
    assert "dev/dev-use1-01/tenants/payment-app: replicas is 2 in Git and missing in the API" in lines
    bridged.edit(DEV, "replicas: 2", "replicas: null")
    lines = bridged.refused(6, "switch", "payment-app", "--to", "api", "--cluster", CLUSTERS["dev"])
    assert "dev/dev-use1-01/tenants/payment-app: replicas is null in Git, which the API cannot hold; leave it out" in lines
    bridged.edit(DEV, "replicas: null", "replicas: 2")
    assert bridged.git("status", "--porcelain") == ""


@pytest.mark.long
def test_the_policy_says_who_may_hold_inputs(bridged: Fleet) -> None:
    bridged.ok("import", "--all")  # which is allowed everywhere
    (line,) = bridged.refused(3, "switch", "payment-app", "--to", "api", "--environment", "prod")
    assert line == "prod/prod-use1-01/tenants/payment-app: fleet.yaml lets only git hold the inputs of prod"
    switched(bridged, "api", "--environment", "staging")
    bridged.edit("fleet.yaml", "{name: staging}", "{name: staging, inputs: [api]}")
    assert bridged.refused(3, "switch", "payment-app", "--to", "git", "--environment", "staging")
    bridged.edit("fleet.yaml", "api:\n  url: https://fleet.acme.example\n  secret: fleet-api-token\n", "")
    assert "api.url" in bridged.refused(2, "switch", "payment-app", "--to", "api", "--environment", "dev")[0]


def test_a_switch_must_say_who_and_where(bridged: Fleet) -> None:
    assert "--to" in bridged.refused(2, "switch", "payment-app", "--environment", "dev")[0]
    assert "--cluster" in bridged.refused(2, "switch", "payment-app", "--to", "api")[0]
    assert bridged.refused(2, "switch", "payment-app", "--to", "moon", "--environment", "dev")
    assert bridged.refused(4, "switch", "nobody", "--to", "git", "--environment", "dev") == ['tenant "nobody" not found in dev']
    assert switched(bridged, "git", "--environment", "prod") == []


@pytest.mark.long
def test_a_switch_is_shown_committed_or_put_on_a_branch(bridged: Fleet) -> None:
    bridged.ok("import", "--all")
    rows = switched(bridged, "api", "--environment", "dev", "--dry-run")
    assert (len(rows), bridged.git("status", "--porcelain")) == (1, "")
    head = bridged.git("rev-parse", "HEAD")
    assert switched(bridged, "api", "--environment", "dev", "--branch", "to-api") == rows
    assert (bridged.git("rev-parse", "HEAD"), bridged.git("status", "--porcelain")) == (head, "")
    assert bridged.changed("HEAD", "to-api") == [DEV, SECRETS]
    assert bridged.refused(6, "switch", "payment-app", "--to", "api", "--environment", "dev", "--branch", "to-api")
    assert switched(bridged, "api", "--environment", "dev", "--commit") == rows
    assert bridged.git("status", "--porcelain") == ""
    assert bridged.git("log", "-1", "--format=%s%n%(trailers)").splitlines() == [
        "Let the API hold the inputs of payment-app in dev",
        "Fleet-Action: switch",
    ]
    bridged.edit(SECRETS, "refreshInterval: 1h", "refreshInterval: 2h")
    refused = bridged("switch", "payment-app", "--to", "git", "--environment", "dev", "--commit")
    assert (refused.code, refused.err) == (6, f"error: {SECRETS} has changes that are not committed\n")


# Inputs that the API holds


@pytest.mark.long
def test_an_import_leaves_alone_what_the_api_holds_already(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "--all")
    switched(bridged, "api")
    assert api.patch(f"/clusters/{CLUSTERS['dev']}/{KIND}/payment-app", json={"replicas": 8}).status_code == 200
    bridged.edit(STAGING, "replicas: 2", "replicas: 5")
    assert bridged.ok("import", "payment-app", "--environment", "dev") == []
    bridged.ok("import", "--all")
    assert (polled(api, "dev")["replicas"], polled(api, "staging")["replicas"]) == (8, 5)
    assert bridged.ok("compare", "--all") == []


@pytest.mark.long
def test_an_import_that_is_repeated_after_a_switch_writes_nothing(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "--all")
    switched(bridged, "api")
    before, definition = revision(api), api.get(f"/{KIND}/payment-app").json()
    assert definition["environment"] == "dev"  # the first of three that differ, whoever holds it by now
    for words in (("--all",), ("payment-app",), ("--all", "--dry-run")):
        assert bridged.ok("import", *words) == []
    assert revision(api) == before
    bridged.edit(STAGING, "replicas: 2", "replicas: 3")  # as in prod: two of three
    bridged.ok("import", "--all")
    assert api.get(f"/{KIND}/payment-app").json() == {**definition, "replicas": 3}
    assert polled(api, "dev")["replicas"] == 2


@pytest.mark.long
def test_setting_an_input_that_the_api_holds_changes_the_reference_of_that_cluster(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "--all")
    switched(bridged, "api")
    bridged.commit()
    definition, staging = api.get(f"/{KIND}/payment-app").json(), polled(api, "staging")
    rows = bridged.ok(*SET_DEV, "--set-json", "replicas=7")
    assert [(row["field"], row["before"], row["after"]) for row in rows] == [("replicas", 2, 7)]
    assert (polled(api, "dev")["replicas"], polled(api, "staging")) == (7, staging)
    assert api.get(f"/{KIND}/payment-app").json() == definition
    assert api.get("/changes", params={"limit": 1}).json()[0]["reason"] == "fleet set payment-app: replicas"
    assert bridged.git("status", "--porcelain") == ""
    before = revision(api)
    assert bridged.ok(*SET_DEV, "--set-json", "replicas=7") == []
    assert bridged.ok(*SET_DEV, "--set-json", "replicas=8", "--dry-run")[0]["after"] == 8
    assert bridged.refused(3, *SET_DEV, "--set-json", "replicas=-1")
    assert revision(api) == before
    noted = bridged(*SET_DEV, "--set", "logLevel=WARN", "--reason", "quieter", "--branch", "quieter")
    assert (noted.code, noted.err) == (0, "note: the API has what it holds at once; no commit is made of that\n")
    assert bridged.git("branch", "--list", "quieter") == ""
    assert api.get("/changes", params={"limit": 1}).json()[0]["reason"] == "quieter"


@pytest.mark.long
def test_inputs_that_the_api_has_lost_are_a_failure_that_names_the_remedy(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "--all")
    switched(bridged, "api")
    assert api.delete(f"/clusters/{CLUSTERS['dev']}/{KIND}/payment-app", headers=CONFIRMED).is_success
    for words in (("render", "payment-app"), (*SET_DEV, "--set-json", "replicas=3"), ("switch", "payment-app", "--to", "git")):
        (line,) = bridged.refused(4, *words, *(() if "set" in words else ("--environment", "dev")))
        assert "flux-resourceset-cli standard-service assign payment-app --cluster dev-use1-01" in line
    assert api.put(f"/clusters/{CLUSTERS['dev']}/{KIND}/payment-app", json={}).is_success
    assert api.delete(f"/{KIND}/payment-app?force=true", headers={"X-Confirm-Removals": "3"}).is_success
    (line,) = bridged.refused(4, "render", "payment-app", "--environment", "dev")
    assert f'create {KIND} "payment-app" there again' in line
    api.delete(f"/clusters/{CLUSTERS['dev']}", headers=CONFIRMED)
    assert '"dev-use1-01" not found in the API' in bridged.refused(4, "render", "payment-app", "--environment", "dev")[0]


@pytest.mark.long
@pytest.mark.sqlite
def test_a_server_that_does_not_serve_operators_is_told(bridged: Fleet, tmp_path: Path) -> None:
    bridged.ok("import", "--all")
    switched(bridged, "api")
    with live.serving(tmp_path), live.serving(tmp_path, API_MODE="read-only") as reader:
        bridged.cli = bridged.cli.but(FLUX_API_URL=reader.url)
        (line,) = bridged.refused(4, "render", "payment-app", "--environment", "dev")
    assert "does not serve operators; use the URL of a server with API_MODE=crud" in line


@pytest.mark.long
def test_numbers_texts_lists_and_maps_come_back_as_they_were(bridged: Fleet, tmp_path: Path) -> None:
    """By a server of its own, which has a kind with all of them."""
    place = bridged.blueprints / "apps/standard-service/inputs.schema.json"
    schema = json.loads(place.read_text())
    open_map = {"type": "object", "additionalProperties": True}
    schema["properties"] |= {"ratio": {"type": "number"}, "hosts": {"type": "array"}, "limits": open_map, "any": {}}
    place.write_text(json.dumps(schema))
    bridged.git("commit", "-q", "-a", "-m", "more", at=bridged.blueprints)
    bridged.git("tag", "v1.1.0", at=bridged.blueprints)
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "kind.yaml").write_text(bridged("kind", "standard-service").out)
    more = '    ratio: 0.5\n    hosts: [a, {b: [1.0, 2.5]}]\n    limits: {"on": true, cpu: {most: 2}}\n    any: "1e3"\n'
    bridged.write(DEV, bridged.read(DEV) + more)
    bridged.write(STAGING, bridged.read(STAGING) + more.replace("most: 2", "least: 1"))
    with live.serving(tmp_path, RESOURCES_DIR=str(kinds), ENVIRONMENTS=",".join(CLUSTERS)) as server, server.client() as api:
        for environment, id in CLUSTERS.items():
            api.post("/clusters", json=cluster(id, environment))
        bridged.cli = bridged.cli.but(FLUX_API_URL=server.url)
        bridged.ok("import", "--all")
        assert bridged.ok("compare", "--all") == []
        bridged.edit(STAGING, "least: 1", "other: 3")
        bridged.ok("import", "--all")
        assert bridged.ok("compare", "--all") == []
        before = yaml.safe_load(bridged.read(DEV))
        switched(bridged, "api")
        switched(bridged, "git")
        assert yaml.safe_load(bridged.read(DEV)) == before
        bridged.edit("fleet.yaml", "fields: [image]", "fields: [limits]")
        for name in ("dev", "staging"):
            bridged.edit(f"{name}/{CLUSTERS[name]}/flux/blueprints.yaml", "v1.0.0", "v1.1.0")
            switched(bridged, "api", "--environment", name)
        bridged.ok("promote", "payment-app", "--to", "staging")
        assert polled(api, "staging")["limits"] == polled(api, "dev")["limits"] == {"on": True, "cpu": {"most": 2}}


@pytest.mark.long
def test_a_promotion_between_inputs_that_the_api_holds_is_a_write_there(bridged: Fleet, api: httpx.Client) -> None:
    bridged.ok("import", "--all")
    for name in ("dev", "staging"):
        switched(bridged, "api", "--environment", name)
    bridged.commit()
    bridged.ok(*SET_DEV, "--set", "image=registry.acme.com/payment:v3@sha256:" + "cd" * 32)
    rows = bridged.ok("promote", "payment-app", "--to", "staging")
    assert [(row["path"], row["field"]) for row in rows] == [(STAGING, "image")]
    assert polled(api, "staging")["image"] == polled(api, "dev")["image"] != polled(api, "prod")["image"]
    assert api.get("/changes", params={"limit": 1}).json()[0]["reason"] == "fleet promote payment-app to staging"
    assert bridged.git("status", "--porcelain") == ""
