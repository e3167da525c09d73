"""The routes of what runs where: definitions by the clusters that use them, and clusters that are no more."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import errors, json_pieces, rules, selectors
from flux_resourceset.changes import Document
from flux_resourceset.follower import Follower
from flux_resourceset.http import flux, long_answers, messages
from flux_resourceset.kinds.model import Referenced
from flux_resourceset.readings import Readings

_WINDOW = frozenset({"limit", "offset"})
_FILTERS = _WINDOW | {"environment", "selector"}


class WhereaboutsRoutes:
    def __init__(self, follower: Follower) -> None:
        self._kinds = follower.kinds
        self._readings = Readings(follower)

    async def usage(self, request: Request) -> Response:
        """Of a kind, or of one definition."""
        params = messages.query(request, _FILTERS)
        offset, end = _window(params)
        environment, selector = params.get("environment"), selectors.parse(params.get("selector", ""))
        flux.check_environment(self._kinds, environment)
        kind, id = self._kind(request.path_params["kind"]), request.path_params.get("id")

        def matches(cluster: Document) -> bool:
            return environment in (None, cluster["environment"]) and selector(cluster["labels"])

        used = await self._readings.usage(kind, id, matches)
        if used is None:
            raise rules.not_found(kind.name, str(id))
        headers = {"X-Total-Count": str(len(used.usage)), **messages.at_revision(used.revision)}
        return await long_answers.json_answer(request, json_pieces.pieces(used.usage.rows(offset, end), 1), headers)

    def _kind(self, name: str) -> Referenced:
        kind = self._kinds.referenced_by_name.get(name)
        if kind is None:
            known = ", ".join(self._kinds.referenced_by_name)
            raise errors.NotFound(f"clusters refer to no kind {name!r}; there are {known}")
        return kind

    async def tombstones(self, request: Request) -> Response:
        offset, end = _window(messages.query(request, _WINDOW))
        buried = await self._readings.tombstones(offset, end)
        headers = {"X-Total-Count": str(buried.total), **messages.at_revision(buried.revision)}
        return await long_answers.json_answer(request, json_pieces.pieces(buried.rows, 1), headers)


def _window(params: Mapping[str, str]) -> tuple[int, int | None]:
    """The first row and the one behind the last."""
    limit, offset = messages.whole_number(params, "limit", 1), messages.whole_number(params, "offset", 0) or 0
    return offset, None if limit is None else offset + limit
