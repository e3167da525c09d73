"""What runs where: for a definition and each cluster that refers to it the values at work, and what the cluster says. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from flux_resourceset import merge
from flux_resourceset.kinds.model import Referenced
from flux_resourceset.merge import Document

Row = dict[str, Any]

FIXED = ("id", "cluster", "environment", "enabled", "overridden", "patches")  # what every row has


class _Use(NamedTuple):
    cluster: Document
    reference: Document


class Usage:
    """The definitions of a kind with the clusters that refer to them, found once; rows are made when they are read."""

    def __init__(self, kind: Referenced, clusters: Iterable[Document], definitions: Mapping[str, Document]) -> None:
        """The clusters come by id. Grows with their references."""
        self._kind = kind
        self._definitions = definitions
        self._uses: dict[str, list[_Use]] = {id: [] for id in sorted(definitions)}  # no sort of all: that would hold up polls
        for cluster in clusters:
            for reference in cluster.get(kind.cluster_field, ()):
                if reference["id"] in definitions:  # without one, Flux gets no input either
                    self._uses[reference["id"]].append(_Use(cluster, reference))

    def __len__(self) -> int:
        return sum(map(len, self._uses.values()))

    def rows(self, offset: int = 0, end: int | None = None) -> Iterator[Row]:
        """By id of the definition, then by cluster."""
        every = ((id, use) for id, uses in self._uses.items() for use in uses)
        chosen = itertools.islice(every, offset, end)
        return (row(self._kind, use.cluster, use.reference, self._definitions[id]) for id, use in chosen)


def row(kind: Referenced, cluster: Document, reference: Document, definition: Document) -> Row:
    """What every row has wins over an override of the same name."""
    id = reference["id"]
    values = merge.at_work(definition, reference, (*kind.overrides, "enabled"))
    return {
        "id": id,
        "cluster": cluster["id"],
        "environment": cluster["environment"],
        **{name: values.get(name) for name in kind.overrides if name not in FIXED},
        "enabled": values.get("enabled", True),
        "overridden": [name for name in kind.overrides if reference.get(name) is not None],
        "patches": len(cluster["patches"].get(id, ())) if kind.patches else 0,
    }
