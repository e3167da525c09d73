"""The commands of `config`: servers and tokens stored under names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flux_resourceset.cli import config, failures
from flux_resourceset.cli.commands import identities

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_HIDDEN = "REDACTED"  # as kubectl says


def set_context(session: Session) -> int:
    content = config.read(session.environment)
    name = session.values.required("name")
    stored = content["contexts"].setdefault(name, {})
    given = {field: value for field in config.FIELDS.values() if (value := session.values.text(field)) is not None}
    if not given and not stored:
        raise failures.usage("say what to store: --url, --token, --write-token")
    for field, value in given.items():
        stored[field] = _secret(session, field) if value == "-" and field != "url" else value
    if "url" in given:
        session.check_url(stored["url"], "--url")
    if not session.values.flag("no-verify"):
        _verify(session, config.stored(content, name))
    content.setdefault("current-context", name)
    file = config.write(session.environment, content)
    session.say(f"context {name!r} stored in {file}")
    session.data(_row(content, name), name=name)
    return failures.OK


def _verify(session: Session, known: dict[str, str]) -> None:
    """Whether the server takes what a context holds; as long as it has no URL, there is nobody to ask."""
    url = known.pop(config.URL, None)
    for identity in identities.verified(session, url, known) if url else ():
        session.say(f"verified: {identities.lines([identity])[0]}")


def _secret(session: Session, field: str) -> str:
    """A token from a line of stdin, so that no process list shows it."""
    line = click.prompt(field, hide_input=True, err=True) if session.interactive else session.stdin.readline()
    if not line.strip():
        raise failures.usage(f"--{field} -: stdin holds no token; give each on a line of its own")
    return line.strip()


def use_context(session: Session) -> int:
    content, name = _named(session)
    content["current-context"] = name
    config.write(session.environment, content)
    session.say(f"context {name!r} is now the current one")
    identities.warn_of_environment(session)
    session.data(_row(content, name), name=name)
    return failures.OK


def delete_context(session: Session) -> int:
    content, name = _named(session)
    row = _row(content, name)
    del content["contexts"][name]
    if row["current"]:
        del content["current-context"]
        session.warn("it was the current context, so there is none now; choose one with config use-context")
    config.write(session.environment, content)
    session.say(f"context {name!r} deleted")
    session.data(row, name=name)
    return failures.OK


def rename_context(session: Session) -> int:
    content, name = _named(session)
    new = session.values.required("new")
    if not new:
        raise failures.usage("<new> must not be empty")
    if new in content["contexts"] and new != name:
        raise failures.usage(f'context "{new}" exists already; delete it first, or choose another name')
    content["contexts"] = {new if each == name else each: stored for each, stored in content["contexts"].items()}
    if content.get("current-context") == name:
        content["current-context"] = new
    config.write(session.environment, content)
    session.say(f"context {name!r} is now {new!r}")
    session.data(_row(content, new), name=new)
    return failures.OK


def _named(session: Session) -> tuple[dict[str, Any], str]:
    """The configuration, and the context of it that the command is about."""
    content = config.read(session.environment)
    name = session.values.required("name")
    config.stored(content, name)
    return content, name


# Reading


def get_contexts(session: Session) -> int:
    content = config.read(session.environment)
    rows = [_row(content, name) for name in content["contexts"]]
    session.output.rows(rows, ["current", "name", "url", "token", "write_token"], name=lambda row: str(row["name"]))
    return failures.OK


def current_context(session: Session) -> int:
    content = config.read(session.environment)
    name = content.get("current-context")
    if name is None:
        raise failures.usage("there is no current context; choose one with config use-context, or log in with login URL")
    config.stored(content, name)
    session.data(_row(content, name), name, name=name)
    return failures.OK


def view(session: Session) -> int:
    from flux_resourceset.cli.output import yaml_text  # not before: YAML takes long to import

    content = config.read(session.environment)
    if not session.values.flag("raw"):
        shown = {name: _masked(context) for name, context in content["contexts"].items()}
        content = {**content, "contexts": shown}
    session.output.value(content, lambda: yaml_text.dumped([content]).splitlines(), list(content["contexts"]))
    return failures.OK


def _masked(context: dict[str, Any]) -> dict[str, Any]:
    return {field: value if field == "url" else _HIDDEN for field, value in context.items()}


def _row(content: dict[str, Any], name: str) -> dict[str, Any]:
    """A context without its secrets."""
    context = content["contexts"][name]
    return {
        "name": name,
        "current": name == content.get("current-context"),
        "url": context.get("url"),
        "token": "token" in context,
        "write_token": "write-token" in context,
    }
