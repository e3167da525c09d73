"""A blueprint: a ResourceSet as a function of inputs, with its signature; and the objects that it makes of a tenant's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset import errors, render, strict_json
from flux_resourceset.repositories import resourceset_shapes, signatures, tenants, trees
from flux_resourceset.repositories.signatures import Violation

APPS = "apps"
KUSTOMIZATION, RESOURCESET, SCHEMA, EXAMPLE = "kustomization.yaml", "resourceset.yaml", "inputs.schema.json", "example.json"
FILES = (KUSTOMIZATION, RESOURCESET, SCHEMA, EXAMPLE)
SUBSTITUTED = ("tenant", "namespace")  # what Flux puts in: no other name
RESERVED = ("id", "provider", "cluster", "digest", "kind", "patches")  # inputs that the API or Flux Operator adds or reads

Values = Mapping[str, Any]
Engine = Callable[[render.Manifest, Sequence[Values]], list[render.Manifest]]


class Blueprint(NamedTuple):
    name: str
    template: render.Manifest
    schema: dict[str, Any]  # the signature

    def violations(self, values: Values) -> list[Violation]:
        return signatures.violations(self.schema, values)

    def objects(self, tenant: str, namespace: str, values: Values, engine: Engine) -> list[render.Manifest]:
        """What the tenant's ResourceSet makes of its inputs. Raises render.TemplateError."""
        template = substituted(self.template, {"tenant": tenant, "namespace": namespace})
        template["metadata"] = {**template.get("metadata", {}), "namespace": namespace}
        return engine(template, [{"id": tenant, **values}])


def of_tree(tree: trees.Tree, name: str) -> Blueprint | None:
    """A blueprint of a release; None if it has none of that name. Raises tenants.Broken."""
    if not tree.children(f"{APPS}/{name}"):
        return None
    template = tenants.single(tree, f"{APPS}/{name}/{RESOURCESET}", "ResourceSet").data
    if (wrong := resourceset_shapes.fault(template)) is not None:
        raise tenants.Broken(f"{APPS}/{name}/{RESOURCESET}", None, wrong)
    schema = json_file(tree, f"{APPS}/{name}/{SCHEMA}")
    if not isinstance(schema, dict) or (wrong := signatures.defect(schema)) is not None:
        raise tenants.Broken(
            f"{APPS}/{name}/{SCHEMA}", None, f"is no JSON Schema: {wrong if isinstance(schema, dict) else 'not an object'}"
        )
    return Blueprint(name, template, schema)


def json_file(tree: trees.Tree, path: str) -> Any:
    try:
        body = tree.read(path)
    except trees.TooLarge as exc:
        raise tenants.Broken(path, None, f"has more than {trees.LARGEST} bytes") from exc
    if body is None:
        raise tenants.Broken(path, None, "is missing")
    try:
        return strict_json.decoded(body)
    except errors.MalformedBody as exc:
        raise tenants.Broken(path, None, str(exc)) from exc


def names(tree: trees.Tree) -> list[str]:
    return [name for name, sort in tree.children(APPS).items() if sort is trees.Sort.FOLDER]


def substituted(value: Any, names: Mapping[str, str]) -> Any:
    """As Flux puts names into a manifest: in every text, the two that it is given."""
    if isinstance(value, dict):
        return {key: substituted(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [substituted(each, names) for each in value]
    if isinstance(value, str) and "${" in value:
        for name, text in names.items():
            value = value.replace(f"${{{name}}}", text)
    return value
