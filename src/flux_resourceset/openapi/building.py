"""What operations of the document are made of: parameters, bodies, answers, and the refusals that they share."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from flux_resourceset import errors
from flux_resourceset.kinds.fields import sample
from flux_resourceset.kinds.model import Kind, Schema
from flux_resourceset.openapi.conversion import Form, converted

Operation = dict[str, Any]
Item = dict[str, Any]
Refusals = tuple[type[errors.Refusal], ...]

JSON = ("application/json",)
MERGE_PATCH = ("application/merge-patch+json", "application/json")

BODY: Refusals = (
    errors.BadRequest,
    errors.RequestTimeout,
    errors.BodyTooLarge,
    errors.UnsupportedMediaType,
    errors.Invalid,
)
TOKEN: Refusals = (errors.Unauthorized, errors.Forbidden)  # of every path that is not public: a token may be bound to a cluster
READ: Refusals = (errors.BadRequest, *TOKEN, errors.Unavailable)
WRITE = READ  # the same: what needs more than reading is Forbidden, too
STATEMENT = ("XReason", "XActor", "XRequestId")


def parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def headers(*names: str) -> dict[str, Schema]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*names, "X-Request-Id")}


def content(schema: Schema, example: Any, media_types: Sequence[str] = JSON) -> Schema:
    shown = {} if example is None else {"example": example}
    return {media_type: {"schema": schema, **copy.deepcopy(shown)} for media_type in media_types}


def answer(description: str, schema: Schema, example: Any = None, names: Sequence[str] = ()) -> Schema:
    """`names` are those of its headers."""
    return {"description": description, "headers": headers(*names), "content": content(schema, example)}


def body(schema: Schema, example: Any, media_types: Sequence[str] = JSON, required: bool = True) -> Schema:
    return {"required": required, "content": content(schema, example, media_types)}


def refusal_name(refusal: type[errors.Refusal]) -> str:
    """Not that of a schema: generators of clients make one type of a response, and another of a schema."""
    return f"{refusal.__name__}Refusal"


def refused(refusal: type[errors.Refusal]) -> Schema:
    return {"$ref": f"#/components/responses/{refusal_name(refusal)}"}


def operation(
    id: str,
    tag: str,
    summary: str,
    answers: Mapping[int, Schema],
    refusals: Refusals = (),
    parameters: Sequence[Schema] = (),
    body: Schema | None = None,
    description: str = "",
) -> Operation:
    responses = dict(answers)
    possible: set[type[errors.Refusal]] = {*refusals, *(BODY if body else ()), errors.Internal}
    for refusal in possible:
        responses[refusal.status] = refused(refusal)
    return {
        "operationId": id,
        "tags": [tag],
        "summary": summary,
        **({"description": description} if description else {}),
        **({"parameters": list(parameters)} if parameters else {}),
        **({"requestBody": body} if body else {}),
        "responses": {str(status): responses[status] for status in sorted(responses)},
    }


def head(get: Operation) -> Operation:
    """The same without bodies."""
    head = copy.deepcopy(get)
    head["operationId"] += ".head"
    head["summary"] = f"The headers of: {head['summary']}"
    titles = {refusal_name(refusal): refusal.title for refusal in errors.Refusal.__subclasses__()}
    for status, response in head["responses"].items():
        name = response.get("$ref", "").rpartition("/")[2]
        head["responses"][status] = {"description": titles[name]} if name else response
        response.pop("content", None)
    return head


def path(name: str, description: str, schema: Schema, example: Any) -> Schema:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema, "example": example}


def id_path(kind: Kind) -> Schema:
    schema = converted(kind.properties["id"], Form.NEW)
    constraint: Schema = {word: schema[word] for word in ("type", "format", "pattern", "maxLength") if word in schema}
    return path("id", f"Id of the {kind.singular}.", constraint, sample(schema))


def query(name: str, description: str, schema: Schema, example: Any = None) -> Schema:
    shown = {} if example is None else {"example": example}
    return {"name": name, "in": "query", "description": description, "schema": schema, **shown}


def statement(*more: str) -> list[Schema]:
    return [parameter(name) for name in (*more, *STATEMENT)]
