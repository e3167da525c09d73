"""Kinds become the OpenAPI document. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from flux_resourceset import __version__, errors
from flux_resourceset.kinds.model import Kinds, Schema
from flux_resourceset.openapi import (
    building,
    conversion,
    identities,
    past_paths,
    past_schemas,
    paths,
    planning,
    revisions,
    schemas,
    whereabouts,
    words,
)

if TYPE_CHECKING:
    from yaml import SafeDumper as _Fast
    from yaml import SafeLoader as _FastLoader
else:
    _Fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, where PyYAML was built with libyaml
    _FastLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_DESCRIPTION = """\
What every cluster of a fleet should run. The Flux Operator of each cluster polls the paths under `/api/v2/flux/`; \
the other paths are for operators.

A token is sent as Bearer, or as the password of Basic with any user name. Tokens that may read get every GET; \
the other methods need one that may write, unless they are a dry run. A token that is bound to a cluster reads the views of that \
cluster and who it is (`/whoami`), and gets 403 for everything else that is not public.

Every answer that is not a success is `application/problem+json` (RFC 9457), with a stable `code`. \
HEAD goes wherever GET goes, and a method that is not listed is answered with 405 and `Allow`."""

_READ_ONLY = "\n\nThis server is read-only: it serves Flux, and nothing can be changed through it."


def document(kinds: Kinds, *, writable: bool) -> dict[str, Any]:
    known = schemas.of_kinds(kinds)
    samples = schemas.Samples(kinds, known)
    served = paths.of_kinds(kinds, samples, writable)
    components: dict[str, dict[str, Any]] = {
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "The token."},
            "basic": {"type": "http", "scheme": "basic", "description": "The token as password; the user name does not matter."},
        },
        "parameters": _parameters(),
        "headers": _HEADERS,
        "responses": _responses(),
        "schemas": known | schemas.shared(kinds) | past_schemas.schemas() | identities.schemas() | whereabouts.schemas(),
    }
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "flux-resourceset",
            "version": __version__,
            "description": _DESCRIPTION + ("" if writable else _READ_ONLY),
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"basic": []}],
        "tags": _tags(kinds, served),
        "paths": served,
        "components": _needed(served, components),
    }


def text(kinds: Kinds, *, writable: bool) -> bytes:
    return dumped(document(kinds, writable=writable), _Dumper)


class Lazy:
    """The text, made when it is first asked for."""

    def __init__(self, kinds: Kinds, writable: bool) -> None:
        self._make = functools.cache(lambda: text(kinds, writable=writable))

    def __call__(self) -> bytes:
        return self._make()


@functools.lru_cache(maxsize=1)
def as_json(text: bytes) -> bytes:
    """The same document, whoever wrote it as YAML; yaml.YAMLError or TypeError if it is none."""
    content = yaml.load(text, Loader=_FastLoader)  # noqa: S506  # a safe one
    if not isinstance(content, dict):
        raise TypeError("this is no OpenAPI document, which would be an object")
    return msgspec.json.encode(content)


class _Dumper(_Fast):
    def ignore_aliases(self, data: Any) -> bool:
        return True  # the same schema at two places is written twice, not anchored


def dumped(content: Any, dumper: type[yaml.SafeDumper]) -> bytes:
    """Block style in the order of the content; without folding, at which the dumpers differ."""
    raw = yaml.dump(
        content, Dumper=dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=1_000_000, encoding="utf-8"
    )
    assert isinstance(raw, bytes)
    return raw


# What the paths refer to

_TAGS_PATTERN = r'^(\s*(\*|(W/)?"[^"]*")\s*(,|$))*$'
_MAX_WHOLE = 10**15 - 1

_HEADERS: dict[str, Schema] = {
    "ETag": {
        "required": True,
        "description": "Names this state of the document, for If-Match and If-None-Match.",
        "schema": {"type": "string", "pattern": '^"[^"]+"$', "example": '"12"'},
    },
    "Location": {
        "required": True,
        "description": "Path of the document.",
        "schema": {"type": "string", "example": "/clusters/a"},
    },
    "X-Total-Count": {
        "required": True,
        "description": "How many there are without limit and offset.",
        "schema": {"type": "integer", "minimum": 0, "example": 3},
    },
    "X-Revision": {
        "required": True,
        **revisions.SHOWN,
    },
    "X-Patches-Removed": {
        "description": "How many patch keys went with the reference; absent when none did.",
        "schema": {"type": "integer", "minimum": 1, "example": 2},
    },
    "X-Warning": {
        "description": "A warning about what is allowed but is probably a mistake; repeated for each warning.",
        "schema": {"type": "string", "example": "oci_tag 2.0.0 and component_version 1.0.0 disagree; oci_tag counts"},
    },
    "X-Request-Id": {
        "description": "Id of the request in the log; that of the request if it was usable.",
        "schema": {"type": "string", "example": "4f1d2c"},
    },
    "X-Server-Version": {"required": True, "description": "Version of the server.", "schema": {"type": "string"}},
    "WWW-Authenticate": {"required": True, "description": "How to send a token.", "schema": {"type": "string"}},
    "Retry-After": {
        "description": "When to ask again, in seconds, where that is known.",
        "schema": {"type": "integer", "minimum": 1, "example": 2},
    },
    "Accept": {"required": True, "description": "The media type to send.", "schema": {"type": "string"}},
    "Vary": {"required": True, "description": "That answers differ by Accept-Encoding.", "schema": {"type": "string"}},
    "Content-Encoding": {
        "description": "gzip, when it was asked for.",
        "schema": {"type": "string", "enum": ["gzip"]},
    },
}


def _parameters() -> dict[str, Schema]:
    said = {"type": "string", "maxLength": 500, "pattern": r"^[^\u0000-\u001F\u007F-\u009F]*$"}
    tags = {"type": "string", "pattern": _TAGS_PATTERN}
    whole = {"type": "integer", "minimum": 1, "maximum": _MAX_WHOLE}

    revision, anything = {"value": '"12"'}, {"value": "*"}

    def header(name: str, description: str, schema: Schema) -> Schema:
        return {"name": name, "in": "header", "description": description, "schema": schema}

    def query(name: str, description: str, schema: Schema) -> Schema:
        return {"name": name, "in": "query", "description": description, "schema": schema}

    return {
        "XReason": header("X-Reason", "Why; for the change log.", {**said, "example": "ticket 42"}),
        "XActor": header("X-Actor", "For whom the token acts; for the change log.", {**said, "example": "alice"}),
        "XRequestId": header("X-Request-Id", "An id to find the request by; an unusable one is replaced.", {"type": "string"}),
        "IfMatch": header("If-Match", "Only if the document is at this ETag; otherwise 412.", tags)
        | {"examples": {"exists": anything, "revision": revision}},
        "IfNoneMatch": header("If-None-Match", "The ETags you have; `*` with PUT: only if it does not exist yet.", tags)
        | {"examples": {"revision": revision, "new": anything}},
        "IdempotencyKey": header(
            "Idempotency-Key",
            "The same request under the same key is carried out once within 24 hours, and gets the first answer again.",
            {"type": "string", "pattern": "^[!-~]{1,200}$", "example": "rollout-42"},
        ),
        "Selector": query(
            "selector",
            "Label selector of Kubernetes.",
            {"type": "string", "pattern": conversion.SELECTOR, "example": "zone=edge,team!=x,region in (a,b),!beta"},
        ),
        "At": query(
            "at",
            "As it was then: a revision, or a time (RFC 3339), which means the newest revision of that time.",
            words.ref("RevisionOrTime"),
        ),
        "Limit": query("limit", "At most so many; all if left out.", whole),
        "ChangesLimit": query("limit", "At most so many transactions.", {**whole, "maximum": 1000, "default": 100}),
        **planning.parameters(),
        "SinceRevision": query(
            "since_revision",
            "Of a stream: begin after this revision. For a list 400; there is after.",
            {"type": "integer", "minimum": 0, "maximum": _MAX_WHOLE, "example": 12},
        ),
        "LastEventId": header(
            "Last-Event-ID",
            "Of a stream: continue after the event with this id; anything else is 400. It takes precedence over since_revision.",
            {"type": "string", "example": "4f1d2c-12"},
        ),
        **revisions.parameters(_MAX_WHOLE),
        "Offset": query("offset", "Pass over so many.", {"type": "integer", "minimum": 0, "maximum": _MAX_WHOLE, "default": 0}),
    }


def _responses() -> dict[str, Schema]:
    """One per status, with every code that it can carry."""
    more = {
        errors.Unauthorized: ("WWW-Authenticate",),
        errors.UnsupportedMediaType: ("Accept",),
        errors.Unavailable: ("Retry-After",),
    }
    return {
        building.refusal_name(family): {
            "description": family.title,
            "headers": {
                **{name: {"$ref": f"#/components/headers/{name}"} for name in (*more.get(family, ()), "X-Request-Id")},
                "X-Revision": revisions.SHOWN,  # but for Flux, and for strangers
            },
            "content": {
                "application/problem+json": {
                    "schema": words.ref("InvalidProblem" if family is errors.Invalid else "Problem"),
                    "examples": _examples(family),
                }
            },
        }
        for family in errors.Refusal.__subclasses__()
    }


def _examples(family: type[errors.Refusal]) -> dict[str, Any]:
    """By their codes; what shares the code of its family goes by its own name."""
    shown = {family.code: family}
    for refusal in family.__subclasses__():
        shown[refusal.__name__.lower() if refusal.code in shown else refusal.code] = refusal
    return {name: {"value": _problem(refusal)} for name, refusal in shown.items()}


def _problem(refusal: type[errors.Refusal]) -> dict[str, Any]:
    problem = {
        "type": f"urn:flux-resourceset:problem:{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.title,
        "code": refusal.code,
        "request_id": "4f1d2c",
    }
    if issubclass(refusal, errors.Invalid):
        problem["errors"] = [{"pointer": "/cluster_name", "message": "is required"}]
    return problem


def _tags(kinds: Kinds, served: dict[str, Any]) -> list[Schema]:
    used = {tag for item in served.values() for part in item.values() if isinstance(part, dict) for tag in part["tags"]}
    every = {kind.name: kind.description for kind in kinds} | paths.TAGS | past_paths.TAGS | whereabouts.TAGS
    return [{"name": name, "description": description} for name, description in every.items() if name in used]


def _needed(served: Any, components: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The components without those that nothing refers to."""
    needed: set[str] = set()
    waiting = list(_references(served))
    while waiting:
        reference = waiting.pop()
        if reference not in needed:
            needed.add(reference)
            _, _, section, name = reference.split("/")
            waiting += _references(components[section][name])
    return {
        section: {n: part for n, part in parts.items() if section == "securitySchemes" or f"#/components/{section}/{n}" in needed}
        for section, parts in components.items()
    }


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
