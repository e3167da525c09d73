"""What lists modules, contracts of the import linter and the map of cli/, must not miss one that came later."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import live
from flux_resourceset import cli

PACKAGE = live.ROOT / "src" / "flux_resourceset"
KNOWN_TO_STORES = {"store", "changes", "errors", "atomic_files"}


def contract(beginning: str) -> dict[str, Any]:
    pyproject = tomllib.loads((live.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = (each for each in pyproject["tool"]["importlinter"]["contracts"] if each["name"].startswith(beginning))
    assert isinstance(found, dict)
    return found


def test_a_store_is_forbidden_every_module_that_it_does_not_need() -> None:
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    forbidden = {name.removeprefix("flux_resourceset.") for name in contract("A store knows")["forbidden_modules"]}
    assert forbidden == modules - KNOWN_TO_STORES - {"__init__"}


def test_every_module_of_routes_is_forbidden_to_decide_what_runs_in_threads() -> None:
    sources = {name.removeprefix("flux_resourceset.http.") for name in contract("No route decides")["source_modules"]}
    decide = {"__init__", "bodies", "long_answers", "request_threads"}
    wires = {"listening", "metrics", "ordinary", "problems", "unread", "workers"}  # serve no route
    assert sources == {path.stem for path in (PACKAGE / "http").glob("*.py")} - decide - wires


def test_the_map_of_the_command_line_names_everything_in_it() -> None:
    entries = [path for path in (PACKAGE / "cli").iterdir() if path.name not in ("__init__.py", "__pycache__")]
    named = re.findall(r"^(\w+/?)  +\S", cli.__doc__ or "", re.MULTILINE)
    assert sorted(named) == sorted(f"{path.name}/" if path.is_dir() else path.stem for path in entries)
