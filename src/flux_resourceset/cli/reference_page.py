"""The reference page of the command line, from the same table as its parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flux_resourceset.cli import config, failures, known_kinds
from flux_resourceset.cli.parsing import command_table, grammar
from flux_resourceset.cli.parsing.grammar import PROGRAM, Command, Option

_INTRODUCTION = f"""# {PROGRAM}

Every command, as its parser knows it. This page is made by `make generate`; do not edit it.

The groups of kinds come from the kinds that the server knows. These are the built-in ones; a kind that is added through
`RESOURCES_DIR` gets its group, its verbs and its options in the same way, with nothing to install on the client.

## Where the server is

| Variable | Meaning |
|---|---|
| `{config.URL}` | Base URL of the API, as in `http://127.0.0.1:8080`. |
| `{config.TOKEN}` | Token for reading. |
| `{config.WRITE_TOKEN}` | Token for writing; reads do not need it. |

Or store them once: `{PROGRAM} login http://127.0.0.1:8080` asks for the tokens, verifies them, and stores them as a context.
Contexts are kept in `~/.config/flux-resourceset/config.yaml`, which is refused when others can read it.

The address and the tokens always come from one place: from the context that `--context` names; else, if any of the three
variables is set, from the environment alone; else from the current context. So a token of a context is never sent to an address
from the environment. What is missing there is an error (exit code 2).

`FLUX_API_ACTOR` is who does it, for the change log, where a token is shared; `--actor` says the same for one command.
`NO_COLOR` switches colours off; `EDITOR`, or else `VISUAL`, is what `edit` opens.

Behind a proxy: `HTTPS_PROXY` for `https://` servers, which are reached through a tunnel (CONNECT), `HTTP_PROXY` for `http://`
ones, `ALL_PROXY` for both, each as in `http://user:password@proxy.example.com:3128`. `NO_PROXY` lists whom to ask directly:
hosts, `host:port`, domains with all that is below them (`example.com`, `.example.com`), addresses, networks such as
`10.0.0.0/8`, or `*`. A server on this machine is no exception, so put `127.0.0.1` there for a demo. The same names in lower
case win. `SSL_CERT_FILE` names a file with certificate authorities, `SSL_CERT_DIR` directories of them, as OpenSSL has them.

## What is printed

Data goes to stdout, messages to stderr. On a terminal data is a table; elsewhere it is JSON, the API's bare array or document, so
that `{PROGRAM} cluster list | jq .` works. `-o yaml` carries `kind`, so that `apply -f -` takes it back. `-o name` prints
`kind/id`. `--dry-run` prints what would change, and changes nothing. Whatever a server says, nothing in it steers the terminal:
control characters, and those that turn the direction of text, are shown as escapes, such as `\\x1b`,
in JSON and YAML by their own syntax.
"""


def reference(described: list[dict[str, Any]]) -> str:
    """docs/cli.md, for the built-in kinds."""
    kinds = known_kinds.Kinds(described)
    parts = [_INTRODUCTION, "## Exit codes\n", "| Code | Meaning |", "|---|---|"]
    parts += [f"| {code} | {meaning} |" for code, meaning in failures.MEANINGS.items()]
    parts += ["", "## Global options\n", "They stand before or after the command.\n", *_options(grammar.GLOBALS)]
    for group in command_table.groups(kinds):
        parts += ["", f"## {group.word}\n", f"{_escaped(group.summary)}"]
        for command in group.commands:
            parts += ["", *_command(command, f"### {command.name}" if len(command.words) > 1 else "")]
    return "\n".join(parts).replace("\n\n\n", "\n\n").rstrip() + "\n"


def _command(command: Command, heading: str) -> Iterator[str]:
    if heading:
        yield heading + "\n"
        yield _escaped(command.summary)
    yield f"\n```\n{command.usage}\n```\n"
    if command.details:
        yield _escaped(command.details) + "\n"
    if command.arguments:
        yield "| Argument | Meaning |\n|---|---|"
        yield from (f"| `{argument.shown}` | {_escaped(argument.help)} |" for argument in command.arguments)
        yield ""
    yield from _options(command.options)
    yield "\n```bash"
    yield from (f"{PROGRAM} {example}" for example in command.examples)
    yield "```"


def _options(options: Iterable[Option]) -> Iterator[str]:
    rows = [f"| `{option.shown}` | {_escaped(option.help)} |" for option in options]
    if rows:
        yield "| Option | Meaning |\n|---|---|"
        yield from rows


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
