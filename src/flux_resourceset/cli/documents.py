"""Documents in files: YAML or JSON in, YAML out, so that what is printed can be applied again."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from flux_resourceset.cli import failures, fields, output

if TYPE_CHECKING:
    from flux_resourceset.cli.kinds import Kind, Kinds

_SUFFIXES = (".yaml", ".yml", ".json")

_DEEPEST = 64  # as the server has it; what is much deeper ends the parser, and the program with it
_MOST = 5_000_000  # values in one file; what holds itself twice doubles with every level


class Document(NamedTuple):
    """A document of a file, with the kind that it names."""

    kind: Kind
    id: str
    body: dict[str, Any]  # without `kind`
    source: str


# Printing


@functools.cache
def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # one of two classes, both fit
        def ignore_aliases(self, data: Any) -> bool:
            return True  # a document never says "the same as above"

    def represent_text(dumper: Any, text: str) -> Any:
        # what steers a terminal is escaped, which only double quotes can do
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if output.STEERING.search(text) else None)

    Dumper.add_representer(str, represent_text)
    # YAML 1.2 reads these as numbers, so they are put in quotes for other readers
    number = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$|0o[0-7]+$")
    Dumper.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789"))
    return Dumper


def dumped(values: Iterable[Any]) -> str:
    import yaml

    found = list(values)
    text: str = yaml.dump_all(
        found,
        Dumper=_dumper(),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        explicit_start=len(found) > 1,
        width=10_000,
    )
    return output.escaped(text)


# Reading


def read(sources: Iterable[str], kinds: Kinds, stdin: TextIO) -> list[Document]:
    """Every document of files, directories and `-`; each must say its kind and its id."""
    found: list[Document] = []
    seen: dict[tuple[str, str], str] = {}
    for source in sources:
        for name, text in _texts(source, stdin):
            for place, value in _values(name, text):
                document = _document(kinds, place, value)
                key = kind, id = document.kind.name, document.id
                if key in seen:
                    raise failures.usage(f'{place}: {kind} "{id}" is given twice; it stands in {seen[key]} already')
                seen[key] = place
                found.append(document)
    if not found:
        raise failures.usage(f"{', '.join(sources)}: there is no document in it")
    return found


def read_one(source: str, kind: Kind, id: str, stdin: TextIO) -> dict[str, Any]:
    """The document of a file for a command that names it; `kind` may be left out."""
    values = [item for name, text in _texts(source, stdin) for item in _values(name, text)]
    if len(values) != 1 or not isinstance(values[0][1], dict):
        raise failures.usage(f"{source}: must hold one document, as an object")
    body = dict(values[0][1])
    if body.pop("kind", kind.name) not in kind.names():
        raise failures.Failure(failures.REFUSED, f'{kind.name} "{id}": /kind in {source} must be {kind.group}')
    if body.setdefault("id", id) != id:
        raise failures.Failure(failures.REFUSED, f'{kind.name} "{id}": /id in {source} must be {id}, as in the command')
    return body


def _document(kinds: Kinds, place: str, value: Any) -> Document:
    if not isinstance(value, dict):
        raise failures.usage(f"{place}: is no document; it must be an object with kind and id")
    name, id = value.get("kind"), value.get("id")
    kind = kinds.find(name) if isinstance(name, str) else None
    if kind is None:
        known = ", ".join(kind.group for kind in kinds)
        raise failures.usage(f"{place}: kind is {name!r}; it must be one of {known}")
    if not isinstance(id, str) or not id:
        raise failures.usage(f"{place}: a document needs an id, as text")
    return Document(kind, id, {key: item for key, item in value.items() if key != "kind"}, place)


def _texts(source: str, stdin: TextIO) -> Iterator[tuple[str, str]]:
    if source == "-":
        yield "stdin", _text("stdin", getattr(stdin, "buffer", stdin).read())
        return
    try:
        if os.path.isdir(source):
            for entry in sorted(os.listdir(source)):
                if entry.endswith(_SUFFIXES):
                    yield from _texts(os.path.join(source, entry), stdin)
            return
        with open(source, "rb") as stream:
            raw = stream.read()
    except OSError as exc:
        raise failures.usage(f"{source}: cannot be read: {exc.strerror}") from exc
    yield source, _text(source, raw)


def _text(name: str, raw: bytes | str) -> str:
    try:
        return raw if isinstance(raw, str) else raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise failures.usage(f"{name}: is not UTF-8 text") from exc


def loaded(name: str, text: str) -> list[Any]:
    """Every value of a YAML text, read strictly."""
    import yaml

    from flux_resourceset import yaml_bounds

    try:
        yaml_bounds.check(text, _DEEPEST)
        found = list(yaml.load_all(text, Loader=_loader()))  # a subclass of the safe loader
        _check_size(name, found)
        return found
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise failures.usage(f"{name}:{line}: is not YAML: {exc.problem or exc.context}") from exc
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise failures.usage(f"{name}: is not YAML: {str(exc).splitlines()[0]}") from exc


def _check_size(name: str, value: Any) -> None:
    """Everything that a value stands for, level by level: what refers to itself has no last one."""
    level, count = [value], 0
    for _ in range(_DEEPEST + 2):
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
        count += len(level)
        if count > _MOST:
            raise failures.usage(f"{name}: holds more than {_MOST} values")
        if not level:
            return
    raise failures.usage(f"{name}: is nested deeper than {_DEEPEST} levels")


def _values(name: str, text: str) -> list[tuple[str, Any]]:
    """Every value of a text with its place; arrays are taken apart."""
    found: list[tuple[str, Any]] = []
    loaded = _json_values(name, text) if text.lstrip()[:1] in ("{", "[") else None
    for number, value in enumerate(loaded if loaded is not None else _yaml_values(name, text), start=1):
        place = name if number == 1 else f"{name} (document {number})"
        _check_size(place, value)
        if (pointer := fields.not_finite(value)) is not None:
            raise failures.usage(f"{place}: {pointer or 'it'} is no finite number, which JSON cannot say")
        if isinstance(value, list):
            found += [(f"{place}[{position}]", item) for position, item in enumerate(value)]
        elif value is not None:
            found.append((place, value))
    return found


def _json_values(name: str, text: str) -> list[Any] | None:
    """JSON, one value or several one after another; None when it is something else, such as YAML in flow style."""
    decoder = json.JSONDecoder(object_pairs_hook=functools.partial(_unique, name))
    found, position = [], 0
    try:
        while position < len(text):
            match = re.compile(r"\s*").match(text, position)
            position = match.end() if match else position
            if position < len(text):
                value, position = decoder.raw_decode(text, position)
                found.append(value)
    except (ValueError, RecursionError):
        return None
    return found


def _unique(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = next(key for position, (key, _) in enumerate(pairs) if key in [k for k, _ in pairs[:position]])
        raise failures.usage(f"{name}: the key {twice!r} stands twice in one object")
    return result


@functools.cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # one of two classes, both fit
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                word = key.value if isinstance(key.value, str) else "…"  # a key may be anything
                if not key.tag.endswith((":str", ":merge")) or word in seen:
                    why = "stands twice in one object" if word in seen else "is no text; put it in quotes"
                    raise yaml.constructor.ConstructorError(None, None, f"the key {word!r} {why}", key.start_mark)
                seen.add(word)
            return super().construct_mapping(node, deep)

    # a date is text to the API
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    return Loader


def _yaml_values(name: str, text: str) -> list[Any]:
    found = loaded(name, text)
    try:
        json.dumps(found)  # what YAML can say and JSON cannot: dates, bytes, sets
    except (ValueError, TypeError) as exc:
        raise failures.usage(f"{name}: is no document: {exc}") from exc
    return found
