"""Manifests as files of a directory: a path for each object, and the way back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from flux_resourceset import atomic_files, render
from flux_resourceset.cli import failures, windows
from flux_resourceset.render import dialect, resourcesets

if TYPE_CHECKING:
    from flux_resourceset.cli.output.printing import Output

Identity = tuple[str, str, str, str]

CLUSTER_WIDE = "cluster-wide"
_DEPTH = 3  # parts of the path of an object
_NO_MANIFEST = (ValueError, LookupError, TypeError, AttributeError, render.TemplateError)


class Stored(NamedTuple):
    """An object, and the text that its file had when it was last read or written."""

    text: str
    manifest: render.Manifest


def path(identity: Identity) -> str:
    """namespace/kind.group/name.yaml, as kubectl names things."""
    group, kind, namespace, name = identity
    resource = f"{kind}.{group}" if group else kind
    return f"{plain(namespace or CLUSTER_WIDE)}/{plain(resource.lower())}/{plain(name)}.yaml"


def plain(text: str) -> str:
    """One part of a path, whatever the text holds."""
    safe = quote(text, safe=windows.SAFE_IN_NAMES)
    if windows.is_device(safe):
        return f"%{ord(safe[0]):02X}{safe[1:]}"
    return safe.replace(".", "%2E") if not safe.strip(".") else safe


def name(identity: Identity) -> str:
    """kind.group/name, as -o name of kubectl."""
    group, kind, _, own = identity
    return f"{kind.lower()}.{group}/{own}" if group else f"{kind.lower()}/{own}"


def show(output: Output, form: str | None, objects: list[render.Manifest]) -> None:
    """Printed: as YAML, as a List of Kubernetes, which kubectl takes as well, or by their names."""
    if form == "json":
        output.json({"apiVersion": "v1", "kind": "List", "items": objects})
    elif form == "name":
        for manifest in objects:
            output.line(name(resourcesets.identity(manifest)))
    else:
        output.raw(dialect.presented(objects).encode())


@contextlib.contextmanager
def writing(folder: Path | str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise failures.usage(f"{folder} cannot be written: {exc.strerror or exc}") from exc


def load(root: Path) -> dict[Identity, Stored]:
    """The objects of a directory that was made here; anything else in it is refused."""
    files = [file for file in sorted(root.rglob("*")) if not file.is_dir()] if root.is_dir() else []
    drafts = {file for file in files if atomic_files.is_draft(file.name) and len(file.relative_to(root).parts) == _DEPTH}
    objects = {}
    for file in files:
        if file in drafts:
            continue
        try:
            stored = _stored(file.read_text(encoding="utf-8"))
            identity = resourcesets.identity(stored.manifest)
            if file != root / path(identity):
                raise ValueError(file)
        except (OSError, *_NO_MANIFEST) as exc:
            raise failures.usage(f"{file} was not made here; choose an empty directory, or one that was") from exc
        objects[identity] = stored
    for draft in drafts:  # not before everything else has proved to be ours
        draft.unlink()
    return objects


def reread(root: Path, identity: Identity, last: Stored) -> Stored | None:
    """An object as its file has it now; None if there is no such object any more."""
    try:
        text = (root / path(identity)).read_text(encoding="utf-8")
        if text == last.text:
            return last
        stored = _stored(text)
        return stored if resourcesets.identity(stored.manifest) == identity else None
    except (OSError, *_NO_MANIFEST):
        return None


def _stored(text: str) -> Stored:
    (manifest,) = [document for _, document in dialect.documents(text)]
    for name in ("labels", "annotations"):
        if not isinstance(manifest["metadata"].get(name) or {}, dict):
            raise TypeError(name)
    return Stored(text, manifest)


def write(root: Path, manifest: render.Manifest) -> Stored:
    """Whoever looks meanwhile sees the old file or the new one."""
    file = root / path(resourcesets.identity(manifest))
    file.parent.mkdir(parents=True, exist_ok=True)
    text = dialect.presented([manifest])
    atomic_files.replace(file, text.encode(), durable=False, mode=atomic_files.AS_USUAL)
    return Stored(text, manifest)


def remove(root: Path, identity: Identity) -> None:
    file = root / path(identity)
    file.unlink(missing_ok=True)
    for folder in (file.parent, file.parent.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
