"""What a ResourceSet does to a cluster when its objects change: create, change, prune. A directory stands for the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flux_resourceset import differences, render
from flux_resourceset.cli.cluster import manifest_files
from flux_resourceset.cli.cluster.manifest_files import Identity
from flux_resourceset.render import resourcesets

OWNER = f"resourceset.{resourcesets.GROUP}/name"
_LONGEST = 160  # characters of a value in a line about it: an entry of valuesFrom with usual names fits


MEANINGS = {"+": "created", "~": "updated", "-": "deleted", "=": "unchanged"}  # of the signs, and so their colours


class Change(NamedTuple):
    sign: str  # + created, ~ changed, - deleted, = kept although nobody wants it any more
    identity: Identity
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        _, kind, namespace, name = self.identity
        kept = " (kept: pruning is disabled on it)" if self.sign == "=" else ""
        return f"{kind} {namespace + '/' if namespace else ''}{name}{kept}"


class State:
    """The objects of a simulated cluster. The files are the truth; what was read or written last is held to see drift."""

    def __init__(self, root: Path) -> None:
        self._root = root
        with manifest_files.writing(root):
            self._objects = manifest_files.load(root)
            root.mkdir(parents=True, exist_ok=True)
        self._kept: set[Identity] = set()

    def apply(self, owner: str, wanted: Sequence[render.Manifest]) -> Iterator[Change]:
        """Make the objects of one ResourceSet what it wants, change by change; those of others are left alone."""
        targets = {resourcesets.identity(manifest): manifest for manifest in wanted}
        with manifest_files.writing(self._root):
            self._look(owner, targets)
            yield from self._put(targets)
            yield from self._prune(owner, targets)
        self._kept -= targets.keys()

    def _look(self, owner: str, targets: Mapping[Identity, render.Manifest]) -> None:
        """Somebody may have changed or removed files since."""
        for identity, last in list(self._objects.items()):
            if identity not in targets and _owner(last.manifest) != owner:
                continue
            now = manifest_files.reread(self._root, identity, last)
            if now is None:
                del self._objects[identity]
            else:
                self._objects[identity] = now

    def _put(self, targets: Mapping[Identity, render.Manifest]) -> Iterator[Change]:
        for identity, manifest in targets.items():
            before = self._objects.get(identity)
            fields = tuple(field_lines(before.manifest, manifest)) if before else ()
            if before and not fields:
                continue
            self._objects[identity] = manifest_files.write(self._root, manifest)
            yield Change("~" if before else "+", identity, fields)

    def _prune(self, owner: str, targets: Mapping[Identity, render.Manifest]) -> Iterator[Change]:
        for identity, (_, manifest) in list(self._objects.items()):
            if identity in targets or _owner(manifest) != owner:
                continue
            if is_kept(manifest):
                if identity not in self._kept:
                    self._kept.add(identity)
                    yield Change("=", identity)
                continue
            manifest_files.remove(self._root, identity)
            del self._objects[identity]
            yield Change("-", identity)


def is_kept(manifest: render.Manifest) -> bool:
    """Whether it stays when nobody wants it any more."""
    return resourcesets.annotation(manifest, resourcesets.PRUNE) == resourcesets.DISABLED


def _owner(manifest: render.Manifest) -> str | None:
    owner = (manifest["metadata"].get("labels") or {}).get(OWNER)
    return None if owner is None else str(owner)


# Fields


def field_lines(before: render.Manifest, after: render.Manifest) -> Iterator[str]:
    """A line for each field that differs: what it was and what it is."""
    for item in differences.of_manifests(before, after):
        place = _place(item.steps)
        if item.after is differences.ABSENT:
            yield f"{place}: {_shown(item.before)} → gone"
        elif item.before is differences.ABSENT:
            yield f"{place}: {_shown(item.after)} is new"
        else:
            old, new = _apart(json.dumps(item.before, ensure_ascii=False), json.dumps(item.after, ensure_ascii=False))
            yield f"{place}: {old} → {new}"


def _place(steps: differences.Steps) -> str:
    """As one would write it in a template: spec.values[0]."""
    return "".join(_inside(step) for step in steps).removeprefix(".")


def _inside(step: str | int) -> str:
    plain = isinstance(step, str) and step.replace("_", "").replace("-", "").isalnum()
    return f".{step}" if plain else f"[{json.dumps(step, ensure_ascii=False)}]"


def _shown(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _apart(before: str, after: str) -> tuple[str, str]:
    """Both cut to where they differ."""
    alike = next((place for place, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), 0)
    start = alike - _LONGEST // 3
    if start > 0 and max(len(before), len(after)) > _LONGEST:
        before, after = f"…{before[start:]}", f"…{after[start:]}"
    return _cut(before), _cut(after)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
