"""The words of a command line, read by click: which options were given, as they were typed, and which words are none."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import click

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing.grammar import GLOBALS, PROGRAM, Option, suggestion
from flux_resourceset.cli.parsing.values import Given, Values


class Spelling(click.Option):
    """One way to write an option, so that a message can say what was typed."""

    def __init__(self, option: Option, spelling: str, switch: bool = True) -> None:
        super().__init__([spelling, "value"], is_flag=not option.metavar or None, multiple=bool(option.metavar))
        self.name = spelling
        self.option, self.switch = option, switch


@functools.cache
def _spellings(option: Option) -> tuple[Spelling, ...]:
    negated = (Spelling(option, f"--no-{option.key}", False),) if option.negatable else ()
    return (*(Spelling(option, spelling) for spelling in option.spellings), *negated)


def params(options: Iterable[Option]) -> list[click.Parameter]:
    """Every spelling of the global options and of others, which may give a global spelling another meaning."""
    return list({each.name: each for option in (*GLOBALS, *options) for each in _spellings(option)}.values())


def read(command: click.Command, ctx: click.Context, words: Sequence[str]) -> tuple[list[Given], list[str]]:
    """The options, one after another, and the other words."""
    try:
        values, others, order = command.make_parser(ctx).parse_args(list(words))
    except click.UsageError as exc:
        raise failures.usage(_refusal(command, exc)) from exc
    return [_given(param, values) for param in order if isinstance(param, Spelling)], others


def _refusal(command: click.Command, exc: click.UsageError) -> str:
    """What click refuses, in our words: an unknown option, a value too few, or one too many."""
    typed = str(getattr(exc, "option_name", exc))
    see = f"see {f'{PROGRAM} {command.name}'.rstrip()} --help"
    known = {each.name: each.option for each in command.params if isinstance(each, Spelling)}
    if typed == "--output-dir" and "--directory" in known:
        return f"--output-dir is gone: say --directory DIR; {see}"
    if typed not in known:
        return f"unknown option {typed}{suggestion(typed, known)}; {see}"
    if known[typed].metavar:
        return f"{typed} needs a value: {known[typed].shown}"
    return f"{typed} takes no value; {see}"


def _given(param: Spelling, values: dict[str, Any]) -> Given:
    value = values[param.name].pop(0) if param.multiple else None
    if value is not None and param.name == param.option.short:
        value = value.removeprefix("=")  # click takes that of -o=json for a part of the value
    return Given(param.option, param.name, value, param.switch)


def global_values(words: Sequence[str]) -> Values:
    """The global options, wherever they stand: they say whom to ask for kinds, and so which commands there are.

    Other options are not known yet, so mistakes are left for later, and -lhome is not taken for an -h.
    """
    reader = click.Command("", params=params(()), add_help_option=False)
    ctx = click.Context(reader, ignore_unknown_options=True, resilient_parsing=True)
    given, _ = read(reader, ctx, ["--?" if _is_other(word) else word for word in words])
    values = Values()
    for each in given:
        if not each.option.metavar:
            values.set(each.option.key, True)
        elif each.value is not None and each.option.allows(each.value):
            values.set(each.option.key, each.value)
    return values


def _is_other(word: str) -> bool:
    """Whether it begins with a short option that is not global."""
    is_short = word.startswith("-") and word[1:2] not in ("", "-")
    return is_short and not any(option.short == word[:2] for option in GLOBALS)
