"""The document that these tests look at, with an extra kind, and its schemas as validators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openapi_schema_validator import OAS30Validator

from flux_resourceset.kinds import kind_files, model

Json = dict[str, Any]

METHODS = ("get", "head", "post", "put", "patch", "delete")

DATABASES = """\
kind: databases
apiVersion: v1
metadata:
  description: A managed database.
  x-flux:
    singular: database
    endpoint: managed-databases
    cluster_field: dbs
    reference:
      size: {type: [integer, "null"], minimum: 1}
      tier: {type: string, default: standard}
      note: {type: string}
    overrides: [size]
    nest:
      engine: [engine_name, engine_version]
    patches: true
methods:
  resource: [get, post]
  instance: [get, delete]
schema:
  type: array
  key: {name: id, schema: {type: string}}
  query_params:
    - {name: engine_name}
    - {name: shared}
  items:
    type: object
    required: [id, engine_name, size]
    properties:
      id: {type: string, example: orders}
      engine_name: {type: string, enum: [postgres, mysql]}
      engine_version: {type: [string, "null"], default: null}
      size: {type: string, enum: [small, large]}
      shared: {type: boolean, default: false}
      limits:
        type: object
        default: {}
        properties:
          connections: {type: integer, exclusiveMinimum: 0, default: 10}
"""


def extended(directory: Path) -> model.Kinds:
    """The built-in kinds and one of an operator."""
    directory.mkdir(exist_ok=True)
    (directory / "databases.yaml").write_text(DATABASES)
    return kind_files.load(directory)


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield (
                    path,
                    method,
                    {**item[method], "parameters": [*item.get("parameters", ()), *item[method].get("parameters", ())]},
                )


def resolved(document: Json, value: Json) -> Json:
    while "$ref" in value:
        found: Any = document
        for step in value["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        value = found
    return value


def mistakes(document: Json, schema: Json, value: Any) -> list[str]:
    validator = OAS30Validator({**schema, "components": document["components"]})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
