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


def groups(known: Kinds) -> tuple[Group, ...]:
    from flux_resourceset.cli.parsing import kind_commands  # not before: most commands are found without it

    fixed = fixed_commands.groups()
    return (*kind_commands.groups(known, {group.word for group in fixed}), *fixed)


def find(among: Iterable[Group], word: str) -> Group | None:
    return next((group for group in among if word == group.word or word in group.aliases), None)
