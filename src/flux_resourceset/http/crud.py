"""The routes of operators: documents of every kind, parts of clusters, and the change log."""

from __future__ import annotations

import asyncio
import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import changes, errors, selectors
from flux_resourceset.changes import Document, Entry, Origin, Stored
from flux_resourceset.drafts import Draft, Precondition
from flux_resourceset.http import bodies, flux
from flux_resourceset.kinds import CLUSTERS, Kind
from flux_resourceset.ledger import Ledger

T = TypeVar("T")

_CHANGE_FILTERS = frozenset({"kind", "id", "actor", "since", "until", "limit", "before"})
_TAG = re.compile(r'\s*(\*|(?:W/)?"[^"]*")\s*(?:,|$)')
_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")
_SAFE_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,500}")


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, dict(headers or {}), "application/json")


def document_response(stored: Stored, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return json_response(stored.body, status, {"ETag": f'"{stored.revision}"', **(headers or {})})


# What a request says beside its body


def query(request: Request, allowed: frozenset[str] = frozenset()) -> dict[str, str]:
    """The query parameters; an unknown one is refused, for a mistyped filter must not match everything."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in allowed:
            known = f"there are {', '.join(sorted(allowed))}" if allowed else "this path takes none"
            raise errors.BadQuery(f"query parameter {name!r} is not known; {known}")
        if name in found:
            raise errors.BadQuery(f"query parameter {name!r} is given twice")
        found[name] = value
    return found


def whole_number(params: Mapping[str, str], name: str, least: int) -> int | None:
    text = params.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) < least:
        raise errors.BadQuery(f"{name} is {text!r}; it must be a whole number of at least {least}")
    return int(text)


def flag(params: Mapping[str, str], name: str) -> bool:
    text = params.get(name, "false")
    if text not in ("true", "false"):
        raise errors.BadQuery(f"{name} is {text!r}; it must be true or false")
    return text == "true"


def moment(params: Mapping[str, str], name: str) -> str | None:
    text = params.get(name)
    if text is None:
        return None
    try:
        if not _RFC3339.fullmatch(text):
            raise ValueError(text)
        return changes.timestamp(datetime.datetime.fromisoformat(text.upper()))
    except (ValueError, OverflowError) as exc:
        raise errors.BadQuery(f"{name} is {text!r}; it must be RFC 3339, as in 2026-01-31T12:00:00Z (write + as %2B)") from exc


def precondition(request: Request) -> Precondition:
    return Precondition(_tags(request, "if-match"), _tags(request, "if-none-match"))


def _tags(request: Request, name: str) -> frozenset[str] | None:
    values = request.headers.getlist(name)
    if not values:
        return None
    text = ",".join(values)
    found, position = set(), 0
    while position < len(text):
        match = _TAG.match(text, position)
        if match is None:
            raise errors.BadRequest(f'{name} is {text!r}; it must be * or ETags in quotes, as in "12"')
        found.add(match[1])
        position = match.end()
    return frozenset(found)


def origin(request: Request) -> Origin:
    return Origin(
        actor=request.state.token.name,
        on_behalf_of=_text(request, "x-actor"),
        request_id=request.state.request_id,
        reason=_text(request, "x-reason"),
    )


def _text(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    if not value:
        return None
    try:
        value = value.encode("latin-1").decode("utf-8")  # headers arrive as bytes; people write UTF-8
    except UnicodeError:
        pass
    if not _SAFE_TEXT.fullmatch(value):
        raise errors.BadRequest(f"{name} must have at most 500 characters, and no control characters")
    return value


class CrudRoutes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def _write(
        self, request: Request, kind: Kind, id: str, work: Callable[[Draft], T], *, creates: bool = False
    ) -> tuple[T, Stored]:
        """Run the work under the request's preconditions; what it returned, and the document as it is then."""
        expected = precondition(request)

        def checked(draft: Draft) -> tuple[T, Stored | None]:
            if creates or draft.get(kind.name, id) is not None:  # else the work says 404, which goes first
                draft.expect(kind.name, id, expected)
            request.state.warnings = draft.warnings
            return work(draft), draft.base.get(kind.name, id)

        (result, before), entry = await self._ledger.write(checked, origin(request))
        return result, _after(entry, kind.name, id, before)

    # Collections

    def list(self, kind: Kind) -> Callable[[Request], Any]:
        filters = {item.name: item for item in kind.filters}
        allowed = frozenset({*filters, "selector", "limit", "offset"})

        async def endpoint(request: Request) -> Response:
            params = query(request, allowed)
            limit, offset = whole_number(params, "limit", 1), whole_number(params, "offset", 0) or 0
            wanted = {name: self._filter_value(kind, name, params[name]) for name in filters if name in params}
            selector = self._selector(kind, params)
            self._ledger.refresh()
            stored = self._ledger.fleet.documents[kind.name]
            found = [
                body
                for body in (stored[id].body for id in sorted(stored))
                if all(body.get(name) == value for name, value in wanted.items()) and selector(body.get("labels") or {})
            ]
            end = None if limit is None else offset + limit
            return json_response(found[offset:end], headers={"X-Total-Count": str(len(found))})

        return endpoint

    @staticmethod
    def _selector(kind: Kind, params: Mapping[str, str]) -> selectors.Selector:
        if "selector" in params and not kind.has_labels:
            raise errors.BadQuery(f"{kind.name} have no labels, so selector cannot be used")
        return selectors.parse(params.get("selector", ""))

    def _filter_value(self, kind: Kind, name: str, text: str) -> Any:
        schema = kind.properties[name]
        if kind.name == CLUSTERS and name == "environment":
            flux.check_environment(self._ledger, text)
        types = schema.get("type", "string")
        if types == "string" or "string" in types:
            options = schema.get("enum")
            if options and text not in options:
                raise errors.BadFilter(f"{name} is {text!r}; it must be one of {', '.join(map(str, options))}")
            return text
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            value = text
        if not kind.is_of_type(name, value):
            raise errors.BadFilter(f"{name} is {text!r}; it must be of type {types}")
        return value

    def create(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            query(request)
            document = await bodies.read(request)
            wanted = document.get("id") if isinstance(document, dict) else None
            id = wanted if isinstance(wanted, str) else ""
            _, stored = await self._write(request, kind, id, lambda draft: draft.create(kind, document), creates=True)
            return document_response(stored, 201, {"Location": f"/{kind.name}/{id}"})

        return endpoint

    # Documents

    def get(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            query(request)
            id = request.path_params["id"]
            self._ledger.refresh()
            stored = self._ledger.fleet.get(kind.name, id)
            if stored is None:
                raise errors.NotFound(f'{kind.name} "{id}" does not exist', extra={"kind": kind.name, "id": id})
            return _not_modified(request, stored) or document_response(stored)

        return endpoint

    def replace(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            query(request)
            id = request.path_params["id"]
            document = await bodies.read(request)
            may_create = "*" in (_tags(request, "if-none-match") or ())

            def work(draft: Draft) -> bool:
                new = may_create and draft.get(kind.name, id) is None
                if new:
                    draft.create_at(kind, id, document)
                else:
                    draft.replace(kind, id, document)
                return new

            new, stored = await self._write(request, kind, id, work, creates=may_create)
            return document_response(stored, 201, {"Location": f"/{kind.name}/{id}"}) if new else document_response(stored)

        return endpoint

    def merge(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            query(request)
            id = request.path_params["id"]
            patch = await bodies.read(request, bodies.MERGE_PATCH)
            _, stored = await self._write(request, kind, id, lambda draft: draft.merge(kind, id, patch))
            return document_response(stored)

        return endpoint

    def delete(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            force = flag(query(request, frozenset({"force"})), "force")
            id = request.path_params["id"]
            deleted, _ = await self._write(request, kind, id, lambda draft: draft.delete(kind, id, force))
            return json_response(deleted)

        return endpoint

    # Parts of clusters

    def _part(self, request: Request) -> tuple[str, str]:
        query(request)
        return request.path_params["id"], request.path_params["part"]

    def get_reference(self, kind: Kind) -> Callable[[Request], Any]:
        return self._get_part(lambda draft, cluster, id: draft.reference(cluster, kind, id))

    def get_patches(self) -> Callable[[Request], Any]:
        return self._get_part(lambda draft, cluster, id: draft.patches(cluster, id))

    def _get_part(self, part: Callable[[Draft, str, str], Document]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            cluster_id, id = self._part(request)
            self._ledger.refresh()
            value = part(Draft(self._ledger.fleet), cluster_id, id)
            stored = self._ledger.fleet.documents[CLUSTERS][cluster_id]
            return _not_modified(request, stored) or document_response(Stored(value, stored.revision))

        return endpoint

    def put_reference(self, kind: Kind) -> Callable[[Request], Any]:
        return self._change_part(lambda draft, cluster, id, body: draft.assign(cluster, kind, id, body), empty={})

    def merge_reference(self, kind: Kind) -> Callable[[Request], Any]:
        return self._change_part(
            lambda draft, cluster, id, body: draft.merge_reference(cluster, kind, id, body), bodies.MERGE_PATCH
        )

    def put_patches(self) -> Callable[[Request], Any]:
        return self._change_part(lambda draft, cluster, id, body: draft.set_patches(cluster, id, body))

    def merge_patches(self) -> Callable[[Request], Any]:
        return self._change_part(lambda draft, cluster, id, body: draft.merge_patches(cluster, id, body), bodies.MERGE_PATCH)

    def _change_part(
        self,
        change: Callable[[Draft, str, str, Any], None],
        media_types: tuple[str, ...] = bodies.JSON,
        empty: Any = None,
    ) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            cluster_id, id = self._part(request)
            body = await bodies.read(request, media_types, empty=empty)
            clusters = self._ledger.kinds.clusters
            _, stored = await self._write(request, clusters, cluster_id, lambda draft: change(draft, cluster_id, id, body))
            return document_response(stored)

        return endpoint

    def delete_reference(self, kind: Kind) -> Callable[[Request], Any]:
        return self._delete_part(lambda draft, cluster, id: draft.unassign(cluster, kind, id))

    def delete_patches(self) -> Callable[[Request], Any]:
        def clear(draft: Draft, cluster: str, id: str) -> int:
            draft.set_patches(cluster, id, {})
            return 0

        return self._delete_part(clear)

    def _delete_part(self, change: Callable[[Draft, str, str], int]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            cluster_id, id = self._part(request)
            removed, stored = await self._write(
                request, self._ledger.kinds.clusters, cluster_id, lambda draft: change(draft, cluster_id, id)
            )
            return document_response(stored, headers={"X-Patches-Removed": str(removed)} if removed else {})

        return endpoint

    # The log

    async def changes(self, request: Request) -> Response:
        params = query(request, _CHANGE_FILTERS)
        find = self._ledger.finding(
            changes.Query(
                kind=params.get("kind"),
                id=params.get("id"),
                actor=params.get("actor"),
                since=moment(params, "since"),
                until=moment(params, "until"),
                before=whole_number(params, "before", 1),
                limit=whole_number(params, "limit", 1) or 100,
            )
        )
        return await asyncio.to_thread(lambda: json_response(find()))

    async def change(self, request: Request) -> Response:
        query(request)
        text = request.path_params["revision"]
        revision = int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0
        find = self._ledger.finding(changes.Query(before=revision + 1, limit=1))
        found = await asyncio.to_thread(find) if revision else []
        if not found or found[0].revision != revision:
            raise errors.NotFound(f"there is no revision {text}; the newest is {self._ledger.fleet.revision}")
        return json_response(found[0])


def _not_modified(request: Request, stored: Stored) -> Response | None:
    tag = f'"{stored.revision}"'
    return Response(None, 304, {"ETag": tag}) if is_known(request, tag) else None


def is_known(request: Request, tag: str) -> bool:
    """Whether the client says that it has what bears this tag."""
    known = _tags(request, "if-none-match") or frozenset()
    return bool({"*", tag} & {found.removeprefix("W/") for found in known})


def _after(entry: Entry | None, kind: str, id: str, before: Stored | None) -> Stored:
    """The document as the transaction left it; what was deleted stands as it was."""
    for change in entry.changes if entry else ():
        if (change.kind, change.id) == (kind, id) and entry is not None:
            return Stored(change.after or change.before or {}, entry.revision)
    return before or Stored({}, 0)
