"""`fleet init`, `fleet new-cluster` and `fleet new-tenant`: files that are made, where there were none."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flux_resourceset import atomic_files, names
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import checkouts, editing, git_isolation, new_repositories
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.repositories import layout, scaffold, scaffold_siblings, tenants, trees, yaml_scalars
from flux_resourceset.repositories.blueprints import Blueprint
from flux_resourceset.repositories.policy import GIT, TAKEN, Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_CHARTS = re.compile(r"(https?|oci)://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~%-]+)*/?")  # nothing a template could read
_SYSTEM = re.compile(r"kube-.*|flux-system|default")  # namespaces that are nobody's
# Words that blueprints must not hold, wherever they stand: lint-blueprints would refuse what init makes.
_UNWANTED = re.compile(r"(?<![a-z0-9])(?:dev|qa|uat|staging|prod)(?![a-z0-9])|vault|external-secrets", re.IGNORECASE)


# Both repositories


def init(session: Session) -> int:
    values = session.values
    if not values.required("dir"):  # which would be the current directory
        raise failures.usage("<dir> is empty; an unset variable, perhaps")
    folder, ci = Path(values.required("dir")), values.text("ci") or scaffold.GITHUB
    name = values.required("name") if "name" in values else scaffold.NAME
    _check_name("--name is", name, scaffold.blueprints_name(name))
    environments, charts = _environments(values.text("environments")), _charts(values.text("charts"), name)
    git_isolation.program(session.environment)
    made = scaffold.repositories(name, environments, ci, charts)
    for repository in made:
        if os.path.lexists(folder / repository):
            raise failures.Failure(failures.CONFLICT, f"{folder / repository} exists; choose another directory or another --name")
    _make(session, folder, made)
    rows = [{"path": f"{repository}/{path}"} for repository, files in made.items() for path in files]
    lines = [
        f"{folder / repository}: {len(files)} files, committed on {new_repositories.BRANCH}" for repository, files in made.items()
    ]
    session.output.value(rows, lambda: lines, [row["path"] for row in rows])
    return failures.OK


def _check_name(what: str, name: str, longest: str) -> None:
    """Whether it is a name of Kubernetes, and so is the longest that is made of it; and a text to every reader of YAML."""
    if not names.is_dns_label(name) or not names.is_dns_label(longest):
        most = 63 - len(longest) + len(name)
        raise failures.usage(f"{what} {name!r}; it must have lower case letters, digits and dashes, at most {most} of them")
    if not yaml_scalars.fits_plain(name):
        raise failures.usage(f"{what} {name!r}, which YAML takes for something else than a text; choose another name")


def _environments(text: str | None) -> Sequence[str]:
    if text is None:
        return scaffold.ENVIRONMENTS
    found = [name.strip() for name in text.split(",")]
    for place, name in enumerate(found):
        _check_name("--environments has", name, f"{name}-use1-01")
        if name in TAKEN:
            raise failures.usage(f"--environments has {name}, a directory that is something else; choose another name")
        if name in found[:place]:
            raise failures.usage(f"--environments has {name} twice")
    return found


def _charts(given: str | None, name: str) -> str:
    url = scaffold.default_charts(name) if given is None else given
    if not _CHARTS.fullmatch(url):
        raise failures.usage(
            f"--charts is {url!r}; write it as in https://charts.example.com or oci://registry.example.com/charts"
        )
    if (unwanted := _UNWANTED.search(url)) is not None:
        raise failures.usage(f"the charts are at {url}, and blueprints name no {unwanted[0]}; give another address with --charts")
    return url


def _make(session: Session, folder: Path, made: Mapping[str, scaffold.Files]) -> None:
    """Under other names first, so that whatever fails leaves nothing behind."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".flux-resourceset-", dir=folder))
        try:
            for repository, files in made.items():
                released = scaffold.RELEASE if repository.endswith(scaffold.blueprints_name("")) else None
                (draft / repository).mkdir()
                new_repositories.create(draft / repository, files, _SUBJECT, released, session.environment)
            for repository in made:
                (draft / repository).rename(folder / repository)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as exc:
        raise failures.usage(f"{folder} cannot be written: {exc.strerror or exc}") from exc


_SUBJECT = "Begin with a sample"


# A cluster


def new_cluster(session: Session) -> int:
    name, environment = session.values.required("cluster"), session.values.text("environment")
    if environment is None:
        raise failures.usage("say in which environment: --environment NAME")
    with Checkout(session) as checkout:
        tree = checkout.tree(None)
        policy = checkout.policy(tree)
        checkouts.check_environment(policy, environment)
        _check_name("<cluster> is", name, name)
        place = layout.Cluster(environment, name)
        known = {each.name: each for each in layout.clusters(tree, policy)}
        if name in known:
            raise failures.Failure(failures.CONFLICT, f'cluster "{name}" exists in {known[name].environment}')
        pin = scaffold_siblings.pin(tree, policy, environment) or checkout.blueprints(policy).newest()
        sources = scaffold_siblings.sources(tree, policy, environment)
        return _add(session, checkout, place.folder, scaffold.cluster(place, sources, pin))


# A tenant


def new_tenant(session: Session) -> int:
    name, cluster, blueprint = session.values.required("tenant"), _needed(session, "cluster"), _needed(session, "blueprint")
    given = editing.given_values(session)
    _check_name("<tenant> is", name, f"{name}-inputs")
    with Checkout(session) as checkout:
        tree = checkout.tree(None)
        policy = checkout.policy(tree)
        place = layout.Tenant(*_cluster(tree, policy, cluster), name)
        if tree.children(place.folder) or os.path.lexists(checkout.root / place.folder):
            raise failures.Failure(failures.CONFLICT, f'tenant "{name}" exists in {place.where.folder}')
        _check_holder(policy, place)
        namespace = _namespace(session, tree, policy, place)
        signature = _blueprint(checkout, tree, policy, place, blueprint)
        values = _inputs(signature, place, given)
        store = scaffold_siblings.store(tree, policy, place.where)
        try:
            files = scaffold.tenant(place, namespace, blueprint, values, store, policy.secret_path or scaffold.SECRET_PATH)
        except ValueError as exc:
            raise failures.Failure(failures.REFUSED, f"{place.path(layout.INPUT)}: {exc}") from exc
        return _add(session, checkout, place.folder, files)


def _needed(session: Session, option: str) -> str:
    value = session.values.text(option)
    if value is None:
        raise failures.usage(f"--{option} is missing")
    return value


def _cluster(tree: trees.Tree, policy: Policy, name: str) -> layout.Cluster:
    found = [each for each in layout.clusters(tree, policy) if each.name == name]
    if not found:
        raise failures.Failure(failures.NOT_FOUND, f'cluster "{name}" not found; make it with fleet new-cluster')
    if len(found) > 1:
        where = " and ".join(each.environment for each in found)
        raise failures.Failure(failures.CONFLICT, f'cluster "{name}" is in {where}; a name must be that of one cluster')
    return found[0]


def _check_holder(policy: Policy, place: layout.Tenant) -> None:
    environment = policy.environment(place.environment)
    if environment is not None and GIT not in environment.inputs:
        raise failures.Failure(
            failures.REFUSED, f"{place.environment} takes inputs from {', '.join(environment.inputs)} only, as fleet.yaml says"
        )


def _namespace(session: Session, tree: trees.Tree, policy: Policy, place: layout.Tenant) -> str:
    given = session.values.text("namespace")
    name = f"{place.name}-{place.environment}" if given is None else given
    _check_name("--namespace is", name, name)
    if _SYSTEM.fullmatch(name):
        raise failures.usage(f"--namespace is {name!r}, a namespace of the cluster itself; choose another")
    for other in layout.tenants(tree, policy, environment=place.environment, cluster=place.cluster):
        try:
            taken = tenants.sync(tree, other).namespace == name
        except tenants.Broken:
            continue  # lint says why
        if taken:
            raise failures.Failure(
                failures.CONFLICT, f'namespace "{name}" is that of {other.name} in {place.where.folder}; give another --namespace'
            )
    return name


def _blueprint(checkout: Checkout, tree: trees.Tree, policy: Policy, place: layout.Tenant, name: str) -> Blueprint:
    """As the release has it to which the cluster is pinned."""
    known = checkout.blueprints(policy)
    with checkouts.telling():
        tag = tenants.pin(tree, place.where)
        if known.release(tag) is None:
            raise failures.Failure(
                failures.NOT_FOUND, f'tag "{tag}" of {place.where.folder} not found in the blueprints; fetch their tags'
            )
        found = known.blueprint(name, tag) if names.is_dns_label(name) else None
    if found is None:
        raise failures.Failure(failures.NOT_FOUND, f'blueprint "{name}" not found at tag {tag}')
    return found


def _inputs(blueprint: Blueprint, place: layout.Tenant, given: Mapping[str, Any]) -> dict[str, Any]:
    """In the order of the signature; what follows from the place is filled in."""
    known = blueprint.schema.get("properties") or {}
    usual = {"environment": place.environment, "secretName": scaffold.secret_name(place.name)}
    values = {**{name: value for name, value in usual.items() if name in known}, **given}
    if values.get("environment", place.environment) != place.environment:
        raise failures.Failure(failures.REFUSED, f"environment of a tenant in {place.where.folder} must be {place.environment}")
    wrong = blueprint.violations(values)
    if wrong:
        raise failures.Failure(failures.REFUSED, *(f"{violation.text} ({blueprint.name})" for violation in wrong))
    return {name: values[name] for name in (*known, *values) if name in values}


# Writing


def _add(session: Session, checkout: Checkout, folder: str, files: scaffold.Files) -> int:
    """Write files into a folder that is not there yet: all of them, or none."""
    root = checkout.root
    for part in (root / folder, *(root / folder).parents):
        if part == root:
            break
        if part.is_symlink():
            raise failures.Failure(failures.REFUSED, f"{part} is a symlink, and those are not followed")
    if os.path.lexists(root / folder):
        raise failures.Failure(failures.CONFLICT, f"{root / folder} exists")
    try:
        _write(root, folder, files)
    except OSError as exc:
        shutil.rmtree(root / folder, ignore_errors=True)  # it was not there before
        raise failures.usage(f"{root / folder} cannot be written: {exc.strerror or exc}") from exc
    rows = [{"path": path} for path in files]
    session.output.value(rows, lambda: list(files), list(files))
    return failures.OK


def _write(root: Path, folder: str, files: scaffold.Files) -> None:
    (root / folder).mkdir(parents=True)
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        atomic_files.replace(root / path, text.encode(), durable=False, mode=atomic_files.AS_USUAL)
