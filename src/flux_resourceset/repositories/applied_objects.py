"""What Flux applies of base/ and flux/ of a cluster: from where, with which images, and what changes objects unseen.

Lint makes findings of it, and check-image refuses what it cannot see through; so both read files in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from flux_resourceset import render
from flux_resourceset.repositories import layout, resourceset_shapes
from flux_resourceset.repositories.manifests import at, items

SOURCE, PIN, UNJUDGED = "source", "pin", "unjudged"

BLUEPRINTS = "platform-blueprints"  # the GitRepository of flux/blueprints.yaml
OWN = "flux-system"  # the GitRepository that Flux makes for the fleet's own repository, unless the FluxInstance names another
KUSTOMIZATION = "kustomization.yaml"  # of kustomize: it says which files of its folder are applied

_SOURCES, _HELM, _KUSTOMIZE = "source.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io"
_OPERATOR, _KUSTOMIZE_FILE = "fluxcd.controlplane.io", "kustomize.config.k8s.io"
_SET = (_OPERATOR, "ResourceSet")
_REPOSITORIES = frozenset({"GitRepository", "OCIRepository", "HelmRepository"})
_FIXED = {"GitRepository": ("tag", "commit"), "OCIRepository": ("tag", "digest")}  # references that name one release

# Fields of a Kustomization of Flux that leave the objects of its files as they are. Any other may change them: patches, images,
# components, postBuild, decryption, and what a later Flux adds.
HARMLESS = frozenset(
    {
        "deletionPolicy", "dependsOn", "force", "healthCheckExprs", "healthChecks", "interval", "path", "prune", "retryInterval",
        "serviceAccountName", "sourceRef", "suspend", "targetNamespace", "timeout", "wait",
    }
)  # fmt: skip
_WITHOUT_FILES = frozenset({"image.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io"})  # groups that apply nothing of a source
_MOVE = "make it a blueprint, or write its objects into base/"
_FILE_BESIDE = re.compile(r"(?:\./)?[A-Za-z0-9_][A-Za-z0-9_.-]*\.yaml")

# Kinds without images in them, though a field may have the name: texts, schemas, and watchers of a registry.
_WITHOUT_IMAGES = frozenset({_SET, ("", "ConfigMap"), ("", "Secret"), ("apiextensions.k8s.io", "CustomResourceDefinition")})
_WATCHER = "image.toolkit.fluxcd.io"
_PARTS = ("registry", "repository", "tag", "digest")  # of an image in the values of a chart
_REFERENCE = "reference"  # the image of a volume of a pod

Steps = tuple[str | int, ...]
Data = Mapping[str, Any]


class Rules(NamedTuple):
    """What a fleet allows."""

    sources: frozenset[str] | None = None  # None: the policy has no list
    api_url: str | None = None
    needs_digest: bool = False  # of images in this environment
    own: str = OWN
    own_url: str | None = None  # of the fleet's own repository


class Fault(NamedTuple):
    rule: str
    steps: Steps
    message: str


class Image(NamedTuple):
    steps: Steps
    place: str  # by names, where a list has them
    value: Any


class Applied(NamedTuple):
    """An object, perhaps from within another one, and the steps to it; or why the objects there cannot be judged."""

    steps: Steps
    data: Data
    unreadable: str | None = None


def own_repository(documents: Iterable[Any]) -> tuple[str, str | None]:
    """Name and URL of the fleet's own repository, by the documents of a flux-instance.yaml."""
    sync = next((at(data, "spec", "sync") for data in documents if at(data, "kind") == "FluxInstance"), None)
    name, url = at(sync, "name"), at(sync, "url")
    return name if isinstance(name, str) and name else OWN, url if isinstance(url, str) else None


def leads_to(path: Any, folder: str, root: Collection[str]) -> bool:
    """Whether a path from the root of a repository is that of a folder of the fleet. The fleet may be a folder of the repository;
    `root` are the names in its own root, and none of these may be on the way."""
    parts = [part for part in path.split("/") if part not in ("", ".")] if isinstance(path, str) else []
    above = parts[: -folder.count("/") - 1]
    return parts[len(above) :] == folder.split("/") and ".." not in parts and not (above and above[0] in root)


def faults(data: Any, file: str, rules: Rules, *, in_base: bool) -> Iterator[Fault]:
    """What is wrong with a document of a file in base/ or flux/, apart from its images."""
    if file == KUSTOMIZATION or _sort(data)[0] == _KUSTOMIZE_FILE:
        yield from _of_kustomize_file(data)
        return
    for applied in _objects(data, ()):
        if applied.unreadable is not None:
            yield Fault(UNJUDGED, applied.steps, applied.unreadable)
            continue
        for fault in _of_object(applied.data, rules, in_base or bool(applied.steps)):
            yield fault._replace(steps=(*applied.steps, *fault.steps))


def images(data: Any) -> Iterator[tuple[str, Image]]:
    """The images that a document names, each with the identity of its object."""
    for steps, each, unreadable in _objects(data, ()):
        group, _ = sort = _sort(each)
        if unreadable is None and sort not in _WITHOUT_IMAGES and group != _WATCHER:
            found = _images(_without_items(each), (), "")
            yield from ((identity(each), image._replace(steps=(*steps, *image.steps))) for image in found)


def made(data: Any) -> Iterator[Data]:
    """The objects that ResourceSets of a document make, as far as that is known."""
    for steps, each, _ in _objects(data, ()):
        if each and "spec" in steps:
            yield each


def identity(data: Any) -> str:
    """The name of an object, unique in its cluster."""
    group, kind = _sort(data)
    place = [at(data, "metadata", "namespace"), at(data, "metadata", "name")]
    return f"{kind}{f'.{group}' if group else ''} {'/'.join(str(part) for part in place if part)}"


def _sort(data: Any) -> tuple[str, str]:
    version = at(data, "apiVersion")
    return str(version or "").rpartition("/")[0], str(at(data, "kind") or "")


# Objects within others


def _without_items(data: Data) -> Data:
    """An object without those that are judged by themselves."""
    return data if items(data) is None else {name: value for name, value in data.items() if name != "items"}


def _objects(data: Any, steps: Steps) -> Iterator[Applied]:
    """An object, the items of a list, and what a ResourceSet makes."""
    if not isinstance(data, dict):
        return
    yield Applied(steps, data)
    for place, each in enumerate(items(data) or ()):
        yield from _objects(each, (*steps, "items", place))
    if _sort(data) == _SET:
        yield from _of_set(data, steps)


def _of_set(data: Data, steps: Steps) -> Iterator[Applied]:
    """Its template can write anything, so only what it renders to can be judged."""
    if at(data, "spec", "inputsFrom"):
        message = f"ResourceSet: what it makes of inputs from elsewhere is not known here; {_MOVE}"
        yield Applied((*steps, "spec", "inputsFrom"), {}, message)
        return
    if at(data, "spec", "inputStrategy", "name") not in (None, "Flatten"):
        message = "ResourceSet: what it makes is known for the input strategy Flatten alone; leave spec.inputStrategy out"
        yield Applied((*steps, "spec", "inputStrategy"), {}, message)
        return
    inputs = at(data, "spec", "inputs")
    wrong = resourceset_shapes.fault(data)
    if wrong is None and inputs is not None and not (isinstance(inputs, list) and all(isinstance(each, dict) for each in inputs)):
        wrong = "spec.inputs must be a list of maps"
    try:
        made = render.resourceset(dict(data), inputs or ()) if wrong is None else []
    except render.TemplateError as exc:
        made, wrong = [], str(exc)
    if wrong is not None:
        yield Applied((*steps, "spec"), {}, f"ResourceSet: what it makes is not known: {wrong}")
    for each in made:
        # A ResourceSet that makes another one is refused: nothing ends that.
        if _sort(each) == _SET:
            yield Applied((*steps, "spec"), {}, f"ResourceSet: it makes another ResourceSet; {_MOVE}")
        else:
            yield from (applied._replace(steps=(*steps, "spec")) for applied in _objects(each, ()))


# Where objects come from, and what changes them


def _of_object(data: Data, rules: Rules, in_base: bool) -> Iterator[Fault]:
    group, kind = _sort(data)
    for steps, url in _addresses(data, group, kind):
        yield from _of_address(kind, steps, url, rules)
    if group == _SOURCES:
        yield from _of_reference(data, kind)
    elif (group, kind) == (_KUSTOMIZE, "Kustomization"):
        yield from _of_kustomization(data)
    elif (group, kind) == (_HELM, "HelmRelease"):
        yield from _of_release(data)
    if in_base:
        yield from _of_flux(data, group, kind, rules)
        if group not in _WITHOUT_FILES and (group, kind) != _SET:  # what a ResourceSet makes is judged by itself
            yield from _of_own_files(data, rules)


def _addresses(data: Data, group: str, kind: str) -> Iterator[tuple[Steps, Any]]:
    if group == _SOURCES and kind in _REPOSITORIES:
        yield ("spec", "url"), at(data, "spec", "url")
    elif group == _SOURCES and kind == "Bucket":
        yield ("spec", "endpoint"), _bucket(data)
    elif (group, kind) == (_OPERATOR, "FluxInstance"):
        if at(data, "spec", "sync") is not None:
            yield ("spec", "sync", "url"), at(data, "spec", "sync", "url")
        if at(data, "spec", "distribution", "artifact") is not None:
            yield ("spec", "distribution", "artifact"), at(data, "spec", "distribution", "artifact")
    elif (group, kind) == (_OPERATOR, "ResourceSetInputProvider") and at(data, "spec", "url") is not None:
        yield ("spec", "url"), at(data, "spec", "url")


def _bucket(data: Data) -> str | None:
    """A Bucket as `sources` has it."""
    endpoint, name = at(data, "spec", "endpoint"), at(data, "spec", "bucketName")
    if not isinstance(endpoint, str) or not isinstance(name, str):
        return None
    return f"{'http' if at(data, 'spec', 'insecure') is True else 'https'}://{endpoint}/{name}"


def _of_address(kind: str, steps: Steps, url: Any, rules: Rules) -> Iterator[Fault]:
    if not isinstance(url, str) or not url:
        yield Fault(SOURCE, steps, f"{kind}: it must say where it takes files from")
    elif kind == "ResourceSetInputProvider" and rules.api_url is not None and url.startswith(f"{rules.api_url}/"):
        return
    elif kind == "GitRepository" and url == rules.own_url:
        yield Fault(SOURCE, steps, f"{kind}: {url} is this repository, which Flux follows by flux-instance.yaml alone")
    elif rules.sources is None:
        yield Fault(SOURCE, steps, f"{kind}: fleet.yaml has no sources, so none is allowed; add to it: sources: [{_quoted(url)}]")
    elif url not in rules.sources:
        message = f"{kind}: {url} is not in sources of fleet.yaml; add exactly this text to them to allow it"
        yield Fault(SOURCE, steps, message)


def _quoted(url: str) -> str:
    return '"' + url.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _of_reference(data: Data, kind: str) -> Iterator[Fault]:
    """Whether a source stays what it was when it was reviewed."""
    for name in ("recurseSubmodules", "include"):
        if at(data, "spec", name):
            message = f"{kind}: spec.{name} adds files of other repositories; leave it out"
            yield Fault(UNJUDGED, ("spec", name), message)
    fixed = _FIXED.get(kind)
    if fixed is None:
        return
    reference = at(data, "spec", "ref")
    named = [str(name) for name, value in reference.items() if value not in (None, "")] if isinstance(reference, dict) else []
    wanted = " or ".join(f"spec.ref.{name}" for name in fixed)
    if not named:
        yield Fault(PIN, ("spec", "ref"), f"{kind}: without spec.ref it moves under the cluster; name a release by {wanted}")
    for name in named:
        if name not in fixed:
            message = f"{kind}: spec.ref.{name} moves under the cluster; name a release by {wanted}"
            yield Fault(PIN, ("spec", "ref", name), message)
        elif not isinstance(at(reference, name), str):
            yield Fault(PIN, ("spec", "ref", name), f"{kind}: spec.ref.{name} must be text")
        elif name == "tag" and at(reference, name) == "latest" and "digest" not in named:
            message = f"{kind}: the tag latest moves under the cluster; name a release by {wanted}"
            yield Fault(PIN, ("spec", "ref", name), message)


def _of_kustomization(data: Data) -> Iterator[Fault]:
    spec = at(data, "spec")
    for name in spec if isinstance(spec, dict) else ():
        if name not in HARMLESS:
            message = f"Kustomization: spec.{name} changes objects after they were judged; write what it does into the files"
            yield Fault(UNJUDGED, ("spec", str(name)), message)


def _of_flux(data: Data, group: str, kind: str, rules: Rules) -> Iterator[Fault]:
    """The objects of flux-instance.yaml and flux/ would be other ones if base/ had them too."""
    if (group, kind) == (_OPERATOR, "FluxInstance"):
        yield Fault(UNJUDGED, ("kind",), "FluxInstance: Flux itself is set up by flux-instance.yaml alone")
    taken = {
        (_SOURCES, "GitRepository"): (rules.own, BLUEPRINTS),
        (_KUSTOMIZE, "Kustomization"): (rules.own, layout.BASE, layout.TENANTS),
    }.get((group, kind), ())
    name = at(data, "metadata", "name")
    if name in taken and (at(data, "metadata", "namespace") or OWN) == OWN:
        yield Fault(UNJUDGED, ("metadata", "name"), f"{kind}: {name} is set up by flux-instance.yaml and flux/ alone")


def _of_own_files(data: Data, rules: Rules) -> Iterator[Fault]:
    """Only flux/sync.yaml may apply files of the fleet's own repository, for it names folders whose files are judged."""
    home = at(data, "metadata", "namespace") or OWN
    for steps, reference in _references(_without_items(data), ()):
        namespace = at(reference, "namespace") or home
        if (at(reference, "kind"), at(reference, "name"), namespace) == ("GitRepository", rules.own, OWN):
            kind = at(data, "kind")
            message = f"{kind}: it applies files of this repository, which only the Kustomizations of flux/sync.yaml may do"
            yield Fault(UNJUDGED, steps, message)


def _references(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """Where an object names sources of files: by `sourceRef`, as most kinds do, or by a list `sources`."""
    for step, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if step == "sourceRef" or steps[-1:] == ("sources",):
            yield (*steps, step), each
        yield from _references(each, (*steps, step))


def _of_release(data: Data) -> Iterator[Fault]:
    if at(data, "spec", "postRenderers") is not None:
        message = "HelmRelease: spec.postRenderers changes objects after they were judged; set what it does by spec.values"
        yield Fault(UNJUDGED, ("spec", "postRenderers"), message)
    given = at(data, "spec", "valuesFrom")
    for place, each in enumerate(given if isinstance(given, list) else ()):
        target = at(each, "targetPath")
        name = re.split(r"[.\[\]]+", target.rstrip("]"))[-1] if isinstance(target, str) else ""
        if at(each, "kind") != "Secret" or not name or name == "image" or name in _PARTS:
            message = (
                "HelmRelease: spec.valuesFrom hides values; write them into spec.values, "
                "and name the one value that a Secret sets by targetPath"
            )
            yield Fault(UNJUDGED, ("spec", "valuesFrom", place), message)


def _of_kustomize_file(data: Any) -> Iterator[Fault]:
    """A file of kustomize may list files beside it: anything else changes them, or brings others."""
    if not isinstance(data, dict):
        return
    for name, value in data.items():
        if name == "resources" and isinstance(value, list):
            for place, each in enumerate(value):
                if not isinstance(each, str) or not _FILE_BESIDE.fullmatch(each):
                    message = f"resources may be files of this folder, by names that end with .yaml, and not {str(each)[:200]!r}"
                    yield Fault(UNJUDGED, (name, place), message)
        elif name not in ("apiVersion", "kind", "metadata"):
            message = f"{name} changes objects after they were judged, or brings others; write what it does into the files"
            yield Fault(UNJUDGED, (str(name),), message)


# Images


def _images(value: Any, steps: Steps, place: str) -> Iterator[Image]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            name = at(each, "name")
            yield from _images(each, (*steps, number), f"{place}[{name if isinstance(name, str) else number}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            where, here = (*steps, key), f"{place}.{key}".removeprefix(".")
            if key == "image" and isinstance(each, str):
                yield Image(where, here, each)
            if isinstance(each, dict) and _is_image(key, each):
                yield Image(where, here, _joined(each))
            yield from _images(each, where, here)


def _is_image(key: Any, value: Data) -> bool:
    """Whether a map has the parts of an image, as the values of most charts do."""
    given = {name for name in (*_PARTS, _REFERENCE) if value.get(name) not in (None, "")}
    return bool(given) if key == "image" else "repository" in given and bool(given & {"tag", "digest"})


def _joined(parts: Data) -> str:
    registry, repository, tag, digest = (parts.get(name) for name in _PARTS)
    start = f"{registry}/" if registry else ""
    name = repository or parts.get(_REFERENCE) or parts.get("name") or ""
    return f"{start}{name}{f':{tag}' if tag else ''}{f'@{digest}' if digest else ''}"
