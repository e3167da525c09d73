"""What the schema of a field tells by itself: a sample value, and whether fields are labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = Mapping[str, Any]

_TEXTS = {  # by format
    "dns-label": "example",
    "dns-name": "example.com",
    "label-key": "example",
    "free-label-key": "example",
    "label-value": "example",
    "helm-path": "example.path",
    "variable": "example",
    "path-segment": "example",
    "source-url": "https://example.com/charts",
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def has_labels(properties: Schema) -> bool:
    """Whether `labels` is a map of strings, so that selectors can be used."""
    labels = properties.get("labels")
    if not isinstance(labels, Mapping) or labels.get("type") != "object":
        return False
    others = labels.get("additionalProperties")
    return isinstance(others, Mapping) and others.get("type") == "string"


def sample(schema: Any, *, chosen: bool = False) -> Any:
    """A value of a schema: its example where it has one, else the plainest that its words allow.

    `chosen`: as somebody would give it, who does not repeat the default and leaves nothing empty.
    """
    if not isinstance(schema, Mapping):
        return "example"  # `true` takes anything
    for word in ("example",) if chosen else ("example", "default"):
        if word in schema:
            return schema[word]
    if "enum" in schema:
        return schema["enum"][0]
    for word in ("anyOf", "oneOf"):
        if word in schema and "type" not in schema:
            return sample(schema[word][0], chosen=chosen)
    type = schema.get("type")
    match type[0] if isinstance(type, list) else type:
        case "object":
            return sample_object(schema, chosen=chosen) or (_filled(schema) if chosen else {})
        case "array":
            return [sample(schema.get("items", {}), chosen=chosen)] * max(schema.get("minItems", 0), int(chosen))
        case "string":
            return _TEXTS.get(schema.get("format", ""), "example").ljust(schema.get("minLength", 0), "e")
        case "integer" | "number":
            least = max(schema.get("minimum", 1), 1)
            return min(least, schema.get("maximum", least))
        case "boolean":
            return chosen
    return "example" if chosen else None


def sample_object(schema: Schema, without: Iterable[str] = (), *, chosen: bool = False) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        name: sample(sub, chosen=chosen)
        for name, sub in schema.get("properties", {}).items()
        if name not in without and (name in required or "example" in sub)
    }


def _filled(schema: Schema) -> dict[str, Any]:
    """An object of which nothing is required, with everything that is known of it."""
    return {name: sample(sub, chosen=True) for name, sub in schema.get("properties", {}).items()} or {"key": "value"}
