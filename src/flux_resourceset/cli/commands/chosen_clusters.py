"""Which clusters a command is about: named, selected, or all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import batches
from flux_resourceset.cli.known_kinds import CLUSTERS, ReferencedKind

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]
_ATTEMPTS = 5  # against clusters that vanish between the choice and the transaction


class Clusters(NamedTuple):
    ids: list[str]
    named: bool  # each by --cluster, so that one that is missing is a mistake

    @property
    def single(self) -> bool:
        return self.named and len(self.ids) == 1


def given(session: Session) -> bool:
    """Whether the command line says anything about clusters."""
    values = session.values
    return bool(values.many("cluster")) or any(name in values for name in ("selector", "environment", "all"))


def chosen(session: Session, having: tuple[ReferencedKind, str] | None = None) -> Clusters:
    """The clusters that the options mean; `having` leaves out those that lack a reference."""
    values = session.values
    named = list(dict.fromkeys(values.many("cluster")))
    selecting = [name for name in ("selector", "environment") if name in values]
    if not named and not selecting and not values.flag("all"):
        raise failures.usage("say which clusters: --cluster ID, --selector, --environment or --all")
    if (named and (selecting or values.flag("all"))) or (selecting and values.flag("all")):
        raise failures.usage("--cluster, --all, and --selector with --environment exclude each other")
    if named:
        return Clusters(named if having is None else [_checked(session, id, having) for id in named], True)
    query = {name: values.required(name) for name in selecting}
    selected = session.client.get("/" + CLUSTERS, query).objects()
    if having is None:
        return Clusters([cluster["id"] for cluster in selected], False)
    kind, id = having
    held = [cluster["id"] for cluster in selected if reference(cluster, kind, id) is not None]
    if len(held) < len(selected):
        skipping = "would skip" if session.values.flag("dry-run") else "skipping"
        session.say(f'{skipping} {plural(len(selected) - len(held))} without {kind.singular} "{id}"')
    return Clusters(held, False)


def reference(cluster: Document, kind: ReferencedKind, id: str) -> Document | None:
    return next((item for item in kind.references(cluster) if item["id"] == id), None)


def _checked(session: Session, cluster_id: str, having: tuple[ReferencedKind, str]) -> str:
    kind, id = having
    cluster = session.client.get(client.path(CLUSTERS, cluster_id)).object()
    if reference(cluster, kind, id) is None:
        raise failures.Failure(
            failures.NOT_FOUND, f'{CLUSTERS} "{cluster_id}" does not have {kind.singular} "{id}"; assign it first'
        )
    return cluster_id


def plural(count: int) -> str:
    return f"{count} cluster" if count == 1 else f"{count} clusters"


def question(ids: list[str], doing: str) -> str | None:
    """One cluster is no crowd."""
    return f"{doing} on {plural(len(ids))}?" if len(ids) > 1 else None


def change(
    session: Session, clusters: Clusters, doing: str, operations: Callable[[list[str]], list[batches.Operation]]
) -> batches.Results:
    """Do the same to every cluster in one transaction, after saying how many there are and asking."""
    session.require_write_token()
    if clusters.ids or not clusters.named:
        verb = " would concern" if session.values.flag("dry-run") else ":"
        session.say(f"{doing}{verb} {plural(len(clusters.ids))}" + ("" if clusters.ids else "; nothing to do"))
    ids = clusters.ids
    for _ in range(_ATTEMPTS):
        try:
            return batches.submit(session, operations(ids), question=question(ids, doing))
        except client.Problem as problem:
            # a cluster that was selected, not named, and is gone or lost its reference meanwhile, is no longer selected
            gone = problem.body.get("id") if problem.body.get("kind") == CLUSTERS else None
            if clusters.named or problem.status != 404 or gone not in ids:
                raise
            ids = [id for id in ids if id != gone]
    raise failures.Failure(failures.CONFLICT, "the clusters change faster than this command; try again")


def show(session: Session, clusters: Clusters, results: list[batches.Result], extra: list[str]) -> None:
    """The clusters as they are now: one document if one was named, an array otherwise."""
    changed = [(CLUSTERS, result["after"]) for result in results if result["kind"] == CLUSTERS]
    batches.show(session, results, changed, single=clusters.single, extra=extra)
