"""`fleet diff`: what a change does to the objects of tenants. Only tenants that the change can reach are rendered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import view_sources
from flux_resourceset.cli.repositories import markdown
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.cli.repositories.rendering import Objects, Renderer
from flux_resourceset.repositories import layout, objects, trees
from flux_resourceset.repositories import policy as policies
from flux_resourceset.repositories.blueprints import Engine
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


class _Side:
    """A tree and what its tenants become."""

    def __init__(self, session: Session, checkout: Checkout, commit: str | None, engine: Engine) -> None:
        self.tree: trees.Tree = checkout.tree(commit)
        self.policy: Policy = checkout.policy(self.tree)
        self._renderer = Renderer(session, checkout, self.tree, self.policy, engine)

    def objects(self, tenant: layout.Tenant) -> Objects:
        there = tenant.environment in self.policy.names and self.tree.children(tenant.folder)
        return self._renderer.objects(tenant) if there else []


def diff(session: Session) -> int:
    with Checkout(session) as checkout:
        before = checkout.git.commit(_given(session, "from", "HEAD"))
        after = checkout.git.commit(session.values.required("to")) if "to" in session.values else None
        engine = view_sources.engine(session)
        sides = [_Side(session, checkout, commit, engine) for commit in (before, after)]
        reached = sorted(_reached(checkout.git.changed(before, after), sides), key=_order(sides))
        changes = [objects.change(tenant, *(side.objects(tenant) for side in sides)) for tenant in reached]
    told = objects.summary(change for change in changes if change is not None)
    if session.values.text("output") == "markdown":
        session.output.raw(markdown.of_diff(told).encode())
    else:
        names = [f"{each['environment']}/{each['cluster']}/{each['tenant']}" for each in told["tenants"]]
        session.output.value(told, lambda: _lines(told), names)
    return failures.DIFFERENT if told["tenants"] else failures.OK


def _given(session: Session, option: str, otherwise: str) -> str:
    return session.values.required(option) if option in session.values else otherwise


def _reached(paths: list[str], sides: list[_Side]) -> set[layout.Tenant]:
    """The tenants whose objects can be different: their own files changed, or the release that their cluster is pinned to."""
    found: set[layout.Tenant] = set()
    for path in paths:
        tenant, cluster = layout.tenant_of(path), layout.cluster_of(path)
        if tenant is not None:
            found.add(tenant)
        elif cluster is not None and path == cluster.path(layout.BLUEPRINTS):
            found |= _tenants(sides, environment=cluster.environment, cluster=cluster.name)
        elif path == policies.FILE:
            found |= _moved(sides)
    return {tenant for tenant in found if any(tenant.environment in side.policy.names for side in sides)}


def _moved(sides: list[_Side]) -> set[layout.Tenant]:
    """The tenants that another policy reaches: of environments that came or went, or all if the blueprints are elsewhere."""
    old, new = (side.policy for side in sides)
    if old.checkout != new.checkout:
        return _tenants(sides)
    return {tenant for environment in {*old.names} ^ {*new.names} for tenant in _tenants(sides, environment=environment)}


def _tenants(sides: list[_Side], **where: str) -> set[layout.Tenant]:
    return {tenant for side in sides for tenant in layout.tenants(side.tree, side.policy, **where)}


def _order(sides: list[_Side]) -> Any:
    names = list(dict.fromkeys([*sides[1].policy.names, *sides[0].policy.names]))
    return lambda tenant: (names.index(tenant.environment), tenant.cluster, tenant.name)


def _lines(told: dict[str, Any]) -> Iterator[str]:
    for group in told["groups"]:
        where = [f"{each['environment']}/{each['cluster']}/{each['tenant']}" for each in group["tenants"]]
        yield f"@ {', '.join(where)}"
        yield from (f"  + {name}" for name in group["added"])
        yield from (f"  - {name}" for name in group["removed"])
        for change in group["changed"]:
            yield f"  ~ {change['object']}"
            yield from (f"      {field['path']}: {field['before']!r} → {field['after']!r}" for field in change["fields"])
    if not told["groups"]:
        yield "no difference"
