"""The signature of a blueprint as a kind file, by which the API can hold inputs of tenants: a definition, and overrides of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flux_resourceset import json_pointers
from flux_resourceset.repositories.blueprints import RESERVED

Schema = dict[str, Any]

_KIND = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_KIND = 63  # characters that a kind file takes
_MOST_SCHEMAS = 2_000  # in one signature, references written out; a few of them could stand for millions

# Names of kinds, routes of the API and fields of clusters that are there already, as far as a blueprint could lead to them
TAKEN = frozenset(
    {"changes", "cl", "cluster", "cluster_dns", "clusters", "comp", "component", "freeze", "freezes", "inputs", "kinds", "labels"}
    | {"metrics", "namespace", "namespaces", "ns", "patches", "platform_component", "platform_components", "rb", "rolebinding"}
    | {"rolebindings", "tombstones"}
)
_RESERVED = (*RESERVED, "wait_for")  # inputs that the API makes itself

# Of JSON Schema, by what stands behind a word
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_SINGLE = (
    "items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_PLAIN = (
    "type", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties", "maxProperties",
    "required", "dependentRequired",
)  # fmt: skip
_TOLD = ("title", "description", "examples")
_NEVER = ("$dynamicRef", "$recursiveRef")
FORMATS = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri", "iri-reference"}
    | {"json-pointer", "regex", "relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid"}
)  # that both sides check; any other is a word without meaning to JSON Schema
_BRANCHES = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
# Rules about several inputs at once
_BETWEEN = (
    *_BRANCHES,
    "dependentSchemas",
    "dependentRequired",
    "minProperties",
    "maxProperties",
    "propertyNames",
)  # rules about several inputs


class Untranslatable(Exception):
    """A signature, or a name, that no kind file can express; a line that says why."""


def kind_name(blueprint: str) -> str:
    return blueprint.replace("-", "_") + "s"


def view_name(blueprint: str) -> str:
    """What the kind is called in the URLs that Flux polls."""
    return blueprint + "s"


def kind_file(blueprint: str, signature: Mapping[str, Any]) -> dict[str, Any]:
    """Every input is a field of the definition and may be overridden by a cluster; only the id is required of either."""
    fields = _fields(signature)
    about = str(signature.get("description") or f"Inputs of the tenants that run the blueprint {blueprint}.")
    name = {"type": "string", "description": "Name of the tenant."}
    return {
        "kind": _checked_kind(blueprint),
        "apiVersion": "v1",
        "metadata": {
            "description": about,
            "x-flux": {
                "singular": blueprint.replace("-", "_"),
                "reference": {field: _override(schema) for field, schema in fields.items()},
                "overrides": list(fields),
            },
        },
        "methods": {"resource": ["get", "post"], "instance": ["get", "put", "patch", "delete"]},
        "schema": {
            "type": "array",
            "key": {"name": "id", "description": name["description"], "schema": {"type": "string"}},
            "items": {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {"id": name, **fields},
            },
        },
    }


def left_out(signature: Mapping[str, Any]) -> list[str]:
    """Words of a signature about several inputs at once: neither a definition nor a reference need have all of them."""
    return [word for word in _BETWEEN if word in signature]


def _checked_kind(blueprint: str) -> str:
    kind = kind_name(blueprint)
    if not _KIND.fullmatch(kind) or len(kind) > _LONGEST_KIND:
        raise Untranslatable(f"{kind} can be no kind: it must begin with a letter, and have at most {_LONGEST_KIND} characters")
    if taken := TAKEN & {kind, kind.removesuffix("s")}:
        raise Untranslatable(f"the API knows {min(taken)} already; give the blueprint another name")
    return kind


def _fields(signature: Mapping[str, Any]) -> dict[str, Schema]:
    if word := next((word for word in ("$ref", "patternProperties") if word in signature), None):
        raise Untranslatable(f"{word} at the top: inputs must be named one by one, below properties")
    translation = _Translation(signature)
    fields: dict[str, Schema] = {}
    for name, schema in (signature.get("properties") or {}).items():
        if name in _RESERVED:
            raise Untranslatable(f"properties.{name}: the name is reserved by the API; choose another")
        if not _FIELD.fullmatch(name):
            raise Untranslatable(f"properties.{name}: a field of a kind has letters, digits and _ only, and no digit first")
        if schema is False:
            raise Untranslatable(f"properties.{name}: no value satisfies it; leave it out")
        fields[name] = {} if schema is True else translation.of(schema, f"properties.{name}")
    return fields


class _Translation:
    """Schemas of a signature as a kind file takes them: references written out, and nothing completed by defaults."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._made = 0

    def of(self, schema: Mapping[str, Any], place: str, within: tuple[str, ...] = (), *, branch: bool = False) -> Schema:
        """`within` are the references on the way here; a `branch` says more about an object that stands elsewhere."""
        self._made += 1
        if self._made > _MOST_SCHEMAS:
            raise Untranslatable(f"it has more than {_MOST_SCHEMAS} schemas, with those that $ref names written out")
        if word := next((word for word in _NEVER if word in schema), None):
            raise Untranslatable(f"{place}: {word} is not supported; write the schema in place")
        made = {word: schema[word] for word in (*_TOLD, *_PLAIN) if word in schema}
        if "type" not in made and made.get("enum") and all(isinstance(value, str) for value in made["enum"]):
            made["type"] = "string"  # which says no more, and lets the command line offer the values
        if schema.get("format") in FORMATS:
            made["format"] = schema["format"]
        for word in (word for word in (*_NAMED, *_SINGLE, *_LISTED) if word in schema):
            made[word] = self._part(word, schema[word], f"{place}.{word}", within)
        if "properties" in made and not branch and not {"additionalProperties", "unevaluatedProperties"} & {*made}:
            made["additionalProperties"] = {}  # as JSON Schema has it; the API would close it
        if "$ref" in schema:
            return self._referred(str(schema["$ref"]), made, place, within, branch=branch)
        return made

    def _part(self, word: str, part: Any, place: str, within: tuple[str, ...]) -> Any:
        def made(sub: Any, at: str, inside: bool) -> Any:
            return sub if isinstance(sub, bool) else self.of(sub, at, within, branch=inside)

        if word in _NAMED:  # each is a value of its own, be it that of a branch
            return {name: made(sub, f"{place}.{name}", False) for name, sub in part.items()}
        if word in _LISTED:
            return [made(sub, f"{place}[{number}]", word in _BRANCHES) for number, sub in enumerate(part)]
        if word == "additionalProperties" and part is True:
            return {}
        return made(part, place, word in _BRANCHES)

    def _referred(self, ref: str, beside: Schema, place: str, within: tuple[str, ...], *, branch: bool) -> Schema:
        if ref in within:
            raise Untranslatable(f"{place}: $ref {ref} leads to itself; a kind file has no such schemas")
        target = self._target(ref, place)
        made = {} if target is True else self.of(target, place, (*within, ref), branch=branch)
        if not {*beside} - {*_TOLD}:
            return {**made, **beside}
        return {**{word: made.pop(word) for word in _TOLD if word in made}, **beside, "allOf": [made, *beside.get("allOf", ())]}

    def _target(self, ref: str, place: str) -> Any:
        found: Any = self._root if ref.startswith("#/") else None
        for step in json_pointers.steps(ref[1:]) if found is not None else ():
            found = found.get(step) if isinstance(found, Mapping) else None
        if found is not True and not isinstance(found, Mapping):
            raise Untranslatable(f"{place}: $ref {ref} names nothing of this file, such as #/$defs/name")
        return found


def _override(schema: Schema) -> Schema:
    """The same, or null, which leaves the definition's value."""
    said = f"On this cluster, in place of the definition's: {schema.get('description') or schema.get('title') or 'any value.'}"
    rest = {word: value for word, value in schema.items() if word not in ("title", "description", "examples")}
    if not rest:
        return {"description": said}
    if "type" not in rest or {*rest} & {*_BRANCHES}:
        return {"description": said, "anyOf": [rest, {"type": "null"}]}
    types = rest["type"] if isinstance(rest["type"], list) else [rest["type"]]
    rest["type"] = [*types, *(["null"] if "null" not in types else [])]
    if "const" in rest:
        rest["enum"] = [rest.pop("const")]
    if "enum" in rest and None not in rest["enum"]:
        rest["enum"] = [*rest["enum"], None]
    return {"description": said, **rest}
