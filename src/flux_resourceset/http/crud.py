"""The routes of operators: documents of every kind, parts of clusters, and the change log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import changes, errors, json_pieces, selectors
from flux_resourceset.changes import Document, Entry, Stored
from flux_resourceset.drafts import Draft
from flux_resourceset.http import bodies, flux, heavy, messages
from flux_resourceset.kinds import CLUSTERS, Kind
from flux_resourceset.ledger import Ledger

T = TypeVar("T")

_PAGE_CHANGES = 1000  # of the log at a time: a megabyte or some

_CHANGE_FILTERS = frozenset({"kind", "id", "actor", "since", "until", "limit", "before"})


class CrudRoutes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def _write(
        self, request: Request, kind: Kind, id: str, work: Callable[[Draft], T], *, creates: bool = False
    ) -> tuple[T, Stored]:
        """Run the work under the request's preconditions; what it returned, and the document as it is then."""
        expected = messages.precondition(request)

        def checked(draft: Draft) -> tuple[T, Stored | None]:
            if creates or draft.get(kind.name, id) is not None:  # else the work says 404, which goes first
                draft.expect(kind.name, id, expected)
            request.state.draft = draft
            return work(draft), draft.base.get(kind.name, id)

        (result, before), entry = await self._ledger.write(checked, messages.origin(request))
        return result, _after(entry, kind.name, id, before)

    # Collections

    def list(self, kind: Kind) -> Callable[[Request], Any]:
        filters = {item.name: item for item in kind.filters}
        allowed = frozenset({*filters, "selector", "limit", "offset"})

        async def endpoint(request: Request) -> Response:
            params = messages.query(request, allowed)
            limit, offset = messages.whole_number(params, "limit", 1), messages.whole_number(params, "offset", 0) or 0
            wanted = {name: self._filter_value(kind, name, params[name]) for name in filters if name in params}
            selector = self._selector(kind, params)
            state = await self._ledger.follower.fresh()
            stored = dict(state.documents[kind.name])  # it goes on changing, and the search is in a thread
            found = await heavy.run(_matching, stored, wanted, selector)
            end = None if limit is None else offset + limit
            pieces = json_pieces.pieces(found[offset:end], 1)
            return await heavy.json_answer(request, pieces, {"X-Total-Count": str(len(found))})

        return endpoint

    @staticmethod
    def _selector(kind: Kind, params: Mapping[str, str]) -> selectors.Selector:
        if "selector" in params and not kind.has_labels:
            raise errors.BadQuery(f"{kind.name} have no labels, so selector cannot be used")
        return selectors.parse(params.get("selector", ""))

    def _filter_value(self, kind: Kind, name: str, text: str) -> Any:
        schema = kind.properties[name]
        if kind.name == CLUSTERS and name == "environment":
            flux.check_environment(self._ledger.kinds, text)
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
            messages.query(request)
            document = await bodies.read(request)
            wanted = document.get("id") if isinstance(document, dict) else None
            id = wanted if isinstance(wanted, str) else ""
            _, stored = await self._write(request, kind, id, lambda draft: draft.create(kind, document), creates=True)
            return messages.document_response(stored, 201, {"Location": f"/{kind.name}/{id}"})

        return endpoint

    # Documents

    def get(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            messages.query(request)
            id = request.path_params["id"]
            stored = (await self._ledger.follower.fresh()).get(kind.name, id)
            if stored is None:
                raise errors.NotFound(f'{kind.name} "{id}" does not exist', extra={"kind": kind.name, "id": id})
            return _not_modified(request, stored) or messages.document_response(stored)

        return endpoint

    def replace(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            messages.query(request)
            id = request.path_params["id"]
            document = await bodies.read(request)
            may_create = "*" in (messages.tags(request, "if-none-match") or ())

            def work(draft: Draft) -> bool:
                new = may_create and draft.get(kind.name, id) is None
                if new:
                    draft.create_at(kind, id, document)
                else:
                    draft.replace(kind, id, document)
                return new

            new, stored = await self._write(request, kind, id, work, creates=may_create)
            if new:
                return messages.document_response(stored, 201, {"Location": f"/{kind.name}/{id}"})
            return messages.document_response(stored)

        return endpoint

    def merge(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            messages.query(request)
            id = request.path_params["id"]
            patch = await bodies.read(request, bodies.MERGE_PATCH)
            _, stored = await self._write(request, kind, id, lambda draft: draft.merge(kind, id, patch))
            return messages.document_response(stored)

        return endpoint

    def delete(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            force = messages.flag(messages.query(request, frozenset({"force"})), "force")
            id = request.path_params["id"]
            deleted, _ = await self._write(request, kind, id, lambda draft: draft.delete(kind, id, force))
            return messages.json_response(deleted)

        return endpoint

    # Parts of clusters

    def _part(self, request: Request) -> tuple[str, str]:
        messages.query(request)
        return request.path_params["id"], request.path_params["part"]

    def get_reference(self, kind: Kind) -> Callable[[Request], Any]:
        return self._get_part(lambda draft, cluster, id: draft.reference(cluster, kind, id))

    def get_patches(self) -> Callable[[Request], Any]:
        return self._get_part(lambda draft, cluster, id: draft.patches(cluster, id))

    def _get_part(self, part: Callable[[Draft, str, str], Document]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            cluster_id, id = self._part(request)
            state = await self._ledger.follower.fresh()
            value = part(Draft(state), cluster_id, id)
            stored = state.documents[CLUSTERS][cluster_id]
            return _not_modified(request, stored) or messages.document_response(Stored(value, stored.revision))

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
            return messages.document_response(stored)

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
            return messages.document_response(stored, headers={"X-Patches-Removed": str(removed)} if removed else {})

        return endpoint

    # The log

    async def changes(self, request: Request) -> Response:
        params = messages.query(request, _CHANGE_FILTERS)
        query = changes.Query(
            kind=params.get("kind"),
            id=params.get("id"),
            actor=params.get("actor"),
            since=messages.moment(params, "since"),
            until=messages.moment(params, "until"),
            before=messages.whole_number(params, "before", 1),
            limit=messages.whole_number(params, "limit", 1) or 100,
        )
        await self._ledger.follower.fresh()
        return await heavy.json_answer(request, _log(self._ledger.follower.store.find, query))

    async def change(self, request: Request) -> Response:
        messages.query(request)
        text = request.path_params["revision"]
        revision = int(text) if re.fullmatch(r"[0-9]{1,15}", text) else 0
        state = await self._ledger.follower.fresh()
        query = changes.Query(before=revision + 1, limit=1)
        found = await heavy.run(self._ledger.follower.store.find, query) if revision else []
        if not found or found[0].revision != revision:
            raise errors.NotFound(f"there is no revision {text}; the newest is {state.revision}")
        return await heavy.json_answer(request, _one_written(found))


def _matching(stored: dict[str, Stored], wanted: Mapping[str, Any], selector: selectors.Selector) -> list[Document]:
    return [
        body
        for body in (stored[id].body for id in sorted(stored))
        if all(body.get(name) == value for name, value in wanted.items()) and selector(body.get("labels") or {})
    ]


def _log(find: Callable[[changes.Query], list[Entry]], query: changes.Query) -> Iterator[bytes]:
    """Page by page, so that a log of any length takes no more memory than one page."""
    left, page, before = query.limit, 1, b"["
    while left > 0:
        wanted = min(left, page)
        found = find(msgspec.structs.replace(query, limit=wanted))
        for entry in found:
            yield before
            yield from json_pieces.pieces(entry, 2)
            before = b","
        left -= wanted if len(found) == wanted else left
        if found:
            query = msgspec.structs.replace(query, before=found[-1].revision)
            page = max(1, min(_PAGE_CHANGES, _PAGE_CHANGES * len(found) // (1 + sum(len(entry.changes) for entry in found))))
            del entry
            changes.let_go(found)
    yield b"]" if before == b"," else b"[]"


def _one_written(found: list[Entry]) -> Iterator[bytes]:
    yield from json_pieces.pieces(found[0], 2)
    changes.let_go(found)


def _not_modified(request: Request, stored: Stored) -> Response | None:
    tag = f'"{stored.revision}"'
    return Response(None, 304, {"ETag": tag}) if messages.is_known(request, tag) else None


def _after(entry: Entry | None, kind: str, id: str, before: Stored | None) -> Stored:
    """The document as the transaction left it; what was deleted stands as it was."""
    for change in entry.changes if entry else ():
        if (change.kind, change.id) == (kind, id) and entry is not None:
            return Stored(change.after or change.before or {}, entry.revision)
    return before or Stored({}, 0)
