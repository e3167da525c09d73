"""Documents of files as one transaction, in which nobody's work is lost: apply, plan, delete, diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import conflicts, document_files, failures
from flux_resourceset.cli.commands import batches, plans
from flux_resourceset.cli.document_files import Document
from flux_resourceset.cli.output import yaml_text

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_MANAGER = "cli"  # who applies, if nobody says so; a pipeline names itself
_PRUNE = "prune"  # for what is shown: the server calls it a deletion


def _read(session: Session, instead: str = "") -> list[Document]:
    sources = session.values.many("filename")
    if not sources:
        raise failures.usage(f"say which files: -f FILE, -f DIRECTORY or -f -{instead}")
    return document_files.read(sources, session.kinds, session.stdin)


# Apply


def apply(session: Session) -> int:
    session.require_write_token()
    operations = _operations(session, _read(session))
    question = f"delete what {_manager(session)} does not apply any more?" if session.values.flag("prune") else None
    results = _shown(batches.submit(session, operations, question=question, tell=lambda plan: _say_pruned(session, plan)))
    documents = [(result["kind"], result["after"]) for result in results if result["change"] != _PRUNE]
    batches.show(session, results, documents, single=False, extra=_kept(results))
    return failures.OK


def plan(session: Session) -> int:
    """The plan of what apply would do."""
    results = _shown(batches.submit(session, _operations(session, _read(session)), dry_run=True))
    plans.show(session, batches.plan_of(session, results), batches.names(results))
    for line in _kept(results):
        session.say(line)
    session.say(batches.summary(results, True))
    return failures.OK


def _operations(session: Session, documents: Sequence[Document]) -> list[batches.Operation]:
    """What the files say, and with --prune that nothing else of their kinds is to be there that this manager applied."""
    values = session.values
    decided = {name: True for name, option in (("force", "force-conflicts"), ("revive", "revive")) if values.flag(option)}
    applied = [
        {"op": "apply", "kind": each.kind.name, "id": each.id, "document": each.body, "manager": _manager(session), **decided}
        for each in documents
    ]
    if not values.flag("prune"):
        for name in ("environment", "selector"):
            if name in values:
                raise failures.usage(f"--{name} says what --prune may delete, and means nothing without it")
        return applied
    return [*applied, *_prunes(session, documents)]


def _prunes(session: Session, documents: Sequence[Document]) -> Iterator[batches.Operation]:
    narrowed = {name: session.values.required(name) for name in ("environment", "selector") if name in session.values}
    kept: dict[str, list[str]] = {}
    for each in documents:
        kept.setdefault(each.kind.name, []).append(each.id)
    if narrowed and "clusters" not in kept:
        raise failures.usage(f"--{next(iter(narrowed))} chooses clusters, and there are none in the files")
    for kind, ids in kept.items():
        where = narrowed if kind == "clusters" else {}
        yield {"op": _PRUNE, "kind": kind, "manager": _manager(session), "keep": ids, **where}


def _manager(session: Session) -> str:
    """An empty name, as an unset variable gives it, is not left out: the server refuses it."""
    return session.values.required("manager") if "manager" in session.values else _MANAGER


def _shown(results: batches.Results) -> batches.Results:
    """What was pruned, by its name."""
    results[:] = [{**result, "change": _PRUNE} if result["op"] == _PRUNE else result for result in results]
    return results


def _say_pruned(session: Session, plan: plans.Plan) -> None:
    for result in plan["results"]:
        if result.get("op") == _PRUNE:
            session.say(f"{result['kind']}/{result['id']} would be pruned")


def _kept(results: Iterable[batches.Result]) -> Iterator[str]:
    """What others changed, and the files did not: it stays."""
    for result in results:
        for item in result.get("kept") or ():
            yield f"{result['kind']}/{result['id']} kept: {item.get('path')} ({conflicts.origin(item)})"


# Delete


def delete(session: Session) -> int:
    session.require_write_token()
    documents = _read(session, "; or which documents: delete KIND ID…")
    operations = [{"op": "delete", "kind": document.kind.name, "id": document.id} for document in documents]
    results = batches.submit(session, operations, question=f"delete {len(documents)} document(s)?")
    batches.show(session, results, [(result["kind"], result["before"]) for result in results], single=False)
    return failures.OK


# Diff


def diff(session: Session) -> int:
    """What apply would do; where it would be refused, what stands in its way, and what it would do if that were decided."""
    operations = _operations(session, _read(session))
    in_the_way: tuple[str, ...] = ()
    try:
        results = batches.submit(session, operations, dry_run=True)
    except client.Problem as problem:
        in_the_way = conflicts.lines(problem.body)
        if not in_the_way:
            raise
        by_force = [{**each, "force": True, "revive": True} if each["op"] == "apply" else each for each in operations]
        results = batches.submit(session, by_force, dry_run=True)
    changed = [result for result in _shown(results) if result["change"] != "unchanged"]
    for result in changed if session.output.human else ():
        _show_difference(session, result)
    plans.show(session, batches.plan_of(session, results), batches.names(changed))
    for line in (*(f"conflict: {line}" for line in in_the_way), *_kept(results), batches.summary(results, True)):
        session.say(line)
    return failures.DIFFERENT if changed or in_the_way else failures.OK


def _show_difference(session: Session, result: dict[str, Any]) -> None:
    name = f"{result['kind']}/{result['id']}"
    before, after = (
        yaml_text.dumped([result[side]]).splitlines() if result[side] is not None else [] for side in ("before", "after")
    )
    for line in difflib.unified_diff(before, after, f"{name} (stored)", f"{name} (file)", lineterm="", n=2):
        meaning = "bold" if line.startswith(("---", "+++")) else line[:1]
        session.output.line(session.output.coloured(line, meaning))
