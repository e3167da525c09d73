"""The whole fleet out of a server and into one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flux_resourceset import atomic_files, client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import batches, plans

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def export(session: Session) -> int:
    history = {"history": "true"} if session.values.flag("history") else {}
    answer = session.client.get("/export", history)
    content = answer.object(documents=dict, revision=int, checksum=str)  # before a good backup is replaced
    file = session.values.text("file")
    if file is None or file == "-":
        session.output.raw(answer.body)
        return failures.OK
    try:
        atomic_files.replace(file, answer.body)  # for the owner only: it tells everything about the fleet
    except OSError as exc:
        raise failures.usage(f"{file}: cannot be written: {exc.strerror}") from exc
    count = sum(map(len, content["documents"].values()))
    session.data(
        {"file": file, "revision": content["revision"], "documents": count, "checksum": content["checksum"]},
        f"{count} documents of revision {content['revision']} written to {file}",
        name=file,
    )
    return failures.OK


def load(session: Session) -> int:
    session.require_write_token()
    file = session.values.required("file")
    try:
        if file == "-":
            raw: bytes = session.stdin.buffer.read()
        else:
            with open(file, "rb") as stream:
                raw = stream.read()
    except OSError as exc:
        raise failures.usage(f"{file}: cannot be read: {exc.strerror}") from exc
    count = _count(file, raw)
    merge = {"merge": "true"} if session.values.flag("merge") else {}
    try:
        answer = _imported(session, raw, merge, f"import {count} documents into {session.target.url}?")
    except client.Problem as problem:
        if problem.status != 409 or merge:
            raise
        raise failures.Failure(
            failures.CONFLICT, "the store is not empty; say --merge to load the file into it all the same"
        ) from problem
    if session.values.flag("dry-run"):
        results = batches.planned(answer)
        batches.show(session, results, (), single=False)
        return failures.OK
    plans.warn(session, answer)
    line = f"{answer['documents']} documents imported; the fleet is at revision {answer['revision']}"
    session.data(answer, line, name=str(answer["revision"]))
    return failures.OK


def _imported(session: Session, raw: bytes, merge: dict[str, str], question: str) -> plans.Plan:
    """What the server says of an import that it did, or of one that it would do."""

    def plan() -> plans.Plan:
        return plans.asked(session, "POST", "/import", raw, merge)

    def write(consent: plans.Headers) -> dict[str, object]:
        return session.client.send("POST", "/import", raw, merge, consent).object(documents=int, revision=int)

    return plan() if session.values.flag("dry-run") else plans.carry_out(session, question, plan, write)


def _count(file: str, raw: bytes) -> int:
    """How many documents an export holds; the server checks everything else."""
    try:
        by_kind = json.loads(raw)["documents"]
        return sum(len(documents) for documents in by_kind.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise failures.usage(f"{file}: is no export; make one with: flux-resourceset-cli export FILE") from exc
