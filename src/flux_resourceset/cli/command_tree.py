"""The table of commands as groups and commands of click.

A group is made when its word is read, a command when its group is known. Options may stand anywhere: what a group reads in front
of the word of a command it hands on, and the command reads it again, among its own options.
"""

from __future__ import annotations

import abc
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing import command_table, grammar
from flux_resourceset.cli.parsing.grammar import PROGRAM, Command, Group
from flux_resourceset.cli.parsing.values import command_values
from flux_resourceset.cli.parsing.word_reading import params, read
from flux_resourceset.cli.session import Session

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

UNFINISHED = "\0"  # in the place of the word that is completed: where it lands tells what could stand there. Nobody can type it.
_BY_WORD = "word"  # help that is asked for as in `help cluster list`
_OBJECTS = 100_000  # new ones before garbage is looked for: an answer about a fleet is none, and is walked through as it is read


class Words(click.Group):
    """Where a word is due that leads on."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["words"] = list(args)
        ctx.params["given"], ctx.args = read(self, ctx, args)
        return ctx.args

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        word, *others = args
        before = ctx.params["words"][: -len(args)]
        return word, None if word == UNFINISHED else self.get_command(ctx, word), [*before, *others]

    def invoke(self, ctx: click.Context) -> int:
        if not ctx.args:
            return self.without_word(ctx.obj)
        word, command, args = self.resolve_command(ctx, ctx.args)
        assert command is not None  # an unknown word was refused
        with command.make_context(word, args, parent=ctx) as inner:
            return int(command.invoke(inner))

    @abc.abstractmethod
    def without_word(self, session: Session) -> int: ...

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from flux_resourceset.cli import completion

        waiting = completion.waiting(ctx.params["given"], UNFINISHED)
        if waiting is not None:
            return completion.values(waiting, ctx.obj, incomplete)
        return completion.items(self.list_commands(ctx) if ctx.args == [UNFINISHED] else ())


class Root(Words):
    def __init__(self) -> None:
        super().__init__("", params=params(()), add_help_option=False)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name == "help":
            ctx.obj.values.set("help", _BY_WORD)
            return self
        group = _group(ctx.obj, cmd_name, guess=ctx.resilient_parsing)
        return Leaf(group.commands[0]) if group.commands[0].is_own and len(group.commands) == 1 else Branch(group)

    def without_word(self, session: Session) -> int:
        from flux_resourceset.cli.output import help_text

        help_text.show_all(session.output, command_table.groups(session.likely_kinds))
        return failures.OK

    def list_commands(self, ctx: click.Context) -> list[str]:
        words = [group.word for group in command_table.groups(ctx.obj.likely_kinds)]
        return words + (_option_names(grammar.GLOBALS) if _takes_options(self, ctx) else [])


def _group(session: Session, word: str, *, guess: bool) -> Group:
    """The commands behind a first word; those of kinds come from the server, unless it is enough to guess."""
    group = command_table.find(command_table.fixed(), word)
    if group is not None:
        return group
    known = session.likely_kinds if guess or session.asks_help or not session.target.url else session.kinds
    group = command_table.named(known, word)
    if group is None and session.asks_help and session.target.url:
        group = command_table.named(session.kinds, word)
    if group is None:
        meant = grammar.suggestion(word, [group.word for group in command_table.groups(known)])
        raise failures.usage(f"unknown command {word!r}{meant}; see {PROGRAM} --help")
    return group


class Branch(Words):
    """The commands of a group. If the first one needs no further word, it is meant wherever no other is named."""

    def __init__(self, group: Group) -> None:
        super().__init__(group.word, add_help_option=False)
        self._group = group
        self._own = next((command for command in group.commands if command.is_own), None)
        named = [command for command in group.commands if not command.is_own]
        self._named = {command.words[1]: command for command in named}
        self._spelled = {**{alias: command for command in named for alias in command.aliases}, **self._named}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self._own and ctx.obj.asks_help and not ctx.resilient_parsing:  # which is given whatever else is there
            ctx.obj.values.set("help", _BY_WORD)
            ctx.params["words"] = args
            ctx.args = [word for word in args if word in self._spelled][:1]
            return ctx.args
        if args[:1] and args[0].startswith("-"):  # an option in front of the word, which may be any command's
            self.params = params(option for command in self._group.commands for option in command.options)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if self._own is None or args[0] == UNFINISHED or self._apart(args[0])[0] in self._spelled or self._group.by_kind:
            word, command, others = super().resolve_command(ctx, args)
            return word, command, [*self._apart(args[0])[1:], *others]
        return self.name, Leaf(self._own), ctx.params["words"]

    def _apart(self, word: str) -> list[str]:
        """The word of a command; where that is a kind, KIND/ID is two words, as in what -o name prints."""
        kind, slash, id = word.partition("/")
        return [kind, id] if slash and self._group.by_kind and kind in self._spelled else [word]

    def invoke(self, ctx: click.Context) -> int:
        if ctx.args or self._own is None:
            return super().invoke(ctx)
        command = Leaf(self._own, tuple(self._named.values()))
        with command.make_context(self.name, ctx.params["words"], parent=ctx) as inner:
            return command.invoke(inner)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        word = self._apart(cmd_name)[0]
        if word in self._spelled:
            return Leaf(self._spelled[word])
        meant = grammar.suggestion(cmd_name, self._spelled)
        if self._group.by_kind:
            raise failures.usage(f'kind "{cmd_name}" not found{meant}; there are {", ".join(self._named)}')
        names = self.list_commands(ctx)
        raise failures.usage(f"{self.name} has no command {cmd_name!r}{meant}; there are {', '.join(names)}")

    def without_word(self, session: Session) -> int:
        if not session.asks_help:
            missing = f"say what to {self.name}" if self._group.by_kind else f"say what to do with {self.name}"
            raise failures.usage(f"{missing}: {', '.join(self._named)}")
        from flux_resourceset.cli.output import help_text

        help_text.show_group(session.output, self._group)
        return failures.OK

    def list_commands(self, ctx: click.Context) -> list[str]:
        options = (*self._own.options, *grammar.GLOBALS) if self._own else ()
        return [*self._named, *(_option_names(options) if options and _takes_options(self, ctx) else ())]


class Leaf(click.Command):
    """A command of the table."""

    def __init__(self, command: Command, others: tuple[Command, ...] = ()) -> None:
        super().__init__(command.name, params=params(command.options), add_help_option=False)
        self._command = command
        self._others = others  # that begin with its word

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and ctx.obj.asks_help and not self._is_help(ctx, args):
            ctx.obj.values.set("help", False)
        if ctx.resilient_parsing or not ctx.obj.asks_help:  # help is given whatever else is there
            ctx.params["words"] = args
            ctx.params["given"], ctx.args = read(self, ctx, args)
        return ctx.args

    def _is_help(self, ctx: click.Context, args: list[str]) -> bool:
        """Whether help is asked for, or --help is the value of an option: a gate must not pass because of that."""
        try:
            given, _ = read(self, ctx, args)
        except failures.Failure:
            return True
        return ctx.obj.values.text("help") == _BY_WORD or any(each.option.key == "help" for each in given)

    def invoke(self, ctx: click.Context) -> int:
        session: Session = ctx.obj
        if session.asks_help:
            from flux_resourceset.cli.output import help_text

            help_text.show(session.output, self._command, self._others)
            return failures.OK
        where = f"{PROGRAM} {self.name}"
        session.begin(self._command, command_values(ctx.params["given"], ctx.args, self._command.arguments, where))
        run = function(self._command)
        gc.set_threshold(_OBJECTS)
        gc.enable()  # cli.main disabled it
        return run(session)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from flux_resourceset.cli import completion

        waiting = completion.waiting(ctx.params["given"], UNFINISHED)
        if waiting is not None:
            return completion.values(waiting, ctx.obj, incomplete, ctx.args)
        takes_options = _takes_options(self, ctx)
        arguments, place = self._command.arguments, len(ctx.args) - 1
        options = completion.items(_option_names((*self._command.options, *grammar.GLOBALS)) if takes_options else ())
        if takes_options and incomplete.startswith("-"):
            return options
        if place < len(arguments):
            return completion.values(arguments[place], ctx.obj, incomplete)
        more = completion.values(arguments[-1], ctx.obj, incomplete) if arguments and arguments[-1].many else []
        return [*more, *options]


def _takes_options(command: click.Command, ctx: click.Context) -> bool:
    """Whether an option could stand in the place of the unfinished word: not behind --, where it would be like any other."""
    option = f"-{UNFINISHED}"
    return option not in read(command, ctx, [*ctx.params["words"][:-1], option])[1]


def _option_names(options: tuple[grammar.Option, ...]) -> list[str]:
    return [name for option in options for name in (option.name, *((f"--no-{option.key}",) if option.negatable else ()))]


def function(command: Command) -> Callable[[Session], int]:
    """The code of a command, imported now that it is needed."""
    module, _, name = command.run.partition(":")
    run: Any = getattr(__import__(f"flux_resourceset.cli.{module}", fromlist=[name]), name)
    return run  # type: ignore[no-any-return]  # every entry of the table is tested to have this type
