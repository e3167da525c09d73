"""Documents of files as one transaction: apply, plan, delete, diff."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import document_files, failures
from flux_resourceset.cli.commands import batches, plans
from flux_resourceset.cli.document_files import Document
from flux_resourceset.cli.output import yaml_text

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_ASKED_ONE_BY_ONE = 8  # more documents of one kind than this, and listing them all is quicker
_ATTEMPTS = 5  # against others who create or delete the same documents meanwhile


def _read(session: Session) -> list[Document]:
    sources = session.values.many("filename")
    if not sources:
        raise failures.usage("say which files: -f FILE, -f DIRECTORY or -f -")
    return document_files.read(sources, session.kinds, session.stdin)


def apply(session: Session) -> int:
    session.require_write_token()
    results = _apply(session, _read(session), session.values.flag("dry-run"))
    batches.show(session, results, [(result["kind"], result["after"]) for result in results], single=False)
    return failures.OK


def plan(session: Session) -> int:
    """The plan of what apply would do."""
    results = _apply(session, _read(session), dry_run=True)
    plans.show(session, batches.plan_of(session, results), batches.names(results))
    session.say(batches.summary(results, True))
    return failures.OK


def _apply(session: Session, documents: list[Document], dry_run: bool) -> batches.Results:
    """Create what is not there and replace what is, whoever does the same meanwhile."""
    for attempt in range(_ATTEMPTS):
        existing = _existing(session, documents)
        operations = [
            {
                "op": "replace" if (document.kind.name, document.id) in existing else "create",
                "kind": document.kind.name,
                "id": document.id,
                "document": document.body,
            }
            for document in documents
        ]
        try:
            return batches.submit(session, operations, dry_run=dry_run)
        except client.Problem as problem:
            raced = problem.status == 404 or (problem.code == "already-exists" and problem.index is not None)
            if not raced or attempt + 1 == _ATTEMPTS or _existing(session, documents) == existing:
                raise
    raise AssertionError("the last attempt returns or raises")


def _existing(session: Session, documents: list[Document]) -> set[tuple[str, str]]:
    by_kind: dict[str, list[str]] = {}
    for document in documents:
        by_kind.setdefault(document.kind.name, []).append(document.id)
    existing: set[tuple[str, str]] = set()
    for kind, ids in by_kind.items():
        if len(ids) > _ASKED_ONE_BY_ONE:
            existing |= {(kind, item["id"]) for item in session.client.get(client.path(kind)).objects()}
        else:
            existing |= {(kind, id) for id in ids if _exists(session, kind, id)}
    return {(kind, id) for kind, id in existing if id in by_kind[kind]}


def _exists(session: Session, kind: str, id: str) -> bool:
    try:
        session.client.get(client.path(kind, id))
    except client.Problem as problem:
        if problem.status == 404:
            return False
        raise
    return True


def delete(session: Session) -> int:
    session.require_write_token()
    documents = _read(session)
    operations = [{"op": "delete", "kind": document.kind.name, "id": document.id} for document in documents]
    results = batches.submit(session, operations, question=f"delete {len(documents)} document(s)?")
    batches.show(session, results, [(result["kind"], result["before"]) for result in results], single=False)
    return failures.OK


# Diff


def diff(session: Session) -> int:
    results = _apply(session, _read(session), dry_run=True)
    changed = [result for result in results if result["change"] != "unchanged"]
    if session.output.human:
        for result in changed:
            _show_difference(session, result)
    plans.show(session, batches.plan_of(session, results), batches.names(changed))
    session.say(batches.summary(results, True))
    return failures.DIFFERENT if changed else failures.OK


def _show_difference(session: Session, result: dict[str, Any]) -> None:
    name = f"{result['kind']}/{result['id']}"
    before, after = (
        yaml_text.dumped([result[side]]).splitlines() if result[side] is not None else [] for side in ("before", "after")
    )
    for line in difflib.unified_diff(before, after, f"{name} (stored)", f"{name} (file)", lineterm="", n=2):
        meaning = "bold" if line.startswith(("---", "+++")) else line[:1]
        session.output.line(session.output.coloured(line, meaning))
