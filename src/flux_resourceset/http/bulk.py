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

from flux_resourceset import __version__, changes, errors, imports, json_pieces, operations, outcomes, transfer
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Origin
from flux_resourceset.drafts import Draft
from flux_resourceset.http import bodies, long_answers, messages
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Idempotency, Outcome
from flux_resourceset.readings import Readings

T = TypeVar("T")

# Steps and seconds. A change to each of ten thousand clusters takes half a million and some seconds; everybody may ask for a
# dry run, so there it ends soon after. Who may write may also write several of that at once.
_DRY_RUN = (2_000_000, 15.0)
_WRITE = (20_000_000, 60.0)
_MAX_IMPORTED = 50_000  # documents and tombstones: several large fleets; what is taken into the fleet is taken between two polls
_KEY = re.compile(r"[\x21-\x7e]{1,200}")  # a UUID has 36 characters


class BulkRoutes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._readings = Readings(ledger.follower)
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
        if dry_run:
            return await self._dry_run(request, origin)

        def parsed(body: Any) -> tuple[operations.Batch, str, Budget]:
            budget = Budget(*_WRITE, time.monotonic)  # counts from here: uploads may take their time
            digest = "" if key is None else _digest(body)
            return operations.Batch(operations.parsed(self._ledger.kinds, body, budget)), digest, budget

        batch, digest, budget = await bodies.read_bulk(request, parsed)
        if key is not None:
            idempotency: Idempotency[None] = Idempotency(
                f"{origin.actor} {key}", digest, lambda outcome: b"".join(_answer(batch, outcome, dry_run=False))
            )
            return _json(await self._ledger.write_once(batch.work, origin, idempotency, budget, batch.blamed))
        outcome = [await self._ledger.write(batch.work, origin, budget, batch.blamed)]
        return await long_answers.json_answer(request, _last_answer(batch, outcome, dry_run=False))

    async def _dry_run(self, request: Request, origin: Origin) -> Response:
        unread = _UnreadBatch(await bodies.receive_bulk(request))
        budget = Budget(*_DRY_RUN, time.monotonic)
        rehearsal = self._ledger.rehearse(unread.work, origin, budget, unread.blamed)
        outcome = [await _while_listening(request, rehearsal)]
        return await long_answers.json_answer(request, _last_answer(unread.batch, outcome, dry_run=True))

    async def export(self, request: Request) -> Response:
        params = messages.query(request, frozenset({"history", "at"}))
        history, at = messages.flag(params, "history"), messages.point(params, "at")
        if history and at is not None:
            raise errors.BadQuery("history does not go with at; export the history of today, which holds that of every day")
        state = await self._readings.state(at)
        pieces = transfer.exported(state, self._ledger.follower.store if history else None)
        return await long_answers.json_answer(request, pieces, messages.at_revision(state.revision))

    async def load(self, request: Request) -> Response:
        """Documents and tombstones of an export, as one transaction; its history stays out."""
        merge = messages.flag(messages.query(request, frozenset({"merge"})), "merge")
        export = await bodies.read_bulk(request, self._export)
        load = imports.importing(export, "use merge=true to add to what is there", merge=merge)

        count = export.count
        try:
            outcome = await self._ledger.write(load, messages.origin(request), Budget(*_WRITE, time.monotonic))
        finally:
            await bodies.let_go(request, export.documents, 2)
        warnings = outcomes.first(outcome.warnings, imports.SHOWN_WARNINGS)
        answer = {"revision": outcome.revision, "documents": count, "warnings": warnings}
        return messages.json_response(answer, warnings=outcome.shown_warnings)

    def _export(self, body: Any) -> imports.Export:
        _check_count(body)
        return transfer.parsed(self._ledger.kinds, body, "the body")


class _UnreadBatch:
    """One whose body is read when its turn has come, by the thread that carries it out: what waits for a turn costs no more
    than its bytes, however many wait."""

    batch: operations.Batch

    def __init__(self, body: bodies.Unread) -> None:
        self._body = body

    def work(self, draft: Draft) -> None:
        self.batch = self._body.read(lambda body: operations.Batch(operations.parsed(draft.kinds, body, draft.budget)))
        self.batch.work(draft)

    def blamed(self, refusal: errors.Refusal) -> errors.Refusal:
        return self.batch.blamed(refusal)


def _check_count(body: Any) -> None:
    documents = body.get("documents") if isinstance(body, dict) else None
    arrays = [*documents.values(), body.get("tombstones")] if isinstance(documents, dict) else []
    if sum(len(some) for some in arrays if isinstance(some, list)) > _MAX_IMPORTED:
        raise errors.BodyTooLarge(
            f"an import has at most {_MAX_IMPORTED} documents and tombstones here; use the command flux-resourceset import"
        )


def _digest(body: Any) -> str:
    return json_pieces.sha256(json_pieces.pieces(body, 2, ordered=True))


def _answer(batch: operations.Batch, outcome: Outcome[None], dry_run: bool) -> Iterator[bytes]:
    answer = {
        "revision": outcome.revision,
        "dry_run": dry_run,
        "warnings": outcome.shown_warnings,
        "results": batch.results(outcome.entry),
    }
    yield from json_pieces.pieces(answer, 2)


def _last_answer(batch: operations.Batch, outcomes: list[Outcome[None]], dry_run: bool) -> Iterator[bytes]:
    """And nobody asks for the outcome any more."""
    yield from _answer(batch, outcomes[0], dry_run)
    entry = outcomes.pop().entry
    entries = [] if entry is None else [entry]
    del entry
    changes.let_go(entries)


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
