"""The reference page of the command line, from the same table as its parser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flux_resourceset.cli import config, failures, known_kinds
from flux_resourceset.cli.parsing import command_table, grammar
from flux_resourceset.cli.parsing.grammar import PROGRAM, Command, Option

_INTRODUCTION = f"""# {PROGRAM}

This page lists every command. It is generated from the command line itself by `make generate`; do not edit it.

The command groups of kinds (`cluster`, `component`, …) are made from the kinds of the server. This page shows those of the
built-in kinds. A kind that you add through `RESOURCES_DIR` gets its group, its verbs and its options in the same way; you do
not have to install anything on the client.

## Where the server is

| Variable | Meaning |
|---|---|
| `{config.URL}` | Base URL of the API, as in `http://127.0.0.1:8080`. |
| `{config.TOKEN}` | Token for reading. |
| `{config.WRITE_TOKEN}` | Token for writing; reads do not need it. |

You can also store them once as a context, as in kubectl: `{PROGRAM} login http://127.0.0.1:8080` asks for the tokens,
verifies them, and stores them. Contexts are stored in `~/.config/flux-resourceset/config.yaml`. The command line refuses to use
this file if other users can read it.

The address and the tokens always come from one place. If you give `--context`, they come from that context. Otherwise, if any of
the three variables is set, they come only from the environment. Otherwise they come from the current context. So a token of a
context is never sent to an address from the environment. If something is missing in that place, it is an error (exit code 2).

If several people share a token, `FLUX_API_ACTOR` says who makes a change; the change log records it. `--actor` says the same for
one command. `NO_COLOR` switches colours off. `edit` opens the editor in `EDITOR`, or else in `VISUAL`.

The command line can use a proxy: `HTTPS_PROXY` for `https://` servers, which are reached through a tunnel (CONNECT),
`HTTP_PROXY` for `http://` servers, `ALL_PROXY` for both, each as in `http://user:password@proxy.example.com:3128`. `NO_PROXY`
lists servers that are reached without the proxy: hosts, `host:port`, domains with their subdomains (`example.com`,
`.example.com`), addresses, networks such as `10.0.0.0/8`, or `*`. The proxy is also used for a server on this machine, so put
`127.0.0.1` there for a demo. If a variable is also set in lower case, the lower-case one is used. `SSL_CERT_FILE` names a file
with certificate authorities, `SSL_CERT_DIR` directories of them, as in OpenSSL.

## What is printed

Data goes to stdout, messages go to stderr. The commands for reading (`list`, `get`, `describe`, `changes`, `tags`, `overrides`,
`usage`) print a table or text for reading, both on a terminal and in a pipe. All other commands, such as those that write, print
lines on a terminal, and JSON in a pipe: the array or document of the API.

| `-o` | What is printed |
|---|---|
| `table` | A table; on a terminal it fits the width |
| `wide` | A table with all columns, in which nothing is cut |
| `json` | The API's array or document, as in `{PROGRAM} cluster list -o json \\| jq .` |
| `yaml` | The same as YAML, with `kind`, so that you can use it with `apply -f -` |
| `name` | One line `kind/id` for each document |
| `jsonpath=TEMPLATE` | What the template finds, as kubectl prints it |
| `custom-columns=NAME:.path,…` | A table of these columns, a row for each document; a missing value is `<none>` |

On a terminal every row of a table is one line. If the terminal is too narrow, less important columns are left out and long cells
are cut with `…`; the id is cut last. In a pipe nothing is cut, and there are no colours.

With `jsonpath`, values are joined by a space, a missing key gives empty text, objects are printed as JSON, and there is no
newline at the end. The template is applied to `{{"items": […]}}` for a list, and to the document itself for one id:

```bash
{PROGRAM} cluster list -o jsonpath='{{.items[*].id}}'
{PROGRAM} cluster list -o jsonpath='{{range .items[?(@.environment=="prod")]}}{{.id}}{{"\\t"}}{{.cluster_dns}}{{"\\n"}}{{end}}'
{PROGRAM} component list -o custom-columns=ID:.id,TAG:.oci_tag --sort-by .oci_tag --no-headers
```

A template may hold fields (`.a.b`, `['a.b']`, `.a\\.b`), `[0]`, `[-1]`, `[*]`, slices, unions (`['a','b']`), `..`, filters
with `==`, `!=`, `<`, `<=`, `>`, `>=` or only a path, `{{range …}}{{end}}` and text in quotes. Syntax that kubectl does not
have either, such as `&&` or `=~`, is refused with exit code 2. `--sort-by .field` sorts numbers as numbers, and `prod-9` before
`prod-10`; documents without the field come first. It sorts only what is shown: with `--limit`, the server selects the documents
before they are sorted.

`--watch` (`-w`) of `list` and `get` first prints the current documents, and then a row for every change, with `created`,
`updated` or `deleted` in the last column. A document that no longer matches the filters counts as deleted. With `-o json` each
row is a line `{{"change": …, "document": …}}`.

On a terminal, output that is longer than the screen goes through `$PAGER`, or through `less -FRX` if that is installed.
`--no-pager`, `PAGER=` and `PAGER=cat` switch this off.

`--dry-run` prints what would change, and changes nothing. Unchanged documents are counted and not listed. Text from the server
cannot control the terminal: control characters, and characters that change the direction of text, are shown as escapes, such as
`\\x1b`; in JSON and YAML they are escaped by the syntax of these formats.
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
