"""Text in which nothing steers a terminal, whatever a server says."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any


@functools.cache  # not compiled before it is needed: tables and help do without
def steering() -> re.Pattern[str]:
    """What JSON allows in a string as it is, and no terminal should see: DEL and the controls of C1, what separates lines, what
    turns the direction of text or has no shape, and half characters, which no UTF-8 can carry."""
    return re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")


def printable(text: str) -> str:
    """A line of text in which everything that could steer a terminal, or begin another line, is seen as its escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def harmless(text: str) -> str:
    """A text for other programs: what steers is seen as its escape, and all else is as it was, lines and tabs too."""
    plain = steering().sub(lambda match: _escape(match[0]), text)
    return re.sub("[\x00-\x08\x0b-\x1f]", lambda match: _escape(match[0]), plain)


def escaped(text: str) -> str:
    """The same for JSON, and for double quotes of YAML: what they say stays, and so do their lines."""
    if text.isascii() and "\x7f" not in text:
        return text
    return steering().sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_text(value: Any, indent: int | None = None) -> str:
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: some characters take two, those that sit on others none."""
    if text.isascii():
        return len(text)
    import unicodedata  # not before: most texts need none of it

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def shortened(text: str, width: int) -> str:
    """A text in so many columns; one that is cut ends with …"""
    if columns(text) <= width:
        return text
    cut = text[: max(width - 1, 0)]
    while columns(cut) > max(width - 1, 0):
        cut = cut[:-1]
    return cut.rstrip() + "…"


_INDENT = "      "  # of what is the rest of a line above


def folded(text: str, width: int) -> Iterator[str]:
    """A text on as many lines as it takes, none within a word; a word that is longer than a line is cut."""
    line: str | None = None
    for word in text.split(" "):
        if line is None:
            line = word
        elif columns(line) + 1 + columns(word) <= width:
            line = f"{line} {word}"
        else:
            yield shortened(line, width)
            line = _INDENT + word
    yield shortened(line or "", width)
