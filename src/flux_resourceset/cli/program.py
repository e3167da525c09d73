"""From the words of a command line to an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flux_resourceset.cli import failures, grammar, table
from flux_resourceset.cli.grammar import Command, Group
from flux_resourceset.cli.session import Session, failure


def run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Carry out a command line; whatever goes wrong is told in lines, never as a traceback."""
    _prepare_streams()
    try:
        return _ended(Session(environment, grammar.globals_in(words)), words)
    finally:
        _abandon_broken_streams()


def _ended(session: Session, words: Sequence[str]) -> int:
    try:
        code = _run(session, words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return failures.BROKEN_PIPE
    except KeyboardInterrupt:
        session.say("")
        return failures.INTERRUPTED
    except Exception as exc:
        told = failure(exc)
        if told is None and session.values.flag("debug"):
            import traceback

            for line in traceback.format_exc().splitlines():
                session.say(line)
        return session.fail(told or failures.defect(exc))


def _prepare_streams() -> None:
    """All three are there, whatever the caller closed, and speak UTF-8."""
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115  # as long as the program runs
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")  # JSON and YAML are UTF-8, whatever the locale says


def _abandon_broken_streams() -> None:
    """What cannot be written is dropped; else Python complains about it while it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(session: Session, words: Sequence[str]) -> int:
    for word in words:
        if not word.isascii() and word.encode("utf-8", "replace").decode() != word:
            raise failures.usage(f"{word!r} is not UTF-8 text")
    leading, rest = grammar.split(words)
    if rest[:1] == [table.COMPLETE]:  # what follows is somebody's unfinished command line
        from flux_resourceset.cli import completion

        return completion.complete(rest[1:], session)
    asks_help = session.values.flag("help") or rest[:1] == ["help"]
    rest = rest[1:] if rest[:1] == ["help"] else rest
    if not rest:
        from flux_resourceset.cli import helptext

        helptext.show_all(session.output, table.groups(session.likely_kinds()))
        return failures.OK
    group = _group(session, rest[0], asks_help)
    command, words_left = _command(group, rest[1:])
    if command is None or asks_help:
        return _show_help(session, group, command, asks_help)
    where = f"{grammar.PROGRAM} {command.name}"
    session.begin(command, grammar.parsed(command.options, command.arguments, [*leading, *words_left], where))
    return function(command)(session)


def _group(session: Session, word: str, asks_help: bool) -> Group:
    """The commands behind a first word; those of kinds come from the server."""
    group = table.find(table.fixed(), word)
    if group is not None:
        return group
    known = session.likely_kinds() if asks_help or not session.target.url else session.kinds
    group = table.find(table.groups(known), word)
    if group is None and asks_help and session.target.url:
        group = table.find(table.groups(session.kinds), word)
    if group is None:
        close = grammar.closest(word, [group.word for group in table.groups(known)])
        meant = f" (did you mean {close}?)" if close else ""
        raise failures.usage(f"unknown command {word!r}{meant}; see {grammar.PROGRAM} --help")
    return group


def _command(group: Group, words: list[str]) -> tuple[Command | None, list[str]]:
    """The command that the words after the first one name, and what is left of them."""
    if group.commands[0].words == (group.word,):
        return group.commands[0], words
    known = grammar.spelled(grammar.GLOBALS)
    position = 0  # global options may stand between the words of a command, too
    while position < len(words) and words[position].startswith("-"):
        option = known.get(words[position])
        position += 2 if option and option[0].metavar else 1
    if position >= len(words):
        return None, words
    word = words[position]
    for command in group.commands:
        if command.words[1:] == (word,):
            return command, words[:position] + words[position + 1 :]
    names = [command.words[1] for command in group.commands]
    close = grammar.closest(word, names)
    meant = f" (did you mean {close}?)" if close else ""
    raise failures.usage(f"{group.word} has no command {word!r}{meant}; there are {', '.join(names)}")


def _show_help(session: Session, group: Group, command: Command | None, asked: bool) -> int:
    from flux_resourceset.cli import helptext

    if command is not None:
        helptext.show(session.output, command)
    elif asked:
        helptext.show_group(session.output, group)
    else:
        raise failures.usage(f"say what to do with {group.word}: {', '.join(c.words[1] for c in group.commands)}")
    return failures.OK


def function(command: Command) -> Callable[[Session], int]:
    """The code of a command, imported now that it is needed."""
    module, _, name = command.run.partition(":")
    found: Any = getattr(__import__(f"flux_resourceset.cli.{module}", fromlist=[name]), name)
    return found  # type: ignore[no-any-return]  # every entry of the table is tested to have this type
