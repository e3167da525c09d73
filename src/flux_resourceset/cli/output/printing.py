"""What commands print: data on stdout as table, JSON, YAML or names; messages on stderr.

What a server says may be meant to steer the terminal: to move, to hide, to send. So no text reaches a stream but through here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from flux_resourceset.cli import windows
from flux_resourceset.cli.output.terminal_text import escaped, json_text, printable

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind

Document = Mapping[str, Any]

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

# Colour says what a word means: what came, what changed, what went, what is off.
_MEANINGS = {
    "created": "green", "+": "green",
    "updated": "yellow", "warning:": "yellow",
    "deleted": "red", "-": "red", "error:": "red",
    "unchanged": "dim", "@": "cyan",
}  # fmt: skip

_SHOWN_FORMATS = ("label-selector", "moment")  # where something holds, and until when
_CELLS = {"true": "green", "false": "red", "-": "dim"}  # any other cell is data and stays plain, whatever it says

PAST = {"create": "created", "update": "updated", "delete": "deleted", "prune": "pruned", "unchanged": "unchanged"}


_MARK = f"\0{os.urandom(8).hex()} "  # begins and ends a colour: nothing that came from outside can hold it


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


class Output:
    """Standard output of one command."""

    def __init__(self, stream: TextIO, form: str | None, environment: Mapping[str, str]) -> None:
        self._stream = stream
        terminal = stream.isatty()
        self.form = form or ("table" if terminal else "json")
        self._coloured = terminal and not environment.get("NO_COLOR") and windows.takes_escapes(environment)

    @property
    def human(self) -> bool:
        return self.form in ("table", "wide")

    def coloured(self, text: str, meaning: str) -> str:
        colour = _COLOURS.get(_MEANINGS.get(meaning, meaning))
        return f"{_MARK}{colour}m{text}{_MARK}0m" if colour and self._coloured else text

    def line(self, text: str = "") -> None:
        """One line for people, whatever the text holds."""
        self._stream.write(self._shown(text) + "\n")

    @staticmethod
    def _shown(text: str) -> str:
        plain, *coloured = text.split(_MARK)
        parts = (part.partition("m") for part in coloured)
        return printable(plain) + "".join(f"\x1b[{colour}m{printable(rest)}" for colour, _, rest in parts)

    def raw(self, body: bytes) -> None:
        """Bytes as they came, with nothing added; on a terminal, with nothing that steers it either."""
        self._stream.flush()
        buffer = getattr(self._stream, "buffer", None)
        if buffer is None or self._stream.isatty():
            lines = escaped(body.decode("utf-8", "replace")).split("\n")
            self._stream.write("\n".join(map(printable, lines)))
        else:
            buffer.write(body)

    # Data

    def json(self, value: Any) -> None:
        if isinstance(value, list) and value:
            # a document per line: readable, and the fast encoder has no indentation
            self._stream.write("[\n" + ",\n".join(map(json_text, value)) + "\n]\n")
        else:
            self._stream.write(json_text(value, indent=2) + "\n")

    def json_line(self, value: Any) -> None:
        self._stream.write(json_text(value) + "\n")

    def yaml(self, values: Iterable[Any]) -> None:
        from flux_resourceset.cli.output import yaml_text  # not before: YAML takes long to import

        self._stream.write(yaml_text.dumped(values))

    def value(self, value: Any, lines: Callable[[], Iterable[str]], names: Iterable[str]) -> None:
        """Anything that is no list of documents: data, lines for people, or the names of what it is about."""
        if self.form == "yaml":
            self.yaml([value])
        elif self.human or self.form == "name":
            for line in lines() if self.human else names:
                self.line(line)
        else:
            self.json(value)

    def documents(self, kind: Kind, documents: Sequence[Document], *, single: bool = False) -> None:
        """Documents of one kind, as the API gives them."""
        if self.form == "json":
            self.json(documents[0] if single else list(documents))
        elif self.form == "yaml":
            self.yaml({"kind": kind.name, **document} for document in documents)
        elif self.form == "name":
            for document in documents:
                self.line(f"{kind.name}/{document['id']}")
        else:
            names = columns(kind, wide=self.form == "wide")
            counted = () if self.form == "wide" else [n for n in names if kind.properties[n].get("type") == "array"]
            self.table(names, [[_count(row.get(n)) if n in counted else cell(row.get(n)) for n in names] for row in documents])

    def rows(self, rows: Sequence[Document], names: Sequence[str], name: Callable[[Document], str]) -> None:
        """Objects that are no documents: as an array, or a table of some of their fields."""
        if self.form == "json":
            self.json(list(rows))
        elif self.form == "yaml":
            self.yaml([list(rows)])
        elif self.form == "name":
            for row in rows:
                self.line(name(row))
        else:
            self.table(names, [[cell(row.get(n)) for n in names] for row in rows])

    def table(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if not rows:
            return
        heads = [printable(name.replace("_", " ").upper()) for name in names]
        rows = [list(map(printable, row)) for row in rows]  # before they are measured
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        self.line("   ".join(self.coloured(h.ljust(w), "bold") for h, w in zip(heads, widths, strict=True)).rstrip())
        for row in rows:
            cells = (self.coloured(text.ljust(width), _CELLS.get(text, "")) for text, width in zip(row, widths, strict=True))
            self.line("   ".join(cells).rstrip())

    def result(self, kind: str, id: str, operation: str, *, dry_run: bool = False) -> None:
        """One line about one document that was written."""
        word = PAST[operation]
        shown = f"would be {word}" if dry_run and operation != "unchanged" else word
        self.line(f"{kind}/{id} {self.coloured(shown, word)}")


def columns(kind: Kind, *, wide: bool) -> list[str]:
    """The fields that a table shows: what is required, chosen, switched, counted, or limits a freeze; wide, all of them."""
    properties = kind.properties
    if wide:
        return list(properties)
    return [
        name
        for name, schema in properties.items()
        if name in kind.required or "enum" in schema or schema.get("type") == "boolean" or name == "labels"
        or schema.get("format") in _SHOWN_FORMATS or (kind.name == "clusters" and schema.get("type") == "array")
    ]  # fmt: skip


def _count(value: Any) -> str:
    return str(len(value)) if isinstance(value, list) else "-"


def width() -> int:
    """Columns to fill with running text."""
    try:
        return max(60, min(os.get_terminal_size(2).columns, 110))
    except OSError:
        return 100
