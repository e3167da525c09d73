"""`overrides`: where clusters differ from the definitions they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures, known_kinds
from flux_resourceset.cli.parsing import kind_commands

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]

_KEYS = ("cluster", "id", "field", "value")  # the column of a table that gives way last, and those before it


def overrides(session: Session) -> int:
    values = session.values
    known = kind_commands.overridable(session.kinds)
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
    session.output.rows(rows, columns, name=lambda row: f"{row['cluster']}/{row['id']}/{row['field']}", keys=_KEYS)
    if not rows and session.output.human:
        session.say("no cluster differs from its definitions")
    return failures.OK


def _by_id(session: Session, kind: known_kinds.Kind) -> dict[str, Document]:
    return {document["id"]: document for document in session.client.get(client.path(kind.name)).objects()}


def _clusters(session: Session) -> list[Document]:
    values = session.values
    if (id := values.text("cluster")) is not None:
        if "selector" in values or "environment" in values or values.flag("all"):
            raise failures.usage("--cluster goes with none of --selector, --environment and --all")
        return [session.client.get(client.path(known_kinds.CLUSTERS, id)).object()]
    query = {name: values.required(name) for name in ("selector", "environment") if name in values}
    return session.client.get(client.path(known_kinds.CLUSTERS), query).objects()


def _differences(
    kind: known_kinds.ReferencedKind, cluster: Document, definitions: Mapping[str, Document], only: str | None
) -> Iterator[Document]:
    for reference in kind.references(cluster):
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
