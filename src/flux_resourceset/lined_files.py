"""A YAML file that knows the line of everything in it, so that a mistake can be pointed at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from flux_resourceset import errors, yaml_bounds

_DEEPEST = 64  # levels, as in JSON; what is much deeper ends the parser, and the process with it


class LinedFile:
    """A YAML file that knows the line of everything in it."""

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        try:
            yaml_bounds.check(text, _DEEPEST)
            self.root = yaml.compose(text, Loader=yaml_bounds.PARSER)
            if self.root is None:
                raise errors.StartupError(f"{source}:1: the file is empty; it should define a kind")
            self._check_keys(self.root)
            self.data: Any = yaml.load(text, Loader=yaml_bounds.PARSER)  # noqa: S506  # a safe one
        except yaml.MarkedYAMLError as exc:
            line = exc.problem_mark.line + 1 if exc.problem_mark else 1
            raise errors.StartupError(f"{source}:{line}: not valid YAML: {exc.problem}") from exc
        except (yaml.YAMLError, ValueError, RecursionError) as exc:
            raise errors.StartupError(f"{source}:1: not valid YAML: {str(exc).splitlines()[0]}") from exc

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

    def _check_keys(self, node: yaml.Node) -> None:
        """YAML lets the last of two equal keys win in silence."""
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self._check_keys(item)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.value in seen or not key.tag.endswith((":str", ":merge")):
                    shown = getattr(key, "value", "")
                    raise errors.StartupError(
                        f"{self.source}:{key.start_mark.line + 1}: the key {shown!r} stands here twice or is not a word"
                    )
                seen.add(key.value)
                self._check_keys(value)
