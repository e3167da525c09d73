"""The policy of a fleet, fleet.yaml: environments in the order of promotion, and who and what may change them."""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset.repositories import manifests, signatures

FILE = "fleet.yaml"
ANY = "any"  # the team that everybody is in who did not write the change
GIT, API = "git", "api"
TAKEN = ("docs", "keys", "terraform")  # directories beside those of environments

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:[0-9]{1,6}[smhd])+")


class Wrong(Exception):
    """A policy that cannot be used; a line for each thing that is wrong."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


class Environment(NamedTuple):
    name: str
    inputs: tuple[str, ...]  # who may hold them: git, api


class Cosign(NamedTuple):
    key: str | None  # a path in the repository
    identity: str | None
    issuer: str | None
    transparency_log: bool
    attestation: str | None  # the type of what must be attested


class ImageRule(NamedTuple):
    environment: str
    field: str
    same_as: str | None
    soak: int  # seconds
    cosign: Cosign | None


class Policy(NamedTuple):
    environments: tuple[Environment, ...]  # in the order of promotion
    checkout: str | None  # of the blueprints, from the root
    promoted: tuple[str, ...]
    images: tuple[ImageRule, ...]
    secret_path: str | None
    removed_tenants: int | None  # how many may go without being announced
    api_url: str | None
    api_secret: str
    teams: Mapping[str, Sequence[str]]
    people: Mapping[str, Sequence[str]]
    bots: Sequence[str]  # addresses of programs that write commits
    sources: Sequence[str] | None  # exact URLs; None if the policy does not list any, which allows none
    approvals: Sequence[Mapping[str, Any]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(environment.name for environment in self.environments)

    def environment(self, name: str) -> Environment | None:
        return next((each for each in self.environments if each.name == name), None)

    def before(self, name: str) -> str | None:
        """The environment from which values are promoted into this one."""
        place = self.names.index(name)
        return self.names[place - 1] if place else None


@functools.cache
def schema() -> dict[str, Any]:
    """The schema of fleet.yaml, as the package carries it."""
    text = importlib.resources.files(__package__).joinpath("fleet.schema.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def read(body: bytes) -> Policy:
    """Raises Wrong, also where the file is no strict YAML."""
    try:
        documents = manifests.of_bytes(body)
    except manifests.Unreadable as exc:
        raise Wrong(f"{FILE}:{exc.line or 1}: {exc.reason}") from exc
    if len(documents) != 1:
        raise Wrong(f"{FILE}: it must hold one document")
    document = documents[0]
    violations = [
        f"{FILE}:{document.line(*violation.steps)}: {violation.text}"
        for violation in signatures.violations(schema(), document.data)
    ]
    if violations:
        raise Wrong(*violations)
    contradictions = [f"{FILE}:{document.line(*steps)}: {reason}" for steps, reason in _contradictions(document.data)]
    if contradictions:
        raise Wrong(*contradictions)
    return _policy(document.data)


def _policy(data: Mapping[str, Any]) -> Policy:
    api = data.get("api") or {}
    return Policy(
        tuple(Environment(each["name"], tuple(each.get("inputs") or (GIT, API))) for each in data["environments"]),
        (data.get("blueprints") or {}).get("checkout"),
        tuple((data.get("promote") or {}).get("fields") or ("image",)),
        tuple(map(_image_rule, data.get("images") or ())),
        (data.get("secrets") or {}).get("path"),
        (data.get("guards") or {}).get("removed_tenants"),
        api["url"].rstrip("/") if "url" in api else None,
        api.get("secret") or "fleet-api-token",
        data.get("teams") or {},
        data.get("people") or {},
        data.get("bots") or (),
        data.get("sources"),
        data.get("approvals") or (),
    )


def _image_rule(data: Mapping[str, Any]) -> ImageRule:
    cosign = data.get("cosign")
    asked = cosign and Cosign(
        cosign.get("key"),
        cosign.get("identity"),
        cosign.get("issuer"),
        cosign.get("transparency_log", True),
        cosign.get("attestation"),
    )
    return ImageRule(data["environment"], data.get("field", "image"), data.get("same_as"), seconds(data.get("soak")), asked)


def seconds(text: str | None) -> int:
    """A duration such as 90m, 1h or 2d12h; none is no time."""
    if text is None or not _DURATION.fullmatch(text):
        return 0
    return sum(int(part[:-1]) * _SECONDS[part[-1]] for part in re.findall(r"[0-9]+[smhd]", text))


def _contradictions(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What a schema cannot say."""
    names = [each["name"] for each in data["environments"]]
    for place, name in enumerate(names):
        if name in names[:place]:
            yield ("environments", place, "name"), f"there are two environments {name}"
        if name in TAKEN:
            yield ("environments", place, "name"), f"{name} is the name of another directory; choose another one"
    for place, rule in enumerate(data.get("images") or ()):
        yield from ((("images", place, step), reason) for step, reason in _contradictions_of_image(rule, names))
    known = {*(data.get("teams") or {}), ANY}
    for place, rule in enumerate(data.get("approvals") or ()):
        for team in rule["require"]:
            if team not in known:
                yield ("approvals", place, "require", team), f"team {team} is not in teams"
    owners = {email.strip().lower(): user for user, emails in (data.get("people") or {}).items() for email in emails}
    for place, email in enumerate(data.get("bots") or ()):
        if user := owners.get(email.strip().lower()):
            yield ("bots", place), f"{email} is an address of {user} in people; an address belongs to a person or to a bot"


def _contradictions_of_image(rule: Mapping[str, Any], environments: Sequence[str]) -> Iterator[tuple[str, str]]:
    for step in ("environment", "same_as"):
        if step in rule and rule[step] not in environments:
            yield step, f"{step} is {rule[step]}, which is no environment; there are {', '.join(environments)}"
    if rule.get("same_as") == rule["environment"]:
        yield "same_as", "same_as must be another environment"
    if "soak" in rule and "same_as" not in rule:
        yield "soak", "soak needs same_as, the environment where the image has to be for that long"
