"""The ASGI application: the gate that every request passes, and the table of routes that the kinds make."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flux_resourceset import __version__, errors
from flux_resourceset.follower import Follower
from flux_resourceset.http import auth, bulk, crud, flux, heavy, messages, metrics, poll, problems
from flux_resourceset.kinds import CLUSTERS, Kinds
from flux_resourceset.ledger import Ledger
from flux_resourceset.tokens import Tokens

log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]

CLIENT_LEFT = 499  # in the metrics only: nobody is there to read an answer

_USABLE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class Resource:
    """One path with its methods."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = {**handlers, "HEAD": handlers["GET"]} if "GET" in handlers else dict(handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = self._handlers.get(scope["method"])
        if handler is None:
            allowed = ", ".join(sorted(self._handlers))
            raise errors.MethodNotAllowed(
                f"{scope['method']} is not possible here; there is {allowed}", headers={"Allow": allowed}
            )
        response = await handler(Request(scope, receive))
        await response(scope, receive, send)


def routes(kinds: Kinds, ledger: Ledger, measures: metrics.Metrics, document: Callable[[], bytes], writable: bool) -> list[Route]:
    """Every path that is served; openapi.py describes the same."""
    own = _OwnRoutes(ledger.follower, measures, document)
    polled = flux.FluxRoutes(ledger.follower)
    table: dict[str, Mapping[str, Handler]] = {
        "/health": {"GET": own.health},
        "/ready": {"GET": own.ready},
        "/openapi.yaml": {"GET": own.openapi},
        "/metrics": {"GET": own.metrics},
        "/api/v2/flux/clusters": {"GET": polled.clusters},
    }
    for kind in kinds.referenced:
        table[poll.PREFIX + "{cluster_dns}/" + kind.endpoint] = {"GET": polled.view(kind.endpoint)}
    if writable:
        table |= _crud_routes(kinds, crud.CrudRoutes(ledger))
        many = bulk.BulkRoutes(ledger)
        table |= {
            "/kinds": {"GET": many.kinds},
            "/batch": {"POST": many.batch},
            "/export": {"GET": many.export},
            "/import": {"POST": many.load},
        }
    return [Route(path, Resource(handlers)) for path, handlers in table.items()]


def _crud_routes(kinds: Kinds, operators: crud.CrudRoutes) -> dict[str, Mapping[str, Handler]]:
    table: dict[str, Mapping[str, Handler]] = {
        "/changes": {"GET": operators.changes},
        "/changes/{revision}": {"GET": operators.change},
    }
    for kind in kinds:
        every: dict[str, dict[str, Callable[..., Handler]]] = {
            "resource": {"get": operators.list, "post": operators.create},
            "instance": {
                "get": operators.get, "put": operators.replace, "patch": operators.merge, "delete": operators.delete,
            },
        }  # fmt: skip
        for level, path in (("resource", f"/{kind.name}"), ("instance", f"/{kind.name}/{{id}}")):
            if kind.methods[level]:
                table[path] = {m.upper(): make(kind) for m, make in every[level].items() if m in kind.methods[level]}
    for field, kind in kinds.by_field.items():
        table[f"/{CLUSTERS}/{{id}}/{field}/{{part}}"] = {
            "GET": operators.get_reference(kind),
            "PUT": operators.put_reference(kind),
            "PATCH": operators.merge_reference(kind),
            "DELETE": operators.delete_reference(kind),
        }
    table[f"/{CLUSTERS}/{{id}}/patches/{{part}}"] = {
        "GET": operators.get_patches(),
        "PUT": operators.put_patches(),
        "PATCH": operators.merge_patches(),
        "DELETE": operators.delete_patches(),
    }
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
        """Everybody may ask, so why it is not (which names files) is told to those with a token, and once to the log."""
        try:
            self._follower.look()
        except errors.Unavailable as exc:
            if exc.detail != self._doubt:
                log.warning("not ready: %s", exc.detail)
            self._doubt = exc.detail
            if "token" in request.scope["state"]:
                raise
            raise errors.Unavailable("not ready; the log of the server says why, and so does this path with a token") from exc
        if self._doubt:
            log.info("ready again")
        self._doubt = ""
        return messages.json_response({"status": "ok"})

    async def openapi(self, request: Request) -> Response:
        return Response(await heavy.run(self._document), media_type="application/yaml")

    async def metrics(self, request: Request) -> Response:
        messages.query(request)
        try:
            self._follower.look()
        except errors.Unavailable:
            pass  # that is what the age of the last sight tells
        return Response(self._metrics.exposition(), headers={"Content-Type": metrics.MEDIA_TYPE})


class Gate:
    """Request id, authentication, routing, problems and counting, for every request."""

    def __init__(
        self, table: list[Route], tokens: Tokens, measures: metrics.Metrics, public: frozenset[str], writable: bool
    ) -> None:
        self._table = table
        self._tokens = tokens
        self._metrics = measures
        self._public = public
        self._writable = writable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is served, not {scope['type']}")
        started = time.perf_counter()
        request = Request(scope)
        sent_id = request.headers.get("x-request-id")
        usable = sent_id is not None and _USABLE_ID.fullmatch(sent_id)
        scope["state"] = {"request_id": sent_id if usable else uuid.uuid4().hex}
        status, begun = 500, False
        # a Flux answer carries an id only when one was sent, so that the same data gives the same bytes
        shows_id = sent_id is not None or not scope["path"].startswith("/api/v2/flux/")

        async def sending(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                draft = scope["state"].get("draft")
                more = [(b"x-warning", text[:500].encode()) for text in draft.warnings] if draft else []
                if shows_id:
                    more.append((b"x-request-id", scope["state"]["request_id"].encode()))
                message["headers"] = [*message["headers"], *more]
            await send(message)

        route = "none"
        try:
            route, app = self._admitted(scope, request)
            await app(scope, receive, sending)
        except errors.Refusal as refusal:
            status = refusal.status
            if begun:
                raise  # in the midst of a long answer: it is cut off, which no client takes for its end
            await problems.response(refusal, scope["state"]["request_id"])(scope, receive, send)
        except ClientDisconnect:
            status = CLIENT_LEFT
        except asyncio.CancelledError:  # the server stops, and the time to finish is over
            if not begun:
                ending = errors.Unavailable("the server stops; a write may have been carried out: look before you send it again")
                status = ending.status
                await problems.response(ending, scope["state"]["request_id"])(scope, receive, send)
        except Exception:
            log.exception("a request failed", extra={"request_id": scope["state"]["request_id"]})
            failure = errors.Internal("this is a defect of the server; its log has the details under the request id")
            if begun:
                raise
            await problems.response(failure, scope["state"]["request_id"])(scope, receive, send)
        finally:
            seconds = time.perf_counter() - started
            self._metrics.count(route, scope["method"], status, seconds)
            told = {"method": scope["method"], "route": route, "status": status, "seconds": round(seconds, 6)}
            log.debug("answered", extra={**told, "request_id": scope["state"]["request_id"]})

    def _admitted(self, scope: Scope, request: Request) -> tuple[str, ASGIApp]:
        """The route for a request, once its token has shown that it may ask."""
        self._tokens.reload()
        authorization = [value.encode("latin-1") for value in request.headers.getlist("authorization")]
        try:
            token = scope["state"]["token"] = auth.authenticate(self._tokens, authorization)
        except errors.Unauthorized:
            if scope["path"] not in self._public:
                raise
        if scope["path"] not in self._public:
            rehearsal = scope["path"] == "/batch" and scope["query_string"] == b"dry_run=true"
            auth.authorize(token, scope["method"], self._writable, rehearsal)
        for route in self._table:
            match, child = route.matches(scope)
            if match is Match.FULL and not scope["path"].endswith("\n"):  # which the $ of a pattern lets pass
                scope.update(child)
                return route.path, route.app
        raise errors.NotFound(f"there is nothing at {scope['path']}; /openapi.yaml lists every path")
