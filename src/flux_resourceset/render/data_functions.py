"""Functions of templates that look at or build data: defaults, maps, lists, numbers, comparisons."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from flux_resourceset.render import text_functions, values
from flux_resourceset.render.failures import TemplateError
from flux_resourceset.render.values import Int64

MAX_ITEMS = 1_000_000  # of a list that counts: more than any manifest has, and it fits into the memory

_LONGEST_NUMBER = 4000  # digits, of which most would be zeros in front; Python reads no more than 4300

# Comparisons and look-ups of Go's text/template


def eq(first: object, second: object, *others: object) -> bool:
    return any(values.equal(first, other) for other in (second, *others))


def ne(first: object, second: object) -> bool:
    return not values.equal(first, second)


def lt(first: object, second: object) -> bool:
    return values.less(first, second)


def le(first: object, second: object) -> bool:
    return values.less(first, second) or values.equal(first, second)


def gt(first: object, second: object) -> bool:
    return not le(first, second)


def ge(first: object, second: object) -> bool:
    return not values.less(first, second)


def not_(value: object) -> bool:
    return not values.truth(value)


def length(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list | dict):
        return len(value)
    raise TemplateError(f"len of {values.type_name(value)}")


def index(value: object, *keys: object) -> object:
    for key in keys:
        if isinstance(value, dict):
            if not isinstance(key, str):
                raise TemplateError(f"index: the key of a map is a string, not {values.type_name(key)}")
            value = value.get(key)
        elif isinstance(value, list):
            if isinstance(key, bool) or not isinstance(key, int) or not 0 <= key < len(value):
                raise TemplateError(f"index out of range: {values.text(key)}")
            value = value[key]
        else:
            raise TemplateError(f"can't index item of type {values.type_name(value)}")
    return value


# Defaults and kinds


def default(fallback: object, *given: object) -> object:
    return given[0] if given and values.truth(given[0]) else fallback


def empty(value: object) -> bool:
    return not values.truth(value)


def coalesce(*items: object) -> object:
    return next((item for item in items if values.truth(item)), None)


def all_(*items: object) -> bool:
    return all(map(values.truth, items))


def any_(*items: object) -> bool:
    return any(map(values.truth, items))


def ternary(yes: object, no: object, condition: bool) -> object:
    return yes if condition else no


def kind_is(kind: str, value: object) -> bool:
    return values.kind(value) == kind


def kind_of(value: object) -> str:
    return values.kind(value)


def type_is(name: str, value: object) -> bool:
    return values.type_name(value) == name


def type_of(value: object) -> str:
    return values.type_name(value)


def deep_equal(first: object, second: object) -> bool:
    # JSON tells true from 1, which Python does not
    return values.kind(first) == values.kind(second) and values.to_json(first) == values.to_json(second)


def from_json(text: str) -> object:
    """Nothing, for what is no JSON."""
    try:
        return must_from_json(text)
    except TemplateError:
        return None


def must_from_json(text: str) -> object:
    """Go's encoding/json knows float64 only, and puts a sign of its own for half of a surrogate pair."""
    try:
        value = json.loads(text, parse_int=_finite, parse_float=_finite, parse_constant=_finite)
    except ValueError as exc:
        raise TemplateError(f"fromJson: {exc}") from exc
    return _whole_characters(value)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number that JSON has")
    return number


def _whole_characters(value: Any) -> Any:
    match value:
        case dict():
            return {_whole_characters(name): _whole_characters(item) for name, item in value.items()}
        case list():
            return [_whole_characters(item) for item in value]
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def fail(message: str) -> str:
    raise TemplateError(message)


# Maps


def dictionary(*items: object) -> dict[str, Any]:
    names = items[::2]
    given = [*items[1::2], ""]
    return {text_functions.string(name): value for name, value in zip(names, given, strict=False)}


def get(mapping: dict[str, Any], key: str) -> object:
    return mapping.get(key, "")


def has_key(mapping: dict[str, Any], key: str) -> bool:
    return key in mapping


def set_(mapping: object, key: str, value: object) -> dict[str, Any]:
    if not isinstance(mapping, dict):  # nor nil, which every other function takes for an empty map
        raise TemplateError(f"set: expected map[string]interface {{}}; got {values.type_name(mapping)}")
    mapping[key] = value
    return mapping


def unset(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    mapping.pop(key, None)
    return mapping


def dig(first: object, second: object, third: object, *others: object) -> object:
    *keys, fallback, mapping = first, second, third, *others
    for key in keys:
        if not isinstance(mapping, dict) or not isinstance(key, str):
            raise TemplateError(f"dig: {values.text(key)} is not a key of a {values.type_name(mapping)}")
        if key not in mapping:
            return fallback
        mapping = mapping[key]
    return mapping


def keys(*mappings: dict) -> list[str]:  # type: ignore[type-arg]  # the plain class is what arguments are checked by
    return [key for mapping in mappings for key in sorted(mapping)]


def values_(mapping: dict[str, Any]) -> list[Any]:
    return [mapping[key] for key in sorted(mapping)]


def pick(mapping: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: mapping[name] for name in names if name in mapping}


def omit(mapping: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name not in names}


def pluck(key: str, *mappings: dict) -> list[Any]:  # type: ignore[type-arg]
    return [mapping[key] for mapping in mappings if key in mapping]


# Lists


def _listed(value: object, verb: str) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TemplateError(f"cannot {verb} on type {values.type_name(value)}")


def list_(*items: object) -> list[Any]:
    return list(items)


def first(items: object) -> object:
    return next(iter(_listed(items, "find first")), None)


def last(items: object) -> object:
    values_there = _listed(items, "find last")
    return values_there[-1] if values_there else None


def rest(items: object) -> list[Any]:
    return _listed(items, "find rest")[1:]


def initial(items: object) -> list[Any]:
    return _listed(items, "find initial")[:-1]


def append(items: object, item: object) -> list[Any]:
    return [*_listed(items, "push"), item]


def prepend(items: object, item: object) -> list[Any]:
    return [item, *_listed(items, "prepend")]


def concat(*lists: object) -> list[Any]:
    return [item for items in lists for item in _listed(items, "concat")]


def reverse(items: object) -> list[Any]:
    return _listed(items, "reverse")[::-1]


def uniq(items: object) -> list[Any]:
    unique: list[Any] = []
    for item in _listed(items, "uniq"):
        if not any(deep_equal(item, other) for other in unique):
            unique.append(item)
    return unique


def without(items: object, *unwanted: object) -> list[Any]:
    return [item for item in _listed(items, "without") if not any(deep_equal(item, other) for other in unwanted)]


def has(wanted: object, items: object) -> bool:
    return items is not None and any(deep_equal(wanted, item) for item in _listed(items, "find"))


def compact(items: object) -> list[Any]:
    return [item for item in _listed(items, "compact") if values.truth(item)]


def slice_(items: object, *bounds: object) -> list[Any]:
    values_there = _listed(items, "slice")
    start, end = [*map(whole, bounds), *(0, len(values_there))[len(bounds) :]][:2]
    if not 0 <= start <= end <= len(values_there):
        raise TemplateError(f"slice: {start} to {end} of {len(values_there)}")
    return values_there[start:end]


def sort_alpha(items: object) -> list[str]:
    return sorted(text_functions.strings(items))


# Numbers


def number(value: object) -> float:
    """Zero for what is no number, as sprig has it."""
    try:
        return values.finite(float(value) if isinstance(value, str | int | float) else 0.0)
    except ValueError:
        return 0.0


def whole(value: object) -> int:
    """Zero for what is no number, as sprig has it."""
    if isinstance(value, str):
        digits = value.removeprefix("-").removeprefix("+")
        number = int(value) if digits.isascii() and digits.isdigit() and len(digits) < _LONGEST_NUMBER else 0
        return number if abs(number) < 2**63 else 0
    if not isinstance(value, int | float):
        return 0
    if not -(2**63) <= value < 2**63:
        raise TemplateError(f"{values.text(value)} does not fit into 64 bits")  # in Go the processor decides what it becomes
    return int(value)


def int64(value: object) -> Int64:
    return Int64(whole(value))


def _wrapped(number: int) -> Int64:
    """As Go counts: the number behind the largest is the smallest."""
    return Int64((number + 2**63) % 2**64 - 2**63)


def atoi(text: str) -> int:
    return whole(text)


def add(*items: object) -> Int64:
    return _wrapped(sum(map(whole, items)))


def add1(value: object) -> Int64:
    return _wrapped(whole(value) + 1)


def sub(first: object, second: object) -> Int64:
    return _wrapped(whole(first) - whole(second))


def mul(first: object, *others: object) -> Int64:
    return _wrapped(math.prod(map(whole, (first, *others))))


def _divisor(value: object) -> int:
    if whole(value) == 0:
        raise TemplateError("integer divide by zero")
    return whole(value)


def div(first: object, second: object) -> Int64:
    divisor = _divisor(second)
    quotient = abs(whole(first)) // abs(divisor)  # Go rounds towards zero
    return _wrapped(quotient if (whole(first) < 0) == (divisor < 0) else -quotient)


def mod(first: object, second: object) -> Int64:
    return Int64(whole(first) - div(first, second) * _divisor(second))


def max_(first: object, *others: object) -> Int64:
    return Int64(max(map(whole, (first, *others))))


def min_(first: object, *others: object) -> Int64:
    return Int64(min(map(whole, (first, *others))))


def floor(value: object) -> float:
    return float(math.floor(number(value)))


def ceil(value: object) -> float:
    return float(math.ceil(number(value)))


def until(count: int) -> list[int]:
    return until_step(0, count, 1 if count >= 0 else -1)


def until_step(start: int, stop: int, step: int) -> list[int]:
    numbers = range(start, stop, step) if step else range(0)
    if numbers[MAX_ITEMS:]:
        raise TemplateError(f"a list of more than {MAX_ITEMS} numbers is beyond all reason")
    return list(numbers)


TABLE: dict[str, Callable[..., Any]] = {
    "add": add, "add1": add1, "all": all_, "any": any_, "append": append, "atoi": atoi, "ceil": ceil,
    "coalesce": coalesce, "compact": compact, "concat": concat, "deepEqual": deep_equal, "default": default,
    "dict": dictionary, "dig": dig, "div": div, "empty": empty, "eq": eq, "fail": fail, "first": first,
    "float64": number, "floor": floor, "fromJson": from_json, "ge": ge, "get": get, "gt": gt, "has": has,
    "hasKey": has_key, "index": index, "initial": initial, "int": whole, "int64": int64, "keys": keys,
    "kindIs": kind_is, "kindOf": kind_of, "last": last, "le": le, "len": length, "list": list_, "lt": lt,
    "max": max_, "min": min_, "mod": mod, "mul": mul, "mustAppend": append, "mustCompact": compact,
    "mustFirst": first, "mustFromJson": must_from_json, "mustHas": has, "mustInitial": initial, "mustLast": last,
    "mustPrepend": prepend, "mustRest": rest, "mustReverse": reverse, "mustSlice": slice_, "mustUniq": uniq,
    "mustWithout": without, "ne": ne, "not": not_, "omit": omit, "pick": pick, "pluck": pluck,
    "prepend": prepend, "rest": rest, "reverse": reverse, "set": set_, "slice": slice_,
    "sortAlpha": sort_alpha, "sub": sub, "ternary": ternary, "tuple": list_, "typeIs": type_is,
    "typeOf": type_of, "uniq": uniq, "unset": unset, "until": until, "untilStep": until_step,
    "values": values_, "without": without,
}  # fmt: skip
