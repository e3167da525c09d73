"""JSON written and freed in pieces, none of them long: what runs in C lets nobody else run until it is through."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

_as_given = msgspec.json.Encoder().encode
_in_order = msgspec.json.Encoder(order="sorted").encode


def pieces(value: Any, levels: int, *, ordered: bool = False, lines: bool = False) -> Iterator[bytes]:
    """The JSON of a value, with so many of its outer levels taken apart. An iterator is written as an array.

    `ordered`: names sorted, whatever their order was. `lines`: each item of an array that is taken apart on a line of its own.
    """
    encode = _in_order if ordered else _as_given
    if levels > 0 and isinstance(value, Mapping):
        names = sorted(value) if ordered else value
        yield from members((name, pieces(value[name], levels - 1, ordered=ordered, lines=lines)) for name in names)
    elif levels > 0 and isinstance(value, msgspec.Struct):
        fields = _fields(value, ordered)
        yield from members((name, pieces(field, levels - 1, ordered=ordered, lines=lines)) for name, field in fields)
    elif levels > 0 and isinstance(value, list | tuple | Iterator):
        yield from _items(value, levels, encode, ordered, lines)
    else:
        yield encode(value)


def _items(value: Iterable[Any], levels: int, encode: Callable[[Any], bytes], ordered: bool, lines: bool) -> Iterator[bytes]:
    before, between, after = (b"[\n", b",\n", b"\n]") if lines else (b"[", b",", b"]")
    empty = True
    for item in value:
        if levels == 1:
            yield before + encode(item)
        else:
            yield before
            yield from pieces(item, levels - 1, ordered=ordered, lines=lines)
        before, empty = between, False
    yield b"[]" if empty else after


def members(named: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """An object, from the pieces of its members."""
    before = b"{"
    for name, value in named:
        yield before + _as_given(name) + b":"
        yield from value
        before = b","
    yield b"{}" if before == b"{" else b"}"


def _fields(value: msgspec.Struct, ordered: bool) -> Iterator[tuple[str, Any]]:
    """As msgspec would: by their names in JSON, and without those at their defaults where the type says so."""
    names, defaults = value.__struct_fields__, value.__struct_defaults__
    optional = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) if _omits_defaults(value) else {}
    written = zip(value.__struct_encode_fields__, names, strict=True)
    for in_json, name in sorted(written) if ordered else written:
        field = getattr(value, name)
        if name not in optional or field != optional[name]:
            yield in_json, field


def _omits_defaults(value: msgspec.Struct) -> bool:
    return value.__struct_config__.omit_defaults


def sha256(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def let_go(value: Any, levels: int) -> None:
    """Empty a value that nobody else holds, from the inside: to free it in one go would take as long as to read it."""
    while levels > 0 and value and isinstance(value, list | dict):
        let_go(value.popitem()[1] if isinstance(value, dict) else value.pop(), levels - 1)
