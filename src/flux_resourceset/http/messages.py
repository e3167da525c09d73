"""What a request says beside its body, and how an answer is put."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from flux_resourceset import changes, errors
from flux_resourceset.changes import Origin, Stored
from flux_resourceset.drafts import Precondition
from flux_resourceset.history import Point

DRY_RUN = "dry_run"  # the query parameter

_TAG = re.compile(r'\s*(\*|(?:W/)?"[^"]*")\s*(?:,|$)')
_WARNING_LENGTH = 500  # characters of a header: a client takes some kilobytes of them
_SAFE_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,500}")  # a sentence, for every line of the log carries it


# Answers


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None, warnings: Iterable[str] = ()
) -> Response:
    response = Response(msgspec.json.encode(value), status, dict(headers or {}), "application/json")
    # as UTF-8, for a warning quotes what was written
    response.raw_headers += [(b"x-warning", text[:_WARNING_LENGTH].encode()) for text in warnings]
    return response


def at_revision(revision: int) -> dict[str, str]:
    """The header that says which state of the fleet was read."""
    return {"X-Revision": str(revision)}


def document_response(
    stored: Stored, status: int = 200, headers: Mapping[str, str] | None = None, warnings: Iterable[str] = ()
) -> Response:
    return json_response(stored.body, status, {"ETag": f'"{stored.revision}"', **(headers or {})}, warnings)


# Requests


def query(request: Request, allowed: frozenset[str] = frozenset()) -> dict[str, str]:
    """The query parameters; an unknown one is refused, for a mistyped filter must not match everything."""
    params: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in allowed:
            known = f"there are {', '.join(sorted(allowed))}" if allowed else "this path takes none"
            raise errors.BadQuery(f"query parameter {name!r} is not known; {known}")
        if name in params:
            raise errors.BadQuery(f"duplicate query parameter {name!r}")
        params[name] = value
    return params


def is_dry_run(request: Request) -> bool:
    """Whether this can only be a dry run, however its query is spelt; a value that is wrong or doubled makes it none."""
    return request.query_params.getlist(DRY_RUN) == ["true"]


def whole_number(params: Mapping[str, str], name: str, least: int) -> int | None:
    text = params.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) < least:
        raise errors.BadQuery(f"{name} is {text!r}; it must be a whole number of at least {least}")
    return int(text)


def flag(params: Mapping[str, str], name: str) -> bool:
    text = params.get(name, "false")
    if text not in ("true", "false"):
        raise errors.BadQuery(f"{name} is {text!r}; it must be true or false")
    return text == "true"


def moment(params: Mapping[str, str], name: str) -> str | None:
    text = params.get(name)
    if text is None:
        return None
    at = changes.moment(text)
    try:
        if at is None:
            raise ValueError(text)
        return changes.timestamp(at)
    except (ValueError, OverflowError) as exc:  # within hours of the first and the last year
        raise errors.BadQuery(f"{name} is {text!r}; it must be RFC 3339, as in 2026-01-31T12:00:00Z") from exc


def point(params: Mapping[str, str], name: str) -> Point | None:
    """A revision or a time; None where nothing is said."""
    text = params.get(name)
    if text is not None and re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    try:
        return moment(params, name)
    except errors.BadQuery:
        raise errors.BadQuery(
            f"{name} is {text!r}; it must be a revision, as in 12, or a time of RFC 3339, as in 2026-01-31T12:00:00Z"
        ) from None


def precondition(request: Request) -> Precondition:
    return Precondition(tags(request, "if-match"), tags(request, "if-none-match"))


def tags(request: Request, name: str) -> frozenset[str] | None:
    values = request.headers.getlist(name)
    if not values:
        return None
    text = ",".join(values)
    known, position = set(), 0
    while position < len(text):
        match = _TAG.match(text, position)
        if match is None:
            raise errors.BadRequest(f'{name} is {text!r}; it must be * or ETags in quotes, as in "12"')
        known.add(match[1])
        position = match.end()
    return frozenset(known)


def origin(request: Request) -> Origin:
    return Origin(
        actor=request.state.principal.name,
        on_behalf_of=_text(request, "x-actor"),
        request_id=request.state.request_id,
        reason=_text(request, "x-reason"),
    )


def _text(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    if not value:
        return None
    try:
        value = value.encode("latin-1").decode("utf-8")  # headers arrive as bytes; people write UTF-8
    except UnicodeError:
        pass
    if not _SAFE_TEXT.fullmatch(value):
        raise errors.BadRequest(f"{name} must have at most 500 characters, and no control characters")
    return value


def is_known(request: Request, tag: str) -> bool:
    """Whether the client says that it has what bears this tag."""
    known = tags(request, "if-none-match") or frozenset()
    return bool({"*", tag} & {each.removeprefix("W/") for each in known})
