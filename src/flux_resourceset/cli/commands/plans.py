"""Plans: what a write would do to which cluster, shown to people, agreed to, and then done as it was shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing import shared_options
from flux_resourceset.cli.parsing.grammar import PROGRAM

if TYPE_CHECKING:
    from flux_resourceset.cli.output.printing import Output
    from flux_resourceset.cli.session import Session

Plan = dict[str, Any]
Headers = Mapping[str, str]
Written = TypeVar("Written")

SHOWN_GROUPS = 20  # unless all are asked for: a screen full
_SHOWN_CLUSTERS = 5  # of a group on its line; enough to recognise which are meant

_CHANGES = {"added": "+", "removed": "-", "changed": "updated"}  # and the meaning whose colour they have

OVERRIDE = "X-Override-Freeze"

# What a header of a consent is called on the command line.
_OPTIONS = {
    "X-Confirm-Removals": shared_options.CONFIRM_REMOVALS.name,
    "X-Confirm-Clusters": shared_options.CONFIRM_CLUSTERS.name,
    OVERRIDE: shared_options.OVERRIDE_FREEZE.name,
}


class Guarded(failures.Failure):
    """A write that a guard or a freeze holds up, with the command that would do it."""


# Asking for a plan


def asked(
    session: Session, method: str, path: str, body: Any, query: Mapping[str, str] | None = None, headers: Headers | None = None
) -> Plan:
    """What the server would do for this request; nothing is written, and a token for reading is enough."""
    full = {"full": "true"} if session.values.flag("full") else {}
    wanted = {**(query or {}), "dry_run": "true", **full}
    return checked(session.client.send(method, path, body, wanted, headers, role="read").object(results=list))


def checked(plan: Plan) -> Plan:
    """A plan that has the shape of one; an older server's dry run has only results, and no groups to be shown."""
    groups, guards = plan.get("groups", []), plan.get("guards", [])
    understood = _are_objects(groups) and all(map(_is_group, groups)) and _are_objects(guards) and all(map(_is_guard, guards))
    if not understood or not _is_plain(plan.get("plan", "")):
        raise client.not_understood("it is not the plan that was due")
    return plan


def _is_guard(guard: Mapping[str, Any]) -> bool:
    confirm = guard.get("confirm", {})
    return isinstance(confirm, dict) and all(map(_is_plain, (*confirm.values(), guard.get("id", ""))))


def _is_plain(value: Any) -> bool:
    """Whether it can be a part of a header."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _is_group(group: Mapping[str, Any]) -> bool:
    shape = {"count": int, "clusters": list, "environments": dict, "changes": list}
    return (
        all(isinstance(group.get(name), kind) for name, kind in shape.items())
        and _are_objects(group["changes"])
        and all(_are_objects(change.get("fields", [])) for change in group["changes"])
    )


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


# Showing it


def show(session: Session, plan: Plan, names: Sequence[str] = ()) -> None:
    """The API's object for programs; for people, who gets what, what is odd about it, and what would hold it up."""
    if session.values.flag("render") and not session.output.human:
        session.say("note: --render is for people; say -o table to see the objects")
    shown = [f"plan {plan['plan']}"] if "plan" in plan else []
    session.output.value(plan, lambda: [*lines(session, session.output, plan), *shown], names)
    warn(session, plan)


def warn(session: Session, plan: Plan) -> None:
    for text in plan.get("warnings") or ():  # an older server has none
        session.warn(str(text))


def lines(session: Session, output: Output, plan: Plan, *, happened: bool = False) -> Iterator[str]:
    """For people: a line per group of clusters that change alike, then their changes; then what would hold it up."""
    groups = plan.get("groups", [])
    shown = groups if session.values.flag("full") else groups[:SHOWN_GROUPS]
    if not groups and "groups" in plan:
        yield "no cluster got other inputs" if happened else "no cluster would get other inputs"
    rendered = _rendering(session, output, plan, happened) if groups and session.values.flag("render") else lambda group: ()
    for group in shown:
        headline = output.fitting(_headline(group, session.values.flag("full")))
        yield from (output.coloured(line, "bold") for line in headline)
        for change in group["changes"]:
            yield from _change_lines(output, change, "" if happened else "would be ")
        yield from rendered(group)
    hidden = _number(plan.get("groups_total")) - len(shown)
    if hidden > 0:
        yield f"… and {_plural(hidden, 'more group')} of clusters; --full shows all"
    if len(shown) + hidden > 1:
        yield f"in all: {_total(plan.get('summary'), 'got' if happened else 'would get')}"
    for guard in tripped(plan):
        yield f"{output.coloured('guard:', 'error:')} {_held_up(guard)}"


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _plural(count: Any, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _total(summary: Any, get: str) -> str:
    numbers = summary if isinstance(summary, dict) else {}
    counts = ", ".join(f"{_number(numbers.get(kind))} {kind}" for kind in _CHANGES)
    return f"{_plural(_number(numbers.get('clusters')), 'cluster')} {get} other inputs: {counts}"


def _headline(group: Mapping[str, Any], full: bool) -> str:
    """How many clusters, where, and how many inputs of each come, go and change."""
    environments = ", ".join(f"{name} {count}" for name, count in group["environments"].items())
    kinds = [change.get("change") for change in group["changes"]]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in _CHANGES if kind in kinds)
    ids = [str(id) for id in (group["clusters"] if full else group["clusters"][:_SHOWN_CLUSTERS])]
    more = "" if len(ids) >= group["count"] else f" and {group['count'] - len(ids)} more"
    each = " each" if group["count"] > 1 else ""
    return f"{_plural(group['count'], 'cluster')} ({environments}): {counts}{each}: {', '.join(ids)}{more}"


def _change_lines(output: Output, change: Mapping[str, Any], would: str) -> Iterator[str]:
    name, kind = f"{change.get('view')}/{change.get('input')}", str(change.get("change"))
    meaning = _CHANGES.get(kind, "")
    if kind != "changed":
        yield "  " + output.coloured(f"{name}: {would}{kind}", meaning)
    for field in change.get("fields", ()):
        before, after = (_value(output, field, side, mark) for side, mark in (("before", "-"), ("after", "+")))
        place = output.coloured(f"{name}: {field.get('path')}", meaning)
        yield f"  {place} {before} → {after}"


def _value(output: Output, field: Mapping[str, Any], side: str, meaning: str) -> str:
    text = json.dumps(field[side], ensure_ascii=False) if side in field else "(none)"
    return output.coloured(text, meaning)


def _rendering(session: Session, output: Output, plan: Plan, happened: bool) -> Callable[[Mapping[str, Any]], Iterable[str]]:
    from flux_resourceset.cli.cluster import planned_objects, simulated_state  # not before: it takes all that renders

    comparison = planned_objects.Past(session, plan) if happened else planned_objects.Comparison(session, plan)
    none = " none changed" if happened else " none would change"

    def lines(group: Mapping[str, Any]) -> Iterator[str]:
        id, changes = comparison.of_group(group)
        yield f"  objects of {id}:" + ("" if changes else none)
        for change in changes:
            yield f"    {output.coloured(change.sign, simulated_state.MEANINGS[change.sign])} {change}"
            yield from (f"        {field}" for field in change.fields)

    return lines


def tripped(plan: Plan) -> list[dict[str, Any]]:
    """The guards that would hold it up."""
    return [guard for guard in plan.get("guards", ()) if guard.get("tripped")]


def _held_up(guard: Mapping[str, Any]) -> str:
    options = " ".join(_options(guard.get("confirm", {})))
    if guard.get("guard") == "freeze":
        until = f", until {guard['until']}" if guard.get("until") else ""
        clusters = _plural(guard.get("count"), "cluster")
        freeze = f"freeze {guard.get('id')} ({guard.get('reason')}{until})"
        return f"{clusters} would be changed under {freeze}; it passes with {options} and a --reason"
    return f"{_numbers(guard)}; it passes with {options}"


def _numbers(guard: Mapping[str, Any]) -> str:
    clusters = _plural(guard.get("clusters"), "cluster")
    if guard.get("guard") != "removals":
        return f"{clusters} would get other inputs"
    protected = f", {guard['protected']} of them protected" if guard.get("protected") else ""
    return f"{_plural(guard.get('removals'), 'input')} would be removed from {clusters}{protected}"


def _options(confirm: Mapping[str, Any]) -> list[str]:
    return [word for header, value in confirm.items() if header in _OPTIONS for word in (_OPTIONS[header], str(value))]


# Agreeing to it


def carry_out(
    session: Session,
    question: str | None,
    plan: Callable[[], Plan],
    write: Callable[[Headers], Written],
    remedy: Sequence[str] | None = None,
) -> Written:
    """A write with what was said to be meant.

    With a question, the plan is shown and only that plan is carried out; when it moved, or a guard holds it up, whoever sits at
    a terminal sees the new one and is asked again. Elsewhere it ends, with the command that would do it: the words as they
    were typed, or `remedy`, and the options that are missing.
    """
    consent = _consent(session)
    asks = question is not None and session.has_to_ask(question)
    while True:
        agreed = _agreement(session, plan(), question or "do it all the same?", remedy) if asks else {}
        try:
            return write({**consent, **agreed})
        except client.Problem as problem:
            if problem.code not in ("plan-changed", "confirmation-required", "frozen"):
                raise
            if session.values.flag("yes") or not session.interactive:
                raise _refusal(session, problem, plan, remedy) from problem
            session.say(_why(problem))
            asks = True


def _consent(session: Session) -> dict[str, str]:
    """What the options say to be known and meant."""
    values = session.values
    headers = {header: values.required(option[2:]) for header, option in _OPTIONS.items() if option[2:] in values}
    if freezes := values.many(shared_options.OVERRIDE_FREEZE.key):
        if "reason" not in values:
            raise failures.usage("--override-freeze needs a --reason, which is kept in the log")
        headers[OVERRIDE] = _header_text(",".join(freezes), shared_options.OVERRIDE_FREEZE.name)
    if (id := values.text(shared_options.IF_PLAN.key)) is not None:
        headers["If-Plan"] = f'"{_header_text(id, shared_options.IF_PLAN.name)}"'
    return headers


def _header_text(text: str, option: str) -> str:
    if not _is_plain(text) or not text.strip():
        raise failures.usage(f"{option} is {text!r}, which can be no id")
    return text


def _agreement(session: Session, plan: Plan, question: str, remedy: Sequence[str] | None) -> dict[str, str]:
    """Show a plan and ask; whoever agrees, agrees to this plan and to the numbers of its guards, and to nothing else."""
    for line in lines(session, session.messages, plan):
        session.say(line)
    warn(session, plan)
    freezes = _freezes(plan)
    if freezes and "reason" not in session.values:
        what = f"frozen by {', '.join(freezes)}; nothing was changed"
        raise Guarded(failures.CONFLICT, _with_command(session, what, {OVERRIDE: ",".join(freezes)}, remedy))
    numbers = [_numbers(guard) for guard in tripped(plan) if guard.get("guard") != "freeze"]
    overridden = [f"{_plural(len(freezes), 'freeze')} would be overridden: {', '.join(freezes)}"] if freezes else []
    session.ask("; ".join([*overridden, *numbers, question]))
    return {**_confirmation(plan), **({"If-Plan": f'"{plan["plan"]}"'} if "plan" in plan else {})}


def _freezes(plan: Plan) -> list[str]:
    return [str(guard.get("id")) for guard in tripped(plan) if guard.get("guard") == "freeze"]


def _confirmation(plan: Plan) -> dict[str, str]:
    """What has to be said for it to pass all that would hold it up."""
    said = {header: str(value) for guard in tripped(plan) for header, value in guard.get("confirm", {}).items()}
    freezes = {OVERRIDE: ",".join(_freezes(plan))} if _freezes(plan) else {}
    return {header: value for header, value in {**said, **freezes}.items() if header in _OPTIONS}


# Refusals


def _why(problem: client.Problem) -> str:
    """The server's words, without the part that speaks of headers."""
    return str(problem).partition("; nothing was written")[0]


def _refusal(
    session: Session, problem: client.Problem, plan: Callable[[], Plan], remedy: Sequence[str] | None
) -> failures.Failure:
    what = f"{_why(problem)}; nothing was changed"
    if problem.code == "plan-changed":
        return failures.Failure(failures.CONFLICT, f"{what}; look at the new plan")
    confirm = problem.body.get("confirm")
    confirm = dict(confirm) if isinstance(confirm, dict) else {}
    if problem.code == "frozen":  # which is told before anything else that would hold it up
        confirm = {**_confirmation(plan()), **confirm}
    return Guarded(failures.CONFLICT, _with_command(session, what, confirm, remedy))


def _with_command(session: Session, what: str, confirm: Mapping[str, Any], remedy: Sequence[str] | None) -> str:
    """A line that ends with the command that would do it: no option of it twice, and none behind a --."""
    import shlex

    renewed = [_OPTIONS[name] for name in confirm if name in _OPTIONS]
    words = list(remedy if remedy is not None else _without(session.words, renewed))
    added = _options(confirm)
    if OVERRIDE in confirm and "reason" not in session.values:
        added += ["--reason", "TEXT"]
    end = words.index("--") if "--" in words else len(words)
    return f"{what}; if it is meant: {shlex.join([PROGRAM, *words[:end], *added, *words[end:]])}"


def _without(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """The words without some options and their values."""
    rest = iter(words)
    for word in rest:
        if word in options:
            next(rest, None)
        elif word.partition("=")[0] not in options:
            yield word
