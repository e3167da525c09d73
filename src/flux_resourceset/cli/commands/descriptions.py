"""`describe`: everything about one document, for reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import log_lines, whereabouts
from flux_resourceset.cli.known_kinds import CLUSTERS, Kind, ReferencedKind
from flux_resourceset.cli.output.printing import PAST, cell
from flux_resourceset.cli.output.terminal_text import printable, shortened
from flux_resourceset.cli.parsing.grammar import PROGRAM

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]

_CHANGES = 5  # the last ones
_FIELDS = 5  # of a change, on a terminal; `history` shows all
_DEVIATING = 20  # clusters, on a terminal; `usage` shows all
_NONE = "<none>"  # as kubectl says


def describe(session: Session) -> int:
    kind, id = session.kind, session.id
    try:
        document = session.client.get(client.path(kind.name, id)).object()
    except client.Problem as problem:
        gone = _tombstone(session, id) if kind.name == CLUSTERS and problem.status == 404 else None
        if gone is None:
            raise
        told = {"kind": kind.name, "id": id, "decommissioned": gone, "changes": _changes(session, kind, id)}
        return _tell(session, told, _show_gone)
    told = {"kind": kind.name, "id": id, "document": document}
    if kind.name == CLUSTERS:
        told["references"] = _references(session, document)
        show = _show_cluster
    elif isinstance(kind, ReferencedKind):
        told |= _usage(session, kind, id)
        show = _show_definition
    else:
        show = _show_other
    return _tell(session, {**told, "changes": _changes(session, kind, id)}, show)


def _tell(session: Session, told: Document, show: Any) -> int:
    if session.output.human:
        show(session, told)
        _show_changes(session, told["changes"])
    else:
        session.output.value(told, tuple, [f"{told['kind']}/{told['id']}"])
    return failures.OK


def _changes(session: Session, kind: Kind, id: str) -> list[Document]:
    return session.client.get(client.path(kind.name, id, "history"), {"limit": _CHANGES}).objects()


def _tombstone(session: Session, id: str) -> Document | None:
    """Where a cluster went; an older server does not tell."""
    try:
        return next((row for row in whereabouts.tombstones(session, {}).objects() if row.get("id") == id), None)
    except client.Problem as problem:
        if problem.status != 404:
            raise
        return None


# What a cluster has


def _references(session: Session, cluster: Document) -> dict[str, list[Document]]:
    """By kind, each reference with the values at work and where they come from."""
    found: dict[str, list[Document]] = {}
    for kind in session.kinds:
        if isinstance(kind, ReferencedKind) and kind.references(cluster):
            definitions = _definitions(session, kind) if kind.overrides else {}
            found[kind.name] = [_reference(kind, item, cluster, definitions) for item in kind.references(cluster)]
    return found


def _definitions(session: Session, kind: ReferencedKind) -> dict[str, Document]:
    return {document["id"]: document for document in session.client.get(client.path(kind.name)).objects()}


def _reference(kind: ReferencedKind, item: Document, cluster: Document, definitions: Mapping[str, Document]) -> Document:
    id = item["id"]
    definition = definitions.get(id, {})
    values = {}
    for name in kind.overrides:
        is_own = item.get(name) is not None
        source = "override" if is_own else "catalog" if id in definitions else "missing"
        values[name] = {"value": item[name] if is_own else definition.get(name), "source": source}
    enabled = {"enabled": item.get("enabled", True)} if kind.switched else {}
    patches = {"patches": cluster.get("patches", {}).get(id, {})} if kind.patches else {}
    return {"id": id, **({"values": values} if kind.overrides else {}), **enabled, **patches}


def _show_cluster(session: Session, told: Document) -> None:
    document = told["document"]
    named = {kind.cluster_field for kind in session.kinds if isinstance(kind, ReferencedKind)} | {"patches"}
    _show_fields(session, {name: value for name, value in document.items() if name not in named})
    referenced = [kind for kind in session.kinds if isinstance(kind, ReferencedKind)]
    for kind in sorted(referenced, key=lambda kind: not kind.overrides):  # what has versions comes first
        _show_references(session, kind, told["references"].get(kind.name, []))
    _show_patches(session, document.get("patches", {}))


def _show_references(session: Session, kind: ReferencedKind, references: list[Document]) -> None:
    _title(session, kind.name, len(references))
    if not kind.overrides and not kind.switched:
        _show_ids(session, [item["id"] for item in references])
        return
    columns = ["id", *kind.overrides, *(["from"] if kind.overrides else []), *(["enabled"] if kind.switched else [])]
    rows = []
    for item in references:
        values = item.get("values", {})
        given = [cell(each["value"]) for each in values.values()]
        source = [_source(values)] if kind.overrides else []
        rows.append([item["id"], *given, *source, *([cell(item["enabled"])] if kind.switched else [])])
    _show_table(session, columns, rows, "id", *kind.overrides[:1], "from")


def _source(values: Mapping[str, Document]) -> str:
    """In one word, unless some values are the cluster's own and others are not."""
    own = [name for name, each in values.items() if each["source"] == "override"]
    if any(each["source"] == "missing" for each in values.values()):
        return "missing: the definition was deleted"
    return f"override ({', '.join(own)})" if own else "catalog"


def _show_patches(session: Session, patches: Mapping[str, Document]) -> None:
    _title(session, "patches", sum(map(len, patches.values())))
    rows = [[id, key, log_lines.text(value)] for id, values in patches.items() for key, value in values.items()]
    _show_table(session, ["id", "key", "value"], rows, "key", "value", "id")


# Who uses a definition


def _usage(session: Session, kind: ReferencedKind, id: str) -> Document:
    rows = whereabouts.usage(session, kind, id, {})
    deviating = [row for row in rows if row.get("overridden") or row.get("patches") or row.get("enabled") is False]
    used = {"clusters": len(rows), "environments": whereabouts.environments(rows), "values": whereabouts.summary(kind, rows)}
    return {"usage": used, "overrides": deviating}


def _show_definition(session: Session, told: Document) -> None:
    kind = session.referenced_kind
    _show_fields(session, told["document"])
    usage, deviating = told["usage"], told["overrides"]
    where = ", ".join(f"{name} {count}" for name, count in usage["environments"].items())
    _title(session, "used by clusters", usage["clusters"], where)
    if kind.overrides:
        columns = [name for name in whereabouts.summary_columns(kind) if name != "id"]
        _show_table(
            session, columns, [[cell(row.get(name)) for name in columns] for row in usage["values"]], *columns[:1], "clusters"
        )
    if kind.overrides or kind.switched or kind.patches:
        _title(session, "clusters that differ", len(deviating))
        columns = [name for name in whereabouts.columns(kind) if name != "id"]
        most = _most(session, _DEVIATING, deviating)
        rows = [[cell(row.get(name)) for name in columns] for row in deviating[:most]]
        _show_table(session, columns, rows, "cluster", *kind.overrides[:1], "overridden")
        if len(deviating) > most:
            more = f"{PROGRAM} {kind.group} usage {told['id']}"
            _line(session, f"… and {len(deviating) - most} more; see {more}")


def _show_other(session: Session, told: Document) -> None:
    _show_fields(session, told["document"])


def _show_gone(session: Session, told: Document) -> None:
    gone = told["decommissioned"]
    _line(session, f"Cluster {told['id']} was decommissioned.", "bold")
    _show_fields(
        session,
        {
            "cluster_dns": gone.get("cluster_dns"), "when": log_lines.moment(gone), "by": log_lines.author(gone),
            "why": gone.get("reason"), "revision": gone.get("revision"),
        },
    )  # fmt: skip
    if isinstance(gone.get("revision"), int):
        session.say(f"it comes back with: {PROGRAM} cluster revert {told['id']} --to {gone['revision'] - 1}")


# Parts of a description


def _show_fields(session: Session, fields: Mapping[str, Any]) -> None:
    """A line each; what has many parts, a line for each of them, as kubectl does."""
    names = {name: name.replace("_", " ").capitalize() + ":" for name in fields}
    width = max(map(len, names.values()), default=0) + 1
    for name, value in fields.items():
        first, *others = _parts(value)
        _line(session, f"{names[name]:{width}} {first}")
        for other in others:
            _line(session, f"{'':{width}} {other}")


def _parts(value: Any) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [f"{key}={cell(item)}" for key, item in value.items()]
    if isinstance(value, list) and value:
        return [cell(item) for item in value]
    shown = cell(value)
    return [_NONE if shown == "-" else shown]


def _line(session: Session, text: str, meaning: str = "") -> None:
    """A line that fits; -o wide shows the whole of it."""
    room = session.output.room
    session.output.line(session.output.coloured(shortened(printable(text), room) if room else text, meaning))


def _most(session: Session, number: int, things: list[Document]) -> int:
    """How many of them are shown: in a pipe, and with -o wide, all."""
    return number if session.output.room else len(things)


def _title(session: Session, name: str, count: int, more: str = "") -> None:
    text = f"{name.replace('_', ' ').capitalize()} ({count}){': ' + more if more else ''}"
    session.output.line()
    _line(session, text, "bold")


def _show_ids(session: Session, ids: Iterable[str]) -> None:
    for id in ids:
        _line(session, f"  {id}")


def _show_table(session: Session, columns: list[str], rows: list[list[str]], *keys: str) -> None:
    """`keys` are the columns that stay when room is short."""
    if rows:
        then = [name for name in ("enabled", "environment", "patches") if name in columns]
        session.output.table(columns, rows, [name for name in keys if name in columns], then)


def _show_changes(session: Session, changes: list[Document]) -> None:
    _title(session, "last changes", len(changes))
    for change in changes:
        done = PAST.get(operation := str(change.get("operation")), operation)
        why = f": {change['reason']}" if change.get("reason") else ""
        head = f"revision {change.get('revision')}   {log_lines.moment(change)}   "
        _line(session, f"{head}{done} by {log_lines.author(change)}{why}")
        fields = change.get("fields") or []
        most = _most(session, _FIELDS, fields)
        for item in fields[:most] if operation == "update" else ():
            _line(session, f"  {log_lines.field(item)}")
        if operation == "update" and len(fields) > most:
            _line(session, f"  … and {len(fields) - most} more fields")
