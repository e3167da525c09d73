"""Options that a schema gives, and the documents that options make."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from flux_resourceset import json_pointers
from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing.grammar import Option
from flux_resourceset.cli.parsing.values import Values

Schema = Mapping[str, Any]


class Field(NamedTuple):
    """A property of a document and the option that sets it."""

    name: str
    schema: Schema
    option: Option
    shape: str  # text, integer, number, boolean, map, texts, items, json


def fields(properties: Mapping[str, Schema], taken: Collection[str]) -> list[Field]:
    """A field for each property but the id; `taken` are the options that the command has anyway."""
    options = []
    used = set(taken)
    for name, schema in properties.items():
        if name == "id":
            continue
        shape = _shape(schema)
        plain = "--" + name.replace("_", "-")
        short = "--" + _one(name).replace("_", "-") if shape in ("map", "texts", "items") else plain
        if short in used or (short != plain and short[2:].replace("-", "_") in properties):
            short = plain
        if short in used:
            short = plain = "--field" + plain[1:]
        used |= {short, plain}
        options.append(Field(name, schema, _option(schema, shape, short, plain), shape))
    return options


def _one(name: str) -> str:
    """The name of one of them: labels, policies, addresses."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith(("sses", "xes", "ches", "shes")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _type(schema: Schema) -> str:
    types = schema.get("type", "string")
    if isinstance(types, list):
        return next((str(name) for name in types if name != "null"), "string")
    return str(types)


def _shape(schema: Schema) -> str:
    kind = _type(schema)
    if kind in ("integer", "number", "boolean"):
        return kind
    if kind == "object":
        others = schema.get("additionalProperties")
        plain = isinstance(others, Mapping) and others.get("type") == "string" and "properties" not in schema
        return "map" if plain else "json"
    if kind == "array":
        return "texts" if _type(schema.get("items", {})) == "string" else "items"
    return "text"


_METAVARS = {"integer": "N", "number": "N", "boolean": "", "map": "KEY=VALUE", "items": "JSON", "json": "JSON"}


def _option(schema: Schema, shape: str, name: str, plain: str) -> Option:
    return Option(
        name,
        _help(schema, shape),
        _METAVARS.get(shape, "VALUE"),
        many=shape in ("map", "texts", "items"),
        negatable=shape == "boolean",
        aliases=() if name == plain else (plain,),
    )


def _help(schema: Schema, shape: str) -> str:
    text = str(schema.get("description", "Field of the document.")).rstrip()
    if "enum" in schema:
        text += f" One of {', '.join(map(str, schema['enum']))}."
    if schema.get("default") not in (None, [], {}):
        text += f" Default {json.dumps(schema['default'])}."
    if shape == "map":
        text += " Repeatable; in an update, KEY- removes one and the others stay."
    elif shape == "items":
        text += " Repeatable, each a JSON value" + (", or just an id." if _by_id(schema) else ".")
    elif shape == "texts":
        text += " Repeatable; all together replace the list."
    elif shape == "json":
        text += " As JSON."
    return text


def _by_id(schema: Schema) -> bool:
    items = schema.get("items", {})
    return list(items.get("required", ())) == ["id"]


# Documents


def document(fields: list[Field], values: Values, subject: str, *, update: bool) -> dict[str, Any]:
    """What the options say: a document, or for an update a merge patch."""
    result: dict[str, Any] = {}
    wrong: list[str] = []
    for field in fields:
        if field.option.key not in values:
            continue
        try:
            result[field.name] = _value(field, values, update)
        except _Violation as violation:
            wrong.append(f"{subject}: /{field.name} {violation}")
    if wrong:
        raise failures.Failure(failures.REFUSED, *wrong)
    return result


class _Violation(Exception):
    pass


def _value(field: Field, values: Values, update: bool) -> Any:
    key, name = field.option.key, field.option.name
    match field.shape:
        case "boolean":
            return values.flag(key)
        case "map":
            return pairs(values.many(key), name, removes=update)
        case "texts":
            return values.many(key)
        case "items":
            return [_item(field, text) for text in values.many(key)]
        case "json":
            return json_value(values.required(key), name)
        case "integer" | "number":
            return _number(values.required(key), field.shape)
    return values.required(key)


def _number(text: str, shape: str) -> int | float:
    try:
        number = float(text) if shape == "number" and set(text) & set(".eE") else int(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _Violation(f"must be {'an integer' if shape == 'integer' else 'a number'}")
    return number


def _item(field: Field, text: str) -> Any:
    if _by_id(field.schema) and not text.lstrip().startswith("{"):
        return {"id": text}
    return json_value(text, field.option.name)


def json_value(text: str, option: str) -> Any:
    from flux_resourceset import errors, strict_json  # not for help, which starts with this module

    try:
        return strict_json.decoded(text.encode())
    except (errors.MalformedBody, UnicodeEncodeError) as exc:
        raise failures.usage(f"{option} {text!r}: {exc}") from exc


def not_finite(value: Any) -> str | None:
    """Where in a value a number stands that JSON cannot say, as a pointer."""
    rest: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while rest:
        steps, item = rest.pop()
        if isinstance(item, dict | list):
            rest += [((*steps, key), inner) for key, inner in (item.items() if isinstance(item, dict) else enumerate(item))]
        elif isinstance(item, float) and not math.isfinite(item):
            return json_pointers.pointer(steps)
    return None


def pairs(texts: list[str], option: str, *, removes: bool = False) -> dict[str, str | None]:
    """KEY=VALUE each; KEY- stands for removal where that makes sense."""
    values: dict[str, str | None] = {}
    for text in texts:
        key, value = _pair(text, option, removes)
        if key in values:
            raise duplicate_key(key)
        values[key] = value
    return values


def _pair(text: str, option: str, removes: bool) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    if equals and key:
        return key, value
    if removes and text.endswith("-") and len(text) > 1:
        return text[:-1], None
    raise failures.usage(f"{option} {text!r} must be KEY=VALUE" + (" or KEY-" if removes else ""))


def duplicate_key(key: str) -> failures.Failure:
    return failures.usage(f'duplicate key "{key}"')
