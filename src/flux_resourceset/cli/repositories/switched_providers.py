"""Files of tenants whose inputs move: providers that ask the API, or hold the inputs themselves; and the token for asking."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing.grammar import PROGRAM
from flux_resourceset.cli.repositories import api_values, checkouts, edited_files
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.repositories import bridging, edits, layout, manifests, signature_kinds, tenants, yaml_scalars
from flux_resourceset.repositories.tenants import Sync

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_SECRET = "ExternalSecret"  # noqa: S105  # the kind, and no secret
_ABOUT = "# The token with which Flux asks the API for the inputs of this tenant. A switch to Git takes it out again."


class Switching:
    """The edits of a switch, as they are gathered; nothing is written here."""

    def __init__(self, session: Session, checkout: Checkout) -> None:
        self._session = session
        self._checkout = checkout
        self._tree = edited_files.source(session, checkout)
        self.policy = checkout.policy(self._tree)
        self.files: dict[str, bytes] = {}
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []  # for when it is done: what the rows do not tell
        api_values.reach(session, self.policy)

    def affected(self, name: str, wanted: str) -> list[layout.Tenant]:
        """The tenants whose provider is of another type."""
        with checkouts.telling():
            chosen = checkouts.chosen(self._session, self._tree, self.policy, name)
            return [each for each in chosen if tenants.inputs(self._tree, each).type != wanted]

    def to_api(self, affected: Sequence[layout.Tenant]) -> None:
        """Let providers ask the API, which must have the same inputs."""
        with checkouts.telling():
            syncs = {tenant: tenants.sync(self._tree, tenant) for tenant in affected}
            lines = [line for tenant, sync in syncs.items() for line in self._differing(tenant, sync)]
            if lines:
                remedy = f"make both equal first, as with: {PROGRAM} fleet import {affected[0].name}"
                raise failures.Failure(failures.CONFLICT, *lines, remedy)
            for tenant, sync in syncs.items():
                dns, view = api_values.dns(self._session, tenant.cluster), signature_kinds.view_name(sync.blueprint)
                self._provide(tenant, bridging.external(self.policy, dns, view, tenant.name))
                self._add_secret(tenant, sync)

    def _differing(self, tenant: layout.Tenant, sync: Sync) -> Iterator[str]:
        api_values.kind(self._session, sync.blueprint)
        held = api_values.held_or_none(self._session, tenant, sync.blueprint) or {}
        for field, git, api in bridging.differing(tenants.inputs(self._tree, tenant).values, held):
            if git is api is None:
                yield f"{tenant.folder}: {field} is null in Git, which the API cannot hold; leave it out"
            else:
                yield f"{tenant.folder}: {field} is {_shown(git)} in Git and {_shown(api)} in the API"

    def to_git(self, affected: Sequence[layout.Tenant]) -> None:
        """Let providers hold the inputs that the API has now."""
        with checkouts.telling():
            for tenant in affected:
                sync = tenants.sync(self._tree, tenant)
                values = api_values.held(self._session, tenant, sync.blueprint)
                blueprint = self._checkout.blueprints(self.policy).blueprint(
                    sync.blueprint, tenants.pin(self._tree, tenant.where)
                )
                for violation in blueprint.violations(values) if blueprint else ():
                    self._session.warn(f"{tenant.folder}: {violation.text}")
                self._remove_secret(tenant)
                self._provide(tenant, bridging.static(values, blueprint.schema if blueprint else {}))

    # Files

    def _provide(self, tenant: layout.Tenant, spec: dict[str, Any]) -> None:
        path = tenant.path(layout.INPUT)
        before = tenants.inputs(self._tree, tenant)
        place = next(place for place, each in self._documents(path) if each.kind == tenants.PROVIDER)
        with _refusing(path):
            self.files[path] = edits.with_block(self._body(path), ("spec",), spec, document=place)
        self.rows.append({"path": path, "field": "spec.type", "before": before.type, "after": spec["type"]})

    def _add_secret(self, tenant: layout.Tenant, sync: Sync) -> None:
        path, name = tenant.path(layout.SECRETS), self.policy.api_secret
        if any(_makes(each, name) for _, each in self._documents(path)):
            return  # who has put it there knows better
        manifest = bridging.token_secret(self.policy, tenant, sync.namespace, name)
        text = "\n".join([_ABOUT, *yaml_scalars.lines(manifest), ""])
        with _refusing(path):
            self.files[path] = edits.with_document(self._body(path), text.encode())
        self.notes.append(f"{path}: {_SECRET} {name} is added, for the token")

    def _remove_secret(self, tenant: layout.Tenant) -> None:
        """Only one that a switch has put there, by its comment: any other may be needed elsewhere, too."""
        path = tenant.path(layout.SECRETS)
        name = str(tenants.inputs(self._tree, tenant).manifest.at("spec", "secretRef", "name"))
        text = self._body(path).decode("utf-8-sig")
        for place, each in self._documents(path):
            if not _makes(each, name):
                continue
            if text[: each.node.start_mark.index].rstrip().endswith(_ABOUT):
                with _refusing(path):
                    self.files[path] = edits.without_document(self._body(path), place)
                self.notes.append(f"{path}: {_SECRET} {name} is taken out")
                return
            self.notes.append(f"note: {path}: {_SECRET} {name} stays, for no switch has put it there")

    def _documents(self, path: str) -> list[tuple[int, manifests.Manifest]]:
        return list(enumerate(tenants.documents(self._tree, path)))

    def _body(self, path: str) -> bytes:
        return self._tree.read(path) or b""


def _makes(manifest: manifests.Manifest, secret: str) -> bool:
    """Whether it makes this Secret; one that names no target makes one of its own name."""
    return manifest.kind == _SECRET and (manifest.at("spec", "target", "name") or manifest.name) == secret


@contextlib.contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except edits.Refused as exc:
        raise failures.Failure(failures.REFUSED, f"{path}: {exc}") from exc


def _shown(value: Any) -> str:
    return "missing" if value is None else json.dumps(value, ensure_ascii=False)
