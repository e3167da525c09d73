"""Whole fleets in files: the seed, exports and imports, checked before anything is written."""

from __future__ import annotations

import datetime
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from flux_resourceset import changes, drafts, errors, fleet, histories, imports, json_pieces, strict_json
from flux_resourceset.changes import Applied, Document, Entry, Origin, Snapshot
from flux_resourceset.follower import Follower
from flux_resourceset.guards import NO_CONSENT, Consent
from flux_resourceset.kinds.model import CLUSTERS, Kinds
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Outcome
from flux_resourceset.store import Store

FORMAT = "flux-resourceset/v1"
_REPLACE = "use --replace to put the file in its place"

Agree = Callable[[imports.Plan], None]  # to what an import will do, or raise

_LEVELS = {"documents": 2, "history": 3}  # down to each document, and to each change of a transaction


# Seed


def seed(ledger: Ledger, path: Path, named: bool) -> bool:
    """Load the seed into an empty store; whether anything was loaded."""
    work = seeding(ledger, path, named)
    return work is not None and ledger.write_now(work, seed_origin(path)).entry is not None


def seed_origin(path: Path) -> Origin:
    return Origin(actor="seed", reason=f"seed from {path.name}")


def seeding(ledger: Ledger, path: Path, named: bool) -> Callable[[drafts.Draft], None] | None:
    """The work that loads the seed; None: there is nothing to load, or a store that has something."""
    if not named and not os.path.exists(path):
        return None
    by_kind = _seed_documents(ledger.kinds, path)
    if not imports.is_empty(ledger.fleet):
        return None

    def work(draft: drafts.Draft) -> None:
        if imports.is_empty(draft.base):  # else another process was faster
            _create_all(draft, by_kind, str(path))

    return work


def _seed_documents(kinds: Kinds, path: Path) -> dict[str, list[Any]]:
    data = _json_object(path, strict_json.decoded)
    wrong = [f"{name!r} is no kind; there are {', '.join(kinds.by_name)}" for name in data if name not in kinds.by_name]
    wrong += [f"{name} must be an array of documents" for name, of_kind in data.items() if not isinstance(of_kind, list)]
    if wrong:
        raise errors.StartupError(f"{path}: {'; '.join(wrong)}")
    return {name: [_with_id(document) for document in of_kind] for name, of_kind in data.items()}


def _with_id(document: Any) -> Any:
    """The book's catalog examples call the id `_id`."""
    if isinstance(document, dict) and "_id" in document and "id" not in document:
        return {"id": document["_id"], **{name: value for name, value in document.items() if name != "_id"}}
    return document


def _create_all(draft: drafts.Draft, by_kind: Mapping[str, Iterable[Any]], source: str) -> None:
    """Create everything, or name everything that is wrong."""
    wrong: list[str] = []
    refused: list[tuple[str, int, Any]] = []
    for name, of_kind in by_kind.items():
        documents_of_kind = [document for document in of_kind if isinstance(document, dict)]
        wrong += imports.repeated(name, "id", documents_of_kind)
        if name == CLUSTERS:
            wrong += imports.repeated(name, "cluster_dns", documents_of_kind)
        for position, document in enumerate(of_kind):
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


def export_now(follower: Follower, history: bool) -> bytes:
    """The file of the fleet as it is now; without an event loop."""
    follower.refresh()
    return b"".join(exported(follower.fleet, follower.store if history else None))


def exported(state: fleet.Fleet, log: Store | None) -> Iterator[bytes]:
    """The file of a fleet that stands still, with its log if that is given; read in any thread. Grows with documents, and log."""
    if state.unknown:
        raise errors.Unavailable(f"the store holds {', '.join(state.unknown)}, which is no kind here; set RESOURCES_DIR")
    data: Document = {
        "format": FORMAT,
        "revision": state.revision,
        "documents": {kind: [of_kind[id].body for id in sorted(of_kind)] for kind, of_kind in state.documents.items()},
        "tombstones": [state.tombstones[dns] for dns in sorted(state.tombstones)],
        "deleted_by_force": [{"kind": kind, "id": id} for kind, id in sorted(state.forgone) if state.users.get((kind, id))],
    }
    if log is not None:
        data["history"] = _history(log, state.revision)
        data["applied"] = _applied(log, state)
    data["checksum"] = checksum(data)
    named = ((name, json_pieces.pieces(value, _LEVELS.get(name, 1), lines=True)) for name, value in data.items())
    yield from json_pieces.members(named)
    yield b"\n"
    changes.let_go(data.get("history", []))


def _history(log: Store, revision: int) -> list[Entry]:
    entries, base = log.entries(0, revision), log.base()
    if base:
        raise errors.Compacted(
            f"the log was folded up to revision {base}, so its history is not whole; export without history",
            extra={"oldest": base},
        )
    if len(entries) != revision:
        raise errors.Unavailable(f"the log holds {len(entries)} of {revision} revisions; it was replaced just now, so try again")
    return entries


def _applied(log: Store, state: fleet.Fleet) -> list[Applied]:
    """What managers applied last to the documents that are there; but for those that were changed just now, whose records may
    be newer than they are: beside an older document they would hide what has not been applied to it."""
    found = log.applied((kind, id) for kind, of_kind in state.documents.items() for id in of_kind)
    newer = set(log.touched(state.revision, max(state.revision, log.head().revision)))
    keys = [key for key in sorted(found) if key not in newer]
    return [Applied(*key, manager, found[key][manager]) for key in keys for manager in sorted(found[key])]


def checksum(data: Document) -> str:
    names = sorted(name for name in data if name != "checksum")
    named = ((name, json_pieces.pieces(data[name], _LEVELS.get(name, 1), ordered=True)) for name in names)
    return "sha256:" + json_pieces.sha256(json_pieces.members(named))


def import_file(
    ledger: Ledger,
    path: Path,
    replace: bool,
    *,
    decommission_absent: bool = False,
    consent: Consent = NO_CONSENT,
    reason: str | None = None,
    agree: Agree = lambda plan: None,
) -> Outcome[int]:
    """Load an export; its result is the number of documents. Nothing is written unless all of it is good, and what it does was
    agreed to."""
    export = parsed(ledger.kinds, _json_object(path, msgspec.json.decode), str(path))  # its checksum makes it strict
    origin = Origin(actor="import", reason=reason or f"import of {path.name}")
    if not (replace or imports.is_empty(ledger.fleet)):
        raise imports.not_empty(_REPLACE)
    if ledger.fleet.unknown:  # an export of it is refused as well: nobody could bring them back
        raise errors.Unavailable(f"the store holds {', '.join(ledger.fleet.unknown)}, which is no kind here; set RESOURCES_DIR")
    _check_filled(export, ledger.fleet, str(path))
    if export.history is None:
        work = imports.importing(export, _REPLACE, replace=replace, decommission_absent=decommission_absent)
        outcome = _write(ledger, work, origin, consent, agree)
    else:
        restoration = histories.Restoration(ledger.kinds, export, decommission_absent)
        outcome = _restore(ledger, restoration, origin, replace, consent, agree)
    return outcome.with_result(export.count)


def _check_filled(export: imports.Export, state: fleet.Fleet, source: str) -> None:
    """A file without clusters is hardly a backup of a fleet that has some, so nothing makes it take their place."""
    clusters = len(state.documents[CLUSTERS])
    if (clusters and not export.documents[CLUSTERS]) or (export.count == 0 and any(state.documents.values())):
        raise errors.Invalid(
            f"{source}: holds no {'clusters' if export.count else 'documents'}, and the fleet has {clusters} cluster(s); "
            "import another file, or decommission the clusters one by one"
        )


def _write(ledger: Ledger, load: Callable[[drafts.Draft], None], origin: Origin, consent: Consent, agree: Agree) -> Outcome[None]:
    outcome = ledger.rehearse_now(load, origin)
    plan = imports.plan(ledger.fleet, outcome, imports.names_after(ledger.fleet, outcome.entry))
    agree(plan)  # outside of the transaction: people take their time
    return ledger.write_now(load, origin, consent._replace(plan=plan.id))


def _restore(
    ledger: Ledger, restoration: histories.Restoration, origin: Origin, replace: bool, consent: Consent, agree: Agree
) -> Outcome[None]:
    outcome = ledger.rehearse_restore(restoration.planned, restoration.warnings)
    plan = imports.plan(ledger.fleet, outcome, restoration.names(ledger.fleet))
    agree(plan)

    def build(state: fleet.Fleet) -> tuple[Snapshot, list[Entry]]:
        if not (replace or imports.is_empty(state)):
            raise imports.not_empty(_REPLACE)
        now = changes.timestamp(datetime.datetime.now(datetime.UTC))
        history = restoration.closed(state, now, origin)
        replay = histories.replayed(history)
        # a new epoch: whoever follows the log must read everything anew
        return Snapshot(uuid.uuid4().hex, len(history), replay.documents, tuple(replay.tombstones.values())), history

    agreed = consent._replace(plan=plan.id)
    return ledger.restore(build, restoration.planned, restoration.warnings, agreed, restoration.applied)


def parsed(kinds: Kinds, data: Any, source: str) -> imports.Export:
    """An export that is whole, whose documents are good and whose history leads to them."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise errors.Invalid(f"{source}: is no export of this program: format must be {FORMAT}")
    if data.get("checksum") != checksum(data):
        raise errors.Invalid(f"{source}: the checksum does not fit the content; it was damaged or edited")
    export = imports.parsed(kinds, data, source)
    if export.history is not None:
        histories.check(kinds, export, source)
    return export


def _json_object(path: Path, decoded: Callable[[bytes], Any]) -> Document:
    try:
        data = decoded(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
    except OSError as exc:
        raise errors.StartupError(f"{path}: cannot be read: {exc.strerror}") from exc
    except errors.MalformedBody as exc:
        raise errors.StartupError(f"{path}: {exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise errors.StartupError(f"{path}: invalid JSON value: {exc}") from exc
    if not isinstance(data, dict):
        raise errors.StartupError(f"{path}: must hold a JSON object")
    return data
