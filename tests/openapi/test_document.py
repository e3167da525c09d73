"""The document by itself: valid, fresh, as wide as the route table, with examples that keep their own rules."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest
import yaml

import live
from flux_resourceset import errors, openapi
from flux_resourceset.follower import Follower
from flux_resourceset.http import app, log, metrics
from flux_resourceset.http.auth import Access
from flux_resourceset.kinds import kind_files, model
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from openapi.documents import Json, extended, mistakes, operations, resolved

MODES = {"crud": True, "read-only": False}


@pytest.fixture(scope="module", params=["built-in", "extended"])
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> model.Kinds:
    return extended(tmp_path_factory.mktemp("kinds")) if request.param == "extended" else kind_files.load()


@pytest.fixture(scope="module", params=MODES)
def writable(request: pytest.FixtureRequest) -> bool:
    return MODES[request.param]


@pytest.fixture(scope="module")
def document(known: model.Kinds, writable: bool) -> Json:
    return openapi.document(known, writable=writable)


@pytest.mark.long
def test_the_document_is_valid_openapi(document: Json) -> None:
    openapi_spec_validator.validate(document)
    assert document["openapi"] == "3.0.3"


def test_the_text_says_what_the_document_says(known: model.Kinds) -> None:
    text = openapi.text(known, writable=False)
    assert yaml.safe_load(text) == openapi.document(known, writable=False)


@pytest.mark.long
def test_the_json_is_the_same_document(known: model.Kinds) -> None:
    text = openapi.text(known, writable=True)
    assert json.loads(openapi.as_json(text)) == yaml.safe_load(text)
    assert openapi.as_json(b"a: {200: 2026-01-31}") == b'{"a":{"200":"2026-01-31"}}'  # as people write it


@pytest.mark.long
def test_the_committed_document_is_fresh() -> None:
    committed = (live.ROOT / "openapi" / "openapi.yaml").read_bytes()
    assert committed == openapi.text(kind_files.load(), writable=True), "openapi/openapi.yaml is stale: run `make generate`"


def served(known: model.Kinds, writable: bool) -> set[str]:
    """Every path and method of the route table, as its 405 tells them."""
    ledger = Ledger(Follower(known, MemoryStore))
    found = set()
    for route in app.routes(known, ledger, metrics.Metrics(ledger.follower), lambda: b"", writable):
        with pytest.raises(errors.MethodNotAllowed) as refused:
            asyncio.run(route.app({"type": "http", "method": "PROBE"}, None, None))  # type: ignore[arg-type]
        found |= {f"{method} {route.path}" for method in refused.value.headers["Allow"].split(", ")}
    return found


def test_the_document_lists_every_route_that_is_served_and_no_other(known: model.Kinds, writable: bool, document: Json) -> None:
    listed = {f"{method.upper()} {path}" for path, method, _ in operations(document)}
    routes = served(known, writable)
    assert {"not served": listed - routes, "not listed": routes - listed} == {"not served": set(), "not listed": set()}


def test_what_asks_for_a_token_can_be_forbidden_and_what_is_public_says_so(
    known: model.Kinds, writable: bool, document: Json
) -> None:
    """Every path that is not public can meet a token that is bound to a cluster."""
    ledger = Ledger(Follower(known, MemoryStore))
    routes = app.routes(known, ledger, metrics.Metrics(ledger.follower), lambda: b"", writable)
    by_access: dict[Access, set[str]] = {}
    for route in routes:
        for method, endpoint in route.resource.endpoints.items():
            by_access.setdefault(endpoint.access, set()).add(f"{method} {route.path}")
    public = by_access[Access.PUBLIC]
    assert by_access[Access.KNOWN] == {"GET /whoami", "HEAD /whoami"}
    open_paths = ("/health", "/ready", "/openapi.yaml", "/openapi.json")
    assert public == {f"{method} {path}" for method in ("GET", "HEAD") for path in open_paths}
    for path, method, operation in operations(document):
        name = f"{method.upper()} {path}"
        assert (operation.get("security") == []) == (name in public), name
        if name not in public or path.startswith("/openapi."):  # which can be made to ask for a token
            needed = {"401"} if name in by_access[Access.KNOWN] else {"401", "403"}
            assert needed <= operation["responses"].keys(), name


def contents(document: Json) -> Iterator[tuple[str, Json, Any]]:
    """Every example with its place and its schema."""
    for path, method, operation in operations(document):
        place = f"{method} {path}"
        parts = [resolved(document, part) for part in operation["parameters"]]
        answers = {status: resolved(document, answer) for status, answer in operation["responses"].items()}
        for part in parts:
            yield from _shown(document, f"{place} {part['name']}", part)
        for status, answer in answers.items():
            for name, header in answer.get("headers", {}).items():
                yield from _shown(document, f"{place} {status} {name}", resolved(document, header))
        bodies = {"body": operation.get("requestBody", {}), **answers}
        for name, body in bodies.items():
            for media in body.get("content", {}).values():
                yield from _shown(document, f"{place} {name}", media)


def _shown(document: Json, place: str, thing: Json) -> Iterator[tuple[str, Json, Any]]:
    schema = thing["schema"]
    values = [thing["example"]] if "example" in thing else [found["value"] for found in thing.get("examples", {}).values()]
    inner = resolved(document, schema)
    for value in [*values, *([inner["example"]] if "example" in inner else [])]:
        yield place, schema, value


def test_examples_keep_the_rules_of_their_schemas(document: Json) -> None:
    found = list(contents(document))
    assert len(found) > 40
    assert [(place, wrong) for place, schema, value in found for wrong in mistakes(document, schema, value)] == []


def test_defaults_and_examples_inside_schemas_keep_their_rules(document: Json) -> None:
    wrong = []
    for name, schema in document["components"]["schemas"].items():
        for field, sub in schema.get("properties", {}).items():
            for word in ("example", "default"):
                if word in sub:
                    wrong += [(name, field, mistake) for mistake in mistakes(document, sub, sub[word])]
    assert wrong == []


def test_every_body_of_an_operator_has_an_example(known: model.Kinds) -> None:
    document = openapi.document(known, writable=True)
    bodies = [operation["requestBody"] for _, _, operation in operations(document) if "requestBody" in operation]
    assert bodies
    assert all("example" in media for body in bodies for media in body["content"].values())


def test_the_bounds_of_the_log_are_those_that_are_served(known: model.Kinds) -> None:
    limit = openapi.document(known, writable=True)["components"]["parameters"]["ChangesLimit"]["schema"]
    assert (limit["default"], limit["maximum"]) == (log.LIMIT, log.MAX_LIMIT)


def test_every_refusal_is_an_answer_of_some_operation(known: model.Kinds) -> None:
    document = openapi.document(known, writable=True)
    listed = {status for _, _, operation in operations(document) for status in operation["responses"]}
    possible = {str(family.status) for family in errors.Refusal.__subclasses__()}
    assert possible - listed == {"405"}, "405 is the answer of operations that do not exist, so none can list it"
    codes = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert {"bad-query", "in-use", "answer-too-large", "method-not-allowed"} <= set(codes)


def test_only_public_paths_go_without_a_token(document: Json) -> None:
    assert document["security"] == [{"bearer": []}, {"basic": []}]
    open_paths = {path for path, _, operation in operations(document) if operation.get("security") == []}
    assert open_paths == {"/health", "/ready", "/openapi.yaml", "/openapi.json"}
    for path, _, operation in operations(document):
        assert path in ("/health", "/ready") or "401" in operation["responses"]


def test_nothing_is_defined_that_nothing_refers_to(document: Json) -> None:
    text = json.dumps(document)
    for section, found in document["components"].items():
        if section != "securitySchemes":
            assert found
            assert [name for name in found if f'#/components/{section}/{name}"' not in text] == []


def test_no_schema_and_no_answer_share_a_name(document: Json) -> None:
    """Generators of clients make a type of each."""
    components = document["components"]
    assert not components["schemas"].keys() & components["responses"].keys()


def test_operation_ids_are_unique(document: Json) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))


def test_the_text_is_the_same_with_and_without_libyaml() -> None:
    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    document = openapi.document(kind_files.load(), writable=False)
    text = openapi.text(kind_files.load(), writable=False)
    assert openapi.dumped(document, Plain) == text
    assert not re.search(rb"(: |- )[&*]id", text)


def test_the_text_is_made_once() -> None:
    lazy = openapi.Lazy(kind_files.load(), writable=False)
    assert lazy() is lazy()
    assert lazy() == openapi.text(kind_files.load(), writable=False)


@pytest.mark.long
def test_a_kind_that_leads_to_no_valid_sample_is_shown_without_one(tmp_path: Path) -> None:
    schema = "{type: object, required: [id, code], properties: {id: {type: string}, code: {type: string, pattern: '^X-[0-9]+$'}}}"
    (tmp_path / "codes.yaml").write_text(
        f"kind: codes\napiVersion: v1\nschema: {{type: array, key: {{name: id, schema: {{type: string}}}}, items: {schema}}}\n"
    )
    document = openapi.document(kind_files.load(tmp_path), writable=True)
    assert "example" not in document["paths"]["/codes"]["post"]["requestBody"]["content"]["application/json"]
    assert [wrong for _, schema, value in contents(document) for wrong in mistakes(document, schema, value)] == []
