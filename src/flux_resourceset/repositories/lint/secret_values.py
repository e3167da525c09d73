"""Rule secret-value: what everybody could read who can read the repository."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any

from flux_resourceset import secret_keys
from flux_resourceset.repositories import findings
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.manifests import Manifest, at, items

RULE = "secret-value"
_REMEDY = "take it out, revoke it, and keep its successor where secrets.yaml gets secrets from"

# What issuers write so that it is recognised; shorter than theirs, for who plants one to see is told as well.
_SECRET = re.compile(
    rb"""
      (?P<key>-----BEGIN\ (?:[A-Z0-9]+\ )*PRIVATE\ KEY(?:\ BLOCK)?-----)
    | (?<![A-Za-z0-9]) (?:
          (?P<aws>A[KS]IA[0-9A-Z]{12,})
        | (?P<github>gh[pousr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{16,})
        | (?P<gitlab>glpat-[A-Za-z0-9_.-]{16,})
        | (?P<jwt>eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ|e30)[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*)
      )
    """,
    re.VERBOSE,
)
_WORDS = {
    "key": "a private key",
    "aws": "an access key of AWS",
    "github": "a token of GitHub",
    "gitlab": "a token of GitLab",
    "jwt": "a signed token (JWT)",
}


def of_bytes(path: str, body: bytes) -> Iterator[Finding]:
    """Secrets that are seen in a file as it is, comments too."""
    line, place = 1, 0
    for match in _SECRET.finditer(body):
        line, place = line + body.count(b"\n", place, match.start()), match.start()
        yield _finding(path, line, _WORDS[match.lastgroup or "key"])


def of_documents(path: str, body: bytes, documents: Sequence[Manifest]) -> Iterator[Finding]:
    """Those that are not: behind escapes of YAML, or in the values of a Secret."""
    for manifest in documents:
        if b"\\" in body:
            yield from _of_values(path, manifest, (), manifest.data)
        for steps in _secrets(manifest.data, ()):
            yield from _of_secret(path, manifest, steps)


def of_inputs(path: str, manifest: Manifest, steps: tuple[str | int, ...]) -> Iterator[Finding]:
    """Inputs whose names say that they are secret, at any depth."""
    for place, key in _keys(manifest.at(*steps), steps):
        if secret_keys.looks_secret(key):
            message = f"input {key} looks like a secret, and inputs are readable; name a Secret instead, as secretName does"
            yield findings.error(RULE, path, manifest.line(*place), message)


def _secrets(data: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Where the Secrets of a document are: it is one, or a list of objects."""
    if at(data, "kind") == "Secret" and at(data, "apiVersion") == "v1":
        yield steps
    for place, each in enumerate(items(data) or ()):
        yield from _secrets(each, (*steps, "items", place))


def _of_secret(path: str, manifest: Manifest, steps: tuple[str | int, ...]) -> Iterator[Finding]:
    for field in ("data", "stringData"):
        values = manifest.at(*steps, field)
        for key, value in values.items() if isinstance(values, dict) else ():
            line = manifest.line(*steps, field, key)
            if secret_keys.looks_secret(key) and value:
                yield findings.error(RULE, path, line, f"{key} of a Secret stands here for everybody to read; {_REMEDY}")
            elif field == "data" and isinstance(value, str) and (match := _SECRET.search(_decoded(value))):
                yield _finding(path, line, _WORDS[match.lastgroup or "key"])


def _of_values(path: str, manifest: Manifest, steps: tuple[str | int, ...], value: Any) -> Iterator[Finding]:
    if isinstance(value, str):
        if match := _SECRET.search(value.encode(errors="replace")):
            yield _finding(path, manifest.line(*steps), _WORDS[match.lastgroup or "key"])
        return
    for step, each in _members(value):
        yield from _of_values(path, manifest, (*steps, step), each)


def _keys(value: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for step, each in _members(value):
        if isinstance(step, str):
            yield (*steps, step), step
        yield from _keys(each, (*steps, step))


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        return b""


def _finding(path: str, line: int, what: str) -> Finding:
    return findings.error(RULE, path, line, f"holds {what}; {_REMEDY}")
