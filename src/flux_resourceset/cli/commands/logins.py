"""`login` and `whoami`: tokens that are asked for, verified and stored, and who they are."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from flux_resourceset.cli import config, failures
from flux_resourceset.cli.commands import identities

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def login(session: Session) -> int:
    url = session.values.required("url").rstrip("/")
    session.check_url(url, "<url>")
    name = session.values.text("name") or urlsplit(url).hostname or url
    content = config.read(session.environment)
    tokens = _asked(session)
    known = identities.verified(session, url, tokens)
    context = {"url": url, **{config.FIELDS[variable]: token for variable, token in tokens.items()}}
    replaced = content["contexts"].get(name, {}).get("url", url)
    content["contexts"][name] = context
    content["current-context"] = name
    file = config.write(session.environment, content)
    if replaced != url:
        session.say(f"note: context {name!r} was about {replaced}; --name gives the new one another name")
    session.say(f"context {name!r} stored in {file}; it is now the current one")
    identities.warn_of_environment(session)
    session.output.value(_told(url, name, known), lambda: [f"server {url}", *identities.lines(known)], [name])
    return failures.OK


def _asked(session: Session) -> dict[str, str]:
    """The tokens, by variable; the one that writes can read as well, so it takes the place of one that is missing."""
    tokens = {variable: _token(session, f"token for {use}") for variable, use in _ASKED.items()}
    tokens = {variable: token for variable, token in tokens.items() if token}
    if not tokens:
        raise failures.usage("no token was given, so nothing was stored; without a terminal, stdin has a line for each")
    if config.TOKEN not in tokens:
        session.say("note: the token for writing is used for reading as well")
    return {config.TOKEN: tokens.get(config.TOKEN, tokens.get(config.WRITE_TOKEN, "")), **tokens}


_ASKED = {config.TOKEN: "reading", config.WRITE_TOKEN: "writing"}


def _token(session: Session, text: str) -> str:
    if not session.interactive:
        return session.stdin.readline().strip()
    answer: str = click.prompt(f"{text} (empty: none)", default="", show_default=False, hide_input=True, err=True)
    return answer.strip()


def whoami(session: Session) -> int:
    target = session.target
    url = target.require(config.URL)
    session.check_url(url, target.named(config.URL))
    target.require(config.TOKEN)
    tokens = {variable: target.known[variable] for variable in identities.ROLES if target.known.get(variable)}
    known = identities.verified(session, url, tokens)
    source = "the environment" if target.context is None else f"context {target.context}"
    lines = [f"server {url} ({source})", *identities.lines(known)]
    session.output.value(_told(url, target.context, known), lambda: lines, [str(each["name"]) for each in known])
    return failures.OK


def _told(url: str, context: str | None, known: list[identities.Identity]) -> dict[str, object]:
    return {"server": url, "context": context, "tokens": known}
