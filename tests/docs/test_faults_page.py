"""The tables of faults: every line has a test that is there, and no test of a fault is missing from them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import live

DOCS = live.ROOT / "docs"
TABLES = (DOCS / "faults.md", DOCS / "operating.md")
# tests of the tools that the others are made with, not of a fault
OF_TOOLS = {"test_checker", "test_proxy"}

_TEST = re.compile(r"\[(\w+)\]\((\.\./tests/[^)]+\.py)\)")


def rows(page: Path) -> list[str]:
    """The lines of the tables whose last column is for tests."""
    found: list[str] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        inside = line.endswith("| Test |") or (inside and line.startswith("|"))
        if inside and not line.endswith(("| Test |", "|---|")):
            found.append(line)
    return found


ROWS = [pytest.param(page, row, id=row.split("|")[1].strip()[:60]) for page in TABLES for row in rows(page)]


@pytest.mark.parametrize(("page", "row"), ROWS)
def test_a_fault_has_tests_that_are_there(page: Path, row: str) -> None:
    cell = row.rstrip("|").rpartition("|")[2]
    linked = _TEST.findall(cell)
    assert linked, f"{row} names no test"
    for name, target in linked:
        path = (page.parent / target).resolve()
        assert path.stem == name
        assert path.exists(), f"{target} is not there"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert any(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_") for node in tree.body
        )


def test_every_line_fills_every_column_of_its_table() -> None:
    columns = 0
    for line in (DOCS / "faults.md").read_text(encoding="utf-8").splitlines():
        if line.endswith("| Test |"):
            columns = line.count("|")
        elif line.startswith("|"):
            assert line.count("|") == columns, line
            assert all(cell.strip() for cell in line.strip("|").split("|")), line


def test_every_test_of_a_fault_is_in_a_table() -> None:
    linked = {name for page in TABLES for row in rows(page) for name, _ in _TEST.findall(row)}
    there = {path.stem for path in (live.ROOT / "tests" / "faults").glob("test_*.py")}
    assert there - linked - OF_TOOLS == set()
