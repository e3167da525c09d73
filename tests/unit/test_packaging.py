"""What is installed: pyproject.toml, the requirement files and the programs agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import live
import zygote
from flux_resourceset import __main__ as program

PROJECT: dict[str, Any] = tomllib.loads((live.ROOT / "pyproject.toml").read_text())["project"]
SERVER = PROJECT["optional-dependencies"]["server"]
POSTGRES = PROJECT["optional-dependencies"]["postgres"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=;[]", line)[0].strip().lower().replace("-", "_") for line in requirements}


def test_the_command_line_asks_for_nothing_but_words_yaml_names_and_schemas() -> None:
    assert names(PROJECT["dependencies"]) == {"click", "pyyaml", "text_unidecode", "jsonschema_rs"}


def test_the_pinned_requirements_are_what_the_project_asks_for() -> None:
    lines = (live.ROOT / "requirements" / "runtime.in").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith(("#", "flit_core"))]
    assert sorted(wanted) == sorted([*PROJECT["dependencies"], *SERVER, *POSTGRES])
    pinned = (live.ROOT / "requirements" / "runtime.txt").read_text()
    for name in names(wanted):
        assert re.search(rf"^{name.replace('_', '[-_]')}==", pinned, re.MULTILINE | re.IGNORECASE), f"{name} is not pinned"


def test_the_requirement_files_name_no_index() -> None:
    for file in (live.ROOT / "requirements").iterdir():
        assert "://" not in file.read_text(), file


def test_the_program_knows_what_the_extra_brings() -> None:
    assert names(SERVER) == set(program.EXTRA)


def test_every_python_of_the_workflow_is_a_classifier() -> None:
    workflow = (live.ROOT / ".github" / "workflows" / "ci.yml").read_text()
    matrix = re.findall(r"python: \[(.*)\]", workflow)[0]
    told = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert re.findall(r"3\.\d+", matrix) == told == ["3.11", "3.12", "3.13", "3.14"]


@pytest.mark.parametrize("name", ["Homepage", "Documentation", "Source", "Issues", "Changelog"])
def test_the_project_has_addresses(name: str) -> None:
    assert PROJECT["urls"][name].startswith("https://")


def run(missing: str, tmp_path: Path, platform: str = sys.platform) -> subprocess.CompletedProcess[str]:
    """The program of the server where a module is not installed."""
    script = (
        f"import sys; sys.platform = {platform!r}; sys.modules[{missing!r}] = None; "
        "from flux_resourceset import __main__; sys.exit(__main__.main())"
    )
    return subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=zygote.MEASURED, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("missing", ["uvicorn", "msgspec", "httptools"])
def test_the_server_without_its_extra_says_what_to_install(missing: str, tmp_path: Path) -> None:
    done = run(missing, tmp_path)
    line = f"flux-resourceset: {missing} is not installed; the server needs: pip install 'flux-resourceset[server]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_the_server_says_that_it_is_not_for_windows(tmp_path: Path) -> None:
    done = run("fcntl", tmp_path, "win32")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert "does not run on Windows" in done.stderr


def test_any_other_module_that_is_missing_is_a_defect(tmp_path: Path) -> None:
    done = run("flux_resourceset.server", tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
