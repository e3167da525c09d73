"""Values as YAML text that every reader of Kubernetes takes for exactly these values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from flux_resourceset.render import dialect

PLAIN, SINGLE, DOUBLE = "", "'", '"'  # the styles, as PyYAML names them

_TOO_LARGE = 2**63  # whole numbers from here on are floats to Kubernetes

_WORDS = ("y", "yes", "n", "no", "on", "off", "true", "false", "null")
_SPECIAL = frozenset(
    {form for word in _WORDS for form in (word, word.capitalize(), word.upper())}
    | {sign + form for sign in ("", "-", "+") for form in (".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN")}
    | {"~", "=", "<<"}
)
# Go removes underscores before it reads a number, and takes prefixes in capitals too, and signs behind them.
_NUMBER = re.compile(
    r"[-+]?(?:0[bB][-+]?[01]+|0[oO][-+]?[0-7]+|0[xX][0-9a-fA-F]+|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")  # 1:30 is 90 in YAML 1.1
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?)?)?"
)
# What only an escape can carry: controls, the breaks that YAML 1.1 knows, and what its readers refuse.
_ESCAPED = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_SYNTAX = re.compile(
    r"""[,\[\]{}\#&*!|>'"%@`?:]  # begins something else than a text
    | (?:-|---|\.\.\.)(?:\ |$)
    | .*(?::(?:\ |$)|\ \#|\t)  # holds the end of a key, a comment, or a tab, of which readers think differently
    """,
    re.VERBOSE,
)
_FLOW_SYNTAX = re.compile(r"[,\[\]{}?]")  # within brackets these end a text


def as_read(value: Any) -> Any:
    """The value as Kubernetes reads it: to JSON, 1.0 is 1."""
    match value:
        case dict():
            return {name: as_read(item) for name, item in value.items()}
        case list():
            return [as_read(item) for item in value]
        case float() if value.is_integer() and abs(value) < _TOO_LARGE:
            return int(value)
    return value


def written(value: Any, style: str = PLAIN, *, flow: bool = False) -> str:
    """A scalar on one line, in this style if it fits. Raises ValueError, in plain words, where YAML cannot say the value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return _whole_number(value)
        case float():
            return _number(value)
        case str():
            return _text(value, style, flow)
    raise ValueError("only a text, a number, true, false or null can be written")


def _whole_number(value: int) -> str:
    if abs(value) >= _TOO_LARGE:
        raise ValueError("the number has more than 63 bits, which Kubernetes cannot keep; give it as a text")
    return str(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("a number must be finite")
    if value.is_integer() and abs(value) < _TOO_LARGE:
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    return digits if not exponent else f"{digits if '.' in digits else digits + '.0'}e{exponent}"  # YAML 1.1 insists on the dot


def _text(text: str, style: str, flow: bool) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise ValueError("it holds half of a surrogate pair, which is not Unicode text") from exc
    if style == SINGLE and not _ESCAPED.search(text):
        return "'" + text.replace("'", "''") + "'"
    return text if style not in (SINGLE, DOUBLE) and fits_plain(text, flow=flow) else dialect.json_text(text)


def fits_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a text without quotes is this text to every reader."""
    if not text or text[0] in " \t" or text[-1] in " \t" or _ESCAPED.search(text) or _SYNTAX.match(text):
        return False
    return not (flow and _FLOW_SYNTAX.search(text)) and not _is_another_type(text)


def _is_another_type(text: str) -> bool:
    if text in _SPECIAL or _MOMENT.fullmatch(text) or _SEXAGESIMAL.fullmatch(text):
        return True
    return text[0] in "+-.0123456789" and _NUMBER.fullmatch(text.replace("_", "")) is not None


def lines(value: dict[str, Any] | list[Any], *, literals: bool = True) -> Iterator[str]:
    """A map or a list in block style, line by line; `literals` says whether texts of several lines may be written as such."""
    if not value:
        yield "{}" if isinstance(value, dict) else "[]"
    elif isinstance(value, list):
        for item in value:
            yield from _led("- ", _inside(item, literals))
    else:
        for name, item in value.items():
            yield from _member(_name(name), item, literals)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError("every key must be a text")
    return written(name)


def _member(name: str, item: Any, literals: bool) -> Iterator[str]:
    if isinstance(item, dict | list) and item:
        yield f"{name}:"
        yield from _led("  " if isinstance(item, dict) else "", lines(item, literals=literals))
    else:
        first, *others = _inside(item, literals)
        yield f"{name}: {first}"
        yield from _led("  ", others)


def _inside(item: Any, literals: bool) -> list[str]:
    if isinstance(item, dict | list):
        return list(lines(item, literals=literals))
    if literals and isinstance(item, str) and _is_literal(item):
        return ["|" if item.endswith("\n") else "|-", *item.removesuffix("\n").split("\n")]
    return [written(item)]


def _is_literal(text: str) -> bool:
    """Whether people can read it line by line, and nothing at the ends of its lines is easily lost."""
    every = text.removesuffix("\n").split("\n")
    shown = all(line == line.rstrip() and not _ESCAPED.search(line) for line in every)
    return "\n" in text and shown and every[-1] != "" and every[0].lstrip() == every[0] != ""


def _led(lead: str, inside: Iterable[str]) -> Iterator[str]:
    for place, line in enumerate(inside):
        yield (" " * len(lead) if place else lead) + line if line else ""
