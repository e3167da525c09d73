"""YAML that people write, read strictly: within bounds, every key once, and every key a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from flux_resourceset import strict_json
from flux_resourceset.render import yaml_bounds


class _DatesAsText(yaml_bounds.PARSER):  # type: ignore[misc]  # the class is chosen at run time
    """JSON has no dates."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # PyYAML's own name and form
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml_bounds.PARSER.yaml_implicit_resolvers.items()
    }


def values(text: str, *, dates_as_text: bool = False) -> list[Any]:
    """Every document of a text, or the error of YAML, which knows the place. Deeper than JSON may be is refused."""
    yaml_bounds.check(text, strict_json.MAX_DEPTH)
    return list(_values(_DatesAsText(text) if dates_as_text else yaml_bounds.PARSER(text)))


def node(text: str) -> yaml.Node | None:
    """The one document of a text as a tree that knows its lines."""
    root: yaml.Node | None = yaml.compose(text, Loader=yaml_bounds.PARSER)
    return root


def reason(error: Exception) -> tuple[int | None, str]:
    """The line and the words of what went wrong while YAML was read."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return mark.line + 1 if mark else None, f"invalid YAML: {error.problem or error.context}"
    return None, f"invalid YAML: {str(error).splitlines()[0]}"


ERRORS = (yaml.YAMLError, ValueError, RecursionError)  # what reading can raise: numbers and dates that are none are ValueErrors


def _values(loader: Any) -> Iterator[Any]:
    try:
        while loader.check_node():
            root = loader.get_node()
            check_keys(root)
            yield loader.construct_document(root)
    finally:
        loader.dispose()


def check_keys(node: yaml.Node) -> None:
    """YAML lets the last of two equal keys win in silence, and a list hold itself."""
    _check_keys(node, {})


def _check_keys(node: yaml.Node, complete: dict[int, bool]) -> None:
    if id(node) in complete:  # an alias: it was looked at where its anchor stands
        if not complete[id(node)]:
            raise _wrong("it holds itself", node)
        return
    complete[id(node)] = False
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item, complete)
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            _check_key(key, names)
            names.add(key.value)
            _check_keys(value, complete)
    complete[id(node)] = True


def _check_key(key: yaml.Node, names: set[str]) -> None:
    if not isinstance(key, yaml.ScalarNode):
        raise _wrong("a list or a map is no key; keys must be text", key)
    if not key.tag.endswith((":str", ":merge")):
        raise _wrong(f"the key {key.value} is not text; put it in quotes", key)
    if key.value in names:
        raise _wrong(strict_json.duplicate_key(key.value), key)


def _wrong(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
