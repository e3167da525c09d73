"""A document against its kind: completion with defaults, and all violations at once."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs
import msgspec

from flux_resourceset import secret_keys, strict_json
from flux_resourceset.errors import MAX_VIOLATIONS, Violation
from flux_resourceset.json_pointers import pointer, steps
from flux_resourceset.kinds import formats, helm_paths
from flux_resourceset.kinds.model import CLUSTERS, Kind, Kinds

Document = dict[str, Any]

MAX_BYTES = 1024 * 1024  # of one document: Flux takes no answer of that size
MAX_VALUES = 100_000  # in one document; a cluster with as many references as Flux takes has less
ALL_AT_ONCE = 4_000_000  # bytes × values, of documents of which all violations are told: 20 KB with 200 values
TOO_LARGE = f"has more than {MAX_BYTES} bytes or {MAX_VALUES} values, for which no answer to Flux has room"
NOT_KNOWN = "is not a known field"
MAX_INTEGER = 2**53 - 1  # Flux reads numbers as float64; larger integers lose digits


def at(document: Any, place: str) -> Any:
    """What stands at a JSON pointer; None where nothing does."""
    for name in steps(place):
        if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            document = document.get(name) if isinstance(document, dict) else None
    return document


# Completion


def completed(kind: Kind, document: Document) -> Document:
    """The document with every default filled in, in the order of the schema; what is so already is not copied."""
    result: Document = kind.shape.completed(document)
    return result


def merge_patch(target: Any, patch: Any) -> Any:
    """JSON Merge Patch (RFC 7396): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


# Violations


def violations(
    kinds: Kinds, kind: Kind, document: Any, kept: Document | None = None, before: Document | None = None
) -> list[Violation]:
    """Everything that is wrong with a completed document, looked at alone; `kept` is what it says of kinds that are not here.

    Of a document that was accepted `before`, what is still the same object need not be measured again.
    """
    if not isinstance(document, dict):
        return [Violation("", "must be a JSON object")]
    raw = msgspec.json.encode(document) if is_bounded(document, before) else None
    values = math.inf if raw is None else strict_json.elements(raw)  # or fewer
    if raw is None or len(raw) > MAX_BYTES or values > MAX_VALUES:
        return [Violation("", TOO_LARGE)]
    everything = itertools.chain(
        (violation for error in _schema_errors(kind, document, len(raw) * values) for violation in _explained(error)),
        () if _is_plain(raw) else _unsafe(document, ()),
        _cluster_violations(kinds, document, kept or {}) if kind.name == CLUSTERS else (),
    )
    return list(dict.fromkeys(itertools.islice(everything, MAX_VIOLATIONS)))


def is_bounded(document: Document, before: Document | None = None) -> bool:
    """Whether it is worth writing down: what is not is as long as a request can be, and nobody else could run meanwhile."""
    known = before or {}
    characters = 0
    anew = {name: item for name, item in document.items() if name not in known or known[name] is not item}
    waiting: list[Any] = [anew]
    for count, value in enumerate(waiting):
        if isinstance(value, dict | list):
            waiting += value
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, str):
            characters += len(value)
        if characters > MAX_BYTES or count > 2 * MAX_VALUES:  # names count here, too
            return False
    return True


def _schema_errors(kind: Kind, document: Document, effort: float) -> Iterable[jsonschema_rs.ValidationError]:
    """All of them; of a large document the first. The validator writes the whole of what is wrong into every error."""
    if effort <= ALL_AT_ONCE:
        return kind.validator.iter_errors(document)
    try:
        kind.validator.validate(document)
    except jsonschema_rs.ValidationError as error:
        return [error]
    return []


_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]|\xef\xbf[\xbe\xbf]")  # in UTF-8: U+0080-009F, U+FFFE, U+FFFF
_BEGINNINGS = bytes.maketrans(b":[-123456789", b",,0000000000")  # makes ",0" of wherever a number begins
_LARGE = re.compile(rb"[:\[,]-?(?:\d{16}|\d[\d.]*[eE])")


def _is_plain(raw: bytes) -> bool:
    """Whether JSON as it is written here shows at a glance that nothing in it is unsafe."""
    if b"\\" in raw or b"\x7f" in raw or b"null" in raw:  # which is also written for what is no number
        return False
    if not raw.isascii() and _CONTROLS.search(raw):
        return False
    return b",0" not in raw.translate(_BEGINNINGS) or not _LARGE.search(raw)


def _unsafe(value: Any, path: tuple[str | int, ...]) -> Iterator[Violation]:
    """What JSON allows but neither YAML templates nor Flux survive."""
    if isinstance(value, str):
        if not value.isprintable() and any(ch < " " or "\x7f" <= ch <= "\x9f" or ch in "\ufffe\uffff" for ch in value):
            yield Violation(pointer(path), "must not hold control characters (U+0000-001F, U+007F-009F, U+FFFE, U+FFFF)")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _unsafe(name, (*path, name))
            yield from _unsafe(item, (*path, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _unsafe(item, (*path, position))
    elif isinstance(value, int | float) and abs(value) > MAX_INTEGER:  # a float beyond it is an integer too
        yield Violation(pointer(path), "must be within ±(2^53-1); send larger numbers as strings")


def _cluster_violations(kinds: Kinds, cluster: Document, kept: Document) -> Iterator[Violation]:
    elsewhere = {reference.get("id") for references in kept.values() for reference in _objects(references)}
    assigned: dict[str, str] = {}
    for name, kind in kinds.by_field.items():
        references = _objects(cluster.get(name))
        ids = [id for reference in references if isinstance(id := reference.get("id"), str)]
        listed = dict.fromkeys(ids, name)
        if len(listed) == len(ids) and (not kind.patches or assigned.keys().isdisjoint(listed)):  # as it mostly is
            assigned |= listed if kind.patches else {}
            continue
        seen: set[str] = set()
        for position, reference in enumerate(references):
            id = reference.get("id")
            if not isinstance(id, str):
                continue
            if id in seen:
                yield Violation(pointer((name, position, "id")), f"{id!r} is listed twice; list each {kind.singular} once")
            elif kind.patches and assigned.setdefault(id, name) != name:
                why = f"{id!r} is listed in /{assigned[id]} too, and patches could not tell them apart"
                yield Violation(pointer((name, position, "id")), why)
            seen.add(id)
    patches = cluster.get("patches")
    for id, values in patches.items() if isinstance(patches, dict) else ():
        if id not in assigned and id not in elsewhere:
            where = " or ".join(f"/{kind.cluster_field}" for kind in kinds.patched)
            yield Violation(pointer(("patches", id)), f"patches something that is not in {where}; assign it first")
        for key, value in values.items() if isinstance(values, dict) else ():
            wrong = helm_paths.mistake(key, value)
            if wrong:
                yield Violation(pointer(("patches", id, key)), wrong)
            if _looks_secret(key) and key not in kinds.secret_keys_allowed:
                yield Violation(
                    pointer(("patches", id, key)),
                    "looks like a secret, and patches are readable; use a Kubernetes Secret, "
                    "or allow the key by name in ALLOW_SECRET_LIKE_KEYS",
                )


def _objects(value: Any) -> list[Document]:
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


looks_secret = secret_keys.looks_secret
_looks_secret = formats.remembering(looks_secret)


# Schema errors in our own words

_TYPES = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "an array", "null": "null",
}  # fmt: skip


def _explained(error: jsonschema_rs.ValidationError) -> Iterator[Violation]:
    path = list(error.instance_path)
    kind: Any = error.kind
    match kind.name:
        case "required":
            yield Violation(pointer([*path, kind.property]), "is required")
        case "additionalProperties" | "unevaluatedProperties":
            for name in kind.unexpected:
                yield Violation(pointer([*path, name]), NOT_KNOWN)
        case "propertyNames":
            inner = kind.error
            for violation in _explained(inner):
                yield Violation(pointer([*path, str(inner.instance)]), violation.message)
        case name:
            yield Violation(pointer(path), _message(name, kind, error) + helm_paths.remedy(path, error.instance))


def _message(name: str, kind: Any, error: jsonschema_rs.ValidationError) -> str:
    match name:
        case "type":
            return "must be " + " or ".join(_TYPES[name] for name in kind.types)
        case "enum":
            return "must be one of " + ", ".join(_shown(option) for option in kind.options)
        case "const":
            return f"must be {_shown(kind.expected_value)}"
        case "format" if kind.format in formats.FORMATS:
            return formats.FORMATS[kind.format].message
        case "pattern":
            return f"must match {kind.pattern}"
        case "minLength":
            return "must not be empty" if kind.limit == 1 else f"must have at least {kind.limit} characters"
        case "maxLength":
            return f"must have at most {kind.limit} characters"
        case "minimum":
            return f"must be at least {_shown(kind.limit)}"
        case "maximum":
            return f"must be at most {_shown(kind.limit)}"
        case "uniqueItems":
            return "must not hold the same value twice"
        case "x-max-bytes":
            return error.message
        case "not" if isinstance(kind.schema, Mapping) and "description" in kind.schema:
            return str(kind.schema["description"])
        case "anyOf" if all(each.kind.name == "required" for branch in kind.context for each in branch):
            return "needs at least one of " + ", ".join(each.kind.property for branch in kind.context for each in branch)
    return "breaks its schema: " + error.message


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else repr(value)
