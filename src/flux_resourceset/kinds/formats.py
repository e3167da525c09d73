"""The string formats that kind files may name: syntax of Kubernetes, Helm and Flux."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

from flux_resourceset import changes, errors, selectors
from flux_resourceset.kinds import helm_paths
from flux_resourceset.names import is_dns_label, is_dns_name, is_label_key, is_label_value

_REMEMBERED = 2048  # texts of each format, more than a catalog has ids
_SHORT = 253  # characters, as a DNS name has at most: what is remembered stays small, whatever is sent

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SOURCE_URL = re.compile(r"(oci|https?)://[^\s/]\S*")

# Flux Operator and Flux act on their own keys; a user's value under them could switch off or delete what is applied.
RESERVED_KEY = "kubernetes.io/metadata.name"
RESERVED_PREFIXES = ("fluxcd.controlplane.io", "toolkit.fluxcd.io", "fluxcd.io")


def is_free_label_key(text: str) -> bool:
    prefix = text.partition("/")[0] if "/" in text else ""
    reserved = any(prefix == p or prefix.endswith("." + p) for p in RESERVED_PREFIXES)
    return is_label_key(text) and text != RESERVED_KEY and not reserved


def is_variable(text: str) -> bool:
    return len(text) <= 250 and _VARIABLE.fullmatch(text) is not None


def is_path_segment(text: str) -> bool:
    return bool(text) and text not in (".", "..") and "/" not in text and "%" not in text


def is_source_url(text: str) -> bool:
    return _SOURCE_URL.fullmatch(text) is not None


def is_label_selector(text: str) -> bool:
    try:
        selectors.parse(text)
    except errors.BadQuery:
        return False
    return bool(text.strip())


def is_moment(text: str) -> bool:
    return changes.moment(text) is not None


def remembering(check: Callable[[str], bool]) -> Callable[[str], bool]:
    """The same check, which remembers short texts: the clusters of a fleet say the same again and again."""
    known = functools.lru_cache(_REMEMBERED)(check)
    return lambda text: known(text) if len(text) <= _SHORT else check(text)


class Format(NamedTuple):
    check: Callable[[str], bool]
    message: str


# What a kind file may name besides: the formats of JSON Schema, which the validator checks, and OpenAPI's, which only inform.
_STANDARD = (
    "date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri", "iri-reference",
    "json-pointer", "regex", "relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
    "binary", "byte", "double", "float", "int32", "int64", "password",
)  # fmt: skip

FORMATS: dict[str, Format] = {
    "dns-label": Format(
        is_dns_label,
        "must be a DNS-1123 label: lower-case letters, digits and '-', at most 63, with a letter or digit at both ends",
    ),
    "dns-name": Format(is_dns_name, "must be a lower-case RFC 1123 DNS name: labels of letters, digits and '-', joined by dots"),
    "label-key": Format(
        is_label_key,
        "must be a Kubernetes label key: an optional DNS prefix and '/', then at most 63 of [A-Za-z0-9_.-]",
    ),
    "free-label-key": Format(
        is_free_label_key,
        "must be a Kubernetes label key that is not reserved: not kubernetes.io/metadata.name, "
        "nothing under fluxcd.io, toolkit.fluxcd.io or fluxcd.controlplane.io",
    ),
    "label-value": Format(
        is_label_value,
        "must be a Kubernetes label value: at most 63 of [A-Za-z0-9_.-] with a letter or digit at both ends, or empty",
    ),
    "helm-path": Format(
        helm_paths.is_path,
        "must be a Helm value path, as in ui.color, hosts[0].name or grafana\\.ini.server: segments of [A-Za-z0-9_/-] joined by "
        "dots, at most 31 of them and at most 250 characters; a dot inside one is escaped by a backslash, list elements are "
        "[0] to [9999]",
    ),
    "variable": Format(
        is_variable,
        "must be the name of a variable for Flux to substitute: letters, digits and '_', no digit first, at most 250 characters",
    ),
    "path-segment": Format(is_path_segment, "must be an object name of RBAC: not empty, without '/' and '%'"),
    "label-selector": Format(is_label_selector, "must be a label selector, as in team=payments,zone in (a,b)"),
    "moment": Format(is_moment, "must be a time of RFC 3339, as in 2026-01-31T12:00:00Z"),
    "source-url": Format(is_source_url, "must be a URL that starts with oci://, https:// or http://"),
}

KNOWN = frozenset({*FORMATS, *_STANDARD})
