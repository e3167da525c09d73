"""`explain`: what a kind or one of its fields means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures, known_kinds

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]


def explain(session: Session) -> int:
    name, *path = session.values.required("kind").split(".")
    known = _kinds_or_builtin(session)
    kind = known.find(name)
    if kind is None:
        raise failures.usage(f'kind "{name}" not found; there are {", ".join(kind.group for kind in known)}')
    schema: Document = kind.schema
    for position, step in enumerate(path):
        fields = _fields(schema)
        if step not in fields:
            place = ".".join([name, *path[:position]])
            raise failures.usage(f'field "{step}" of {place} not found; there are {", ".join(fields) or "none"}')
        schema = fields[step]
    title = ".".join([kind.group, *path])
    described = {**schema, "description": kind.description} if not path else schema
    session.data(described, *_explained(session, title, described), name=title)
    return failures.OK


def _kinds_or_builtin(session: Session) -> known_kinds.Kinds:
    """The server's kinds, or those that are known without it: help must not need a server."""
    if not session.target.url:
        return session.likely_kinds
    try:
        return session.kinds
    except (client.Unreachable, client.Problem, failures.Failure) as exc:
        session.say(f"note: the server's own kinds are not known ({exc}); these are those known without it")
        return session.likely_kinds


def _fields(schema: Document) -> Document:
    """The fields below a schema; those of a list are those of its items, those of a map of its values."""
    for step in (schema, schema.get("items", {}), schema.get("additionalProperties", {})):
        if isinstance(step, dict) and "properties" in step:
            properties: Document = step["properties"]
            return properties
    return {}


def _explained(session: Session, title: str, schema: Document) -> Iterator[str]:
    coloured, fitting = session.output.coloured, session.output.fitting
    yield f"{coloured(title, 'bold')}  {type_name(schema)}"
    yield from fitting(f"  {_description(schema)}")
    yield from (f"  {line}" for line in _rules(schema))
    fields = _fields(schema)
    required = (schema if "properties" in schema else schema.get("items", {})).get("required", ())
    if fields:
        yield ""
        yield coloured("Fields:", "bold")
    for name, field in fields.items():
        mark = ", required" if name in required else ""
        yield f"  {coloured(name, 'cyan')}  {type_name(field)}{mark}"
        yield from fitting(f"      {_description(field)}")
        yield from (f"      {line}" for line in _rules(field))


def _description(schema: Document) -> str:
    return " ".join(str(schema.get("description", "")).split())


def type_name(schema: Document) -> str:
    named = schema.get("type", "any")
    if named == "array":
        return f"list of {type_name(schema.get('items', {}))}"
    others = schema.get("additionalProperties")
    if named == "object" and isinstance(others, dict):
        return f"map of {type_name(others)}"
    return " or ".join(named) if isinstance(named, list) else str(named)


def _rules(schema: Document) -> Iterator[str]:
    if "enum" in schema:
        yield f"one of: {', '.join(map(str, schema['enum']))}"
    for name, word in (("format", "format"), ("maxLength", "longest"), ("minimum", "least"), ("maximum", "most")):
        if name in schema:
            yield f"{word}: {schema[name]}"
    for name in ("default", "example"):
        if name in schema:
            yield f"{name}: {json.dumps(schema[name], ensure_ascii=False)}"
