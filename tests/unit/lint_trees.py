"""Repositories in memory, as `fleet init` makes them, with something changed; and what lint finds in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flux_resourceset.repositories import blueprints, findings, policy, scaffold, trees
from flux_resourceset.repositories.blueprints import Blueprint
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import blueprint_files, fleet

CHARTS = "https://charts.acme.example"
A, B = scaffold.repositories("acme", ("dev", "staging", "prod"), "github", CHARTS).values()
APP = "apps/standard-service"

DEV, STAGING, PROD = (f"{name}/{name}-use1-01" for name in ("dev", "staging", "prod"))
TENANT = f"{DEV}/tenants/payment-app"
INPUT, NAMESPACE, SECRETS, SYNC = (f"{TENANT}/{name}.yaml" for name in ("input", "namespace", "secrets", "sync"))
PIN, FLUX, INSTANCE = f"{DEV}/flux/blueprints.yaml", f"{DEV}/flux/sync.yaml", f"{DEV}/flux-instance.yaml"
ROLE = f"{DEV}/base/tenant-role.yaml"
DIGEST = "sha256:" + "ab" * 32
AWS, HUB, LAB = "AKIA" + "ABCDEFGH23456789", "ghp_" + "a1" * 18, "glpat-" + "x" * 20
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhY21lIn0.c2lnbmF0dXJl"
KEY = "-----BEGIN " + "RSA PRIVATE KEY-----"

Files = dict[str, str]


class Releases:
    """Tags of the blueprints, each with its files."""

    def __init__(self, **tags: Mapping[str, str]) -> None:
        self._trees = {tag.replace("_", "."): tree(files) for tag, files in tags.items()}

    def release(self, tag: str) -> trees.Tree | None:
        return self._trees.get(tag)

    def blueprint(self, name: str, tag: str) -> Blueprint | None:
        return blueprints.of_tree(self._trees[tag], name)


def tree(files: Mapping[str, str | bytes], links: Iterable[str] = ()) -> trees.Files:
    bodies = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return trees.Files(bodies, frozenset(links))


def with_edit(files: Mapping[str, str], path: str, old: str, new: str) -> Files:
    assert files[path].count(old) >= 1, (path, old)
    return {**files, path: files[path].replace(old, new, 1)}


def with_added(files: Mapping[str, str], path: str, text: str) -> Files:
    return {**files, path: files.get(path, "") + text}


def without(files: Mapping[str, str], start: str) -> Files:
    return {path: text for path, text in files.items() if not path.startswith(start)}


def moved(files: Mapping[str, str], old: str, new: str) -> Files:
    """Everything below a folder in another one, with nothing else changed."""
    return {path.replace(old, new, 1) if path.startswith(old) else path: text for path, text in files.items()}


def copied(files: Mapping[str, str], start: str, *replaced: tuple[str, str]) -> Files:
    """A folder once more, with words replaced in paths and texts."""
    more = {}
    for path, text in files.items():
        if path.startswith(start):
            for old, new in replaced:
                path, text = path.replace(old, new), text.replace(old, new)
            more[path] = text
    return {**files, **more}


def lint(files: Mapping[str, str | bytes], links: Iterable[str] = (), releases: Releases | None = None) -> list[Finding]:
    found = tree(files, links)
    body = found.read(policy.FILE)
    assert body is not None
    return findings.ordered(fleet.lint(found, policy.read(body), releases or Releases(v1_0_0=A)))


def lint_blueprints(files: Mapping[str, str | bytes], links: Iterable[str] = ()) -> list[Finding]:
    return findings.ordered(blueprint_files.lint(tree(files, links)))


def line_of(text: str, part: str) -> int:
    """The line of the first occurrence."""
    return text[: text.index(part)].count("\n") + 1


def rules(files: Files, *links: str, releases: Releases | None = None) -> list[tuple[str, str]]:
    return [(finding.rule, finding.path) for finding in lint(files, links, releases)]
