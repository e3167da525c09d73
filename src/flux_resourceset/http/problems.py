"""Refusals as application/problem+json (RFC 9457)."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from flux_resourceset import errors

MEDIA_TYPE = "application/problem+json"


def body(refusal: errors.Refusal, request_id: str) -> dict[str, Any]:
    problem: dict[str, Any] = {
        "type": f"urn:flux-resourceset:problem:{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refusal.detail,
        "code": refusal.code,
        "request_id": request_id,
        **refusal.extra,
    }
    if refusal.violations or isinstance(refusal, errors.Invalid):
        problem["errors"] = [{"pointer": v.pointer, "message": v.message} for v in refusal.violations]
    return problem


def response(refusal: errors.Refusal, request_id: str) -> Response:
    content = msgspec.json.encode(body(refusal, request_id))
    return Response(content, refusal.status, {"X-Request-Id": request_id, **refusal.headers}, MEDIA_TYPE)
