"""Manifests in files, read strictly as Kubernetes reads YAML; every value knows its line."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from flux_resourceset import strict_json, strict_yaml
from flux_resourceset.render import TemplateError, dialect
from flux_resourceset.repositories import trees

DEEPEST = strict_json.MAX_DEPTH
_REMEMBERED = 64  # files: what clusters have in common, such as their base, is read once


class Unreadable(Exception):
    """A file that is no strict YAML; the line where that shows, and why."""

    def __init__(self, line: int | None, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Unread(Unreadable):
    """A file that is listed, and whose content cannot be had."""

    def __init__(self) -> None:
        super().__init__(None, "is there and cannot be read")


class Manifest:
    """One document of a file. Nobody changes its data, for equal files share it."""

    def __init__(self, data: Any, node: yaml.Node) -> None:
        self.data = data
        self.node = node

    def line(self, *steps: str | int) -> int:
        """Where a value stands, or else the nearest thing above it that is there."""
        node = self.node
        line = node.start_mark.line
        for step in steps:
            following = _step(node, step)
            if following is None:
                break
            key, node = following
            line = key.start_mark.line
        return int(line) + 1

    def sequence(self, *steps: str | int) -> yaml.SequenceNode:
        """The list at a place, which must be there, as a tree that knows the place of everything."""
        node = self.node
        for step in steps:
            following = _step(node, step)
            assert following is not None
            node = following[1]
        assert isinstance(node, yaml.SequenceNode)
        return node

    def at(self, *steps: str | int) -> Any:
        """The value at a place; None where there is none."""
        return at(self.data, *steps)

    @property
    def kind(self) -> str:
        return str(self.at("kind") or "")

    @property
    def api_version(self) -> str:
        return str(self.at("apiVersion") or "")

    @property
    def name(self) -> str:
        return str(self.at("metadata", "name") or "")


def at(value: Any, *steps: str | int) -> Any:
    """The value at a place; None where there is none, whatever stands there instead."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def of_tree(tree: trees.Tree, path: str) -> list[Manifest]:
    """The documents of a file; none where there is no such file."""
    try:
        body = trees.checked(tree, path)
    except trees.Unread as exc:
        raise Unread from exc
    except trees.TooLarge as exc:
        raise Unreadable(None, f"has more than {trees.LARGEST} bytes") from exc
    return [] if body is None else list(of_bytes(body))


def items(value: Any) -> list[Any] | None:
    """The objects of a list; None for any other object. Flux expands an object of any kind with a list `items`."""
    found = at(value, "items")
    return found if isinstance(found, list) else None


@functools.lru_cache(_REMEMBERED)
def of_bytes(body: bytes) -> tuple[Manifest, ...]:
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Unreadable(body.count(b"\n", 0, exc.start) + 1, "is not UTF-8 text") from exc
    try:
        return tuple(Manifest(data, node) for node, data in dialect.nodes(text, DEEPEST, strict_yaml.check_keys))
    except strict_yaml.ERRORS as exc:
        raise Unreadable(*strict_yaml.reason(exc)) from exc
    except TemplateError as exc:
        raise Unreadable(exc.line, exc.reason) from exc
    except (TypeError, LookupError, AttributeError) as exc:  # PyYAML's, where a tag stands before a value that it does not fit
        raise Unreadable(None, "invalid YAML: a tag stands before a value that it does not fit") from exc


def _step(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def objects(manifests: Sequence[Manifest]) -> Iterator[Manifest]:
    """Those that are maps; the others are no objects of Kubernetes."""
    return (manifest for manifest in manifests if isinstance(manifest.data, dict))
