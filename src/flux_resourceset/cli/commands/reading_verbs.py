"""The verbs by which documents of every kind are read: list and get; typed all day, so nothing of writing is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing import kind_commands, whereabouts_commands
from flux_resourceset.cli.session import explained

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def list(session: Session) -> int:
    kind = session.kind
    if session.values.flag("decommissioned"):
        from flux_resourceset.cli.commands import whereabouts  # not before: few ask for it

        return whereabouts.show_decommissioned(session)
    options = kind_commands.filters(kind)
    query = {name: session.values.required(option.key) for name, option in options.items() if option.key in session.values}
    if session.values.flag("watch"):
        return _watch(session, query)
    answer = session.client.get(client.path(kind.name), query)
    documents = answer.objects()
    session.say_revision(answer)
    session.output.documents(kind, documents)
    total = int(answer.headers.get("x-total-count", len(documents)))
    if not documents and session.output.human:
        session.say(f"no {kind.name.replace('_', ' ')} found")
    elif total > len(documents):
        session.say(f"{len(documents)} of {total}; --limit and --offset show the others")
    return failures.OK


def _watch(session: Session, query: dict[str, str], *ids: str) -> int:
    from flux_resourceset.cli.commands import watching  # not before: most lists are looked at once

    return watching.watch(session, session.kind, query, ids)


def get(session: Session) -> int:
    """Documents by their ids, or all where the command does without; what is not found is told behind the others."""
    kind, ids = session.kind, session.ids
    if not ids:
        return list(session)
    for option in (*kind_commands.filters(kind).values(), *whereabouts_commands.of_lists(kind.name)):
        if option.key in session.values and option.key != "at":
            raise failures.usage(f"{option.name} narrows a list; it goes with no ids")
    if session.values.flag("watch"):
        return _watch(session, {}, *ids)
    documents: Any = []
    missing: Any = []
    for id in ids:
        try:
            answer = session.client.get(client.path(kind.name, id), session.at)
        except client.Problem as problem:
            if problem.status != 404 or len(ids) == 1:
                raise
            missing += explained(problem).lines
            continue
        documents.append(answer.object())
    if documents:
        session.say_revision(answer)
        session.output.documents(kind, documents, single=len(ids) == 1)
    if missing:
        raise failures.Failure(failures.NOT_FOUND, *missing)
    return failures.OK
