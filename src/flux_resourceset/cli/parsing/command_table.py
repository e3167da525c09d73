"""The table of all commands: those of the kinds, then those that are there whatever the kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flux_resourceset.cli.parsing import fixed_commands
from flux_resourceset.cli.parsing.grammar import Group

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kinds

# What the scripts of the shells and this program say to each other; see cli/program.py.
COMPLETE = "__complete"  # begins an unfinished command line
OFFER_FILES = ":files"  # the answer that stands for the names of files


_VERBS = frozenset({"get", "describe", "delete"})  # commands whose second word may be a kind


def fixed() -> tuple[Group, ...]:
    """Those for which no kind has to be known."""
    return tuple(group for group in fixed_commands.groups() if group.word not in _VERBS)


def groups(known: Kinds) -> tuple[Group, ...]:
    from flux_resourceset.cli.parsing import verb_commands  # not before: most commands are found without them

    of_files = [command for group in fixed_commands.groups() if group.word == "delete" for command in group.commands]
    return (*of_kinds(known), *verb_commands.groups(known, of_files), *fixed())


def of_kinds(known: Kinds) -> list[Group]:
    """Those that begin with a kind."""
    from flux_resourceset.cli.parsing import kind_commands

    return kind_commands.groups(known, {*(group.word for group in fixed_commands.groups()), *_VERBS})


def named(known: Kinds, word: str) -> Group | None:
    """The group behind a word, with no more of the table made than that takes."""
    return find(groups(known) if word in _VERBS else (*of_kinds(known), *fixed()), word)


def find(among: Iterable[Group], word: str) -> Group | None:
    return next((group for group in among if word == group.word or word in group.aliases), None)
