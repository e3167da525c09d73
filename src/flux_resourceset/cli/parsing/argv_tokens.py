"""The words of a command line as tokens: the only place that knows what dashes mean.

They are `--option value`, `--option=value`, `-o value`, `-ovalue`, `--switch`, `--no-switch`, and `--`, after which no word is an
option. An option takes the next word whatever it is. Nothing is refused here: a token says whether it is unknown or unfinished.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from flux_resourceset.cli.parsing.grammar import Option


class Token(NamedTuple):
    place: int  # of its first word in the command line
    word: str  # a positional one, or the option as it was typed, without its value
    is_option: bool = False
    option: Option | None = None  # None if its name is unknown
    value: str | None = None  # None: nobody gave one
    switch: bool = True  # False: --no-switch

    @property
    def is_unknown(self) -> bool:
        return self.is_option and self.option is None

    @property
    def is_unfinished(self) -> bool:
        """Whether it needs a value and the command line ends before it."""
        return self.option is not None and bool(self.option.metavar) and self.value is None


def tokens(words: Sequence[str], options: Iterable[Option]) -> list[Token]:
    """The words read against the options that are known; of two with the same spelling the later one counts."""
    known = spelled(options)
    read: list[Token] = []
    place = 0
    while place < len(words):
        if words[place] == "--":
            return read + [Token(later, words[later]) for later in range(place + 1, len(words))]
        token, length = _token(words, place, known)
        read.append(token)
        place += length
    return read


def begins_option(before: Sequence[str], word: str, options: Iterable[Option]) -> bool:
    """Whether an unfinished word behind others is to become an option: `-` and `--` are, but nothing behind another `--`."""
    return tokens([*before, f"{word}…"], options)[-1].is_option


def _token(words: Sequence[str], place: int, known: dict[str, tuple[Option, bool]]) -> tuple[Token, int]:
    """The token that begins at a place, and of how many words it is."""
    word = words[place]
    if not word.startswith("-") or word == "-":  # - alone stands for stdin
        return Token(place, word), 1
    name, value = _name_and_value(word, known)
    if name not in known:
        return Token(place, name, True, None, value), 1
    option, switch = known[name]
    takes_next = bool(option.metavar) and value is None and place + 1 < len(words)
    return Token(place, name, True, option, words[place + 1] if takes_next else value, switch), 2 if takes_next else 1


def _name_and_value(word: str, known: dict[str, tuple[Option, bool]]) -> tuple[str, str | None]:
    name, equals, value = word.partition("=")
    short = word[:2]
    if name not in known and not word.startswith("--") and short in known and known[short][0].metavar:
        return short, word[2:]  # -ojson
    return name, value if equals else None


def spelled(options: Iterable[Option]) -> dict[str, tuple[Option, bool]]:
    """Options by every way to write them, with the value that a switch then has."""
    by_spelling: dict[str, tuple[Option, bool]] = {}
    for option in options:
        for spelling in option.spellings:
            by_spelling[spelling] = (option, True)
        if option.negatable:
            by_spelling[f"--no-{option.key}"] = (option, False)
    return by_spelling
