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

Data goes to stdout, messages to stderr. The commands for reading (`list`, `get`, `describe`, `usage`, `changes`, `tags`,
`overrides`) print a table, in a pipe as on a terminal. All other commands, such as those that write, print lines on a
terminal and JSON elsewhere: the API's bare array or document.

| `-o` | What is printed |
|---|---|
| `table` | A table; on a terminal, one that fits |
| `wide` | A table with all columns and nothing cut |
| `json` | The API's array or document, as in `{PROGRAM} cluster list -o json \\| jq .` |
| `yaml` | The same, with `kind`, so that `apply -f -` takes it back |
| `name` | `kind/id`, a line each |
| `jsonpath=TEMPLATE` | What the template finds, as kubectl prints it |
| `custom-columns=NAME:.path,…` | A table of these columns, a row for each document; a missing value is `<none>` |

On a terminal every row of a table is one line: columns that matter less are left out, long cells end with `…`, and the id
gives way last. In a pipe nothing is cut, and there are no colours.

With `jsonpath`, values are joined by a space, a missing key is empty, objects are JSON, and there is no newline at the end. A
list is `{{"items": […]}}`, one id is the document itself:

```bash
{PROGRAM} cluster list -o jsonpath='{{.items[*].id}}'
{PROGRAM} cluster list -o jsonpath='{{range .items[?(@.environment=="prod")]}}{{.id}}{{"\\t"}}{{.cluster_dns}}{{"\\n"}}{{end}}'
{PROGRAM} component list -o custom-columns=ID:.id,TAG:.oci_tag --sort-by .oci_tag --no-headers
```

A template may hold fields (`.a.b`, `['a.b']`, `.a\\.b`), `[0]`, `[-1]`, `[*]`, slices, unions (`['a','b']`), `..`, filters
with `==`, `!=`, `<`, `<=`, `>`, `>=` or only a path, `{{range …}}{{end}}` and text in quotes. What kubectl does not know
either, such as `&&` or `=~`, is refused with exit code 2. `--sort-by .field` sorts numbers as numbers and `prod-9` before
`prod-10`; what lacks the field comes first. It sorts what is shown: with `--limit`, the server has chosen before.

`--watch` (`-w`) of `list` and `get` prints what is there, and then a row for every change, with `created`, `updated` or
`deleted` in the last column; what no longer matches the filters counts as deleted. With `-o json` each is a line `{{"change":
…, "document": …}}`.

On a terminal, output that is longer than the screen goes through `$PAGER`, or `less -FRX` if it is there. `--no-pager`,
`PAGER=` and `PAGER=cat` switch that off.

`--dry-run` prints what would change, and changes nothing. Documents that are unchanged are counted, not listed. Whatever a
server says, nothing in it steers the terminal: control characters, and those that turn the direction of text, are shown as
escapes, such as `\\x1b`, in JSON and YAML by their own syntax.
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
