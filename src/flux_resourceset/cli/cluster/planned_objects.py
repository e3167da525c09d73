"""`--render`: what a plan makes of the Kubernetes objects of one cluster of each group.

The documents are those of the revision that the plan was made for, and on top of them what the plan makes of them; they are
merged and rendered as the server and Flux would. Digests of inputs, which differ whenever anything does, are left empty.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import client, merge, render
from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import simulated_state, view_sources
from flux_resourceset.cli.cluster.simulated_state import Change
from flux_resourceset.cli.known_kinds import CLUSTERS, ReferencedKind
from flux_resourceset.render import resourcesets

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]
Objects = dict[Any, render.Manifest]


class Comparison:
    """The objects of clusters before and after a plan."""

    def __init__(self, session: Session, plan: Mapping[str, Any]) -> None:
        self._session = session
        self._at = {"at": plan.get("base_revision")}
        self._results = {(item["kind"], item["id"]): item for item in plan["results"] if item["change"] != "unchanged"}
        self._kinds = {kind.endpoint: kind for kind in session.kinds if isinstance(kind, ReferencedKind)}
        self._templates = {view.name: view.template for view in view_sources.of_server(session)}
        self._engine = view_sources.engine(session)
        if any(not kind.can_be_merged for kind in self._kinds.values()):
            raise failures.usage("the server is too old for --render: it does not say how it merges its kinds")

    def of_group(self, group: Mapping[str, Any]) -> tuple[str, list[Change]]:
        """The first cluster of a group, and what becomes of its objects."""
        id = str(group["clusters"][0])
        views = dict.fromkeys(str(change.get("view")) for change in group["changes"])
        return id, [change for view in views for change in self._changes(id, view)]

    def _changes(self, id: str, view: str) -> Iterator[Change]:
        before, after = (self._objects(id, view, side) for side in ("before", "after"))
        for identity, manifest in after.items():
            fields = tuple(simulated_state.field_lines(before[identity], manifest)) if identity in before else ()
            if identity not in before or fields:
                yield Change("~" if identity in before else "+", identity, fields)
        for identity, manifest in before.items():
            if identity not in after:
                yield Change("=" if simulated_state.is_kept(manifest) else "-", identity)

    def _objects(self, id: str, view: str, side: str) -> Objects:
        template, kind = self._templates.get(view), self._kinds.get(view)
        if template is None or kind is None:
            return {}
        try:
            inputs = [{**item, "digest": ""} for item in self._inputs(id, kind, side)]
            return {resourcesets.identity(manifest): manifest for manifest in self._engine(template, inputs)}
        except (render.TemplateError, view_sources.Unusable) as exc:
            raise failures.Failure(failures.REFUSED, f"{view} of {id} {side} it: {exc}") from exc

    def _inputs(self, id: str, kind: ReferencedKind, side: str) -> Iterable[view_sources.Input]:
        cluster = self._document(id, side)
        return () if cluster is None else merge.inputs(kind, cluster, self._definitions(kind.name, side))

    def _document(self, id: str, side: str) -> Document | None:
        if (CLUSTERS, id) in self._results:
            document: Document | None = self._results[CLUSTERS, id][side]
            return document
        return self._session.client.get(client.path(CLUSTERS, id), self._at).object()

    @functools.cache  # noqa: B019  # one for each run of the program
    def _definitions(self, kind: str, side: str) -> dict[str, Document]:
        stored = {document["id"]: document for document in self._stored(kind)}
        changed = {id: item[side] for (name, id), item in self._results.items() if name == kind}
        return {id: document for id, document in {**stored, **changed}.items() if document is not None}

    @functools.cache  # noqa: B019  # likewise
    def _stored(self, kind: str) -> list[Document]:
        return self._session.client.get(client.path(kind), self._at).objects()


class Past(Comparison):
    """The objects of clusters at two points of the log, of what Flux got then."""

    def __init__(self, session: Session, told: Mapping[str, Any]) -> None:
        super().__init__(session, {"results": []})
        self._points = {"before": told["from"], "after": told["to"]}

    def _inputs(self, id: str, kind: ReferencedKind, side: str) -> Iterable[view_sources.Input]:
        path = client.path(CLUSTERS, id, "inputs", str(kind.endpoint))
        try:
            answer = self._session.client.get(path, {"at": self._points[side]})
        except client.Problem as problem:
            if problem.status == 404:
                return ()  # it was not there
            raise
        return view_sources.listed(answer.object(inputs=list)["inputs"], "the answer")
