"""Schemas made ready for use: the compiled validator, and the shape that completes documents with defaults."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from flux_resourceset.kinds import formats

Schema = dict[str, Any]
Validator = jsonschema_rs.Draft202012Validator

_ABSENT: Any = object()
_MAX_FORMS = 256  # to remember, of objects of one shape: which fields they have

_CHECKS = {name: formats.remembering(item.check) for name, item in formats.FORMATS.items()}


def validator_of(schema: Schema) -> Validator:
    return Validator(schema, formats=_CHECKS, validate_formats=True, keywords={"x-max-bytes": _MaxBytes})


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
    # lists of names, in their order, with which an object of this shape lacks nothing and is in order
    forms: set[tuple[str, ...]] = field(default_factory=set, compare=False)

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether there is nothing to complete in any value."""
        inside = (self.others, self.items)
        return not self.properties and self.condition is None and all(shape is None or shape.is_plain for shape in inside)

    @functools.cached_property
    def _inner(self) -> dict[str, Shape]:
        return {name: shape for name, shape in self.properties.items() if not shape.is_plain}

    def completed(self, value: Any) -> Any:
        """The value with every default filled in, in the order of the schema; the very same where it is so already."""
        if self.is_plain:
            return value
        if isinstance(value, dict):
            return self._inside(value) if tuple(value) in self.forms else self._completed_object(value)
        if isinstance(value, list) and self.items is not None and not self.items.have_nothing_to_complete(value):
            result = [self.items.completed(item) for item in value]
            return value if all(map(operator.is_, result, value)) else result
        return value

    def have_nothing_to_complete(self, values: list[Any]) -> bool:
        """Whether that is seen at a glance: all of them are objects, as most lists are of."""
        return not self._inner and {*map(type, values)} == {dict} and self.forms.issuperset(map(tuple, values))

    def _inside(self, value: dict[str, Any]) -> dict[str, Any]:
        """What only has to be completed in its fields, if at all."""
        result = value
        for name, shape in self._inner.items():
            if name in value:
                item = shape.completed(value[name])
                if item is not value[name]:
                    result = dict(value) if result is value else result
                    result[name] = item
        return result

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
        if [*result] != [*value]:
            return result
        if self.condition is None and self.properties.keys() >= value.keys() and len(self.forms) < _MAX_FORMS:
            self.forms.add(tuple(value))
        return value if all(result[name] is value[name] for name in value) else result


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
