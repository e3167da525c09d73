"""`fleet set` and `fleet promote`: inputs of tenants and pins of blueprints, changed value by value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import differences
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import checkouts
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.cli.repositories.input_edits import Edits, Values
from flux_resourceset.repositories import layout, tenants, yaml_scalars

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def set_inputs(session: Session) -> int:
    given, name = given_values(session), session.values.required("tenant")
    if not given:
        raise failures.usage("say what to set: --set KEY=VALUE or --set-json KEY=JSON")
    if "environment" not in session.values:
        raise failures.usage("say in which environment: --environment NAME")
    with Checkout(session) as checkout:
        edits = Edits(session, checkout)
        for tenant in checkouts.chosen(session, edits.tree, edits.policy, name):
            edits.change(tenant, given)
        subject = f"Set {', '.join(given)} of {name} in {session.values.required('environment')}"
        return edits.deliver(f"{subject}\n\nFleet-Action: set\n", f"fleet set {name}: {', '.join(given)}")


def given_values(session: Session) -> Values:
    """What --set and --set-json say, by input."""
    texts = [(key, value) for key, value in _pairs(session, "set")]
    scalars = [(key, _scalar(key, value)) for key, value in _pairs(session, "set-json")]
    values: Values = {}
    for key, value in [*texts, *scalars]:
        if key in values:
            raise failures.usage(f"{key} is set twice")
        values[key] = value
    return values


def _pairs(session: Session, option: str) -> Iterable[tuple[str, str]]:
    for text in session.values.many(option):
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise failures.usage(
                f"--{option} is {text!r}; write it as in --{option} KEY={'JSON' if option == 'set-json' else 'VALUE'}"
            )
        yield key, value


def _scalar(key: str, text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as exc:
        raise failures.usage(f"--set-json {key} is {text!r}, which is no JSON") from exc
    if isinstance(value, dict | list):
        raise failures.usage(f"--set-json {key} is a list or an object; an input that is edited must be a scalar")
    return yaml_scalars.as_read(value)


def _no_number(text: str) -> Any:
    raise ValueError(text)


# Promotion


def promote(session: Session) -> int:
    name, values = session.values.text("tenant"), session.values
    ways = [name is not None, values.flag("all"), values.flag("blueprints")]
    if sum(ways) != 1:
        raise failures.usage("say what to promote: one tenant, or --all, or --blueprints")
    if "to" not in values:
        raise failures.usage("say where to promote it: --to ENVIRONMENT")
    with Checkout(session) as checkout:
        edits = Edits(session, checkout)
        move = _Move(session, edits)
        if values.flag("blueprints"):
            what = "the blueprints"
            sources = move.pins()
        else:
            what = name or "all tenants"
            sources = move.tenants(name)
        commit = checkout.git.commit("HEAD") if values.flag("commit") or "branch" in values else ""
        origins = [f"Fleet-From: {cluster.folder}@{commit}" for cluster in sources]
        message = "\n".join([f"Promote {what} to {move.target}", "", "Fleet-Action: promote", *origins, ""])
        return edits.deliver(message, f"fleet promote {what} to {move.target}")


class _Move:
    """From the environment before into another."""

    def __init__(self, session: Session, edits: Edits) -> None:
        self.target = session.values.required("to")
        checkouts.check_environment(edits.policy, self.target)
        before = edits.policy.before(self.target)
        if before is None:
            raise failures.usage(f"{self.target} is the first environment; there is none before it to promote from")
        self._source = before
        self._edits = edits
        self._from = self._clusters(before, session.values.text("from-cluster"))
        self._into = self._clusters(self.target, session.values.text("cluster"))

    def _clusters(self, environment: str, only: str | None) -> list[layout.Cluster]:
        found = [each for each in layout.clusters(self._edits.tree, self._edits.policy, environment) if only in (None, each.name)]
        if only is not None and not found:
            raise failures.Failure(failures.NOT_FOUND, f'cluster "{only}" not found in {environment}')
        return found

    def pins(self) -> list[layout.Cluster]:
        """The release of the blueprints; returns where it was taken from."""
        if not self._from:
            raise failures.Failure(failures.NOT_FOUND, f"{self._source} has no cluster to promote from")
        with checkouts.telling():
            found = {each: tenants.pin(self._edits.tree, each) for each in self._from}
        if len(set(found.values())) > 1:
            raise _disagreement("the pin", {each.name: tag for each, tag in found.items()})
        self._edits.read_from += [each.path(layout.BLUEPRINTS) for each in self._from]
        tag = next(iter(found.values()))
        if self._edits.blueprints.release(tag) is None:
            raise failures.Failure(failures.NOT_FOUND, f'tag "{tag}" not found in the blueprints; fetch their tags')
        for cluster in self._into:
            self._edits.pin(cluster, tag)
        return self._from

    def tenants(self, name: str | None) -> list[layout.Cluster]:
        """The promoted inputs of one tenant, or of all that both environments have; returns where they were taken from."""
        sources, targets = self._by_name(self._from, name), self._by_name(self._into, name)
        if name is not None and name not in sources:
            raise self._missing(name, self._source)
        if name is not None and name not in targets:
            raise self._missing(name, self.target)
        used: dict[layout.Cluster, None] = {}
        for each in sources:
            if each in targets:
                values = self._promoted(sources[each])
                used |= {tenant.where: None for tenant in sources[each]}
                for tenant in targets[each]:
                    self._edits.change(tenant, values)
        return list(used)

    def _by_name(self, clusters: Sequence[layout.Cluster], name: str | None) -> dict[str, list[layout.Tenant]]:
        found: dict[str, list[layout.Tenant]] = {}
        for cluster in clusters:
            where = {"environment": cluster.environment, "cluster": cluster.name}
            for tenant in layout.tenants(self._edits.tree, self._edits.policy, name, **where):
                found.setdefault(tenant.name, []).append(tenant)
        return found

    def _promoted(self, sources: Sequence[layout.Tenant]) -> Values:
        """The inputs that are carried on; clusters that have the tenant must agree on them."""
        taken: list[Values] = []
        for tenant in sources:
            self._edits.read_from.append(tenant.path(layout.INPUT))
            values = self._edits.values(tenant)
            taken.append({field: values[field] for field in self._edits.policy.promoted if field in values})
        for field in self._edits.policy.promoted:
            found = {tenant.cluster: values.get(field, differences.ABSENT) for tenant, values in zip(sources, taken, strict=True)}
            if any(not differences.same(value, taken[0].get(field, differences.ABSENT)) for value in found.values()):
                raise _disagreement(f"{field} of {sources[0].name}", found)
        return taken[0]

    @staticmethod
    def _missing(name: str, environment: str) -> failures.Failure:
        return failures.Failure(failures.NOT_FOUND, f'tenant "{name}" not found in {environment}')


def _disagreement(what: str, found: dict[str, Any]) -> failures.Failure:
    told = ", ".join(f"{cluster}: {'nothing' if value is differences.ABSENT else value}" for cluster, value in found.items())
    return failures.Failure(failures.CONFLICT, f"clusters disagree on {what}; choose one with --from-cluster ({told})")
