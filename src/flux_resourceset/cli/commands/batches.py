"""Writes: operations sent as one transaction, safe to repeat, shown before or after they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import differences
from flux_resourceset.cli.commands import plans
from flux_resourceset.cli.output import printing

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Operation = dict[str, Any]
Result = dict[str, Any]
Shown = tuple[str, dict[str, Any]]  # a document, and the kind that it is of


class Results(list[Result]):
    """What became of each document, or what would; then with the plan."""

    plan: plans.Plan | None = None


def submit(
    session: Session,
    operations: Sequence[Operation],
    *,
    dry_run: bool | None = None,
    question: str | None = None,
    tell: Callable[[plans.Plan], None] = lambda plan: None,
) -> Results:
    """Carry out all operations, or none; what became of each document. The server's warnings are passed on.

    With a question, somebody has to agree to the plan first, of which more may be told, unless that was said before.
    """
    if not operations:
        return Results()
    if session.values.flag("dry-run") if dry_run is None else dry_run:
        return planned(_dry_run(session, operations))
    body = {"operations": list(operations)}

    def write(consent: plans.Headers) -> dict[str, Any]:
        headers = {"Idempotency-Key": _key(), **consent}
        return session.write_client().send("POST", "/batch", body, headers=headers).object(results=list)

    def plan() -> plans.Plan:
        made = _dry_run(session, operations)
        tell(made)
        return made

    answer = plans.carry_out(session, question, plan, write)
    plans.warn(session, answer)
    return Results(answer["results"])


def planned(plan: plans.Plan) -> Results:
    results = Results(plan["results"])
    results.plan = plan
    return results


def dry_run_results(session: Session, operations: Sequence[Operation]) -> list[Result]:
    """What would become of each document; a question on the way to something else, so it passes nothing on."""
    results: list[Result] = _dry_run(session, operations)["results"]
    return results


def _dry_run(session: Session, operations: Sequence[Operation]) -> plans.Plan:
    return plans.asked(session, "POST", "/batch", {"operations": list(operations)})


def _key() -> str:
    """Makes a repeat harmless when the connection breaks and nobody knows whether the first one was heard."""
    import os

    return os.urandom(16).hex()


def show(session: Session, results: Sequence[Result], shown: Sequence[Shown], *, single: bool, extra: Iterable[str] = ()) -> None:
    """What a write did, or would do: documents for programs, lines for people, and how much it was for both."""
    is_dry_run = session.values.flag("dry-run")
    output = session.output
    if output.human:
        for result in results:
            if result["change"] == "unchanged":
                continue  # they are counted below
            output.result(result["kind"], result["id"], result["change"], dry_run=is_dry_run)
            if is_dry_run:
                for line in changed_lines(session, result):
                    output.line(f"  {line}")
    if is_dry_run:
        plans.show(session, plan_of(session, results), names(results))
    elif output.human:
        pass
    elif output.form == "name":
        output.value(None, tuple, names(results))
    elif output.form == "yaml":
        output.yaml({"kind": kind, **document} for kind, document in shown)
    else:
        documents = [document for _, document in shown]
        output.json(documents[0] if single and documents else documents)
    for line in extra:
        session.say(line)
    if results:
        session.say(summary(results, is_dry_run))


def names(results: Sequence[Result]) -> list[str]:
    return [f"{result['kind']}/{result['id']}" for result in results]


def plan_of(session: Session, results: Sequence[Result]) -> plans.Plan:
    """That of a dry run; where there was nothing to ask for, the server tells how nothing looks."""
    plan = results.plan if isinstance(results, Results) else None
    return plan or _dry_run(session, [])


def fields(session: Session, result: Result) -> list[dict[str, Any]]:
    """What an update changes in a document, field by field."""
    return differences.fields(_differences(session, result))


def _differences(session: Session, result: Result) -> list[differences.Difference]:
    if result["change"] != "update":
        return []
    return differences.of_documents(result["before"], result["after"], session.kinds.references(result["kind"]))


def changed_lines(session: Session, result: Result) -> list[str]:
    return [f"{item.pointer}: {_shown(item.before)} → {_shown(item.after)}" for item in _differences(session, result)]


def _shown(value: Any) -> str:
    import json

    return "(none)" if value is differences.ABSENT else json.dumps(value, ensure_ascii=False)


def _conditional(counted: dict[str, int]) -> str:
    """What a dry run counted: it would create, update, delete and prune so many; what is unchanged is so already."""
    would = [f"{name} {counted[name]}" for name in printing.PAST if name in counted and name != "unchanged"]
    same = counted.get("unchanged")
    parts = [f"would {', '.join(would)}"] if would else []
    return ", ".join([*parts, *([f"{same} unchanged"] if same else [])])


def summary(results: Sequence[Result], is_dry_run: bool) -> str:
    """How many of what, and in which revision."""
    counted: dict[str, int] = {}
    for result in results:
        counted[result["change"]] = counted.get(result["change"], 0) + 1
    parts = ", ".join(f"{counted[name]} {word}" for name, word in printing.PAST.items() if name in counted)
    if is_dry_run:
        return f"{_conditional(counted)}; nothing was changed"
    revisions = [result["revision"] for result in results if result["change"] != "unchanged" and result["revision"]]
    return parts + (f" (revision {max(revisions)})" if revisions else "; nothing to do")
