"""Who a token is, as its server tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import config, failures

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session
    from flux_resourceset.client import Role

Identity = dict[str, Any]  # name and role; an older server tells neither

ROLES: Mapping[str, Role] = {config.TOKEN: "read", config.WRITE_TOKEN: "write"}
_USES = {"read": "reading", "write": "writing"}


def identity(session: Session, url: str, variable: str, token: str) -> Identity:
    """What the server knows of a token; refused ones, and those that cannot do what they are for, are failures."""
    role = ROLES[variable]
    server = session.connect_to(url, {"read": session.checked_token(token, f"the token for {_USES[role]}")})
    try:
        known = _asked(server)
    except client.Problem as problem:
        if problem.status not in (401, 403):
            raise
        raise _refused(role, f"was refused by {url}") from problem
    if isinstance(known.get("clusters"), list):
        clusters = ", ".join(map(str, known["clusters"]))
        raise _refused(role, f"({known['name']}) is bound to {clusters}, and reads nothing but its views; use another one")
    if role == "write" and known["role"] == "read":
        raise _refused(role, f"({known['name']}) may only read; use one of role write, or leave it out")
    return {"for": role, **known}


def _asked(server: client.Client) -> Identity:
    try:
        return server.get("/whoami").object(name=str, role=str)
    except client.Problem as problem:
        if problem.status != 404:
            raise
    server.get("/kinds")  # an older server cannot tell, but it refuses a wrong token
    return {"name": None, "role": None}


def _refused(role: str, why: str) -> failures.Failure:
    return failures.Failure(failures.REFUSED, f"the token for {_USES[role]} {why}")


def verified(session: Session, url: str, tokens: Mapping[str, str]) -> list[Identity]:
    """Every token of a server, by variable; without any, that it is there at all."""
    if not tokens:
        session.connect_to(url, {}).get("/health")
    return [identity(session, url, variable, tokens[variable]) for variable in ROLES if variable in tokens]


def lines(identities: list[Identity]) -> list[str]:
    return [f"{_USES[known['for']]}: {described(known)}" for known in identities]


def described(known: Identity) -> str:
    return (
        f"token {known['name']}, role {known['role']}"
        if known["name"]
        else "the token is good; the server does not tell its name"
    )


def warn_of_environment(session: Session) -> None:
    """Whoever chooses a context is told when it will not be used."""
    given = [variable for variable in config.FIELDS if session.environment.get(variable)]
    if given:
        session.say(f"note: {', '.join(given)} set: the environment is used, unless --context names a context")
