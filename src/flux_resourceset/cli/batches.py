"""Writes: operations sent as one transaction, safe to repeat, shown before or after they happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Operation = dict[str, Any]
Result = dict[str, Any]
Shown = tuple[str, dict[str, Any]]  # a document, and the kind that it is of

_MISSING: Any = object()


def submit(session: Session, operations: Sequence[Operation], *, dry_run: bool | None = None) -> list[Result]:
    """Carry out all operations, or none; what became of each document. The server's warnings are passed on."""
    if not operations:
        return []
    if session.values.flag("dry-run") if dry_run is None else dry_run:
        answer = _rehearsed(session, operations)
    else:
        body, key = {"operations": list(operations)}, {"Idempotency-Key": _key()}
        answer = session.writes().send("POST", "/batch", body, headers=key).object(results=list)
    for text in answer.get("warnings") or ():  # an older server has none
        session.warn(str(text))
    results: list[Result] = answer["results"]
    return results


def rehearse(session: Session, operations: Sequence[Operation]) -> list[Result]:
    """What would become of each document; a question on the way to something else, so it passes nothing on."""
    results: list[Result] = _rehearsed(session, operations)["results"]
    return results


def _rehearsed(session: Session, operations: Sequence[Operation]) -> dict[str, Any]:
    body = {"operations": list(operations)}
    return session.client.send("POST", "/batch", body, {"dry_run": "true"}, role="read").object(results=list)


def _key() -> str:
    """Makes a repeat harmless when the connection breaks and nobody knows whether the first one was heard."""
    import os

    return os.urandom(16).hex()


def show(session: Session, results: Sequence[Result], shown: Sequence[Shown], *, single: bool, extra: Iterable[str] = ()) -> None:
    """What a write did, or would do: documents for programs, lines for people, and how much it was for both."""
    rehearsal = session.values.flag("dry-run")
    output = session.output
    if output.human:
        for result in results:
            output.result(result["kind"], result["id"], result["operation"], dry_run=rehearsal)
            if rehearsal:
                for line in changed_lines(result):
                    output.line(f"  {line}")
    elif rehearsal or output.form == "name":
        output.value(rehearsed(results), tuple, names(results))
    elif output.form == "yaml":
        output.yaml({"kind": kind, **document} for kind, document in shown)
    else:
        documents = [document for _, document in shown]
        output.json(documents[0] if single and documents else documents)
    for line in extra:
        session.say(line)
    if results:
        session.say(summary(results, rehearsal))


def names(results: Sequence[Result]) -> list[str]:
    return [f"{result['kind']}/{result['id']}" for result in results]


def rehearsed(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Only what matters of a rehearsal: which document, what would happen, which fields."""
    return [
        {
            "kind": result["kind"],
            "id": result["id"],
            "operation": result["operation"],
            **({"document": result["after"]} if result["operation"] == "create" else {"fields": differences(result)}),
        }
        for result in results
    ]


def differences(result: Result) -> list[dict[str, Any]]:
    found = difference(result["before"], result["after"]) if result["operation"] == "update" else []
    return [
        {"pointer": place, **({} if old is _MISSING else {"before": old}), **({} if new is _MISSING else {"after": new})}
        for place, old, new in found
    ]


def difference(before: Any, after: Any, place: str = "") -> list[tuple[str, Any, Any]]:
    """The places in which two values differ; entries of lists count by id where they have one."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        return [
            item
            for name in names
            for item in difference(before.get(name, _MISSING), after.get(name, _MISSING), f"{place}/{_escaped(name)}")
        ]
    if isinstance(before, list) and isinstance(after, list) and (found := _by_id(before, after)):
        old, new = found
        if [id for id in old if id in new] == [id for id in new if id in old]:
            return difference(old, new, place)
    return [] if before is not _MISSING and before == after and type(before) is type(after) else [(place, before, after)]


def _by_id(before: list[Any], after: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    if not all(isinstance(item, dict) and isinstance(item.get("id"), str) for item in (*before, *after)):
        return None
    return {item["id"]: item for item in before}, {item["id"]: item for item in after}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def changed_lines(result: Result) -> list[str]:
    return [
        f"{item['pointer']}: {_shown(item.get('before', _MISSING))} → {_shown(item.get('after', _MISSING))}"
        for item in differences(result)
    ]


def _shown(value: Any) -> str:
    import json

    return "(none)" if value is _MISSING else json.dumps(value, ensure_ascii=False)


def summary(results: Sequence[Result], rehearsal: bool) -> str:
    """How many of what, and in which revision."""
    counted: dict[str, int] = {}
    for result in results:
        counted[result["operation"]] = counted.get(result["operation"], 0) + 1
    words = {"create": "created", "update": "updated", "delete": "deleted", "unchanged": "unchanged"}
    parts = ", ".join(f"{counted[name]} {word}" for name, word in words.items() if name in counted)
    if rehearsal:
        return f"would be: {parts}; nothing was changed"
    revisions = [result["revision"] for result in results if result["operation"] != "unchanged" and result["revision"]]
    return parts + (f" (revision {max(revisions)})" if revisions else "; nothing to do")
