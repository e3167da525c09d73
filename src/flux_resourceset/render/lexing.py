"""Template text becomes text and actions: the lexical half of Go's text/template, with << and >>."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from flux_resourceset.render.failures import TemplateError

LEFT, RIGHT = "<<", ">>"

# In the order in which they are tried: a number may begin with a sign or a dot, a field with a dot.
_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<raw>`[^`]*`)
  | (?P<char>'(?:\\.|[^'\\\n])+')
  | (?P<number>[+-]?(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+)?))
  | (?P<variable>\$\w*)
  | (?P<field>\.[^\W\d]\w*)
  | (?P<dot>\.)
  | (?P<name>[^\W\d]\w*)
  | (?P<sign>:=|=|,|\||\(|\))
    """,
    re.VERBOSE,
)

# directly behind the mark, and up to it: anything else in the action is an error
_COMMENT = re.compile(r"/\*.*?\*/(\s-)?" + RIGHT, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int
    glued: bool  # nothing stands between it and the token before: `a.b` is one operand, `a .b` are two


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of plain text (no tokens) or one action."""

    line: int
    text: str
    tokens: tuple[Token, ...] | None = None


def pieces(source: str) -> Iterator[Piece]:
    """Text and actions in turn, the white space that trim markers name already taken away."""
    position, trims = 0, False
    while True:
        left = source.find(LEFT, position)
        text = source[position:] if left < 0 else source[position:left]
        if trims:
            text = text.lstrip(" \t\r\n")
        if left < 0:
            yield Piece(_line(source, position), text)
            return
        begin = left + len(LEFT)
        if source[begin : begin + 1] == "-" and source[begin + 1 : begin + 2] in (" ", "\t", "\r", "\n"):
            text = text.rstrip(" \t\r\n")
            begin += 2  # with the space that belongs to the mark
        yield Piece(_line(source, position), text)
        tokens, position, trims = _action(source, begin, _line(source, left))
        if tokens:
            yield Piece(_line(source, left), "", tokens)


def _action(source: str, begin: int, line: int) -> tuple[tuple[Token, ...], int, bool]:
    """The tokens of an action, where it ends, and whether it trims what follows."""
    comment = _COMMENT.match(source, begin)
    if comment:
        return (), comment.end(), bool(comment.group(1))
    tokens: list[Token] = []
    position, spaced = begin, True
    while True:
        trims = spaced and position > begin and source.startswith("-" + RIGHT, position)
        if trims or source.startswith(RIGHT, position):
            if not tokens:
                raise TemplateError("an action is empty", line)
            return tuple(tokens), position + trims + len(RIGHT), trims
        match = _TOKEN.match(source, position)
        if match is None:
            raise TemplateError(_unlexed(source, position), _line(source, position) if position < len(source) else line)
        if match.lastgroup != "space":
            assert match.lastgroup is not None
            tokens.append(Token(match.lastgroup, match.group(), _line(source, position), not spaced))
        spaced = match.lastgroup == "space"
        position = match.end()


def _unlexed(source: str, position: int) -> str:
    if position >= len(source):
        return f"an action is not closed with {RIGHT}"
    character = source[position]
    if character in "\"`'":
        return "a string is not closed"
    return f"unexpected {character!r} in an action"


def _line(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1


def number(token: Token) -> int | float:
    """The value of a number; one that leads with a zero is octal."""
    digits = token.text.lstrip("+-").replace("_", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        value = int(token.text.replace("_", ""), 8) if octal else _decimal(token.text)
    except ValueError:
        raise TemplateError(f"bad number {token.text}", token.line) from None
    if not math.isfinite(value) if isinstance(value, float) else not -(2**63) <= value < 2**63:
        raise TemplateError(f"the number {token.text} is too large", token.line)
    return value


def _decimal(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def code(token: Token) -> int:
    """The number that a character stands for."""
    text = unquoted(token, bytes_are_text=True)
    if len(text) != 1:
        raise TemplateError(f"{token.text} is not one character", token.line)
    return ord(text)


def unquoted(token: Token, bytes_are_text: bool = False) -> str:
    """The value of an interpreted string or a character."""

    def character(match: re.Match[str]) -> str:
        for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
            if match.group(group):
                value = int(match.group(group), base)
                if group in (1, 4) and value > 0x7F and not bytes_are_text:
                    raise TemplateError(f"{match.group()} is a byte, which is beyond the built-in engine", token.line)
                if value > 0x10FFFF or 0xD800 <= value < 0xE000:
                    raise TemplateError(f"{match.group()} is no character", token.line)
                return chr(value)
        if match.group(5) not in _SIMPLE:
            raise TemplateError(f"unknown escape {match.group()}", token.line)
        return _SIMPLE[match.group(5)]

    return _ESCAPE.sub(character, token.text[1:-1])
