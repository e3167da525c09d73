"""Looking closely: what Flux gets, where clusters differ, what a field means, which versions are at work."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import __version__, client
from flux_resourceset.cli import failures, kind_table, kinds

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]

_PATIENCE = 1.0  # seconds that `version` waits for a server


def inputs(session: Session) -> int:
    path = client.path("api", "v2", "flux", kinds.CLUSTERS, session.values.required("dns"), session.values.required("view"))
    answer = session.client.get(path)
    answer.object(inputs=list)  # a proxy's page is nothing that Flux gets
    session.output.raw(answer.body)
    return failures.OK


def version(session: Session) -> int:
    server = _server_version(session.target.url) if session.target.url else None
    known = {"client": __version__, "server": server}
    session.data(known, f"client {__version__}", f"server {server or 'unknown: it did not answer'}", name=__version__)
    return failures.OK


def _server_version(url: str) -> str | None:
    """Asked where every server tells it, whatever its mode and without a token."""
    try:
        return client.Client(url, {}, timeout=_PATIENCE, deadline=True).get("/health").headers.get("x-server-version")
    except (client.Unreachable, client.Problem, ValueError):
        return None


# Overrides


def overrides(session: Session) -> int:
    values = session.values
    known = kind_table.overridable(session.kinds)
    wanted = {kind.name: values.required(kind.group) for kind in known if kind.group in values}
    rows: list[Document] = []
    definitions = {kind.name: _by_id(session, kind) for kind in known if not wanted or kind.name in wanted}
    for cluster in _clusters(session):
        for kind in known:
            if kind.name in definitions:
                rows += _differences(kind, cluster, definitions[kind.name], wanted.get(kind.name))
    if (limit := values.text("limit")) is not None:
        rows = rows[: int(limit)]
    columns = ["cluster", "environment", "kind", "id", "field", "value", "default"]
    session.output.rows(rows, columns, name=lambda row: f"{row['cluster']}/{row['id']}/{row['field']}")
    if not rows and session.output.human:
        session.say("no cluster differs from its definitions")
    return failures.OK


def _by_id(session: Session, kind: kinds.Kind) -> dict[str, Document]:
    return {document["id"]: document for document in session.client.get(client.path(kind.name)).objects()}


def _clusters(session: Session) -> list[Document]:
    values = session.values
    if (id := values.text("cluster")) is not None:
        if "selector" in values or "environment" in values or values.flag("all"):
            raise failures.usage("--cluster goes with none of --selector, --environment and --all")
        return [session.client.get(client.path(kinds.CLUSTERS, id)).object()]
    query = {name: values.required(name) for name in ("selector", "environment") if name in values}
    return session.client.get(client.path(kinds.CLUSTERS), query).objects()


def _differences(
    kind: kinds.Kind, cluster: Document, definitions: Mapping[str, Document], only: str | None
) -> Iterator[Document]:
    for reference in cluster.get(kind.field or "", ()):
        id = reference["id"]
        if only not in (None, id):
            continue
        start = {"cluster": cluster["id"], "environment": cluster["environment"], "kind": kind.name, "id": id}
        for name, schema in kind.reference.items():
            default = definitions.get(id, {}).get(name) if name in kind.overrides else schema.get("default")
            value = reference.get(name)
            if value is not None and (name in kind.overrides or value != default):
                yield {**start, "field": name, "value": value, "default": default}
        if kind.patches:
            for key, value in cluster.get("patches", {}).get(id, {}).items():
                yield {**start, "field": f"patches.{key}", "value": value, "default": None}


# Explain


def explain(session: Session) -> int:
    name, *path = session.values.required("kind").split(".")
    known = _kinds_or_builtin(session)
    kind = known.find(name)
    if kind is None:
        raise failures.usage(f"there is no kind {name!r}; there are {', '.join(kind.group for kind in known)}")
    schema: Document = kind.schema
    for position, step in enumerate(path):
        fields = _fields(schema)
        if step not in fields:
            place = ".".join([name, *path[:position]])
            raise failures.usage(f"{place} has no field {step!r}; there are {', '.join(fields) or 'none'}")
        schema = fields[step]
    title = ".".join([kind.group, *path])
    described = {**schema, "description": kind.description} if not path else schema
    session.data(described, *_explained(session, title, described), name=title)
    return failures.OK


def _kinds_or_builtin(session: Session) -> kinds.Kinds:
    """The server's kinds, or those that are known without it: help must not need a server."""
    if not session.target.url:
        return session.likely_kinds()
    try:
        return session.kinds
    except (client.Unreachable, client.Problem, failures.Failure) as exc:
        session.say(f"note: the server's own kinds are not known ({exc}); these are those known without it")
        return session.likely_kinds()


def _fields(schema: Document) -> Document:
    """The fields below a schema; those of a list are those of its items, those of a map of its values."""
    for step in (schema, schema.get("items", {}), schema.get("additionalProperties", {})):
        if isinstance(step, dict) and "properties" in step:
            found: Document = step["properties"]
            return found
    return {}


def _explained(session: Session, title: str, schema: Document) -> Iterator[str]:
    coloured = session.output.coloured
    yield f"{coloured(title, 'bold')}  {type_name(schema)}"
    yield f"  {_description(schema)}"
    yield from (f"  {line}" for line in _rules(schema))
    fields = _fields(schema)
    required = (schema if "properties" in schema else schema.get("items", {})).get("required", ())
    if fields:
        yield ""
        yield coloured("Fields:", "bold")
    for name, field in fields.items():
        mark = ", required" if name in required else ""
        yield f"  {coloured(name, 'cyan')}  {type_name(field)}{mark}"
        yield f"      {_description(field)}"
        yield from (f"      {line}" for line in _rules(field))


def _description(schema: Document) -> str:
    return " ".join(str(schema.get("description", "")).split())


def type_name(schema: Document) -> str:
    found = schema.get("type", "any")
    if found == "array":
        return f"list of {type_name(schema.get('items', {}))}"
    others = schema.get("additionalProperties")
    if found == "object" and isinstance(others, dict):
        return f"map of {type_name(others)}"
    return " or ".join(found) if isinstance(found, list) else str(found)


def _rules(schema: Document) -> Iterator[str]:
    if "enum" in schema:
        yield f"one of: {', '.join(map(str, schema['enum']))}"
    for name, word in (("format", "format"), ("maxLength", "longest"), ("minimum", "least"), ("maximum", "most")):
        if name in schema:
            yield f"{word}: {schema[name]}"
    for name in ("default", "example"):
        if name in schema:
            yield f"{name}: {json.dumps(schema[name], ensure_ascii=False)}"
