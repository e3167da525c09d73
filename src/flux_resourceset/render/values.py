"""JSON values as Go's templates see them: their kinds, truth, order, and text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from flux_resourceset.render.failures import TemplateError

MAX_TEXT = 64 * 1024 * 1024  # characters of one rendering, or of one text: a runaway loop ends here, not with the memory


class Int64(int):
    """A whole number out of the data. Go lets constants count as int, but not these."""


def native(value: Any) -> Any:
    """Data as it reaches a template: whole numbers are int64, all others float64, whatever they were written as."""
    if isinstance(value, Mapping):
        return {str(name): native(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [native(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        if abs(value) < 2**63 and value == int(value):
            return Int64(value)
        number = float(value)
    except (OverflowError, ValueError):  # too large for a float; or NaN, which is no whole number
        number = math.inf
    return finite(number)


def finite(number: float) -> float:
    """Nothing that a manifest can hold comes of NaN and infinity."""
    if not math.isfinite(number):
        raise TemplateError("a number is not finite")
    return number


def kind(value: object) -> str:
    """The name of Go's kind."""
    match value:
        case None:
            return "invalid"
        case bool():
            return "bool"
        case Int64():
            return "int64"
        case int():
            return "int"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "slice"
        case dict():
            return "map"
    raise TypeError(f"no value of a template: {value!r}")


_TYPES = {"slice": "[]interface {}", "map": "map[string]interface {}", "invalid": "<nil>"}


def type_name(value: object) -> str:
    return _TYPES.get(kind(value), kind(value))


def truth(value: object) -> bool:
    """Whether `if` takes it: everything but the zero value of its type."""
    return bool(value)


def text(value: object) -> str:
    """Go's %v."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value, smallest=-4, largest=6)
        case list():
            return "[" + " ".join(text(item) for item in value) + "]"
        case dict():
            return "map[" + " ".join(f"{name}:{text(value[name])}" for name in sorted(value)) + "]"
    return str(value)


def printed(value: object) -> str:
    """What an action leaves in the output."""
    return "<no value>" if value is None else text(value)


def _float(value: float, smallest: int, largest: int) -> str:
    """The shortest digits that mean the number; an exponent outside [smallest, largest) is written out."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits))
    scientific = len(shown) - 1 + exponent if value else 0
    minus = "-" if sign else ""
    if smallest <= scientific < largest:
        return minus + format(abs(Decimal(repr(value)).normalize()), "f")
    mantissa = shown[0] + ("." + shown[1:] if len(shown) > 1 else "")
    return f"{minus}{mantissa}e{'-' if scientific < 0 else '+'}{abs(scientific):02d}"


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}


def quoted(value: str) -> str:
    """Go's %q; every escape of it means the same in double quotes in YAML."""
    return '"' + "".join(_quoted_character(character) for character in value) + '"'


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
# legal in JSON, but ends a line in YAML and JavaScript, so Go escapes it always
_SEPARATORS = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})


def to_json(value: object, indent: str | None = None, html: bool = True) -> str:
    """As Go's encoding/json: keys sorted, and < > & escaped unless `html` is off."""
    text = _json(value, indent, "").translate(_SEPARATORS)
    return text.translate(_HTML) if html else text


def _json(value: object, indent: str | None, margin: str) -> str:
    match value:
        case float():
            shown = _float(value, smallest=-6, largest=21)
            return shown.replace("e-0", "e-")
        case list() if value:
            return _bracketed("[]", [_json(item, indent, margin + (indent or "")) for item in value], indent, margin)
        case dict() if value:
            gap = ":" if indent is None else ": "
            items = [
                f"{json.dumps(name, ensure_ascii=False)}{gap}{_json(value[name], indent, margin + (indent or ''))}"
                for name in sorted(value)
            ]
            return _bracketed("{}", items, indent, margin)
    return json.dumps(value, ensure_ascii=False)


def _bracketed(brackets: str, items: list[str], indent: str | None, margin: str) -> str:
    if indent is None:
        return brackets[0] + ",".join(items) + brackets[1]
    lines = f",\n{margin}{indent}".join(items)
    return f"{brackets[0]}\n{margin}{indent}{lines}\n{margin}{brackets[1]}"


def equal(first: object, second: object) -> bool:
    """Go's eq of two values."""
    kinds = [_comparable(first), _comparable(second)]
    if "invalid" in kinds:
        return first is None and second is None
    if kinds[0] != kinds[1]:
        raise TemplateError("incompatible types for comparison")
    return first == second


def less(first: object, second: object) -> bool:
    kinds = [_comparable(first), _comparable(second)]
    if kinds[0] != kinds[1] or kinds[0] in ("invalid", "bool"):
        raise TemplateError("incompatible types for comparison")
    return bool(first < second)  # type: ignore[operator]  # both are numbers or both are strings


def _comparable(value: object) -> str:
    name = kind(value)
    if name in ("slice", "map"):
        raise TemplateError(f"a {name} cannot be compared")
    return "int" if name == "int64" else name
