"""The routes for much at once: batches, whole fleets in and out, and the kinds themselves."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import __version__, applications, errors, history, imports, json_pieces, operations, outcomes, transfer
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Setter
from flux_resourceset.differences import Steps
from flux_resourceset.drafts import Draft
from flux_resourceset.http import bodies, long_answers, messages, revisions, writes
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Idempotency, Outcome
from flux_resourceset.overlay import Key
from flux_resourceset.readings import Readings

_MAX_IMPORTED = 50_000  # documents and tombstones: several large fleets; what is taken into the fleet is taken between two polls
_MERGE = "use merge=true to add to what is there"
T = TypeVar("T")

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

    async def plan(self, request: Request) -> Response:
        """A dry run by its path."""
        return await self._plan(request, messages.query(request, frozenset({"full", "cluster"})))

    async def batch(self, request: Request) -> Response:
        params = writes.query(request)
        origin, key = messages.origin(request), _idempotency_key(request)
        if writes.is_dry_run(params):
            return await self._plan(request, params)

        def parsed(body: Any) -> tuple[operations.Batch, str, Budget]:
            budget = writes.write_budget()  # counts from here: uploads may take their time
            digest = "" if key is None else _digest(body)
            return operations.Batch(operations.parsed(self._ledger.kinds, body, budget)), digest, budget

        consent = writes.consent(request)
        batch, digest, budget = await bodies.read_bulk(request, parsed)

        def results(outcome: Outcome[None]) -> Iterator[operations.Result]:
            return self._results(batch, outcome)

        if key is not None:
            idempotency: Idempotency[None] = Idempotency(
                f"{origin.actor} {key}", digest, lambda outcome: b"".join(writes.answer(outcome, results))
            )
            writing = self._ledger.write_once(batch.work, origin, idempotency, budget, batch.blamed, consent)
            answer = await self._explained(batch, writing)
            revisions.made_before(request, answer)
            return _json(answer)
        outcome = [await self._explained(batch, self._ledger.write(batch.work, origin, budget, batch.blamed, consent))]
        revisions.made(request, outcome[0].revision)
        return await long_answers.json_answer(request, writes.last_answer(outcome, results))

    async def _plan(self, request: Request, params: Mapping[str, str]) -> Response:
        _idempotency_key(request)  # must be one, though it is neither used nor kept
        unread = _UnreadBatch(await bodies.receive_bulk(request))
        planning = writes.plan(
            self._ledger, request, params, unread.work, lambda outcome: self._results(unread.batch, outcome), unread.blamed
        )
        return await self._explained(unread, planning)

    def _results(self, batch: operations.Batch, outcome: Outcome[None]) -> Iterator[operations.Result]:
        past = history.Past(self._ledger.kinds, self._ledger.follower.store)

        def last_set(places: Mapping[Key, list[Steps]]) -> Mapping[Key, Mapping[Steps, Setter]]:
            try:
                return past.last_set(places, outcome.base_revision)
            except errors.Refusal:  # what was written is answered in any case
                return {}

        return batch.results(outcome.entry, last_set)

    async def _explained(self, batch: operations.Batch | _UnreadBatch, doing: Awaitable[T]) -> T:
        """Conflicts of what is applied, with who changed what meanwhile: told when nobody has to wait for it any more."""
        try:
            return await doing
        except errors.Conflict:
            conflicts, buried, until = batch.conflicts, batch.buried, batch.base_revision
            if not conflicts:
                raise
        raise await self._readings.told(
            lambda past: applications.refusal(conflicts, buried, functools.partial(past.last_set, until=until))
        )

    async def export(self, request: Request) -> Response:
        params = messages.query(request, frozenset({"history", "at"}))
        history, at = messages.flag(params, "history"), messages.point(params, "at")
        if history and at is not None:
            raise errors.BadQuery("history does not go with at; export the history of today, which holds that of every day")
        self._ledger.follower.check_reachable()  # a backup is not to be made from what may be old
        state = await self._readings.state(at)
        pieces = transfer.exported(state, self._ledger.follower.store if history else None)
        return await long_answers.json_answer(request, pieces, messages.at_revision(state.revision))

    async def load(self, request: Request) -> Response:
        """Documents and tombstones of an export, as one transaction; its history stays out."""
        params = writes.query(request, frozenset({"merge"}))
        merge = messages.flag(params, "merge")
        if writes.is_dry_run(params):
            return await self._plan_import(request, params, merge)
        export = await bodies.read_bulk(request, self._export)
        load = imports.importing(export, _MERGE, merge=merge)

        count = export.count
        try:
            outcome = await writes.write(self._ledger, request, load, writes.write_budget())
        finally:
            await bodies.let_go(request, export.documents, 2)
        warnings = outcomes.first(outcome.warnings, imports.SHOWN_WARNINGS)
        answer = {"revision": outcome.revision, "documents": count, "warnings": warnings}
        return messages.json_response(answer, warnings=outcome.shown_warnings)

    async def _plan_import(self, request: Request, params: Mapping[str, str], merge: bool) -> Response:
        unread = await bodies.receive_bulk(request)

        def work(draft: Draft) -> None:
            imports.importing(unread.read(self._export), _MERGE, merge=merge)(draft)

        return await writes.plan(self._ledger, request, params, work, _imported)

    def _export(self, body: Any) -> imports.Export:
        _check_count(body)
        return transfer.parsed(self._ledger.kinds, body, "the body")


class _UnreadBatch:
    """One whose body is read when its turn has come, by the thread that carries it out: what waits for a turn costs no more
    than its bytes, however many wait."""

    def __init__(self, body: bodies.Unread) -> None:
        self._body = body
        self.batch = operations.Batch([])

    def work(self, draft: Draft) -> None:
        self.batch = self._body.read(lambda body: operations.Batch(operations.parsed(draft.kinds, body, draft.budget)))
        self.batch.work(draft)

    def blamed(self, refusal: errors.Refusal) -> errors.Refusal:
        return self.batch.blamed(refusal)

    @property
    def conflicts(self) -> list[applications.Conflict]:
        return self.batch.conflicts

    @property
    def buried(self) -> list[applications.Buried]:
        return self.batch.buried

    @property
    def base_revision(self) -> int:
        return self.batch.base_revision


def _check_count(body: Any) -> None:
    documents = body.get("documents") if isinstance(body, dict) else None
    arrays = [*documents.values(), body.get("tombstones")] if isinstance(documents, dict) else []
    if sum(len(some) for some in arrays if isinstance(some, list)) > _MAX_IMPORTED:
        raise errors.BodyTooLarge(
            f"an import has at most {_MAX_IMPORTED} documents and tombstones here; use the command flux-resourceset import"
        )


def _digest(body: Any) -> str:
    return json_pieces.sha256(json_pieces.pieces(body, 2, ordered=True))


def _imported(outcome: Outcome[None]) -> Iterator[operations.Result]:
    for change in outcome.entry.changes if outcome.entry else ():
        yield operations.result(0, "import", (change.kind, change.id), None, outcome.entry, change)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise errors.BadRequest("Idempotency-Key must have 1 to 200 visible ASCII characters")
    return key
