"""What a ResourceSet does to a cluster when its objects change: create, change, prune. A directory stands for the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flux_resourceset import render
from flux_resourceset.cli import cluster_files
from flux_resourceset.cli.cluster_files import Identity
from flux_resourceset.render import resourcesets

OWNER = f"resourceset.{resourcesets.GROUP}/name"
_LONGEST = 72  # of a value in a line about it


class Change(NamedTuple):
    sign: str  # + created, ~ changed, - deleted, = kept although nobody wants it any more
    identity: Identity
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        _, kind, namespace, name = self.identity
        kept = " (kept: pruning is disabled on it)" if self.sign == "=" else ""
        return f"{kind} {namespace + '/' if namespace else ''}{name}{kept}"


class State:
    """The objects of a simulated cluster, held in memory and in files."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._objects = cluster_files.load(root)
        self._kept: set[Identity] = set()

    def apply(self, owner: str, wanted: Sequence[render.Manifest]) -> list[Change]:
        """Make the objects of one ResourceSet what it wants; those of others are left alone."""
        targets = {resourcesets.identity(manifest): manifest for manifest in wanted}
        changes = [*self._put(targets), *self._prune(owner, targets)]
        self._kept -= targets.keys()
        return changes

    def _put(self, targets: Mapping[Identity, render.Manifest]) -> Iterator[Change]:
        for identity, manifest in targets.items():
            before = self._objects.get(identity)
            if before == manifest:
                continue
            cluster_files.write(self._root, manifest)
            self._objects[identity] = manifest
            yield Change("+", identity) if before is None else Change("~", identity, tuple(differences(before, manifest)))

    def _prune(self, owner: str, targets: Mapping[Identity, render.Manifest]) -> Iterator[Change]:
        for identity, manifest in list(self._objects.items()):
            if identity in targets or _owner(manifest) != owner:
                continue
            if resourcesets.annotation(manifest, resourcesets.PRUNE) == resourcesets.DISABLED:
                if identity not in self._kept:
                    self._kept.add(identity)
                    yield Change("=", identity)
                continue
            cluster_files.remove(self._root, identity)
            del self._objects[identity]
            yield Change("-", identity)


def _owner(manifest: render.Manifest) -> str | None:
    found = (manifest["metadata"].get("labels") or {}).get(OWNER)
    return None if found is None else str(found)


# Fields


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """A line for each field that differs: what it was and what it is."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = _inside(where, key)
            if key not in after:
                yield f"{place}: {_shown(before[key])} → gone"
            elif key not in before:
                yield f"{place}: {_shown(after[key])} is new"
            else:
                yield from differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{where}[{position}]")
    elif before != after:
        yield f"{where}: {_shown(before)} → {_shown(after)}"


def _inside(where: str, key: str) -> str:
    if not key.replace("_", "").replace("-", "").isalnum():
        return f"{where}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{where}.{key}" if where else key


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
