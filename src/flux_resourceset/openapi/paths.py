"""The paths of the document: every route and method, what it takes, and every status it can answer with."""

from __future__ import annotations

from typing import Any

from flux_resourceset import errors, flux_limits
from flux_resourceset.kinds.fields import sample
from flux_resourceset.kinds.model import CLUSTERS, Kind, Kinds, Referenced, Schema
from flux_resourceset.openapi import building, identities, past_paths, planning, revisions, whereabouts
from flux_resourceset.openapi.building import MERGE_PATCH, Item, Operation, Refusals
from flux_resourceset.openapi.conversion import Form, converted
from flux_resourceset.openapi.schemas import CHECKSUM, STREAM, Samples
from flux_resourceset.openapi.words import ref

_READ, _TOKEN, _WRITE = building.READ, building.TOKEN, building.WRITE
_answer, _body, _headers, _head = building.answer, building.body, building.headers, building.head
_operation, _parameter, _path, _id = building.operation, building.parameter, building.path, building.id_path
_query, _statement = building.query, building.statement

FLUX, LOG, BULK, SERVICE = "Flux", "Change log", "Much at once", "Service"  # capitals: no kind has this name
TAGS = {
    FLUX: "What the Flux Operator of every cluster polls. Never a redirect, never 304; gzip when asked for.",
    LOG: "Every transaction, with each document before and after.",
    BULK: "Batches, whole fleets in and out, and the kinds themselves.",
    SERVICE: "The service itself.",
}


def of_kinds(kinds: Kinds, samples: Samples, writable: bool) -> dict[str, Item]:
    """Every path, in the order of reading."""
    paths: dict[str, Item] = {"/api/v2/flux/clusters": {"get": _flux_list(kinds, samples)}}
    for viewed in kinds.referenced:
        view = f"/api/v2/flux/clusters/{{cluster_dns}}/{viewed.endpoint}"
        paths |= {view: _flux_view(kinds, viewed, samples), f"{view}/{{id}}": _flux_input(kinds, viewed, samples)}
    if writable:
        for kind in kinds:
            paths |= {f"/{kind.name}": _collection(kind, samples)} if kind.methods["resource"] else {}
            paths |= {f"/{kind.name}/{{id}}": _instance(kind, samples)} if kind.methods["instance"] else {}
        for field, kind in kinds.by_field.items():
            paths[f"/{CLUSTERS}/{{id}}/{field}/{{part}}"] = _reference(kinds, field, kind, samples)
        paths[f"/{CLUSTERS}/{{id}}/patches/{{part}}"] = _patches(kinds, samples)
        paths |= _bulk(kinds, samples) | _log(kinds, samples) | past_paths.of_kinds(kinds, samples)
        paths |= whereabouts.of_kinds(kinds, samples)
    for item in paths.values():
        for method in ("post", "put", "patch", "delete"):
            if method in item:
                planning.planned(item[method])
    paths |= _planning(kinds, samples) if writable else {}
    paths |= _service() | identities.paths(SERVICE)
    revisions.add(paths)
    for item in paths.values():
        if "get" in item:
            item["head"] = _head(item["get"])
    return paths


# Flux


def _flux_list(kinds: Kinds, samples: Samples) -> Operation:
    environment = _query(
        "environment", "Only clusters of this environment.", {"type": "string", "enum": list(kinds.environments)}
    )
    cluster = samples.of(kinds.clusters)
    names = ("id", "cluster_name", "cluster_dns", "environment")
    example = {name: cluster[name] for name in names} if cluster else None
    return _operation(
        "api.flux.clusters",
        FLUX,
        "The clusters of the fleet, for provisioners",
        {200: _inputs("By id.", "cluster-entry", example)},
        (*_READ, errors.Invalid),
        [environment, _parameter("Selector"), _parameter("XRequestId")],
        description="Other query parameters are ignored.",
    )


def _inputs(description: str, name: str, example: Any, most: int = flux_limits.MAX_INPUTS) -> Schema:
    """What an ExternalService of Flux Operator answers."""
    every = {"type": "array", "maxItems": most, "items": ref(name)}
    schema = {"type": "object", "required": ["inputs"], "additionalProperties": False, "properties": {"inputs": every}}
    return _answer(description, schema, {"inputs": [example]} if example else None, ("Vary", "Content-Encoding"))


def _dns_path(kinds: Kinds) -> Schema:
    dns = converted(kinds.clusters.properties["cluster_dns"], Form.NEW)
    constraint: Schema = {word: dns[word] for word in ("type", "format", "pattern", "maxLength")}
    return _path("cluster_dns", "DNS name of the cluster, exactly.", constraint, sample(dns))


def _flux_view(kinds: Kinds, kind: Referenced, samples: Samples) -> Item:
    text = "In the order of the cluster document. Empty when the cluster has none, or was decommissioned: then Flux removes them."
    answer = _inputs(text, f"{kind.singular}-input", samples.of(kind, "-input"))
    get = _operation(
        f"api.flux.{kind.endpoint}",
        FLUX,
        f"The {kind.endpoint} that a cluster is to have",
        {200: answer},
        (*_TOKEN, errors.NotFound, errors.Unavailable),
        [_parameter("XRequestId")],
        description="404: no cluster ever had this name. 503: the data cannot be vouched for; Flux keeps what it has.",
    )
    return {"parameters": [_dns_path(kinds)], "get": get}


def _flux_input(kinds: Kinds, kind: Referenced, samples: Samples) -> Item:
    text = "The input, byte for byte as the view has it. Empty only when the cluster was decommissioned: then Flux removes it."
    get = _operation(
        f"api.flux.{kind.endpoint}.input",
        FLUX,
        f"One of the {kind.endpoint} that a cluster is to have",
        {200: _inputs(text, f"{kind.singular}-input", samples.of(kind, "-input"), most=1)},
        (*_TOKEN, errors.NotFound, errors.Unavailable),
        [_parameter("XRequestId")],
        description=f"404: the cluster has no such {kind.singular}, or no cluster ever had this name. 503: the data cannot be "
        "vouched for. Flux keeps what it has in either case.",
    )
    return {"parameters": [_dns_path(kinds), _id(kind)], "get": get}


# Documents


def _collection(kind: Kind, samples: Samples) -> Item:
    stored, new = samples.of(kind), samples.of(kind, "-new")
    filters = [_filter(kind, item.name, item.description) for item in kind.filters]
    paging = [
        _parameter(name) for name in ("Selector", "Limit", "Offset", "At", "XRequestId") if name != "Selector" or kind.has_labels
    ]
    every = {"type": "array", "items": ref(kind.singular)}
    operations = {
        "get": _operation(
            f"{kind.name}.list", kind.name, f"List {kind.name}",
            {200: _answer("By id.", every, [stored] if stored else None, ("X-Total-Count", "X-Revision"))},
            (*_READ, errors.Compacted, errors.Invalid), [*filters, *paging],
        ),
        "post": _operation(
            f"{kind.name}.create", kind.name, f"Create a {kind.singular}",
            {201: _answer("Created.", ref(kind.singular), stored, ("ETag", "Location", "X-Warning"))},
            (*_WRITE, errors.Conflict, errors.PreconditionFailed), _statement(),
            _body(ref(f"{kind.singular}-new"), new),
        ),
    }  # fmt: skip
    return {method: operation for method, operation in operations.items() if method in kind.methods["resource"]}


def _filter(kind: Kind, name: str, description: str) -> Schema:
    schema = converted(kind.properties[name], Form.STORED)
    known: Schema = {word: schema[word] for word in ("type", "enum") if word in schema}
    return _query(name, description, known if "type" in known else {"type": "string"})


def _instance(kind: Kind, samples: Samples) -> Item:
    stored = samples.of(kind)
    document = ref(kind.singular)
    created = _answer("Created.", document, stored, ("ETag", "Location", "X-Warning"))
    done = _answer("The document as it is now.", document, stored, ("ETag", "X-Warning"))
    not_modified = {"description": "You have it.", "headers": _headers("ETag", "X-Revision")}
    is_cluster = kind.name == CLUSTERS
    put_refusals: Refusals = (errors.NotFound, errors.PreconditionFailed) + ((errors.Conflict,) if is_cluster else ())
    used: Refusals = (errors.Conflict,) if isinstance(kind, Referenced) or kind.dependencies else ()
    force = _query("force", "Delete it even though clusters use it; they lose it.", {"type": "boolean", "default": False})
    operations = {
        "get": _operation(
            f"{kind.name}.get", kind.name, f"Get a {kind.singular}",
            {200: _answer("The document.", document, stored, ("ETag", "X-Revision")), 304: not_modified},
            (*_READ, errors.NotFound, errors.Compacted, errors.Invalid),
            [_parameter("At"), _parameter("IfNoneMatch"), _parameter("XRequestId")],
        ),
        "put": _operation(
            f"{kind.name}.replace", kind.name, f"Replace a {kind.singular}",
            {200: done, 201: {**created, "description": "Created, as If-None-Match asked for."}},
            (*_WRITE, *put_refusals), _statement("IfMatch", "IfNoneMatch"),
            _body(ref(f"{kind.singular}-replacement"), samples.of(kind, "-replacement")),
            "References and patches that are not empty must be sent, or sent empty." if is_cluster else "",
        ),
        "patch": _operation(
            f"{kind.name}.patch", kind.name, f"Change fields of a {kind.singular}",
            {200: done}, (*_WRITE, errors.NotFound, errors.PreconditionFailed), _statement("IfMatch"),
            _body(ref(f"{kind.singular}-patch"), samples.of(kind, "-patch"), MERGE_PATCH),
            "JSON Merge Patch (RFC 7396): null removes, arrays are replaced.",
        ),
        "delete": _operation(
            f"{kind.name}.delete", kind.name, "Decommission a cluster" if is_cluster else f"Delete a {kind.singular}",
            {200: _answer("The document as it was.", document, stored, ("X-Warning",))},
            (*_WRITE, *used, errors.NotFound, errors.PreconditionFailed), [force, *_statement("IfMatch")],
            description="From now on Flux gets empty lists for its DNS name." if is_cluster else "",
        ),
    }  # fmt: skip
    chosen = {method: operation for method, operation in operations.items() if method in kind.methods["instance"]}
    return {"parameters": [_id(kind)], **chosen}


# Parts of clusters


def _part(kinds: Kinds, name: str, what: str, part: Schema, get: Schema, put: Schema, patch: Schema, samples: Samples) -> Item:
    cluster = _answer(
        "The cluster as it is now.", ref(kinds.clusters.singular), samples.of(kinds.clusters), ("ETag", "X-Warning")
    )
    removed = {**cluster, "headers": _headers("ETag", "X-Patches-Removed", "X-Warning")}
    refusals = (*_WRITE, errors.NotFound, errors.PreconditionFailed)
    prefix = f"{CLUSTERS}.{name}"
    return {
        "parameters": [_id(kinds.clusters), part],
        "get": _operation(
            f"{prefix}.get", CLUSTERS, f"Get {what}", {200: get}, (*_READ, errors.NotFound), [_parameter("XRequestId")]
        ),
        "put": _operation(
            f"{prefix}.put", CLUSTERS, f"Set {what}", {200: cluster}, refusals, _statement("IfMatch"), put
        ),
        "patch": _operation(
            f"{prefix}.patch", CLUSTERS, f"Change {what}", {200: cluster}, refusals, _statement("IfMatch"), patch,
            "JSON Merge Patch (RFC 7396): null removes.",
        ),
        "delete": _operation(
            f"{prefix}.delete", CLUSTERS, f"Remove {what}", {200: cluster if name == "patches" else removed},
            (*refusals, errors.Invalid), _statement("IfMatch"), description="Repeating it changes nothing.",
        ),
    }  # fmt: skip


def _reference(kinds: Kinds, field: str, kind: Kind, samples: Samples) -> Item:
    name = f"{kind.singular}-reference"
    # any text: what the cluster does not have can be removed, too
    part = _path("part", f"Id of the {kind.singular}.", {"type": "string"}, sample(converted(kind.properties["id"], Form.NEW)))
    return _part(
        kinds, field, f"the reference of a cluster to a {kind.singular}", part,
        _answer("The reference.", ref(name), samples.of(kind, "-reference"), ("ETag",)),
        _body(ref(f"{kind.singular}-assignment"), samples.of(kind, "-assignment"), required=False),
        _body(ref(f"{name}-patch"), samples.of(kind, "-reference-patch"), MERGE_PATCH),
        samples,
    )  # fmt: skip


def _patches(kinds: Kinds, samples: Samples) -> Item:
    example = (samples.of(kinds.clusters) or {}).get("patches", {})
    part, shown = next(iter(example.items()), ("example", {}))
    path = _path("part", "Id of what is patched; the cluster must have it.", {"type": "string"}, part)
    return _part(
        kinds, "patches", "the Helm values that a cluster adds to one component", path,
        _answer("The values; empty when there are none.", ref("Values"), shown, ("ETag",)),
        _body(ref("NewValues"), shown),
        _body(ref("ValuesPatch"), shown, MERGE_PATCH),
        samples,
    )  # fmt: skip


# Much at once, the log, the service


def _bulk(kinds: Kinds, samples: Samples) -> dict[str, Item]:
    kind = next((kind for kind in kinds.referenced if samples.of(kind)), kinds.clusters)
    new, stored = samples.of(kind, "-new") or {}, samples.of(kind) or {}
    result = {
        "index": 0, "op": "create", "kind": kind.name, "id": new.get("id", "example"), "change": "create", "revision": 12,
        "before": None, "after": stored,
    }  # fmt: skip
    export = {
        "format": "flux-resourceset/v1", "revision": 12, "documents": {kind.name: [stored] if stored else []},
        "tombstones": [], "deleted_by_force": [], "checksum": CHECKSUM,
    }  # fmt: skip
    history = _query("history", "With the whole change log.", {"type": "boolean", "default": False})
    merge = _query("merge", "Into what is there; otherwise the fleet must be empty.", {"type": "boolean", "default": False})
    done = {"revision": 12, "dry_run": False, "warnings": [], "results": [result]}
    known = {"name": "If-None-Match", "in": "header", "description": "The ETag you have.", "schema": {"type": "string"}}
    unchanged = {"description": "You have them.", "headers": _headers("ETag", "X-Server-Version")}
    every = {"type": "array", "items": ref("Kind")}
    return {
        "/kinds": {"get": _operation(
            "kinds.list", BULK, "The kinds with their schemas",
            {200: _answer("All kinds.", every, names=("ETag", "X-Server-Version")), 304: unchanged},
            (errors.BadRequest, *_TOKEN), [known, _parameter("XRequestId")],
        )},
        "/batch": {"post": _operation(
            "batch.create", BULK, "Carry out many operations as one transaction, or none of them",
            {200: _answer("All of it.", ref("BatchAnswer"), done)},
            (*_WRITE, errors.NotFound, errors.Conflict), _statement("IdempotencyKey"),
            _body(ref("Batch"), _operations(kinds, samples)),
        )},
        "/export": {"get": _operation(
            "export.get", BULK, "The whole fleet",
            {200: _answer("As import takes it.", ref("Export"), export, ("X-Revision",))},
            (*_READ, errors.Compacted, errors.Invalid), [history, _parameter("At"), _parameter("XRequestId")],
        )},
        "/import": {"post": _operation(
            "import.create", BULK, "Load a whole fleet, as one transaction",
            {200: _answer("It is there.", ref("Imported"), {"revision": 12, "documents": 1, "warnings": []}, ("X-Warning",))},
            (*_WRITE, errors.Conflict), [merge, *_statement()], _body(ref("Export"), export),
        )},
    }  # fmt: skip


def _planning(kinds: Kinds, samples: Samples) -> dict[str, Item]:
    return {
        "/plan": {"post": _operation(
            "plan.create", BULK, "What a batch would do to which cluster",
            {200: _answer("The plan. Nothing is written.", ref("Plan"))},
            (*_READ, errors.NotFound, errors.Conflict, errors.PreconditionFailed),
            _statement("PlanFull", "PlanCluster", "IfPlan"),
            _body(ref("Batch"), _operations(kinds, samples)),
        )},
    }  # fmt: skip


def _operations(kinds: Kinds, samples: Samples) -> Any:
    """An example of a batch."""
    kind = next((kind for kind in kinds.referenced if samples.of(kind)), kinds.clusters)
    new = samples.of(kind, "-new") or {}
    return {"operations": [{"op": "create", "kind": kind.name, "id": new.get("id", "example"), "document": new}]}


def _log(kinds: Kinds, samples: Samples) -> dict[str, Item]:
    kind = next((kind for kind in kinds.referenced if samples.of(kind)), kinds.clusters)
    stored = samples.of(kind) or {}
    change = {"kind": kind.name, "id": stored.get("id", "example"), "operation": "create", "before": None, "after": stored}
    entry = {
        "revision": 12, "time": "2026-01-31T12:00:00.000000Z", "actor": "write", "on_behalf_of": "alice",
        "request_id": "4f1d2c", "reason": "ticket 42", "forced": False, "changes": [change],
    }  # fmt: skip
    word, moment = {"type": "string"}, {"type": "string", "format": "date-time"}
    filters = [
        _query("kind", "Transactions that changed documents of this kind.", word, kind.name),
        _query("id", "Transactions that changed documents with this id.", word),
        _query("actor", "Transactions of this token.", word, "write"),
        _query("since", "Not before this time (RFC 3339).", moment),
        _query("until", "Not after this time (RFC 3339).", moment),
        _query("before", "Below this revision, for paging.", {"type": "integer", "minimum": 1, "maximum": 10**15 - 1}),
        _query(
            "after",
            "Above this revision, oldest first; with before, up to there.",
            {"type": "integer", "minimum": 0, "maximum": 10**15 - 1},
        ),
    ]
    revision = _path("revision", "Revision of the fleet.", {"type": "integer", "minimum": 1}, 12)
    entries = {"type": "array", "items": ref("Transaction")}
    listed = _answer("Newest first, or with after oldest first; or events as they come, if Accept names them.", entries, [entry])
    listed["content"]["text/event-stream"] = {"schema": {"type": "string"}, "example": STREAM}
    return {
        "/changes": {"get": _operation(
            "changes.list", LOG, "The change log", {200: listed},
            (*_READ, errors.Compacted),
            [*filters, *map(_parameter, ("ChangesLimit", "SinceRevision", "LastEventId", "XRequestId"))],
            description="A stream takes kind, id, actor and since_revision; it goes on until either side ends it.",
        )},
        "/changes/{revision}": {"parameters": [revision], "get": _operation(
            "changes.get", LOG, "One transaction", {200: _answer("The transaction.", ref("Transaction"), entry)},
            (*_READ, errors.NotFound, errors.Compacted), [_parameter("XRequestId")],
        )},
    }  # fmt: skip


def _service() -> dict[str, Item]:
    well = _answer("Yes.", ref("Readiness"), {"status": "ok"})
    alive = _answer("Yes.", ref("Health"), {"status": "ok"}, ("X-Server-Version",))
    text = {"description": "In the exposition format of Prometheus.", "headers": _headers()}
    text["content"] = {"text/plain": {"schema": {"type": "string"}}}
    ready = _operation("ready.get", SERVICE, "Whether it can answer for the data", {200: well}, (errors.Unavailable,))
    public: list[Schema] = []
    return {
        "/health": {"get": _operation("health.get", SERVICE, "Whether it runs", {200: alive}) | {"security": public}},
        "/ready": {"get": ready | {"security": public}},
        "/openapi.yaml": {"get": _document("openapi.get", "This document", "application/yaml") | {"security": public}},
        "/openapi.json": {"get": _document("openapi.json", "This document as JSON", "application/json") | {"security": public}},
        "/metrics": {"get": _operation(
            "metrics.get", SERVICE, "Measures for Prometheus", {200: text}, (errors.BadRequest, *_TOKEN),
            [_parameter("XRequestId")],
        )},
    }  # fmt: skip


def _document(id: str, summary: str, media_type: str) -> Operation:
    answer = {"description": "This document.", "headers": _headers(), "content": {media_type: {"schema": {}}}}
    about = "Asks for a token only if the server was told so (OPENAPI_PUBLIC=false)."
    return _operation(id, SERVICE, summary, {200: answer}, _TOKEN, description=about)
