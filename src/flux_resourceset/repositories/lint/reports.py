"""The findings of one file, collected while its manifests are compared with what they must say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flux_resourceset.repositories import findings, manifests, trees
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.manifests import Manifest

YAML, LAYOUT, MANIFEST = "yaml", "layout", "manifest"
_LONGEST = 200  # characters of a value that are shown

Step = str | int


class Wanted(NamedTuple):
    """An object that a file must hold; what is None may be anything."""

    kind: str
    version: str
    name: str | None
    namespace: str | None


class Report:
    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[Finding] = []

    def add(self, rule: str, line: int | None, message: str) -> None:
        self.found.append(findings.error(rule, self.path, line, message))

    def documents(self, body: bytes) -> list[Manifest] | None:
        """None where it is no strict YAML."""
        try:
            return list(manifests.of_bytes(body))
        except manifests.Unreadable as exc:
            self.add(YAML, exc.line, exc.reason)
            return None

    def expect(self, manifest: Manifest, steps: Sequence[Step], wanted: Any, rule: str = MANIFEST) -> bool:
        found = manifest.at(*steps)
        if type(found) is type(wanted) and found == wanted:
            return True
        self.add(rule, manifest.line(*steps), f"{manifest.kind}: {dotted(steps)} must be {shown(wanted)}{_instead(found)}")
        return False

    def forbid(self, manifest: Manifest, steps: Sequence[Step], why: str) -> None:
        if manifest.at(*steps) is not None:
            self.add(MANIFEST, manifest.line(*steps), f"{manifest.kind}: {dotted(steps)} {why}")

    def sole(self, documents: Sequence[Manifest], wanted: Wanted) -> Manifest | None:
        """The one object of a kind, compared with what it must be; None if there is none, or several."""
        found = [manifest for manifest in documents if manifest.kind == wanted.kind]
        if len(found) != 1:
            line = found[1].line("kind") if found else None
            self.add(MANIFEST, line, f"must hold one {_named(wanted)}, and holds {len(found) or 'none'}")
            return None
        self.compare(found[0], wanted)
        return found[0]

    def compare(self, manifest: Manifest, wanted: Wanted) -> None:
        self.expect(manifest, ("apiVersion",), wanted.version)
        if wanted.name is not None:
            self.expect(manifest, ("metadata", "name"), wanted.name)
        if wanted.namespace is not None:
            self.expect(manifest, ("metadata", "namespace"), wanted.namespace)

    def refuse_others(self, documents: Sequence[Manifest], *kinds: str) -> None:
        for manifest in documents:
            if manifest.kind not in kinds:
                what = f"a {manifest.kind}" if manifest.kind else "something that is no object"
                self.add(MANIFEST, manifest.line("kind"), f"holds {what}; only {', '.join(kinds)} belongs into this file")
            if manifests.items(manifest.data) is not None:
                message = f"{manifest.kind}: Flux would apply its items instead of it; leave them out"
                self.add(MANIFEST, manifest.line("items"), message)


def body(tree: trees.Tree, path: str, report: Report) -> bytes | None:
    """The content of a file; None where there is none that is read. Raises trees.Unread."""
    try:
        return trees.checked(tree, path)
    except trees.TooLarge:
        report.add(YAML, None, f"has more than {trees.LARGEST} bytes, which no cluster takes; split it")
        return None


def dotted(steps: Sequence[Step]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) and value else repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _instead(found: Any) -> str:
    return "; it is missing" if found is None else f", and is {shown(found)}"


def _named(wanted: Wanted) -> str:
    return f"{wanted.kind} {wanted.name}" if wanted.name is not None else wanted.kind
