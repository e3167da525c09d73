"""The bootstrap bundle of a cluster, as the package carries it: the same files as deploy/cluster.

deploy/cluster is where they are edited and what kustomize reads; `copy` brings them here (make generate), and a test
keeps both equal.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from flux_resourceset.render import dialect

IDENTITY = "cluster-identity.yaml"
TOKEN = "internal-api-token.yaml"  # noqa: S105  # the name of a file
_PROVIDER, _RESOURCESET = "provider.yaml", "resourceset.yaml"


@functools.cache
def files() -> Mapping[str, str]:
    """Text by path below deploy/cluster."""
    return chosen(resources.files("flux_resourceset") / "bundle")


def chosen(root: Traversable) -> dict[str, str]:
    """What a cluster is given: who it is, its token, and the views; no overlays, samples or kustomizations."""
    files = {name: (root / name).read_text(encoding="utf-8") for name in (IDENTITY, TOKEN)}
    for view in sorted((root / "views").iterdir(), key=lambda each: each.name):
        if view.is_dir():
            for name in (_PROVIDER, _RESOURCESET):
                files[f"views/{view.name}/{name}"] = (view / name).read_text(encoding="utf-8")
    return files


def provider(view: str) -> str | None:
    return files().get(f"views/{view}/{_PROVIDER}")


def resourceset(view: str) -> str | None:
    return files().get(f"views/{view}/{_RESOURCESET}")


def guards(view: str) -> list[dict[str, Any]]:
    """What the ResourceSet of a view has to wait for, as the shipped ones do."""
    pattern, _ = any_provider()
    ((_, shipped),) = dialect.documents(files()[f"views/{pattern}/{_RESOURCESET}"])
    return [{**each, "name": view if each["name"] == pattern else each["name"]} for each in shipped["spec"]["dependsOn"]]


def any_provider() -> tuple[str, str]:
    """A view that ships and its provider: the pattern for views that bring none."""
    path = next(path for path in files() if path.endswith(_PROVIDER))
    return path.split("/")[1], files()[path]
