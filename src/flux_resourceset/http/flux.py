"""The routes that Flux polls: prepared answers by cluster and view, single inputs of these, and the fleet list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import errors, selectors
from flux_resourceset.changes import Document
from flux_resourceset.follower import Follower
from flux_resourceset.http import poll
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.readings import Readings

LIST_FILTERS = ("environment", "selector")


class Answer(Response):
    """A Flux answer with exactly the headers of the fast path."""

    def __init__(self, body: bytes, packed: bool) -> None:
        super().__init__()
        self.body = body
        self.raw_headers = poll.headers(body, packed)


def wants_gzip(request: Request) -> bool:
    return poll.accepts_gzip([value.encode("latin-1") for value in request.headers.getlist("accept-encoding")])


class FluxRoutes:
    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._readings = Readings(follower)

    def view(self, endpoint: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self._polled(request, f"{request.path_params['cluster_dns']}/{endpoint}")

        return answer

    def input(self, endpoint: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self._polled(request, f"{request.path_params['cluster_dns']}/{endpoint}/{request.path_params['id']}")

        return answer

    async def _polled(self, request: Request, key: str) -> Response:
        packed = wants_gzip(request)
        return Answer(await self._follower.wait_for_answer(key.encode(), packed), packed)

    async def clusters(self, request: Request) -> Response:
        environment = request.query_params.get("environment")
        check_environment(self._follower.kinds, environment)
        selector = selectors.parse(request.query_params.get("selector", ""))

        def matches(cluster: Document) -> bool:
            return environment in (None, cluster["environment"]) and selector(cluster["labels"])

        packed = wants_gzip(request)
        return Answer(await self._readings.fleet_list(matches, LIST_FILTERS, packed), packed)


def check_environment(kinds: Kinds, environment: str | None) -> None:
    """A mistyped environment must not look like an empty one."""
    known = kinds.environments
    if environment is not None and environment not in known:
        raise errors.BadFilter(
            f"environment is {environment!r}; it must be one of {', '.join(known)}",
            violations=[errors.Violation("/environment", f"must be one of {', '.join(known)}")],
        )
