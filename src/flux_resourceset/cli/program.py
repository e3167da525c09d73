"""From the words of a command line to an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence

import click

from flux_resourceset import __version__
from flux_resourceset.cli import command_tree, failures, windows
from flux_resourceset.cli.parsing import command_table, grammar
from flux_resourceset.cli.parsing.word_reading import global_values
from flux_resourceset.cli.session import Session, failure


def run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Carry out a command line; whatever goes wrong is told in lines, never as a traceback."""
    _prepare_streams()
    try:
        return _run_reporting(Session(environment, global_values(words), words), words)
    finally:
        _abandon_broken_streams()


def _run_reporting(session: Session, words: Sequence[str]) -> int:
    code = _reported(session, words)
    try:
        session.end()
    except OSError:
        pass  # the terminal is gone
    return code


def _reported(session: Session, words: Sequence[str]) -> int:
    try:
        code = _run(session, words)
        sys.stdout.flush()
        return code
    except (KeyboardInterrupt, click.Abort):  # click's is that of a question
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


def _run(session: Session, words: Sequence[str]) -> int:
    if list(words) == ["--version"]:  # alone: a kind may have a field of that name
        session.output.line(f"{grammar.PROGRAM} {__version__}")
        return failures.OK
    for word in words:
        if not word.isascii() and word.encode("utf-8", "replace").decode() != word:
            raise failures.usage(f"{word!r} is not UTF-8 text")
    if words and words[0] == command_table.COMPLETE:  # what follows is somebody's unfinished command line
        return _complete(session, *(words[1:] or [""]))
    root = command_tree.Root()
    with root.make_context(grammar.PROGRAM, list(words), obj=session) as ctx:
        return root.invoke(ctx)


def _complete(session: Session, *words: str) -> int:
    """What could stand at the place of the last word, a line each; nothing when in doubt."""
    from click.shell_completion import ShellComplete

    from flux_resourceset.cli import completion

    before, start, last = completion.apart(words)
    shell = ShellComplete(command_tree.Root(), {"obj": session}, grammar.PROGRAM, "")
    try:
        items = shell.get_completions([*before, command_tree.UNFINISHED], last)
    except failures.Failure:
        return failures.OK
    for item in items:
        if completion.fits(item.value, last):
            session.output.line(item.value if item.value == command_table.OFFER_FILES else start + item.value)
    return failures.OK
