"""The routes for much at once: batches, whole fleets in and out, and the kinds themselves."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from flux_resourceset import __version__, changes, errors, imports, json_pieces, operations, transfer
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Entry
from flux_resourceset.drafts import Draft
from flux_resourceset.http import bodies, heavy, messages
from flux_resourceset.ledger import Ledger, Once

T = TypeVar("T")

# Steps and seconds. A change to each of ten thousand clusters takes half a million and some seconds; everybody may rehearse,
# so there it ends soon after. Who may write may also write several of that at once.
_REHEARSAL = (2_000_000, 15.0)
_WRITE = (20_000_000, 60.0)
_MAX_IMPORTED = 50_000  # documents and tombstones: several large fleets; what is taken into the fleet is taken between two polls
_KEY = re.compile(r"[\x21-\x7e]{1,200}")  # a UUID has 36 characters


class BulkRoutes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kinds = msgspec.json.encode([kind.described() for kind in ledger.kinds])
        self._kinds_tag = '"' + hashlib.sha256(self._kinds).hexdigest()[:16] + '"'

    async def kinds(self, request: Request) -> Response:
        messages.query(request)
        headers = {"ETag": self._kinds_tag, "X-Server-Version": __version__}
        if messages.is_known(request, self._kinds_tag):
            return Response(None, 304, headers)
        return Response(self._kinds, headers=headers, media_type="application/json")

    async def batch(self, request: Request) -> Response:
        dry_run = messages.flag(messages.query(request, frozenset({"dry_run"})), "dry_run")
        origin, key = messages.origin(request), _idempotency_key(request)
        body = await bodies.read(request, limit=bodies.BULK if request.state.token.role == "write" else bodies.DOCUMENT)
        digest = "" if dry_run or key is None else await heavy.run_for(request, _digest, body)
        budget = Budget(*(_REHEARSAL if dry_run else _WRITE), time.monotonic)
        batch = operations.Batch(await heavy.run_for(request, self._operations, body, budget))
        try:
            if dry_run:
                _, entry = await _while_listening(request, self._ledger.rehearse(batch.work, origin, budget))
            elif key is None:
                _, entry = await self._ledger.write(batch.work, origin, budget)
            else:
                once: Once[None] = Once(
                    f"{origin.actor} {key}", digest, lambda _, entry: b"".join(_answer(batch, entry, dry_run))
                )
                answer = _json(await self._ledger.write_once(batch.work, origin, once, budget))
                await heavy.run_for(request, batch.let_go)
                return answer
        except errors.Refusal as refusal:
            raise await heavy.run_for(request, batch.named, refusal) from refusal
        made = [] if entry is None else [entry]
        del entry
        return await heavy.json_answer(request, _last_answer(batch, made, dry_run))

    def _operations(self, body: Any, budget: Budget) -> list[operations.Operation]:
        try:
            return operations.parsed(self._ledger.kinds, body, budget)
        finally:
            json_pieces.let_go(body, 3)

    async def export(self, request: Request) -> Response:
        history = messages.flag(messages.query(request, frozenset({"history"})), "history")
        await self._ledger.follower.fresh()
        return await heavy.json_answer(request, transfer.exported(self._ledger.follower, history))

    async def load(self, request: Request) -> Response:
        """Documents and tombstones of an export, as one transaction; its history stays out."""
        merge = messages.flag(messages.query(request, frozenset({"merge"})), "merge")
        body = await bodies.read(request, limit=bodies.BULK)
        export = await heavy.run_for(request, self._parsed, body)
        load = imports.importing(export, "use merge=true to add to what is there", merge=merge)

        def work(draft: Draft) -> Draft:
            load(draft)
            request.state.draft = draft
            return draft

        count = export.count
        try:
            draft, entry = await self._ledger.write(work, messages.origin(request), Budget(*_WRITE, time.monotonic))
        finally:
            await heavy.run_for(request, json_pieces.let_go, export.documents, 2)
        revision = entry.revision if entry else self._ledger.fleet.revision
        warnings = draft.first_warnings(imports.SHOWN_WARNINGS)
        return messages.json_response({"revision": revision, "documents": count, "warnings": warnings})

    def _parsed(self, body: Any) -> imports.Export:
        try:
            _check_count(body)
            return transfer.parsed(self._ledger.kinds, body, "the body")
        finally:
            json_pieces.let_go(body, 3)


def _check_count(body: Any) -> None:
    documents = body.get("documents") if isinstance(body, dict) else None
    found = [*documents.values(), body.get("tombstones")] if isinstance(documents, dict) else []
    if sum(len(some) for some in found if isinstance(some, list)) > _MAX_IMPORTED:
        raise errors.BodyTooLarge(
            f"an import has at most {_MAX_IMPORTED} documents and tombstones here; use the command flux-resourceset import"
        )


def _digest(body: Any) -> str:
    return json_pieces.sha256(json_pieces.pieces(body, 2, ordered=True))


def _answer(batch: operations.Batch, entry: Entry | None, dry_run: bool) -> Iterator[bytes]:
    answer = {
        "revision": entry.revision if entry else batch.revision,
        "dry_run": dry_run,
        "warnings": batch.warnings,
        "results": batch.results(entry),
    }
    yield from json_pieces.pieces(answer, 2)


def _last_answer(batch: operations.Batch, made: list[Entry], dry_run: bool) -> Iterator[bytes]:
    """And nobody asks for them any more."""
    yield from _answer(batch, made[0] if made else None, dry_run)
    batch.let_go()
    changes.let_go(made)


async def _while_listening(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Cancelled when the client leaves: nobody would read what comes of it."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # the body is through, so nothing else can come
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise errors.BadRequest("Idempotency-Key must have 1 to 200 visible ASCII characters")
    return key
