"""What commands print: data on stdout as table, JSON, YAML, names or in a shape that was asked for; messages on stderr.

What a server says may be meant to steer the terminal: to move, to hide, to send. So no text reaches a stream but through here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from flux_resourceset.cli import windows
from flux_resourceset.cli.output.document_rows import Fields, cell, head, row
from flux_resourceset.cli.output.tables import Column, Layout, layout
from flux_resourceset.cli.output.terminal_text import escaped, folded, harmless, json_text, padded, printable, shortened

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind
    from flux_resourceset.cli.output import jsonpath, paging, shapes
    from flux_resourceset.cli.parsing.values import Values

__all__ = ["PAST", "Output", "cell", "width"]

Document = Mapping[str, Any]

_COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

# Colour says what a word means: what came, what changed, what went, what is off.
_MEANINGS = {
    "created": "green", "+": "green",
    "updated": "yellow", "warning:": "yellow",
    "deleted": "red", "-": "red", "error:": "red",
    "unchanged": "dim", "@": "cyan",
}  # fmt: skip

_CELLS = {"true": "green", "false": "red", "-": "dim"}  # any other cell is data and stays plain, whatever it says

PAST = {"create": "created", "update": "updated", "delete": "deleted", "prune": "pruned", "unchanged": "unchanged"}


_MARK = f"\0{os.urandom(8).hex()} "  # begins and ends a colour: nothing that came from outside can hold it


class Output:
    """Standard output of one command."""

    def __init__(self, stream: TextIO, form: str | None, environment: Mapping[str, str], *, pager: bool = False) -> None:
        self._stream = self._held = stream
        self._environment = environment
        self._terminal = stream.isatty()
        self._asked = form
        self.form = (form or "").partition("=")[0] or ("table" if self._terminal else "json")
        steerable = self._terminal and windows.takes_escapes(environment)
        self._coloured = steerable and not environment.get("NO_COLOR")
        self._pages = steerable and pager
        self._page: paging.Page | None = None
        self._headless = self._labels = False
        self._order: shapes.Order | None = None
        self._template: jsonpath.Template | None = None
        self._columns: shapes.CustomColumns | None = None

    def settle(self, values: Values, *, reading: bool) -> None:
        """What a command line says of its output: a command for reading prints tables wherever it is."""
        if self._asked is None and reading:
            self.form = "table"
        self._headless, self._labels = values.flag("no-headers"), values.flag("show-labels")
        order, (form, _, rest) = values.text("sort-by"), (self._asked or "").partition("=")
        if order is None and form not in ("jsonpath", "custom-columns"):
            return
        from flux_resourceset.cli.output import shapes  # not before: most commands do without

        self._order = shapes.Order(order) if order is not None else None
        self._template = shapes.template(rest) if form == "jsonpath" else None
        self._columns = shapes.custom_columns(rest) if form == "custom-columns" else None

    @property
    def human(self) -> bool:
        return self.form in ("table", "wide")

    # The terminal

    @property
    def room(self) -> int | None:
        """Columns that a line may take; None where nothing has to fit."""
        if not self._terminal or self.form != "table":
            return None
        from flux_resourceset.cli.output import paging

        return paging.size(self._stream, self._environment)[0] or None

    def hold(self, *others: Output) -> None:
        """Keep what is written here, and by others, for a pager; where there is none, nothing is kept."""
        if not self._pages or self._page is not None:
            return
        from flux_resourceset.cli.output import paging

        command = paging.pager(self._environment)
        if command is None or not all(paging.size(self._stream, self._environment)):
            return
        self._page = paging.Page(command, self._environment)
        for output in (self, *others):
            if output._terminal:
                output._stream = cast(TextIO, paging.Held(self._page, output._held))

    def release(self, *others: Output) -> None:
        """Show what was kept, and keep nothing more."""
        page, self._page, self._pages = self._page, None, False
        if page is None:
            return
        from flux_resourceset.cli.output import paging

        for output in (self, *others):
            if output._terminal:
                output._stream = output._held
        page.show(self._stream, paging.size(self._stream, self._environment))

    def coloured(self, text: str, meaning: str) -> str:
        colour = _COLOURS.get(_MEANINGS.get(meaning, meaning))
        return f"{_MARK}{colour}m{text}{_MARK}0m" if colour and self._coloured else text

    def fitting(self, text: str) -> list[str]:
        """A text as lines that fit; one line where nothing has to."""
        room = self.room
        return list(folded(printable(text), room)) if room else [text]

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
        if self._template is not None:
            self._stream.write(self._filled(self._template, {"items": value} if isinstance(value, list) else value))
        elif self._columns is not None:
            rows = [self._columns.cells(item) for item in (value if isinstance(value, list) else [value])]
            self.columns([Column(name) for name in self._columns.heads], rows)
        elif isinstance(value, list) and value:
            # a document per line: readable, and the fast encoder has no indentation
            self._stream.write("[\n" + ",\n".join(map(json_text, value)) + "\n]\n")
        else:
            self._stream.write(json_text(value, indent=2) + "\n")

    def _filled(self, template: jsonpath.Template, value: Any) -> str:
        """What a value says is no line of its own on a terminal; in a pipe, lines stay lines."""
        return template.text(value, printable if self._terminal else harmless)

    def json_line(self, value: Any) -> None:
        """One of many that come one by one."""
        if self._template is not None or self._columns is not None:
            self.json(value)
            self._headless = True  # once is enough
        else:
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
        documents = self.in_order(documents, kind.properties)
        if self.form == "yaml":
            self.yaml({"kind": kind.name, **document} for document in documents)
        elif self.form == "name":
            for document in documents:
                self.line(f"{kind.name}/{document['id']}")
        elif self.human:
            fields = self.fields(kind)
            self.columns(fields.columns, [fields.cells(document) for document in documents])
        else:
            self.json(documents[0] if single else list(documents))

    def fields(self, kind: Kind) -> Fields:
        return Fields(kind, wide=self.form == "wide", labels=self._labels)

    def in_order(self, rows: Sequence[Document], known: Iterable[str] = ()) -> Sequence[Document]:
        return self._order.sorted(rows, set(known)) if self._order is not None else rows

    def rows(
        self,
        rows: Sequence[Document],
        names: Sequence[str],
        name: Callable[[Document], str],
        keys: Sequence[str] = (),
        then: Sequence[str] = (),
    ) -> None:
        """Objects that are no documents: as an array, or a table of some of their fields. `keys` tell them apart."""
        rows = self.in_order(rows)
        if self.form == "yaml":
            self.yaml([list(rows)])
        elif self.form == "name":
            for each in rows:
                self.line(name(each))
        elif self.human:
            self.table(names, [row(names, each) for each in rows], keys, then)
        else:
            self.json(list(rows))

    def table(
        self, names: Sequence[str], rows: Sequence[Sequence[str]], keys: Sequence[str] = (), then: Sequence[str] = ()
    ) -> None:
        """When room is short, columns that are neither keys nor named by `then` are left out, from the last one on; then those
        that it names; and keys are cut."""
        keys = keys or names[:1]
        order = list(dict.fromkeys((*keys, *then, *names)))
        self.columns([Column(head(name), order.index(name), kept=name in keys) for name in names], rows)

    def columns(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        if rows:
            self.begin_table(columns, rows)

    def begin_table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Layout:
        """A table to which rows may be added."""
        columns = [column._replace(head=printable(column.head)) for column in columns]
        rows = [list(map(printable, cells)) for cells in rows]  # before they are measured
        chosen = layout(columns, [] if self._headless and not rows else rows, self.room)
        if not self._headless:
            heads = [shortened(columns[place].head, width) for place, width in zip(chosen.places, chosen.widths, strict=True)]
            padding = (padded(text, width) for text, width in zip(heads, chosen.widths, strict=True))
            self.line((" " * chosen.gap).join(self.coloured(text, "bold") for text in padding).rstrip())
        for cells in rows:
            self.add_row(chosen, cells)
        return chosen

    def add_row(self, chosen: Layout, cells: Sequence[str]) -> None:
        shown = []
        for place, width in zip(chosen.places, chosen.widths, strict=True):
            text = printable(cells[place])
            text = shortened(text, width) if chosen.cuts else text
            shown.append(self.coloured(padded(text, width), _CELLS.get(text, "")))
        self.line((" " * chosen.gap).join(shown).rstrip())

    def result(self, kind: str, id: str, operation: str, *, dry_run: bool = False) -> None:
        """One line about one document that was written."""
        word = PAST[operation]
        shown = f"would be {word}" if dry_run and operation != "unchanged" else word
        self.line(f"{kind}/{id} {self.coloured(shown, word)}")


def width() -> int:
    """Columns to fill with running text."""
    try:
        return max(60, min(os.get_terminal_size(2).columns, 110))
    except OSError:
        return 100
