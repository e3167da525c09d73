"""The kinds as commands see them: as the server tells them, as it told them last, or as the package holds them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset import __version__, atomic_files
from flux_resourceset.cli import failures, windows
from flux_resourceset.kinds.fields import has_labels

if TYPE_CHECKING:
    from flux_resourceset.client import Client

CLUSTERS = "clusters"
FREEZES = "freezes"

Schema = dict[str, Any]


class Kind:
    """One kind, as `GET /kinds` describes it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.name: str = data["kind"]
        self.description: str = data["description"]
        self.singular: str = data["singular"]
        self.endpoint: str | None = data["endpoint"]
        self.filters: list[str] = data["filters"]
        self.methods: dict[str, list[str]] = data["methods"]
        self.schema: Schema = data["schema"]
        self.short: str | None = data.get("short")  # an older server tells none
        self.plural: str | None = _plural(self.name, self.singular)

    @property
    def group(self) -> str:
        return self.singular.replace("_", "-")

    @property
    def properties(self) -> Schema:
        properties: Schema = self.schema["properties"]
        return properties

    @property
    def required(self) -> list[str]:
        names: list[str] = self.schema.get("required", [])
        return names

    @property
    def has_labels(self) -> bool:
        return has_labels(self.properties)

    def names(self) -> tuple[str, ...]:
        """Every word that people may use for it."""
        return (*self.full_names(), *(name for name in (self.plural, self.short) if name))

    def full_names(self) -> tuple[str, ...]:
        return self.group, self.singular, self.name, self.name.replace("_", "-")


class Dependencies(NamedTuple):
    field: str


class ReferencedKind(Kind):
    """A kind that clusters refer to, in an array of every cluster."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.cluster_field: str = data["cluster_field"]
        self.patches: bool = data["patches"]
        self.overrides: list[str] = data["overrides"]
        self.reference: Schema = data["reference"]
        self.nest: dict[str, list[str]] = data.get("nest") or {}
        self.dependencies = Dependencies(data["dependencies"]) if data.get("dependencies") else None

    @property
    def can_be_merged(self) -> bool:
        """Whether the server says all that it takes; an older one does not."""
        nest, dependencies = self.data.get("nest"), self.data.get("dependencies", ...)
        nested = isinstance(nest, dict) and all(isinstance(names, list) for names in nest.values())
        return nested and isinstance(dependencies, str | None)

    @property
    def switched(self) -> bool:
        """Whether clusters can switch it off."""
        return bool(self.reference.get("enabled", {}).get("type") == "boolean")

    def references(self, cluster: Mapping[str, Any]) -> list[dict[str, Any]]:
        references: list[dict[str, Any]] = cluster.get(self.cluster_field, [])
        return references


class Kinds:
    def __init__(self, data: list[dict[str, Any]]) -> None:
        self._kinds = [Kind(item) if item["cluster_field"] is None else ReferencedKind(item) for item in data]
        _leave_clear_names(self._kinds)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    def references(self, kind: str) -> frozenset[str]:
        """The fields of a kind that hold references to others."""
        return frozenset(each.cluster_field for each in self if isinstance(each, ReferencedKind) and kind == CLUSTERS)

    def find(self, word: str) -> Kind | None:
        return next((kind for kind in self if word in kind.names()), None)


def _plural(name: str, singular: str) -> str | None:
    """The plural of a group whose collection says more: `components` of platform_components."""
    start = name.rfind("_" + singular[:-1])
    return name[start + 1 :].replace("_", "-") if start > 0 else None


def _leave_clear_names(kinds: list[Kind]) -> None:
    """A plural or a short name counts only if it stands for nothing else."""
    taken = {name for kind in kinds for name in kind.full_names()}
    for kind in kinds:
        if kind.plural in taken:
            kind.plural = None
        elif kind.plural is not None:
            taken.add(kind.plural)
    for kind in kinds:
        if kind.short in taken:
            kind.short = None
        elif kind.short is not None:
            taken.add(kind.short)


# Where they come from


def from_server(server: Client, environment: Mapping[str, str]) -> Kinds:
    """What the server says, asked anew but sent only when it changed."""
    from flux_resourceset import client

    known, tag = _cached(environment, server.url)
    try:
        answer = server.get("/kinds", headers={"If-None-Match": tag} if tag else {})
    except client.Problem as problem:
        if problem.status != 404:
            raise
        raise failures.Failure(
            failures.NOT_FOUND, f"{server.url} does not serve operators; use the URL of a server with API_MODE=crud"
        ) from problem
    if answer.status == 304 and known is not None:
        return known
    data = answer.json()
    if not _understood(data):
        raise client.not_understood("these are no kinds")
    _cache(environment, server.url, {"etag": answer.headers.get("etag"), "kinds": data})
    return Kinds(data)


def from_cache(environment: Mapping[str, str], url: str) -> Kinds | None:
    """What the server said last, if it was ever asked."""
    return _cached(environment, url)[0]


def packaged() -> list[dict[str, Any]]:
    """The built-in kinds, described when the package was made: their own files take longer to read than help may take."""
    with open(os.path.join(os.path.dirname(__file__), "builtin_kinds.json"), encoding="utf-8") as stream:
        kinds: list[dict[str, Any]] = json.load(stream)
    return kinds


_MEMBERS: Mapping[str, Any] = {
    "kind": str, "description": str, "singular": str, "cluster_field": str | None, "endpoint": str | None, "patches": bool,
    "overrides": list, "reference": dict, "filters": list, "methods": dict, "schema": dict,
}  # fmt: skip


# As a kind file may have them. They become words of commands, parts of URLs and names of files: no other is taken from a server.
_NAMES = {
    "short": re.compile(r"[a-z][a-z0-9]*"),
    **dict.fromkeys(("kind", "singular", "cluster_field"), re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")),
    "endpoint": re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*"),
}


def _understood(data: Any) -> bool:
    """Whether it is what `GET /kinds` gives, and not some other JSON."""
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return False
    for item in data:
        if not all(name in item and isinstance(item[name], kind) for name, kind in _MEMBERS.items()):
            return False
        if not isinstance(item.get("short"), str | None):
            return False
        if not all(item.get(name) is None or syntax.fullmatch(item[name]) for name, syntax in _NAMES.items()):
            return False
        properties = item["schema"].get("properties")
        if not isinstance(properties, dict) or not isinstance(properties.get("id"), dict):
            return False
    return any(item["kind"] == CLUSTERS for item in data)


# The cache: never needed, so no failure of it is told


def _cache_file(environment: Mapping[str, str], url: str) -> str | None:
    folder = environment.get("XDG_CACHE_HOME")
    if not folder and (home := windows.home(environment)):
        folder = os.path.join(home, ".cache")
    if not folder:
        return None
    plain = "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in url)[-120:]
    return os.path.join(folder, "flux-resourceset", f"kinds-{plain}.json")


def _cached(environment: Mapping[str, str], url: str) -> tuple[Kinds | None, str | None]:
    """The kinds of a server and their ETag, as it told this version of the program."""
    try:
        with open(_cache_file(environment, url) or "", encoding="utf-8") as stream:
            content = json.load(stream)
        if (content["url"], content["client"]) == (url, __version__) and _understood(content["kinds"]):
            return Kinds(content["kinds"]), content["etag"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass  # it is made anew
    return None, None


def _cache(environment: Mapping[str, str], url: str, content: dict[str, Any]) -> None:
    file = _cache_file(environment, url)
    if file is None:
        return
    text = json.dumps({"url": url, "client": __version__, **content}, separators=(",", ":"))
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        atomic_files.replace(file, text.encode(), durable=False)
    except OSError:
        pass
