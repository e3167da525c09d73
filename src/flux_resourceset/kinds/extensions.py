"""Files that extend a kind: fields that they add to its definitions and to the references of clusters, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from flux_resourceset.kinds import kind_checks, strict_schemas, validation
from flux_resourceset.kinds.kind_checks import HINTS, ITEMS
from flux_resourceset.kinds.lined_files import LinedFile
from flux_resourceset.kinds.model import CLUSTERS, INPUTS, Kind, Referenced, Schema


class Fields(NamedTuple):
    """Properties as a file has them, and where."""

    properties: Schema
    required: tuple[str, ...]
    place: tuple[str, ...]  # of the properties
    requirement: tuple[str, ...]  # of the names that are required


def reference_fields(data: Any) -> Fields:
    """The hint `reference`, written as a map of properties or as a JSON Schema object."""
    hint = data.get("metadata", {}).get("x-flux", {}).get("reference", {})
    place, requirement = kind_checks.reference_place(data), (*HINTS, "reference", "required")
    if place[-1] == "properties":
        return Fields(hint["properties"], tuple(hint.get("required", ())), place, requirement)
    return Fields(hint, (), place, requirement)


def check_reference(file: LinedFile) -> None:
    """That the fields of references are JSON Schemas."""
    fields = reference_fields(file.data)
    for name, schema in fields.properties.items():
        strict_schemas.check_form(schema, (*fields.place, name), file)
        strict_schemas.check_schema(schema, (*fields.place, name), file)


# Extending


def is_one(file: LinedFile) -> bool:
    return isinstance(file.data, dict) and "extends" in file.data


def extended(kinds: Mapping[str, Kind], files: Iterable[LinedFile]) -> dict[str, Kind]:
    """The kinds with what the files add to them, each on top of those before it."""
    result = dict(kinds)
    for file in files:
        name = file.data["extends"]
        if name not in result:
            raise file.wrong(["extends"], f"there is no kind {name!r}; there are {', '.join(result)}")
        result[name] = _extended(result[name], result, file)
    return result


def _extended(kind: Kind, kinds: Mapping[str, Kind], file: LinedFile) -> Kind:
    own, referring = _own_fields(file), reference_fields(file.data)
    strict_schemas.check_form({"properties": own.properties}, ITEMS, file)
    check_reference(file)
    _check_new(kind, kind.properties, own, file)
    _check_place(kind, kinds, own, file)
    schema = copy.deepcopy(kind.schema)
    schema["properties"] |= strict_schemas.strict({"type": "object", "properties": own.properties})["properties"]
    schema["required"] = [*schema.get("required", ()), *own.required]
    strict_schemas.check_schema(schema, ITEMS, file)
    made = replace(kind, **validation.compiled(schema), extended_by=(*kind.extended_by, file.source))
    kind_checks.check(made, file)
    if isinstance(made, Referenced):
        return _with_reference(made, own, referring, file)
    if referring.properties:
        raise file.wrong([*HINTS, "reference"], f"clusters do not refer to {kind.name}")
    return made


def _own_fields(file: LinedFile) -> Fields:
    items = file.data.get("schema", {}).get("items", {})
    required = tuple(items.get("required", ()))
    return Fields(items.get("properties", {}), required, (*ITEMS, "properties"), (*ITEMS, "required"))


def _with_reference(kind: Referenced, own: Fields, added: Fields, file: LinedFile) -> Referenced:
    _check_new(kind, kind.reference, added, file)
    listed = file.data.get("metadata", {}).get("x-flux", {}).get("overrides", ())
    both = [name for name in added.properties if name in own.properties]
    overrides = tuple(dict.fromkeys((*kind.overrides, *both, *listed)))
    reference = {**kind.reference, **added.properties}
    made = replace(kind, reference=reference, reference_required=(*kind.reference_required, *added.required), overrides=overrides)
    for position, name in enumerate(listed):
        if name not in added.properties:
            raise file.wrong([*HINTS, "overrides", position], f"{name!r} is not among the reference fields that this file adds")
    kind_checks.check_references(made, file)
    return made


def _check_new(kind: Kind, known: Schema, fields: Fields, file: LinedFile) -> None:
    for name in fields.properties:
        if name in known or (isinstance(kind, Referenced) and name in kind.nest):
            sources = ", ".join((kind.source, *(each for each in kind.extended_by if each != file.source)))
            raise file.wrong([*fields.place, name], f"clashes with {name!r} of {kind.name} ({sources}); choose another name")
    for name in fields.required:
        if name not in fields.properties:
            raise file.wrong(fields.requirement, f"{name!r} is required but not among the properties that this file adds")
        if "default" not in fields.properties[name]:
            raise file.wrong(
                [*fields.place, name], f"{name!r} is required and has no default, which documents that are there already need"
            )


def _check_place(kind: Kind, kinds: Mapping[str, Kind], own: Fields, file: LinedFile) -> None:
    """Clusters have arrays for the kinds that they refer to; a definition and a reference must not say the same unawares."""
    for name in own.properties:
        place = [*own.place, name]
        if kind.name == CLUSTERS:
            for other in kinds.values():
                if isinstance(other, Referenced) and name == other.cluster_field:
                    raise file.wrong(place, f"clashes with the array of references to {other.name} ({other.source})")
            if name == INPUTS:
                raise file.wrong(place, f"the field name {name!r} is reserved")
        elif isinstance(kind, Referenced) and name in kind.reference:
            raise file.wrong(place, f"clashes with {name!r} of the references to {kind.name} ({kind.source})")
