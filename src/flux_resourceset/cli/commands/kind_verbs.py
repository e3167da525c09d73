"""The verbs by which documents of every kind are written: create, update, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import batches, chosen_clusters, clones, log_lines
from flux_resourceset.cli.known_kinds import CLUSTERS, Kind, ReferencedKind
from flux_resourceset.cli.parsing import field_options, kind_commands
from flux_resourceset.cli.parsing.grammar import PROGRAM

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]


def _subject(kind: Kind, id: str) -> str:
    return f'{kind.name} "{id}"'


# Create


def create(session: Session) -> int:
    kind, id = session.kind, session.id
    document = _wanted(session, kind, id)
    assigns = isinstance(kind, ReferencedKind) and chosen_clusters.given(session)
    clusters = chosen_clusters.chosen(session) if assigns else chosen_clusters.Clusters([], True)
    operation = {"op": "create", "kind": kind.name, "id": id, "document": document}

    def operations(ids: Any) -> Any:
        assigning = [{"op": "assign", "kind": kind.name, "id": id, "clusters": ids}] if ids else []
        return [operation, *assigning] if operation else assigning

    doing = f'creating {kind.singular} "{id}" and assigning it'
    try:
        results = (
            chosen_clusters.change(session, clusters, doing, operations) if assigns else batches.submit(session, operations([]))
        )
    except client.Problem as problem:
        if problem.code != "already-exists" or problem.body.get("id") != id or problem.index != 0:
            raise
        try:
            operation = _for_existing(session, kind, id, document)
        except client.Problem as other:
            # what exists is then not this document, but something that only one may have, such as a DNS name
            raise (problem if other.status == 404 else other) from None
        question = chosen_clusters.question(clusters.ids, doing)
        results = batches.submit(session, operations(clusters.ids), question=question)
        results += [] if results else [_unchanged(session, kind, id)]
    own = next((result["after"] for result in results if result["kind"] == kind.name), None)
    if own is None:
        own = session.client.get(client.path(kind.name, id)).object()
    _show_one(session, kind, results, own)
    return failures.OK


def _wanted(session: Session, kind: Kind, id: str) -> Document:
    """The document that the command line describes."""
    source, clone = session.values.text("from-file"), session.values.text("from")
    if source and clone is not None:
        raise failures.usage("--from clones a document of the server, --from-file starts from a file: say one of them")
    start = _of_file(session, source, kind, id) if source else {"id": id}
    if clone is not None:
        start = clones.clone(session, kind, id, clone)
    return start | field_options.document(kind_commands.create_fields(kind), session.values, _subject(kind, id), update=False)


def _of_file(session: Session, source: str, kind: Kind, id: str) -> Document:
    from flux_resourceset.cli import document_files  # not before: most documents are in none

    body = document_files.read_one(source, kind, id, session.stdin)
    if body["id"] != id:
        session.say(f"note: the id in {source} is {log_lines.text(body['id'])}; {id}, as in the command, counts")
    return {**body, "id": id}


def _for_existing(session: Session, kind: Kind, id: str, document: Document) -> Any:
    """What create does when it is there already: nothing if it is equal, an update if that was asked for."""
    defaults = {name: schema["default"] for name, schema in kind.properties.items() if "default" in schema}
    replaced = {"op": "replace", "kind": kind.name, "id": id, "document": {**defaults, **document}}
    (result,) = batches.dry_run_results(session, [replaced])
    if result["change"] == "unchanged":
        session.say(f"{_subject(kind, id)} exists already with equal content")
        return {}
    if session.values.flag("update"):
        return {"op": "patch", "kind": kind.name, "id": id, "document": document}
    differing = ", ".join(item["path"] for item in batches.fields(session, result))
    updates = any(option.name == "--update" for option in session.command.options)
    remedy = "say --update to change it" if updates else f"change it with: {PROGRAM} {kind.group} update {id}"
    raise failures.Failure(failures.CONFLICT, f"{_subject(kind, id)} exists and differs in {differing}; {remedy}")


def _unchanged(session: Session, kind: Kind, id: str) -> batches.Result:
    document = session.client.get(client.path(kind.name, id)).object()
    return {"kind": kind.name, "id": id, "change": "unchanged", "revision": None, "before": document, "after": document}


def _show_one(session: Session, kind: Kind, results: Any, document: Document) -> None:
    batches.show(session, results, [(kind.name, document)], single=True)


# Update and delete


def update(session: Session) -> int:
    kind, id = session.kind, session.id
    fields = kind_commands.create_fields(kind)
    source = session.values.text("from-file")
    patch = _of_file(session, source, kind, id) if source else {}
    patch |= field_options.document(fields, session.values, _subject(kind, id), update=True)
    known = {name: field.name for field in fields for name in (field.name, field.option.key, field.name.replace("_", "-"))}
    for name in session.values.many("clear"):
        if name not in known:
            raise failures.usage(f'--clear: field "{name}" not found; there are {", ".join(dict.fromkeys(known.values()))}')
        patch[known[name]] = [] if kind.properties[known[name]].get("default") == [] else None  # no list is emptied by null
    if not patch:
        raise failures.usage("say what to change; the options are listed by --help")
    results = batches.submit(session, [{"op": "patch", "kind": kind.name, "id": id, "document": patch}])
    _show_one(session, kind, results, results[0]["after"])
    return failures.OK


def delete(session: Session) -> int:
    """One transaction, whether it is one or many."""
    kind, ids = session.kind, session.ids
    session.require_write_token()
    verb = "decommission" if kind.name == CLUSTERS else "delete"
    what = _subject(kind, ids[0]) if len(ids) == 1 else f"{len(ids)} {kind.name.replace('_', ' ')}: {', '.join(ids)}"
    operations = [{"op": "delete", "kind": kind.name, "id": id, "force": session.values.flag("force")} for id in ids]
    results = batches.submit(session, operations, question=f"{verb} {what}?")
    batches.show(session, results, [(kind.name, result["before"]) for result in results], single=len(ids) == 1)
    return failures.OK
