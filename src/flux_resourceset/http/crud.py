"""The routes of operators: documents of every kind, and parts of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import errors, json_pieces, operations, rules, selectors
from flux_resourceset.changes import Document, Entry, Stored
from flux_resourceset.drafts import Draft
from flux_resourceset.http import bodies, flux, long_answers, messages, reverting, writes
from flux_resourceset.kinds import validation
from flux_resourceset.kinds.model import CLUSTERS, Kind, Referenced
from flux_resourceset.ledger import Ledger
from flux_resourceset.operations import Result
from flux_resourceset.outcomes import Outcome
from flux_resourceset.readings import Readings

T = TypeVar("T")


class _Written(NamedTuple, Generic[T]):
    result: T  # of the work
    stored: Stored  # the document as it is then
    warnings: list[str]

    def answer(self, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return messages.document_response(self.stored, status, headers, self.warnings)


class _Mutation(NamedTuple, Generic[T]):
    """One request as a batch of one operation."""

    op: str
    kind: Kind
    id: str
    work: Callable[[Draft], T]
    creates: bool = False


class CrudRoutes:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._readings = Readings(ledger.follower)

    async def _write(
        self,
        request: Request,
        params: Mapping[str, str],
        mutation: _Mutation[T],
        answer: Callable[[_Written[T]], Response],
    ) -> Response:
        """Run the work under the request's preconditions, or plan it."""
        op, kind, id, work, creates = mutation
        expected = messages.precondition(request)

        def checked(draft: Draft) -> tuple[T, Stored | None]:
            if creates or draft.get(kind.name, id) is not None:  # else the work says 404, which goes first
                draft.expect(kind.name, id, expected)
            return work(draft), draft.base.get(kind.name, id)

        if writes.is_dry_run(params):
            return await writes.plan(
                self._ledger, request, params, checked, lambda outcome: [_result(op, kind.name, id, outcome)]
            )
        outcome = await writes.write(self._ledger, request, checked)
        result, before = outcome.result
        return answer(_Written(result, _after(outcome.entry, kind.name, id, before), outcome.shown_warnings))

    # Collections

    def list(self, kind: Kind) -> Callable[[Request], Any]:
        filters = {item.name: item for item in kind.filters}
        allowed = frozenset({*filters, "selector", "limit", "offset", "at"})

        async def endpoint(request: Request) -> Response:
            params = messages.query(request, allowed)
            limit, offset = messages.whole_number(params, "limit", 1), messages.whole_number(params, "offset", 0) or 0
            wanted = {name: self._filter_value(kind, name, params[name]) for name in filters if name in params}
            selector = self._selector(kind, params)

            def matches(body: Document) -> bool:
                return all(body.get(name) == value for name, value in wanted.items()) and selector(body.get("labels") or {})

            listed = await self._readings.documents(kind.name, matches, messages.point(params, "at"))
            end = None if limit is None else offset + limit
            pieces = json_pieces.pieces(listed.documents[offset:end], 1)
            headers = {"X-Total-Count": str(len(listed.documents)), **messages.at_revision(listed.revision)}
            return await long_answers.json_answer(request, pieces, headers)

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
        if not validation.is_of_type(schema, value):
            raise errors.BadFilter(f"{name} is {text!r}; it must be of type {types}")
        return value

    def create(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request)
            document = await bodies.read(request)
            wanted = document.get("id") if isinstance(document, dict) else None
            id = wanted if isinstance(wanted, str) else ""
            mutation = _Mutation("create", kind, id, lambda draft: draft.create(kind, document), creates=True)
            location = {"Location": f"/{kind.name}/{id}"}
            return await self._write(request, params, mutation, lambda written: written.answer(201, location))

        return endpoint

    # Documents

    def get(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            at = messages.point(messages.query(request, frozenset({"at"})), "at")
            id = request.path_params["id"]
            found = await self._readings.document(kind.name, id, at)
            if found is None:
                raise rules.not_found(kind.name, id)
            headers = messages.at_revision(found.revision)
            return _not_modified(request, found.stored, headers) or messages.document_response(found.stored, headers=headers)

        return endpoint

    def replace(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request)
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

            def answer(written: _Written[bool]) -> Response:
                return written.answer(201, {"Location": f"/{kind.name}/{id}"}) if written.result else written.answer()

            return await self._write(request, params, _Mutation("replace", kind, id, work, creates=may_create), answer)

        return endpoint

    def merge(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request)
            id = request.path_params["id"]
            patch = await bodies.read(request, bodies.MERGE_PATCH)
            mutation = _Mutation("patch", kind, id, lambda draft: draft.merge(kind, id, patch))
            return await self._write(request, params, mutation, _Written.answer)

        return endpoint

    def delete(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request, frozenset({"force"}))
            force = messages.flag(params, "force")
            id = request.path_params["id"]
            mutation = _Mutation("delete", kind, id, lambda draft: draft.delete(kind, id, force))

            def answer(written: _Written[Document]) -> Response:
                return messages.json_response(written.result, warnings=written.warnings)

            return await self._write(request, params, mutation, answer)

        return endpoint

    def revert(self, kind: Kind) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request)
            id, body = request.path_params["id"], await bodies.read(request)
            to, wrong = reverting.wanted_point(body)
            if to is None or wrong:
                raise errors.Invalid.document("the body", wrong)
            mutation = _Mutation("revert", kind, id, await self._readings.restoring(kind.name, id, to), creates=True)
            return await self._write(request, params, mutation, lambda written: written.answer())

        return endpoint

    # Parts of clusters

    def get_reference(self, kind: Referenced) -> Callable[[Request], Any]:
        return self._get_part(lambda draft, cluster, id: draft.reference(cluster, kind, id))

    def get_patches(self) -> Callable[[Request], Any]:
        return self._get_part(lambda draft, cluster, id: draft.patches(cluster, id))

    def _get_part(self, part: Callable[[Draft, str, str], Document]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            messages.query(request)
            cluster_id, id = _part(request)
            state = await self._ledger.follower.fresh()
            value = part(Draft(state), cluster_id, id)
            stored = state.documents[CLUSTERS][cluster_id]
            return _not_modified(request, stored) or messages.document_response(Stored(value, stored.revision))

        return endpoint

    def put_reference(self, kind: Referenced) -> Callable[[Request], Any]:
        return self._change_part("assign", lambda draft, cluster, id, body: draft.assign(cluster, kind, id, body), empty={})

    def merge_reference(self, kind: Referenced) -> Callable[[Request], Any]:
        return self._change_part(
            "assign", lambda draft, cluster, id, body: draft.merge_reference(cluster, kind, id, body), bodies.MERGE_PATCH
        )

    def put_patches(self) -> Callable[[Request], Any]:
        return self._change_part("patch-values", lambda draft, cluster, id, body: draft.set_patches(cluster, id, body))

    def merge_patches(self) -> Callable[[Request], Any]:
        return self._change_part(
            "patch-values", lambda draft, cluster, id, body: draft.merge_patches(cluster, id, body), bodies.MERGE_PATCH
        )

    def _change_part(
        self,
        op: str,
        change: Callable[[Draft, str, str, Any], None],
        media_types: tuple[str, ...] = bodies.JSON,
        empty: Any = None,
    ) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request)
            cluster_id, id = _part(request)
            body = await bodies.read(request, media_types, empty=empty)
            clusters = self._ledger.kinds.clusters
            mutation = _Mutation(op, clusters, cluster_id, lambda draft: change(draft, cluster_id, id, body))
            return await self._write(request, params, mutation, _Written.answer)

        return endpoint

    def delete_reference(self, kind: Referenced) -> Callable[[Request], Any]:
        return self._delete_part("unassign", lambda draft, cluster, id: draft.unassign(cluster, kind, id))

    def delete_patches(self) -> Callable[[Request], Any]:
        def clear(draft: Draft, cluster: str, id: str) -> int:
            draft.set_patches(cluster, id, {})
            return 0

        return self._delete_part("patch-values", clear)

    def _delete_part(self, op: str, change: Callable[[Draft, str, str], int]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            params = writes.query(request)
            cluster_id, id = _part(request)
            clusters = self._ledger.kinds.clusters
            mutation = _Mutation(op, clusters, cluster_id, lambda draft: change(draft, cluster_id, id))

            def answer(written: _Written[int]) -> Response:
                return written.answer(headers={"X-Patches-Removed": str(written.result)} if written.result else {})

            return await self._write(request, params, mutation, answer)

        return endpoint


def _part(request: Request) -> tuple[str, str]:
    return request.path_params["id"], request.path_params["part"]


def _not_modified(request: Request, stored: Stored, headers: Mapping[str, str] | None = None) -> Response | None:
    tag = f'"{stored.revision}"'
    return Response(None, 304, {"ETag": tag, **(headers or {})}) if messages.is_known(request, tag) else None


def _after(entry: Entry | None, kind: str, id: str, before: Stored | None) -> Stored:
    """The document as the transaction left it; what was deleted stands as it was."""
    for change in entry.changes if entry else ():
        if (change.kind, change.id) == (kind, id) and entry is not None:
            return Stored(change.after or change.before or {}, entry.revision)
    return before or Stored({}, 0)


def _result(op: str, kind: str, id: str, outcome: Outcome[tuple[T, Stored | None]]) -> Result:
    """What a batch with this one operation would say of it."""
    before = outcome.result[1]
    change = next(iter(outcome.entry.changes), None) if outcome.entry else None
    new = op == "replace" and before is None  # with If-None-Match: *
    return operations.result(0, "create" if new else op, (kind, id), before, outcome.entry, change)
