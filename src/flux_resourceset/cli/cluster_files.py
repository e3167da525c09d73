"""Manifests as files of a directory: a path for each object, and the way back."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from flux_resourceset import render
from flux_resourceset.cli import failures
from flux_resourceset.render import dialect, resourcesets

Identity = tuple[str, str, str, str]

CLUSTER_WIDE = "cluster-wide"


def path(identity: Identity) -> str:
    """namespace/kind.group/name.yaml, as kubectl names things."""
    group, kind, namespace, name = identity
    resource = f"{kind}.{group}" if group else kind
    return f"{plain(namespace or CLUSTER_WIDE)}/{plain(resource.lower())}/{plain(name)}.yaml"


def plain(text: str) -> str:
    """One part of a path, whatever the text holds."""
    safe = quote(text, safe=":+@")
    return safe.replace(".", "%2E") if not safe.strip(".") else safe


def load(root: Path) -> dict[Identity, render.Manifest]:
    """The objects of a directory that was made here; anything else in it is refused."""
    found = {}
    for file in sorted(root.rglob("*")) if root.is_dir() else ():
        if file.is_dir():
            continue
        try:
            (manifest,) = [document for _, document in dialect.documents(file.read_text(encoding="utf-8"))]
            identity = resourcesets.identity(manifest)
            if file != root / path(identity):
                raise ValueError(file)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, render.TemplateError) as exc:
            raise failures.usage(f"{file} was not made here; choose an empty directory, or one that was") from exc
        found[identity] = manifest
    return found


def write(root: Path, manifest: render.Manifest) -> None:
    """Whoever looks meanwhile sees the old file or the new one."""
    file = root / path(resourcesets.identity(manifest))
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(dialect.presented([manifest]), encoding="utf-8")
    draft.replace(file)


def remove(root: Path, identity: Identity) -> None:
    file = root / path(identity)
    file.unlink(missing_ok=True)
    for folder in (file.parent, file.parent.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
