"""The routes that go back: a change undone, and the whole fleet as it was."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import changes, errors, json_pieces, operations
from flux_resourceset.errors import Violation
from flux_resourceset.history import Point
from flux_resourceset.http import bodies, long_answers, messages, writes
from flux_resourceset.json_pointers import pointer
from flux_resourceset.ledger import Ledger, Work
from flux_resourceset.outcomes import Outcome
from flux_resourceset.readings import Readings
from flux_resourceset.reverts import Scope

_NARROWING = ("kind", "environment", "selector")


class RevertRoutes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._readings = Readings(ledger.follower)

    async def change(self, request: Request) -> Response:
        """Undo a change."""
        params = writes.query(request, frozenset({"force"}))
        force = messages.flag(params, "force")
        if await bodies.read(request, empty={}):
            raise errors.Invalid.document("the body", [Violation("", "must be left out, or empty: the path says it all")])
        text = request.path_params["revision"]
        undo = await self._readings.undo(int(text), force) if re.fullmatch(r"[0-9]{1,15}", text) else None
        if undo is None:
            raise errors.NotFound(f"revision {text} was not found; the newest is {self._ledger.fleet.revision}")
        return await self._write(request, params, undo.work)

    async def fleet(self, request: Request) -> Response:
        """Go back to a point of the log."""
        params = writes.query(request)
        to, scope = self._wanted(await bodies.read(request))
        return await self._write(request, params, await self._readings.going_back(to, scope))

    def _wanted(self, body: Any) -> tuple[Point, Scope]:
        if not isinstance(body, dict):
            raise errors.Invalid.document("the body", [Violation("", "must be a JSON object")])
        known = {name: body.get(name) for name in _NARROWING}
        to, wrong = wanted_point(body, _NARROWING)
        wrong += [
            Violation(pointer([name]), "must be a string") for name, given in known.items() if not isinstance(given, str | None)
        ]
        scope = Scope(**{name: given for name, given in known.items() if isinstance(given, str)})
        wrong += scope.violations(self._ledger.kinds)
        if wrong or to is None:
            raise errors.Invalid.document("the body", wrong)
        return to, scope

    async def _write(self, request: Request, params: dict[str, str], work: Work[None]) -> Response:
        if writes.is_dry_run(params):
            return await writes.plan(self._ledger, request, params, work, _results)
        outcome = [await writes.write(self._ledger, request, work, writes.write_budget())]
        return await long_answers.json_answer(request, _answer(outcome))


def wanted_point(body: Any, others: Collection[str] = ()) -> tuple[Point | None, list[Violation]]:
    """What a body says to go back to, and what is wrong with it; it may have these other members."""
    if not isinstance(body, dict):
        return None, [Violation("", "must be a JSON object")]
    wrong = [Violation(pointer([name]), "is not a known field") for name in body if name != "to" and name not in others]
    to = body.get("to")
    if isinstance(to, str):
        return messages.point({"to": to}, "to"), wrong
    if type(to) is int and to >= 0:
        return to, wrong
    return None, [*wrong, Violation("/to", "is required, and must be a revision, or a time of RFC 3339")]


def _results(outcome: Outcome[None]) -> Iterator[operations.Result]:
    for change in outcome.entry.changes if outcome.entry else ():
        yield operations.result(0, "revert", (change.kind, change.id), None, outcome.entry, change)


def _answer(outcomes: list[Outcome[None]]) -> Iterator[bytes]:
    """As of a batch; and nobody asks for the outcome any more."""
    outcome = outcomes.pop()
    answer = {
        "revision": outcome.revision,
        "dry_run": False,
        "warnings": outcome.shown_warnings,
        "results": _results(outcome),
    }
    yield from json_pieces.pieces(answer, 2)
    entries = [] if outcome.entry is None else [outcome.entry]
    del outcome, answer
    changes.let_go(entries)
