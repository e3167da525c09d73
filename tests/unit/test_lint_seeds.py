"""Manifests as they are often drawn on a slide, which no cluster would take: every one of them is refused, and it is told why."""

from __future__ import annotations

from flux_resourceset.repositories.findings import Finding
from unit.lint_trees import APP, A, B, lint, lint_blueprints

TENANT = "dev/dev-use1-01/tenants/payment-app"
INPUT, SECRETS, SYNC = (f"{TENANT}/{name}.yaml" for name in ("input", "secrets", "sync"))

DRAWN_INPUT = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata:
  name: payment-app-inputs
  namespace: payment-dev
spec:
  values:
    appName: "payment-processor"
    image: "registry.acme.com/payment:v2.1.0-rc1"
    replicas: 2
    logLevel: "DEBUG"
    environment: "dev"
"""

DRAWN_SYNC = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: payment-app-sync
  namespace: payment-dev
spec:
  sourceRef:
    kind: GitRepository
    name: platform-blueprints
    namespace: flux-system
  path: "./apps/standard-service"
  inputsFrom:
    - kind: ResourceSetInputProvider
      name: payment-app-inputs
"""

DRAWN_SECRET = """\
apiVersion: external-secrets.io/v1beta1
kind: ExternalSecret
metadata:
  name: payment-app-secrets
spec:
  secretStoreRef:
    name: cluster-vault
    kind: ClusterSecretStore
  target:
    name: payment-app-secrets
  data:
    - secretKey: db_password
      remoteRef:
        key: secret/data/payment-app/prod
        property: db_password
"""

DRAWN_BLUEPRINT = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: standard-layered-app
spec:
  resources:
    - kind: HelmRelease
      name: {{ .inputs.appName }}-db
      chart: { ... }
    - kind: HelmRelease
      name: {{ .inputs.appName }}-api
      dependsOn:
        - name: {{ .inputs.appName }}-db
      values:
        image: {{ .inputs.image }}
        existingSecret: {{ .inputs.appName }}-secrets
"""


def told(found: list[Finding], path: str) -> dict[tuple[str, int | None], str]:
    assert {finding.path for finding in found} == {path}
    return {(finding.rule, finding.line): finding.message for finding in found}


def test_a_provider_without_a_type_has_no_inputs() -> None:
    messages = told(lint({**B, INPUT: DRAWN_INPUT}), INPUT)
    assert set(messages) == {("manifest", 6), ("manifest", 7)}
    assert "spec.defaultValues" in messages["manifest", 7]
    assert "spec.type must be Static" in messages["manifest", 6]


def test_a_resourceset_fetches_nothing() -> None:
    messages = told(lint({**B, SYNC: DRAWN_SYNC}), SYNC)
    assert messages == {
        ("manifest", 2): "holds a ResourceSet; only Kustomization belongs into this file",
        ("manifest", None): "must hold one Kustomization payment-app-sync, and holds none",
    }


def test_a_secret_of_another_version_store_and_environment_is_told_for_each() -> None:
    messages = told(lint({**B, SECRETS: DRAWN_SECRET}), SECRETS)
    assert set(messages) == {
        ("manifest", None),  # no SecretStore
        ("manifest", 1),  # the version
        ("manifest", 3),  # no namespace
        ("manifest", 8),  # ClusterSecretStore
        ("secret-path", 14),
    }


def test_a_blueprint_in_another_language_is_no_yaml() -> None:
    path = f"{APP}/resourceset.yaml"
    assert told(lint_blueprints({**A, path: DRAWN_BLUEPRINT}), path).keys() == {("yaml", 8)}
    quoted = DRAWN_BLUEPRINT.replace("{ ... }", "{}").replace("{{ .inputs.appName }}", "x").replace("{{ .inputs.image }}", "x")
    found = lint_blueprints({**A, path: quoted})
    assert {(finding.rule, finding.path) for finding in found} == {("template", path)}


def test_the_layout_without_environments_is_misplaced() -> None:
    path = "clusters/dev-use1-01/tenants/payment-app/input.yaml"
    assert {(finding.rule, finding.path) for finding in lint({**B, path: DRAWN_INPUT})} == {("layout", path)}
