"""`fleet render`: the objects of tenants, as a commit or the work tree has them, by the blueprints of the pinned releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flux_resourceset import render
from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import manifest_files, view_sources
from flux_resourceset.cli.output.terminal_text import json_text
from flux_resourceset.cli.repositories import api_values, checkouts
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.render import dialect
from flux_resourceset.repositories import layout, objects, tenants, trees
from flux_resourceset.repositories.blueprints import Engine
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Objects = list[render.Manifest]


class Renderer:
    """Makes objects of tenants, from one tree."""

    def __init__(self, session: Session, checkout: Checkout, tree: trees.Tree, policy: Policy, engine: Engine) -> None:
        api_values.reach(session, policy)
        self._session = session
        self._tree = tree
        self._engine = engine
        self._blueprints = checkout.blueprints(policy)
        self._pins: dict[layout.Cluster, str] = {}

    def objects(self, tenant: layout.Tenant) -> Objects:
        """What a tenant's ResourceSet makes; whatever is broken ends the command."""
        with checkouts.telling():
            tag = self._pin(tenant.where)
            sync = tenants.sync(self._tree, tenant)
            blueprint = self._blueprints.blueprint(sync.blueprint, tag)
            if blueprint is None:
                raise _missing(tenant, sync.blueprint, tag)
            held = tenants.inputs(self._tree, tenant)
        values = held.values if held.type == tenants.STATIC else api_values.held(self._session, tenant, sync.blueprint)
        try:
            return blueprint.objects(tenant.name, sync.namespace, values, self._engine)
        except render.TemplateError as exc:
            raise failures.Failure(failures.REFUSED, f"{tenant.folder}: {sync.blueprint} {tag}: {exc}") from exc

    def _pin(self, cluster: layout.Cluster) -> str:
        if cluster not in self._pins:
            self._pins[cluster] = tenants.pin(self._tree, cluster)
        return self._pins[cluster]


def _missing(tenant: layout.Tenant, blueprint: str, tag: str) -> failures.Failure:
    return failures.Failure(
        failures.NOT_FOUND, f'{tenant.folder}: blueprint "{blueprint}" not found at tag {tag}; fetch the tags of the blueprints'
    )


def render_tenants(session: Session) -> int:
    with Checkout(session) as checkout:
        revision = session.values.text("at")
        tree = checkout.tree(None if revision is None else checkout.git.commit(revision))
        policy = checkout.policy(tree)
        chosen = checkouts.chosen(session, tree, policy, session.values.text("tenant"))
        renderer = Renderer(session, checkout, tree, policy, view_sources.engine(session))
        _deliver(session, ((tenant, renderer.objects(tenant)) for tenant in chosen))
    return failures.OK


def _deliver(session: Session, rendered: Iterable[tuple[layout.Tenant, Objects]]) -> None:
    folder = session.values.text("output-dir")
    if folder == "":
        raise failures.usage("--output-dir is empty; an unset variable, perhaps")
    if folder is not None:
        with manifest_files.writing(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
            count = sum(_write(Path(folder), tenant, made) for tenant, made in rendered)
        session.say(f"{count} files in {folder}")
        return
    match session.values.text("output"):
        case "json":
            _as_json(session, rendered)
        case "name":
            for tenant, made in rendered:
                for manifest in made:
                    session.output.line(f"{tenant.folder}: {objects.identity(manifest)}")
        case _:
            for _, made in rendered:
                session.output.raw(dialect.presented(made).encode())


def _write(folder: Path, tenant: layout.Tenant, made: Objects) -> int:
    for manifest in made:
        manifest_files.write(folder / tenant.environment / tenant.cluster / tenant.name, manifest)
    return len(made)


def _as_json(session: Session, rendered: Iterable[tuple[layout.Tenant, Objects]]) -> None:
    """An item a line, each written as soon as it is made: a fleet's objects need not fit into memory."""
    for piece in _pieces({**tenant.told(), "objects": made} for tenant, made in rendered):
        session.output.raw(piece.encode())


def _pieces(items: Iterator[dict[str, Any]]) -> Iterator[str]:
    first = next(items, None)
    if first is None:
        yield "[]\n"
        return
    yield "[\n" + json_text(first)
    for item in items:
        yield ",\n" + json_text(item)
    yield "\n]\n"
