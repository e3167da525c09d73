"""JSON from outside, read strictly: what two readers could take differently is refused."""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, NoReturn

from flux_resourceset import errors

MAX_DEPTH = 64  # documents have five levels; deeper ones are made to break parsers
MAX_NAMES = (
    100_000  # in one object: a whole fleet is kept in arrays, and a larger table grows in a leap that nobody can interrupt
)
MAX_STRING = 1024 * 1024  # no document is that large

# The scanner in C lets nobody else run until it is through. It gets no more than this at once: a millisecond of the worst.
_WINDOW = 64 * 1024

_SHORT = 1000  # most strings and all numbers

_SPACE = re.compile(r"[ \t\n\r]+")


def decoded(raw: bytes | bytearray) -> Any:
    """What the bytes say, or MalformedBody."""
    text = _Text(raw)
    try:
        value = _Reader(text).whole() if len(text) > _WINDOW else _DECODER.decode(text[:])
    except RecursionError as exc:
        raise _too_deep() from exc
    except ValueError as exc:
        raise _malformed(str(exc)) from exc
    _check(value, 0)
    return value


def elements(raw: bytes) -> int:
    """At least as many values as a text, or a piece of one, can add, counted without reading it."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object, or MalformedBody if two have one name: most readers take the last, in silence."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _malformed(duplicate_key(name))
            seen.add(name)
    return result


def duplicate_key(name: str) -> str:
    """The words for it, in JSON and YAML."""
    quoted = json.dumps(errors.shortened(name, 200), ensure_ascii=False)
    return f"duplicate key {quoted.encode(errors='backslashreplace').decode()}"  # it may hold half of a surrogate pair


def _malformed(reason: str) -> errors.MalformedBody:
    return errors.MalformedBody(f"invalid JSON value: {reason}")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {errors.shortened(text, 200)} is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_float=_float, parse_constant=_constant)


class _Text:
    """What bytes say, decoded and kept in blocks of one length: to make one long string of them would let nobody else run."""

    def __init__(self, raw: bytes | bytearray) -> None:
        self._blocks: list[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")()
        text = ""
        for start in range(0, len(raw), _WINDOW):
            kept = len(decoder.getstate()[0])  # bytes of a character that was cut
            try:
                text += decoder.decode(raw[start : start + _WINDOW], start + _WINDOW >= len(raw))
            except UnicodeDecodeError as exc:
                raise _malformed(f"not UTF-8: {exc.reason} at byte {start - kept + exc.start}") from exc
            if len(text) >= _WINDOW:
                self._blocks.append(text[:_WINDOW])
                text = text[_WINDOW:]
        self._length = len(self._blocks) * _WINDOW + len(text)
        self._blocks.append(text)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, wanted: slice) -> str:
        start, stop, _ = wanted.indices(self._length)
        first, offset = divmod(start, _WINDOW)
        if offset + stop - start <= _WINDOW:
            return self._blocks[first][offset : offset + stop - start]
        joined = "".join(self._blocks[first : stop // _WINDOW + 1])
        return joined[offset : offset + stop - start]


class _Reader:
    """Takes a long text apart: values that fit into the window are scanned at once, larger ones item by item."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self._scan = _DECODER.raw_decode
        self._base = -_WINDOW
        self._window = ""

    def whole(self) -> Any:
        value, end = self._value(self._after_space(0), 0)
        end = self._after_space(end)
        if end != len(self._text):
            raise self._wrong("Extra data", end)
        return value

    def _after_space(self, at: int) -> int:
        while self._text[at : at + 1] <= " " and (space := _SPACE.match(self._text[at : at + _WINDOW])):
            at += space.end()
        return at

    @staticmethod
    def _wrong(what: str, at: int) -> errors.MalformedBody:
        return _malformed(f"{what} (char {at})")

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        first = self._text[at : at + 1]
        if first != "[" and first != "{":
            return self._scanned(at)
        if not 0 <= at - self._base < _WINDOW // 2:
            self._base, self._window = at, self._text[at : at + _WINDOW]
        try:
            value, end = self._scan(self._window, at - self._base)
            return value, self._base + end
        except ValueError:
            pass  # it is cut off by the window, or else wrong, which shows below
        if depth >= MAX_DEPTH:
            raise _too_deep()
        return self._array(at + 1, depth + 1) if first == "[" else self._members(at + 1, depth + 1)

    def _scanned(self, at: int) -> tuple[Any, int]:
        """A string, a number or a word; on a piece of the text, for these too are read without a break."""
        for size in (_SHORT, _WINDOW, MAX_STRING):
            piece = self._text[at : at + size]
            try:
                value, end = self._scan(piece, 0)
            except json.JSONDecodeError as exc:
                if piece[:1] != '"' or at + size >= len(self._text):
                    raise self._wrong(exc.msg, at + exc.pos) from exc
                continue
            if end < size - 2 or at + size >= len(self._text):  # a number may be cut before, within or after its "e+"
                return value, at + end
        raise _malformed(f"a string or number has more than {MAX_STRING} characters")

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self._after_space(at)
        if self._text[at : at + 1] == "]":
            return items, at + 1
        while True:
            value, at = self._value(at, depth)
            items.append(value)
            at, over = self._separator(at, "]")
            if over:
                return items, at

    def _members(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        at = self._after_space(at)
        if self._text[at : at + 1] == "}":
            return members, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                raise self._wrong("Expecting property name enclosed in double quotes", at)
            name, at = self._scanned(at)
            at = self._after_space(at)
            if self._text[at : at + 1] != ":":
                raise self._wrong("Expecting ':' delimiter", at)
            value, at = self._value(self._after_space(at + 1), depth)
            if name in members:
                raise _malformed(duplicate_key(name))
            members[name] = value
            if len(members) > MAX_NAMES:
                raise _malformed(f"an object has more than {MAX_NAMES} names")
            at, over = self._separator(at, "}")
            if over:
                return members, at

    def _separator(self, at: int, closing: str) -> tuple[int, bool]:
        at = self._after_space(at)
        sign = self._text[at : at + 1]
        if sign == closing:
            return at + 1, True
        if sign != ",":
            raise self._wrong("Expecting ',' delimiter", at)
        return self._after_space(at + 1), False


def _check(value: Any, depth: int) -> None:
    """Depth, and escapes of half a character, which no UTF-8 can carry on."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as exc:
            raise _malformed("it holds half of a surrogate pair, which is not Unicode text") from exc
    elif isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise _too_deep()
        for item in value:
            _check(item, depth + 1)
        if isinstance(value, dict):
            for item in value.values():
                _check(item, depth + 1)


def _too_deep() -> errors.MalformedBody:
    return _malformed(f"it is nested deeper than {MAX_DEPTH} levels")
