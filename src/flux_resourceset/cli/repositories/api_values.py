"""Inputs of tenants that the API holds: read as Flux gets them, and written as one transaction."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset import client, names
from flux_resourceset.cli import config, failures
from flux_resourceset.cli.commands import plans
from flux_resourceset.cli.known_kinds import CLUSTERS, ReferencedKind
from flux_resourceset.cli.parsing.grammar import PROGRAM
from flux_resourceset.repositories import bridging, layout, signature_kinds
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Values = dict[str, Any]
Operation = dict[str, Any]
Result = dict[str, Any]


class Change(NamedTuple):
    """Inputs that a tenant of one cluster is to have, beside those that stay."""

    tenant: layout.Tenant
    blueprint: str
    values: Mapping[str, Any]


class Before(NamedTuple):
    """A change that was made, and what it replaced; inputs that were not there are left out."""

    change: Change
    values: Values


def reach(session: Session, policy: Policy) -> None:
    """Ask the API that the policy names, where neither the environment nor a context says another."""
    if not session.target.url and session.target.context is None and policy.api_url is not None:
        session.target = config.Target({**session.target.known, config.URL: policy.api_url})


# Reading


def kind(session: Session, blueprint: str) -> ReferencedKind:
    """The kind that holds inputs for a blueprint, as the server knows it."""
    name = signature_kinds.kind_name(blueprint)
    found = next((each for each in session.kinds if each.name == name), None)
    if not isinstance(found, ReferencedKind):
        raise failures.Failure(
            failures.NOT_FOUND,
            f'kind "{name}" not found in the API; put what "{PROGRAM} fleet kind {blueprint}" prints into its RESOURCES_DIR',
        )
    return found


@functools.cache  # a tenant after another asks for the same, and no cluster gets another name while a command runs
def dns(session: Session, cluster: str) -> str:
    """The name under which a cluster of Git asks the API: that of the API's cluster with the same id."""
    try:
        found = str(session.client.get(client.path(CLUSTERS, cluster)).object(cluster_dns=str)["cluster_dns"])
    except client.Problem as problem:
        if problem.status != 404:
            raise
        _ = session.kinds  # says it better where a server has no clusters for operators at all
        raise missing_clusters([cluster]) from problem
    if not names.is_dns_name(found):  # it becomes a part of URLs
        raise client.not_understood("its cluster_dns is no DNS name")
    return found


def missing_clusters(clusters: Sequence[str]) -> failures.Failure:
    lines = (f'cluster "{each}" not found in the API; create it there with this id' for each in clusters)
    return failures.Failure(failures.NOT_FOUND, *lines)


def held(session: Session, tenant: layout.Tenant, blueprint: str) -> Values:
    """The inputs that Flux gets for a tenant; that there are none ends the command, with what to do about it."""
    found = held_or_none(session, tenant, blueprint)
    if found is None:
        raise _nothing_held(session, tenant, blueprint)
    return found


def _nothing_held(session: Session, tenant: layout.Tenant, blueprint: str) -> failures.Failure:
    of_kind = kind(session, blueprint)  # says it better if that is what is missing
    defined = {each["id"] for each in session.client.get(client.path(of_kind.name)).objects()}
    remedy = f"assign them there ({PROGRAM} {blueprint} assign {tenant.name} --cluster {tenant.cluster})"
    if tenant.name not in defined:
        remedy = f'create {of_kind.name} "{tenant.name}" there again, and assign it'
    line = f"{tenant.folder}: the API holds no inputs for it; {remedy}, or let Git hold them again"
    return failures.Failure(failures.NOT_FOUND, line)


def held_or_none(session: Session, tenant: layout.Tenant, blueprint: str) -> Values | None:
    """The same; None where the API has none."""
    return _polled(session, tenant.cluster, signature_kinds.view_name(blueprint), tenant.name).get(tenant.name)


@functools.cache
def held_in(session: Session, cluster: str, blueprint: str) -> Mapping[str, Values]:
    """The inputs of all tenants of a cluster that run a blueprint, by tenant."""
    return _polled(session, cluster, signature_kinds.view_name(blueprint))


def _polled(session: Session, cluster: str, *view: str) -> dict[str, Values]:
    """What Flux gets, by id; nothing also where the server knows no such view, or no such input."""
    try:
        answer = session.client.get(client.path("api", "v2", "flux", "clusters", dns(session, cluster), *view)).object(
            inputs=list
        )
    except client.Problem as problem:
        if problem.status != 404:
            raise
        return {}
    if not all(isinstance(each, dict) and isinstance(each.get("id"), str) for each in answer["inputs"]):
        raise client.not_understood("these are no inputs")
    return {each["id"]: bridging.inputs(each) for each in answer["inputs"]}


# Writing


def set_held(session: Session, changes: Sequence[Change], reason: str) -> list[Before]:
    """Give tenants other inputs, each in its own cluster, by its reference; all of them or none."""
    for tenant, _, values in changes:
        for name in bridging.nulls(values):
            raise failures.Failure(failures.REFUSED, f"{tenant.folder}: {name} is null or holds one, which the API cannot hold")
    before = [Before(each, held(session, each.tenant, each.blueprint)) for each in changes]
    submit(session, [operation for each in before for operation in _assignment(session, each)], reason)
    return [
        each._replace(values={name: each.values[name] for name in each.change.values if name in each.values}) for each in before
    ]


def _assignment(session: Session, before: Before) -> list[Operation]:
    """What the reference must say besides; merged into what it says itself, which may be less than what holds."""
    tenant, blueprint, values = before.change
    wanted = {each.field: each.api for each in bridging.differing(before.values, {**before.values, **values})}
    of_kind = kind(session, blueprint)
    cluster = session.client.get(client.path(CLUSTERS, tenant.cluster)).object()
    said = next((each for each in of_kind.references(cluster) if each["id"] == tenant.name), {})
    patch = bridging.merge_patch({name: said[name] for name in wanted if said.get(name) is not None}, wanted)
    about = {"kind": of_kind.name, "id": tenant.name, "clusters": [tenant.cluster]}
    return [{"op": "assign", **about, "document": patch, "only_assigned": True}] if patch else []


def submit(
    session: Session,
    operations: Sequence[Operation],
    reason: str,
    agreed: Callable[[plans.Plan], None] = lambda plan: None,
) -> list[Result]:
    """Carry out operations as one transaction, or with --dry-run only say what they would do.

    What is done is what the plan says, which `agreed` may refuse by a failure. `reason` is logged unless another one is given.
    """
    if not operations:
        return []
    body = {"operations": list(operations)}
    plan = plans.checked(session.client.send("POST", "/batch", body, _DRY_RUN, role="read").object(results=list))
    agreed(plan)
    if session.values.flag("dry-run"):
        plans.warn(session, plan)
        return list(plan["results"])
    stated = {"Idempotency-Key": os.urandom(16).hex()} | ({"If-Plan": f'"{plan["plan"]}"'} if "plan" in plan else {})
    if "reason" not in session.values:
        stated["X-Reason"] = reason[:_LONGEST_REASON]

    def write(consent: plans.Headers) -> Values:
        return session.write_client().send("POST", "/batch", body, headers={**stated, **consent}).object(results=list)

    answer = plans.carry_out(session, None, lambda: plan, write)
    plans.warn(session, answer)
    return list(answer["results"])


_DRY_RUN = {"dry_run": "true", "full": "true"}
_LONGEST_REASON = 500  # characters that the log takes
