"""Compares what no test reached with tests/unreached.txt, after `make coverage`: `unreached.py`.

The list names what that does not reach, by file, function and text, for numbers change with every edit, each group with
its reason; `*` is a whole function. A function that nothing reaches and that is not in the list fails: it needs a test, a
reason, or to go; so does a function of the list that is no more. Single lines depend on what comes first in the races that
tests provoke, so those that are new, or are reached again, are told and do not fail.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "flux_resourceset"
LIST = Path(__file__).with_name("unreached.txt")


def functions(text: str) -> Iterator[tuple[str, range]]:
    """Every function with its lines; an inner one comes after the outer one."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, range]]:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, range(child.body[0].lineno, (child.end_lineno or 0) + 1)
                name += "."
            yield from walk(child, name)

    yield from walk(ast.parse(text), "")


def unreached(file: Path, statements: list[int], missing: list[int]) -> Iterator[str]:
    """The lines of a file that were not reached, as the list names them."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    owners: dict[int, str] = {}
    for name, inside in functions(text):
        owners |= dict.fromkeys(inside, name)
    whole = {name for name in owners.values() if all(line in missing for line in statements if owners.get(line) == name)}
    place = file.relative_to(PACKAGE).as_posix()
    for line in missing:
        owner = owners.get(line, "-")
        yield f"{place} {owner}: {'*' if owner in whole else lines[line - 1].strip()}"


def measured() -> Counter[str]:
    coverage = Coverage(config_file=str(ROOT / "pyproject.toml"), data_file=str(ROOT / ".coverage"))
    coverage.load()
    places: Counter[str] = Counter()
    for file in sorted(PACKAGE.rglob("*.py")):
        _, statements, _, missing, _ = coverage.analysis2(str(file))
        named = Counter(unreached(file, statements, missing))
        places += Counter({name: 1 if name.endswith(": *") else count for name, count in named.items()})
    return places


def explained(text: str) -> Counter[str]:
    """The places of the list. A reason is indented, below its places."""
    places: Counter[str] = Counter()
    waiting: list[str] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith(" "):
            waiting = []
        else:
            places[line] += 1
            waiting.append(line)
    if waiting:
        raise SystemExit(f"{LIST.name}: no reason is given for {waiting[0]}")
    return places


def stale(places: Counter[str]) -> Iterator[str]:
    """The places of the list whose function is no more."""
    known = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*.py")}
    for place in places:
        name, _, rest = place.partition(" ")
        owner = rest.partition(":")[0]
        if name not in known or (owner != "-" and owner not in dict(functions(known[name].read_text(encoding="utf-8")))):
            yield place


def main() -> int:
    actual, listed = measured(), explained(LIST.read_text(encoding="utf-8"))
    new, again = actual - listed, listed - actual
    for place in new:
        print(f"{place}\n    is not reached: test it, delete it, or explain it in tests/{LIST.name}")
    for place in again:
        print(f"{place}\n    is in tests/{LIST.name}, and was reached")
    failing = [place for place in new if place.endswith(": *")] + list(stale(listed))
    for place in failing:
        print(f"error: {place}: nothing reaches this function, or there is none, and tests/{LIST.name} must say so")
    print(f"{actual.total()} places are not reached; {listed.total()} are explained in tests/{LIST.name}")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
