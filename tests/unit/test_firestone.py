"""Firestone itself accepts our kind files, and its generator makes an API of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from firestone_lib import resource  # type: ignore[import-untyped]  # it has no types

from flux_resourceset.kinds import kind_files
from unit import samples

FILES = {**kind_files.builtin_files(), **{path.name: path.read_text() for path in samples.KINDS_DIR.glob("*.yaml")}}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Firestone leaves its own schema file open
@pytest.mark.parametrize("name", FILES)
def test_firestone_accepts_the_kind_file(name: str) -> None:
    resource.validate(yaml.safe_load(FILES[name]))


@pytest.mark.long
def test_firestone_generates_an_api_from_the_kind_files(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    files = ",".join(str(tmp_path / name) for name in FILES)
    generate = ["generate", "-r", files, "-t", "fleet", "-d", "fleet", "-v", "1.0", "openapi"]
    command = [sys.executable, "-c", "from firestone.__main__ import main; main()", *generate]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    paths = yaml.safe_load(run.stdout)["paths"]
    named = [yaml.safe_load(text)["kind"] for text in FILES.values()]
    assert {f"/{name}" for name in named} | {f"/{name}/{{id}}" for name in named} <= set(paths)
