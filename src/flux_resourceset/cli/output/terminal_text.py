"""Text in which nothing steers a terminal, whatever a server says."""

from __future__ import annotations

import json
import re
from typing import Any

# What JSON allows in a string as it is: DEL and the controls of C1, what separates lines, what turns the direction of text or has
# no shape, and half characters, which no UTF-8 can carry.
STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]")


def printable(text: str) -> str:
    """A line of text in which everything that could steer a terminal, or begin another line, is seen as its escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def escaped(text: str) -> str:
    """The same for JSON, and for double quotes of YAML: what they say stays, and so do their lines."""
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_text(value: Any, indent: int | None = None) -> str:
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))
