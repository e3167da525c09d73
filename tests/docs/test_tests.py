"""The tests themselves: every one asserts something."""

from __future__ import annotations

import ast
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live

TESTS = live.ROOT / "tests"
Function = ast.FunctionDef | ast.AsyncFunctionDef

# tests that prove something without an assertion, and how
EXPLAINED = {"unit/test_firestone.py::test_firestone_accepts_the_kind_file": "Firestone's validate() raises what is wrong"}

# what is called on an object of another library, though something of the suite has the same name
BORROWED = {name for each in (str, dict, Path, httpx.Client, sqlite3.Connection, threading.Thread) for name in dir(each)}


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def asserts(function: Function, asserting: set[str]) -> bool:
    """Whether it asserts, or calls something of the suite that does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call) and called(node) in asserting:
            return True
    return False


def called(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Name("pytest"), attr=name):
            return f"pytest.{name}"
        case ast.Attribute(attr=name):
            return "" if name in BORROWED else name
        case ast.Name(id=name):
            return name
    return ""


def asserting_functions(trees: list[ast.Module]) -> set[str]:
    """The names of functions of the suite that assert, also by calling others that do."""
    every = [function for tree in trees for function in functions(tree)]
    found = {"pytest.raises", "pytest.fail", "pytest.warns"}
    while more := {each.name for each in every if each.name not in found and asserts(each, found)}:
        found |= more
    return found


def silent(trees: dict[str, ast.Module]) -> list[str]:
    asserting = asserting_functions(list(trees.values()))
    return [
        f"{name}::{function.name}"
        for name, tree in trees.items()
        for function in functions(tree)
        if function.name.startswith("test_") and not asserts(function, asserting)
    ]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_every_test_asserts_something() -> None:
    trees = {path.relative_to(TESTS).as_posix(): parsed(path) for path in sorted(TESTS.rglob("*.py"))}
    assert len(trees) > 100
    assert sorted(set(silent(trees)) ^ EXPLAINED.keys()) == []


@pytest.mark.parametrize(
    ("body", "says_something"),
    [
        ("assert 1", True),
        ("with pytest.raises(ValueError): 1", True),
        ("check(1)", True),
        ("x.check_all(1)", True),
        ("pass", False),
        ("print(1)", False),
        ("raises(1)", False),
        ("x.get(1)", False),
        ("get(1)", True),
    ],
)
def test_a_test_without_an_assertion_is_noticed(body: str, says_something: bool) -> None:
    suite = "def check(x):\n    assert x\ndef get(x):\n    assert x\nclass A:\n    def check_all(self, x):\n        check(x)\n"
    source = f"{suite}def test_a():\n    {body}\n"
    assert silent({"a.py": ast.parse(source)}) == ([] if says_something else ["a.py::test_a"])
