"""A repository of components against its register, COMPONENTS.yaml: what is missing, unlisted, changed, unused. Pure."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset.repositories import manifests, signatures, trees
from flux_resourceset.repositories.findings import Finding, error
from flux_resourceset.repositories.manifests import Manifest
from flux_resourceset.repositories.release_order import order

FILE = "COMPONENTS.yaml"
BASE = "base"  # of a version: what its environments share
KUSTOMIZATION = "kustomization.yaml"
_BOM = "\ufeff"
_VERSION_DEPTH = 3  # <area>/<component>/<version>, as the sample has it


class Unreadable(Exception):
    """No register that could be compared with anything; the findings say why."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(*(finding.message for finding in findings))
        self.findings = findings


class Component(NamedTuple):
    id: str
    path: str
    versions: tuple[str, ...]  # oldest first
    depends_on: tuple[str, ...]
    line: int

    @property
    def folders(self) -> list[str]:
        return [f"{self.path}/{version}" for version in self.versions]


class Register(NamedTuple):
    environments: tuple[str, ...]
    components: tuple[Component, ...]
    document: Manifest

    @property
    def folders(self) -> dict[str, Component]:
        """The directory of every version, with the component whose it is."""
        return {folder: component for component in self.components for folder in component.folders}


@functools.cache
def schema() -> dict[str, Any]:
    text = importlib.resources.files(__package__).joinpath("components.schema.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def register(tree: trees.Tree) -> Register:
    """The register of a tree. Raises Unreadable."""
    try:
        documents = manifests.of_tree(tree, FILE)
    except manifests.Unreadable as exc:
        raise Unreadable([error("schema", FILE, exc.line, exc.reason)]) from exc
    if len(documents) != 1:
        raise Unreadable([error("schema", FILE, None, "is missing or empty" if not documents else "must hold one document")])
    document = documents[0]
    wrong = [
        error("schema", FILE, document.line(*each.steps), each.text) for each in signatures.violations(schema(), document.data)
    ]
    if wrong:
        raise Unreadable(wrong)
    found = tuple(
        Component(
            each["id"],
            each["path"],
            tuple(sorted(each["versions"], key=order)),
            tuple(each.get("depends_on") or ()),
            document.line("components", place),
        )
        for place, each in enumerate(document.data["components"])
    )
    result = Register(tuple(document.data["environments"]), found, document)
    contradictions = list(_contradictions(result))
    if contradictions:
        raise Unreadable(contradictions)
    return result


def _contradictions(register: Register) -> Iterator[Finding]:
    ids: set[str] = set()
    paths: set[str] = set()
    for component in register.components:
        if component.id in ids:
            yield error("schema", FILE, component.line, f"there are two components {component.id}")
        if component.path in paths:
            yield error("schema", FILE, component.line, f"two components have the path {component.path}")
        ids.add(component.id)
        paths.add(component.path)
    for component in register.components:
        for id in component.depends_on:
            if id not in ids:
                yield error("schema", FILE, component.line, f"{component.id} depends on {id}, which is not listed")


def findings(tree: trees.Tree, register: Register) -> Iterator[Finding]:
    """Register and directories, both ways, and dependencies."""
    yield from _missing(tree, register)
    yield from _unlisted(tree, register)
    yield from _cycles(register)


def _missing(tree: trees.Tree, register: Register) -> Iterator[Finding]:
    for folder, component in register.folders.items():
        if not tree.children(folder):
            yield error("missing", folder, None, f"{FILE} lists it for {component.id}, and there is no such directory")
            continue
        for environment in register.environments:
            if KUSTOMIZATION not in tree.children(f"{folder}/{environment}"):
                yield error(
                    "missing", f"{folder}/{environment}", None, f"has no {KUSTOMIZATION}, so {environment} cannot be built"
                )


def _unlisted(tree: trees.Tree, register: Register) -> Iterator[Finding]:
    listed = register.folders
    for folder in sorted(_version_folders(tree, register)):
        related = any(folder == each or folder.startswith(f"{each}/") or each.startswith(f"{folder}/") for each in listed)
        if not related:
            yield error("unlisted", folder, None, f"is not listed in {FILE}; add the version there, or remove the directory")


def _version_folders(tree: trees.Tree, register: Register) -> set[str]:
    """Every directory that is a version: by its place, or by what it holds."""
    environments = {*register.environments, BASE}
    of_components = {f"{each.path}/{name}" for each in register.components for name in _folders(tree, each.path)}
    found = set(of_components)
    for area in _folders(tree, ""):
        if area.startswith("."):
            continue
        for entry in trees.entries(tree, area):
            parts = entry.path.split("/")
            if parts[-1] == KUSTOMIZATION and len(parts) > 2 and parts[-2] in environments:
                found.add("/".join(parts[:-2]))
            elif len(parts) > _VERSION_DEPTH:
                found.add("/".join(parts[:_VERSION_DEPTH]))
    return found


def _folders(tree: trees.Tree, folder: str) -> list[str]:
    return [name for name, sort in tree.children(folder).items() if sort is trees.Sort.FOLDER]


def _cycles(register: Register) -> Iterator[Finding]:
    waits = {component.id: component for component in register.components}
    done: set[str] = set()
    for start in waits:
        path: list[str] = []
        yield from _walk(start, waits, path, done)


def _walk(start: str, waits: Mapping[str, Component], path: list[str], done: set[str]) -> Iterator[Finding]:
    """Depth first, without recursion: a chain may be long."""
    stack = [(start, iter(waits[start].depends_on))] if start not in done else []
    path[:] = [start]
    while stack:
        id, following = stack[-1]
        after = next(following, None)
        if after is None:
            stack.pop()
            path.pop()
            done.add(id)
        elif after in path:
            circle = [*path[path.index(after) :], after]
            yield error("cycle", FILE, waits[after].line, f"components wait for each other: {' → '.join(circle)}")
        elif after not in done:
            path.append(after)
            stack.append((after, iter(waits[after].depends_on)))


def changed_after_release(tree: trees.Tree, listed: Iterable[str], changed: Iterable[str]) -> Iterator[Finding]:
    """Versions that a release lists are never changed; one that is gone as a whole was pruned.

    `changed` are the paths that differ from the release by Git, which knows of ends of lines, and of files of any size.
    """
    kept = tuple(f"{folder}/" for folder in listed if next(trees.entries(tree, folder), None) is not None)
    for path in changed:
        if path.startswith(kept):
            yield error("immutable", path, None, "differs from the release; make a new version instead")


class Use(NamedTuple):
    """A path in an artifact that the catalog or a cluster names."""

    tag: str
    path: str
    who: str


def unavailable(use: Use, release: trees.Tree | None) -> Finding | None:
    """What is wrong with a use, if anything: no such tag, or no such directory in it."""
    if release is None:
        return error("catalog", use.path, None, f"{use.who} names the tag {use.tag}, which is not there")
    if not release.children(_plain(use.path)):
        return error("catalog", use.path, None, f"{use.who} names it at {use.tag}, where there is no such directory")
    return None


def prunable(register: Register, used: Collection[str], keep: int) -> list[tuple[Component, str]]:
    """Versions beyond the newest ones that nothing uses, oldest first."""
    return [
        (component, version)
        for component in register.components
        for version in component.versions[: max(0, len(component.versions) - keep)]
        if not any(_concerns(f"{component.path}/{version}", _plain(path)) for path in used)
    ]


def _plain(path: str) -> str:
    """A path as Flux takes it, which may lead with ./ and never leaves the root."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _concerns(folder: str, path: str) -> bool:
    """Whether a path is the folder, or in it, or around it."""
    return not path or path == folder or path.startswith(f"{folder}/") or folder.startswith(f"{path}/")


class Refused(Exception):
    """A register from which a version cannot be taken without touching anything else."""


def without_versions(text: str, gone: Mapping[str, Collection[str]]) -> str:
    """The register without versions, by the ids of components; everything else stays as it is written."""
    mark = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(mark)  # it has no place in YAML's count of characters
    root = manifests.of_bytes(text.encode())[0]
    expected = _without(root.data, gone)
    removals: list[tuple[int, int]] = []
    for place, component in enumerate(root.data["components"]):
        dropped = gone.get(component["id"], ())
        if dropped:
            removals += _removals(text, root.sequence("components", place, "versions"), dropped)
    for start, end in sorted(removals, reverse=True):
        text = text[:start] + text[end:]
    try:
        (edited,) = manifests.of_bytes(text.encode())
    except (manifests.Unreadable, ValueError) as exc:
        raise Refused(f"{FILE} cannot be edited; remove the versions by hand") from exc
    if edited.data != expected:
        raise Refused(f"{FILE} cannot be edited; remove the versions by hand")
    return mark + text


def _without(data: Mapping[str, Any], gone: Mapping[str, Collection[str]]) -> dict[str, Any]:
    kept = [
        {**each, "versions": [version for version in each["versions"] if version not in gone.get(each["id"], ())]}
        for each in data["components"]
    ]
    return {**data, "components": kept}


def _removals(text: str, node: Any, dropped: Collection[str]) -> Iterator[tuple[int, int]]:
    """Stretches of the text: in [a, b] an item and the comma behind it, or before it if none behind it stays; else its lines."""
    items = node.value
    last = max((place for place, item in enumerate(items) if item.value not in dropped), default=-1)
    for place, item in enumerate(items):
        if item.value not in dropped:
            continue
        if not node.flow_style:
            yield text.rfind("\n", 0, item.start_mark.index) + 1, _line_end(text, item.end_mark.index)
        elif place < last:
            yield item.start_mark.index, items[place + 1].start_mark.index
        elif place:
            yield items[place - 1].end_mark.index, item.end_mark.index


def _line_end(text: str, place: int) -> int:
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1
