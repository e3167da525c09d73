"""What a command is made of, and how a command line is read.

One table of commands gives the parser, the help, the reference page and the completion, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from flux_resourceset.cli import failures

PROGRAM = "flux-resourceset-cli"


class Option(NamedTuple):
    name: str  # with its dashes
    help: str
    metavar: str = ""  # none: a switch
    short: str = ""
    many: bool = False
    negatable: bool = False  # --x and --no-x
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    completes: str = ""  # "file", or the kind whose ids go here
    least: int | None = None  # takes a whole number, at least this

    @property
    def key(self) -> str:
        return self.name[2:]

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *((self.short,) if self.short else ()), *self.aliases)

    @property
    def shown(self) -> str:
        """As in help: -o, --output FORMAT."""
        names = f"--[no-]{self.key}" if self.negatable else self.name
        value = f" {self.metavar}" if self.metavar else ""
        return (f"{self.short}, " if self.short else "") + names + value


class Argument(NamedTuple):
    name: str
    help: str
    optional: bool = False
    choices: tuple[str, ...] = ()
    completes: str = ""

    @property
    def shown(self) -> str:
        return f"[{self.name.upper()}]" if self.optional else f"<{self.name}>"


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

    @property
    def name(self) -> str:
        return " ".join(self.words)

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
    ) -> None:
        self.word = word
        self.summary = summary
        self.aliases = aliases
        self.of_kind = callable(commands)
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
        "How to print: table, wide, json, yaml or name. Without it, a table on a terminal and JSON elsewhere.",
        "FORMAT",
        short="-o",
        choices=("table", "wide", "json", "yaml", "name"),
    ),
    Option(
        "--context", "Context of the configuration file to use; environment variables win over it.", "NAME", completes="context"
    ),
    Option("--reason", "Why this is done; stored in the change log with every write.", "TEXT"),
    Option("--timeout", "Seconds to wait for the server; 60 if not given.", "SECONDS"),
    Option("--debug", "Show the HTTP exchange on stderr, with tokens masked."),
)


class Values:
    """What a command line says: positional words and options by key."""

    def __init__(self) -> None:
        self._given: dict[str, Any] = {}

    def set(self, key: str, value: Any) -> None:
        self._given[key] = value

    def add(self, key: str, value: str) -> None:
        self._given.setdefault(key, []).append(value)

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def text(self, key: str) -> str | None:
        value = self._given.get(key)
        return None if value is None else str(value)

    def required(self, key: str) -> str:
        return str(self._given[key])

    def flag(self, key: str) -> bool:
        return bool(self._given.get(key, False))

    def many(self, key: str) -> list[str]:
        return list(self._given.get(key, ()))


def spelled(options: Iterable[Option]) -> dict[str, tuple[Option, bool]]:
    """Options by every way to write them, with the value that a switch then has."""
    found: dict[str, tuple[Option, bool]] = {}
    for option in options:
        for spelling in option.spellings:
            found[spelling] = (option, True)
        if option.negatable:
            found[f"--no-{option.key}"] = (option, False)
    return found


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The global options before the first command word, and the rest."""
    known = spelled(GLOBALS)
    position = 0
    while position < len(words) and words[position].startswith("-"):
        name, equals, _ = words[position].partition("=")
        option = known.get(name, known.get(name[:2]))
        if option is None:
            raise failures.usage(f"unknown option {name}; see {PROGRAM} --help")
        takes_next = bool(option[0].metavar) and not equals and name in known
        position += 2 if takes_next else 1
    return list(words[:position]), list(words[position:])


def globals_in(words: Sequence[str]) -> Values:
    """The global options, wherever they stand; everything else is left for later, mistakes too."""
    values, known = Values(), spelled(GLOBALS)
    rest = list(words)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name not in known and word[:2] in known and known[word[:2]][0].metavar and not word.startswith("--"):
            name, equals, value = word[:2], "=", word[2:]
        if name not in known:
            continue
        option, _ = known[name]
        if not option.metavar:
            values.set(option.key, True)
        elif equals or rest:
            value = value if equals else rest.pop(0)
            if not option.choices or value in option.choices:
                values.set(option.key, value)
    return values


def parsed(options: Sequence[Option], arguments: Sequence[Argument], words: Sequence[str], where: str) -> Values:
    """The words read against what a command takes."""
    values = Values()
    known = spelled((*GLOBALS, *options))  # a command may give a global spelling another meaning
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            positional += rest
            break
        if not word.startswith("-") or word == "-":
            positional.append(word)
            continue
        _read_option(values, known, word, rest, where)
    if not values.flag("help"):
        _place(values, arguments, positional, where)
    return values


def _read_option(values: Values, known: dict[str, tuple[Option, bool]], word: str, rest: list[str], where: str) -> None:
    name, equals, value = word.partition("=")
    if name not in known and not word.startswith("--") and word[:2] in known and known[word[:2]][0].metavar:
        name, equals, value = word[:2], "=", word[2:]  # -ojson
    if name not in known:
        raise failures.usage(f"unknown option {name}{_meant(name, known)}; see {where} --help")
    option, switch = known[name]
    if not option.metavar:
        if equals:
            raise failures.usage(f"{name} takes no value; see {where} --help")
        values.set(option.key, switch)
        return
    if not equals:
        if not rest:
            raise failures.usage(f"{name} needs a value: {option.shown}")
        value = rest.pop(0)
    if option.choices and value not in option.choices:
        raise failures.usage(f"{name} is {value!r}; it must be one of {', '.join(option.choices)}")
    if option.least is not None and not _is_whole(value, option.least):
        raise failures.usage(f"{name} is {value!r}; it must be a whole number of at least {option.least}")
    if option.many:
        values.add(option.key, value)
    elif option.key in values:
        raise failures.usage(f"{name} is given twice")
    else:
        values.set(option.key, value)


def _is_whole(text: str, least: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least  # longer ones fit no counter


def _place(values: Values, arguments: Sequence[Argument], positional: list[str], where: str) -> None:
    if len(positional) > len(arguments):
        extra = positional[len(arguments)]
        raise failures.usage(f"unexpected argument {extra!r}; see {where} --help")
    for argument, word in zip(arguments, positional, strict=False):
        if argument.choices and word not in argument.choices:
            raise failures.usage(f"<{argument.name}> is {word!r}; it must be one of {', '.join(argument.choices)}")
        values.set(argument.name, word)
    for argument in arguments[len(positional) :]:
        if not argument.optional:
            raise failures.usage(f"{argument.shown} is missing: {where} {' '.join(a.shown for a in arguments)}")


def _meant(word: str, known: Iterable[str]) -> str:
    close = closest(word, known)
    return f" (did you mean {close}?)" if close else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a mistyped one stands for, if any is near."""
    import difflib  # only after a mistake

    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return found[0] if found else None
