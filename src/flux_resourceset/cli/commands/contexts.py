"""The commands of `config`: servers and tokens stored under names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flux_resourceset.cli import config, failures

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


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
    content.setdefault("current-context", name)
    file = config.write(session.environment, content)
    session.say(f"context {name!r} stored in {file}")
    session.data(_row(content, name), name=name)
    return failures.OK


def _secret(session: Session, field: str) -> str:
    """A token from a line of stdin, so that no process list shows it."""
    line = click.prompt(field, hide_input=True, err=True) if session.interactive else session.stdin.readline()
    if not line.strip():
        raise failures.usage(f"--{field} -: stdin holds no token; give each on a line of its own")
    return line.strip()


def use_context(session: Session) -> int:
    content = config.read(session.environment)
    name = session.values.required("name")
    if name not in content["contexts"]:
        raise config.context_not_found(name, content)
    content["current-context"] = name
    config.write(session.environment, content)
    session.say(f"context {name!r} is now the current one")
    session.data(_row(content, name), name=name)
    return failures.OK


def get_contexts(session: Session) -> int:
    content = config.read(session.environment)
    rows = [_row(content, name) for name in content["contexts"]]
    session.output.rows(rows, ["current", "name", "url", "token", "write_token"], name=lambda row: str(row["name"]))
    return failures.OK


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
