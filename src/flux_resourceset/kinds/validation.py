"""Schemas made ready for use: the compiled validator, and the shape that completes documents with defaults."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from flux_resourceset.kinds import formats

Schema = dict[str, Any]
Validator = jsonschema_rs.Draft202012Validator

_ABSENT: Any = object()


def validator_of(schema: Schema) -> Validator:
    checks = {name: item.check for name, item in formats.FORMATS.items()}
    return Validator(schema, formats=checks, validate_formats=True, keywords={"x-max-bytes": _MaxBytes})


def compiled(schema: Schema) -> dict[str, Any]:
    """What a kind has of its schema."""
    return {"schema": schema, "validator": validator_of(schema), "shape": shape_of(schema)}


def is_of_type(schema: Schema, value: Any) -> bool:
    return jsonschema_rs.is_valid({"type": schema["type"]}, value)


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


@dataclass(frozen=True)
class Shape:
    """What a schema says about defaults, at every level, with its conditions compiled."""

    properties: Mapping[str, Shape]
    others: Shape | None  # of a map, or of fields that are not declared
    items: Shape | None
    default: Any
    condition: Validator | None
    then: Mapping[str, Shape]
    otherwise: Mapping[str, Shape]

    def completed(self, value: Any) -> Any:
        """The value with every default filled in, in the order of the schema."""
        if isinstance(value, dict):
            return self._completed_object(value)
        if isinstance(value, list) and self.items is not None:
            return [self.items.completed(item) for item in value]
        return value

    def _completed_object(self, value: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for name, shape in self.properties.items():
            if name in value:
                result[name] = shape.completed(value[name])
            elif shape.default is not _ABSENT:
                result[name] = shape.completed(copy.deepcopy(shape.default))
        for name, item in value.items():
            if name not in self.properties:
                result[name] = self.others.completed(item) if self.others is not None else item
        if self.condition is not None:
            branch = self.then if self.condition.is_valid(result) else self.otherwise
            for name, shape in branch.items():
                if name not in result and shape.default is not _ABSENT:
                    result[name] = shape.completed(copy.deepcopy(shape.default))
        return result


def shape_of(schema: Schema) -> Shape:
    return Shape(
        properties=_shapes(schema),
        others=_shape(schema.get("additionalProperties")),
        items=_shape(schema.get("items")),
        default=schema.get("default", _ABSENT),
        condition=validator_of(schema["if"]) if "if" in schema else None,
        then=_shapes(schema.get("then", {})),
        otherwise=_shapes(schema.get("else", {})),
    )


def _shape(schema: Any) -> Shape | None:
    return shape_of(schema) if isinstance(schema, dict) else None


def _shapes(schema: Schema) -> dict[str, Shape]:
    return {name: shape_of(sub) for name, sub in schema.get("properties", {}).items() if isinstance(sub, dict)}
