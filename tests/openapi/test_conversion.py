"""JSON Schema of kind files, said in OpenAPI 3.0."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from flux_resourceset import openapi
from flux_resourceset.kinds import formats, kind_files
from flux_resourceset.openapi.conversion import CONSTRAINTS, PLAIN, Form, converted
from openapi.documents import DATABASES, Json, extended

pytestmark = pytest.mark.long

TEXT = {"type": "string", "pattern": PLAIN}


@pytest.mark.parametrize(
    ("form", "schema", "expected"),
    [
        (Form.STORED, {"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        (Form.FLUX, {"type": ["string", "null"], "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        (Form.STORED, {"type": ["string", "null"], "enum": ["a"]}, {"type": "string", "enum": ["a", None], "nullable": True}),
        (Form.STORED, {"const": "a"}, {"enum": ["a"]}),
        (Form.STORED, {"type": "null"}, {"enum": [None]}),
        (Form.STORED, {"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        (Form.STORED, {"type": "array"}, {"type": "array", "items": {}}),
        (Form.STORED, {"type": "string", "examples": ["a", "b"]}, {"type": "string", "example": "a"}),
        (Form.STORED, {"type": ["string", "boolean"]}, {"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        (Form.STORED, {"if": {}, "then": {}, "unevaluatedProperties": False, "$comment": "x"}, {}),
        (Form.STORED, {"oneOf": [{"const": 1}, {"type": "null"}]}, {"oneOf": [{"enum": [1]}, {"enum": [None]}]}),
        (
            Form.STORED,
            {"type": ["string", "boolean"], "anyOf": [{"const": "a"}, {"const": True}]},
            {"anyOf": [{"enum": ["a"]}, {"enum": [True]}], "allOf": [{"anyOf": [{"type": "string"}, {"type": "boolean"}]}]},
        ),
        (Form.NEW, {"type": "string"}, TEXT),
        (Form.NEW, {"type": "string", "default": "a"}, {**TEXT, "default": "a"}),
        (Form.STORED, {"type": "string", "default": "a"}, {"type": "string", "example": "a"}),
        (Form.NEW, True, {}),
        (Form.NEW, False, {"not": {}}),
    ],
)
def test_a_schema_is_said_in_openapi(form: Form, schema: Any, expected: Json) -> None:
    assert converted(schema, form) == expected


def test_what_must_be_there_depends_on_the_place() -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string"},
            "size": {"type": "integer", "default": 1},
            "note": {"type": ["string", "null"], "default": None},
        },
    }
    required = {form: converted(schema, form).get("required") for form in Form}
    assert required == {Form.NEW: ["id"], Form.STORED: ["id", "size", "note"], Form.PATCH: None, Form.FLUX: ["id", "size"]}


def test_a_default_of_both_branches_of_a_condition_is_always_there() -> None:
    branch = {"properties": {"group": {"default": ""}}}
    schema = {"type": "object", "properties": {"group": {"type": "string"}}, "if": {}, "then": branch, "else": branch}
    assert converted(schema, Form.STORED)["required"] == ["group"]


def test_a_merge_patch_may_remove_what_is_not_required() -> None:
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    patch = converted(schema, Form.PATCH)
    assert patch["properties"]["name"] == TEXT
    assert patch["properties"]["labels"] == {
        "type": "object",
        "additionalProperties": {**TEXT, "nullable": True},
        "nullable": True,
    }


def test_keys_of_maps_are_described() -> None:
    schema = {"type": "object", "description": "Labels.", "propertyNames": {"format": "label-key"}}
    assert converted(schema, Form.NEW)["description"].startswith("Labels. Each key must be a Kubernetes label key")


def test_a_flux_input_follows_overrides_nesting_patches_and_nulls(tmp_path: Path) -> None:
    document = openapi.document(extended(tmp_path), writable=False)
    schema = document["components"]["schemas"]["database-input"]
    assert schema["required"] == ["id", "size", "shared", "limits", "tier", "patches", "engine", "cluster", "digest"]
    assert schema["properties"]["size"] == {
        "anyOf": [{"type": "string", "enum": ["small", "large"]}, {"type": "integer", "minimum": 1}]
    }
    assert schema["properties"]["engine"]["required"] == ["engine_name"]
    assert schema["properties"]["engine"]["properties"]["engine_version"] == {"type": "string"}
    assert schema["properties"]["note"] == {"type": "string"}
    assert schema["properties"]["limits"]["required"] == ["connections"]


def test_every_format_of_ours_has_its_constraints() -> None:
    assert CONSTRAINTS.keys() == formats.FORMATS.keys()


_LOOSE = {"label-selector"}  # where the pattern says less than the check


_PIECES = st.sampled_from(
    [
        *"aZ9-._/% :",
        "..",
        "a" * 63,
        "b" * 64,
        "oci://",
        "https://",
        "fluxcd.io",
        "x.toolkit.fluxcd.io",
        "kubernetes.io/metadata.name",
    ]
)


@pytest.mark.parametrize("name", CONSTRAINTS)
@settings(max_examples=60, deadline=None, phases=[Phase.generate])  # shrinking long names takes minutes
@given(data=st.data())
def test_the_pattern_of_a_format_says_what_its_check_does(name: str, data: st.DataObject) -> None:
    constraint = CONSTRAINTS[name]
    pattern = constraint["pattern"].removesuffix("$") + r"\Z"
    text = data.draw(st.from_regex(pattern) | st.lists(_PIECES, max_size=5).map("".join))
    said = re.search(pattern, text) is not None and len(text) <= constraint.get("maxLength", len(text))
    checked = formats.FORMATS[name].check(text)
    assert said == checked or (name in _LOOSE and not checked)


def test_an_input_is_as_open_as_its_definition(tmp_path: Path) -> None:
    either = "required: [id]\n    anyOf: [{required: [size]}, {required: [shared]}]"
    text = DATABASES.replace("required: [id, engine_name, size]", either)
    (tmp_path / "databases.yaml").write_text(text)
    schemas = openapi.document(kind_files.load(tmp_path), writable=False)["components"]["schemas"]
    assert "additionalProperties" not in schemas["database-input"]
    assert schemas["namespace-input"]["additionalProperties"] is False
