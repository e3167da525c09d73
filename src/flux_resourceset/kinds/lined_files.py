"""A YAML file that knows the line of everything in it, so that a mistake can be pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from flux_resourceset import errors, strict_yaml


class LinedFile:
    """A YAML file that knows the line of everything in it."""

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        try:
            values = strict_yaml.values(text)
            root = strict_yaml.node(text)
        except strict_yaml.ERRORS as exc:
            line, why = strict_yaml.reason(exc)
            raise errors.StartupError(f"{source}:{line or 1}: {why}") from exc
        if root is None:
            raise errors.StartupError(f"{source}:1: the file is empty; it should define a kind")
        self.root: yaml.Node = root
        self.data: Any = values[0]

    def wrong(self, path: Sequence[str | int], reason: str) -> errors.StartupError:
        place = "/".join(map(str, path))
        return errors.StartupError(f"{self.source}:{self._line(path)}: {place + ': ' if place else ''}{reason}")

    def _line(self, path: Sequence[str | int]) -> int:
        node = self.root
        line = node.start_mark.line
        for step in path:
            following = self._step(node, step)
            if following is None:
                break
            key, node = following
            line = key.start_mark.line
        return int(line) + 1

    @staticmethod
    def _step(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
        if isinstance(node, yaml.MappingNode):
            return next(((key, value) for key, value in node.value if key.value == str(step)), None)
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            return node.value[step], node.value[step]
        return None
