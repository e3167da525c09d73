"""JSON Schema 2020-12 as kind files use it becomes OpenAPI 3.0, in the form that a document has at one place."""

from __future__ import annotations

import enum
from typing import Any

from flux_resourceset.kinds import helm_paths
from flux_resourceset.kinds.formats import FORMATS
from flux_resourceset.kinds.model import Schema

MAX_NUMBER = 2**53 - 1  # beyond it, numbers are refused, as float64 would round them

_CONTROL = r"\u0000-\u001F\u007F-\u009F"
_DNS = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"((?=[^/]{{1,253}}/){_DNS}(\.{_DNS})*/)?{_NAME}"

PLAIN = rf"^[^{_CONTROL}]*$"
LABEL_VALUE = rf"^({_NAME})?$"
SELECTOR = r"^[A-Za-z0-9\s=!<>(),._/-]*$"

_DATE = r"[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
_HOUR = r"([01][0-9]|2[0-3]):[0-5][0-9]"

# What the checks of formats.py accept, said in regular expressions; a test holds them against each other.
CONSTRAINTS: dict[str, Schema] = {
    "dns-label": {"pattern": f"^{_DNS}$", "maxLength": 63},
    "dns-name": {"pattern": rf"^{_DNS}(\.{_DNS})*$", "maxLength": 253},
    "label-key": {"pattern": f"^{_KEY}$", "maxLength": 317},
    "free-label-key": {
        "pattern": r"^(?!kubernetes\.io/metadata\.name$)(?!([^/]*\.)?(fluxcd\.controlplane\.io|toolkit\.fluxcd\.io|fluxcd\.io)/)"
        f"{_KEY}$",
        "maxLength": 317,
    },
    "label-value": {"pattern": LABEL_VALUE, "maxLength": 63},
    "helm-path": {"pattern": f"^{helm_paths.PATTERN}$", "maxLength": helm_paths.LONGEST},
    "variable": {"pattern": r"^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 250},
    "path-segment": {"pattern": rf"^(?!\.{{1,2}}$)[^/%{_CONTROL}]+$"},
    # its characters only: its grammar as one expression would take exponential time
    "label-selector": {"pattern": SELECTOR, "maxLength": 16384},
    "moment": {"pattern": rf"^(?!0000){_DATE}[Tt]{_HOUR}:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]{_HOUR})$"},
    "source-url": {"pattern": rf"^(oci|https?)://[^\s/{_CONTROL}][^\s{_CONTROL}]*$"},
}

_KEPT = frozenset({
    "title", "description", "type", "format", "enum", "default", "example", "required", "deprecated",
    "multipleOf", "maximum", "minimum", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties",
})  # fmt: skip


class Form(enum.Enum):
    """Where a document stands: the same schema asks for different things."""

    NEW = "sent to be stored: what has a default may be left out"
    STORED = "answered: complete"
    PATCH = "sent as a merge patch: everything may be left out, and null removes"
    FLUX = "answered to Flux: complete, and never null"


def converted(schema: Any, form: Form) -> Schema:
    if not isinstance(schema, dict):
        return {} if schema else {"not": {}}
    result = {name: value for name, value in schema.items() if name in _KEPT or name.startswith("x-")}
    if "const" in schema:
        result["enum"] = [schema["const"]]
    if schema.get("examples"):
        result.setdefault("example", schema["examples"][0])
    for strict, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if strict in schema:
            result |= {bound: schema[strict], strict: True}
    if form is not Form.NEW and "default" in result:
        default = result.pop("default")
        # an answer always has the field, with this value unless told otherwise; an object is completed from its own fields
        has_default = form is Form.STORED or (form is Form.FLUX and default is not None)
        if has_default and not schema.get("properties"):
            result.setdefault("example", default)
    result.pop("required", None)
    required = _required(schema, form)
    if required:
        result["required"] = required
    result |= _children(schema, form)
    if form in (Form.NEW, Form.PATCH):
        _tell_of_keys(schema, result)
    return _typed(schema, result, form)


def _required(schema: Schema, form: Form) -> list[str]:
    if form is Form.PATCH:
        return []
    names = list(schema.get("required", ()))
    if form is Form.NEW:
        return names
    names += _defaulted(schema)
    if "if" in schema:  # a default of both branches is always filled in
        otherwise = _defaulted(schema.get("else", {}))
        names += [name for name in _defaulted(schema.get("then", {})) if name in otherwise]
    properties = schema.get("properties", {})
    kept = (name for name in names if form is not Form.FLUX or not _may_be_null(properties.get(name, {})))
    return list(dict.fromkeys(kept))


def _defaulted(schema: Schema) -> list[str]:
    return [name for name, sub in schema.get("properties", {}).items() if isinstance(sub, dict) and "default" in sub]


def _may_be_null(schema: Any) -> bool:
    return isinstance(schema, dict) and ("null" in schema.get("type", ()) or None in schema.get("enum", ()))


def _children(schema: Schema, form: Form) -> Schema:
    result: Schema = {}
    if "properties" in schema:
        required = schema.get("required", ())
        result["properties"] = {
            name: nullable(converted(sub, form)) if form is Form.PATCH and name not in required else converted(sub, form)
            for name, sub in schema["properties"].items()
        }
    if "items" in schema:  # a merge patch replaces arrays as a whole
        result["items"] = converted(schema["items"], Form.NEW if form is Form.PATCH else form)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        result["additionalProperties"] = nullable(converted(others, form)) if form is Form.PATCH else converted(others, form)
    elif others is not None and "patternProperties" not in schema:
        result["additionalProperties"] = others
    for word in ("allOf", "anyOf", "oneOf"):
        if word in schema:
            result[word] = [converted(sub, form) for sub in schema[word]]
    if "not" in schema and not (form is Form.PATCH and "required" in schema["not"]):
        result["not"] = converted(schema["not"], Form.NEW)
    return result


def _tell_of_keys(schema: Schema, result: Schema) -> None:
    """OpenAPI 3.0 cannot constrain the keys of a map, so the description does."""
    name = schema.get("propertyNames", {}).get("format")
    if name in FORMATS:
        result["description"] = f"{result.get('description', '')} Each key {FORMATS[name].message}.".strip()


def _typed(schema: Schema, result: Schema, form: Form) -> Schema:
    declared = schema.get("type", [])
    types = [declared] if isinstance(declared, str) else list(declared)
    may_be_null = "null" in types
    types = [name for name in types if name != "null"]
    result.pop("type", None)
    if form is Form.FLUX and "enum" in result:
        result["enum"] = [value for value in result["enum"] if value is not None]
    if len(types) == 1:
        result = {"type": types[0], **result}
        _refine(result, form)
    elif types:
        items = {"items": result.pop("items")} if "items" in result else {}
        branches: list[Schema] = [{"type": name, **(items if name == "array" else {})} for name in types]
        for branch in branches:
            _refine(branch, form)
        if "anyOf" in result:
            result["allOf"] = [*result.get("allOf", ()), {"anyOf": branches}]
        else:
            result["anyOf"] = branches
    if may_be_null and not types:
        result["enum"] = [None]
    return nullable(result) if may_be_null and form is not Form.FLUX else result


def _refine(schema: Schema, form: Form) -> None:
    """Say what is true of every document, so that whoever follows the schema is not refused."""
    if schema["type"] == "array":
        schema.setdefault("items", {})
    if form not in (Form.NEW, Form.PATCH) or "enum" in schema:
        return
    if schema["type"] == "string":
        known = CONSTRAINTS.get(schema.get("format", ""), {})
        schema.setdefault("pattern", known.get("pattern", PLAIN))
        longest = [bound for bound in (schema.get("maxLength"), known.get("maxLength")) if bound is not None]
        if longest:
            schema["maxLength"] = min(longest)
    if schema["type"] in ("integer", "number"):
        schema.setdefault("minimum", -MAX_NUMBER)
        schema.setdefault("maximum", MAX_NUMBER)


def nullable(schema: Schema) -> Schema:
    """OpenAPI 3.0 knows `nullable` only beside a `type`."""
    result = dict(schema)
    if "enum" in result and None not in result["enum"]:
        result["enum"] = [*result["enum"], None]
    if "type" in result:
        result["nullable"] = True
    elif "anyOf" in result:
        result["anyOf"] = [nullable(branch) for branch in result["anyOf"]]
    return result
