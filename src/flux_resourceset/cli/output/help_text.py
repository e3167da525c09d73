"""Help as people read it on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import click

from flux_resourceset.cli.output.printing import Output, width
from flux_resourceset.cli.parsing.grammar import GLOBALS, PROGRAM, Argument, Command, Group, Option


def show_all(output: Output, groups: Iterable[Group]) -> None:
    output.hold()
    every = list(groups)
    kinds = [group for group in every if group.of_kind]
    others = [group for group in every if not group.of_kind and not group.hidden]
    _paragraph(output, "Describe a fleet of Kubernetes clusters, and see what Flux makes of it.")
    _paragraph(output, f"Usage: {PROGRAM} <command> [options]", f"       {PROGRAM} --version")
    _section(output, "Kinds", [(group.word, group.summary) for group in kinds])
    _section(output, "Commands", [(group.word, group.summary) for group in others])
    _options(output, "Global options, before or after the command", GLOBALS)
    more = f"See {PROGRAM} <command> --help. The server and the tokens come from FLUX_API_URL, FLUX_API_TOKEN and "
    more += f"FLUX_API_WRITE_TOKEN, or from a context: {PROGRAM} config set-context --help."
    for line in _wrapped(more):
        output.line(line)


def show_group(output: Output, group: Group) -> None:
    output.hold()
    _paragraph(output, " ".join(group.summary.split()))
    title, word = ("Kinds", "<kind>") if group.by_kind else ("Commands", "<command>")
    _paragraph(output, f"Usage: {PROGRAM} {group.word} {word} [options]")
    _section(output, title, [(" ".join(command.words[1:]), command.summary) for command in group.commands])
    output.line(f"See {PROGRAM} {group.word} {word} --help.")


def show(output: Output, command: Command, others: Iterable[Command] = ()) -> None:
    output.hold()
    _paragraph(output, " ".join(command.summary.split()))
    _paragraph(output, f"Usage: {command.usage}")
    if command.details:
        _paragraph(output, *_wrapped(command.details))
    _section(output, "Commands", [(other.name, other.summary) for other in others])
    _arguments(output, command.arguments)
    _options(output, "Options", command.options)
    taken = {option.short for option in command.options if option.short}
    _options(output, "Global options", [option for option in GLOBALS if option.short not in taken])
    if command.examples:
        output.line(output.coloured("Examples:", "bold"))
        for example in command.examples:
            output.line(f"  {PROGRAM} {example}")


_HYPHEN = "\u2011"  # at which click breaks no line; at the plain one it would, within --no-verify


def _wrapped(text: str) -> list[str]:
    return click.wrap_text(text.replace("-", _HYPHEN), width()).replace(_HYPHEN, "-").splitlines()


def _paragraph(output: Output, *lines: str) -> None:
    for line in (*lines, ""):
        output.line(line)


def _arguments(output: Output, arguments: Iterable[Argument]) -> None:
    _section(output, "Arguments", [(argument.shown, argument.help) for argument in arguments])


def _options(output: Output, title: str, options: Iterable[Option]) -> None:
    rows = [(option.shown if option.short else f"    {option.shown}", option.help) for option in options]
    _section(output, title, rows)


def _section(output: Output, title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    output.line(output.coloured(f"{title}:", "bold"))
    formatter = click.HelpFormatter(width=width())
    with formatter.indentation():
        formatter.write_dl([(name, text.replace("-", _HYPHEN)) for name, text in rows], col_max=34)
    for line in formatter.getvalue().replace(_HYPHEN, "-").splitlines():
        output.line(line)
    output.line()
