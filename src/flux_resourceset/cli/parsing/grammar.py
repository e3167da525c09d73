"""What a command is made of.

One table of commands gives the parser, the help, the reference page and the completion, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

PROGRAM = "flux-resourceset-cli"


_READING = frozenset({"list", "get", "describe", "changes", "tags", "overrides", "usage"})
_READING_BY_KIND = frozenset({"get", "describe"})  # which have the kind behind them


class Option(NamedTuple):
    name: str  # with its dashes
    help: str
    metavar: str = ""  # none: a switch
    short: str = ""
    many: bool = False
    negatable: bool = False  # --x and --no-x
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    completes: str = ""  # "file", the kind whose ids go here, or a word of cli/completion.py with what it is about
    least: int | None = None  # takes a whole number, at least this
    otherwise: str = ""  # what to do instead of giving it a value that is no choice

    @property
    def key(self) -> str:
        return self.name[2:]

    def allows(self, value: str) -> bool:
        """Whether it is one of the choices; one that ends with = takes anything behind it."""
        ends = tuple(choice for choice in self.choices if choice.endswith("="))
        return not self.choices or (value in self.choices and value not in ends) or (bool(ends) and _is_longer(value, ends))

    @property
    def told_choices(self) -> str:
        return ", ".join(f"{choice}…" if choice.endswith("=") else choice for choice in self.choices)

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *((self.short,) if self.short else ()), *self.aliases)

    @property
    def shown(self) -> str:
        """As in help: -o, --output FORMAT."""
        names = f"--[no-]{self.key}" if self.negatable else self.name
        value = f" {self.metavar}" if self.metavar else ""
        return (f"{self.short}, " if self.short else "") + names + value


def _is_longer(value: str, starts: tuple[str, ...]) -> bool:
    return value.startswith(starts) and value not in starts


class Argument(NamedTuple):
    name: str
    help: str
    optional: bool = False
    choices: tuple[str, ...] = ()
    completes: str = ""
    many: bool = False  # the last one of a command: takes all words that are left

    @property
    def shown(self) -> str:
        more = "…" if self.many else ""
        return f"[{self.name.upper()}{more}]" if self.optional else f"<{self.name}>{more}"


class Command(NamedTuple):
    words: tuple[str, ...]
    summary: str
    run: str  # module:function in this package, imported when it is called
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()  # what follows the program's name
    details: str = ""
    kind: str = ""  # the kind whose group it is in
    any_failure_is_usage: bool = False  # one exit code for all, for scripts
    aliases: tuple[str, ...] = ()  # other spellings of its last word

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def is_own(self) -> bool:
        """Whether the word of its group alone means it."""
        return len(self.words) == 1

    @property
    def is_reading(self) -> bool:
        """Whether it was made for reading: without -o it prints a table, wherever its output goes."""
        return self.words[-1:] != () and (self.words[-1] in _READING or self.words[0] in _READING_BY_KIND)

    @property
    def usage(self) -> str:
        parts = [PROGRAM, *self.words, *(argument.shown for argument in self.arguments)]
        return " ".join(parts) + (" [options]" if self.options else "")


class Group:
    """Commands that share their first word; those of a kind are made when they are asked for."""

    def __init__(
        self,
        word: str,
        summary: str,
        commands: tuple[Command, ...] | Callable[[], Iterable[Command]],
        aliases: tuple[str, ...] = (),
        by_kind: bool = False,  # its second word is a kind
        hidden: bool = False,  # from the help of all
    ) -> None:
        self.word = word
        self.summary = summary
        self.aliases = aliases
        self.by_kind = by_kind
        self.of_kind = callable(commands) and not by_kind
        self.hidden = hidden
        self._commands = commands

    @property
    def commands(self) -> tuple[Command, ...]:
        if callable(self._commands):
            self._commands = tuple(self._commands())
        return self._commands


GLOBALS = (
    Option("--help", "Show help and exit.", short="-h"),
    Option(
        "--output",
        "How to print: table, wide, json, yaml, name, jsonpath=TEMPLATE or custom-columns=NAME:.path,… Without it, what is made "
        "for reading is a table; everything else is lines on a terminal and JSON elsewhere.",
        "FORMAT",
        short="-o",
        choices=("table", "wide", "json", "yaml", "name", "jsonpath=", "custom-columns="),
    ),
    Option(
        "--context", "Context of the configuration file to use; it wins over environment variables.", "NAME", completes="context"
    ),
    Option("--reason", "Why this is done; stored in the change log with every write.", "TEXT"),
    Option("--no-pager", "Write long output to the terminal at once, not through $PAGER."),
    Option("--timeout", "Seconds to wait for the server; 60 if not given.", "SECONDS"),
    Option("--debug", "Show the HTTP exchange on stderr, with tokens masked."),
)


def suggestion(word: str, known: Iterable[str]) -> str:
    """The known word that a mistyped one stands for, if any is near, as an addition to a message."""
    import difflib  # only after a mistake

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f" (did you mean {close[0]}?)" if close else ""
