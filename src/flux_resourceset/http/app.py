"""The ASGI application: the gate that every request passes, and the table of routes that the kinds make."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flux_resourceset import __version__, errors, openapi
from flux_resourceset.follower import Follower
from flux_resourceset.http import (
    auth,
    bulk,
    crud,
    feed,
    flux,
    history,
    long_answers,
    messages,
    metrics,
    poll,
    problems,
    reverting,
    revisions,
    whereabouts,
)
from flux_resourceset.http import log as change_log
from flux_resourceset.http.auth import Access
from flux_resourceset.kinds.model import CLUSTERS, Kinds
from flux_resourceset.ledger import Ledger
from flux_resourceset.tokens import Principal, Right, Tokens

log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]

CLIENT_LEFT = 499  # in the metrics only: nobody is there to read an answer

_MAKING = frozenset({"post", "put", "patch"})  # methods by which a document becomes what it is to be

_USABLE_ID = re.compile(poll.USABLE_ID)


class Endpoint(NamedTuple):
    """One method of a path, and what it asks of whoever calls it."""

    access: Access
    handler: Handler


Endpoints = Mapping[str, Endpoint]


class Resource:
    """One path with its methods."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.endpoints = {**endpoints, "HEAD": endpoints["GET"]} if "GET" in endpoints else dict(endpoints)
        self.is_public = any(endpoint.access is Access.PUBLIC for endpoint in endpoints.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self.endpoints.get(scope["method"])
        if endpoint is None:
            allowed = ", ".join(sorted(self.endpoints))
            raise errors.MethodNotAllowed(
                f"{scope['method']} is not possible here; there is {allowed}", headers={"Allow": allowed}
            )
        response = await endpoint.handler(Request(scope, receive))
        await response(scope, receive, send)


class ResourceRoute(Route):
    def __init__(self, path: str, endpoints: Endpoints) -> None:
        self.resource = Resource(endpoints)
        super().__init__(path, self.resource)

    def enter(self, scope: Scope) -> bool:
        """Whether the path is this one; then the scope knows what it says."""
        match, child = self.matches(scope)
        if match is not Match.FULL:
            return False
        scope.update(child)
        return True


def routes(
    kinds: Kinds,
    ledger: Ledger,
    measures: metrics.Metrics,
    document: Callable[[], bytes],
    writable: bool,
    openapi_public: bool = True,
    followed: feed.Feed | None = None,
) -> list[ResourceRoute]:
    """Every path that is served, and what each of its methods asks for; openapi.py describes the same."""
    own = _OwnRoutes(ledger.follower, measures, document)
    polled = flux.FluxRoutes(ledger.follower)
    table: dict[str, Endpoints] = {
        "/health": {"GET": Endpoint(Access.PUBLIC, own.health)},
        "/ready": {"GET": Endpoint(Access.PUBLIC, own.ready)},
        "/openapi.yaml": {"GET": Endpoint(Access.PUBLIC if openapi_public else Access.READ, own.openapi)},
        "/openapi.json": {"GET": Endpoint(Access.PUBLIC if openapi_public else Access.READ, own.openapi_json)},
        "/metrics": {"GET": Endpoint(Access.READ, own.metrics)},
        "/whoami": {"GET": Endpoint(Access.KNOWN, own.whoami)},
        "/api/v2/flux/clusters": {"GET": Endpoint(Access.READ, polled.clusters)},
    }
    for kind in kinds.referenced:
        table[poll.view_route(kind)] = {"GET": Endpoint(Access.VIEW, polled.view(kind.endpoint))}
        table[poll.input_route(kind)] = {"GET": Endpoint(Access.VIEW, polled.input(kind.endpoint))}
    if writable:
        table |= _crud_routes(kinds, crud.CrudRoutes(ledger))
        table |= _history_routes(kinds, history.HistoryRoutes(ledger.follower))
        where = whereabouts.WhereaboutsRoutes(ledger.follower)
        many, reverts = bulk.BulkRoutes(ledger), reverting.RevertRoutes(ledger)
        logged = change_log.LogRoutes(ledger.follower, followed or feed.Feed(ledger.follower, measures))
        table |= {
            "/changes/{revision}/revert": {"POST": Endpoint(Access.WRITE_UNLESS_DRY_RUN, reverts.change)},
            "/revert": {"POST": Endpoint(Access.WRITE_UNLESS_DRY_RUN, reverts.fleet)},
            "/changes": {"GET": Endpoint(Access.READ, logged.changes)},
            "/changes/{revision}": {"GET": Endpoint(Access.READ, logged.change)},
            "/usage/{kind}": {"GET": Endpoint(Access.READ, where.usage)},
            "/usage/{kind}/{id}": {"GET": Endpoint(Access.READ, where.usage)},
            "/tombstones": {"GET": Endpoint(Access.READ, where.tombstones)},
            "/kinds": {"GET": Endpoint(Access.READ, many.kinds)},
            "/plan": {"POST": Endpoint(Access.READ, many.plan)},
            "/batch": {"POST": Endpoint(Access.WRITE_UNLESS_DRY_RUN, many.batch)},
            "/export": {"GET": Endpoint(Access.READ, many.export)},
            "/import": {"POST": Endpoint(Access.WRITE_UNLESS_DRY_RUN, many.load)},
        }
    return [ResourceRoute(path, endpoints) for path, endpoints in table.items()]


def _crud_routes(kinds: Kinds, operators: crud.CrudRoutes) -> dict[str, Endpoints]:
    table: dict[str, Endpoints] = {}
    for kind in kinds:
        collection = {
            "get": Endpoint(Access.READ, operators.list(kind)),
            "post": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.create(kind)),
        }
        document = {
            "get": Endpoint(Access.READ, operators.get(kind)),
            "put": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.replace(kind)),
            "patch": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.merge(kind)),
            "delete": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.delete(kind)),
        }
        for level, path, every in (("resource", f"/{kind.name}", collection), ("instance", f"/{kind.name}/{{id}}", document)):
            if kind.methods[level]:
                table[path] = {m.upper(): endpoint for m, endpoint in every.items() if m in kind.methods[level]}
        if _MAKING & {*kind.methods["resource"], *kind.methods["instance"]}:
            table[f"/{kind.name}/{{id}}/revert"] = {"POST": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.revert(kind))}
    for field, kind in kinds.by_field.items():
        table[f"/{CLUSTERS}/{{id}}/{field}/{{part}}"] = {
            "GET": Endpoint(Access.READ, operators.get_reference(kind)),
            "PUT": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.put_reference(kind)),
            "PATCH": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.merge_reference(kind)),
            "DELETE": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.delete_reference(kind)),
        }
    table[f"/{CLUSTERS}/{{id}}/patches/{{part}}"] = {
        "GET": Endpoint(Access.READ, operators.get_patches()),
        "PUT": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.put_patches()),
        "PATCH": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.merge_patches()),
        "DELETE": Endpoint(Access.WRITE_UNLESS_DRY_RUN, operators.delete_patches()),
    }
    return table


def _history_routes(kinds: Kinds, past: history.HistoryRoutes) -> dict[str, Endpoints]:
    table: dict[str, Endpoints] = {
        f"/{CLUSTERS}/{{id}}/inputs/{{view}}": {"GET": Endpoint(Access.READ, past.inputs)},
        f"/{CLUSTERS}/{{id}}/inputs/{{view}}/{{input}}/provenance": {"GET": Endpoint(Access.READ, past.provenance)},
    }
    table["/diff"] = {"GET": Endpoint(Access.READ, past.diff)}
    for kind in kinds:
        if "get" in kind.methods["instance"]:
            table[f"/{kind.name}/{{id}}/history"] = {"GET": Endpoint(Access.READ, past.history(kind))}
    return table


class _OwnRoutes:
    """The paths that speak of the server itself."""

    def __init__(self, follower: Follower, measures: metrics.Metrics, document: Callable[[], bytes]) -> None:
        self._follower = follower
        self._metrics = measures
        self._document = document
        self._doubt = ""  # why it was not ready when it was last asked

    async def health(self, request: Request) -> Response:
        return messages.json_response({"status": "ok"}, headers={"X-Server-Version": __version__})

    async def ready(self, request: Request) -> Response:
        """Everybody may ask, so the reason (which names files) is for those who may read everything, and once for the log."""
        try:
            await self._follower.catch_up()
        except errors.Unavailable as exc:
            if exc.detail != self._doubt:
                log.warning("not ready: %s", exc.detail)
            self._doubt = exc.detail
            if isinstance(exc, errors.Stale):
                raise  # it names nothing
            principal: Principal | None = request.scope["state"].get("principal")
            if principal is not None and Right.READ in principal.rights:
                raise
            raise errors.Doubt(
                "not ready; the log of the server says why, and so does this path with a token that is not bound to a cluster"
            ) from exc
        if self._doubt:
            log.info("ready again")
        self._doubt = ""
        return messages.json_response({"status": "ok", **self._standing()})

    def _standing(self) -> dict[str, object]:
        """What is worth telling where answers may be older than the store."""
        followed = self._follower
        if not (followed.lags or followed.stands_in):
            return {}
        store = "ok" if followed.is_reachable() else "unreachable"
        return {"revision": followed.fleet.revision, "store": store, "age": round(followed.age(), 3)}

    async def openapi(self, request: Request) -> Response:
        return await long_answers.whole_answer(request, self._document, "application/yaml")

    async def whoami(self, request: Request) -> Response:
        """What the server knows of a token; so people can tell a wrong one from a right one before they use it."""
        messages.query(request)
        principal: Principal = request.state.principal
        bound = {} if principal.clusters is None else {"clusters": sorted(principal.clusters)}
        return messages.json_response({"name": principal.name, "role": "write" if principal.may_write else "read", **bound})

    async def openapi_json(self, request: Request) -> Response:
        return await long_answers.whole_answer(request, lambda: openapi.as_json(self._document()), "application/json")

    async def metrics(self, request: Request) -> Response:
        messages.query(request)
        try:
            await self._follower.catch_up()
        except errors.Unavailable:
            pass  # that is what the age of the last sight tells
        return Response(await self._metrics.exposition(), headers={"Content-Type": metrics.MEDIA_TYPE})


# What a view would be, or an input of it, if there were one of that name: whose it is decides who learns that there is none.
_ANY_VIEW = ResourceRoute(poll.PREFIX + "{cluster_dns}/{view}", {})
_ANY_INPUT = ResourceRoute(poll.PREFIX + "{cluster_dns}/{view}/{id}", {})

_READING = frozenset({"GET", "HEAD"})
_SAFE = _READING | {"OPTIONS"}  # change nothing, wherever they go


class Gate:
    """Request id, authentication, rights, routing, problems and counting, for every request."""

    def __init__(
        self, table: list[ResourceRoute], tokens: Tokens, measures: metrics.Metrics, writable: bool, follower: Follower
    ) -> None:
        self._follower = follower
        self._table = table
        self._tokens = tokens
        self._metrics = measures
        self._writable = writable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        started = time.perf_counter()
        request = Request(scope)
        sent_id = request.headers.get("x-request-id")
        usable = sent_id is not None and _USABLE_ID.fullmatch(sent_id)
        scope["state"] = {"request_id": sent_id if usable else uuid.uuid4().hex}
        status, begun, begun_at = 500, False, started
        # a Flux answer carries an id only when one was sent, so that the same data gives the same bytes
        shows_id = sent_id is not None or not scope["path"].startswith("/api/v2/flux/")

        async def sending(message: Message) -> None:
            nonlocal status, begun, begun_at
            if message["type"] == "http.response.start":
                status, begun, begun_at = message["status"], True, time.perf_counter()
                if shows_id:
                    message["headers"] = [*message["headers"], (b"x-request-id", scope["state"]["request_id"].encode())]
                if all(name != revisions.SHOWN for name, _ in message["headers"]):
                    message["headers"] = [*message["headers"], *revisions.header(self._follower, scope)]
            await send(message)

        async def refuse(refusal: errors.Refusal) -> None:
            response = problems.response(refusal, scope["state"]["request_id"])
            response.raw_headers += revisions.header(self._follower, scope)
            errors.drop_frames(refusal)  # before the client reads the answer, which may take long
            await response(scope, receive, send)

        route = "none"
        try:
            route, app = self._admitted(scope, request)
            if scope["method"] in _READING and scope["state"]["access"] is not Access.PUBLIC:
                await revisions.wait(self._follower, request)
            await app(scope, receive, sending)
        except errors.Refusal as refusal:
            status = refusal.status
            if begun:
                raise  # in the midst of a long answer: it is cut off, which no client takes for its end
            await refuse(refusal)
        except ClientDisconnect:
            status = CLIENT_LEFT
        except asyncio.CancelledError:  # the server stops, and the time to finish is over
            if not begun:
                ending = errors.Unavailable("the server stops; a write may have been carried out: look before you send it again")
                status = ending.status
                await refuse(ending)
        except Exception as defect:
            log.exception("a request failed", extra={"request_id": scope["state"]["request_id"]})
            failure = errors.Internal("this is a defect of the server; its log has the details under the request id")
            if begun:
                raise
            errors.drop_frames(defect)
            await refuse(failure)
        finally:
            # a stream is answered once it begins, however long it goes on
            seconds = (begun_at if scope["state"].get("is_stream") else time.perf_counter()) - started
            self._metrics.count(route, scope["method"], status, seconds)
            answered = {"method": scope["method"], "route": route, "status": status, "seconds": round(seconds, 6)}
            log.debug("answered", extra={**answered, "request_id": scope["state"]["request_id"]})

    def _admitted(self, scope: Scope, request: Request) -> tuple[str, ASGIApp]:
        """The route for a request, once its principal has shown that it may ask: 401 and 403 come before 404 and 405."""
        self._tokens.reload()
        route = self._matching(scope)
        access = scope["state"]["access"] = self._access(route, scope)
        try:
            authorization = [value.encode("latin-1") for value in request.headers.getlist("authorization")]
            principal = scope["state"]["principal"] = auth.authenticate(self._tokens, authorization)
        except errors.Unauthorized:
            if access is not Access.PUBLIC:
                raise
        else:
            auth.authorize(principal, access, request)
        if route is None:
            raise errors.NotFound(f"path {scope['path']} not found; /openapi.yaml lists every path")
        return route.path, route.app

    def _matching(self, scope: Scope) -> ResourceRoute | None:
        for route in self._table:
            if not scope["path"].endswith("\n") and route.enter(scope):  # which the $ of a pattern lets pass
                return route
        _ = _ANY_VIEW.enter(scope) or _ANY_INPUT.enter(scope)
        return None

    def _access(self, route: ResourceRoute | None, scope: Scope) -> Access:
        """What a request asks for; where there is nothing, it is what its method would ask for if there were something."""
        method = scope["method"]
        if route is not None and method in route.resource.endpoints:
            return route.resource.endpoints[method].access
        if route is not None and route.resource.is_public:
            return Access.PUBLIC
        if method in _READING and "cluster_dns" in scope.get("path_params", {}):
            return Access.VIEW
        return Access.READ if method in _SAFE or not self._writable else Access.WRITE
