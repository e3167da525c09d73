"""`list -w` and `get -w`: what is there, and then a row for every change."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import log_lines
from flux_resourceset.cli.output.printing import PAST
from flux_resourceset.cli.output.tables import Column, Layout

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]
Query = Mapping[str, str]

_PERIOD = 1.0  # seconds between two looks at a server that has no stream
_THERE = "exists"  # what JSON says of a document that was there at first
_NOT_WATCHED = ("limit", "offset", "at")


def watch(session: Session, kind: Kind, query: Query, ids: Collection[str] = ()) -> int:
    """The documents that filters choose, or those with these ids; until interrupted."""
    for name in _NOT_WATCHED:
        if name in session.values:
            raise failures.usage(f"--watch shows all that is there now, and then what changes: leave out --{name}")
    watched = _Watched(session, kind, query, ids)
    _follow_stream(session, kind, watched)
    return _look_again(session, watched)


def _follow_stream(session: Session, kind: Kind, watched: _Watched) -> None:
    """As long as there is one; an older server has none. It begins before the documents are read, so that nothing is lost."""
    from flux_resourceset.client import events

    begun = False
    try:
        filters = {"kind": kind.name}
        for event in events.following(session.client, "/changes", filters, lambda exc: session.say(f"{exc}; still trying")):
            if not begun:
                watched.look({"at": str(events.revision(event))})
                begun = True
            elif event.name == "reset":
                watched.look({})
            if event.name == "change":
                watched.take(client.decoded(event.data))
            sys.stdout.flush()
    except (events.NoStream, client.Problem):
        if begun:
            return
        watched.look({})  # which is refused as well, if it is for good


def _look_again(session: Session, watched: _Watched) -> int:
    lost = False
    while True:
        sys.stdout.flush()
        time.sleep(_PERIOD)
        try:
            watched.look({})
            lost = False
        except (client.Unreachable, client.Problem) as exc:
            if isinstance(exc, client.Problem) and exc.status < 500:
                raise
            if not lost:
                session.say(f"{exc}; still trying")
            lost = True


def _changes(entry: Any) -> list[dict[str, Any]]:
    """Those of an entry of the log, and not of some other JSON."""
    changes = entry.get("changes") if isinstance(entry, dict) else None
    if not isinstance(changes, list) or not all(
        isinstance(change, dict) and {"kind", "id"} <= change.keys() for change in changes
    ):
        raise client.not_understood("it is not the change that was due")
    return changes


class _Watched:
    """The documents as they were shown last."""

    def __init__(self, session: Session, kind: Kind, query: Query, ids: Collection[str]) -> None:
        self._session, self._kind, self._query, self._ids = session, kind, query, ids
        self._known: dict[str, Document] | None = None
        self._rows = _Rows(session, kind)

    def look(self, at: Query) -> None:
        """Read them all; the first time they are shown, later what became of them since."""
        found = {str(document["id"]): document for document in self._documents(at)}
        known, self._known = self._known, found
        if known is None:
            self._rows.begin(list(found.values()))
            return
        for id, document in found.items():
            if document != known.get(id):
                self._rows.add("update" if id in known else "create", document)
        for id in known.keys() - found.keys():
            self._rows.add("delete", known[id])

    def _documents(self, at: Query) -> Iterator[Document]:
        path = client.path(self._kind.name)
        if not self._ids:
            yield from self._session.client.get(path, {**self._query, **at}).objects()
        for id in self._ids:
            try:
                yield self._session.client.get(client.path(self._kind.name, id), at).object()
            except client.Problem as problem:
                if problem.status != 404 or self._known is None:
                    raise

    def take(self, entry: Any) -> None:
        """A change of the log. What no longer matches the filters is gone, as far as they are concerned."""
        known = self._known if self._known is not None else {}
        for change in _changes(entry):
            id, after = str(change["id"]), change.get("after")
            if change["kind"] != self._kind.name or (self._ids and id not in self._ids):
                continue
            if after is not None and self._matches(after):
                self._rows.add("update" if id in known else "create", after)
                known[id] = after
            elif id in known:
                self._rows.add("delete", known.pop(id))

    def _matches(self, document: Document) -> bool:
        from flux_resourceset import selectors

        wanted = {name: text for name, text in self._query.items() if name != "selector"}
        equal = all(text in (document.get(name), log_lines.text(document.get(name))) for name, text in wanted.items())
        return equal and selectors.parse(self._query.get("selector", ""))(document.get("labels") or {})


class _Rows:
    """Documents one by one: rows of a table with a column for what became of them, or JSON, YAML, names."""

    def __init__(self, session: Session, kind: Kind) -> None:
        self._output, self._kind = session.output, kind
        self._fields = session.output.fields(kind)
        self._layout: Layout | None = None

    def begin(self, documents: list[Document]) -> None:
        ordered = [dict(document) for document in self._output.in_order(documents, self._kind.properties)]
        if self._output.human:
            columns = [*self._fields.columns, Column("CHANGE", 1, kept=True)]
            self._layout = self._output.begin_table(columns, [[*self._fields.cells(document), "-"] for document in ordered])
        else:
            for document in ordered:
                self._print(_THERE, document)

    def add(self, operation: str, document: Document) -> None:
        if self._layout is not None:
            self._output.add_row(self._layout, [*self._fields.cells(document), PAST[operation]])
        else:
            self._print(PAST[operation], document)

    def _print(self, change: str, document: Document) -> None:
        output, told = self._output, {"change": change, "document": document}
        if output.form == "name":
            output.line(f"{self._kind.name}/{document['id']}" + (" deleted" if change == PAST["delete"] else ""))
        elif output.form == "yaml":
            output.line("---")
            output.yaml([told])
        else:
            output.json_line(told if output.form == "json" else document)
