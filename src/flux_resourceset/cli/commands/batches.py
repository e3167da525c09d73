"""Writes: operations sent as one transaction, safe to repeat, shown before or after they happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import differences
from flux_resourceset.cli.output import printing

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Operation = dict[str, Any]
Result = dict[str, Any]
Shown = tuple[str, dict[str, Any]]  # a document, and the kind that it is of


def submit(session: Session, operations: Sequence[Operation], *, dry_run: bool | None = None) -> list[Result]:
    """Carry out all operations, or none; what became of each document. The server's warnings are passed on."""
    if not operations:
        return []
    if session.values.flag("dry-run") if dry_run is None else dry_run:
        answer = _dry_run(session, operations)
    else:
        body, key = {"operations": list(operations)}, {"Idempotency-Key": _key()}
        answer = session.write_client().send("POST", "/batch", body, headers=key).object(results=list)
    for text in answer.get("warnings") or ():  # an older server has none
        session.warn(str(text))
    results: list[Result] = answer["results"]
    return results


def dry_run_results(session: Session, operations: Sequence[Operation]) -> list[Result]:
    """What would become of each document; a question on the way to something else, so it passes nothing on."""
    results: list[Result] = _dry_run(session, operations)["results"]
    return results


def _dry_run(session: Session, operations: Sequence[Operation]) -> dict[str, Any]:
    body = {"operations": list(operations)}
    return session.client.send("POST", "/batch", body, {"dry_run": "true"}, role="read").object(results=list)


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
            output.result(result["kind"], result["id"], result["change"], dry_run=is_dry_run)
            if is_dry_run:
                for line in changed_lines(session, result):
                    output.line(f"  {line}")
    elif is_dry_run or output.form == "name":
        output.value(previewed(session, results), tuple, names(results))
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


def previewed(session: Session, results: Sequence[Result]) -> list[dict[str, Any]]:
    """Only what matters of a dry run: which document, what would happen, which fields."""
    return [
        {
            "kind": result["kind"],
            "id": result["id"],
            "change": result["change"],
            **({"document": result["after"]} if result["change"] == "create" else {"fields": fields(session, result)}),
        }
        for result in results
    ]


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


def summary(results: Sequence[Result], is_dry_run: bool) -> str:
    """How many of what, and in which revision."""
    counted: dict[str, int] = {}
    for result in results:
        counted[result["change"]] = counted.get(result["change"], 0) + 1
    parts = ", ".join(f"{counted[name]} {word}" for name, word in printing.PAST.items() if name in counted)
    if is_dry_run:
        return f"would be: {parts}; nothing was changed"
    revisions = [result["revision"] for result in results if result["change"] != "unchanged" and result["revision"]]
    return parts + (f" (revision {max(revisions)})" if revisions else "; nothing to do")
