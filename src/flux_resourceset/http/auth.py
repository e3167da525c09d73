"""Authentication: a Bearer or Basic header becomes a token, before anything about the path is revealed."""

from __future__ import annotations

import base64
import binascii

from flux_resourceset import errors
from flux_resourceset.tokens import Token, Tokens

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="flux-resourceset", Basic realm="flux-resourceset"'}

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


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


def authenticate(tokens: Tokens, authorization: list[bytes]) -> Token:
    if not authorization:
        raise errors.Unauthorized("send Authorization: Bearer <token>", headers=_CHALLENGE)
    if len(authorization) > 1:
        raise errors.Unauthorized("two Authorization headers; send one", headers=_CHALLENGE)
    presented = secret(authorization[0])
    token = tokens.find(presented) if presented else None
    if token is None:
        raise errors.Unauthorized("the token is not known; check AUTH_TOKEN or the Secret it comes from", headers=_CHALLENGE)
    return token


def authorize(token: Token, method: str, writable: bool, rehearsal: bool = False) -> None:
    """A rehearsal writes nothing, so it takes no more than reading does."""
    if writable and method not in SAFE_METHODS and token.role != "write" and not rehearsal:
        raise errors.Forbidden(f"token {token.name!r} may only read; {method} needs a token of role write")
