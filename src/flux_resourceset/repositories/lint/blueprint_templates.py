"""Rules template, input-id, environment-literal, secret-agnostic: a blueprint is a function of its inputs and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from flux_resourceset import errors, render, strict_json
from flux_resourceset.repositories import object_policy, resourceset_shapes, signatures, tenants
from flux_resourceset.repositories.blueprints import RESOURCESET, SUBSTITUTED, substituted
from flux_resourceset.repositories.lint.blueprint_schemas import Lines
from flux_resourceset.repositories.lint.reports import Report
from flux_resourceset.repositories.lint.tenant_files import OPERATOR
from flux_resourceset.repositories.manifests import Manifest
from flux_resourceset.repositories.object_policy import ACCOUNT

TEMPLATE, INPUT_ID, ENVIRONMENT, SECRETS = "template", "input-id", "environment-literal", "secret-agnostic"

PROVIDER = "${tenant}-inputs"
READY = 'has(status.lastExportedRevision)&&status.lastExportedRevision!=""'  # without blanks; else no inputs mean: delete all
_VERSIONS = tuple(f"kustomize.config.k8s.io/{version}" for version in ("v1beta1", "v1"))
_TRIED = {"tenant": "sample-tenant", "namespace": "sample-namespace"}  # with which the example is rendered

_DOLLARS = re.compile(r"\$\$|\$\{(?!(?:" + "|".join(SUBSTITUTED) + r")\})[^}\n]{0,60}\}?")
_ID = re.compile(r"""\binputs\.id\b|\b(?:index|get|dig)\s+(?:\(?\s*inputs\s*\)?\s+["`]id["`]|["`]id["`][^>]*\binputs\b)""")
_ENVIRONMENT = re.compile(r"(?<![A-Za-z0-9])(?:dev|qa|uat|staging|prod)(?![A-Za-z0-9])", re.IGNORECASE)
_DEVICES = re.compile(r"/dev/(?=(?:null|zero|u?random|shm|std(?:in|out|err)|fd)\b)")
_SECRETS = re.compile(r"external-secrets|vault", re.IGNORECASE)


def check_kustomization(report: Report, body: bytes | None) -> None:
    documents = report.documents(body) if body is not None else None
    if documents is None:
        return
    _check_words(report, body or b"")
    for manifest in documents:
        _check_texts(report, manifest)
    wanted = [{"apiVersion": version, "kind": "Kustomization", "resources": [RESOURCESET]} for version in _VERSIONS]
    if len(documents) != 1 or documents[0].data not in wanted:
        line = documents[0].line() if documents else None
        report.add(TEMPLATE, line, f"must be a Kustomization of {_VERSIONS[0]} with resources: [{RESOURCESET}], and no more")


def checked_template(report: Report, body: bytes | None) -> Manifest | None:
    """The ResourceSet, if there is one."""
    documents = report.documents(body) if body is not None else None
    if documents is None:
        return None
    _check_words(report, body or b"")
    for manifest in documents:
        _check_texts(report, manifest)
    if len(documents) != 1 or documents[0].kind != "ResourceSet" or not isinstance(documents[0].at("spec"), dict):
        report.add(TEMPLATE, documents[0].line("kind") if documents else None, "must hold one ResourceSet, with a spec")
        return None
    _check_resourceset(report, documents[0])
    fault = resourceset_shapes.fault(documents[0].data)
    if fault is not None:
        report.add(TEMPLATE, documents[0].line("spec"), fault)
        return None
    return documents[0]


def _check_resourceset(report: Report, manifest: Manifest) -> None:
    report.expect(manifest, ("apiVersion",), OPERATOR, TEMPLATE)
    if not manifest.name:
        report.add(TEMPLATE, manifest.line("metadata", "name"), "ResourceSet: metadata.name is missing")
    if manifest.at("metadata", "namespace") not in (None, "${namespace}"):
        report.add(TEMPLATE, manifest.line("metadata", "namespace"), "leave metadata.namespace to the tenant's sync")
    report.expect(manifest, ("spec", "serviceAccountName"), ACCOUNT, TEMPLATE)
    sources = manifest.at("spec", "inputsFrom")
    taken = [source for source in sources if _is_provider(source)] if isinstance(sources, list) else []
    if len(taken) != 1 or len(sources) != 1:
        message = f"spec.inputsFrom must be one {tenants.PROVIDER} {PROVIDER}"
        report.add(TEMPLATE, manifest.line("spec", "inputsFrom"), message)
    if manifest.at("spec", "inputs") is not None:
        report.add(TEMPLATE, manifest.line("spec", "inputs"), "inputs belong to tenants; take them from spec.inputsFrom alone")
    guards = manifest.at("spec", "dependsOn")
    if not any(_is_guard(guard) for guard in (guards if isinstance(guards, list) else ())):
        message = (
            f"spec.dependsOn must name {tenants.PROVIDER} {PROVIDER} in ${{namespace}} with ready: true and readyExpr: "
            'has(status.lastExportedRevision) && status.lastExportedRevision != "", or all is deleted while there are no inputs'
        )
        report.add(TEMPLATE, manifest.line("spec", "dependsOn"), message)


def _is_provider(source: Any) -> bool:
    return isinstance(source, dict) and (source.get("kind"), source.get("name")) == (tenants.PROVIDER, PROVIDER)


def _is_guard(guard: Any) -> bool:
    if not _is_provider(guard) or guard.get("namespace") != "${namespace}" or guard.get("ready") is not True:
        return False
    expression = re.sub(r"\s", "", str(guard.get("readyExpr") or "")).replace("'", '"')
    return expression == READY or expression.startswith(f"{READY}&&")


# Texts


def _check_words(report: Report, body: bytes) -> None:
    """Comments count, for what they tell of an environment or a store does not belong here either."""
    for line, text in enumerate(body.decode(errors="replace").splitlines(), 1):
        if match := _ENVIRONMENT.search(_DEVICES.sub("", text)):
            message = f"names the environment {match[0]}; what differs between environments is an input"
            report.add(ENVIRONMENT, line, message)
        _check_store(report, line, text)


def check_stores(report: Report, body: bytes | None) -> None:
    """The signature and the example name environments as data, but no store."""
    for line, text in enumerate((body or b"").decode(errors="replace").splitlines(), 1):
        _check_store(report, line, text)


def _check_store(report: Report, line: int, text: str) -> None:
    if match := _SECRETS.search(text):
        report.add(SECRETS, line, f"names {match[0]}; a blueprint expects a Secret, wherever that comes from")


def _check_texts(report: Report, manifest: Manifest) -> None:
    for text, line, within in _texts(manifest.node):
        for pattern, rule, remedy in (
            (_DOLLARS, TEMPLATE, f"Flux puts in {' and '.join(f'${{{name}}}' for name in SUBSTITUTED)} only; take it out"),
            (_ID, INPUT_ID, "with a Static provider it is a checksum, with the API a name; use another input, or ${tenant}"),
        ):
            for match in pattern.finditer(text):
                place = line + within + text.count("\n", 0, match.start()) if within else line
                report.add(rule, place, f"{match[0]}: {remedy}")


def _texts(root: yaml.Node) -> Iterator[tuple[str, int, int]]:
    """Every text, with the line where it begins, and 1 if the lines of the text follow that one."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node.value, node.start_mark.line + 1, int(node.style == "|")
        elif isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


# The example


def check_example(report: Report, example: Report, body: bytes, template: Manifest, signature: dict[str, Any]) -> None:
    lines = Lines(body)
    try:
        inputs = strict_json.decoded(body)
    except errors.MalformedBody as exc:
        example.add(TEMPLATE, lines.at(), f"is no strict JSON: {exc}")
        return
    if not isinstance(inputs, dict):
        example.add(TEMPLATE, lines.at(), "must be an object: inputs with which the blueprint renders")
        return
    violations = signatures.violations(signature, inputs)
    for violation in violations:
        example.add(TEMPLATE, lines.at(*violation.steps), f"breaks the signature: {violation.text}")
    try:
        made = _made(template, {"id": _TRIED["tenant"], **inputs})
    except render.TemplateError as exc:
        if not violations:
            report.add(TEMPLATE, template.line("spec", "resourcesTemplate"), f"does not render with the example: {exc}")
        return
    _check_made(report, template, made)
    if not any(finding.rule == INPUT_ID for finding in report.found) and made != _made(template, {"id": "another", **inputs}):
        message = "what is rendered depends on the id of the input, which with a Static provider is a checksum; use another input"
        report.add(INPUT_ID, template.line("spec"), message)


def _made(template: Manifest, inputs: dict[str, Any]) -> list[render.Manifest]:
    filled = substituted(template.data, _TRIED)
    metadata = filled.get("metadata")
    filled["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "namespace": _TRIED["namespace"]}
    return render.resourceset(filled, [inputs])


def _check_made(report: Report, template: Manifest, made: list[render.Manifest]) -> None:
    for manifest in made:
        fault = object_policy.account_fault(manifest, _TRIED["namespace"])
        if fault is not None:
            name = f"{manifest['kind']} {manifest['metadata']['name']}"
            report.add(TEMPLATE, template.line("spec"), f"{name}, rendered from the example: {fault.message}")
