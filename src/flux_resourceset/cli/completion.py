"""Completion of command lines: a script per shell, which asks this program what could follow."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from flux_resourceset import client
from flux_resourceset.cli import config, failures, grammar, table
from flux_resourceset.cli.grammar import PROGRAM, Argument, Command, Option

if TYPE_CHECKING:
    from flux_resourceset.cli.kinds import Kinds
    from flux_resourceset.cli.session import Session

FILES = ":files"  # tells the script to offer file names

# To bash a candidate is a piece of script: it would carry out the $(…) in an id that a server made up.
_HARMLESS = re.compile(r"[\w.:/@+=,%-]+", re.ASCII)

_PATIENCE = 1.0  # seconds that a press of the tab key may take

_BASH = f"""# bash completion of {PROGRAM}
_flux_resourceset_cli() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" IFS=$'\\n'
    local found=($({PROGRAM} {table.COMPLETE} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null))
    if [[ "${{found[0]}}" == "{FILES}" ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
    else
        COMPREPLY=($(compgen -W "${{found[*]}}" -- "$cur"))
    fi
}}
complete -o filenames -F _flux_resourceset_cli {PROGRAM}
"""

_ZSH = f"""#compdef {PROGRAM}
# zsh completion of {PROGRAM}
_flux_resourceset_cli() {{
    local -a found
    found=(${{(f)"$({PROGRAM} {table.COMPLETE} "${{(@)words[2,CURRENT]}}" 2>/dev/null)"}})
    if [[ "${{found[1]}}" == "{FILES}" ]]; then
        _files
    else
        compadd -a found
    fi
}}
if [ "$funcstack[1]" = "_flux_resourceset_cli" ]; then
    _flux_resourceset_cli "$@"
else
    compdef _flux_resourceset_cli {PROGRAM}
fi
"""

_FISH = f"""# fish completion of {PROGRAM}
function __flux_resourceset_cli
    set -l words (commandline -opc) (commandline -ct)
    set -l found ({PROGRAM} {table.COMPLETE} $words[2..-1] 2>/dev/null)
    if test "$found[1]" = "{FILES}"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c {PROGRAM} -f -a '(__flux_resourceset_cli)'
"""


def script(session: Session) -> int:
    text = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[session.values.required("shell")]
    session.output.raw(text.encode())
    return failures.OK


def complete(words: Sequence[str], session: Session) -> int:
    """What could stand at the place of the last word, a line each; nothing when in doubt."""
    known = session.likely_kinds()
    last = words[-1] if words else ""
    for candidate in _candidates(list(words[:-1]), last, known, session):
        if candidate == FILES or (candidate.startswith(last) and _HARMLESS.fullmatch(candidate)):
            session.output.line(candidate)
    return failures.OK


def _candidates(before: list[str], last: str, known: Kinds, session: Session) -> Iterator[str]:
    groups = table.groups(known)
    plain, waiting = _plain(before, grammar.GLOBALS)
    group = table.find(groups, plain[0]) if plain else None
    if group is None:
        if waiting:
            yield from _values(waiting, known, session)
        elif not plain:
            yield from (found.word for found in groups)
            yield from _options(grammar.GLOBALS)
        return
    single = group.commands[0].words == (group.word,)
    command = group.commands[0] if single else next((c for c in group.commands if c.words[1:] == tuple(plain[1:2])), None)
    if command is None:
        yield from (found.words[1] for found in group.commands if len(plain) == 1)
        return
    yield from _of_command(command, before, last, known, session)


def _of_command(command: Command, before: list[str], last: str, known: Kinds, session: Session) -> Iterator[str]:
    options = (*command.options, *grammar.GLOBALS)
    plain, waiting = _plain(before, options)
    if waiting is not None:
        yield from _values(waiting, known, session)
    elif last.startswith("-"):
        yield from _options(options)
    else:
        position = len(plain) - len(command.words)
        if position < len(command.arguments):
            yield from _values(command.arguments[position], known, session)
        else:
            yield from _options(options)


def _plain(words: list[str], options: Sequence[Option]) -> tuple[list[str], Option | None]:
    """The words that are no options, and the option that still waits for its value."""
    known = grammar.spelled(options)
    plain: list[str] = []
    waiting: Option | None = None
    for word in words:
        if waiting is not None:
            waiting = None
        elif word.startswith("-") and word != "-":
            option = known.get(word)
            waiting = option[0] if option and option[0].metavar else None
        else:
            plain.append(word)
    return plain, waiting


def _options(options: Sequence[Option]) -> Iterator[str]:
    for option in options:
        yield option.name
        if option.negatable:
            yield f"--no-{option.key}"


def _values(wanted: Option | Argument, known: Kinds, session: Session) -> Iterator[str]:
    if wanted.choices:
        yield from wanted.choices
    elif wanted.completes == "file":
        yield FILES
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
