"""Schemathesis makes up requests from the document, good and bad, and holds a live server's answers against it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import live
from flux_resourceset import openapi
from flux_resourceset.kinds import kind_files
from openapi.documents import operations

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parent
TAGS = {"clusters": "--include-tag", "everything else": "--exclude-tag"}  # halves, so that two workers share the time


def seed(directory: Path) -> Path:
    """The demo data, what the examples of the document name, and clusters enough to outlast deletions."""
    data = json.loads((live.ROOT / "data" / "seed.json").read_text())
    data["namespaces"].append({"id": "team-sandbox"})
    first = data["clusters"][0]
    first["namespaces"].append({"id": "team-sandbox"})
    data["clusters"] += [{**first, "id": f"more-{n}", "cluster_dns": f"more-{n}.example.com"} for n in range(5)]
    path = directory / "seed.json"
    path.write_text(json.dumps(data))
    return path


def wanted(half: str) -> list[str]:
    """The operations that a half must have tried."""
    found = operations(openapi.document(kind_files.load(), writable=True))
    return [path for path, method, item in found if method != "head" and (item["tags"] == ["clusters"]) is (half == "clusters")]


@pytest.mark.parametrize("half", TAGS)
def test_schemathesis_finds_no_failure(half: str, tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(seed(tmp_path))) as server:
        run = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "schemathesis.toml"),
                "run", f"{server.url}/openapi.yaml", "--header", f"Authorization: Bearer {live.WRITE}",
                TAGS[half], "clusters", "--exclude-method", "HEAD",  # like GET, and test_answers.py asks for it
                "--max-examples", "2", "--seed", "1", "--no-color",
            ],
            env=os.environ | {"SCHEMATHESIS_HOOKS": str(HERE / "schemathesis_hooks.py")},
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout + run.stderr + server.log.read_text()[-2000:]
    tested = re.search(r"Tested: (\d+)", run.stdout)
    assert tested
    assert int(tested[1]) == len(wanted(half))
