"""The schemas of the document: of every kind in each of its forms, and those that all kinds share.

Names of a kind's schemas are its singular and a suffix after a hyphen, in lower case; the shared ones are capitalised.
So no kind, whatever it is called, takes the name of another schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.fields import sample, sample_object
from flux_resourceset.kinds.model import Kind, Kinds, Referenced, Schema
from flux_resourceset.openapi import application_schemas, named_models, planning, problem_schemas, revisions
from flux_resourceset.openapi.conversion import Form, converted, nullable
from flux_resourceset.openapi.words import REVISION, array, free, members, ref, text

CHECKSUM = "sha256:" + 64 * "0"
STREAM = (  # of events, as text
    ":\nid: 4f1d2c-11\n\nid: 4f1d2c-12\nevent: change\n"
    'data: {"revision":12,"time":"2026-01-31T12:00:00.000000Z","actor":"write","changes":[]}\n\n'
)


# Kinds


class Samples:
    """Documents to show; None where a kind's words do not lead to a valid one."""

    def __init__(self, kinds: Kinds, schemas: dict[str, Schema]) -> None:
        self._schemas = schemas
        self._valid = {kind.singular for kind in kinds if kind.validator.is_valid(sample_object(schemas[f"{kind.singular}-new"]))}
        self._views = {kind.singular for kind in kinds.referenced}

    def of(self, kind: Kind, suffix: str = "") -> Any:
        if kind.singular not in self._valid:
            return None
        schema = self._schemas[f"{kind.singular}{suffix}"]
        if suffix == "-patch":
            new = sample_object(self._schemas[f"{kind.singular}-new"], without=("id", "cluster_dns"))
            optional = [name for name in new if name not in self._schemas[f"{kind.singular}-new"].get("required", ())]
            return {name: new[name] for name in (optional or list(new))[:1]}
        without = ("id",) if suffix in ("-replacement", "-assignment", "-reference-patch") else ()
        return sample_object(schema, without)


def of_kinds(kinds: Kinds) -> dict[str, Schema]:
    schemas: dict[str, Schema] = {}
    for kind in kinds:
        schemas |= _references(kind) if isinstance(kind, Referenced) else {}
    for kind in kinds:
        for suffix, form in (("", Form.STORED), ("-new", Form.NEW), ("-replacement", Form.NEW), ("-patch", Form.PATCH)):
            schema = {"description": kind.description, **converted(kind.schema, form)}
            if kind.name == kinds.clusters.name:
                _show_references(kinds, schema, schemas, form)
            schemas[kind.singular + suffix] = schema
        _without_id(schemas[f"{kind.singular}-replacement"])
        for fixed in ("id", "cluster_dns") if kind.name == kinds.clusters.name else ("id",):
            del schemas[f"{kind.singular}-patch"]["properties"][fixed]  # never changes, so there is no point in sending it
    for kind in kinds.referenced:
        schemas[f"{kind.singular}-input"] = _flux_input(kinds, kind)
    schemas["cluster-entry"] = _fleet_input(schemas[kinds.clusters.singular])
    return schemas


def _references(kind: Referenced) -> dict[str, Schema]:
    schema = kind_files.reference_schema(kind)
    schema["properties"]["id"]["example"] = sample(converted(kind.properties["id"], Form.NEW))
    schema["description"] = f"That a cluster has a {kind.singular}, and what it overrides of it."
    schemas = {
        f"{kind.singular}-reference": converted(schema, Form.STORED),
        f"{kind.singular}-reference-new": converted(schema, Form.NEW),
        f"{kind.singular}-assignment": converted(schema, Form.NEW),
        f"{kind.singular}-reference-patch": converted(schema, Form.PATCH),
    }
    _without_id(schemas[f"{kind.singular}-assignment"])
    del schemas[f"{kind.singular}-reference-patch"]["properties"]["id"]
    return schemas


def _without_id(schema: Schema) -> None:
    """The path says the id; a body may repeat it."""
    schema["required"] = [name for name in schema["required"] if name != "id"]
    if not schema["required"]:
        del schema["required"]


def _show_references(kinds: Kinds, cluster: Schema, schemas: dict[str, Schema], form: Form) -> None:
    for field, kind in kinds.by_field.items():
        name = f"{kind.singular}-reference" + ("" if form is Form.STORED else "-new")
        array = cluster["properties"][field]
        array["items"] = ref(name)
        array["example"] = [sample_object(schemas[name])]


def _flux_input(kinds: Kinds, kind: Referenced) -> Schema:
    """The merge, said of schemas: definition, reference, patches, nesting, cluster block."""
    definition = converted(kind.schema, Form.FLUX)
    reference = converted(kind_files.reference_schema(kind), Form.FLUX)
    properties: dict[str, Schema] = dict(definition["properties"])
    for name, sub in reference["properties"].items():
        if name != "id":
            properties[name] = _either(properties[name], sub) if name in properties else sub
    required = set(definition["required"]) | set(reference["required"])
    if kind.patches:
        properties["patches"] = _patches(kinds, sample(properties["id"]))
    if kind.dependencies:
        properties["wait_for"] = {**array({"type": "string"}, "What it depends on and the cluster runs."), "example": []}
    for group, names in kind.nest.items():
        nested = {name: properties.pop(name) for name in names}
        properties[group] = members(nested, [name for name in names if name in required])
    properties["cluster"] = _cluster_block(kinds)
    properties["digest"] = text("Names the content of all the rest.", pattern="^[0-9a-f]{32}$", example=32 * "0")
    always = required | set(kind.nest) | {"patches", "wait_for", "cluster", "digest"}
    schema = members(properties, [name for name in properties if name in always])
    if definition.get("additionalProperties") is not False:
        del schema["additionalProperties"]
    return {"description": f"A {kind.singular} as one cluster is to have it.", **schema}


def _either(definition: Schema, override: Schema) -> Schema:
    telling = ("description", "example", "default")
    plain = [{word: value for word, value in schema.items() if word not in telling} for schema in (definition, override)]
    words = {word: value for word, value in definition.items() if word in telling}
    if "example" in override:
        words["example"] = override["example"]  # as in the merge
    return {**definition, **words} if plain[0] == plain[1] else {**words, "anyOf": plain}


def _patches(kinds: Kinds, id: str) -> Schema:
    patches = kinds.clusters.properties["patches"]
    schema = converted(patches["additionalProperties"], Form.FLUX)
    schema["description"] = "Helm values of this cluster; dotted keys reach nested values."
    schema["example"] = copy.deepcopy(patches.get("example", {}).get(id, {}))
    return schema


def _cluster_block(kinds: Kinds) -> Schema:
    known = converted(kinds.clusters.schema, Form.FLUX)["properties"]
    names = {"name": "cluster_name", "dns": "cluster_dns", "environment": "environment"}
    block = members({short: known[name] for short, name in names.items()})
    return {"description": "The cluster that asks.", **block}


def _fleet_input(cluster: Schema) -> Schema:
    names = ("id", "cluster_name", "cluster_dns", "environment")
    block = members({name: cluster["properties"][name] for name in names})
    return {"description": "A cluster as the list for provisioners shows it.", **block}


# Shared


_DOCUMENT: Schema = free("The document; null where there is none.", nullable=True)


def shared(kinds: Kinds) -> dict[str, Schema]:
    return {
        **named_models.values(kinds),
        "Health": members({"status": {"type": "string", "enum": ["ok"], "description": "That the server is well."}}),
        "Readiness": revisions.readiness(),
        **problem_schemas.problems(),
        **_log(),
        **_kind_list(),
        **_batch(kinds),
        **planning.schemas(),
        "Export": _export(kinds),
        "Imported": members(
            {
                "revision": REVISION,
                "documents": {"type": "integer", "minimum": 0, "description": "Documents that were in it."},
                "warnings": array({"type": "string"}, "What no other write could have stored, and what is probably a mistake."),
            }
        ),
    }


def _log() -> dict[str, Schema]:
    change = {
        "kind": text("Kind of the document."),
        "id": text("Id of the document."),
        "operation": {"type": "string", "enum": ["create", "update", "delete"], "description": "What was done."},
        "before": _DOCUMENT,
        "after": _DOCUMENT,
    }
    entry = {
        "revision": {**REVISION, "minimum": 1},
        "time": text("When, in UTC.", format="date-time", example="2026-01-31T12:00:00.000000Z"),
        "actor": text("Name of the token.", example="write"),
        "on_behalf_of": text("X-Actor of the request.", nullable=True, example="alice"),
        "request_id": text("X-Request-Id of the request.", nullable=True, example="4f1d2c"),
        "reason": text("X-Reason of the request.", nullable=True, example="ticket 42"),
        "forced": {"type": "boolean", "description": "Whether force broke references.", "example": False},
        "changes": array(ref("Change"), "What changed."),
        "retired": array(members({"dns": text("DNS name."), "id": text("Id of the cluster.")}), "Tombstones of an import."),
        "vanished": array({"type": "string"}, "DNS names that an import left to nobody: 404, not an empty list."),
        "reverts": {**REVISION, "minimum": 1, "description": "The revision that it undoes."},
        "forgone": array(ref("Forgone"), "Definitions that an import's clusters go without: they were deleted by force."),
    }
    tombstone = {
        "dns": text("DNS name of a decommissioned cluster."),
        "id": text("Its id."),
        "revision": {**REVISION, "description": "When it was decommissioned."},
    }
    always = [name for name in entry if name not in ("retired", "vanished", "forgone", "reverts")]
    return {
        "Change": members(change),
        "Transaction": members(entry, always),
        "Tombstone": members(tombstone),
        "Forgone": members({"kind": text("Kind of the definition."), "id": text("Its id.")}),
    }


def _kind_list() -> dict[str, Schema]:
    words = {"type": "string"}
    description = {
        "kind": text("Name of the collection, and its route."),
        "api_version": text("Version of the kind."),
        "description": text("What it is."),
        "singular": text("The word for one of it."),
        "short": text("A short word for it; null if it has none.", nullable=True),
        "endpoint": text("Last segment of its Flux path; null if Flux is not told of it.", nullable=True),
        "cluster_field": text("Array of clusters that refers to it; null if none does.", nullable=True),
        "patches": {"type": "boolean", "description": "Whether clusters may patch it."},
        "overrides": array(words, "Fields of references that beat the definition's."),
        "reference": free("JSON Schemas of the fields that references hold besides id."),
        "nest": {
            "type": "object",
            "description": "Objects of its inputs that hold several of its fields.",
            "additionalProperties": array(words, "Fields."),
        },
        "dependencies": text("Field that names what it depends on; null if none does.", nullable=True),
        "filters": array(words, "Fields that lists can be filtered by."),
        "methods": {"type": "object", "description": "Methods by level.", "additionalProperties": array(words, "Methods.")},
        "schema": free("JSON Schema (2020-12) of a document."),
        "resourceset": text("The ResourceSet that stands beside the kind's file; null if none does.", nullable=True),
    }
    schema = members(description)
    del schema["additionalProperties"]  # clients must bear more hints
    return {"Kind": schema}


def _batch(kinds: Kinds) -> dict[str, Schema]:
    result = {
        "index": {"type": "integer", "minimum": 0, "description": "The last operation that touched the document."},
        "op": text("What that operation was."),
        "kind": text("Kind of the document."),
        "id": text("Id of the document."),
        "change": {
            "type": "string",
            "enum": ["create", "update", "delete", "unchanged"],
            "description": "What became of the document.",
        },
        "revision": {**REVISION, "nullable": True, "description": "Revision that last changed the document."},
        "before": _DOCUMENT,
        "after": _DOCUMENT,
    }
    answer = {
        "revision": {**REVISION, "description": "The new revision, or the one that stays when nothing changed."},
        "dry_run": {"type": "boolean", "enum": [False], "description": "That it was carried out."},
        "warnings": array({"type": "string"}, "Warnings about what is allowed but is probably a mistake."),
        "results": array(ref("BatchResult"), "What became of each document that was touched."),
    }
    operations = {"type": "array", "maxItems": 10_000, "items": ref("Operation"), "description": "Carried out in order."}
    return {
        **named_models.operations(
            [*_document_operations(kinds), *_cluster_operations(kinds), *application_schemas.operations(kinds)]
        ),
        **application_schemas.schemas(),
        "Batch": members({"operations": operations}),
        "BatchResult": members({**result, "kept": application_schemas.KEPT}, list(result)),
        "BatchAnswer": members(answer),
    }


def _operation(words: list[str], names: list[str], more: dict[str, Schema], required: list[str] | None = None) -> Schema:
    basic = {
        "op": {"type": "string", "enum": words, "description": "What to do."},
        "kind": {"type": "string", "enum": names, "description": "The kind."},
        "id": text("Id of the document."),
    }
    return members(basic | more, [*basic, *(required or ())])


def _document_operations(kinds: Kinds) -> Iterator[Schema]:
    names = list(kinds.by_name)
    document = free("The document, or a merge patch of it.")
    yield _operation(["create", "replace", "patch"], names, {"document": document}, ["document"])
    force = {"type": "boolean", "default": False, "description": "Delete it even though clusters use it."}
    yield _operation(["delete"], names, {"force": force})


def _cluster_operations(kinds: Kinds) -> Iterator[Schema]:
    ids = array({"type": "string"}, "Ids of the clusters that are meant; or say it with selector and environment.")
    which: dict[str, Schema] = {
        "clusters": nullable(ids),
        "selector": nullable(text("Label selector for the clusters that are meant.", example="zone=edge")),
        "environment": nullable(text("Environment of the clusters that are meant.", enum=list(kinds.environments))),
    }
    # at least one of them; within allOf, for beside `properties` generators of clients take anyOf for the whole
    said = {"allOf": [{"anyOf": [{"required": [name]} for name in which]}]}
    referenced = [kind.name for kind in kinds.referenced]
    patched = [kind.name for kind in kinds.patched]
    reference = free("Fields of the reference; what is left out stays as it is.")
    values = free("Merge patch of the Helm values; null removes a key.")
    only = {"type": "boolean", "default": False, "description": "Refuse, with 404, a cluster that does not have it yet."}
    if referenced:
        yield _operation(["assign"], referenced, {"document": reference, "only_assigned": only, **which}) | said
        yield _operation(["unassign"], referenced, which) | said
    if patched:
        yield _operation(["patch-values"], patched, {"values": values, **which}, ["values"]) | said


def _export(kinds: Kinds) -> Schema:
    documents = {kind.name: array(ref(kind.singular), kind.description) for kind in kinds}
    properties = {
        "format": {"type": "string", "enum": ["flux-resourceset/v1"], "description": "What this is."},
        "revision": REVISION,
        "documents": {"description": "All documents, by kind.", **members(documents, [])},
        "tombstones": array(ref("Tombstone"), "Clusters that were decommissioned."),
        "deleted_by_force": {
            **array(ref("Forgone"), "Definitions that clusters refer to and go without; an older release does not say."),
            "nullable": True,
        },
        "history": {**array(ref("Transaction"), "The change log."), "nullable": True},
        "applied": application_schemas.APPLIED,
        "checksum": text("Over everything else.", pattern="^sha256:[0-9a-f]{64}$", example=CHECKSUM),
    }
    return members(properties, [name for name in properties if name not in ("deleted_by_force", "history", "applied")])
