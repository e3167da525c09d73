"""Completion: what could stand in a place of a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

from flux_resourceset.cli import config, failures
from flux_resourceset.cli.known_kinds import CLUSTERS, ReferencedKind
from flux_resourceset.cli.parsing.command_table import OFFER_FILES
from flux_resourceset.cli.parsing.grammar import Argument, Option
from flux_resourceset.cli.parsing.values import Given

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

# To a shell a candidate may be a piece of script: it would carry out the $(…) in an id that a server made up.
_HARMLESS = re.compile(r"([\w.:/@+=,%\[\]-]|\\\.)+", re.ASCII)  # with what paths of Helm values have

_PATIENCE = 1.0  # seconds that a press of the tab key may take


def apart(words: Sequence[str]) -> tuple[list[str], str, str]:
    """An unfinished line: the words before the last one, what that begins with, and what of it is to be completed.

    `--option=value` is completed like two words. bash makes three of it, and the last is `=` as long as there is no value.
    """
    before: list[str] = []
    for word in words:
        if not (word == "=" and before and before[-1].startswith("--")):
            before.append(word)
    last = "" if words[-1] == "=" and before[-1] != "=" else before.pop()
    name, is_value, value = last.partition("=")
    return ([*before, name], f"{name}=", value) if is_value and name.startswith("--") else (before, "", last)


def items(names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names]


def fits(candidate: str, unfinished: str) -> bool:
    return candidate == OFFER_FILES or (candidate.startswith(unfinished) and bool(_HARMLESS.fullmatch(candidate)))


def waiting(given: Iterable[Given], unfinished: str) -> Option | None:
    """The option whose value the unfinished word is."""
    return next((each.option for each in given if each.value == unfinished), None)


def values(wanted: Option | Argument, session: Session, unfinished: str = "", others: Sequence[str] = ()) -> list[CompletionItem]:
    """What could stand there; `others` are the words of the command that are no options."""
    return items(dict.fromkeys(_values(wanted, session, unfinished, others)))


def _values(wanted: Option | Argument, session: Session, unfinished: str, others: Sequence[str]) -> Iterable[str]:
    what, about, place = wanted.completes.partition(":")
    if wanted.choices:
        return wanted.choices
    if what == "file":
        return [OFFER_FILES]
    if what == "kind":
        return [kind.group for kind in session.likely_kinds]
    if what == "view":
        return [kind.endpoint for kind in session.likely_kinds if kind.endpoint]
    if what == "context":
        return _contexts(session)
    if not about:
        return _ids(what, session) if what else ()
    match what:
        case "values":
            return _in_use(place, session)
        case "keys":
            return [f"{key}=" for key in _keys(place, session)]
        case "labels":
            return _terms(place, session, unfinished)
        case "patches":
            keys = _patch_keys(place, session, others[0] if others else None)
            return keys if isinstance(wanted, Option) and "=" not in wanted.metavar else [f"{key}=" for key in keys]
        case _:
            kind = session.likely_kinds.find(place)
            return [f"{place}/{id}" for id in _ids(kind.name, session)] if kind else ()


def _contexts(session: Session) -> Iterable[str]:
    try:
        return list(config.read(session.environment)["contexts"])
    except failures.Failure:
        return []


# What a server has to tell


def _documents(kind: str, session: Session) -> list[dict[str, Any]]:
    from flux_resourceset import client  # not before: most words are completed without a server

    try:
        return session.connect(_PATIENCE).get(client.path(kind)).objects()
    except (client.Problem, client.Unreachable, failures.Failure):
        return []


def _ids(kind: str, session: Session) -> list[str]:
    return [str(item.get("id", "")) for item in _documents(kind, session)]


def _in_use(place: str, session: Session) -> list[str]:
    """What a field may be; where that is not said, what it is somewhere: in documents, or where clusters deviate from them."""
    name, _, field = place.partition(".")
    kind = session.likely_kinds.find(name)
    allowed = kind.properties.get(field, {}).get("enum") if kind else None
    if allowed:
        return [str(value) for value in allowed]
    found = [item.get(field) for item in _documents(name, session)]
    if isinstance(kind, ReferencedKind) and field in kind.overrides:
        clusters = _documents(CLUSTERS, session)
        found += [reference.get(field) for cluster in clusters for reference in kind.references(cluster)]
    return sorted(str(value) for value in found if isinstance(value, str | int) and not isinstance(value, bool))


def _keys(place: str, session: Session) -> list[str]:
    """Of a field that is a map: every key that it has somewhere."""
    name, _, field = place.partition(".")
    maps = [item.get(field) for item in _documents(name, session)]
    return sorted(str(key) for each in maps if isinstance(each, dict) for key in each)


def _terms(name: str, session: Session, unfinished: str) -> list[str]:
    """Of a selector: the keys of labels, behind the terms that stand there already."""
    before = unfinished.rpartition(",")[:2]
    return ["".join((*before, key, "=")) for key in _keys(f"{name}.labels", session)]


def _patch_keys(name: str, session: Session, id: str | None) -> list[str]:
    """Every key that some cluster sets for a definition; for all of the kind, as long as none is named."""
    kind = session.likely_kinds.find(name)
    clusters = _documents(CLUSTERS, session)
    if not isinstance(kind, ReferencedKind):
        return []
    own = {str(reference.get("id")) for cluster in clusters for reference in kind.references(cluster)} if id is None else {id}
    patches = [cluster.get("patches", {}).get(each, {}) for cluster in clusters for each in own]
    return sorted(key for values in patches for key in values)
