"""Documents in files, YAML or JSON, read strictly."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from flux_resourceset import errors, strict_json
from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing import field_options

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind, Kinds

_SUFFIXES = (".yaml", ".yml", ".json")

_MOST = 5_000_000  # values in one file; what holds itself twice doubles with every level


class Document(NamedTuple):
    """A document of a file, with the kind that it names."""

    kind: Kind
    id: str
    body: dict[str, Any]  # without `kind`
    source: str


def read(sources: Iterable[str], kinds: Kinds, stdin: TextIO) -> list[Document]:
    """Every document of files, directories and `-`; each must say its kind and its id."""
    documents: list[Document] = []
    seen: dict[tuple[str, str], str] = {}
    for source in sources:
        for name, text in _texts(source, stdin):
            for place, value in _values(name, text):
                document = _document(kinds, place, value)
                key = kind, id = document.kind.name, document.id
                if key in seen:
                    raise failures.usage(f'{place}: {kind} "{id}" is given twice; it stands in {seen[key]} already')
                seen[key] = place
                documents.append(document)
    if not documents:
        raise failures.usage(f"{', '.join(sources)}: there is no document in it")
    return documents


def read_one(source: str, kind: Kind, id: str, stdin: TextIO) -> dict[str, Any]:
    """The document of a file for a command that names it; `kind` and `id` may be left out."""
    values = [item for name, text in _texts(source, stdin) for item in _values(name, text)]
    if len(values) != 1 or not isinstance(values[0][1], dict):
        raise failures.usage(f"{source}: must hold one document, as an object")
    body = dict(values[0][1])
    if body.pop("kind", kind.name) not in kind.names():
        raise failures.Failure(failures.REFUSED, f'{kind.name} "{id}": /kind in {source} must be {kind.group}')
    body.setdefault("id", id)
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
    from flux_resourceset import strict_yaml

    try:
        values = strict_yaml.values(text, dates_as_text=True)
    except strict_yaml.ERRORS as exc:
        line, why = strict_yaml.reason(exc)
        raise failures.usage(f"{name}:{line}: {why}" if line else f"{name}: {why}") from exc
    _check_size(name, values)
    return values


def _check_size(name: str, value: Any) -> None:
    """Everything that a value stands for, level by level: what refers to itself has no last one."""
    level, count = [value], 0
    for _ in range(strict_json.MAX_DEPTH + 2):
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
    raise failures.usage(f"{name}: is nested deeper than {strict_json.MAX_DEPTH} levels")


def _values(name: str, text: str) -> list[tuple[str, Any]]:
    """Every value of a text with its place; arrays are taken apart."""
    placed: list[tuple[str, Any]] = []
    loaded = _json_values(name, text) if text.lstrip()[:1] in ("{", "[") else None
    for number, value in enumerate(loaded if loaded is not None else _yaml_values(name, text), start=1):
        place = name if number == 1 else f"{name} (document {number})"
        _check_size(place, value)
        if (pointer := field_options.not_finite(value)) is not None:
            raise failures.usage(f"{place}: {pointer or 'it'} is no finite number, which JSON cannot say")
        if isinstance(value, list):
            placed += [(f"{place}[{position}]", item) for position, item in enumerate(value)]
        elif value is not None:
            placed.append((place, value))
    return placed


def _json_values(name: str, text: str) -> list[Any] | None:
    """JSON, one value or several one after another; None when it is something else, such as YAML in flow style."""
    decoder = json.JSONDecoder(object_pairs_hook=strict_json.unique)
    values, position = [], 0
    try:
        while position < len(text):
            match = re.compile(r"\s*").match(text, position)
            position = match.end() if match else position
            if position < len(text):
                value, position = decoder.raw_decode(text, position)
                values.append(value)
    except errors.MalformedBody as exc:
        raise failures.usage(f"{name}: {exc}") from exc
    except (ValueError, RecursionError):
        return None
    return values


def _yaml_values(name: str, text: str) -> list[Any]:
    values = loaded(name, text)
    try:
        json.dumps(values)  # what YAML can say and JSON cannot: dates, bytes, sets
    except (ValueError, TypeError) as exc:
        raise failures.usage(f"{name}: is no document: {exc}") from exc
    return values
