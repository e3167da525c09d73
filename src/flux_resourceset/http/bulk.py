"""The routes for much at once: batches, whole fleets in and out, and the kinds themselves."""

from __future__ import annotations

import asyncio
import hashlib
import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import __version__, errors, imports, operations, transfer
from flux_resourceset.changes import Entry
from flux_resourceset.drafts import Draft
from flux_resourceset.http import bodies, messages
from flux_resourceset.ledger import Ledger, Once

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
        body = await bodies.read(request, limit=bodies.MAX_BULK_BYTES)
        wanted = operations.parsed(self._ledger.kinds, body)
        batch = operations.Batch(wanted)
        origin = messages.origin(request)

        def render(result: None, entry: Entry | None) -> bytes:
            revision = entry.revision if entry else self._ledger.fleet.revision
            answer = {"revision": revision, "dry_run": dry_run, "warnings": batch.warnings, "results": batch.results(entry)}
            return msgspec.json.encode(answer)

        key = _idempotency_key(request)
        try:
            if key is not None and not dry_run:
                digest = hashlib.sha256(msgspec.json.encode(body, order="deterministic")).hexdigest()
                once = Once(f"{origin.actor} {key}", digest, render)
                return _json(await self._ledger.write_once(batch.work, origin, once))
            result, entry = await self._ledger.write(batch.work, origin, dry_run=dry_run)
        except errors.Refusal as refusal:
            raise batch.named(refusal) from refusal
        return _json(await asyncio.to_thread(render, result, entry))

    async def export(self, request: Request) -> Response:
        history = messages.flag(messages.query(request, frozenset({"history"})), "history")
        return _json(await asyncio.to_thread(transfer.exporting(self._ledger, history)))

    async def load(self, request: Request) -> Response:
        """Documents and tombstones of an export, as one transaction; its history stays out."""
        merge = messages.flag(messages.query(request, frozenset({"merge"})), "merge")
        body = await bodies.read(request, limit=bodies.MAX_BULK_BYTES)
        export = await asyncio.to_thread(transfer.parsed, self._ledger.kinds, body, "the body")
        load = imports.importing(export, "use merge=true to add to what is there", merge=merge)

        def work(draft: Draft) -> Draft:
            load(draft)
            request.state.draft = draft
            return draft

        draft, entry = await self._ledger.write(work, messages.origin(request))
        revision = entry.revision if entry else self._ledger.fleet.revision
        warnings = draft.first_warnings(imports.SHOWN_WARNINGS)
        return messages.json_response({"revision": revision, "documents": export.count, "warnings": warnings})


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise errors.BadRequest("Idempotency-Key must have 1 to 200 visible ASCII characters")
    return key
