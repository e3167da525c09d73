"""What the schema of a field tells by itself: samples and labels, for the server and the command line alike."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset.cli import known_kinds
from flux_resourceset.cli.parsing import kind_commands
from flux_resourceset.kinds import fields, kind_files

MAP = {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    ("labels", "selectable"),
    [
        (MAP, True),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({"type": "object"}, False),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, False),
        ({"type": "object", "additionalProperties": True}, False),
        (True, False),
        (None, False),
    ],
)
def test_only_a_map_of_texts_can_be_selected_by(labels: Any, selectable: bool) -> None:
    properties = {"id": {"type": "string"}} | ({} if labels is None else {"labels": labels})
    assert fields.has_labels(properties) is selectable
    data = {**kind_files.load().by_name["namespaces"].described(), "schema": {"properties": properties}, "filters": []}
    assert ("selector" in kind_commands.filters(known_kinds.Kind(data))) is selectable


@pytest.mark.parametrize(
    ("schema", "plainest", "chosen"),
    [
        ({"type": "string", "example": "a", "default": "b"}, "a", "a"),
        ({"type": "string", "default": "b"}, "b", "example"),
        ({"enum": ["x", "y"]}, "x", "x"),
        ({"type": ["string", "null"], "minLength": 9}, "exampleee", "exampleee"),
        ({"type": "integer", "minimum": 5}, 5, 5),
        ({"type": "number", "maximum": 0}, 0, 0),
        ({"type": "boolean"}, False, True),
        ({"type": "array", "items": {"type": "integer"}}, [], [1]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1], [1, 1]),
        (MAP, {}, {"key": "value"}),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}, {}, {"a": 1, "b": "example"}),
        ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}, {"a": 1}, {"a": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1, 1),
        ({"type": "null"}, None, "example"),
        ({}, None, "example"),
        (True, "example", "example"),
    ],
)
def test_a_sample_is_what_the_schema_wants(schema: Any, plainest: Any, chosen: Any) -> None:
    assert repr(fields.sample(schema)) == repr(plainest)
    assert repr(fields.sample(schema, chosen=True)) == repr(chosen)
