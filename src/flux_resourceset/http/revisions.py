"""Revisions in headers: which state of the fleet an answer tells of, and what a request wants it not to be older than."""

from __future__ import annotations

import asyncio
import re
import time

from starlette.requests import Request
from starlette.types import Scope

from flux_resourceset import errors
from flux_resourceset.follower import Follower
from flux_resourceset.http.auth import Access

SHOWN = b"x-revision"
WANTED = "x-min-revision"
WAIT_SECONDS = 5.0  # for a process to come to a revision
FIRST_PAUSE, LAST_PAUSE = 0.005, 0.05  # seconds between two looks meanwhile

_STATE = "revision"  # of a write, in the state of its request
_MADE = re.compile(rb'\{"revision":([0-9]+)')


async def wait(follower: Follower, request: Request) -> None:
    """Until the fleet is where the request wants it at least."""
    wanted = _wanted(request)
    if wanted is not None:
        await reach(follower, wanted, "ask again, or without X-Min-Revision")


async def reach(follower: Follower, wanted: int, remedy: str) -> None:
    """Wait for a revision, but not for long."""
    ends, pause = time.monotonic() + WAIT_SECONDS, FIRST_PAUSE
    while (there := (await follower.fresh()).revision) < wanted:
        if time.monotonic() >= ends:
            raise errors.Behind(
                f"this server is at revision {there}, and revision {wanted} has not come within {WAIT_SECONDS:g} seconds; "
                f"{remedy}"
            )
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_PAUSE)


def _wanted(request: Request) -> int | None:
    texts = request.headers.getlist(WANTED)
    if not texts:
        return None
    if len(texts) > 1 or not re.fullmatch(r"[0-9]{1,15}", texts[0]):
        raise errors.BadRequest(f"X-Min-Revision is {errors.shortened(', '.join(texts), 100)!r}; it must be a revision, as in 12")
    return int(texts[0])


def made(request: Request, revision: int) -> None:
    """By a write; others may have gone on by the time that it is answered."""
    setattr(request.state, _STATE, revision)


def made_before(request: Request, answer: bytes) -> None:
    """By a write whose answer was kept."""
    match = _MADE.match(answer)
    if match is not None:
        made(request, int(match[1]))


def header(follower: Follower, scope: Scope) -> list[tuple[bytes, bytes]]:
    """What an answer shows to those whom the gate knows, unless it says so itself; Flux's answers stay as they are."""
    state = scope["state"]
    if "principal" not in state or state.get("access") is Access.PUBLIC or scope["path"].startswith("/api/v2/flux/"):
        return []
    return [(SHOWN, b"%d" % state.get(_STATE, follower.fleet.revision))]
