"""The routes of the change log: transactions by what they changed, in either direction, and one by its revision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import changes, errors, json_pieces
from flux_resourceset.changes import Entry
from flux_resourceset.follower import Follower
from flux_resourceset.http import feed, long_answers, messages
from flux_resourceset.readings import Readings

LIMIT = 100  # transactions, if nothing is said
MAX_LIMIT = 1000  # a page; for more there are `after` and `before`

_FILTERS = frozenset({"kind", "id", "actor", "since", "until", "limit", "before", "after"})


class LogRoutes:
    def __init__(self, follower: Follower, followed: feed.Feed) -> None:
        self._follower = follower
        self._feed = followed
        self._readings = Readings(follower)

    async def changes(self, request: Request) -> Response:
        if feed.is_wanted(request):
            return await self._feed.answer(request)
        params = messages.query(request, _FILTERS | {feed.SINCE})
        if feed.SINCE in params:
            raise errors.BadQuery(f"{feed.SINCE} goes with Accept: {feed.MEDIA_TYPE}; for a list say after")
        query = _query(params)
        return await long_answers.json_answer(request, _written(await self._readings.find(query)))

    async def change(self, request: Request) -> Response:
        messages.query(request)
        text = request.path_params["revision"]
        entries = await self._readings.entry(int(text)) if re.fullmatch(r"[0-9]{1,15}", text) else []
        if not entries:
            state = await self._follower.fresh()
            raise errors.NotFound(f"revision {text} was not found; the newest is {state.revision}")
        return await long_answers.json_answer(request, _one_written(entries))


def _query(params: Mapping[str, str]) -> changes.Query:
    limit = messages.whole_number(params, "limit", 1) or LIMIT
    if limit > MAX_LIMIT:
        raise errors.BadQuery(f"limit is {limit}; it must be at most {MAX_LIMIT}, so page with after or before")
    return changes.Query(
        kind=params.get("kind"),
        id=params.get("id"),
        actor=params.get("actor"),
        since=messages.moment(params, "since"),
        until=messages.moment(params, "until"),
        before=messages.whole_number(params, "before", 1),
        after=messages.whole_number(params, "after", 0),
        limit=limit,
    )


def _written(pages: Iterator[list[Entry]]) -> Iterator[bytes]:
    before = b"["
    for page in pages:
        for entry in page:
            yield before
            yield from json_pieces.pieces(entry, 2)
            before = b","
        del entry
        changes.let_go(page)
    yield b"]" if before == b"," else b"[]"


def _one_written(entries: list[Entry]) -> Iterator[bytes]:
    yield from json_pieces.pieces(entries[0], 2)
    changes.let_go(entries)
