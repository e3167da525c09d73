"""The drawing of the errors is true: every class stands in it, with its place, status and code."""

from __future__ import annotations

import inspect
import re

from flux_resourceset import errors
from flux_resourceset.errors import Violation

_LINE = re.compile(r"^(?P<indent>[│ ]*)(?:[├└]── )?(?P<name>[A-Z]\w+)(?: +(?P<status>\d{3}) (?P<code>[a-z-]+)$| {2,}\S| *$)")


def drawn() -> dict[str, tuple[str | None, str | None, str | None]]:
    """Name → parent, status and code, as the docstring draws them."""
    found: dict[str, tuple[str | None, str | None, str | None]] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines()[1:]:
        match = _LINE.match(line)
        if match is None:
            assert not line.strip(), f"cannot be read: {line}"
            continue
        depth = (match.start("name") + 3) // 4
        above[depth:] = [match["name"]]
        found[match["name"]] = (above[depth - 1] if depth else None, match["status"], match["code"])
    return found


def existing() -> dict[str, type[errors.Error]]:
    classes = dict(inspect.getmembers(errors, inspect.isclass))
    return {name: cls for name, cls in classes.items() if issubclass(cls, errors.Error)}


def test_every_error_is_drawn_and_nothing_else() -> None:
    assert set(drawn()) == set(existing())
    assert len(existing()) > 15


def test_every_error_stands_below_its_parent() -> None:
    parents = {name: cls.mro()[1].__name__ if cls is not errors.Error else None for name, cls in existing().items()}
    assert {name: parent for name, (parent, _, _) in drawn().items()} == parents


def test_every_refusal_is_drawn_with_its_status_and_code() -> None:
    concrete = {
        name: (str(cls.status), cls.code)
        for name, cls in existing().items()
        if issubclass(cls, errors.Refusal) and cls is not errors.Refusal
    }
    assert {name: (status, code) for name, (_, status, code) in drawn().items() if status} == concrete


def test_codes_and_titles_are_each_their_own() -> None:
    refusals = [cls for cls in existing().values() if issubclass(cls, errors.Refusal) and cls is not errors.Refusal]
    assert len({cls.title for cls in refusals}) == len(refusals)
    for kind_of_503 in (errors.Doubt, errors.Unreachable):  # a client does the same about every 503
        refusals.remove(kind_of_503)
        assert kind_of_503.code == errors.Unavailable.code
    refusals.remove(errors.NotYet)  # as the other parameters that are wrong
    assert errors.NotYet.code == errors.BadQuery.code
    assert len({cls.code for cls in refusals}) == len(refusals)


def test_an_invalid_document_says_the_first_three_violations_and_keeps_all() -> None:
    found = [Violation(f"/f{number}", "is wrong") for number in range(5)]
    refusal = errors.Invalid.document('clusters "c1"', found)
    assert refusal.detail == 'clusters "c1": /f0 is wrong; /f1 is wrong; /f2 is wrong; and 2 more'
    assert refusal.violations == tuple(found)


def test_a_violation_of_the_whole_document_is_called_so() -> None:
    assert errors.Invalid.document("x", [Violation("", "must be a JSON object")]).detail == "x: document must be a JSON object"
