"""From the words of a command line to an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flux_resourceset import __version__
from flux_resourceset.cli import failures, windows
from flux_resourceset.cli.parsing import command_table, fixed_commands, grammar
from flux_resourceset.cli.parsing.argv_tokens import Token, tokens
from flux_resourceset.cli.parsing.grammar import Command, Group
from flux_resourceset.cli.parsing.values import command_values, global_values
from flux_resourceset.cli.session import Session, failure


def run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Carry out a command line; whatever goes wrong is told in lines, never as a traceback."""
    _prepare_streams()
    try:
        read = tokens(words, grammar.GLOBALS)  # they may stand anywhere, also between the words of a command
        return _run_reporting(Session(environment, global_values(read)), words, read)
    finally:
        _abandon_broken_streams()


def _run_reporting(session: Session, words: Sequence[str], read: Sequence[Token]) -> int:
    try:
        code = _run(session, words, read)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        session.say("")
        return failures.INTERRUPTED
    except Exception as exc:
        if isinstance(exc, OSError) and windows.is_broken_pipe(exc):
            return failures.BROKEN_PIPE
        expected = failure(exc)
        if expected is None and session.values.flag("debug"):
            import traceback

            for line in traceback.format_exc().splitlines():
                session.say(line)
        return session.fail(expected or failures.defect(exc))


def _prepare_streams() -> None:
    """All three are there, whatever the caller closed, and speak UTF-8."""
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115  # as long as the program runs
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")  # JSON and YAML are UTF-8, whatever the locale says


def _abandon_broken_streams() -> None:
    """What cannot be written is dropped; else Python complains about it while it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(session: Session, words: Sequence[str], read: Sequence[Token]) -> int:
    if list(words) == ["--version"]:  # alone: a kind may have a field of that name
        session.output.line(f"{grammar.PROGRAM} {__version__}")
        return failures.OK
    _check(words, read)
    positional = [token for token in read if not token.is_option]
    if positional and positional[0].word == command_table.COMPLETE:  # what follows is somebody's unfinished command line
        from flux_resourceset.cli import completion

        return completion.complete(words[positional[0].place + 1 :], session)
    is_help = bool(positional) and positional[0].word == "help"
    named, asks_help = positional[is_help:], is_help or session.values.flag("help")
    if not named:
        from flux_resourceset.cli.output import help_text

        help_text.show_all(session.output, command_table.groups(session.likely_kinds()))
        return failures.OK
    group = _group(session, named[0].word, asks_help)
    command = _command(group, named)
    if command is None or asks_help:
        return _show_help(session, group, command, asks_help)
    places = [token.place for token in named[: len(command.words)]]
    others = [word for place, word in enumerate(words) if place not in places]
    where = f"{grammar.PROGRAM} {command.name}"
    session.begin(command, command_values(command.options, command.arguments, others, where))
    return function(command)(session)


def _check(words: Sequence[str], read: Sequence[Token]) -> None:
    """What can be told before the command is known: words are text, and the options in front are global ones."""
    for word in words:
        if not word.isascii() and word.encode("utf-8", "replace").decode() != word:
            raise failures.usage(f"{word!r} is not UTF-8 text")
    for token in read:
        if not token.is_option and token.word != "help":
            return
        if token.is_unknown:
            raise failures.usage(f"unknown option {token.word}; see {grammar.PROGRAM} --help")


def _group(session: Session, word: str, asks_help: bool) -> Group:
    """The commands behind a first word; those of kinds come from the server."""
    group = command_table.find(fixed_commands.groups(), word)
    if group is not None:
        return group
    known = session.likely_kinds() if asks_help or not session.target.url else session.kinds
    group = command_table.find(command_table.groups(known), word)
    if group is None and asks_help and session.target.url:
        group = command_table.find(command_table.groups(session.kinds), word)
    if group is None:
        meant = grammar.suggestion(word, [group.word for group in command_table.groups(known)])
        raise failures.usage(f"unknown command {word!r}{meant}; see {grammar.PROGRAM} --help")
    return group


def _command(group: Group, named: Sequence[Token]) -> Command | None:
    """The command of a group that the positional words name; None if they end before it."""
    if group.commands[0].words == (group.word,):
        return group.commands[0]
    if len(named) == 1:
        return None
    word = named[1].word
    for command in group.commands:
        if command.words[1:] == (word,):
            return command
    names = [command.words[1] for command in group.commands]
    meant = grammar.suggestion(word, names)
    raise failures.usage(f"{group.word} has no command {word!r}{meant}; there are {', '.join(names)}")


def _show_help(session: Session, group: Group, command: Command | None, asked: bool) -> int:
    from flux_resourceset.cli.output import help_text

    if command is not None:
        help_text.show(session.output, command)
    elif asked:
        help_text.show_group(session.output, group)
    else:
        raise failures.usage(f"say what to do with {group.word}: {', '.join(c.words[1] for c in group.commands)}")
    return failures.OK


def function(command: Command) -> Callable[[Session], int]:
    """The code of a command, imported now that it is needed."""
    module, _, name = command.run.partition(":")
    run: Any = getattr(__import__(f"flux_resourceset.cli.{module}", fromlist=[name]), name)
    return run  # type: ignore[no-any-return]  # every entry of the table is tested to have this type
