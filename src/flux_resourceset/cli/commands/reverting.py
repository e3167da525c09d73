"""Going back: a change undone, a document or the fleet as it was; shown as a plan, agreed to, and done as it was shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import batches, plans

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


class _NothingToDo(Exception):
    """So there is no question either."""


_SHOWN = 20  # documents before a question; whose answers change is told by the plan, however many they are


class _Revert:
    """A request that goes back, and what it would do as far as that was asked."""

    def __init__(self, session: Session, path: str, body: dict[str, str], query: dict[str, str] | None = None) -> None:
        self._session = session
        self._request = (path, body, query or {})
        self.planned: list[batches.Result] = []

    def plan(self) -> plans.Plan:
        plan = plans.asked(self._session, "POST", *self._request)
        self.planned = plan["results"]
        return plan

    def plan_to_ask(self) -> plans.Plan:
        plan = self.plan()
        if plan.get("revision") == plan.get("base_revision"):
            raise _NothingToDo
        _preview(self._session, self.planned)
        return plan

    def write(self, consent: plans.Headers) -> client.Answer:
        return self._session.write_client().send("POST", *self._request, consent)

    def results(self, answer: client.Answer) -> batches.Results:
        """Of an answer like that of a batch."""
        told = answer.object(results=list)
        plans.warn(self._session, told)
        return batches.Results(told["results"])


def _preview(session: Session, results: list[batches.Result]) -> None:
    """The documents that a question is about: they may change without an effect on any cluster."""
    results = [result for result in results if result["change"] != "unchanged"]
    for result in results[:_SHOWN]:
        session.messages.result(result["kind"], result["id"], result["change"], dry_run=True)
        for line in batches.changed_lines(session, result):
            session.say(f"  {line}")
    if len(results) > _SHOWN:
        session.say(f"… and {len(results) - _SHOWN} more; --dry-run shows all")


def change(session: Session) -> int:
    """Undo one change; what others changed since stays."""
    revision = session.values.required("revision")
    force = {"force": "true"} if session.values.flag("force") else {}
    revert = _Revert(session, client.path("changes", revision, "revert"), {}, force)
    _show(session, _carried_out(session, revert, f"undo revision {revision}?", revert.results), single=False)
    return failures.OK


def document(session: Session) -> int:
    """One document as it was."""
    kind, id, to = session.kind, session.id, _to(session)
    revert = _Revert(session, client.path(kind.name, id, "revert"), {"to": to})

    def results(answer: client.Answer) -> batches.Results:
        """The server answers with the document; what becomes of it is known from the plan."""
        revision = answer.headers.get("etag", "").strip('"')
        made = {"revision": int(revision) if revision.isdigit() else None, "after": answer.object()}
        return batches.Results({**result, **made} for result in revert.planned)

    session.require_write_token()
    if session.values.flag("yes"):
        plans.warn(session, revert.plan())
    _show(session, _carried_out(session, revert, f'make {kind.name} "{id}" what it was at {to}?', results), single=True)
    return failures.OK


def fleet(session: Session) -> int:
    """The whole fleet as it was, or a part of it."""
    values, to = session.values, _to(session)
    body = {"to": to, **{name: values.required(name) for name in ("environment", "selector") if name in values}}
    if (kind := session.named_kind()) is not None:
        body["kind"] = kind.name
    what = "a part of the fleet" if len(body) > 1 else "the whole fleet"
    revert = _Revert(session, "/revert", body)
    _show(session, _carried_out(session, revert, f"make {what} what it was at {to}?", revert.results), single=False)
    return failures.OK


def _to(session: Session) -> str:
    to = session.values.text("to")
    if to is None:
        raise failures.usage("say what to go back to: --to REVISION, or --to TIME (RFC 3339)")
    return to


def _carried_out(
    session: Session, revert: _Revert, question: str, results: Callable[[client.Answer], batches.Results]
) -> batches.Results:
    """What became of each document, or what would."""
    session.require_write_token()
    try:
        if session.values.flag("dry-run"):
            return batches.planned(revert.plan())
        return results(plans.carry_out(session, question, revert.plan_to_ask, revert.write))
    except _NothingToDo:
        return batches.Results(revert.planned)
    except client.Problem as problem:
        if "conflicts" not in problem.body:
            raise
        raise _conflict(problem) from problem


def _show(session: Session, results: batches.Results, *, single: bool) -> None:
    shown = [(result["kind"], result["after"] or result["before"]) for result in results]
    batches.show(session, results, shown, single=single)
    if not results:
        session.say("nothing to do: it is so already")


def _conflict(problem: client.Problem) -> failures.Failure:
    """A line for each field that was changed again since."""
    conflicts = [item for item in problem.body["conflicts"] or () if isinstance(item, dict)]
    lines = [
        f'{item.get("kind")} "{item.get("id")}": {item.get("path") or "the document"} was changed again by revision '
        f"{item.get('revision')}"
        for item in conflicts
    ]
    total = problem.body.get("conflicts_total")
    if isinstance(total, int) and total > len(lines):
        lines.append(f"and {total - len(lines)} more")
    return failures.Failure(failures.CONFLICT, *(lines or [str(problem)]), "nothing was changed; --force undoes it all the same")
