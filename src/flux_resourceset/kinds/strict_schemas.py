"""Schemas of kind files: that they are JSON Schema as far as it is taken, with file and line, and closed to unknown fields."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema_rs

from flux_resourceset.kinds import formats, validation
from flux_resourceset.kinds.lined_files import LinedFile
from flux_resourceset.kinds.validation import Schema

Path = Sequence[str | int]


def check_form(schema: Any, path: Path, file: LinedFile) -> None:
    """That it is a JSON Schema, before anybody walks in it."""
    try:
        jsonschema_rs.meta.validate(schema)
    except (jsonschema_rs.ValidationError, ValueError) as exc:
        where = getattr(exc, "instance_path", ())
        raise file.wrong([*path, *where], f"not a valid JSON Schema: {_first_line(exc)}") from exc


def check_schema(schema: Schema, path: Path, file: LinedFile) -> None:
    for at, sub in walk(schema, [*path]):
        if "$ref" in sub:
            raise file.wrong([*at, "$ref"], "$ref is not supported in kind files; write the schema in place")
        if sub.get("format", "date") not in formats.KNOWN:
            raise file.wrong([*at, "format"], f"unknown format {sub['format']!r}")
        try:
            validator = validation.validator_of(sub)
        except (jsonschema_rs.ValidationError, ValueError) as exc:
            raise file.wrong(at, f"not a valid JSON Schema: {_first_line(exc)}") from exc
        if "default" in sub and "properties" not in sub and not validator.is_valid(sub["default"]):
            raise file.wrong([*at, "default"], "the default does not satisfy its own schema")


def walk(schema: Schema, path: list[str | int]) -> Iterator[tuple[list[str | int], Schema]]:
    """Every sub-schema with its place in the file, innermost first, so that an error names the narrowest place."""
    for keyword in ("properties", "patternProperties", "dependentSchemas"):
        for name, sub in schema.get(keyword, {}).items():
            if isinstance(sub, dict):
                yield from walk(sub, [*path, keyword, name])
    for keyword in ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"):
        if isinstance(schema.get(keyword), dict):
            yield from walk(schema[keyword], [*path, keyword])
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        for position, sub in enumerate(schema.get(keyword, ())):
            if isinstance(sub, dict):
                yield from walk(sub, [*path, keyword, position])
    yield path, schema


def _first_line(exc: Exception) -> str:
    return str(exc).splitlines()[0]


_BRANCHES = {"allOf", "anyOf", "oneOf", "then", "else"}


def strict(schema: Schema) -> Schema:
    """A copy that refuses unknown fields at every level where fields are declared."""
    schema = copy.deepcopy(schema)
    for path, sub in list(walk(schema, [])):
        words = [step for before, step in zip(["", *path], path, strict=False) if before != "properties"]  # no names of fields
        if "properties" not in sub or "if" in words or "not" in words:
            continue  # a condition tells documents apart; closed, it would hardly ever hold
        if isinstance(sub.get("additionalProperties"), dict):
            continue  # a map with some known keys
        branch = words[-1:] in (["then"], ["else"]) or words[-2:-1] in (["allOf"], ["anyOf"], ["oneOf"])
        if branch or "object" not in sub.get("type", () if _BRANCHES & {*words} else "object"):
            continue  # says more about an object that is closed elsewhere
        sub.pop("additionalProperties", None)
        more = {name for word in ("then", "else") for name in sub.get(word, {}).get("properties", ())} - {*sub["properties"]}
        # `unevaluated` sees the fields that only branches declare
        open_ended = more or {"allOf", "anyOf", "oneOf"} & {*sub}
        sub["unevaluatedProperties" if open_ended else "additionalProperties"] = False
    return schema
