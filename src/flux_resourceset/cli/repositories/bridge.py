"""The bridge between Git and the API: `fleet kind`, `fleet import`, `fleet compare` and `fleet switch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset import client, differences
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import batches, plans
from flux_resourceset.cli.known_kinds import CLUSTERS
from flux_resourceset.cli.repositories import api_values, checkouts, edited_files
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.cli.repositories.switched_providers import Switching
from flux_resourceset.repositories import blueprints, bridging, layout, signature_kinds, tenants, trees
from flux_resourceset.repositories.policy import API, Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Values = dict[str, Any]


# The kind


def kind(session: Session) -> int:
    name, tag = session.values.required("blueprint"), session.values.text("at")
    if tag == "":
        raise failures.usage("--at is empty; an unset variable, perhaps")
    with Checkout(session) as checkout:
        releases = checkout.blueprints(checkout.policy(checkout.tree(None)))
        tag = tag or releases.newest()
        release = releases.release(tag)
        if release is None:
            raise failures.Failure(failures.NOT_FOUND, f'tag "{tag}" not found in the blueprints; fetch their tags')
        with checkouts.telling():
            blueprint = releases.blueprint(name, tag)
        if blueprint is None:
            known = ", ".join(blueprints.names(release)) or "none"
            raise failures.Failure(failures.NOT_FOUND, f'blueprint "{name}" not found at tag {tag}; there are: {known}')
    try:
        made = signature_kinds.kind_file(name, blueprint.schema)
    except signature_kinds.Untranslatable as exc:
        raise failures.Failure(failures.REFUSED, f"{blueprints.APPS}/{name}/{blueprints.SCHEMA}: {exc}") from exc
    if words := signature_kinds.left_out(blueprint.schema):
        session.say(f"note: rules about several inputs at once are left out ({', '.join(words)}); fleet lint keeps to them")
    _print_kind(session, made)
    return failures.OK


def _print_kind(session: Session, made: Values) -> None:
    match session.values.text("output"):
        case None | "yaml" | "table" | "wide":
            session.output.yaml([made])
        case "name":
            session.output.line(made["kind"])
        case _:
            session.output.json(made)


# What is where


class _Static(NamedTuple):
    """A tenant whose inputs Git holds."""

    tenant: layout.Tenant
    blueprint: str
    values: Values


class _Selected(NamedTuple):
    static: list[_Static]
    every: list[tuple[layout.Tenant, str]]  # also those of the API; with their blueprints, in the order of promotion


def _selected(session: Session, tree: trees.Tree, policy: Policy) -> _Selected:
    """The tenant that is named, or all; those whose inputs the API holds already are only told of."""
    name = session.values.text("tenant")
    if name is not None and session.values.flag("all"):
        raise failures.usage("say one tenant by its name, or --all; not both")
    found = _Selected([], [])
    with checkouts.telling():
        for tenant in checkouts.chosen(session, tree, policy, name):
            held, blueprint = tenants.inputs(tree, tenant), tenants.sync(tree, tenant).blueprint
            found.every.append((tenant, blueprint))
            if held.type == tenants.STATIC:
                found.static.append(_Static(tenant, blueprint, held.values))
    others = len(found.every) - len(found.static)
    if others:
        session.say(f"note: the API holds the inputs of {others} already, which are left alone")
    return found


# Import


def load(session: Session) -> int:
    with Checkout(session) as checkout:
        tree = checkout.tree(None)
        policy = checkout.policy(tree)
        selected = _selected(session, tree, policy)
    session.require_write_token()
    api_values.reach(session, policy)
    for tenant, _, values in selected.static:
        for name in bridging.nulls(values):
            line = f"{tenant.path(layout.INPUT)}: {name} is null or holds one, which the API cannot hold; leave it out"
            raise failures.Failure(failures.REFUSED, line)
    results = _import(session, selected) if selected.static else []
    rows = [
        {"kind": each["kind"], "id": each["id"], "operation": each["change"]} for each in results if each["change"] != "unchanged"
    ]
    session.output.rows(rows, ("kind", "id", "operation"), name=lambda row: f"{row['kind']}/{row['id']}", keys=("id",))
    session.say(batches.summary(results, session.values.flag("dry-run")) if rows else "nothing to do")
    return failures.OK


def _import(session: Session, selected: _Selected) -> list[api_values.Result]:
    held = _Held(session, selected.static)
    named = session.values.text("tenant") or "all tenants"
    return api_values.submit(session, list(held.operations(selected)), f"fleet import {named}", held.check)


class _Held:
    """What the API holds, of all clusters: those that are not selected must keep what they have."""

    def __init__(self, session: Session, selected: Sequence[_Static]) -> None:
        self._selected = {each.tenant.cluster for each in selected}
        self._clusters = {each["id"]: each for each in session.client.get(client.path(CLUSTERS)).objects()}
        missing = sorted(self._selected - {*self._clusters})
        if missing:
            raise api_values.missing_clusters(missing)
        self._definitions: dict[str, dict[str, Values]] = {}  # by kind and id
        self._references: dict[tuple[str, str], dict[str, Values]] = {}  # by kind and id, then by cluster
        for blueprint in dict.fromkeys(each.blueprint for each in selected):
            of_kind = api_values.kind(session, blueprint)
            documents = session.client.get(client.path(of_kind.name)).objects()
            self._definitions[of_kind.name] = {each["id"]: each for each in documents}
            for id, cluster in self._clusters.items():
                for reference in of_kind.references(cluster):
                    self._references.setdefault((of_kind.name, reference["id"]), {})[id] = _without_id(reference)

    def operations(self, selected: _Selected) -> Iterator[api_values.Operation]:
        for (of_kind, name), by_cluster in self._wanted(selected).items():
            definition, references = self._definition(of_kind, name), self._references.get((of_kind, name), {})
            made = bridging.split(by_cluster, definition or {}, references)
            yield from bridging.operations(of_kind, name, definition, references, made)

    def _wanted(self, selected: _Selected) -> dict[tuple[str, str], dict[str, Values]]:
        """By kind and id, the values of each selected cluster.

        Those that the API holds stay as they are, and count for the majority: an import that is repeated after a switch would
        otherwise write another definition, though nobody's values are others.
        """
        given = {each.tenant: each.values for each in selected.static}
        wanted: dict[tuple[str, str], dict[str, Values]] = {
            (signature_kinds.kind_name(each.blueprint), each.tenant.name): {} for each in selected.static
        }
        for tenant, blueprint in selected.every:
            key = signature_kinds.kind_name(blueprint), tenant.name
            values = given[tenant] if tenant in given else self._effective(*key, tenant.cluster)
            if key not in wanted or values is None:
                continue
            if tenant.cluster in wanted[key]:
                line = f'{tenant.folder}: another environment has a cluster "{tenant.cluster}", too; say --environment'
                raise failures.Failure(failures.REFUSED, line)
            wanted[key][tenant.cluster] = values
        return wanted

    def _definition(self, kind: str, id: str) -> Values | None:
        document = self._definitions.get(kind, {}).get(id)
        return None if document is None else _without_id(document)

    def _effective(self, kind: str, id: str, cluster: str) -> Values | None:
        """What the API has for a cluster; None where it has nothing."""
        definition, reference = self._definition(kind, id), self._references.get((kind, id), {}).get(cluster)
        if definition is None or reference is None:
            return None
        return {**bridging.without_nulls(definition), **bridging.without_nulls(reference)}

    def check(self, plan: plans.Plan) -> None:
        """That the plan starts from what was read, and that nobody else gets other inputs."""
        for result in plan["results"]:
            known = self._clusters if result["kind"] == CLUSTERS else self._definitions[result["kind"]]
            if not differences.same(result["before"], known.get(result["id"])):
                line = f'{result["kind"]} "{result["id"]}" was changed meanwhile; nothing was written, try again'
                raise failures.Failure(failures.CONFLICT, line)
        others = {id for group in plan.get("groups", ()) for id in group["clusters"]} - self._selected
        if others:
            line = f"clusters that are not selected would get other inputs ({', '.join(sorted(others))}); nothing was written"
            raise failures.Failure(failures.CONFLICT, line)


def _without_id(document: Values) -> Values:
    return {name: value for name, value in document.items() if name != "id"}


# Compare


def compare(session: Session) -> int:
    with Checkout(session) as checkout:
        tree = checkout.tree(None)
        policy = checkout.policy(tree)
        selected = _selected(session, tree, policy)
    api_values.reach(session, policy)
    for blueprint in dict.fromkeys(each.blueprint for each in selected.static):
        api_values.kind(session, blueprint)
    rows = []
    for tenant, blueprint, values in selected.static:
        held = api_values.held_in(session, tenant.cluster, blueprint).get(tenant.name, {})
        rows += [{**tenant.told(), **each._asdict()} for each in bridging.differing(values, held)]
    columns = ("environment", "cluster", "tenant", "field", "git", "api")
    session.output.rows(
        rows, columns, name=lambda row: f"{row['cluster']}/{row['tenant']}/{row['field']}", keys=("cluster", "tenant", "field")
    )
    if not selected.static:
        session.say("nothing had to be compared: Git holds the inputs of no tenant that was selected")
    elif not rows:
        session.say("Git and the API have the same inputs")
    return failures.DIFFERENT if rows else failures.OK


# Switch


def switch(session: Session) -> int:
    to, name = session.values.text("to"), session.values.required("tenant")
    if to is None:
        raise failures.usage("say who is to hold the inputs: --to api or --to git")
    if "cluster" not in session.values and "environment" not in session.values:
        raise failures.usage("say where: --cluster NAME or --environment NAME")
    with Checkout(session) as checkout:
        switching = Switching(session, checkout)
        if to == API and switching.policy.api_url is None:
            raise failures.usage("fleet.yaml names no api.url, where the clusters reach the API; add it")
        affected = switching.affected(name, tenants.EXTERNAL if to == API else tenants.STATIC)
        for tenant in affected:
            _check_holder(tenant, switching.policy, to)
        (switching.to_api if to == API else switching.to_git)(affected)
        where = "/".join(session.values.required(each) for each in ("environment", "cluster") if each in session.values)
        message = f"Let {'the API' if to == API else 'Git'} hold the inputs of {name} in {where}\n\nFleet-Action: switch\n"
        code = edited_files.deliver(session, checkout, switching.files, (), message, switching.rows)
    for note in switching.notes if not session.values.flag("dry-run") else ():
        session.say(note)
    return code


def _check_holder(tenant: layout.Tenant, policy: Policy, holder: str) -> None:
    environment = policy.environment(tenant.environment)
    if environment is not None and holder not in environment.inputs:
        line = f"{tenant.folder}: fleet.yaml lets only {environment.inputs[0]} hold the inputs of {environment.name}"
        raise failures.Failure(failures.REFUSED, line)
