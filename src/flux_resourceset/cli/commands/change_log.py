"""The change log: as it is, or as it grows."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import log_lines, moments, whole_change
from flux_resourceset.cli.output.tables import Column

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Entry = dict[str, Any]

_COLUMNS = ["revision", "time", "actor", "changes", "reason"]
_TABLE = [
    Column("REVISION", 0, kept=True),
    Column("TIME", 2),
    Column("ACTOR", 3),
    Column("CHANGES", 1, kept=True, least=36),  # what happened says more than why
    Column("REASON", 4),
]
_PERIOD = 1.0  # seconds between two looks
_PAGE = 100
_OF_LISTS = {"since", "until"}  # what a stream cannot be asked for
_AT_FIRST = 10  # entries that --follow starts with, as tail -f does


def changes(session: Session) -> int:
    values = session.values
    query = {name: values.required(name) for name in ("id", "actor", "limit") if name in values}
    query |= {name: moments.moment(values.required(name), f"--{name}") for name in _OF_LISTS if name in values}
    if (kind := session.named_kind()) is not None:
        query["kind"] = kind.name
    if (revision := values.text("revision")) is not None:
        return _show_one(session, revision, query)
    if values.flag("follow"):
        return _follow(session, query)
    entries = session.client.get("/changes", query).objects()
    if session.output.human:
        ordered = session.output.in_order(entries)
        session.output.columns(_TABLE, [_row(session, entry, query) for entry in ordered])
        if not entries:
            session.say("no changes found")
    else:
        session.output.rows(entries, _COLUMNS, name=lambda entry: str(entry["revision"]))
    return failures.OK


def _show_one(session: Session, revision: str, query: dict[str, str]) -> int:
    if query or session.values.flag("follow"):
        raise failures.usage("a revision is one change: leave out the options that choose among many")
    entry = session.client.get(client.path("changes", revision)).object(changes=list)
    session.output.value(entry, lambda: whole_change.lines(session, entry), [revision])
    return failures.OK


def _row(session: Session, entry: Mapping[str, Any], query: Mapping[str, Any]) -> list[str]:
    from flux_resourceset.cli.output.printing import cell

    who, why = cell(log_lines.author(entry)), cell(entry.get("reason"))
    told = whole_change.brief(session, entry, query.get("kind"), query.get("id"))
    return [str(entry["revision"]), log_lines.moment(entry), who, told, why]


def _follow(session: Session, query: dict[str, str]) -> int:
    """Print entries as they come, until interrupted; a server that restarts is waited for."""
    last = None if query.keys() & _OF_LISTS else _follow_stream(session, query)
    return _follow_lists(session, query, last)


def _follow_stream(session: Session, query: dict[str, str]) -> int | None:
    """As long as there is one; then the revision up to which all was printed. An older server has none.

    The stream begins before what there was is asked for: so nothing is lost between them, nor printed twice.
    """
    from flux_resourceset.client import events

    filters = {name: text for name, text in query.items() if name != "limit"}
    last = None
    try:
        for event in events.following(session.client, "/changes", filters, lambda exc: session.say(f"{exc}; still trying")):
            revision = events.revision(event)
            if last is None:
                _print_all(session, {"limit": _AT_FIRST, **query, "before": revision + 1})
            elif event.name == "reset":
                session.say("the log was replaced, or folded beyond the last change that was seen; it goes on from now")
            if event.name == "change":
                _print(session, client.decoded(event.data), query)
            last = revision
            sys.stdout.flush()
    except (events.NoStream, client.Problem):
        pass  # a list is refused as well, if it is for good
    return last


def _print_all(session: Session, query: dict[str, Any]) -> None:
    for entry in session.client.get("/changes", query).objects()[::-1]:
        _print(session, entry, query)


def _follow_lists(session: Session, query: dict[str, str], last: int | None) -> int:
    """Ask again and again."""
    entries: list[Entry] = []
    if last is None:
        entries = _at_first(session.client, query)
        last = 0
    lost = False
    while True:
        for entry in entries:
            _print(session, entry, query)
            last = entry["revision"]
        sys.stdout.flush()
        time.sleep(_PERIOD)
        try:
            entries = _since(session.client, query, last)
            lost = False
        except (client.Unreachable, client.Problem) as exc:
            if isinstance(exc, client.Problem) and exc.status < 500:
                raise  # it answers, and will not answer otherwise
            if not lost:
                session.say(f"{exc}; still trying")
            entries, lost = [], True


def _at_first(server: client.Client, query: dict[str, str]) -> list[Entry]:
    """What there is already, oldest first: all from a moment on that was named, or else the newest."""
    if "since" in query and "limit" not in query:
        return _since(server, query, 0)
    return server.get("/changes", {"limit": _AT_FIRST, **query}).objects()[::-1]


def _since(server: client.Client, query: dict[str, str], last: int) -> list[Entry]:
    """What came after a revision, oldest first."""
    entries: list[Entry] = []
    while True:
        page = server.get("/changes", {**query, "limit": _PAGE, "after": last}).objects()
        entries += page
        if len(page) < _PAGE:
            return entries
        last = page[-1]["revision"]


def _print_row(session: Session, cells: list[str]) -> None:
    """Under no heading; on a terminal its end is cut, so that it is one line."""
    from flux_resourceset.cli.output.terminal_text import printable, shortened

    text, room = printable("   ".join(cells)), session.output.room
    session.output.line(shortened(text, room) if room is not None else text)


def _print(session: Session, entry: Entry, query: Mapping[str, Any]) -> None:
    output = session.output
    if output.human:
        _print_row(session, _row(session, entry, query))
    elif output.form == "yaml":
        output.line("---")
        output.yaml([entry])
    elif output.form == "name":
        output.line(str(entry["revision"]))
    else:
        output.json_line(entry)
