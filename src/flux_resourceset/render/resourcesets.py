"""What Flux Operator does with a ResourceSet and its inputs: render, parse, drop duplicates, label. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flux_resourceset.render import dialect, execution
from flux_resourceset.render.failures import TemplateError

Manifest = dict[str, Any]
Input = Mapping[str, Any]

GROUP = "fluxcd.controlplane.io"
RECONCILE = f"{GROUP}/reconcile"
PRUNE = f"{GROUP}/prune"
DISABLED = "disabled"


def resourceset(template: Manifest, inputs: Sequence[Input]) -> list[Manifest]:
    """The objects that Flux Operator would apply for these inputs, in its order.

    With `inputsFrom`, no inputs mean no objects; a ResourceSet that names no provider is rendered once without.
    """
    spec = template.get("spec") or {}
    if not inputs and spec.get("inputsFrom"):
        return []
    given: list[Input | None] = [_provided(each, template) for each in inputs] or [None]
    steps = spec.get("steps") or [spec]
    objects = [manifest for step in steps for manifest in _step(step, given)]
    _label(objects, spec.get("commonMetadata") or {}, template)
    return objects


def identity(manifest: Manifest) -> tuple[str, str, str, str]:
    """Group, kind, namespace and name: what makes two manifests the same object."""
    metadata = manifest.get("metadata") or {}
    version = str(manifest["apiVersion"])
    group = version.rpartition("/")[0]
    return group, str(manifest["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"])


def annotation(manifest: Manifest, name: str) -> str | None:
    value = ((manifest.get("metadata") or {}).get("annotations") or {}).get(name)
    return None if value is None else str(value)


def _step(step: Mapping[str, Any], inputs: Sequence[Input | None]) -> list[Manifest]:
    seen: dict[tuple[str, str, str, str], Manifest] = {}
    for manifest in _rendered(step, inputs):
        if annotation(manifest, RECONCILE) != DISABLED:
            seen.setdefault(identity(manifest), manifest)
    return list(seen.values())


def _rendered(step: Mapping[str, Any], inputs: Sequence[Input | None]) -> Iterator[Manifest]:
    """First what `resources` gives, one after the other, then `resourcesTemplate`; each for every input."""
    for resource in step.get("resources") or ():
        source = dialect.presented([resource])
        for each in inputs:
            yield from _objects(source, each)
    if step.get("resourcesTemplate"):
        for each in inputs:
            yield from _objects(step["resourcesTemplate"], each)


def _objects(source: str, given: Input | None) -> Iterator[Manifest]:
    name = None if given is None else str(given.get("id", "without id"))
    try:
        text = execution.template(source).render(given)
    except TemplateError as error:
        raise TemplateError(error.reason, error.line, name) from error
    except RecursionError as error:
        raise TemplateError("the template is nested too deeply", None, name) from error
    try:
        for line, document in dialect.documents(text):
            yield from _manifests(line, document)
    except TemplateError as error:
        where = "" if error.line is None else f" (line {error.line} of what was rendered)"
        raise TemplateError(f"{error.reason}{where}", None, name) from error


def _manifests(line: int, document: Any) -> Iterator[Manifest]:
    if not isinstance(document, dict):
        raise TemplateError("a document is not a map", line)
    if not document.get("kind"):
        raise TemplateError("an object has no kind", line)
    if isinstance(document.get("items"), list):  # Flux Operator expands it, of any kind
        for item in document["items"]:
            yield from _manifests(line, item)
        return
    metadata = document.get("metadata")
    for name in ("labels", "annotations"):
        if isinstance(metadata, dict) and not isinstance(metadata.get(name) or {}, dict):
            raise TemplateError(f"the {name} of an object are not a map", line)
    whole = document.get("apiVersion") and isinstance(metadata, dict) and metadata.get("name")
    if whole and not str(document["apiVersion"]).startswith("kustomize.config.k8s.io/"):
        yield document


def _provided(given: Input, template: Manifest) -> Input:
    """Flux Operator tells each input where it came from."""
    metadata = template.get("metadata") or {}
    sources = (template.get("spec") or {}).get("inputsFrom") or [{}]
    name = sources[0].get("name") or metadata.get("name", "")
    kind = "ResourceSetInputProvider" if sources[0] else "ResourceSet"
    namespace = metadata.get("namespace", "")
    provider = {"apiVersion": f"{GROUP}/v1", "kind": kind, "name": name, "namespace": namespace}
    return {**given, "provider": provider}


def _label(objects: Sequence[Manifest], common: Mapping[str, Any], template: Manifest) -> None:
    metadata = template.get("metadata") or {}
    owner = {
        f"resourceset.{GROUP}/name": metadata.get("name", ""),
        f"resourceset.{GROUP}/namespace": metadata.get("namespace", ""),
    }
    for manifest in objects:
        target = manifest["metadata"]
        target["labels"] = {**(target.get("labels") or {}), **(common.get("labels") or {}), **owner}
        annotations = {**(target.get("annotations") or {}), **(common.get("annotations") or {})}
        if annotations:
            target["annotations"] = annotations
