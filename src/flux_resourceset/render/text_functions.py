"""Functions of templates that make text: strings, quoting, encoding, patterns, printf."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable
from typing import Any

from flux_resourceset.render import dialect, slugs, values
from flux_resourceset.render.failures import TemplateError


def string(value: object) -> str:
    return value if isinstance(value, str) else values.text(value)


def strings(value: object) -> list[str]:
    items = value if isinstance(value, list) else [] if value is None else [value]
    return [string(item) for item in items if item is not None]


# Strings. Go counts bytes, and so do these.


def _cut(text: str, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(text.encode()):
        raise TemplateError(f"the bounds {start} and {end} are not within {text!r}")
    try:
        return text.encode()[start:end].decode()
    except UnicodeDecodeError as exc:
        raise TemplateError(f"cutting {text!r} would split a character") from exc


def trunc(count: int, text: str) -> str:
    length = len(text.encode())
    if count < 0:
        return _cut(text, length + count, length) if length + count > 0 else text
    return _cut(text, 0, min(count, length))


def substr(start: int, end: int, text: str) -> str:
    length = len(text.encode())
    if start < 0:
        return _cut(text, 0, end)
    return _cut(text, start, length if end < 0 or end > length else end)


def trim_prefix(prefix: str, text: str) -> str:
    return text.removeprefix(prefix)


def trim_suffix(suffix: str, text: str) -> str:
    return text.removesuffix(suffix)


def trim_all(characters: str, text: str) -> str:
    return text.strip(characters) if characters else text


def upper(text: str) -> str:
    return "".join(each.upper() if len(each.upper()) == 1 else each for each in text)


def lower(text: str) -> str:
    return "".join(each.lower()[0] for each in text)


def quote(*items: object) -> str:
    return " ".join(values.quoted(string(item)) for item in items if item is not None)


def squote(*items: object) -> str:
    return " ".join(f"'{values.text(item)}'" for item in items if item is not None)


def cat(*items: object) -> str:
    return " ".join(values.text(item) for item in items if item is not None)


def indent(spaces: int, text: str) -> str:
    margin = repeat(spaces, " ")
    return margin + text.replace("\n", "\n" + margin)


def nindent(spaces: int, text: str) -> str:
    return "\n" + indent(spaces, text)


def replace(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


def join(separator: str, items: object) -> str:
    return separator.join(strings(items))


def split_list(separator: str, text: str) -> list[str]:
    return text.split(separator) if separator else list(text)


def split(separator: str, text: str) -> dict[str, str]:
    return {f"_{position}": part for position, part in enumerate(split_list(separator, text))}


def contains(part: str, text: str) -> bool:
    return part in text


def has_prefix(prefix: str, text: str) -> bool:
    return text.startswith(prefix)


def has_suffix(suffix: str, text: str) -> bool:
    return text.endswith(suffix)


def repeat(count: int, text: str) -> str:
    if count < 0:
        raise TemplateError(f"a text cannot be repeated {count} times")
    if count * len(text) > values.MAX_TEXT:
        raise TemplateError("a text grows beyond all reason")
    return text * count


def trim(text: str) -> str:
    return text.strip()


def plural(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


# Encoding


def b64enc(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def b64dec(text: str) -> str:
    """Sprig gives the words of an error for the content, which nobody wants in a manifest; that is refused."""
    try:
        return base64.b64decode(re.sub("[\r\n]", "", text), validate=True).decode()
    except ValueError as exc:
        raise TemplateError(f"b64dec: {exc}") from exc


def sha256sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sha1sum(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def to_json(value: object) -> str:
    return values.to_json(value)


def to_pretty_json(value: object) -> str:
    return values.to_json(value, indent="  ")


def to_raw_json(value: object) -> str:
    return values.to_json(value, html=False)


def to_yaml(value: object) -> str:
    return dialect.dumped(_plain(value))


def _plain(value: Any) -> Any:
    """Without our own number type, which PyYAML does not know."""
    match value:
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case values.Int64():
            return int(value)
    return value


# Patterns: RE2's syntax is Python's without look-around and back-references.

_FOREIGN = re.compile(r"\(\?(?:=|!|<=|<!|P=|\()|(?<!\\)(?:\\\\)*\\[1-9]")


@functools.lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    if _FOREIGN.search(pattern):
        raise TemplateError(f"the pattern {pattern!r} uses what Go's patterns do not have")
    # Go's $ is the very end of the text, Python's also matches before a last newline
    strict = re.sub(r"\\.|\[(?:\\.|[^]\\])*\]|\$", lambda match: r"\Z" if match.group() == "$" else match.group(), pattern)
    strict = strict.replace(r"\z", r"\Z")
    try:
        return re.compile(strict, re.ASCII)
    except re.error as exc:
        raise TemplateError(f"the pattern {pattern!r} is wrong: {exc}") from exc


def must_regex_match(pattern: str, text: str) -> bool:
    return _pattern(pattern).search(text) is not None


def regex_match(pattern: str, text: str) -> bool:
    """Sprig takes a wrong pattern for one that does not match."""
    try:
        return must_regex_match(pattern, text)
    except TemplateError:
        return False


def regex_find(pattern: str, text: str) -> str:
    match = _pattern(pattern).search(text)
    return match.group() if match else ""


def regex_find_all(pattern: str, text: str, count: int) -> list[str]:
    matches = [each.group() for each in _pattern(pattern).finditer(text)]
    return matches if count < 0 else matches[:count]


def regex_replace_all(pattern: str, text: str, replacement: str) -> str:
    compiled = _pattern(pattern)

    def filled(match: re.Match[str]) -> str:
        def group(name: re.Match[str]) -> str:
            wanted = name.group(1) or name.group(2)
            if name.group() == "$$":
                return "$"
            known = int(wanted) <= compiled.groups if wanted.isdigit() else wanted in compiled.groupindex
            return (match.group(int(wanted) if wanted.isdigit() else wanted) or "") if known else ""

        return re.sub(r"\$\$|\$(?:\{(\w+)\}|(\w+))", group, replacement)

    return compiled.sub(filled, text)


def regex_replace_all_literal(pattern: str, text: str, replacement: str) -> str:
    return _pattern(pattern).sub(lambda _: replacement, text)


def regex_split(pattern: str, text: str, count: int) -> list[str]:
    if _pattern(pattern).groups:
        raise TemplateError("regexSplit with groups is beyond the built-in engine")
    if count == 0:
        return []
    return _pattern(pattern).split(text, 0 if count < 0 else count - 1) if count != 1 else [text]


# printf

_VERB = re.compile(r"%([-+# 0]*)(\d{0,4})((?:\.\d{0,4})?)(.)", re.DOTALL)  # nobody pads a text to ten thousand characters


def printf(form: str, *items: object) -> str:
    given = iter(items)

    def verb(match: re.Match[str]) -> str:
        flags, width, precision, letter = match.groups()
        if letter == "%":
            return "%"
        try:
            item = next(given)
        except StopIteration:
            raise TemplateError(f"printf: {match.group()} has no value") from None
        shown = _formatted(match.group(), letter, flags, precision, item)
        return _padded(shown, flags, int(width or 0), isinstance(item, int | float))

    result = _VERB.sub(verb, form)
    if next(given, given) is not given:
        raise TemplateError("printf: more values than verbs")
    return result


def _padded(shown: str, flags: str, width: int, number: bool) -> str:
    if "-" in flags:
        return shown.ljust(width)
    return shown.zfill(width) if "0" in flags and number else shown.rjust(width)


def _formatted(whole: str, letter: str, flags: str, precision: str, item: object) -> str:
    number = isinstance(item, int) and not isinstance(item, bool)
    plus = "+" if "+" in flags and isinstance(item, int | float) and item >= 0 else ""
    if "#" not in flags:
        if letter == "v" and not precision:
            return plus * (number or isinstance(item, float)) + values.text(item)
        if letter == "s" and isinstance(item, str | list | dict):
            text = values.text(item)
            return text[: int(precision[1:] or 0)] if precision else text
        if letter == "q" and isinstance(item, str) and not precision:
            return values.quoted(item)
        if letter == "d" and number and not precision:
            return plus + str(item)
        if letter in "xX" and number and not precision:
            return format(item, letter)
        if letter in "fF" and isinstance(item, float):
            return plus + format(item, f"{precision or '.6'}f")
        if letter == "t" and isinstance(item, bool):
            return values.text(item)
        if letter == "T":
            return values.type_name(item)
    raise TemplateError(f"printf: {whole} of a {values.type_name(item)} is beyond the built-in engine")


def print_(*items: object) -> str:
    """Go puts a space between two neighbours when neither is a string."""
    shown = ""
    for position, item in enumerate(items):
        if position and not isinstance(item, str) and not isinstance(items[position - 1], str):
            shown += " "
        shown += values.text(item)
    return shown


def println(*items: object) -> str:
    return " ".join(values.text(item) for item in items) + "\n"


TABLE: dict[str, Callable[..., Any]] = {
    "b64dec": b64dec,
    "b64enc": b64enc,
    "cat": cat,
    "contains": contains,
    "hasPrefix": has_prefix,
    "hasSuffix": has_suffix,
    "indent": indent,
    "join": join,
    "lower": lower,
    "mustRegexFind": regex_find,
    "mustRegexFindAll": regex_find_all,
    "mustRegexMatch": must_regex_match,
    "mustRegexReplaceAll": regex_replace_all,
    "mustRegexReplaceAllLiteral": regex_replace_all_literal,
    "mustRegexSplit": regex_split,
    "mustToJson": to_json,
    "mustToPrettyJson": to_pretty_json,
    "mustToRawJson": to_raw_json,
    "mustToYaml": to_yaml,
    "nindent": nindent,
    "plural": plural,
    "print": print_,
    "printf": printf,
    "println": println,
    "quote": quote,
    "regexFind": regex_find,
    "regexFindAll": regex_find_all,
    "regexMatch": regex_match,
    "regexReplaceAll": regex_replace_all,
    "regexReplaceAllLiteral": regex_replace_all_literal,
    "regexSplit": regex_split,
    "repeat": repeat,
    "replace": replace,
    "sha1sum": sha1sum,
    "sha256sum": sha256sum,
    "slugify": slugs.slugify,
    "split": split,
    "splitList": split_list,
    "squote": squote,
    "substr": substr,
    "toJson": to_json,
    "toPrettyJson": to_pretty_json,
    "toRawJson": to_raw_json,
    "toString": string,
    "toStrings": strings,
    "toYaml": to_yaml,
    "trim": trim,
    "trimAll": trim_all,
    "trimPrefix": trim_prefix,
    "trimSuffix": trim_suffix,
    "trunc": trunc,
    "upper": upper,
}
