"""Rules about the inputs that Git holds: inputs, environment, held-by, image, blueprint, and object-policy for what they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from flux_resourceset import render
from flux_resourceset.repositories import findings, layout, object_policy, resourceset_shapes, tenants, trees
from flux_resourceset.repositories.blueprints import Blueprint
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import image_references
from flux_resourceset.repositories.lint.cluster_files import OBJECT_POLICY
from flux_resourceset.repositories.lint.reports import shown
from flux_resourceset.repositories.lint.tenant_files import ENVIRONMENT
from flux_resourceset.repositories.manifests import Manifest
from flux_resourceset.repositories.policy import API, GIT, Policy

INPUTS, HELD_BY, BLUEPRINT = "inputs", "held-by", "blueprint"


class Releases(Protocol):
    """The repository of blueprints."""

    def release(self, tag: str) -> trees.Tree | None:
        """The files of a tag; None if there is no such tag."""

    def blueprint(self, name: str, tag: str) -> Blueprint | None:
        """One of a release; None if it has none of that name. Raises tenants.Broken."""


class Known:
    """Blueprints of releases, each asked for once, whatever came of it."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases
        self._found: dict[tuple[str, str], Blueprint | str] = {}

    def has(self, tag: str) -> bool:
        return self._releases.release(tag) is not None

    def blueprint(self, name: str, tag: str) -> Blueprint | str:
        """One of a release, or why it cannot be had."""
        if (name, tag) not in self._found:
            try:
                self._found[name, tag] = _usable(self._releases.blueprint(name, tag), name, tag)
            except tenants.Broken as exc:
                self._found[name, tag] = f"blueprint {name} of release {tag} cannot be read: {exc}"
        return self._found[name, tag]


def _usable(blueprint: Blueprint | None, name: str, tag: str) -> Blueprint | str:
    if blueprint is None:
        return f"release {tag} has no blueprint {name}; see apps/ of the blueprints"
    fault = resourceset_shapes.fault(blueprint.template)
    return blueprint if fault is None else f"blueprint {name} of release {tag} is no ResourceSet: {fault}"


class Fields(NamedTuple):
    """The inputs that hold images: in which environments they need a digest."""

    pinned: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, policy: Policy) -> Fields:
        needed: dict[str, set[str]] = {"image": set()}
        for rule in policy.images:
            needed.setdefault(rule.field, set()).update(filter(None, (rule.environment, rule.same_as)))
        return cls({field: frozenset(environments) for field, environments in needed.items()})


class Held(NamedTuple):
    """The inputs of a tenant, as Git holds them."""

    tenant: layout.Tenant
    namespace: str | None
    provider: Manifest

    @property
    def path(self) -> str:
        return self.tenant.path(layout.INPUT)

    @property
    def values(self) -> dict[str, Any]:
        values = self.provider.at(*tenants.VALUES)
        return values if isinstance(values, dict) else {}

    def error(self, rule: str, steps: tuple[str | int, ...], message: str) -> Finding:
        return findings.error(rule, self.path, self.provider.line(*tenants.VALUES, *steps), message)


def of_holder(tenant: layout.Tenant, provider: Manifest, policy: Policy) -> Iterator[Finding]:
    holder = GIT if provider.at("spec", "type") == tenants.STATIC else API
    environment = policy.environment(tenant.environment)
    if environment is not None and holder not in environment.inputs:
        message = f"inputs in {tenant.environment} may be held by {' or '.join(environment.inputs)} only, as fleet.yaml says"
        yield findings.error(HELD_BY, tenant.path(layout.INPUT), provider.line("spec", "type"), message)


def of_values(held: Held, fields: Fields) -> Iterator[Finding]:
    """What can be said of them without the blueprint."""
    environment = held.tenant.environment
    given = held.values.get(ENVIRONMENT)
    if given is not None and given != environment:
        yield held.error(ENVIRONMENT, (ENVIRONMENT,), f"environment is {shown(given)} in the directory of {environment}")
    for field, pinned in fields.pinned.items():
        image = held.values.get(field)
        if isinstance(image, str):
            line = held.provider.line(*tenants.VALUES, field)
            finding = image_references.of_image(held.path, line, field, image, environment in pinned)
            if finding is not None:
                yield finding


def of_blueprint(held: Held, blueprint: Blueprint) -> Iterator[Finding]:
    """Whether the inputs are those that the blueprint takes, and what it makes of them."""
    name = blueprint.name
    violations = blueprint.violations(held.values)
    for violation in violations:
        yield held.error(INPUTS, violation.steps, f"{violation.text}; see inputs.schema.json of {name}")
    namespace = held.namespace or held.tenant.name
    try:
        made = blueprint.objects(held.tenant.name, namespace, held.values, render.resourceset)
    except render.TemplateError as exc:
        if not violations:  # which are why
            yield held.error(BLUEPRINT, (), f"blueprint {name} does not render with these inputs: {exc}")
        return
    for manifest in made:
        for fault in object_policy.faults_of_tenant(manifest, namespace):
            what = f"{manifest['kind']} {manifest['metadata']['name']} of blueprint {name}"
            yield held.error(OBJECT_POLICY, (), f"{what}: {fault.message}")
