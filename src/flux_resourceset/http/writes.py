"""What every mutation has in common: consent to its effect, and dry runs, which answer with a plan instead."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import changes, errors, guards, json_pieces, ledger, operations, plans
from flux_resourceset.budgets import Budget
from flux_resourceset.guards import Consent
from flux_resourceset.http import long_answers, messages, revisions
from flux_resourceset.ledger import Explain, Ledger, Work
from flux_resourceset.outcomes import Outcome

T = TypeVar("T")
Results = Callable[[Outcome[T]], Iterable[operations.Result]]

# Steps and seconds. A change to each of ten thousand clusters takes half a million and some seconds; everybody may ask for a
# dry run, so there it ends soon after. Who may write may also write several of that at once.
_DRY_RUN = (2_000_000, 30.0)
_WRITE = (20_000_000, 60.0)

_PLAN_ONLY = frozenset({"full", "cluster"})
_PLAN = re.compile(r'"?([0-9a-f]{32})"?')


def dry_run_budget() -> Budget:
    return Budget(*_DRY_RUN, time.monotonic)


def write_budget() -> Budget:
    return Budget(*_WRITE, time.monotonic)


# What a request says


def query(request: Request, allowed: frozenset[str] = frozenset()) -> dict[str, str]:
    """The query parameters of a mutation; every one takes dry_run."""
    params = messages.query(request, allowed | _PLAN_ONLY | {messages.DRY_RUN})
    for name in params.keys() & _PLAN_ONLY if not is_dry_run(params) else ():
        raise errors.BadQuery(f"{name} is about a plan; it goes with dry_run=true")
    return params


def is_dry_run(params: Mapping[str, str]) -> bool:
    return messages.flag(params, messages.DRY_RUN)


def consent(request: Request) -> Consent:
    """What whoever writes says about the effect."""
    overridden = request.headers.get(guards.OVERRIDE_FREEZE, "")
    if overridden and not request.headers.get("x-reason"):
        raise errors.Invalid(f"{guards.OVERRIDE_FREEZE} needs an X-Reason, which is kept in the log; send both")
    return Consent(
        plan=_wanted_plan(request),
        removals=_number(request, guards.CONFIRM_REMOVALS),
        clusters=_number(request, guards.CONFIRM_CLUSTERS),
        freezes=frozenset(id.strip() for id in overridden.split(",") if id.strip()),
    )


def _wanted_plan(request: Request) -> str | None:
    text = request.headers.get("if-plan")
    match = _PLAN.fullmatch(text.strip()) if text is not None else None
    if text is not None and match is None:
        raise errors.BadRequest(f"If-Plan is {errors.shortened(text, 100)!r}; it must be the id of a plan, in quotes")
    return match[1] if match else None


def _number(request: Request, name: str) -> int | None:
    text = request.headers.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", text.strip()):
        raise errors.BadRequest(f"{name} is {errors.shortened(text, 100)!r}; it must be a whole number")
    return int(text)


# What becomes of it


async def write(
    to: Ledger, request: Request, work: Work[T], budget: Budget | None = None, explain: Explain = ledger.as_it_is
) -> Outcome[T]:
    outcome = await to.write(work, messages.origin(request), budget, explain, consent(request))
    revisions.made(request, outcome.revision)
    return outcome


async def plan(
    of: Ledger,
    request: Request,
    params: Mapping[str, str],
    work: Work[T],
    results: Results[T],
    explain: Explain = ledger.as_it_is,
) -> Response:
    """The answer to a dry run: nothing is written, and a read token is enough."""
    full, cluster = messages.flag(params, "full"), params.get("cluster")
    rehearsal = of.rehearse(work, messages.origin(request), dry_run_budget(), explain, consent(request))
    outcomes = [await long_answers.while_listening(request.receive, rehearsal)]
    return await long_answers.json_answer(request, _planned(outcomes, results, full, cluster))


def answer(outcome: Outcome[T], results: Results[T]) -> Iterator[bytes]:
    """What a write answers that touches many documents."""
    about = {"revision": outcome.revision, "dry_run": False, "warnings": outcome.shown_warnings}
    yield from json_pieces.pieces({**about, "results": iter(results(outcome))}, 2)


def last_answer(outcomes: list[Outcome[T]], results: Results[T]) -> Iterator[bytes]:
    """And nobody asks for the outcome any more."""
    yield from answer(outcomes[0], results)
    _let_go(outcomes)


def _let_go(outcomes: list[Outcome[T]]) -> None:
    entry = outcomes.pop().entry
    entries = [] if entry is None else [entry]
    del entry
    changes.let_go(entries)


def _planned(outcomes: list[Outcome[T]], results: Results[T], full: bool, cluster: str | None) -> Iterator[bytes]:
    """And nobody asks for the outcome any more."""
    outcome = outcomes[0]
    groups = plans.grouped(outcome.effect)
    plan: dict[str, Any] = {
        "plan": plans.identity(outcome.entry, outcome.effect),
        "base_revision": outcome.base_revision,
        "revision": outcome.revision,
        "dry_run": True,
        "summary": plans.summary(outcome.entry, outcome.effect),
        "groups": plans.described(groups, full, cluster),
        "groups_total": len(groups),
        "guards": outcome.guards.described(),
        "warnings": outcome.shown_warnings,
        "results": iter(results(outcome)),
    }
    yield from json_pieces.pieces(plan, 2)
    del outcome, plan, groups
    _let_go(outcomes)
