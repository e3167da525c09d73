"""What a kind is: its fields, what clusters say of it, and how it becomes an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flux_resourceset.changes import CLUSTERS as CLUSTERS
from flux_resourceset.changes import FREEZES as FREEZES
from flux_resourceset.kinds import fields, validation

Schema = validation.Schema

DEFAULT_ENVIRONMENTS = ("dev", "qa", "uat", "prod")

# Top-level routes of the API that a collection cannot take.
RESERVED_KINDS = frozenset(
    {"api", "batch", "changes", "diff", "export", "health", "import", "kinds", "metrics", "openapi", "plan", "ready", "revert"}
    | {"tombstones", "usage", "whoami"}
)
# Flux Operator or our own answers use these.
RESERVED_FIELDS = frozenset({"kind", "provider", "cluster", "patches", "digest", "wait_for"})
INPUTS = "inputs"  # what a cluster has below its path, beside its arrays of references


@dataclass(frozen=True)
class Dependencies:
    """A field that names documents of its own kind, which must agree in the `same` fields."""

    field: str
    same: tuple[str, ...] = ()


@dataclass(frozen=True)
class Versions:
    """Fields that name a version where the document is as in `where`; they should be exact, and agree."""

    fields: tuple[str, ...]
    unpinned: str
    where: Mapping[str, Any]


@dataclass(frozen=True)
class PatchKeys:
    """The format that keys of patches must have where what is patched is as in `where`."""

    format: str
    where: Mapping[str, Any]


@dataclass(frozen=True)
class Filter:
    name: str
    description: str
    schema: Schema


@dataclass(frozen=True, kw_only=True)
class Kind:
    name: str
    api_version: str
    description: str
    singular: str
    short: str | None
    dependencies: Dependencies | None
    versions: Versions | None
    schema: Schema
    validator: validation.Validator  # of the schema
    shape: validation.Shape  # of the schema, too
    filters: tuple[Filter, ...]
    methods: Mapping[str, tuple[str, ...]]
    source: str
    extended_by: tuple[str, ...] = ()  # further files

    @property
    def words(self) -> frozenset[str]:
        """Every word for it, with `_`."""
        return frozenset(word for word in (self.name, self.singular, self.short) if word is not None)

    @property
    def properties(self) -> Schema:
        properties: Schema = self.schema["properties"]
        return properties

    @property
    def has_labels(self) -> bool:
        return fields.has_labels(self.properties)

    def described(self) -> dict[str, Any]:
        """The kind as clients get it: all that commands and forms need."""
        return {
            "kind": self.name,
            "api_version": self.api_version,
            "description": self.description,
            "singular": self.singular,
            "short": self.short,
            "endpoint": None,
            "cluster_field": None,
            "patches": False,
            "overrides": [],
            "reference": {},
            "nest": {},
            "dependencies": self.dependencies.field if self.dependencies else None,
            "filters": [item.name for item in self.filters],
            "methods": {level: list(methods) for level, methods in self.methods.items()},
            "schema": self.schema,
            "resourceset": None,
        }


@dataclass(frozen=True, kw_only=True)
class Referenced(Kind):
    """A kind that clusters refer to: in an array of every cluster, which becomes a view that Flux can poll."""

    endpoint: str
    cluster_field: str
    reference: Schema
    reference_required: tuple[str, ...]
    overrides: tuple[str, ...]
    nest: Mapping[str, tuple[str, ...]]
    patches: bool
    patch_keys: PatchKeys | None
    resourceset: str | None = None  # the text of its ResourceSet, when one stands beside the file

    def described(self) -> dict[str, Any]:
        return {
            **super().described(),
            "endpoint": self.endpoint,
            "cluster_field": self.cluster_field,
            "patches": self.patches,
            "overrides": list(self.overrides),
            "reference": self.reference,
            "nest": {group: list(names) for group, names in self.nest.items()},
            "resourceset": self.resourceset,
        }


class Kinds:
    """All kinds of a server; `clusters` knows the reference arrays of the others."""

    def __init__(
        self,
        by_name: Mapping[str, Kind],
        environments: tuple[str, ...] = DEFAULT_ENVIRONMENTS,
        secret_keys_allowed: frozenset[str] = frozenset(),
    ) -> None:
        self.by_name = by_name
        self.environments = environments
        self.secret_keys_allowed = secret_keys_allowed
        self.clusters = by_name[CLUSTERS]
        self.referenced = tuple(kind for kind in self if isinstance(kind, Referenced))
        self.referenced_by_name = {kind.name: kind for kind in self.referenced}
        self.by_endpoint = {kind.endpoint: kind for kind in self.referenced}
        self.by_field = {kind.cluster_field: kind for kind in self.referenced}
        self.patched = tuple(kind for kind in self.referenced if kind.patches)

    def references(self, kind: str) -> frozenset[str]:
        """The fields of a kind that hold references to others."""
        return frozenset(self.by_field) if kind == CLUSTERS else frozenset()

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_name.values())
