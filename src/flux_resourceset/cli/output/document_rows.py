"""Documents as rows of a table: which of their fields are shown, and how. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset.cli.output.tables import Column

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind

Document = Mapping[str, Any]

LABELS = "labels"
_SHOWN_FORMATS = ("label-selector", "moment")  # where something holds, and until when


def cell(value: Any) -> str:
    """A value in a table."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={cell(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ",".join(map(_named, value)) or "-"
    return str(value)


def _named(item: Any) -> str:
    if isinstance(item, Mapping):
        return cell(item.get("id") or item.get("name") or json.dumps(item))
    return cell(item)


def head(name: str) -> str:
    return name.replace("_", " ").upper()


class Fields:
    """The columns of a kind's table."""

    def __init__(self, kind: Kind, *, wide: bool, labels: bool = False) -> None:
        names = columns(kind, wide=wide)
        self._names = [*(name for name in names if name != LABELS), LABELS] if labels else names
        self._counted = () if wide else frozenset(n for n in names if kind.properties[n].get("type") == "array")
        self.columns = [self._column(kind, name, labels) for name in self._names]

    def _column(self, kind: Kind, name: str, labels: bool) -> Column:
        if name == "id":
            return Column("ID", 0, kept=True)
        short = name.rpartition("_")[2] if name in self._counted else name  # of a number that is one or two digits wide
        unique = sum(other.rpartition("_")[2] == short for other in self._names) == 1
        return Column(head(short if unique else name), 1 if labels and name == LABELS else _rank(kind, name))

    def cells(self, document: Document) -> list[str]:
        return [_count(document.get(name)) if name in self._counted else cell(document.get(name)) for name in self._names]


def columns(kind: Kind, *, wide: bool) -> list[str]:
    """The fields that a table shows: what is required, chosen, switched, counted, or limits a freeze; wide, all of them."""
    properties = kind.properties
    if wide:
        return list(properties)
    return [
        name
        for name, schema in properties.items()
        if name in kind.required or "enum" in schema or schema.get("type") == "boolean" or name == LABELS
        or schema.get("format") in _SHOWN_FORMATS or (kind.name == "clusters" and schema.get("type") == "array")
    ]  # fmt: skip


def _rank(kind: Kind, name: str) -> int:
    """Which columns give way last: what clusters override, then what is chosen, then numbers; texts and labels go first."""
    schema = kind.properties[name]
    if name in getattr(kind, "overrides", ())[:1]:
        return 1
    if "enum" in schema or schema.get("format") in _SHOWN_FORMATS:
        return 2
    if schema.get("type") in ("boolean", "array", "integer", "number"):
        return 3
    return 5 if schema.get("type") == "object" else 4


def _count(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else "-"


def row(names: Sequence[str], document: Document) -> list[str]:
    return [cell(document.get(name)) for name in names]
