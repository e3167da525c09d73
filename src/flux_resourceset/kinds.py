"""What a kind is: its fields, what clusters say of it, and how it becomes an answer."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from flux_resourceset import formats

Schema = dict[str, Any]

CLUSTERS = "clusters"
DEFAULT_ENVIRONMENTS = ("dev", "qa", "uat", "prod")

# Top-level routes of the API that a collection cannot take.
RESERVED_KINDS = frozenset({"api", "batch", "changes", "export", "health", "import", "kinds", "metrics", "openapi", "ready"})
# Flux Operator or our own answers use these.
RESERVED_FIELDS = frozenset({"kind", "provider", "cluster", "patches", "digest", "wait_for"})


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


@dataclass(frozen=True)
class Kind:
    name: str
    api_version: str
    description: str
    singular: str
    endpoint: str
    cluster_field: str | None
    reference: Schema
    overrides: tuple[str, ...]
    nest: Mapping[str, tuple[str, ...]]
    patches: bool
    patch_keys: PatchKeys | None
    dependencies: Dependencies | None
    versions: Versions | None
    schema: Schema
    filters: tuple[Filter, ...]
    methods: Mapping[str, tuple[str, ...]]
    source: str
    resourceset: str | None = None  # the text of its ResourceSet, when one stands beside the file
    conditions: dict[int, jsonschema_rs.Draft202012Validator] = field(default_factory=dict, compare=False)

    @functools.cached_property
    def validator(self) -> jsonschema_rs.Draft202012Validator:
        return validator_of(self.schema)

    @property
    def properties(self) -> Schema:
        properties: Schema = self.schema["properties"]
        return properties

    @property
    def has_labels(self) -> bool:
        labels = self.properties.get("labels", {})
        others = labels.get("additionalProperties")
        return labels.get("type") == "object" and isinstance(others, dict) and others.get("type") == "string"

    def is_of_type(self, name: str, value: Any) -> bool:
        return jsonschema_rs.is_valid({"type": self.properties[name]["type"]}, value)

    def described(self) -> dict[str, Any]:
        """The kind as clients get it: all that commands and forms need."""
        return {
            "kind": self.name,
            "api_version": self.api_version,
            "description": self.description,
            "singular": self.singular,
            "endpoint": self.endpoint if self.cluster_field else None,
            "cluster_field": self.cluster_field,
            "patches": self.patches,
            "overrides": list(self.overrides),
            "reference": self.reference,
            "filters": [item.name for item in self.filters],
            "methods": {level: list(methods) for level, methods in self.methods.items()},
            "schema": self.schema,
            "resourceset": self.resourceset,
        }

    def condition(self, schema: Schema) -> jsonschema_rs.Draft202012Validator:
        """The compiled `if` of a conditional sub-schema of this kind."""
        found = self.conditions.get(id(schema))
        if found is None:
            found = self.conditions[id(schema)] = validator_of(schema)
        return found


@dataclass(frozen=True)
class Kinds:
    """All kinds of a server; `clusters` knows the reference arrays of the others."""

    by_name: Mapping[str, Kind]
    environments: tuple[str, ...] = DEFAULT_ENVIRONMENTS
    secret_keys_allowed: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[Kind]:
        return iter(self.by_name.values())

    @property
    def clusters(self) -> Kind:
        return self.by_name[CLUSTERS]

    @functools.cached_property
    def referenced(self) -> tuple[Kind, ...]:
        """The kinds that clusters refer to; each is a view that Flux can poll."""
        return tuple(kind for kind in self if kind.cluster_field is not None)

    @functools.cached_property
    def by_endpoint(self) -> Mapping[str, Kind]:
        return {kind.endpoint: kind for kind in self.referenced}

    @functools.cached_property
    def by_field(self) -> Mapping[str, Kind]:
        return {kind.cluster_field: kind for kind in self.referenced if kind.cluster_field}

    @functools.cached_property
    def patched(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in self.referenced if kind.patches)


def validator_of(schema: Schema) -> jsonschema_rs.Draft202012Validator:
    checks = {name: item.check for name, item in formats.FORMATS.items()}
    return jsonschema_rs.Draft202012Validator(schema, formats=checks, validate_formats=True, keywords={"x-max-bytes": _MaxBytes})


class _MaxBytes:
    """Our own keyword: the most that names and values of a map of strings may have together, counted as Kubernetes counts."""

    def __init__(self, _schema: Schema, limit: Any, _path: list[str | int]) -> None:
        if type(limit) is not int or limit < 0:
            raise ValueError("x-max-bytes must be a number of bytes")
        self._limit = limit

    def validate(self, value: Any) -> None:
        texts = [text for pair in value.items() for text in pair] if isinstance(value, dict) else []
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts if isinstance(text, str))
        if size > self._limit:
            raise ValueError(f"has {size} bytes of names and values, and may have {self._limit}; shorten or remove some")
