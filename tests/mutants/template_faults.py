"""Faults in the shipped views: text that is not quoted, conditions turned, lines left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mutants.fault import Fault

_QUOTED = re.compile(r" \| quote(?= >>)")
_CONDITION = re.compile(r"(?<=if )(.+?)(?= >>)")
_KIND = re.compile(r'^(?:    )?kind: (?:<< ternary ")?(\w+)', re.MULTILINE)  # of an object, not of what it refers to
_LEAF = re.compile(r"^ +(- )?(?!#)[^\s#<]\S*: +(?![|>]$)\S.*\n", re.MULTILINE)  # a key with its value, nothing below it


def faults(path: str, text: str) -> list[Fault]:
    return sorted(_made(path, text), key=lambda fault: fault.start)


def _made(path: str, text: str) -> Iterator[Fault]:
    for found in _QUOTED.finditer(text):
        yield Fault(path, _object(text, found.start()), *found.span(), "", text)
    for found in _CONDITION.finditer(text):
        yield Fault(path, _object(text, found.start()), *found.span(), f"not ({found[1]})", text)
    for found in _LEAF.finditer(text):
        yield Fault(path, _object(text, found.start()), found.start(), found.end() - 1, "", text)


def _object(text: str, offset: int) -> str:
    """The kind of the object that it stands in."""
    return str(["the beginning", *_KIND.findall(text, 0, offset)][-1])
