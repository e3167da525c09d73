"""Completion of a command line: what could stand at the place of its last word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from flux_resourceset import client
from flux_resourceset.cli import config, failures
from flux_resourceset.cli.parsing import command_table, grammar
from flux_resourceset.cli.parsing.argv_tokens import begins_option, tokens
from flux_resourceset.cli.parsing.command_table import OFFER_FILES
from flux_resourceset.cli.parsing.grammar import Argument, Command, Option

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kinds
    from flux_resourceset.cli.session import Session

# To bash a candidate is a piece of script: it would carry out the $(…) in an id that a server made up.
_HARMLESS = re.compile(r"[\w.:/@+=,%-]+", re.ASCII)

_PATIENCE = 1.0  # seconds that a press of the tab key may take


def complete(words: Sequence[str], session: Session) -> int:
    """What could stand at the place of the last word, a line each; nothing when in doubt."""
    known = session.likely_kinds()
    last = words[-1] if words else ""
    for candidate in _candidates(words[:-1], last, known, session):
        if candidate == OFFER_FILES or (candidate.startswith(last) and _HARMLESS.fullmatch(candidate)):
            session.output.line(candidate)
    return failures.OK


def _candidates(before: Sequence[str], last: str, known: Kinds, session: Session) -> Iterator[str]:
    groups = command_table.groups(known)
    named, waiting = _read(before, grammar.GLOBALS)
    group = command_table.find(groups, named[0]) if named else None
    if group is None:
        if waiting:
            yield from _values(waiting, known, session)
        elif not named:
            yield from (group.word for group in groups)
            if begins_option(before, "-", grammar.GLOBALS):
                yield from _options(grammar.GLOBALS)
        return
    single = group.commands[0].words == (group.word,)
    command = group.commands[0] if single else next((c for c in group.commands if c.words[1:] == tuple(named[1:2])), None)
    if command is None:
        yield from (each.words[1] for each in group.commands if len(named) == 1)
        return
    yield from _of_command(command, before, last, known, session)


def _of_command(command: Command, before: Sequence[str], last: str, known: Kinds, session: Session) -> Iterator[str]:
    offered = (*command.options, *grammar.GLOBALS)  # in this order
    options = (*grammar.GLOBALS, *command.options)
    positional, waiting = _read(before, options)
    position = len(positional) - len(command.words)
    if waiting is not None:
        yield from _values(waiting, known, session)
    elif begins_option(before, last, options):
        yield from _options(offered)
    elif position < len(command.arguments):
        yield from _values(command.arguments[position], known, session)
    elif begins_option(before, "-", options):
        yield from _options(offered)


def _read(words: Sequence[str], options: Sequence[Option]) -> tuple[list[str], Option | None]:
    """The words that are no options, and the option that still waits for its value."""
    read = tokens(words, options)
    waiting = read[-1].option if read and read[-1].is_unfinished else None
    return [token.word for token in read if not token.is_option], waiting


def _options(options: Sequence[Option]) -> Iterator[str]:
    for option in options:
        yield option.name
        if option.negatable:
            yield f"--no-{option.key}"


def _values(wanted: Option | Argument, known: Kinds, session: Session) -> Iterator[str]:
    if wanted.choices:
        yield from wanted.choices
    elif wanted.completes == "file":
        yield OFFER_FILES
    elif wanted.completes == "kind":
        yield from (kind.group for kind in known)
    elif wanted.completes == "view":
        yield from (kind.endpoint for kind in known if kind.endpoint)
    elif wanted.completes == "context":
        try:
            yield from config.read(session.environment)["contexts"]
        except failures.Failure:
            return
    elif wanted.completes:
        yield from _ids(wanted.completes, session)


def _ids(kind: str, session: Session) -> list[str]:
    try:
        return [str(item.get("id", "")) for item in session.connect(_PATIENCE).get(client.path(kind)).objects()]
    except (client.Problem, client.Unreachable, failures.Failure):
        return []
