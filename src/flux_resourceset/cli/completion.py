"""Completion: what could stand in a place of a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from flux_resourceset.cli import config, failures
from flux_resourceset.cli.parsing.command_table import OFFER_FILES
from flux_resourceset.cli.parsing.grammar import Argument, Option
from flux_resourceset.cli.parsing.values import Given

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

# To bash a candidate is a piece of script: it would carry out the $(…) in an id that a server made up.
_HARMLESS = re.compile(r"[\w.:/@+=,%-]+", re.ASCII)

_PATIENCE = 1.0  # seconds that a press of the tab key may take


def items(names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names]


def fits(candidate: str, unfinished: str) -> bool:
    return candidate == OFFER_FILES or (candidate.startswith(unfinished) and bool(_HARMLESS.fullmatch(candidate)))


def waiting(given: Iterable[Given], unfinished: str) -> Option | None:
    """The option whose value the unfinished word is."""
    return next((each.option for each in given if each.value == unfinished), None)


def values(wanted: Option | Argument, session: Session) -> list[CompletionItem]:
    return items(_values(wanted, session))


def _values(wanted: Option | Argument, session: Session) -> Iterator[str]:
    if wanted.choices:
        yield from wanted.choices
    elif wanted.completes == "file":
        yield OFFER_FILES
    elif wanted.completes == "kind":
        yield from (kind.group for kind in session.likely_kinds)
    elif wanted.completes == "view":
        yield from (kind.endpoint for kind in session.likely_kinds if kind.endpoint)
    elif wanted.completes == "context":
        try:
            yield from config.read(session.environment)["contexts"]
        except failures.Failure:
            return
    elif wanted.completes:
        yield from _ids(wanted.completes, session)


def _ids(kind: str, session: Session) -> list[str]:
    from flux_resourceset import client  # not before: most words are completed without a server

    try:
        return [str(item.get("id", "")) for item in session.connect(_PATIENCE).get(client.path(kind)).objects()]
    except (client.Problem, client.Unreachable, failures.Failure):
        return []
