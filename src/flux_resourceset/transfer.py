"""Whole fleets in files: the seed, exports and imports, checked before anything is written."""

from __future__ import annotations

import collections
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from flux_resourceset import changes, documents, drafts, errors, fleet, formats, json_pieces, strict_json
from flux_resourceset.changes import Document, Entry, Origin, Query, Snapshot, Tombstone
from flux_resourceset.kinds import CLUSTERS, Kind, Kinds
from flux_resourceset.ledger import Ledger

FORMAT = "flux-resourceset/v1"
_REPLACE = "use --replace to put the file in its place"
_SHOWN = 50  # of the problems of an import: a line that can still be read

_LEVELS = {"documents": 2, "history": 3}  # down to each document, and to each change of a transaction


def is_empty(state: fleet.Fleet) -> bool:
    return state.revision == 0 and not state.tombstones and not any(state.documents.values())


# Seed


def seed(ledger: Ledger, path: Path, named: bool) -> bool:
    """Load the seed into an empty store; whether anything was loaded."""
    if not named and not os.path.exists(path):
        return False
    by_kind = _seed_documents(ledger.kinds, path)
    if not is_empty(ledger.fleet):
        return False

    def work(draft: drafts.Draft) -> None:
        if is_empty(draft.base):  # else another process was faster
            _create_all(draft, by_kind, str(path))

    _, entry = ledger.write_now(work, Origin(actor="seed", reason=f"seed from {path.name}"))
    return entry is not None


def _seed_documents(kinds: Kinds, path: Path) -> dict[str, list[Any]]:
    data = _json_object(path, strict_json.decoded)
    wrong = [f"{name!r} is no kind; there are {', '.join(kinds.by_name)}" for name in data if name not in kinds.by_name]
    wrong += [f"{name} must be an array of documents" for name, found in data.items() if not isinstance(found, list)]
    if wrong:
        raise errors.StartupError(f"{path}: {'; '.join(wrong)}")
    return {name: [_with_id(document) for document in found] for name, found in data.items()}


def _with_id(document: Any) -> Any:
    """The book's catalog examples call the id `_id`."""
    if isinstance(document, dict) and "_id" in document and "id" not in document:
        return {"id": document["_id"], **{name: value for name, value in document.items() if name != "_id"}}
    return document


def _create_all(draft: drafts.Draft, by_kind: Mapping[str, Iterable[Any]], source: str) -> None:
    """Create everything, or name everything that is wrong."""
    wrong: list[str] = []
    refused: list[tuple[str, int, Any]] = []
    for name, found in by_kind.items():
        documents_of_kind = [document for document in found if isinstance(document, dict)]
        wrong += _repeated(name, "id", documents_of_kind)
        if name == CLUSTERS:
            wrong += _repeated(name, "cluster_dns", documents_of_kind)
        for position, document in enumerate(found):
            try:
                draft.create(draft.kinds.by_name[name], document)
            except errors.Refusal:
                refused.append((name, position, document))
    for name, position, document in refused:  # once more, for they may refer to what came after them
        try:
            draft.create(draft.kinds.by_name[name], document)
        except errors.AlreadyExists:
            pass  # found above
        except errors.Refusal as refusal:
            wrong += _described(refusal, f"{name}[{position}]")
    for found_late in draft.refusals(draft.changes()):
        wrong += _described(found_late, "")
    if wrong:
        raise errors.StartupError(f"{source}: {'; '.join(dict.fromkeys(wrong))}")


def _described(refusal: errors.Refusal, place: str) -> list[str]:
    kind, id = refusal.extra.get("kind"), refusal.extra.get("id")
    subject = f'{kind} "{id}"' if id else place
    return [f"{subject}: {v.pointer or 'document'} {v.message}" for v in refusal.violations] or [refusal.detail]


# Export and import


def exporting(ledger: Ledger, history: bool) -> Callable[[], bytes]:
    """Take the fleet as it is now; the result, called in any thread, writes it down."""
    found = exported(ledger, history)
    return lambda: b"".join(found)


def exported(ledger: Ledger, history: bool) -> Iterator[bytes]:
    """Take the fleet as it is now; the result, read in any thread, is the file. Grows with documents, and log if wanted."""
    ledger.refresh()
    state = ledger.fleet
    if state.unknown:
        raise errors.Unavailable(f"the store holds {', '.join(state.unknown)}, which is no kind here; set RESOURCES_DIR")
    data: Document = {
        "format": FORMAT,
        "revision": state.revision,
        "documents": {kind: [found[id].body for id in sorted(found)] for kind, found in state.documents.items()},
        "tombstones": [state.tombstones[dns] for dns in sorted(state.tombstones)],
    }
    find_history = ledger.finding(Query(before=state.revision + 1, limit=state.revision))
    return _written(data, find_history if history else None)


def _written(data: Document, find_history: Callable[[], list[Entry]] | None) -> Iterator[bytes]:
    if find_history is not None:
        data["history"] = find_history()[::-1]
    data["checksum"] = checksum(data)
    named = ((name, json_pieces.pieces(value, _LEVELS.get(name, 1), lines=True)) for name, value in data.items())
    yield from json_pieces.members(named)
    yield b"\n"
    changes.let_go(data.get("history", []))


def checksum(data: Document) -> str:
    names = sorted(name for name in data if name != "checksum")
    named = ((name, json_pieces.pieces(data[name], _LEVELS.get(name, 1), ordered=True)) for name in names)
    return "sha256:" + json_pieces.sha256(json_pieces.members(named))


def imported(ledger: Ledger, path: Path, replace: bool) -> int:
    """Load an export; the number of documents. Nothing is written unless all of it is good."""
    export = parsed(ledger.kinds, _json_object(path, msgspec.json.decode), str(path))  # its checksum makes it strict
    if export.history is not None:
        _restore(ledger, export, replace)
    else:
        ledger.write_now(importing(export, _REPLACE, replace=replace), Origin(actor="import", reason=f"import of {path.name}"))
    return export.count


def importing(export: Export, remedy: str, *, replace: bool = False, merge: bool = False) -> Callable[[drafts.Draft], None]:
    """The work of an import: into an empty store, in the place of everything, or on top of what is there."""

    def work(draft: drafts.Draft) -> None:
        if not (replace or merge or is_empty(draft.base)):
            raise _not_empty(remedy)
        draft.importing = True
        for kind in draft.kinds if replace else ():
            wanted = {document["id"] for document in export.documents[kind.name]}
            for id in [id for id in draft.base.documents[kind.name] if id not in wanted]:
                draft.delete(kind, id, force=True)
        for kind in draft.kinds:
            for document in export.documents[kind.name]:
                draft.put(kind, document)
        for tombstone in export.tombstones:
            draft.retire(tombstone.dns, tombstone.id)

    return work


def _not_empty(remedy: str) -> errors.Conflict:
    return errors.Conflict(f"the store is not empty; {remedy}")


def _restore(ledger: Ledger, export: Export, replace: bool) -> None:
    def build(state: fleet.Fleet) -> tuple[Snapshot, list[Entry]]:
        if not is_empty(state) and not replace:
            raise _not_empty(_REPLACE)
        history = export.history or []
        found, tombstones = changes.replayed(history)
        known = {tombstone.dns: tombstone for tombstone in (*export.tombstones, *tombstones)}
        live = {stored.body["cluster_dns"] for stored in found.get(CLUSTERS, {}).values()}
        kept = tuple(tombstone for dns, tombstone in known.items() if dns not in live)
        # a new epoch: whoever follows the log must read everything anew
        return Snapshot(uuid.uuid4().hex, len(history), found, kept), history

    ledger.restore(build)


class Export(msgspec.Struct):
    format: str
    revision: int
    documents: dict[str, list[dict[str, Any]]]
    tombstones: list[Tombstone]
    checksum: str
    history: list[Entry] | None = None

    @property
    def count(self) -> int:
        return sum(map(len, self.documents.values()))


def parsed(kinds: Kinds, data: Any, source: str) -> Export:
    """An export that is whole and good, with its documents completed."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise errors.Invalid(f"{source}: is no export of this program: format must be {FORMAT}")
    if data.get("checksum") != checksum(data):
        raise errors.Invalid(f"{source}: the checksum does not fit the content; it was damaged or edited")
    try:
        export = msgspec.convert(data, Export)
    except msgspec.ValidationError as exc:
        raise errors.Invalid(f"{source}: {exc}") from exc
    for name in export.documents:
        if name not in kinds.by_name:
            raise errors.Invalid(f"{source}: {name!r} is no kind here; add its file to RESOURCES_DIR")
    export.documents = {kind.name: _completed(kind, export.documents.get(kind.name, [])) for kind in kinds}
    problems = [
        f'{kind.name} "{document.get("id", "")}": {violation.pointer} {violation.message}'
        for kind in kinds
        for document in export.documents[kind.name]
        for violation in documents.violations(kinds, kind, document)
    ]
    for kind in kinds:
        problems += _repeated(kind.name, "id", export.documents[kind.name])
    problems += _repeated(CLUSTERS, "cluster_dns", export.documents[CLUSTERS])
    problems += [f"tombstones: {t.dns!r} is no DNS name" for t in export.tombstones if not formats.is_dns_name(t.dns)]
    if problems:
        raise errors.Invalid(f"{source}: {'; '.join(problems[:_SHOWN])}")
    if export.history is not None:
        _check_history(kinds, export, source)
    return export


def _completed(kind: Kind, found: list[Document]) -> list[Document]:
    return [documents.completed(kind, document) for document in found]


def _repeated(name: str, field: str, found: list[Document]) -> list[str]:
    counted = collections.Counter(str(document.get(field)) for document in found)
    return [f"{name}: {field} {value!r} stands there {count} times" for value, count in counted.items() if count > 1]


def _check_history(kinds: Kinds, export: Export, source: str) -> None:
    history = export.history or []
    if [entry.revision for entry in history] != list(range(1, len(history) + 1)):
        raise errors.Invalid(f"{source}: the history has gaps")
    try:
        found, _ = changes.replayed(history)
    except (KeyError, TypeError) as exc:
        raise errors.Invalid(f"{source}: a change of the history lacks {exc}") from exc
    for kind in kinds:
        replayed = {id: documents.completed(kind, s.body) for id, s in found.get(kind.name, {}).items()}
        if replayed != {document["id"]: document for document in export.documents[kind.name]}:
            raise errors.Invalid(f"{source}: the history does not lead to the {kind.name}")


def _json_object(path: Path, decoded: Callable[[bytes], Any]) -> Document:
    try:
        data = decoded(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
    except OSError as exc:
        raise errors.StartupError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (errors.MalformedBody, ValueError, RecursionError) as exc:
        raise errors.StartupError(f"{path}: is not JSON as it should be: {exc}") from exc
    if not isinstance(data, dict):
        raise errors.StartupError(f"{path}: must hold a JSON object")
    return data
