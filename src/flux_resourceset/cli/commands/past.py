"""What was: the history of a document, and what is different between two points of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import log_lines, plans
from flux_resourceset.cli.output.printing import PAST

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Change = dict[str, Any]

_SHOWN = 100  # changes, if nothing is said
_PAGE = 1000  # the most that the server tells at once


def history(session: Session) -> int:
    """The changes of a document, newest first."""
    limit = int(session.values.text("limit") or _SHOWN)
    changes = _changes(session, client.path(session.kind.name, session.id, "history"), limit + 1)
    more, changes = len(changes) > limit, changes[:limit]
    if session.output.human:
        for change in changes:
            _show_change(session, change)
    else:
        session.output.rows(changes, (), name=lambda change: str(change["revision"]))
    if more:
        session.say(f"the newest {limit}; --limit shows more")
    return failures.OK


def _changes(session: Session, path: str, wanted: int) -> list[Change]:
    """At least so many, if there are; a page at a time."""
    changes: list[Change] = []
    while True:
        size = min(wanted - len(changes), _PAGE)
        older = {"before": changes[-1]["revision"]} if changes else {}
        page = session.client.get(path, {"limit": size, **older}).objects()
        changes += page
        if len(page) < size or len(changes) == wanted:
            return changes


def _show_change(session: Session, change: Change) -> None:
    output = session.output
    done = PAST.get(operation := str(change["operation"]), operation)
    why = f": {change['reason']}" if change.get("reason") else ""
    number = f"revision {change['revision']}   "
    start = f"{log_lines.moment(change)}   "
    first, *rest = output.fitting(f"{number}{start}{done} by {log_lines.author(change)}{why}")
    coloured = output.coloured(number, "bold") + start + output.coloured(done, done)
    output.line(first.replace(number + start + done, coloured, 1))
    for line in (*rest, *(line for item in change["fields"] for line in output.fitting(f"  {log_lines.field(item)}"))):
        output.line(line)


# Two points compared

_OPERATIONS = ("create", "update", "delete")
_BETWEEN = ("to", "cluster", "kind")  # options that mean something only with --from


def diff(session: Session) -> int:
    """Files against the server, or two points of the log against each other."""
    values = session.values
    if "from" not in values:
        for name in _BETWEEN:
            if name in values:
                raise failures.usage(f"--{name} needs --from: the revision or the time to begin with")
        from flux_resourceset.cli.commands import apply  # not before: points need none of it

        return apply.diff(session)
    if "filename" in values:
        raise failures.usage("-f compares files, --from two points of the log: say one of them")
    return _compare(session)


def _compare(session: Session) -> int:
    values = session.values
    query = {name: values.required(name) for name in ("from", "to", "cluster") if name in values}
    if (kind := session.named_kind()) is not None:
        query["kind"] = kind.name
    if values.flag("full"):
        query["full"] = "true"
    told = session.client.get("/diff", query).object(documents=list, groups=list, summary=dict)
    plans.checked(told)
    if session.output.human:
        _show_documents(session, told["documents"])
    # of one cluster, the others' groups are not hidden but not asked for
    shown = {**told, "groups_total": len(told["groups"])} if "cluster" in query else told
    names = [f"{item['kind']}/{item['id']}" for item in told["documents"]]
    session.output.value(told, lambda: plans.lines(session, session.output, shown, happened=True), names)
    session.say(f"from revision {told['from']} to {told['to']}: {_counts(told)}")
    return failures.DIFFERENT if told["documents"] or told["groups"] else failures.OK


def _show_documents(session: Session, documents: list[dict[str, Any]]) -> None:
    for item in documents:
        session.output.result(item["kind"], item["id"], item["operation"])
        for field in item["fields"] if item["operation"] == "update" else ():
            session.output.line(f"  {log_lines.field(field)}")


def _counts(told: dict[str, Any]) -> str:
    """Of what was asked for; the summary of the answer is that of all."""
    counted = (sum(item["operation"] == name for item in told["documents"]) for name in _OPERATIONS)
    parts = [f"{count} {PAST[name]}" for name, count in zip(_OPERATIONS, counted, strict=True) if count]
    return ", ".join(parts) or ("no such document" if told["groups"] else "no difference")
