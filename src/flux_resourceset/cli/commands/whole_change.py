"""One entry of the change log: on a line, or as a whole, with the documents that changed in the same way together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import differences
from flux_resourceset.cli.commands import log_lines
from flux_resourceset.cli.output.printing import PAST

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Entry = Mapping[str, Any]
Change = Mapping[str, Any]
Field = dict[str, Any]

_NAMED = 3  # documents on a line; -o wide names all
_IDS = 8  # of a group, on a terminal


def brief(session: Session, entry: Entry, kind: str | None, id: str | None) -> str:
    """The documents on a line, those that were asked for first, and the fields of one that was asked for by its id."""
    wanted: list[Change] = []
    others: list[Change] = []
    for change in entry["changes"]:
        is_wanted = (kind or id) and kind in (None, change["kind"]) and id in (None, change["id"])
        (wanted if is_wanted else others).append(change)
    most = len(entry["changes"]) if session.output.form == "wide" else max(_NAMED, len(wanted) if id else 0)
    named = [_named(session, change, id is not None and change in wanted) for change in [*wanted, *others][:most]]
    more = len(entry["changes"]) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "") + marks(entry)


def _named(session: Session, change: Change, with_fields: bool) -> str:
    name = f"{change['operation']} {change['kind']}/{change['id']}"
    if not with_fields or change["operation"] != "update":
        return name
    return f"{name} ({', '.join(field['path'] for field in fields(session, change))})"


def marks(entry: Entry) -> str:
    """What is special about it: that it undoes another one, and that a rule or a freeze was set aside."""
    reverts = [f"reverts {entry['reverts']}"] if entry.get("reverts") is not None else []
    told = reverts + ["forced"] * bool(entry.get("forced"))
    return f" ({', '.join(told)})" if told else ""


def fields(session: Session, change: Change) -> list[Field]:
    """What became of a document, field by field; of one that came or went, all that it has but its id."""
    before, after = (change.get(side) for side in ("before", "after"))
    if before is None or after is None:
        before, after = _known(before), _known(after)
    references = session.kinds.references(change["kind"])
    return differences.fields(differences.of_documents(before, after, references))


def _known(document: Any) -> dict[str, Any]:
    """What says something: an empty default tells nobody anything."""
    return {name: value for name, value in (document or {}).items() if name != "id" and value not in (None, [], {}, "")}


def lines(session: Session, entry: Entry) -> Iterator[str]:
    """For people: who, when and why; then each group of documents and its fields."""
    coloured = session.output.coloured
    why = f": {entry['reason']}" if entry.get("reason") else ""
    number = f"revision {entry['revision']}"
    first, *rest = session.output.fitting(
        f"{number}   {log_lines.moment(entry)}   by {log_lines.author(entry)}{why}{marks(entry)}"
    )
    yield first.replace(number, coloured(number, "bold"), 1)
    yield from rest
    for (kind, operation), ids, changed in _groups(session, entry):
        yield ""
        yield from _headline(session, kind, operation, ids)
        for field in changed:
            yield from _field_lines(session, field)


def _groups(session: Session, entry: Entry) -> list[tuple[tuple[str, str], list[str], list[Field]]]:
    """The documents that changed in the same way, in the order of the log."""
    groups: dict[str, tuple[tuple[str, str], list[str], list[Field]]] = {}
    for change in entry["changes"]:
        changed = fields(session, change)
        how = (str(change["kind"]), str(change["operation"]))
        group = groups.setdefault(json.dumps([how, changed]), (how, [], changed))
        group[1].append(str(change["id"]))
    return list(groups.values())


def _headline(session: Session, kind: str, operation: str, ids: list[str]) -> Iterator[str]:
    done = PAST.get(operation, operation)
    if len(ids) == 1:
        yield f"{kind}/{ids[0]} {session.output.coloured(done, done)}"
        return
    shown = ids if session.output.room is None else ids[:_IDS]
    more = f" and {len(ids) - len(shown)} more; -o wide names all" if len(shown) < len(ids) else ""
    start = f"{len(ids)} {kind} "
    first, *rest = session.output.fitting(f"{start}{done}: {', '.join(shown)}{more}")
    yield first.replace(start + done, start + session.output.coloured(done, done), 1)
    yield from rest


def _field_lines(session: Session, field: Field) -> Iterator[str]:
    for side, sign in (("before", "-"), ("after", "+")):
        if side in field:
            for line in session.output.fitting(f"  {sign} {field['path']}: {log_lines.text(field[side])}"):
                yield session.output.coloured(line, sign)
