"""What a command line says, by the keys of options and the names of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing.grammar import Argument, Option


class Given(NamedTuple):
    """An option as it was typed."""

    option: Option
    spelling: str
    value: str | None = None
    switch: bool = True  # False: --no-switch


class Values:
    """What was given: arguments and options by key."""

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


def command_values(given: Iterable[Given], words: Sequence[str], arguments: Sequence[Argument], where: str) -> Values:
    """The options and the other words of a command; whatever its table does not allow is refused."""
    values = Values()
    for each in given:
        if each.value is None:
            values.set(each.option.key, each.switch)
        else:
            _put(values, each.option, each.spelling, each.value)
    _place(values, arguments, words, where)
    return values


def _put(values: Values, option: Option, name: str, value: str) -> None:
    if not option.allows(value):
        remedy = f"; {option.otherwise}" if option.otherwise else ""
        raise failures.usage(f"{name} is {value!r}; it must be one of {option.told_choices}{remedy}")
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


def _place(values: Values, arguments: Sequence[Argument], words: Sequence[str], where: str) -> None:
    takes_all = [argument for argument in arguments if argument.many]  # the last one, if any
    if len(words) > len(arguments) and not takes_all:
        extra = words[len(arguments)]
        raise failures.usage(f"unexpected argument {extra!r}; see {where} --help")
    for argument in takes_all:
        for word in words[len(arguments) - 1 :]:
            values.add(argument.name, word)
    for argument, word in zip((each for each in arguments if not each.many), words, strict=False):
        if argument.choices and word not in argument.choices:
            raise failures.usage(f"<{argument.name}> is {word!r}; it must be one of {', '.join(argument.choices)}")
        values.set(argument.name, word)
    for argument in arguments[len(words) :]:
        if not argument.optional:
            raise failures.usage(f"<{argument.name}> is missing: {where} {' '.join(a.shown for a in arguments)}")
