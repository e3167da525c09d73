"""Rule layout: what stands where nothing of its kind belongs, what is missing, and names that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from flux_resourceset import names
from flux_resourceset.repositories import findings, layout, policy, trees, yaml_scalars
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint.reports import LAYOUT
from flux_resourceset.repositories.trees import Entry, Sort

KEEP = layout.KEEP
LONGEST_TENANT = 63 - len("-inputs")  # of its provider's name, which labels of Flux hold

_FREE = frozenset(policy.TAKEN)
_AT_THE_ROOT = frozenset({policy.FILE, ".gitlab-ci.yml"})
_YAML = (".yaml", ".yml")
_REPOSITORY = ".git"
_HIDES = ".sourceignore"  # where Flux leaves files out, and deletes from the cluster what they brought
_OF_THE_CLUSTER = frozenset({"default", "flux-system"})  # and kube-…: whoever may act there is no tenant

Children = Mapping[str, Sort]


class Placed(NamedTuple):
    """Something in a tree, and what is wrong with its place."""

    entry: Entry
    wrong: Finding | None


def outside(tree: trees.Tree, environments: tuple[str, ...]) -> Iterator[Placed]:
    """What is in no environment."""
    belongs = f"the root holds {policy.FILE}, environments ({', '.join(environments)}), keys, terraform and docs"
    inside = {name: sort for name, sort in tree.children("").items() if name != _REPOSITORY}

    def is_file(name: str) -> bool:
        return name not in environments and name != _HIDES and not _is_stray_file(name)

    yield from placed(tree, "", inside, is_file, environments.__contains__, belongs, _is_free)


def _is_stray_file(name: str) -> bool:
    return name.endswith(_YAML) and not name.startswith(".") and name not in _AT_THE_ROOT


def _is_free(name: str) -> bool:
    """A folder in which everything may be."""
    return name in _FREE or name.startswith(".")


def placed(
    tree: trees.Tree,
    folder: str,
    inside: Children,
    is_file: Callable[[str], bool],
    is_folder: Callable[[str], bool],
    belongs: str,
    is_free: Callable[[str], bool] = lambda name: False,
) -> Iterator[Placed]:
    """All that is in a folder, each with what is wrong with its place; folders that belong there are passed over."""
    for name, sort in inside.items():
        path = f"{folder}/{name}" if folder else name
        if name == _REPOSITORY:
            yield _judged(Entry(folder, Sort.OTHER), False, belongs)
        elif sort is not Sort.FOLDER:
            yield _judged(Entry(path, sort), is_file(name), belongs)
        elif not is_folder(name):
            free = is_free(name)
            yield from (_judged(entry, free, belongs) for entry in _below(tree, path))


def _judged(entry: Entry, belongs_here: bool, belongs: str) -> Placed:
    if entry.sort is Sort.LINK:
        wrong = "is a symlink, which is never followed; put the file itself here"
    elif entry.sort is Sort.OTHER:
        wrong = "is a repository of its own, or no file; Flux sees nothing of it"
    elif belongs_here:
        return Placed(entry, None)
    else:
        wrong = f"does not belong here: {belongs}"
    return Placed(entry, findings.error(LAYOUT, entry.path, None, wrong))


def _below(tree: trees.Tree, folder: str) -> Iterator[Entry]:
    """Everything below a folder but the folders themselves; a repository in it is one thing."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        inside = tree.children(here)
        if _REPOSITORY in inside:
            yield Entry(here, Sort.OTHER)
            continue
        paths = {f"{here}/{name}": sort for name, sort in inside.items()}
        yield from (Entry(path, sort) for path, sort in paths.items() if sort is not Sort.FOLDER)
        waiting += [path for path, sort in paths.items() if sort is Sort.FOLDER]


def missing(folder: str, inside: Children, files: tuple[str, ...], remedy: str) -> Iterator[Finding]:
    for name in files:
        if inside.get(name) in (None, Sort.FOLDER):  # a symlink is told as such
            yield findings.error(LAYOUT, f"{folder}/{name}", None, f"is missing; {remedy}")


# Names


def of_environment(name: str) -> Iterator[Finding]:
    yield from _of_name(name, name, "an environment")


def of_cluster(cluster: layout.Cluster, known: dict[str, str]) -> Iterator[Finding]:
    """`known` are the clusters that were looked at, with their environments."""
    yield from _of_name(cluster.folder, cluster.name, "a cluster")
    other = known.setdefault(cluster.name, cluster.environment)
    if other != cluster.environment:
        message = f"there is a cluster {cluster.name} in {other} too; give each cluster of the fleet a name of its own"
        yield findings.error(LAYOUT, cluster.folder, None, message)


def of_tenant(tenant: layout.Tenant) -> Iterator[Finding]:
    yield from _of_name(tenant.folder, tenant.name, "a tenant")
    if len(tenant.name) > LONGEST_TENANT:
        message = f"a tenant's name may have {LONGEST_TENANT} characters, so that {tenant.name}-inputs is a name of Kubernetes"
        yield findings.error(LAYOUT, tenant.folder, None, message)


def _of_name(path: str, name: str, what: str) -> Iterator[Finding]:
    fault = name_fault(name)
    if fault is not None:
        yield findings.error(LAYOUT, path, None, f"{name!r} cannot be the name of {what}: {fault}")


def name_fault(name: str) -> str | None:
    """Why a name of Kubernetes cannot be one that Flux puts into YAML."""
    if not names.is_dns_label(name):
        return "it must have at most 63 lower-case letters, digits and hyphens, with a letter or digit at both ends"
    if not yaml_scalars.fits_plain(name):
        return "YAML takes it for something else than text; choose a word"
    return None


def namespace_fault(name: str) -> str | None:
    if name in _OF_THE_CLUSTER or name.startswith("kube-"):
        return "it is a namespace of the cluster itself"
    return name_fault(name)
