"""Every rule of `fleet lint-blueprints`: a fault that is planted into what init makes is found; its clean twin is not."""

from __future__ import annotations

import json

import pytest

from flux_resourceset.repositories import findings
from unit.lint_trees import APP, A, Files, line_of, lint_blueprints, with_edit, without

SET, SCHEMA, EXAMPLE, KUSTOMIZATION = (
    f"{APP}/{name}" for name in ("resourceset.yaml", "inputs.schema.json", "example.json", "kustomization.yaml")
)


def rules(files: Files, *links: str) -> list[tuple[str, str]]:
    return [(finding.rule, finding.path) for finding in lint_blueprints(files, links)]


def test_what_init_makes_is_clean() -> None:
    assert lint_blueprints(A) == []


EDITS = [
    ("yaml", SET, "metadata:\n", "metadata:\n  name: twice\n"),
    ("yaml", KUSTOMIZATION, "resources:", "resources: ["),
    ("template", SET, "kind: ResourceSet\n", "kind: ResourceSets\n"),
    ("template", SET, "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\n", "apiVersion: x/v1\nkind: ResourceSet\n"),
    ("template", SET, "  serviceAccountName: tenant #", "  serviceAccountName: flux #"),
    ("template", SET, "      serviceAccountName: tenant\n", ""),
    ("template", SET, "      name: ${tenant}-inputs\n      namespace", "      name: inputs\n      namespace"),
    ("template", SET, "      namespace: ${namespace}\n      ready", "      namespace: flux-system\n      ready"),
    ("template", SET, "      readyExpr: has(status.lastExportedRevision) &&", "      readyExpr: has(status.x) &&"),
    ("template", SET, "      ready: true", "      ready: false"),
    ("template", SET, "  inputsFrom:\n", "  inputs: [{a: b}]\n  inputsFrom:\n"),
    ("template", SET, "  inputsFrom:\n", "  inputsFrom:\n    - {kind: ResourceSetInputProvider, name: other}\n"),
    ("template", SET, "  name: standard-layered-app\n", "  name: standard-layered-app\n  namespace: flux-system\n"),
    ("template", SET, "      interval: 30m", '      interval: "${INTERVAL}"'),
    ("template", SET, "      interval: 30m", '      interval: "${tenant:-x}"'),
    ("template", SET, "      interval: 30m", "      interval: 30m # costs $$ 5"),
    ("template", SET, "<< inputs.logLevel | quote >>", "<< inputs.colour | quote >>"),
    ("template", SET, "<< inputs.logLevel | quote >>", "<< inputs.logLevel | nonsense >>"),
    ("template", EXAMPLE, '"replicas": 2', '"replicas": "many"'),
    ("template", EXAMPLE, '"replicas": 2,', ""),
    ("template", EXAMPLE, '"replicas": 2,', '"replicas": 2, "replicas": 3,'),
    ("template", KUSTOMIZATION, "  - resourceset.yaml", "  - resourceset.yaml\n  - more.yaml"),
    ("template", KUSTOMIZATION, "resources:", "namePrefix: x-\nresources:"),
    ("template", KUSTOMIZATION, "kind: Kustomization", "kind: Component"),
    ("schema", SCHEMA, '"additionalProperties": false,', ""),
    ("schema", SCHEMA, '"additionalProperties": false,', '"additionalProperties": true,'),
    ("schema", SCHEMA, '"minimum": 0,', '"minimum": 0, "default": 1,'),
    ("schema", SCHEMA, '"minimum": 0,', '"minimum": "none",'),
    ("schema", SCHEMA, '"type": "object",', '"type": "array",'),
    ("schema", SCHEMA, "draft/2020-12", "draft/2019-09"),
    ("schema", SCHEMA, '"type": "integer",', '"$ref": "https://example.com/schema.json",'),
    ("schema", SCHEMA, '"type": "integer",', '"$ref": "file:///etc/hostname",'),
    ("schema", SCHEMA, '"properties": {', '"properties": {"open": {"type": "object", "properties": {}},'),
    ("schema", SCHEMA, '"title"', '"title": "twice", "title"'),
    ("input-id", SET, "<< inputs.logLevel | quote >>", "<< inputs.id | quote >>"),
    ("input-id", SET, "<< inputs.logLevel | quote >>", '<< index inputs "id" | quote >>'),
    ("input-id", SET, "<< inputs.logLevel | quote >>", '<< get inputs "id" | quote >>'),
    ("input-id", SET, "<< inputs.logLevel | quote >>", "<< with inputs >><< .id | quote >><< end >>"),
    ("environment-literal", SET, "      interval: 30m", "      interval: 30m # longer in prod"),
    ("environment-literal", SET, "<< inputs.logLevel | quote >>", '<< if eq inputs.environment "staging" >>x<< end >>'),
    ("environment-literal", SET, "standard-db", "qa-db"),
    ("secret-agnostic", SET, "      interval: 30m", "      interval: 30m # from Vault"),
    ("secret-agnostic", SET, "      interval: 30m", "      interval: 30m # external-secrets.io"),
    ("secret-agnostic", SCHEMA, "Environment of the cluster.", "Where its Vault is."),
    ("secret-agnostic", EXAMPLE, "shop-secrets", "vault-secrets"),
    ("schema", SCHEMA, '"properties": {', '"properties": {"open": {"anyOf": [{"properties": {}}]},'),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path", "old", "new"), EDITS, ids=lambda value: value.strip().split("\n")[-1][:40])
def test_a_planted_fault_is_found_in_its_file(rule: str, path: str, old: str, new: str) -> None:
    found = lint_blueprints(with_edit(A, path, old, new))
    assert (rule, path) in [(finding.rule, finding.path) for finding in found]
    assert all(finding.severity == findings.ERROR for finding in found)


@pytest.mark.parametrize("name", ["id", "provider", "cluster", "digest", "kind", "patches"])
def test_names_that_the_api_or_flux_uses_are_refused(name: str) -> None:
    schema = json.loads(A[SCHEMA])
    schema["properties"][name] = {"type": "string"}
    assert rules({**A, SCHEMA: json.dumps(schema)}) == [("schema", SCHEMA)]


TWINS = [
    (SET, "      interval: 30m", '      interval: "30m" # products and devices'),
    (SET, "      interval: 30m", "      interval: 30m # /dev/null, and ${tenant} in ${namespace}"),
    (SET, "<< inputs.logLevel | quote >>", '<< get inputs "logLevel" | quote >>'),
    (SET, "# Makes a database", "# Uses no inputs.id, and no ${OTHER}: makes a database"),
    (SET, '!= ""\n', '!= "" && status.x\n'),
    (SCHEMA, '"minimum": 0,', '"minimum": 1,'),
    (SCHEMA, '"title"', '"$comment": "by default none", "title"'),
    (SCHEMA, '"enum": ["DEBUG"', '"examples": [{"default": 1, "$ref2": 2}], "enum": ["DEBUG"'),
    (SCHEMA, '"title"', '"if": {"properties": {"replicas": {"const": 0}}}, "then": {"required": ["logLevel"]}, "title"'),
    (SCHEMA, '"title"', '"allOf": [{"properties": {"replicas": {"maximum": 9}}}], "title"'),
    (EXAMPLE, '"replicas": 2', '"replicas": 3'),
    (KUSTOMIZATION, "config.k8s.io/v1beta1", "config.k8s.io/v1"),
]


@pytest.mark.parametrize(("path", "old", "new"), TWINS, ids=lambda value: value.strip().split("\n")[-1][:40])
def test_a_harmless_edit_is_no_finding(path: str, old: str, new: str) -> None:
    assert lint_blueprints(with_edit(A, path, old, new)) == []


def test_lines_are_those_of_the_fault_also_within_a_template() -> None:
    for old, new in (
        ("<< inputs.logLevel | quote >>", "<< inputs.id | quote >>"),
        ("      interval: 30m", '      interval: "${INTERVAL}"'),
        ("      interval: 30m", "      interval: 30m # in prod"),
    ):
        files = with_edit(A, SET, old, new)
        assert {finding.line for finding in lint_blueprints(files)} == {line_of(files[SET], new.strip())}
    files = with_edit(A, SCHEMA, '"minimum": 0,', '"minimum": 0, "default": 1,')
    assert [finding.line for finding in lint_blueprints(files)] == [line_of(files[SCHEMA], '"default"')]
    for path in (SCHEMA, EXAMPLE):
        files = {**A, path: A[path].replace("\n}", "\n}}")}
        assert [(finding.path, finding.line) for finding in lint_blueprints(files)] == [(path, A[path].count("\n"))]


@pytest.mark.parametrize("path", [SET, SCHEMA, EXAMPLE, KUSTOMIZATION])
def test_a_missing_file_is_found(path: str) -> None:
    assert rules(without(A, path)) == [("layout", path)]
    assert rules(without(A, path), path) == [("layout", path)]  # a symlink


@pytest.mark.parametrize("path", [f"{APP}/values.yaml", f"{APP}/charts/x.yaml", "apps/x.yaml"])
def test_a_misplaced_file_is_found(path: str) -> None:
    assert rules({**A, path: "x: 1\n"}) == [("layout", path)]


@pytest.mark.parametrize("path", ["docs/x.yaml", "Makefile", "charts/db/Chart.yaml", f"{APP}/README.md"])
def test_what_a_repository_has_besides_is_free(path: str) -> None:
    assert rules({**A, path: "x: prod\n"}) == []


def test_a_blueprint_has_a_name_of_kubernetes() -> None:
    assert rules({path.replace("standard-service", "Standard_Service"): text for path, text in A.items()}) == [
        ("layout", "apps/Standard_Service")
    ]


def test_bombs_are_findings() -> None:
    for path in (SET, SCHEMA, EXAMPLE, KUSTOMIZATION):
        assert rules({**A, path: "x" * 1_100_000}) == [("yaml", path)]
    deep = '{"a": ' * 70 + "1" + "}" * 70
    assert rules({**A, SCHEMA: deep}) == [("schema", SCHEMA)]
    assert rules({**A, EXAMPLE: deep}) == [("template", EXAMPLE)]
    assert rules({**A, EXAMPLE: "[]"}) == [("template", EXAMPLE)]
    assert rules({**A, SCHEMA: "[]"}) == [("schema", SCHEMA)]
