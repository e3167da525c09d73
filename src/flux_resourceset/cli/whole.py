"""The whole fleet out of a server and into one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from flux_resourceset import client
from flux_resourceset.cli import failures

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def export(session: Session) -> int:
    history = {"history": "true"} if session.values.flag("history") else {}
    body = session.client.get("/export", history).body
    file = session.values.text("file")
    if file is None or file == "-":
        session.output.raw(body)
        return failures.OK
    draft = f"{file}.{os.getpid()}"
    try:
        # readable by the owner only: it tells everything about the fleet
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, file)
    except OSError as exc:
        raise failures.usage(f"{file}: cannot be written: {exc.strerror}") from exc
    content = json.loads(body)
    count = sum(map(len, content["documents"].values()))
    session.data(
        {"file": file, "revision": content["revision"], "documents": count, "checksum": content["checksum"]},
        f"{count} documents of revision {content['revision']} written to {file}",
    )
    return failures.OK


def load(session: Session) -> int:
    session.writes()
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
    session.confirm(f"import {count} documents into {session.target.url}?")
    merge = {"merge": "true"} if session.values.flag("merge") else {}
    try:
        answer = session.client.send("POST", "/import", raw, merge).json()
    except client.Problem as problem:
        if problem.status != 409 or merge:
            raise
        raise failures.Failure(
            failures.CONFLICT, "the store is not empty; say --merge to load the file into it all the same"
        ) from problem
    session.data(answer, f"{answer['documents']} documents imported; the fleet is at revision {answer['revision']}")
    return failures.OK


def _count(file: str, raw: bytes) -> int:
    """How many documents an export holds; the server checks everything else."""
    try:
        found = json.loads(raw)["documents"]
        return sum(len(documents) for documents in found.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise failures.usage(f"{file}: is no export; make one with: flux-resourceset-cli export FILE") from exc
