"""What must hold of a kind that the schema of kind files cannot say, alone and beside the other kinds; with file and line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flux_resourceset.kinds import formats
from flux_resourceset.kinds.lined_files import LinedFile
from flux_resourceset.kinds.model import CLUSTERS, INPUTS, RESERVED_FIELDS, RESERVED_KINDS, Kind, Referenced

HINTS = ("metadata", "x-flux")
ITEMS = ("schema", "items")


def reference_place(data: Any) -> tuple[str, ...]:
    """Where a kind file has the fields of references: written as a map of them, or as a JSON Schema object."""
    hint = data.get("metadata", {}).get("x-flux", {}).get("reference", {})
    return (*HINTS, "reference", "properties") if hint.get("type") == "object" else (*HINTS, "reference")


def check(kind: Kind, file: LinedFile) -> None:
    """What the meta-schema cannot say of a kind file."""
    properties = kind.properties
    if kind.name in RESERVED_KINDS:
        raise file.wrong(["kind"], f"{kind.name!r} is a route of the API; choose another name")
    if properties.get("id", {}).get("type") != "string" or "id" not in kind.schema.get("required", ()):
        raise file.wrong([*ITEMS, "properties"], "a kind needs a required property id of type string")
    for name in properties:
        if name in RESERVED_FIELDS and kind.name != CLUSTERS:
            raise file.wrong([*ITEMS, "properties", name], f"the field name {name!r} is reserved")
    for name in kind.schema.get("required", ()):
        if name not in properties:
            raise file.wrong([*ITEMS, "required"], f"{name!r} is required but not among the properties")
    if kind.dependencies:
        named = (kind.dependencies.field, *kind.dependencies.same)
        for name in named:
            if name not in properties:
                raise file.wrong([*HINTS, "dependencies"], f"{name!r} is not among the properties")
        items = properties[kind.dependencies.field].get("items", {})
        if not isinstance(items, dict) or items.get("type") != "string":
            raise file.wrong([*HINTS, "dependencies", "field"], "must be an array of strings, which are ids")
    for name in (*kind.versions.fields, *kind.versions.where) if kind.versions else ():
        if name not in properties:
            raise file.wrong([*HINTS, "versions"], f"{name!r} is not among the properties")
    for position, item in enumerate(kind.filters):
        if item.name not in properties:
            raise file.wrong(["schema", "query_params", position], f"{item.name!r} is not among the properties")


def check_references(kind: Referenced, file: LinedFile) -> None:
    properties = kind.properties
    for name in kind.reference:
        place = [*reference_place(file.data), name]
        if name == "id" or name in RESERVED_FIELDS:
            raise file.wrong(place, f"the field name {name!r} is reserved")
        if name in properties and name not in kind.overrides:
            raise file.wrong(place, f"{name!r} is a field of the definition too: list it in overrides")
    for name in kind.reference_required:
        if name not in kind.reference:
            raise file.wrong([*HINTS, "reference", "required"], f"{name!r} is required but not among the properties")
    for position, name in enumerate(kind.overrides):
        if name not in kind.reference or name not in properties:
            raise file.wrong([*HINTS, "overrides", position], f"{name!r} must be both a reference field and a property")
    if kind.cluster_field in RESERVED_FIELDS or kind.cluster_field == INPUTS:
        raise file.wrong([*HINTS, "cluster_field"], f"the field name {kind.cluster_field!r} is reserved")
    _check_nest(kind, file)
    _check_patch_keys(kind, file)


def _check_nest(kind: Referenced, file: LinedFile) -> None:
    seen: set[str] = set()
    for group, names in kind.nest.items():
        if group in kind.properties or group in kind.reference or group in RESERVED_FIELDS:
            raise file.wrong([*HINTS, "nest", group], f"{group!r} is a field already")
        for name in names:
            if name == "id" or name in seen or (name not in kind.properties and name not in kind.reference):
                raise file.wrong([*HINTS, "nest", group], f"{name!r} must be a field, not id, and nested once")
            seen.add(name)


def _check_patch_keys(kind: Referenced, file: LinedFile) -> None:
    if kind.patch_keys is None:
        return
    if not kind.patches:
        raise file.wrong([*HINTS, "patch_keys"], "needs patches: true")
    if kind.patch_keys.format not in formats.FORMATS:
        raise file.wrong([*HINTS, "patch_keys", "format"], f"unknown format {kind.patch_keys.format!r}")
    for name in kind.patch_keys.where:
        if name not in kind.properties:
            raise file.wrong([*HINTS, "patch_keys", "where"], f"{name!r} is not among the properties")


def check_taken(kind: Kind, others: Mapping[str, Kind], file: LinedFile) -> None:
    for other in others.values():
        for what in ("name", "singular", "endpoint", "cluster_field"):
            value = getattr(kind, what, None)
            if value is not None and value == getattr(other, what, None):
                place = ["kind"] if what == "name" else [*HINTS, what]
                raise file.wrong(place, f"{what} {value!r} is taken by {other.source}")
    clusters = others.get(CLUSTERS)
    own = clusters.properties.get(kind.cluster_field, {}) if clusters and isinstance(kind, Referenced) else {}
    if isinstance(kind, Referenced) and own.get("type", "array") != "array":
        raise file.wrong([*HINTS, "cluster_field"], f"clusters have a field {kind.cluster_field!r} of their own")
    _check_words(kind, others, file)


def _check_words(kind: Kind, others: Mapping[str, Kind], file: LinedFile) -> None:
    """A short name is a word for one kind; the other words may be told apart by where they stand."""
    for other in others.values():
        if kind.short in other.words:
            raise file.wrong([*HINTS, "short"], f"short {kind.short!r} is taken by {other.source}")
        if other.short in kind.words:
            place = ["kind"] if other.short == kind.name else [*HINTS, "singular"]
            raise file.wrong(place, f"{other.short!r} is the short name of {other.name} ({other.source})")
