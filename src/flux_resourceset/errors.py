"""Every refusal, with its stable code and its HTTP status.

Error
├── StartupError              the program cannot start: one line on stderr, exit code 2
└── Refusal                   an answer to a request, as application/problem+json
    ├── BadRequest            400 bad-request
    │   ├── MalformedBody     400 malformed-body
    │   └── BadQuery          400 bad-query
    ├── Unauthorized          401 unauthorized
    ├── Forbidden             403 forbidden
    ├── NotFound              404 not-found
    ├── MethodNotAllowed      405 method-not-allowed
    ├── RequestTimeout        408 request-timeout
    ├── Conflict              409 conflict
    │   ├── AlreadyExists     409 already-exists
    │   └── InUse             409 in-use
    ├── Compacted             410 compacted
    ├── PreconditionFailed    412 precondition-failed
    │   └── PlanChanged       412 plan-changed
    ├── BodyTooLarge          413 body-too-large
    ├── UnsupportedMediaType  415 unsupported-media-type
    ├── Invalid               422 invalid-document
    │   ├── KeyReused         422 idempotency-key-reused
    │   ├── BadFilter         422 bad-filter
    │   ├── TooExpensive      422 too-expensive
    │   ├── NotYet            422 bad-query
    │   └── AnswerTooLarge    422 answer-too-large
    ├── Frozen                423 frozen
    ├── ConfirmationRequired  428 confirmation-required
    ├── Internal              500 internal-error
    └── Unavailable           503 unavailable
        ├── Doubt             503 unavailable
        ├── Unreachable       503 unavailable
        ├── Stale             503 stale
        └── Behind            503 behind
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

MAX_VIOLATIONS = 1000  # of one document or batch: nobody reads more, and a search without end is an attack


class Violation(NamedTuple):
    """What is wrong with a document, and where."""

    pointer: str
    message: str


def shortened(text: str, most: int) -> str:
    """A text from outside, as far as it helps to recognise it: an answer must not grow with what was sent."""
    return text if len(text) <= most else text[:most] + "…"


class Error(Exception):
    """The root of what the server raises on purpose; the command line and the render engine have failures of their own."""


def drop_frames(exc: BaseException) -> None:
    """Drop the tracebacks of an exception and of its causes. They hold every frame that it passed, and so a whole draft; when a
    frame refers to the exception in turn, for example through a task, only the garbage collector would free them."""
    chain = [exc]
    while chain:
        each = chain.pop()
        each.__traceback__ = None
        chain += [cause for cause in (each.__cause__, each.__context__) if cause is not None]
        each.__cause__ = each.__context__ = None


class StartupError(Error):
    pass


class Refusal(Error):
    status: ClassVar[int]
    code: ClassVar[str]
    title: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        violations: Iterable[Violation] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.violations = tuple(violations)
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


class BadRequest(Refusal):
    status, code, title = 400, "bad-request", "Bad request"


class MalformedBody(BadRequest):
    code, title = "malformed-body", "Invalid JSON body"


class BadQuery(BadRequest):
    code, title = "bad-query", "Invalid query parameter"


class Unauthorized(Refusal):
    status, code, title = 401, "unauthorized", "Unauthorized: a valid token is needed"


class Forbidden(Refusal):
    status, code, title = 403, "forbidden", "Forbidden: the token does not have this right"


class NotFound(Refusal):
    status, code, title = 404, "not-found", "Not found"


class MethodNotAllowed(Refusal):
    status, code, title = 405, "method-not-allowed", "Method not allowed"


class RequestTimeout(Refusal):
    status, code, title = 408, "request-timeout", "Request timeout"


class Conflict(Refusal):
    status, code, title = 409, "conflict", "Conflict with what is stored"


class AlreadyExists(Conflict):
    code, title = "already-exists", "Already exists"


class InUse(Conflict):
    code, title = "in-use", "Still in use"


class Compacted(Refusal):
    """Older than the base: it was there, and nobody can tell any more."""

    status, code, title = 410, "compacted", "Gone: the log was compacted beyond it"

    @classmethod
    def below(cls, base: int, what: str) -> Compacted:
        return cls(f"{what} was compacted; the oldest that can be asked for is revision {base}", extra={"oldest": base})


class PreconditionFailed(Refusal):
    status, code, title = 412, "precondition-failed", "Precondition failed: the document is at another revision"


class PlanChanged(PreconditionFailed):
    code, title = "plan-changed", "The plan is another one by now"


class BodyTooLarge(Refusal):
    status, code, title = 413, "body-too-large", "Request body too large"


class UnsupportedMediaType(Refusal):
    status, code, title = 415, "unsupported-media-type", "Unsupported media type"


class Invalid(Refusal):
    status, code, title = 422, "invalid-document", "Invalid document"

    @classmethod
    def document(cls, subject: str, violations: Iterable[Violation]) -> Invalid:
        listed = tuple(violations)
        shown = "; ".join(f"{shortened(v.pointer, 200) or 'document'} {shortened(v.message, 500)}" for v in listed[:3])
        more = f"; and {len(listed) - 3} more" if len(listed) > 3 else ""
        return cls(f"{subject}: {shown}{more}", violations=listed)


class KeyReused(Invalid):
    code, title = "idempotency-key-reused", "Idempotency key used for another request"


class BadFilter(Invalid):
    code, title = "bad-filter", "Invalid filter value"


class TooExpensive(Invalid):
    code, title = "too-expensive", "Request too expensive"


class NotYet(Invalid):
    """A parameter that is well formed and asks for what is still to come; programs take it as any other wrong parameter."""

    code, title = "bad-query", "Not there yet"


class AnswerTooLarge(Invalid):
    code, title = "answer-too-large", "Answer too large for Flux"


class Frozen(Refusal):
    status, code, title = 423, "frozen", "Frozen: no change is allowed there now"


class ConfirmationRequired(Refusal):
    status, code, title = 428, "confirmation-required", "Confirmation required"


class Internal(Refusal):
    status, code, title = 500, "internal-error", "Internal server error"


class Unavailable(Refusal):
    """Not now: Flux keeps what it has when it sees this."""

    status, code, title = 503, "unavailable", "Service unavailable"


class Doubt(Unavailable):
    """About the data. A client does the same about every 503, hence the same code; people have a reason to look at the store."""

    title = "Service unavailable: the data cannot be trusted right now"


class Unreachable(Unavailable):
    """Nobody can ask the database: the data may be as good as ever, and what is in memory still is."""

    title = "Service unavailable: the database cannot be reached"


class Stale(Unavailable):
    code, title = "stale", "Service unavailable: the database has not answered for longer than answers may be old"


class Behind(Unavailable):
    code, title = "behind", "Service unavailable: this server has not come to that revision yet"
