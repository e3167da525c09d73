"""Documents, kinds and ledgers that the tests of the core begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from flux_resourceset import answers, changes, drafts, errors, merge
from flux_resourceset.changes import Document, Entry, Origin, Stored
from flux_resourceset.effects import Effect
from flux_resourceset.fleet import Fleet
from flux_resourceset.follower import Follower
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Kinds, Referenced
from flux_resourceset.ledger import Clock, Ledger, utc_now
from flux_resourceset.outcomes import Outcome
from flux_resourceset.store import Store
from flux_resourceset.store.memory import MemoryStore

HERE = Path(__file__).parent
KINDS_DIR = HERE / "kinds"
ORIGIN = Origin(actor="tester")

R = TypeVar("R", bound=errors.Refusal)

# A kind file as plain as one can be; tests add what they are about.
PLAIN = """\
kind: widgets
apiVersion: v1
schema:
  type: array
  key: {name: id, schema: {type: string}}
  items:
    type: object
    required: [id]
    properties:
      id: {type: string}
"""


def cluster(id: str = "c1", **fields: Any) -> Document:
    return {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "dev", **fields}


def component(id: str, **fields: Any) -> Document:
    return {"id": id, "component_path": id, "oci_url": "oci://registry.example.com/charts", "oci_tag": "1.0.0", **fields}


def namespace(id: str, **fields: Any) -> Document:
    return {"id": id, **fields}


def rolebinding(id: str, **fields: Any) -> Document:
    return {"id": id, "role": "view", "subjects": [{"kind": "Group", "name": "developers"}], **fields}


def inputs(kind: Referenced, cluster: Document, definitions: Mapping[str, Document]) -> list[Document]:
    """The inputs that Flux gets."""
    digests = answers.Encoder().digests(kind, cluster, definitions)
    return [{**item, "digest": digests[item["id"]]} for item in merge.inputs(kind, cluster, definitions)]


def history(ledger: Ledger) -> list[Entry]:
    """The whole log, oldest first."""
    return ledger.follower.store.entries(0)


def kinds_from(directory: Path, *files: str) -> Kinds:
    """The built-in kinds and those of the given texts."""
    for position, text in enumerate(files):
        (directory / f"kind_{position}.yaml").write_text(text)
    return kind_files.load(directory)


def ledger_of(known: Kinds, store: Store | None = None, clock: Clock = utc_now) -> Ledger:
    opened = store or MemoryStore()
    ledger = Ledger(Follower(known, lambda: opened), clock)
    ledger.follower.refresh()
    return ledger


def write(ledger: Ledger, work: Callable[[drafts.Draft], Any]) -> Entry | None:
    return ledger.write_now(work, ORIGIN).entry


def rehearsed(ledger: Ledger, *deeds: Callable[[drafts.Draft], Any]) -> Outcome[None]:
    """What they would do together."""

    def work(draft: drafts.Draft) -> None:
        for deed in deeds:
            deed(draft)

    return ledger.rehearse_now(work, ORIGIN)


def create(ledger: Ledger, kind: str, *documents: Document) -> Entry | None:
    """All documents in one transaction."""

    def work(draft: drafts.Draft) -> None:
        for document in documents:
            draft.create(ledger.kinds.by_name[kind], document)

    return write(ledger, work)


def refused(kind: type[R], ledger: Ledger, work: Callable[[drafts.Draft], Any]) -> R:
    """The refusal of a write, of exactly this class; nothing was written."""
    before = ledger.fleet.revision
    with pytest.raises(errors.Refusal) as caught:
        write(ledger, work)
    assert type(caught.value) is kind, caught.value
    assert ledger.fleet.revision == before
    return caught.value


def pointers(refusal: errors.Refusal) -> list[str]:
    return sorted(violation.pointer for violation in refusal.violations)


def stored(ledger: Ledger, kind: str, id: str) -> Document:
    found = ledger.fleet.get(kind, id)
    assert found is not None
    return found.body


def fleet_of(known: Kinds, **documents: list[Document]) -> Fleet:
    """A fleet that was loaded, not written: nothing is checked."""
    by_kind = {kind: {doc["id"]: Stored(doc, 1) for doc in found} for kind, found in documents.items()}
    fleet = Fleet(known)
    fleet.load(changes.Snapshot("epoch", 1, by_kind, ()))
    return fleet


def nothing_planned(state: Fleet) -> tuple[Entry, Effect]:
    """What a restore does that takes nothing from anybody."""
    return Entry(0, "", "", None, None, None, False, ()), Effect()


def decoded(body: bytes) -> list[Document]:
    """The inputs of an answer."""
    found: list[Document] = msgspec.json.decode(body)["inputs"]
    return found


def canonical(value: Any) -> bytes:
    """Equal for what is equal as JSON: to Python, true is 1."""
    return msgspec.json.encode(value, order="deterministic")
