"""Clients that common generators make from the document: each lists, creates, batches, plans and polls at a live server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import live
from flux_resourceset import openapi
from openapi.documents import extended

pytestmark = pytest.mark.thorough

GENERATORS = Path(__file__).parent / "generators"
STORY = {
    "listed": ["demo-cluster-01"],
    "created": "gen-01.example.com",
    "dry run": 1,
    "batch": ["create", "update"],
    "plan": 1,
    "polled": [["podinfo", "6.0.0"]],
    "refused": "not-found",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[live.Server]:
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server:
        (tmp_path / "openapi.yaml").write_bytes(server.client().get("/openapi.yaml").content)
        yield server


def run(words: Sequence[str | Path], directory: Path, **more: str) -> str:
    done = subprocess.run(words, cwd=directory, env={**os.environ, **more}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def told(words: Sequence[str | Path], directory: Path, server: live.Server) -> Mapping[str, object]:
    printed = run(words, directory, FLUX_API_URL=server.url, FLUX_API_WRITE_TOKEN=live.WRITE)
    story: Mapping[str, object] = json.loads(printed)
    return story


def needed(*programs: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        # npm and Go come from no package registry of Python; the generator for Python is tested everywhere
        pytest.skip(f"{' and '.join(missing)} not found on the PATH: this generator needs it")


def copied(name: str, directory: Path) -> Path:
    return Path(shutil.copytree(GENERATORS / name, directory / name))


def python_client(document: Path, directory: Path) -> str:
    """What the generator says; every model that it cannot make is a warning, and what it made is in `generated`."""
    made: list[str | Path] = [sys.executable, "-m", "openapi_python_client", "generate", "--path", document, "--meta", "none"]
    beside = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # where ruff is, which shapes the code
    command = [*made, "--output-path", directory / "generated"]
    done = subprocess.run(command, cwd=directory, env={**os.environ, "COLUMNS": "500", **beside}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_client_of_openapi_python_client_works(server: live.Server, tmp_path: Path) -> None:
    place = copied("python", tmp_path)
    said = python_client(tmp_path / "openapi.yaml", place)
    warnings = [line for line in said.splitlines() if line.startswith(("WARNING", "Unable", "ERROR"))]
    assert warnings == ["WARNING parsing GET /openapi.yaml within service."]  # YAML, which it has no type for
    assert told([sys.executable, "story.py"], place, server) == STORY


def test_openapi_python_client_takes_the_kinds_of_operators(tmp_path: Path) -> None:
    for name, writable in (("crud", True), ("read-only", False)):
        place = tmp_path / name
        place.mkdir()
        (place / "openapi.yaml").write_bytes(openapi.text(extended(tmp_path / "kinds"), writable=writable))
        said = python_client(place / "openapi.yaml", place)
        assert "Unable" not in said
        assert said.count("WARNING") == 1  # of /openapi.yaml
        assert (place / "generated" / "models" / "database_input.py").exists()


def test_a_client_of_openapi_typescript_works(server: live.Server, tmp_path: Path) -> None:
    """It is compiled by TypeScript in its strict mode, so the types are looked at as well."""
    needed("npm", "node")
    place = copied("typescript", tmp_path)
    run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], place)
    tools = place / "node_modules" / ".bin"
    # without the option, what has a default would have to be sent
    words = ["--default-non-nullable", "false", "--output", "generated.ts"]
    run([tools / "openapi-typescript", tmp_path / "openapi.yaml", *words], place)
    run([tools / "tsc", "--project", "."], place)
    assert told(["node", "story.js"], place, server) == STORY


def test_a_client_of_oapi_codegen_works(server: live.Server, tmp_path: Path) -> None:
    needed("go")
    place = copied("go", tmp_path)
    (place / "generated").mkdir()
    generate = ["go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "generated", "-o", "generated/client.go"]
    run([*generate, tmp_path / "openapi.yaml"], place, GOFLAGS="-mod=readonly")
    run(["go", "build", "-o", "story", "."], place, GOFLAGS="-mod=readonly")
    assert told([place / "story"], place, server) == STORY
