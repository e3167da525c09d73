"""Rules of `fleet lint` about inputs: who holds them, the secrets that they name or are, and images."""

from __future__ import annotations

import pytest

from flux_resourceset.repositories import findings
from unit.lint_trees import (
    AWS,
    DEV,
    DIGEST,
    HUB,
    INPUT,
    JWT,
    KEY,
    LAB,
    PIN,
    PROD,
    ROLE,
    SECRETS,
    TENANT,
    B,
    Files,
    copied,
    line_of,
    lint,
    rules,
    with_added,
    with_edit,
)

# Who holds the inputs


def external(url: str, more: str = "") -> str:
    head = B[INPUT].partition("spec:")[0]
    spec = f"  type: ExternalService\n  url: {url}\n  secretRef:\n    name: fleet-api-token\n  filter:\n    limit: 10000\n"
    return f"{head}spec:\n{spec}{more}"


URL = "https://fleet.acme.example/api/v2/flux/clusters/dev.acme.example/standard-services/payment-app"
TOKEN = """---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: fleet-api-token
  namespace: payment-dev
spec:
  secretStoreRef: {kind: SecretStore, name: cluster-vault}
  target: {name: fleet-api-token}
  data: [{secretKey: token, remoteRef: {key: anywhere, property: token}}]
"""


def held_by_api(**changed: str) -> Files:
    return with_added({**B, INPUT: external(URL)}, SECRETS, TOKEN) | changed


def test_inputs_that_the_api_holds_are_its_own() -> None:
    assert rules(held_by_api()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("https://fleet.acme.example/", "https://other.acme.example/"),
        ("/payment-app\n", "/another-app\n"),
        ("/payment-app\n", "/payment-app?x=1\n"),
        ("/standard-services/", "/"),
        ("limit: 10000", "limit: 100"),
        ("    name: fleet-api-token", "    name: other-token"),
        ("https://", "http://"),
    ],
)
def test_a_provider_that_asks_elsewhere_is_found(old: str, new: str) -> None:
    assert ("manifest", INPUT) in rules(with_edit(held_by_api(), INPUT, old, new))


def test_the_token_needs_its_secret() -> None:
    assert rules({**B, INPUT: external(URL)}) == [("secret-name", INPUT)]


def test_http_must_be_permitted() -> None:
    plain = with_edit(held_by_api(), "fleet.yaml", "https://fleet.acme.example", "http://fleet.acme.example")
    plain[INPUT] = external(URL.replace("https", "http"))
    assert rules(plain) == [("manifest", INPUT)]
    plain[INPUT] = external(URL.replace("https", "http"), "  insecure: true\n")
    assert rules(plain) == []


def test_an_environment_says_who_may_hold_its_inputs() -> None:
    assert rules(with_edit(B, "fleet.yaml", "{name: dev}", "{name: dev, inputs: [api]}")) == [("held-by", INPUT)]
    assert rules(with_edit(held_by_api(), "fleet.yaml", "{name: dev}", "{name: dev, inputs: [git]}")) == [("held-by", INPUT)]
    assert rules(with_edit(held_by_api(), "fleet.yaml", "{name: dev}", "{name: dev, inputs: [api]}")) == []


def test_without_an_api_nothing_can_be_held_there() -> None:
    files = with_edit(held_by_api(), "fleet.yaml", "api:\n  url: https://fleet.acme.example\n  secret: fleet-api-token\n", "")
    assert rules(files) == [("manifest", INPUT)]


# Secrets


@pytest.mark.parametrize(
    "path", [INPUT, SECRETS, PIN, ROLE, "fleet.yaml", "terraform/main.tf", "keys/cosign.key", "README.md", f"{TENANT}/.env"]
)
def test_every_kind_of_secret_is_found_in_every_file(path: str) -> None:
    secrets = (AWS, HUB, LAB, JWT, KEY, "github_pat_" + "a" * 22, "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----")
    files = with_added(B, path, "".join(f"# {secret}\n" for secret in secrets))
    found = [(finding.path, finding.line) for finding in lint(files) if finding.rule == "secret-value"]
    assert found == [(path, line_of(files[path], secret)) for secret in secrets]


def test_a_secret_of_kubernetes_has_no_values_in_git() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: y}\nstringData: {password: x}\n"
    assert rules({**B, f"{DEV}/base/secret.yaml": secret}) == [("secret-value", f"{DEV}/base/secret.yaml")]
    encoded = secret.replace("stringData: {password: x}", "data: {x: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t}")
    assert rules({**B, f"{DEV}/base/secret.yaml": encoded}) == [("secret-value", f"{DEV}/base/secret.yaml")]
    assert rules({**B, f"{DEV}/base/secret.yaml": secret.replace("password: x", "user: x")}) == []


def test_all_that_a_named_secret_is_made_of_is_read_from_the_path_of_the_tenant() -> None:
    for entry in (
        "  dataFrom: [{extract: {key: secret/data/other/dev}}]", "  dataFrom: [{find: {path: secret/data/other}}]",
        "  data: [{secretKey: a, remoteRef: {key: secret/data/payment-app/dev/more}}]",
    ):  # fmt: skip
        text = B[SECRETS].partition("  data:")[0] + entry + "\n"
        assert rules({**B, SECRETS: text}) == [("secret-path", SECRETS)]
    good = B[SECRETS].partition("  data:")[0] + "  dataFrom: [{extract: {key: secret/data/payment-app/dev}}]\n"
    assert rules({**B, SECRETS: good}) == []


def test_a_secret_that_no_input_names_may_come_from_elsewhere() -> None:
    assert rules(with_added(B, SECRETS, TOKEN)) == []


def test_without_a_path_in_the_policy_none_is_asked_for() -> None:
    free = with_edit(B, "fleet.yaml", 'secrets:\n  path: "secret/data/{tenant}/{environment}"\n', "")
    assert rules(with_edit(free, SECRETS, "key: secret/data/payment-app/dev", "key: anything")) == []


@pytest.mark.parametrize("end", ["", "/", ":8200"])
def test_two_clusters_cannot_share_a_vault(end: str) -> None:
    server = next(line for line in B[SECRETS].splitlines() if "server:" in line)
    other = f"{PROD}/tenants/payment-app/secrets.yaml"
    host = "https://vault.acme.example" + (":8200" if end == ":8200" else "")
    files = with_edit(B, SECRETS, server, f"      server: {host}")
    old = next(line for line in B[other].splitlines() if "server:" in line)
    files = with_edit(files, other, old, f"      server: {host.replace('vault.acme', 'VAULT.Acme')}{'/' if end == '/' else ''}")
    (finding,) = lint(files)
    assert (finding.rule, finding.path, finding.line) == ("shared-store", other, line_of(files[other], "server:"))
    mount = next(line for line in B[other].splitlines() if "path:" in line and "mountPath" not in line)
    assert lint(with_edit(files, other, mount, "      path: prod")) == []


def test_a_shared_vault_is_told_once_for_a_cluster() -> None:
    files = copied(B, f"{TENANT}/", ("payment-app", "z-app"), ("payment-dev", "z-dev"), ("payment-processor", "z"))
    files = {path: text.replace("vault.prod-use1-01", "vault.dev-use1-01") for path, text in files.items()}
    assert rules(files) == [("shared-store", f"{PROD}/tenants/payment-app/secrets.yaml")]


# Images


def with_image(environment: str, value: str, files: Files = B) -> list[tuple[str, str]]:
    path = INPUT.replace("dev", environment)
    old = next(line for line in B[path].splitlines() if "image:" in line)
    found = [finding for finding in lint(with_edit(files, path, old, f"    image: {value}")) if finding.rule == "image"]
    return [(finding.severity, finding.message.partition(";")[0]) for finding in found]


@pytest.mark.parametrize("environment", ["dev", "staging", "prod"])
@pytest.mark.parametrize("value", ["r.acme.com/x", "r.acme.com/x:latest", "r.acme.com:5000/x", f"r/x:latest@{DIGEST}"])
def test_latest_and_bare_images_are_errors_everywhere(environment: str, value: str) -> None:
    ((severity, _),) = with_image(environment, value)
    assert severity == findings.ERROR


@pytest.mark.parametrize(("environment", "severity"), [("dev", "warning"), ("staging", "error"), ("prod", "error")])
def test_an_image_without_digest_is_an_error_under_a_rule_and_its_source(environment: str, severity: str) -> None:
    for value in ("r.acme.com:5000/x:v1", "x:v1", "x@sha256:abc"):
        assert [found for found, _ in with_image(environment, value)] == [severity], value
    assert with_image(environment, f"r.acme.com:5000/x:v1@{DIGEST}") == []
    assert with_image(environment, f"r.acme.com/x@{DIGEST}") == []


def test_rules_may_name_another_field() -> None:
    files = with_edit(B, "fleet.yaml", "    field: image", "    field: logLevel")
    found = {(finding.path, finding.severity) for finding in lint(files) if finding.rule == "image"}
    bare = {(INPUT.replace("dev", environment), "error") for environment in ("dev", "staging", "prod")}
    assert found == bare
    assert ("warning", "image x:v1 is not pinned") in with_image("prod", "x:v1", files)
