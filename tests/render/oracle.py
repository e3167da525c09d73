"""The flux-operator CLI as the judge of our engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset.render import dialect

REQUIRED = "REQUIRE_FLUX_OPERATOR"  # set where the tools are built: then a missing judge is a failure, not a skip


def binary() -> Path | None:
    """Where tests/e2e/tools puts it, or the one on the PATH."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ["HOME"], ".cache")
    home = Path(os.environ.get("E2E_HOME") or os.path.join(cache, "flux-resourceset-e2e"))
    built = home / "bin" / "flux-operator-cli"
    found = shutil.which("flux-operator")
    return built if built.exists() else Path(found) if found else None


def required() -> Path:
    found = binary()
    if found is None:
        message = "the flux-operator CLI is not built (make e2e-tools) and not on the PATH"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)  # it takes Go to build; the gate requires it
    return found


def build(directory: Path, template: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The objects that Flux Operator makes; AssertionError with its words when it refuses."""
    (directory / "template.json").write_text(dialect.json_text(template), encoding="utf-8")
    (directory / "inputs.json").write_text(dialect.json_text(inputs), encoding="utf-8")
    files = ["-f", str(directory / "template.json"), "--inputs-from", str(directory / "inputs.json")]
    done = subprocess.run([str(required()), "build", "rset", *files], capture_output=True, text=True, timeout=120)
    if done.returncode and "no objects were generated" in done.stderr:
        return []
    assert done.returncode == 0, done.stderr
    return [document for _, document in dialect.documents(done.stdout)]


def resourceset(text: str, **spec: Any) -> dict[str, Any]:
    """A ResourceSet around a template."""
    return {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "ResourceSet",
        "metadata": {"name": "sample", "namespace": "flux-system"},
        "spec": {"inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "sample"}], "resourcesTemplate": text, **spec},
    }
