"""`why`: where each value of an input comes from, and the change that set it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import log_lines
from flux_resourceset.cli.known_kinds import CLUSTERS
from flux_resourceset.cli.output.printing import cell

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Value = dict[str, Any]  # of an input, and what the API says of it

_COLUMNS = ("field", "value", "source", "set_in", "revision", "time", "by", "reason")
_KEYS = ("field", "value", "source")  # the column of a table that gives way last, and those before it


def why(session: Session) -> int:
    cluster, input = session.values.required("cluster"), session.values.required("input")
    field, view = session.values.text("field"), session.values.text("view")
    view = view or _view(session, cluster, input, field)
    values = _values(session, cluster, view, input)
    if field is not None:
        every, values = values, _chosen(values, field)
        if not values:
            there = ", ".join(value["path"] for value in every)
            raise failures.Failure(failures.NOT_FOUND, f'field "{field}" not found; "{input}" of {view} has {there}')
    if session.output.human:
        session.output.table(_COLUMNS, [_row(value) for value in values], _KEYS)
    else:
        session.output.rows(values, (), name=lambda value: str(value["path"]))
    return failures.OK


def _values(session: Session, cluster: str, view: str, input: str) -> list[Value]:
    path = client.path(CLUSTERS, cluster, "inputs", view, input, "provenance")
    return session.client.get(path, session.at).objects()


def _view(session: Session, cluster: str, input: str, field: str | None) -> str:
    """The only view of a cluster that has such an input, with such a field if one was named."""
    views = [kind.endpoint for kind in session.kinds if kind.endpoint]
    having = [view for view in views if _has_input(session, cluster, view, input)]
    if not having:
        raise failures.Failure(failures.NOT_FOUND, f'input "{input}" not found; no view of {CLUSTERS} "{cluster}" has it')
    if len(having) > 1 and field is not None:
        having = [view for view in having if _chosen(_values(session, cluster, view, input), field)] or having
    if len(having) > 1:
        raise failures.usage(f'"{input}" is in {" and in ".join(having)}; say which with --view')
    return having[0]


def _has_input(session: Session, cluster: str, view: str, input: str) -> bool:
    answer = session.client.get(client.path(CLUSTERS, cluster, "inputs", view), session.at)
    return any(isinstance(item, dict) and item.get("id") == input for item in answer.object(inputs=list)["inputs"])


def _chosen(values: Sequence[Value], field: str) -> list[Value]:
    """Those that a pointer, a dotted path or the last part of one means; or all that are below it."""
    wanted = field if field.startswith("/") else "." + field
    named = [(_pointer(value) if field.startswith("/") else _dotted(value), value) for value in values]
    mark = wanted[0]
    return (
        [value for name, value in named if name == wanted]
        or [value for name, value in named if name.startswith(wanted + mark)]
        or [value for name, value in named if mark == "." and name.endswith(wanted)]
    )


def _pointer(value: Value) -> str:
    return str(value["path"])


def _dotted(value: Value) -> str:
    """With a dot before every step. Steps may hold dots of their own, as patches do."""
    return _pointer(value).replace("/", ".").replace("~1", "/").replace("~0", "~")


def _row(value: Value) -> list[str]:
    shown = log_lines.text(value["value"])
    place = f"{value['kind']}/{value['id']} {value['field']}" if value.get("kind") else ""
    change = (value.get("revision"), log_lines.moment(value), log_lines.author(value), value.get("reason"))
    return [value["path"], shown, value["source"], cell(place), *map(cell, change)]
