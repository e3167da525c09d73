"""get, describe and delete with a kind behind them, as kubectl has them: the same as the verbs of the kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flux_resourceset.cli.known_kinds import Kind, Kinds
from flux_resourceset.cli.parsing import kind_commands
from flux_resourceset.cli.parsing.grammar import Command, Group


def groups(known: Kinds, deleting: Iterable[Command]) -> list[Group]:
    """`deleting` is what `delete` does without a kind."""
    return [
        Group("get", "Show documents of a kind: all of them, or some by their ids.", lambda: _gets(known), by_kind=True),
        Group("describe", "Show everything about one document, for reading.", lambda: _of(known, "describe"), by_kind=True),
        Group("delete", "Delete documents by their ids, or those of files.", lambda: _deletes(known, deleting), by_kind=True),
    ]


def _gets(known: Kinds) -> Iterator[Command]:
    for kind in known:
        verbs = _verbs(kind)
        one = verbs.get("get")
        every = verbs.get("list", one)
        if one is None or every is None:
            continue
        example = kind_commands.example_id(kind)
        yield one._replace(
            words=("get", kind.group),
            summary=f"Show {kind.name.replace('_', ' ')}: all, or some by their ids.",
            arguments=(one.arguments[0]._replace(optional=True),),
            options=tuple(dict.fromkeys((*every.options, *one.options))),
            examples=(f"get {kind.group}", f"get {kind.group} {example} -o yaml"),
            aliases=_aliases(kind),
        )


def _deletes(known: Kinds, deleting: Iterable[Command]) -> Iterator[Command]:
    yield from deleting
    yield from _of(known, "delete", "decommission")


def _of(known: Kinds, word: str, *others: str) -> Iterator[Command]:
    """The verb of every kind that has it, under this name or another."""
    for kind in known:
        verbs = _verbs(kind)
        command = next((verbs[verb] for verb in (word, *others) if verb in verbs), None)
        if command is not None:
            words, example = (word, kind.group), f"{word} {kind.group} {kind_commands.example_id(kind)}"
            yes = " --yes" if word == "delete" else ""
            yield command._replace(words=words, examples=(example + yes,), aliases=_aliases(kind))


def _verbs(kind: Kind) -> dict[str, Command]:
    return {command.words[1]: command for command in kind_commands.commands(kind, kind.group)}


def _aliases(kind: Kind) -> tuple[str, ...]:
    return tuple(name for name in kind.names() if name != kind.group)
