"""Data in the shape that -o jsonpath=… and -o custom-columns=… ask for, and in the order of --sort-by. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.cli.output import jsonpath

_NONE = "<none>"  # as kubectl says that a cell is empty


class CustomColumns(NamedTuple):
    heads: list[str]
    paths: list[jsonpath.Find]

    def cells(self, document: Any) -> list[str]:
        found = (path(document, document) for path in self.paths)
        return [",".join(_NONE if value is None else jsonpath.shown(value) for value in values) or _NONE for values in found]


def template(text: str) -> jsonpath.Template:
    try:
        return jsonpath.Template(text)
    except jsonpath.Mistake as exc:
        raise failures.usage(f"-o jsonpath: {exc}") from exc


def custom_columns(text: str) -> CustomColumns:
    """NAME:.path, and more after commas; a comma in brackets is part of a path."""
    heads, paths = [], []
    for part in re.split(r",(?![^\[]*\])", text):
        name, colon, spec = part.partition(":")
        if not colon or not name.strip() or not spec.strip():
            raise failures.usage(f"-o custom-columns: {part!r} must be NAME:.path, as in ID:.id,DNS:.cluster_dns")
        heads.append(name.strip())
        paths.append(_path("-o custom-columns", spec.strip()))
    return CustomColumns(heads, paths)


def _path(option: str, text: str) -> jsonpath.Find:
    try:
        return jsonpath.path(text)
    except jsonpath.Mistake as exc:
        raise failures.usage(f"{option}: {exc}") from exc


class Order:
    """What --sort-by asks for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._find = _path("--sort-by", text)

    def sorted(self, rows: Sequence[Any], known: Collection[str] = ()) -> list[Any]:
        """Numbers as numbers, texts as people read them (prod-9 before prod-10), what is missing first; else as they were."""
        found = [self._find(row, row) for row in rows]
        first = re.match(r"\{?\.?\w+", self._text)
        if rows and not any(found) and (first is None or first[0].lstrip("{.") not in known):
            raise failures.usage(f"--sort-by {self._text}: nothing here has such a field")
        keys = [_key(values[0]) if values else _key(None) for values in found]
        return [rows[place] for place in sorted(range(len(rows)), key=keys.__getitem__)]


def _key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, list):
        return (1, len(value))  # as tables show them
    text = jsonpath.shown(value)
    if re.fullmatch(r"-?\d{1,300}(\.\d+)?", text):
        return (1, float(text))
    return (2, [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d{1,300}|\D+", text)])
