"""The kinds as commands see them: as the server tells them, as it told them last, or as the package holds them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import __version__
from flux_resourceset.cli import failures

if TYPE_CHECKING:
    from flux_resourceset.client import Client

CLUSTERS = "clusters"

Schema = dict[str, Any]


class Kind:
    """One kind, as `GET /kinds` describes it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.name: str = data["kind"]
        self.description: str = data["description"]
        self.singular: str = data["singular"]
        self.field: str | None = data["cluster_field"]
        self.endpoint: str | None = data["endpoint"]
        self.patches: bool = data["patches"]
        self.overrides: list[str] = data["overrides"]
        self.reference: Schema = data["reference"]
        self.filters: list[str] = data["filters"]
        self.methods: dict[str, list[str]] = data["methods"]
        self.schema: Schema = data["schema"]

    @property
    def group(self) -> str:
        return self.singular.replace("_", "-")

    @property
    def properties(self) -> Schema:
        found: Schema = self.schema["properties"]
        return found

    @property
    def required(self) -> list[str]:
        found: list[str] = self.schema.get("required", [])
        return found

    @property
    def has_labels(self) -> bool:
        return "labels" in self.properties

    @property
    def switched(self) -> bool:
        """Whether clusters can switch it off."""
        return self.field is not None and self.reference.get("enabled", {}).get("type") == "boolean"

    def names(self) -> tuple[str, ...]:
        """Every word that people may use for it."""
        return self.group, self.singular, self.name, self.name.replace("_", "-")


class Kinds:
    def __init__(self, data: list[dict[str, Any]]) -> None:
        self._kinds = [Kind(item) for item in data]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    @property
    def clusters(self) -> Kind:
        return next(kind for kind in self if kind.name == CLUSTERS)

    def find(self, word: str) -> Kind | None:
        return next((kind for kind in self if word in kind.names()), None)


# Where they come from


def from_server(server: Client, environment: Mapping[str, str]) -> Kinds:
    """What the server says, asked anew but sent only when it changed."""
    from flux_resourceset import client

    known = _read(_cache_file(environment, server.url))
    usable = known if known.get("url") == server.url and known.get("client") == __version__ else {}
    headers = {"If-None-Match": usable["etag"]} if usable.get("etag") else {}
    try:
        answer = server.get("/kinds", headers=headers)
    except client.Problem as problem:
        if problem.status != 404:
            raise
        raise failures.Failure(
            failures.NOT_FOUND, f"{server.url} does not serve operators; use the URL of a server with API_MODE=crud"
        ) from problem
    if answer.status == 304:
        return Kinds(usable["kinds"])
    data = answer.json()
    found = Kinds(data)
    _write(
        _cache_file(environment, server.url),
        {"url": server.url, "client": __version__, "etag": answer.headers.get("etag"), "kinds": data},
    )
    return found


def offline(environment: Mapping[str, str], url: str | None) -> Kinds:
    """What the server said last, or else the built-in kinds; for help and completion, which ask nobody."""
    known = _read(_cache_file(environment, url)) if url else {}
    if known.get("url") == url and known.get("client") == __version__:
        return Kinds(known["kinds"])
    return builtin(environment)


def builtin(environment: Mapping[str, str]) -> Kinds:
    """The kinds of the package; reading YAML is slow, so they are kept as JSON."""
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "resources")
    state = sorted([entry.name, entry.stat().st_mtime_ns, entry.stat().st_size] for entry in os.scandir(folder))
    file = _cache_file(environment, "built-in")
    known = _read(file)
    if known.get("version") == __version__ and known.get("state") == state:
        return Kinds(known["kinds"])
    data = packaged()
    _write(file, {"version": __version__, "state": state, "kinds": data})
    return Kinds(data)


def packaged() -> list[dict[str, Any]]:
    from flux_resourceset import kinds

    return [kind.described() for kind in kinds.load()]


# The cache: never needed, so no failure of it is told


def _cache_file(environment: Mapping[str, str], name: str) -> str | None:
    folder = environment.get("XDG_CACHE_HOME")
    if not folder and environment.get("HOME"):
        folder = os.path.join(environment["HOME"], ".cache")
    if not folder:
        return None
    plain = "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in name)[-120:]
    return os.path.join(folder, "flux-resourceset", f"kinds-{plain}.json")


def _read(file: str | None) -> dict[str, Any]:
    try:
        with open(file or "", encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("kinds"), list) else {}


def _write(file: str | None, content: dict[str, Any]) -> None:
    if file is None:
        return
    draft = f"{file}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        with open(draft, "w", encoding="utf-8") as stream:
            json.dump(content, stream, separators=(",", ":"))
        os.replace(draft, file)  # others may be reading it
    except OSError:
        pass
