"""Refusals as application/problem+json (RFC 9457)."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from flux_resourceset import errors

_SHOWN = 100  # violations: whoever has more mends these first
_LENGTH = 1000  # characters of a text: an answer must not grow with what was sent

MEDIA_TYPE = "application/problem+json"


def body(refusal: errors.Refusal, request_id: str) -> dict[str, Any]:
    problem: dict[str, Any] = {
        "type": f"urn:flux-resourceset:problem:{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": errors.shortened(refusal.detail, 4 * _LENGTH),
        "code": refusal.code,
        "request_id": request_id,
        **{name: errors.shortened(value, _LENGTH) if isinstance(value, str) else value for name, value in refusal.extra.items()},
    }
    if refusal.violations or isinstance(refusal, errors.Invalid):
        shown = refusal.violations[:_SHOWN]
        problem["errors"] = [
            {"pointer": errors.shortened(v.pointer, _LENGTH), "message": errors.shortened(v.message, _LENGTH)} for v in shown
        ]
        if len(refusal.violations) > _SHOWN:
            problem["errors_total"] = len(refusal.violations)
    return problem


def response(refusal: errors.Refusal, request_id: str) -> Response:
    content = msgspec.json.encode(body(refusal, request_id))
    return Response(content, refusal.status, {"X-Request-Id": request_id, **refusal.headers}, MEDIA_TYPE)
