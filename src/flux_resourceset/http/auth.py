"""Who asks, and whether they may: a Bearer or Basic header becomes a principal, and its rights are held against a route's."""

from __future__ import annotations

import base64
import binascii
import enum
from typing import assert_never

from starlette.requests import Request

from flux_resourceset import errors
from flux_resourceset.http import messages
from flux_resourceset.tokens import Principal, Right, Tokens

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="flux-resourceset", Basic realm="flux-resourceset"'}


# Who asks


def secret(header: bytes) -> bytes | None:
    """The secret that an Authorization header carries; Flux sends Basic when its Secret has a username."""
    scheme, _, value = header.partition(b" ")
    match scheme.lower():
        case b"bearer":
            return value.strip()
        case b"basic":
            try:
                return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
            except binascii.Error:
                return None
    return None


def authenticate(tokens: Tokens, authorization: list[bytes]) -> Principal:
    if not authorization:
        raise errors.Unauthorized("send Authorization: Bearer <token>", headers=_CHALLENGE)
    if len(authorization) > 1:
        raise errors.Unauthorized("two Authorization headers; send one", headers=_CHALLENGE)
    presented = secret(authorization[0])
    principal = tokens.find(presented) if presented else None
    if principal is None:
        raise errors.Unauthorized("the token is not known; check AUTH_TOKEN or the Secret it comes from", headers=_CHALLENGE)
    return principal


# Whether they may


class Access(enum.Enum):
    """What a method of a path asks of whoever calls it; the value is what the documentation says of it."""

    PUBLIC = "no token"
    KNOWN = "any"
    VIEW = "`read`, or bound to this cluster"
    READ = "`read`"
    WRITE = "`write`"
    WRITE_UNLESS_DRY_RUN = "`write`; `read` for a dry run"


def authorize(principal: Principal, access: Access, request: Request) -> None:
    """Every decision about rights is made here."""
    if not _is_allowed(principal, access, request):
        raise errors.Forbidden(_refusal(principal, request.method))


def _is_allowed(principal: Principal, access: Access, request: Request) -> bool:
    match access:
        case Access.PUBLIC | Access.KNOWN:  # whoever got here with a token has one that is known
            return True
        case Access.VIEW:
            return principal.may_view(request.path_params["cluster_dns"])
        case Access.READ:
            return Right.READ in principal.rights
        case Access.WRITE:
            return Right.WRITE in principal.rights
        case Access.WRITE_UNLESS_DRY_RUN:
            # it writes nothing, so it takes no more than reading does
            return (Right.READ if messages.is_dry_run(request) else Right.WRITE) in principal.rights
    assert_never(access)


def _refusal(principal: Principal, method: str) -> str:
    """The same for whatever exists and does not."""
    if principal.clusters is not None:
        return f"token {principal.name!r} reads the views of {', '.join(sorted(principal.clusters))} and nothing else"
    return f"token {principal.name!r} may only read; {method} needs a token of role write"
