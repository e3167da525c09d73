"""Data against a JSON Schema (2020-12): every violation, with its place and in plain words."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]

_REMEMBERED = 32  # schemas that are compiled: a fleet has a handful of blueprints
_MOST = 20  # violations that are told of one document


class Violation(NamedTuple):
    steps: tuple[str | int, ...]
    text: str


def violations(schema: Schema, value: Any) -> list[Violation]:
    """None: it satisfies the schema."""
    found: list[Violation] = []
    for error in _validator(json.dumps(schema)).iter_errors(value):
        found += _told(error)
        if len(found) >= _MOST:
            break
    return sorted(set(found), key=lambda each: ([str(step) for step in each.steps], each.text))


def defect(schema: Any) -> str | None:
    """What is wrong with the schema itself, if anything."""
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator(schema, validate_formats=True, retriever=_no_other)
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as exc:
        return f"{_place(tuple(exc.instance_path))}{exc.message}".splitlines()[0]
    except Exception as exc:  # the library has several for schemas that it cannot read, and ValueError
        return str(exc).splitlines()[0]
    return None


def _no_other(uri: str) -> Any:
    """A schema stands for itself: what it refers to elsewhere is neither fetched nor read from a disk."""
    raise ValueError(f"it refers to {uri}, and must hold everything itself")


@functools.lru_cache(_REMEMBERED)
def _validator(schema: str) -> Any:
    import jsonschema_rs  # not before: most commands do without it

    return jsonschema_rs.Draft202012Validator(json.loads(schema), validate_formats=True, retriever=_no_other)


def _told(error: Any) -> Iterator[Violation]:
    steps = tuple(error.instance_path)
    kind = error.kind
    match kind.name:
        case "required":
            yield Violation(steps, f"{_place((*steps, kind.property))}is required")
        case "additionalProperties" | "unevaluatedProperties":
            for name in kind.unexpected:
                yield Violation((*steps, name), f"{_place((*steps, name))}is not a known field")
        case _:
            yield Violation(steps, f"{_place(steps)}{error.message}".replace("\n", " "))


def _place(steps: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".") + (
        " " if steps else ""
    )
