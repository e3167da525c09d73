"""Kind files become Kinds: the only place where a kind is defined. Strict, with file and line."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from flux_resourceset import errors
from flux_resourceset.kinds import extensions, kind_checks, model, strict_schemas, validation
from flux_resourceset.kinds.kind_checks import ITEMS
from flux_resourceset.kinds.lined_files import LinedFile
from flux_resourceset.kinds.model import (
    CLUSTERS,
    FREEZES,
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
    files = [LinedFile(f"built-in {name}", text) for name, text in builtin_files().items()]
    if directory is not None:
        files += [LinedFile(source, text) for source, text in _directory_files(directory)]
    kinds: dict[str, Kind] = {}
    added = [file for file in files if extensions.is_one(file)]
    for file in files:
        if file not in added:
            kind = _kind(file, kinds)
            kinds[kind.name] = kind
    for file in added:
        _check_shape(file, "kind_extension.schema.yaml")
    kinds = {name: _with_resourceset(kind, directory) for name, kind in extensions.extended(kinds, added).items()}
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
    """The kind with the ResourceSet that stands beside its file or one that extends it, named after kind or file."""
    if directory is None or not isinstance(kind, Referenced):
        return kind
    beside = [source for source in (kind.source, *kind.extended_by) if not source.startswith("built-in ")]
    for name in (kind.name, *(Path(source).stem for source in beside)) if beside else ():
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
def _meta_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    folder = resources.files("flux_resourceset.kinds")
    return jsonschema_rs.Draft202012Validator(yaml.safe_load((folder / name).read_text(encoding="utf-8")))


def _check_shape(file: LinedFile, schema: str) -> None:
    try:
        error = next(iter(_meta_validator(schema).iter_errors(file.data)), None)
    except ValueError as exc:
        raise file.wrong([], f"holds what JSON has no word for, such as a bare date; put it in quotes ({exc})") from exc
    if error is not None:
        why: Any = error.kind
        unknown = why.unexpected[:1] if why.name == "additionalProperties" else []
        raise file.wrong([*error.instance_path, *unknown], error.message)


def _kind(file: LinedFile, others: Mapping[str, Kind]) -> Kind:
    _check_shape(file, "kind_file.schema.yaml")
    data = file.data
    strict_schemas.check_form(data["schema"]["items"], ITEMS, file)
    extensions.check_reference(file)
    schema = strict_schemas.strict(data["schema"]["items"])
    strict_schemas.check_schema(schema, ITEMS, file)
    kind = _built(data, schema, file.source)
    kind_checks.check(kind, file)
    if isinstance(kind, Referenced):
        kind_checks.check_references(kind, file)
    kind_checks.check_taken(kind, others, file)
    return kind


def _built(data: Any, schema: Schema, source: str) -> Kind:
    name: str = data["kind"]
    hints = data.get("metadata", {}).get("x-flux", {})
    reference = extensions.reference_fields(data)
    # every id ends up in names of Kubernetes objects
    schema["properties"].get("id", {}).setdefault("format", "dns-label")
    about: dict[str, Any] = {
        "name": name,
        "api_version": data["apiVersion"],
        "description": data.get("metadata", {}).get("description", name),
        "singular": hints.get("singular", name.removesuffix("s")),
        "short": hints.get("short"),
        "dependencies": _dependencies(hints.get("dependencies")),
        "versions": _versions(hints.get("versions")),
        **validation.compiled(schema),
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
        reference=reference.properties,
        reference_required=reference.required,
        overrides=tuple(hints.get("overrides", ())),
        nest={key: tuple(names) for key, names in hints.get("nest", {}).items()},
        patches=hints.get("patches", False),
        patch_keys=_patch_keys(hints.get("patch_keys")),
    )


def _patch_keys(hint: Any) -> PatchKeys | None:
    return PatchKeys(hint["format"], hint.get("where", {})) if hint else None


def _dependencies(hint: Any) -> Dependencies | None:
    return Dependencies(hint["field"], tuple(hint.get("same", ()))) if hint else None


def _versions(hint: Any) -> Versions | None:
    return Versions(tuple(hint["fields"]), hint["unpinned"], hint.get("where", {})) if hint else None


# Schemas


def _with_environments(kind: Kind, environments: Sequence[str]) -> Kind:
    schema = copy.deepcopy(kind.schema)
    schema["properties"]["environment"]["enum"] = list(environments)
    return replace(kind, **validation.compiled(schema))


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
    return replace(clusters, **validation.compiled(schema))


def reference_schema(kind: Referenced) -> Schema:
    """What an entry of the cluster's array for this kind may hold."""
    return strict_schemas.strict(
        {
            "type": "object",
            "required": ["id", *kind.reference_required],
            "properties": {
                "id": {"type": "string", "format": "dns-label", "description": f"Id of the {kind.singular}."},
                **copy.deepcopy(kind.reference),
            },
        }
    )
