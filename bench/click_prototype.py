"""Our command line, as it would be on click 8, as far as bench/click_trial.py measures it.

Lazy groups from our table of commands, our help, click's completion, and `cluster list` with the same requests as ours; not
options that may stand anywhere, nor our messages. What not every command needs is imported where it is needed, as in ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from flux_resourceset.cli import known_kinds
from flux_resourceset.cli.parsing import command_table, grammar

if TYPE_CHECKING:
    from flux_resourceset.client import Client


class Lazy(click.Group):
    """Makes a command when its word is asked for."""

    def __init__(self, name: str, made: Mapping[str, Callable[[], click.Command]], help_text: Callable[[], str] | None) -> None:
        super().__init__(name)
        self._made, self._help_text = made, help_text

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._made)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._made[cmd_name]() if cmd_name in self._made else None

    def get_help(self, ctx: click.Context) -> str:
        return self._help_text() if self._help_text else super().get_help(ctx)


def run() -> None:
    cached = known_kinds.from_cache(os.environ, os.environ["FLUX_API_URL"])
    groups = command_table.groups(cached or known_kinds.Kinds(known_kinds.packaged()))
    made = {group.word: partial(of_group, group) for group in groups}
    Lazy(grammar.PROGRAM, made, partial(help_of, groups)).main(prog_name=grammar.PROGRAM)


def help_of(groups: tuple[grammar.Group, ...]) -> str:
    import io

    from flux_resourceset.cli.output import help_text, printing

    help_text.show_all(printing.Output(text := io.StringIO(), "table", os.environ), groups)
    return text.getvalue().rstrip("\n")


def of_group(group: grammar.Group) -> click.Command:
    if group.commands[0].words == (group.word,):
        return of_command(group.commands[0])
    return Lazy(group.word, {command.words[1]: partial(of_command, command) for command in group.commands}, None)


def of_command(command: grammar.Command) -> click.Command:
    arguments = [click.Argument([each.name], shell_complete=lambda *_: ids(command.kind)) for each in command.arguments]
    options = [
        click.Option([*option.spellings], is_flag=not option.metavar, multiple=option.many, help=option.help)
        for option in (*command.options, *grammar.GLOBALS[1:])  # --help is click's own
    ]
    return click.Command(command.words[-1], params=[*arguments, *options], callback=lambda **_: print_all(command.kind))


def ids(kind: str) -> list[str]:
    return [document["id"] for document in server().get(f"/{kind}").objects()]


def print_all(kind: str) -> None:
    from flux_resourceset.cli.output import printing

    known_kinds.from_server(asked := server(), os.environ)  # ours does so before every command of a kind
    printing.Output(sys.stdout, None, os.environ).json(asked.get(f"/{kind}").objects())


def server() -> Client:
    from flux_resourceset import client

    return client.Client(os.environ["FLUX_API_URL"], {"read": os.environ["FLUX_API_TOKEN"]})
