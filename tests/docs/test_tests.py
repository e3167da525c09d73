"""The tests themselves: every one asserts something."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest

import live

pytestmark = pytest.mark.long

TESTS = live.ROOT / "tests"
Function = ast.FunctionDef | ast.AsyncFunctionDef

# How a test may assert without an `assert` of its own: it calls what is named so. Nothing else counts, whatever it does inside:
# that a server starts, or that a document can be stored, is where a test begins.
OF_PYTEST = ("raises", "warns", "fail")
PREFIXES = ("assert_", "_assert_")
CHECKS = {
    "refused": "a command, a server or a write is refused, as it should be",
    "eventually": "something comes true before the time is over",
    "wait_for": "the same, in a cluster",
    "wait_for_object": "an object of a cluster gets there, and becomes what it should be",
    "wait_gone": "an object of a cluster goes",
    "wait_ready": "an object of a cluster becomes ready",
    "released": "a release in a cluster is made with these values",
    "exported": "a provider in a cluster exports what it should",
    "stays": "something stays true in a cluster",
}

# tests that prove something without any of it, and how
EXPLAINED = {
    "unit/test_firestone.py::test_firestone_accepts_the_kind_file": "Firestone's validate() raises what is wrong",
    "e2e/test_components_repo.py::test_the_api_server_takes_every_environment": "kubectl raises what the API server refuses",
    "e2e/test_injection.py::test_the_api_server_takes_what_hostile_documents_become": "as above",
    "e2e/test_injection.py::test_the_api_server_takes_very_long_values": "as above",
}


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def counts(name: str) -> bool:
    return name.startswith(PREFIXES) or name in CHECKS


def asserts(function: Function) -> bool:
    return any(_is_assertion(node) for node in ast.walk(function))


def _is_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return not isinstance(test, ast.Constant)
        case ast.Raise(exc=ast.Call(func=ast.Name("AssertionError"))):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name("pytest"), attr=name)):
            return name in OF_PYTEST
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return counts(name)
    return False


def silent(trees: dict[str, ast.Module], looked_at: Callable[[str], bool]) -> list[str]:
    """The functions with such a name that assert nothing."""
    return [
        f"{file}::{function.name}"
        for file, tree in trees.items()
        for function in functions(tree)
        if looked_at(function.name) and not asserts(function)
    ]


def silent_tests(trees: dict[str, ast.Module]) -> list[str]:
    return silent(trees, lambda name: name.startswith("test_"))


def silent_checks(trees: dict[str, ast.Module]) -> list[str]:
    return silent(trees, counts)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    files = sorted(TESTS.rglob("*.py"))
    return {path.relative_to(TESTS).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def test_every_test_asserts_something(trees: dict[str, ast.Module]) -> None:
    assert len(trees) > 100
    assert sorted(set(silent_tests(trees)) ^ EXPLAINED.keys()) == []


@pytest.mark.long
def test_whatever_counts_as_an_assertion_asserts(trees: dict[str, ast.Module]) -> None:
    assert silent_checks(trees) == []
    defined = {function.name for tree in trees.values() for function in functions(tree)}
    assert CHECKS.keys() - defined == set()


@pytest.mark.parametrize(
    ("body", "says_something"),
    [
        ("assert x", True),
        ("with pytest.raises(ValueError): 1", True),
        ("pytest.fail('no')", True),
        ("assert_problem(1)", True),
        ("api.assert_problem(1)", True),
        ("cli.refused(2, 'get')", True),
        ("kube.wait_ready('a', 'b')", True),
        ("pass", False),
        ("assert True", False),
        ("assert 'a reason'", False),
        ("print(1)", False),
        ("raises(1)", False),
        ("check(1)", False),
        ("server.client(); kube.get(1); samples.create(l, 'n')", False),
        ("make(api, 'clusters', {}); cli.ok('get'); server.wait(); run(1); write(1); cluster('a'); x.close()", False),
    ],
)
def test_a_test_without_an_assertion_is_noticed(body: str, says_something: bool) -> None:
    suite = "def check(x):\n    assert x\n"
    source = f"{suite}def test_a():\n    {body}\n"
    assert silent_tests({"a.py": ast.parse(source)}) == ([] if says_something else ["a.py::test_a"])


@pytest.mark.parametrize(
    ("body", "says_something"),
    [("assert x", True), ("raise AssertionError(x)", True), ("assert_other(x)", True), ("client(x)", False), ("return x", False)],
)
def test_a_check_that_checks_nothing_is_noticed(body: str, says_something: bool) -> None:
    source = f"def assert_it(x):\n    {body}\n"
    assert silent_checks({"a.py": ast.parse(source)}) == ([] if says_something else ["a.py::assert_it"])
