"""JSONPath templates in the dialect of kubectl: `{range .items[*]}{.id}{"\\n"}{end}`.

Text stands for itself, what is in braces for what it finds: several values are joined by a space, what is not there is nothing,
and objects and arrays are JSON. Whatever kubectl cannot read either, such as `&&` or `=~` in a filter, is refused.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from flux_resourceset.cli.output.terminal_text import escaped

Find = Callable[[Any, Any], list[Any]]  # the values that a root and a current value lead to
Clean = Callable[[str], str]  # of what was found: the text of a template is its author's

_DEPTH = 50  # filters in filters, ranges in ranges: nobody can read so many
_NAME = re.compile(r"(?:[^\s.\[\]{}()\\'\",:;|&=!<>@$*?]|\\.)+")
_INDEX = re.compile(r"-?\d{1,9}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Mistake(Exception):
    """A template that cannot be read, and why."""


class Template:
    """A text with expressions in braces."""

    def __init__(self, text: str) -> None:
        if "{" not in text:
            raise Mistake(f"{text!r} has no braces; write it as in {{.items[*].id}}")
        self._nodes = _Nodes(text).all()

    def text(self, document: Any, clean: Clean = str) -> str:
        return "".join(_printed(self._nodes, document, document, clean))


def path(text: str) -> Find:
    """An expression without its braces, or with them, as --sort-by and custom-columns take it: .id, id, {.id}."""
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not inner.startswith((".", "[", "$", "@")):
        inner = f".{inner}"
    reader = _Reader(inner)
    find = reader.path()
    reader.end()
    return find


def shown(value: Any, clean: Clean = str) -> str:
    """A value as text: strings as they are, everything else as JSON."""
    return clean(value) if isinstance(value, str) else escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


# Templates


class _Text(NamedTuple):
    text: str


class _Found(NamedTuple):
    find: Find


class _Range(NamedTuple):
    find: Find
    inside: Sequence[Any]


def _printed(nodes: Sequence[Any], root: Any, here: Any, clean: Clean) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, _Text):
            yield node.text
        elif isinstance(node, _Found):
            yield " ".join(shown(value, clean) for value in node.find(root, here))
        else:
            for value in node.find(root, here):
                yield from _printed(node.inside, root, value, clean)


class _Nodes:
    """The pieces of a template, one after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def all(self) -> list[Any]:
        nodes, ended = self._until_end(0)
        if ended:
            raise Mistake("{end} without a {range}")
        return nodes

    def _until_end(self, depth: int) -> tuple[list[Any], bool]:
        if depth > _DEPTH:
            raise Mistake(f"more than {_DEPTH} ranges in each other")
        nodes: list[Any] = []
        while self._at < len(self._text):
            start = self._text.find("{", self._at)
            if start != self._at:
                nodes.append(_Text(self._text[self._at : start if start >= 0 else None]))
            if start < 0:
                self._at = len(self._text)
                break
            inner = self._inner(start)
            if inner == "end":
                return nodes, True
            nodes.append(self._range(inner, depth) if re.match(r"range\b", inner) else _expression(inner))
        return nodes, False

    def _inner(self, start: int) -> str:
        """What stands between braces; a brace in quotes is none."""
        place = start + 1
        while place < len(self._text):
            if quoted := _QUOTED.match(self._text, place):
                place = quoted.end()
            elif self._text[place] == "}":
                self._at = place + 1
                return self._text[start + 1 : place].strip()
            else:
                place += 1
        raise Mistake(f"{self._text[start : start + 40]!r} has no closing brace")

    def _range(self, inner: str, depth: int) -> _Range:
        reader = _Reader(inner[len("range") :].strip())
        find = reader.path()
        reader.end()
        inside, ended = self._until_end(depth + 1)
        if not ended:
            raise Mistake("{range} without an {end}")
        return _Range(find, inside)


def _expression(inner: str) -> _Text | _Found:
    if quoted := _QUOTED.fullmatch(inner):
        return _Text(_unquoted(quoted))
    reader = _Reader(inner)
    finds = [reader.path()]
    while reader.skips(","):  # as in {.id, .environment}
        finds.append(reader.path())
    reader.end()
    return _Found(lambda root, here: [value for find in finds for value in find(root, here)])


def _unquoted(match: re.Match[str]) -> str:
    inner = match[1] if match[1] is not None else match[2]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), inner)


# Paths


class _Reader:
    """Reads one expression."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > _DEPTH:
            raise Mistake(f"more than {_DEPTH} filters in each other")
        self._text, self._at, self._depth = text, 0, depth

    def skips(self, word: str) -> bool:
        """Whether a word is next, which is then behind us."""
        blank = re.compile(r"\s*").match(self._text, self._at)
        place = blank.end() if blank else self._at
        if not self._text.startswith(word, place):
            return False
        self._at = place + len(word)
        return True

    def _next(self, syntax: re.Pattern[str]) -> re.Match[str] | None:
        match = syntax.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def end(self) -> None:
        if self._text[self._at :].strip():
            raise self._mistake()

    def _mistake(self) -> Mistake:
        rest = self._text[self._at :].strip() or "its end"
        return Mistake(f"{self._text!r} cannot be read at {rest[:40]!r}")

    def path(self) -> Find:
        """$ is the whole, @ what a range or a filter looks at, which is also meant where neither is said."""
        from_root = self.skips("$")
        begun = from_root or self.skips("@")
        steps: list[Find] = []
        while (step := self._step()) is not None:
            steps.append(step)
        if not steps and not begun and not self.skips("."):
            raise self._mistake()
        return _chain(from_root, steps)

    def _step(self) -> Find | None:
        if self.skips(".."):
            inner = self._name() if not self._text.startswith("[", self._at) else self._bracket()
            return _anywhere(inner)
        if self._text.startswith("[", self._at):
            return self._bracket()
        if self._text.startswith(".", self._at) and self._text[self._at + 1 :].strip():
            self._at += 1
            return self._bracket() if self._text.startswith("[", self._at) else self._name()
        return None

    def _name(self) -> Find:
        if self._text.startswith("*", self._at):
            self._at += 1
            return _every
        name = self._next(_NAME)
        if name is None:
            raise self._mistake()
        return _member(re.sub(r"\\(.)", r"\1", name[0]))

    def _bracket(self) -> Find:
        self.skips("[")
        if self.skips("?("):
            find = self._filter()
        else:
            finds = [self._item()]
            while self.skips(","):
                finds.append(self._item())
            find = lambda root, here: [value for each in finds for value in each(root, here)]  # noqa: E731  # a step is one
        if not self.skips("]"):
            raise self._mistake()
        return find

    def _item(self) -> Find:
        if self.skips("*"):
            return _every
        self.skips("")
        if quoted := self._next(_QUOTED):
            return _member(_unquoted(quoted))
        first = self._next(_INDEX)
        if not self.skips(":"):
            if first is None:
                raise self._mistake()
            return _index(int(first[0]))
        self.skips("")
        last = self._next(_INDEX)
        step = self._next(_INDEX) if self.skips(":") else None
        if step is not None and int(step[0]) < 1:
            raise Mistake(f"{self._text!r}: the step of a slice must be at least 1")
        bounds = slice(*(int(match[0]) if match else None for match in (first, last, step)))
        return lambda root, here: here[bounds] if isinstance(here, list) else []

    def _filter(self) -> Find:
        left = self._operand()
        compare = next((function for sign, function in _OPERATORS.items() if self.skips(sign)), None)
        right = self._operand() if compare is not None else None
        if not self.skips(")"):
            raise self._mistake()

        def holds(root: Any, item: Any) -> bool:
            if compare is None or right is None:
                return bool(left(root, item))
            return any(_compares(compare, a, b) for a in left(root, item) for b in right(root, item))

        def chosen(root: Any, here: Any) -> list[Any]:
            items = here if isinstance(here, list) else list(here.values()) if isinstance(here, dict) else []
            return [item for item in items if holds(root, item)]

        return chosen

    def _operand(self) -> Find:
        self.skips("")
        if quoted := self._next(_QUOTED):
            return _constant(_unquoted(quoted))
        if number := self._next(_NUMBER):
            return _constant(float(number[0]) if set(number[0]) & set(".eE") else int(number[0]))
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self.skips(word):
                return _constant(value)
        inner = _Reader(self._text, self._depth + 1)
        inner._at = self._at
        find = inner.path()
        self._at = inner._at
        return find


def _chain(from_root: bool, steps: Sequence[Find]) -> Find:
    def find(root: Any, here: Any) -> list[Any]:
        values = [root if from_root else here]
        for step in steps:
            values = [found for value in values for found in step(root, value)]
        return values

    return find


def _constant(value: Any) -> Find:
    return lambda root, here: [value]


def _member(name: str) -> Find:
    return lambda root, here: [here[name]] if isinstance(here, dict) and name in here else []


def _index(number: int) -> Find:
    return lambda root, here: here[number : number + 1 or None] if isinstance(here, list) else []


def _every(root: Any, here: Any) -> list[Any]:
    return list(here.values()) if isinstance(here, dict) else list(here) if isinstance(here, list) else []


def _anywhere(step: Find) -> Find:
    def find(root: Any, here: Any) -> list[Any]:
        below = [found for value in _every(root, here) if isinstance(value, dict | list) for found in find(root, value)]
        return [*step(root, here), *below]

    return find


def _compares(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """Values of different types are different, and neither is the greater one; to Python, true is 1."""
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right))
    if not numbers and type(left) is not type(right):
        return compare is operator.ne
    if not numbers and not isinstance(left, str) and compare not in (operator.eq, operator.ne):
        return False
    return compare(left, right)
