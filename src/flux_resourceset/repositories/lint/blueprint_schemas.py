"""Rule schema: the signature of a blueprint is a closed JSON Schema whose inputs can be asked of Git and of the API alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flux_resourceset import errors, strict_json
from flux_resourceset.repositories import manifests, signatures
from flux_resourceset.repositories.blueprints import RESERVED
from flux_resourceset.repositories.lint.reports import Report, dotted
from flux_resourceset.repositories.manifests import Manifest

RULE = "schema"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Where a schema holds schemas.
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if",
    "then", "else", "contentSchema",
)  # fmt: skip
_CLOSING = ("additionalProperties", "unevaluatedProperties")
_CONDITIONS = frozenset({"not", "if"})  # which let nothing in
_IN_PLACE = _CONDITIONS | {"then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"}  # of the value that is judged around it

Steps = tuple[str | int, ...]


class Lines:
    """Where things stand in a JSON file, which YAML can mostly read as well."""

    def __init__(self, body: bytes) -> None:
        try:
            self._document: Manifest | None = next(iter(manifests.of_bytes(body)), None)
            self._broken: int | None = None
        except manifests.Unreadable as exc:
            self._document, self._broken = None, exc.line

    def at(self, *steps: str | int) -> int | None:
        """Where it stands; where the file breaks off, if it cannot be read."""
        return self._document.line(*steps) if self._document is not None else self._broken


def checked_signature(report: Report, body: bytes | None) -> dict[str, Any] | None:
    """The schema, if it can be used at all."""
    if body is None:
        return None
    lines = Lines(body)
    try:
        schema = strict_json.decoded(body)
    except errors.MalformedBody as exc:
        report.add(RULE, lines.at(), f"is no strict JSON: {exc}")
        return None
    if not isinstance(schema, dict):
        report.add(RULE, lines.at(), "must be a JSON Schema of the inputs, an object")
        return None
    foreign = [*_foreign(schema, ())]
    for steps, message in foreign:
        report.add(RULE, lines.at(*steps), message)
    if foreign:
        return None  # to look at it further would fetch from elsewhere
    if (defect := signatures.defect(schema)) is not None:
        report.add(RULE, lines.at(), f"is no JSON Schema 2020-12: {defect}")
        return None
    for steps, message in _faults(schema):
        report.add(RULE, lines.at(*steps), message)
    return schema


def _foreign(value: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    """References to anything outside the file, which nobody could release together with it."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in members:
        here = (*steps, step)
        if step in ("$ref", "$dynamicRef") and isinstance(each, str) and not each.startswith("#"):
            yield here, f"{dotted(here)} leads out of the file; define it under $defs"
        elif step == "$schema" and isinstance(each, str) and each.removesuffix("#") != _DRAFT:
            yield here, f"{dotted(here)} must be {_DRAFT}"
        else:
            yield from _foreign(each, here)


def _faults(schema: dict[str, Any]) -> Iterator[tuple[Steps, str]]:
    if schema.get("type") != "object" or not any(schema.get(word) is False for word in _CLOSING):
        yield (), "must be closed: type object, and additionalProperties false, so that a slip in a name is noticed"
    properties = schema.get("properties")
    for name in properties if isinstance(properties, dict) else ():
        if name in RESERVED:
            yield (
                ("properties", name),
                f"an input cannot be called {name}: the API or Flux Operator uses that name; choose another",
            )
    for steps, each, closed in _schemas(schema, (), False):
        if "default" in each:
            message = f"{dotted((*steps, 'default'))} is never filled in; make the input required, or let the template say it"
            yield (*steps, "default"), message
        if steps and "properties" in each and not closed:
            yield steps, f"{dotted(steps)} must be closed too: additionalProperties false"


def _schemas(schema: Any, steps: Steps, closed: bool) -> Iterator[tuple[Steps, dict[str, Any], bool]]:
    """A schema and all within it, and whether each is closed, or that around it; what is data, as in enum or const, is none."""
    if not isinstance(schema, dict):
        return
    here = closed or any(word in schema for word in _CLOSING)
    yield steps, schema, here
    for word in _SINGLE:
        yield from _schemas(schema.get(word), (*steps, word), word in _CONDITIONS or (here and word in _IN_PLACE))
    for word in _LISTS:
        for place, each in enumerate(schema.get(word) or ()):
            yield from _schemas(each, (*steps, word, place), here and word in _IN_PLACE)
    for word in _MAPS:
        for name, each in (schema.get(word) or {}).items():
            yield from _schemas(each, (*steps, word, name), here and word in _IN_PLACE)
