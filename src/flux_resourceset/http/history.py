"""The routes of what was: the history of documents, answers of any day, and why an input is as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import errors, history, json_pieces, plans
from flux_resourceset.follower import Follower
from flux_resourceset.history import Diff
from flux_resourceset.http import long_answers, messages, writes
from flux_resourceset.kinds.model import Kind, Kinds
from flux_resourceset.readings import Readings

LIMIT = 100  # changes of a document, if nothing is said
MAX_LIMIT = 1000  # a page; for more there is `before`

_AT = frozenset({"at"})


class HistoryRoutes:
    def __init__(self, follower: Follower) -> None:
        self._kinds = follower.kinds
        self._readings = Readings(follower)

    def history(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = messages.query(request, frozenset({"limit", "before"}))
            limit = messages.whole_number(params, "limit", 1) or LIMIT
            if limit > MAX_LIMIT:
                raise errors.BadQuery(f"limit is {limit}; it must be at most {MAX_LIMIT}, so page with before")
            before = messages.whole_number(params, "before", 1)
            told = await self._readings.history(kind.name, request.path_params["id"], before, limit)
            return await long_answers.json_answer(request, json_pieces.pieces(told, 1))

        return endpoint

    async def inputs(self, request: Request) -> Response:
        at = messages.point(messages.query(request, _AT), "at")
        path = request.path_params
        answered = await self._readings.answer(path["id"], path["view"], at)
        return Response(answered.body, headers=messages.at_revision(answered.revision), media_type="application/json")

    async def provenance(self, request: Request) -> Response:
        at = messages.point(messages.query(request, _AT), "at")
        path = request.path_params
        revision, told = await self._readings.provenance(path["id"], path["view"], path["input"], at)
        return await long_answers.json_answer(request, json_pieces.pieces(told, 1), messages.at_revision(revision))

    async def diff(self, request: Request) -> Response:
        params = messages.query(request, frozenset({"from", "to", "kind", "cluster", "full"}))
        first, last = messages.point(params, "from"), messages.point(params, "to")
        kind, cluster, full = params.get("kind"), params.get("cluster"), messages.flag(params, "full")
        if first is None:
            raise errors.BadQuery("from is required: the revision or the time to begin with")
        if kind is not None and kind not in self._kinds.by_name:
            raise errors.BadQuery(f"kind is {kind!r}; it must be one of {', '.join(self._kinds.by_name)}")
        found = await self._readings.diff(first, last, writes.dry_run_budget())
        return await long_answers.json_answer(request, _told(self._kinds, found, kind, cluster, full))


def _told(kinds: Kinds, found: Diff, kind: str | None, cluster: str | None, full: bool) -> Iterator[bytes]:
    groups = plans.grouped(found.effect)
    answer = {
        "from": found.first,
        "to": found.last,
        "summary": {"documents": len(found.changed), **plans.counts(found.effect)},
        "groups": plans.described(groups, full, cluster),
        "groups_total": len(groups),
        "documents": _documents(kinds, found, kind),
    }
    yield from json_pieces.pieces(answer, 2)


def _documents(kinds: Kinds, found: Diff, kind: str | None) -> Iterator[dict[str, Any]]:
    for item in found.changed:
        if kind in (None, item.kind):
            fields = history.fields(item, kinds.references(item.kind))
            yield {"kind": item.kind, "id": item.id, "operation": item.operation, "fields": fields}
