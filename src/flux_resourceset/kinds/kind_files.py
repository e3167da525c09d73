"""Kind files become Kinds: the only place where a kind is defined. Strict, with file and line."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from flux_resourceset import errors
from flux_resourceset.kinds import formats, model, validation
from flux_resourceset.kinds.lined_files import LinedFile
from flux_resourceset.kinds.model import (
    CLUSTERS,
    FREEZES,
    INPUTS,
    RESERVED_FIELDS,
    RESERVED_KINDS,
    Dependencies,
    Filter,
    Kind,
    Kinds,
    PatchKeys,
    Referenced,
    Schema,
    Versions,
)

_METHODS = {"resource": ("get", "post"), "instance": ("get", "put", "patch", "delete")}


def load(
    directory: Path | None = None,
    environments: Sequence[str] = model.DEFAULT_ENVIRONMENTS,
    secret_keys_allowed: Iterable[str] = (),
) -> Kinds:
    """The built-in kinds and those of a directory."""
    files = [(f"built-in {name}", text) for name, text in builtin_files().items()]
    if directory is not None:
        files += _directory_files(directory)
    kinds: dict[str, Kind] = {}
    for source, text in files:
        kind = _with_resourceset(_kind(source, text, kinds), directory)
        kinds[kind.name] = kind
    kinds[CLUSTERS] = _with_references(kinds[CLUSTERS], kinds.values())
    for name in (CLUSTERS, FREEZES):
        kinds[name] = _with_environments(kinds[name], environments)
    return Kinds(kinds, tuple(environments), frozenset(secret_keys_allowed))


@functools.cache
def builtin_files() -> dict[str, str]:
    """Text of the built-in kind files by file name, clusters first."""
    folder = resources.files("flux_resourceset.kinds") / "resources"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


def _directory_files(directory: Path) -> list[tuple[str, str]]:
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as exc:
        raise errors.StartupError(f"RESOURCES_DIR {directory}: cannot be read: {exc.strerror}") from exc
    # templates that stand beside their kind are not kinds
    return [(str(path), _text(path)) for path in paths if not path.stem.endswith(".resourceset")]


def _with_resourceset(kind: Kind, directory: Path | None) -> Kind:
    """The kind with the ResourceSet that stands beside its file, named after the kind or after the file."""
    if directory is None or not isinstance(kind, Referenced) or kind.source.startswith("built-in "):
        return kind
    for name in (kind.name, Path(kind.source).stem):
        path = directory / f"{name}.resourceset.yaml"
        if path.is_file():
            return replace(kind, resourceset=_text(path))
    return kind


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return raw.decode("utf-8")
    except OSError as exc:
        raise errors.StartupError(f"{path}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise errors.StartupError(f"{path}:{line}: not UTF-8: {exc.reason}") from exc


# One file


@functools.cache
def _meta_validator() -> jsonschema_rs.Draft202012Validator:
    text = (resources.files("flux_resourceset.kinds") / "kind_file.schema.yaml").read_text(encoding="utf-8")
    return jsonschema_rs.Draft202012Validator(yaml.safe_load(text))


def _kind(source: str, text: str, others: Mapping[str, Kind]) -> Kind:
    file = LinedFile(source, text)
    data = file.data
    try:
        error = next(iter(_meta_validator().iter_errors(data)), None)
    except ValueError as exc:
        raise file.wrong([], f"holds what JSON has no word for, such as a bare date; put it in quotes ({exc})") from exc
    if error is not None:
        why: Any = error.kind
        unknown = why.unexpected[:1] if why.name == "additionalProperties" else []
        raise file.wrong([*error.instance_path, *unknown], error.message)
    hints = data.get("metadata", {}).get("x-flux", {})
    _check_form(data["schema"]["items"], _ITEMS, file)
    for name_there, schema in hints.get("reference", {}).items():
        _check_form(schema, (*_HINTS, "reference", name_there), file)
    schema = strict(data["schema"]["items"])
    _check_schema(schema, [*_ITEMS], file)
    _check_schema({"properties": hints.get("reference", {})}, [*_HINTS, "reference"], file)
    kind = _built(data, hints, schema, source)
    _check(kind, file)
    if isinstance(kind, Referenced):
        _check_references(kind, file)
    _check_taken(kind, others, file)
    return kind


def _built(data: Any, hints: Any, schema: Schema, source: str) -> Kind:
    name: str = data["kind"]
    # every id ends up in names of Kubernetes objects
    schema["properties"].get("id", {}).setdefault("format", "dns-label")
    about: dict[str, Any] = {
        "name": name,
        "api_version": data["apiVersion"],
        "description": data.get("metadata", {}).get("description", name),
        "singular": hints.get("singular", name.removesuffix("s")),
        "dependencies": _dependencies(hints.get("dependencies")),
        "versions": _versions(hints.get("versions")),
        **_compiled(schema),
        "filters": tuple(
            Filter(p["name"], p.get("description", ""), p.get("schema", {"type": "string"}))
            for p in data["schema"].get("query_params", ())
        ),
        "methods": {
            level: tuple(m for m in data.get("methods", {}).get(level, every) if m in every) for level, every in _METHODS.items()
        },
        "source": source,
    }
    if hints.get("cluster_field", name) is None:
        return Kind(**about)
    return Referenced(
        **about,
        endpoint=hints.get("endpoint", name.replace("_", "-")),
        cluster_field=hints.get("cluster_field", name),
        reference=hints.get("reference", {}),
        overrides=tuple(hints.get("overrides", ())),
        nest={key: tuple(names) for key, names in hints.get("nest", {}).items()},
        patches=hints.get("patches", False),
        patch_keys=_patch_keys(hints.get("patch_keys")),
    )


def _compiled(schema: Schema) -> dict[str, Any]:
    return {"schema": schema, "validator": validation.validator_of(schema), "shape": validation.shape_of(schema)}


def _patch_keys(hint: Any) -> PatchKeys | None:
    return PatchKeys(hint["format"], hint.get("where", {})) if hint else None


def _dependencies(hint: Any) -> Dependencies | None:
    return Dependencies(hint["field"], tuple(hint.get("same", ()))) if hint else None


def _versions(hint: Any) -> Versions | None:
    return Versions(tuple(hint["fields"]), hint["unpinned"], hint.get("where", {})) if hint else None


_HINTS = ("metadata", "x-flux")
_ITEMS = ("schema", "items")


def _check_form(schema: Any, path: Sequence[str], file: LinedFile) -> None:
    """That it is a JSON Schema, before anybody walks in it."""
    try:
        jsonschema_rs.meta.validate(schema)
    except (jsonschema_rs.ValidationError, ValueError) as exc:
        where = getattr(exc, "instance_path", ())
        raise file.wrong([*path, *where], f"not a valid JSON Schema: {_first_line(exc)}") from exc


def _check(kind: Kind, file: LinedFile) -> None:
    """What the meta-schema cannot say of a kind file."""
    properties = kind.properties
    if kind.name in RESERVED_KINDS:
        raise file.wrong(["kind"], f"{kind.name!r} is a route of the API; choose another name")
    if properties.get("id", {}).get("type") != "string" or "id" not in kind.schema.get("required", ()):
        raise file.wrong([*_ITEMS, "properties"], "a kind needs a required property id of type string")
    for name in properties:
        if name in RESERVED_FIELDS and kind.name != CLUSTERS:
            raise file.wrong([*_ITEMS, "properties", name], f"the field name {name!r} is reserved")
    for name in kind.schema.get("required", ()):
        if name not in properties:
            raise file.wrong([*_ITEMS, "required"], f"{name!r} is required but not among the properties")
    if kind.dependencies:
        named = (kind.dependencies.field, *kind.dependencies.same)
        for name in named:
            if name not in properties:
                raise file.wrong([*_HINTS, "dependencies"], f"{name!r} is not among the properties")
        items = properties[kind.dependencies.field].get("items", {})
        if not isinstance(items, dict) or items.get("type") != "string":
            raise file.wrong([*_HINTS, "dependencies", "field"], "must be an array of strings, which are ids")
    for name in (*kind.versions.fields, *kind.versions.where) if kind.versions else ():
        if name not in properties:
            raise file.wrong([*_HINTS, "versions"], f"{name!r} is not among the properties")
    for position, item in enumerate(kind.filters):
        if item.name not in properties:
            raise file.wrong(["schema", "query_params", position], f"{item.name!r} is not among the properties")


def _check_references(kind: Referenced, file: LinedFile) -> None:
    properties = kind.properties
    for name in kind.reference:
        if name == "id" or name in RESERVED_FIELDS:
            raise file.wrong([*_HINTS, "reference", name], f"the field name {name!r} is reserved")
        if name in properties and name not in kind.overrides:
            raise file.wrong([*_HINTS, "reference", name], f"{name!r} is a field of the definition too: list it in overrides")
    for position, name in enumerate(kind.overrides):
        if name not in kind.reference or name not in properties:
            raise file.wrong([*_HINTS, "overrides", position], f"{name!r} must be both a reference field and a property")
    if kind.cluster_field in RESERVED_FIELDS or kind.cluster_field == INPUTS:
        raise file.wrong([*_HINTS, "cluster_field"], f"the field name {kind.cluster_field!r} is reserved")
    _check_nest(kind, file)
    _check_patch_keys(kind, file)


def _check_nest(kind: Referenced, file: LinedFile) -> None:
    seen: set[str] = set()
    for group, names in kind.nest.items():
        if group in kind.properties or group in kind.reference or group in RESERVED_FIELDS:
            raise file.wrong([*_HINTS, "nest", group], f"{group!r} is a field already")
        for name in names:
            if name == "id" or name in seen or (name not in kind.properties and name not in kind.reference):
                raise file.wrong([*_HINTS, "nest", group], f"{name!r} must be a field, not id, and nested once")
            seen.add(name)


def _check_patch_keys(kind: Referenced, file: LinedFile) -> None:
    if kind.patch_keys is None:
        return
    if not kind.patches:
        raise file.wrong([*_HINTS, "patch_keys"], "needs patches: true")
    if kind.patch_keys.format not in formats.FORMATS:
        raise file.wrong([*_HINTS, "patch_keys", "format"], f"unknown format {kind.patch_keys.format!r}")
    for name in kind.patch_keys.where:
        if name not in kind.properties:
            raise file.wrong([*_HINTS, "patch_keys", "where"], f"{name!r} is not among the properties")


def _check_schema(schema: Schema, path: list[str | int], file: LinedFile) -> None:
    for at, sub in _walk(schema, path):
        if "$ref" in sub:
            raise file.wrong([*at, "$ref"], "$ref is not supported in kind files; write the schema in place")
        if sub.get("format", "date") not in formats.KNOWN:
            raise file.wrong([*at, "format"], f"unknown format {sub['format']!r}")
        try:
            validator = validation.validator_of(sub)
        except (jsonschema_rs.ValidationError, ValueError) as exc:
            raise file.wrong(at, f"not a valid JSON Schema: {_first_line(exc)}") from exc
        if "default" in sub and "properties" not in sub and not validator.is_valid(sub["default"]):
            raise file.wrong([*at, "default"], "the default does not satisfy its own schema")


def _walk(schema: Schema, path: list[str | int]) -> Iterator[tuple[list[str | int], Schema]]:
    """Every sub-schema with its place in the file, innermost first, so that an error names the narrowest place."""
    for keyword in ("properties", "patternProperties", "dependentSchemas"):
        for name, sub in schema.get(keyword, {}).items():
            if isinstance(sub, dict):
                yield from _walk(sub, [*path, keyword, name] if path[-1:] != ["reference"] else [*path, name])
    for keyword in ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"):
        if isinstance(schema.get(keyword), dict):
            yield from _walk(schema[keyword], [*path, keyword])
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        for position, sub in enumerate(schema.get(keyword, ())):
            if isinstance(sub, dict):
                yield from _walk(sub, [*path, keyword, position])
    yield path, schema


def _first_line(exc: Exception) -> str:
    return str(exc).splitlines()[0]


def _check_taken(kind: Kind, others: Mapping[str, Kind], file: LinedFile) -> None:
    for other in others.values():
        for what in ("name", "singular", "endpoint", "cluster_field"):
            value = getattr(kind, what, None)
            if value is not None and value == getattr(other, what, None):
                place = ["kind"] if what == "name" else [*_HINTS, what]
                raise file.wrong(place, f"{what} {value!r} is taken by {other.source}")
    clusters = others.get(CLUSTERS)
    own = clusters.properties.get(kind.cluster_field, {}) if clusters and isinstance(kind, Referenced) else {}
    if isinstance(kind, Referenced) and own.get("type", "array") != "array":
        raise file.wrong([*_HINTS, "cluster_field"], f"clusters have a field {kind.cluster_field!r} of their own")


# Schemas


_BRANCHES = {"allOf", "anyOf", "oneOf", "then", "else"}


def strict(schema: Schema) -> Schema:
    """A copy that refuses unknown fields at every level where fields are declared."""
    schema = copy.deepcopy(schema)
    for path, sub in list(_walk(schema, [])):
        words = [step for before, step in zip(["", *path], path, strict=False) if before != "properties"]  # no names of fields
        if "properties" not in sub or "if" in words or "not" in words:
            continue  # a condition tells documents apart; closed, it would hardly ever hold
        if isinstance(sub.get("additionalProperties"), dict):
            continue  # a map with some known keys
        branch = words[-1:] in (["then"], ["else"]) or words[-2:-1] in (["allOf"], ["anyOf"], ["oneOf"])
        if branch or "object" not in sub.get("type", () if _BRANCHES & {*words} else "object"):
            continue  # says more about an object that is closed elsewhere
        sub.pop("additionalProperties", None)
        more = {name for word in ("then", "else") for name in sub.get(word, {}).get("properties", ())} - {*sub["properties"]}
        # `unevaluated` sees the fields that only branches declare
        open_ended = more or {"allOf", "anyOf", "oneOf"} & {*sub}
        sub["unevaluatedProperties" if open_ended else "additionalProperties"] = False
    return schema


def _with_environments(kind: Kind, environments: Sequence[str]) -> Kind:
    schema = copy.deepcopy(kind.schema)
    schema["properties"]["environment"]["enum"] = list(environments)
    return replace(kind, **_compiled(schema))


def _with_references(clusters: Kind, others: Iterable[Kind]) -> Kind:
    schema = copy.deepcopy(clusters.schema)
    properties = schema["properties"]
    patches = properties.pop("patches")
    for kind in others:
        if not isinstance(kind, Referenced):
            continue
        stub = properties.get(kind.cluster_field, {"description": f"{kind.description} References by id."})
        properties[kind.cluster_field] = {**stub, "type": "array", "default": [], "items": reference_schema(kind)}
    properties["patches"] = patches
    return replace(clusters, **_compiled(schema))


def reference_schema(kind: Referenced) -> Schema:
    """What an entry of the cluster's array for this kind may hold."""
    return strict(
        {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string", "format": "dns-label", "description": f"Id of the {kind.singular}."},
                **copy.deepcopy(kind.reference),
            },
        }
    )
