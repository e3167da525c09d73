"""Inputs of tenants, edited where they are held: in the files of Git, or in the API. All of a command's edits, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import differences
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import api_values, checkouts, edited_files
from flux_resourceset.cli.repositories.checkouts import Blueprints, Checkout
from flux_resourceset.repositories import edits, layout, manifests, tenants, trees
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Values = dict[str, Any]


class Edits:
    """Edits as they are gathered, each checked against the signature of its blueprint, and then made together."""

    def __init__(self, session: Session, checkout: Checkout) -> None:
        self._session = session
        self._checkout = checkout
        self.tree: trees.Tree = edited_files.source(session, checkout)
        self.policy: Policy = checkout.policy(self.tree)
        api_values.reach(session, self.policy)
        self.read_from: list[str] = []
        self._files: dict[str, bytes] = {}
        self._rows: list[dict[str, Any]] = []
        self._held: list[api_values.Change] = []
        self._blueprints: Blueprints | None = None

    @property
    def blueprints(self) -> Blueprints:
        if self._blueprints is None:
            self._blueprints = self._checkout.blueprints(self.policy)
        return self._blueprints

    def values(self, tenant: layout.Tenant) -> Values:
        """The inputs of a tenant, whoever holds them."""
        with checkouts.telling():
            held = tenants.inputs(self.tree, tenant)
            if held.type == tenants.STATIC:
                return held.values
            return api_values.held(self._session, tenant, tenants.sync(self.tree, tenant).blueprint)

    def change(self, tenant: layout.Tenant, new: Mapping[str, Any]) -> None:
        """Give a tenant other inputs; those that it has already are left alone."""
        old = self.values(tenant)
        changed = {key: value for key, value in new.items() if not differences.same(old.get(key, differences.ABSENT), value)}
        if not changed:
            return
        path = tenant.path(layout.INPUT)
        self._check(tenant, {**old, **changed})
        with checkouts.telling():
            held = tenants.inputs(self.tree, tenant)
            if held.type == tenants.STATIC:
                for key, value in changed.items():
                    self._splice(path, held.manifest, (*tenants.VALUES, key), value)
            else:
                self._held.append(api_values.Change(tenant, tenants.sync(self.tree, tenant).blueprint, changed))
        self._rows += [{"path": path, "field": key, "before": old.get(key), "after": value} for key, value in changed.items()]

    def pin(self, cluster: layout.Cluster, tag: str) -> None:
        """Let a cluster run another release of the blueprints, which must take the inputs of its tenants."""
        path = cluster.path(layout.BLUEPRINTS)
        with checkouts.telling():
            before = tenants.pin(self.tree, cluster)
            if before == tag:
                return
            for tenant in layout.tenants(self.tree, self.policy, environment=cluster.environment, cluster=cluster.name):
                self._check(tenant, self.values(tenant), tag)
            manifest = tenants.single(self.tree, path, "GitRepository")
            self._splice(path, manifest, tenants.TAG, tag)
        self._rows.append({"path": path, "field": tenants.TAG[-1], "before": before, "after": tag})

    def _check(self, tenant: layout.Tenant, values: Values, tag: str | None = None) -> None:
        with checkouts.telling():
            name = tenants.sync(self.tree, tenant).blueprint
            tag = tag or tenants.pin(self.tree, tenant.where)
            blueprint = self.blueprints.blueprint(name, tag)
        if blueprint is None:
            raise failures.Failure(failures.NOT_FOUND, f'{tenant.folder}: blueprint "{name}" not found at tag {tag}')
        wrong = blueprint.violations(values)
        if wrong:
            lines = (f"{tenant.path(layout.INPUT)}: {violation.text} ({name} {tag})" for violation in wrong)
            raise failures.Failure(failures.REFUSED, *lines)

    def _splice(self, path: str, manifest: manifests.Manifest, steps: Sequence[str], value: Any) -> None:
        body = self._files.get(path) or self.tree.read(path)
        assert body is not None  # it was read before
        documents = manifests.of_tree(self.tree, path)
        place = next(number for number, each in enumerate(documents) if each.line() == manifest.line())
        try:
            self._files[path] = edits.with_value(body, steps, value, document=place)
        except edits.Refused as exc:
            raise failures.Failure(failures.REFUSED, f"{path}: {exc}") from exc

    def deliver(self, message: str, reason: str) -> int:
        """Print, write, commit: as the command line says."""

        def write() -> None:
            api_values.set_held(self._session, self._held, reason)
            if self._session.values.flag("commit") or "branch" in self._session.values:
                self._session.say("note: the API has what it holds at once; no commit is made of that")

        elsewhere = write if self._held else None
        return edited_files.deliver(self._session, self._checkout, self._files, self.read_from, message, self._rows, elsewhere)
