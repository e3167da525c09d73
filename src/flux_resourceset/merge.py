"""The merge: a cluster and the definitions it refers to become the inputs that Flux gets. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Document = Mapping[str, Any]
Input = dict[str, Any]

_NO_PATCHES: Document = {}  # one for all, so that it is seen at once that two inputs have none


class Dependent(Protocol):
    """What a kind says about dependencies."""

    @property
    def field(self) -> str: ...


class Referenced(Protocol):
    """What the merge has to know of a kind: less than the server does, so that a command line can merge too."""

    @property
    def cluster_field(self) -> str: ...
    @property
    def patches(self) -> bool: ...
    @property
    def nest(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def dependencies(self) -> Dependent | None: ...


class Assignment(NamedTuple):
    """What a cluster says of one definition, beside the definition."""

    reference: Document
    definition: Document
    patches: Document
    wait_for: tuple[str, ...]  # what it depends on, as far as the cluster runs it


def inputs(kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> list[Input]:
    """One input per reference, in the cluster's own order; a reference without a definition is skipped."""
    return [{**part(kind, item), "cluster": identity(cluster)} for item in assignments(kind, cluster, definitions)]


def assignments(
    kind: Referenced, cluster: Document, definitions: Mapping[str, Document], only: Container[str] | None = None
) -> Iterator[Assignment]:
    """What a cluster says of each definition that it refers to; of these only, if any are named."""
    references = [ref for ref in cluster.get(kind.cluster_field, ()) if ref["id"] in definitions]
    running: set[str] | None = None  # found out when somebody asks
    patches = cluster["patches"] if kind.patches else {}
    for reference in references if only is None else [ref for ref in references if ref["id"] in only]:
        id = reference["id"]
        definition = definitions[id]
        needed = definition.get(kind.dependencies.field) if kind.dependencies else None
        if needed and running is None:
            running = {ref["id"] for ref in references if ref.get("enabled", True)}
        # a HelmRelease that depends on one that is not there waits for ever, so templates use this
        wait_for = tuple([other for other in needed if other in running]) if needed and running else ()
        yield Assignment(reference, definition, patches.get(id) or _NO_PATCHES, wait_for)


def part(kind: Referenced, item: Assignment) -> Input:
    """An input but for its cluster: the same for all clusters that say the same of a definition."""
    result = {**item.definition, **_said(item.reference)}
    if kind.patches:
        result["patches"] = item.patches
    if kind.dependencies:
        result["wait_for"] = list(item.wait_for)
    for group, names in kind.nest.items():
        result[group] = {name: result.pop(name) for name in names if name in result}
    return {name: without_nulls(value) for name, value in result.items() if value is not None}


def at_work(definition: Document, reference: Document, names: Iterable[str]) -> Input:
    """Of these fields the values that count on a cluster which refers to a definition so; nothing of those without one."""
    said = {**definition, **_said(reference)}
    return {name: without_nulls(said[name]) for name in names if said.get(name) is not None}


def _said(reference: Document) -> Input:
    """An override that is null or absent leaves the definition's value."""
    return {name: value for name, value in reference.items() if value is not None}


def identity(cluster: Document) -> Input:
    """The cluster, as every one of its inputs names it."""
    return {"name": cluster["cluster_name"], "dns": cluster["cluster_dns"], "environment": cluster["environment"]}


def fleet_input(cluster: Document) -> Input:
    """A cluster as the fleet list shows it to provisioners."""
    return {name: cluster[name] for name in ("id", "cluster_name", "cluster_dns", "environment")}


def without_nulls(value: Any) -> Any:
    """A null vanishes from the provider's status and then breaks the template, so none is ever sent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
