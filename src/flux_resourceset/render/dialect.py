"""YAML as Kubernetes reads and writes it (Go's dialect of YAML 1.1), on PyYAML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import yaml

from flux_resourceset.render import yaml_bounds
from flux_resourceset.render.failures import TemplateError

_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = re.compile(r"^(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT = re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_ENDLESS = re.compile(r"^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$")
_INT64 = 2**63  # whole numbers from here on are floats to Kubernetes
_YES = frozenset({"y", "yes", "on", "true"})

DEEPEST = 100  # levels of lists and maps: more than any manifest has, and few enough for everything here that recurses
_HARMLESS = (
    5000  # characters that cannot nest deep enough to overflow the stack of libyaml; without aliases they stand for themselves
)

_RESOLVERS: tuple[tuple[str, re.Pattern[str], str | None], ...] = (
    ("tag:yaml.org,2002:null", _NULL, None),
    ("tag:yaml.org,2002:bool", _BOOL, "yYnNtTfFoO"),
    ("tag:yaml.org,2002:int", _INT, "-+0123456789"),
    ("tag:yaml.org,2002:float", _FLOAT, "-+.0123456789"),
    ("tag:yaml.org,2002:float", _ENDLESS, "-+."),
    ("tag:yaml.org,2002:merge", re.compile(r"^<<$"), "<"),
)


class _Loader(yaml_bounds.PARSER):  # type: ignore[misc]  # the base class is chosen at run time
    """Plain scalars mean what Go's parser takes them for; keys are strings, as in JSON."""

    yaml_implicit_resolvers: dict[str | None, Any] = {}  # noqa: RUF012  # PyYAML's own name and form

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        self.flatten_mapping(node)
        return {_key(self.construct_object(key, True), key): self.construct_object(value, True) for key, value in node.value}


def _key(key: object, node: yaml.Node) -> str:
    match key:
        case bool():
            return "true" if key else "false"
        case str() | int() | float():
            return str(key)
    raise yaml.constructor.ConstructorError(None, None, "a key must be a scalar", node.start_mark)


def _check_form(node: yaml.ScalarNode, *forms: re.Pattern[str]) -> None:
    """A tag may be written out, before a text that is nothing of the kind."""
    if not any(form.match(node.value) for form in forms):
        word = node.tag.rpartition(":")[2]
        raise yaml.constructor.ConstructorError(None, None, f"{node.value!r} is no {word}", node.start_mark)


def _null(loader: Any, node: yaml.ScalarNode) -> None:
    _check_form(node, _NULL)


def _bool(loader: Any, node: yaml.ScalarNode) -> bool:
    _check_form(node, _BOOL)
    return node.value.lower() in _YES


def _int(loader: Any, node: yaml.ScalarNode) -> int | float | str:
    _check_form(node, _INT)
    text = node.value.replace("_", "")
    unsigned = text.lstrip("+-")
    octal = len(unsigned) > 1 and unsigned[0] == "0" and unsigned.isdigit()
    try:
        number = int(text, 8 if octal else 0)
        return number if abs(number) < _INT64 else float(number)
    except (ValueError, OverflowError):
        return str(node.value)  # as Go has it: what cannot be a number is text


def _float(loader: Any, node: yaml.ScalarNode) -> float | int | str:
    if _ENDLESS.match(node.value):
        raise yaml.constructor.ConstructorError(None, None, "a number must be finite", node.start_mark)
    _check_form(node, _FLOAT)
    number = float(node.value)
    if math.isinf(number):
        return str(node.value)  # as above
    return int(number) if number.is_integer() and abs(number) < _INT64 else number  # 1.0 is 1 in JSON


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = loader.construct_mapping(node)
    return mapping


def _str(loader: Any, node: yaml.ScalarNode) -> str:
    return str(node.value)


for _tag, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(_tag, _pattern, list(_first) if _first else ["~", "n", "N", ""])
_Loader.add_constructor("tag:yaml.org,2002:null", _null)
_Loader.add_constructor("tag:yaml.org,2002:bool", _bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:merge", _str)  # it merges as a key only; as a value it is text
for _name in ("binary", "omap", "pairs", "set", "timestamp"):  # nothing that JSON has
    _Loader.add_constructor(f"tag:yaml.org,2002:{_name}", _Loader.construct_undefined)


class _Dumper(yaml.SafeDumper):
    """Quotes whatever any YAML parser could take for something else than a string."""

    def ignore_aliases(self, data: object) -> bool:
        return True  # the same list twice is written twice

    def choose_scalar_style(self) -> str:
        style = super().choose_scalar_style()
        # one line, however it is indented later; PyYAML's multi-line quotes would do, but nobody can read them
        return '"' if style == "'" and self.analysis and self.analysis.multiline else str(style)


class _Presenter(_Dumper):
    """For people: long texts as blocks."""


def _block(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


for _tag, _pattern, _first in _RESOLVERS[:4]:
    _Dumper.add_implicit_resolver(_tag, _pattern, list(_first) if _first else None)
_Presenter.yaml_implicit_resolvers = _Dumper.yaml_implicit_resolvers
_Presenter.add_representer(str, _block)


def documents(text: str) -> Iterator[tuple[int, Any]]:
    """The documents of a stream with the line where each begins; the empty ones are passed over."""
    try:
        for node, value in nodes(text, DEEPEST):
            yield node.start_mark.line + 1, value
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise TemplateError(f"invalid YAML: {exc.problem}", mark.line + 1 if mark else None) from exc
    except (yaml.YAMLError, UnicodeError) as exc:
        raise TemplateError(f"invalid YAML: {exc}") from exc
    except RecursionError as exc:
        raise _too_deep() from exc


def nodes(text: str, deepest: int, inspect: Callable[[yaml.Node], None] | None = None) -> Iterator[tuple[yaml.Node, Any]]:
    """The same with the tree that knows the place of everything, and with the errors of YAML.

    `inspect` sees each tree before it is made into a value, which puts merged keys into it.
    """
    if len(text) > _HARMLESS or "*" in text:
        yaml_bounds.check(text, deepest)
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if inspect is not None:
                inspect(node)
            value = loader.construct_document(node)
            if value is not None:
                check_levels(value, deepest)
                yield node, value
    finally:
        loader.dispose()


def check_levels(value: object, deepest: int = DEEPEST) -> None:
    """Level by level, for what is too deep cannot be walked otherwise; what stands in several places is looked at once."""
    level: list[Any] = [value]
    for _ in range(deepest + 1):
        holders = {id(each): each for each in level if isinstance(each, dict | list)}
        if not holders:
            return
        level = [child for each in holders.values() for child in (each.values() if isinstance(each, dict) else each)]
    raise _too_deep(deepest)


def _too_deep(deepest: int = DEEPEST) -> TemplateError:
    return TemplateError(f"nested more than {deepest} levels deep")


# YAML 1.1 breaks lines at some of these, forbids others, and its parsers know no surrogate pairs; half of one is no text.
_UNSAFE_CODES = (*range(0x7F, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000), 0xFEFF, 0xFFFE, 0xFFFF)
_UNSAFE = {code: f"\\u{code:04x}" for code in _UNSAFE_CODES}


def json_text(value: object) -> str:
    """JSON that is YAML too, for programs that read both with a YAML parser."""
    return json.dumps(value, ensure_ascii=False, default=dict).translate(_UNSAFE)


def dumped(value: object, stream: IO[str] | None = None) -> str:
    """One line per value, keys sorted: what `toYaml` gives to a template."""
    return str(yaml.dump(value, stream, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=2**31))


def presented(objects: Iterable[object]) -> str:
    """Manifests for people and for `kubectl apply -f`, in their own order of keys."""
    text: str = yaml.dump_all(objects, Dumper=_Presenter, sort_keys=False, allow_unicode=True, width=2**31, explicit_start=True)
    return text
