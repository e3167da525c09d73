"""What a command line says: its global options, and everything once the command is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing.argv_tokens import Token, spelled, tokens
from flux_resourceset.cli.parsing.grammar import GLOBALS, Argument, Option, suggestion


class Values:
    """What a command line says: positional words and options by key."""

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def set(self, key: str, value: Any) -> None:
        self._given[key] = value

    def add(self, key: str, value: str) -> None:
        self._given.setdefault(key, []).append(value)

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def text(self, key: str) -> str | None:
        value = self._given.get(key)
        return None if value is None else str(value)

    def required(self, key: str) -> str:
        return str(self._given[key])

    def flag(self, key: str) -> bool:
        return bool(self._given.get(key, False))

    def many(self, key: str) -> list[str]:
        return list(self._given.get(key, ()))


def global_values(read: Iterable[Token]) -> Values:
    """The global options, wherever they stand, of tokens that were read against them; mistakes are left for later."""
    values = Values()
    for token in read:
        if token.option is None or token.is_unfinished:
            continue
        if not token.option.metavar:
            values.set(token.option.key, True)
        elif not token.option.choices or token.value in token.option.choices:
            values.set(token.option.key, token.value)
    return values


def command_values(options: Sequence[Option], arguments: Sequence[Argument], words: Sequence[str], where: str) -> Values:
    """The words read against what a command takes; whatever does not fit is refused."""
    known = (*GLOBALS, *options)  # a command may give a global spelling another meaning
    values = Values()
    positional: list[str] = []
    for token in tokens(words, known):
        if not token.is_option:
            positional.append(token.word)
        elif token.option is None:
            raise failures.usage(f"unknown option {token.word}{suggestion(token.word, spelled(known))}; see {where} --help")
        elif token.option.metavar:
            _put(values, token.option, token)
        elif token.value is not None:
            raise failures.usage(f"{token.word} takes no value; see {where} --help")
        else:
            values.set(token.option.key, token.switch)
    if not values.flag("help"):
        _place(values, arguments, positional, where)
    return values


def _put(values: Values, option: Option, token: Token) -> None:
    name, value = token.word, token.value
    if value is None:
        raise failures.usage(f"{name} needs a value: {option.shown}")
    if option.choices and value not in option.choices:
        raise failures.usage(f"{name} is {value!r}; it must be one of {', '.join(option.choices)}")
    if option.least is not None and not _is_whole(value, option.least):
        raise failures.usage(f"{name} is {value!r}; it must be a whole number of at least {option.least}")
    if option.many:
        values.add(option.key, value)
    elif option.key in values:
        raise failures.usage(f"{name} is given twice")
    else:
        values.set(option.key, value)


def _is_whole(text: str, least: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least  # longer ones fit no counter


def _place(values: Values, arguments: Sequence[Argument], positional: list[str], where: str) -> None:
    if len(positional) > len(arguments):
        extra = positional[len(arguments)]
        raise failures.usage(f"unexpected argument {extra!r}; see {where} --help")
    for argument, word in zip(arguments, positional, strict=False):
        if argument.choices and word not in argument.choices:
            raise failures.usage(f"<{argument.name}> is {word!r}; it must be one of {', '.join(argument.choices)}")
        values.set(argument.name, word)
    for argument in arguments[len(positional) :]:
        if not argument.optional:
            raise failures.usage(f"{argument.shown} is missing: {where} {' '.join(a.shown for a in arguments)}")
